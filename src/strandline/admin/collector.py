"""Gauges made of the broker's status, under Kafka's metric names in the form Prometheus allows.

Kafka's `kafka.server:type=ReplicaManager,name=PartitionCount` becomes `kafka_server_replicamanager_partitioncount`,
the form that dashboards made for Kafka's JMX exporter look for.
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

from strandline.admin.diskless_metrics import diskless_families
from strandline.admin.status import BrokerStatus, StatusSource
from strandline.admin.tiered_metrics import tiered_families

# Kafka's BrokerState: 1 starting, 3 running. A broker that answers HTTP but is not ready is starting or leaving.
_STARTING, _RUNNING = 1, 3


class StatusCollector:
    """A Prometheus collector over `StatusSource`; asks for the status once for each scrape."""

    def __init__(self, source: StatusSource) -> None:
        self._source = source

    def describe(self) -> Iterable[Metric]:
        """Nothing, so that registering does not ask the broker before it can answer."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """The families of one scrape."""
        status = self._source.status()
        for name, text, value in _gauges(status):
            yield GaugeMetricFamily(name, text, value=value)
        build = InfoMetricFamily("strandline_build", "The version that runs.")
        build.add_metric((), {"version": status.version, "cluster_id": status.cluster_id})
        yield build
        yield from _labelled(status)
        yield from diskless_families(status.diskless)
        yield from tiered_families(status.tiered)


def _labelled(status: BrokerStatus) -> Iterable[Metric]:
    directories = GaugeMetricFamily("strandline_log_dir_bytes", "Bytes of segments in a log directory.", labels=["dir"])
    for directory in status.log_dirs:
        directories.add_metric([directory.path], directory.bytes)
    requests = CounterMetricFamily(
        "kafka_network_requestmetrics_requests", "Requests since the start.", labels=["request"]
    )
    for name, count in sorted(status.requests.items()):
        requests.add_metric([name], count)
    # Per topic, not per partition: thousands of partitions would make a scrape slow and large.
    size = GaugeMetricFamily("kafka_log_log_size", "Bytes of segments of a topic here.", labels=["topic"])
    records = CounterMetricFamily(
        "kafka_server_brokertopicmetrics_messagesin",
        "Records taken in by partitions led here, since their creation.",
        labels=["topic"],
    )
    for row in status.topic_rows:
        size.add_metric([row.name], row.bytes)
        records.add_metric([row.name], row.end_offsets)
    return (directories, requests, size, records, *_counters(status))


def _counters(status: BrokerStatus) -> Iterable[Metric]:
    yield CounterMetricFamily(
        "kafka_server_socket_server_metrics_incoming_byte", "Bytes received.", value=status.network_bytes_in
    )
    yield CounterMetricFamily(
        "kafka_server_socket_server_metrics_outgoing_byte", "Bytes sent.", value=status.network_bytes_out
    )
    yield CounterMetricFamily(
        "kafka_server_socket_server_metrics_connection_creation",
        "Connections accepted.",
        value=status.connections_accepted,
    )
    yield CounterMetricFamily(
        "strandline_cold_reads",
        "Ranges of segments that were not in memory when a consumer asked.",
        value=status.cold_reads,
    )


def _gauges(status: BrokerStatus) -> Iterable[tuple[str, str, float]]:
    yield (
        "kafka_server_kafkaserver_brokerstate",
        "3 when serving, 1 before.",
        _RUNNING if status.is_ready else _STARTING,
    )
    yield "kafka_server_replicamanager_partitioncount", "Partitions with a replica here.", status.local_partitions
    yield "kafka_server_replicamanager_leadercount", "Partitions led here.", status.led_partitions
    yield (
        "kafka_server_replicamanager_underreplicatedpartitions",
        "Partitions led here with replicas out of sync.",
        status.under_replicated_partitions,
    )
    yield (
        "kafka_server_replicamanager_underminisrpartitioncount",
        "Partitions led here with fewer replicas in sync than min.insync.replicas.",
        status.under_min_isr_partitions,
    )
    yield (
        "kafka_controller_kafkacontroller_activecontrollercount",
        "1 on the active controller.",
        int(status.is_controller),
    )
    yield "kafka_controller_kafkacontroller_globaltopiccount", "Topics of the cluster.", status.topics
    yield "kafka_controller_kafkacontroller_globalpartitioncount", "Partitions of the cluster.", status.partitions
    yield (
        "kafka_controller_kafkacontroller_offlinepartitionscount",
        "Partitions of the cluster without a leader.",
        status.offline_partitions,
    )
    fenced = sum(broker.is_fenced for broker in status.brokers)
    yield "kafka_controller_kafkacontroller_activebrokercount", "Brokers alive.", len(status.brokers) - fenced
    yield "kafka_controller_kafkacontroller_fencedbrokercount", "Brokers fenced.", fenced
    offline = sum(not row.is_online for row in status.log_dirs)
    yield "kafka_log_logmanager_offlinelogdirectorycount", "Log directories that failed.", offline
    yield (
        "kafka_log_logcleanermanager_uncleanable_partitions_count",
        "Partitions that compaction cannot read.",
        status.uncleanable_partitions,
    )
    yield (
        "kafka_log_logcleanermanager_max_dirty_percent",
        "The largest part of a compacted partition that is not compacted yet.",
        status.max_dirty_percent,
    )
    yield "kafka_coordinator_group_groupmetadatamanager_numgroups", "Groups coordinated here.", status.groups
    yield "kafka_server_socket_server_metrics_connection_count", "Open client connections.", status.connections
    yield "kafka_server_fetchsessioncache_numincrementalfetchsessions", "Fetch sessions.", status.fetch_sessions
    yield (
        "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached",
        "Partitions in fetch sessions.",
        status.fetch_session_partitions,
    )
    yield "strandline_metadata_offset", "The last metadata record applied.", status.metadata_offset
    yield "strandline_uptime_seconds", "Time since the start.", status.uptime_s
