"""Metrics of a broker, under Kafka's metric names in the form Prometheus allows.

Kafka's `kafka.server:type=ReplicaManager,name=PartitionCount` becomes `kafka_server_replicamanager_partitioncount`,
the form that dashboards made for Kafka's JMX exporter look for.
"""

from __future__ import annotations

from typing import Final

from strandline.admin.http.metrics.families import Family, counter, gauge, gauges, info, untyped
from strandline.admin.status import BrokerStatus

# Kafka's BrokerState: 1 starting, 3 running. A broker that answers HTTP but is not ready is starting or leaving.
_STARTING, _RUNNING = 1, 3


def _groups(state: str) -> Family[BrokerStatus]:
    return gauge(
        f"kafka_coordinator_group_groupmetadatamanager_numgroups{state.lower()}",
        f"Those that are in the state {state}.",
        lambda s: s.groups_by_state.get(state, 0),
    )


def _fenced(status: BrokerStatus) -> int:
    return sum(broker.is_fenced for broker in status.brokers)


BROKER: Final[tuple[Family[BrokerStatus], ...]] = (
    gauge(
        "kafka_server_kafkaserver_brokerstate",
        "3 when serving clients, 1 before and while stopping.",
        lambda s: _RUNNING if s.is_ready else _STARTING,
    ),
    gauge(
        "kafka_server_replicamanager_partitioncount",
        "Partitions with a replica here, and diskless ones whose clients are sent here.",
        lambda s: s.local_partitions,
    ),
    gauge(
        "kafka_server_replicamanager_leadercount",
        "Partitions led here, and diskless ones whose clients are sent here.",
        lambda s: s.led_partitions,
    ),
    gauge(
        "kafka_server_replicamanager_underreplicatedpartitions",
        "Partitions led here with replicas out of sync.",
        lambda s: s.under_replicated_partitions,
    ),
    gauge(
        "kafka_server_replicamanager_underminisrpartitioncount",
        "Partitions led here with fewer replicas in sync than min.insync.replicas.",
        lambda s: s.under_min_isr_partitions,
    ),
    counter(
        "kafka_server_replicamanager_isrshrinks",
        "In-sync sets of partitions led here that followers have left because they lagged.",
        lambda s: s.isr_shrinks,
    ),
    counter(
        "kafka_server_replicamanager_isrexpands",
        "In-sync sets of partitions led here that a follower has joined.",
        lambda s: s.isr_expands,
    ),
    counter(
        "kafka_controller_controllerstats_uncleanleaderelections",
        "Leaders elected by this broker's controller that may lack committed records.",
        lambda s: s.unclean_elections,
    ),
    gauge(
        "kafka_controller_kafkacontroller_activecontrollercount",
        "1 on the active controller.",
        lambda s: int(s.is_controller),
    ),
    gauge("kafka_controller_kafkacontroller_globaltopiccount", "Topics of the cluster.", lambda s: s.topics),
    gauge(
        "kafka_controller_kafkacontroller_globalpartitioncount", "Partitions of the cluster.", lambda s: s.partitions
    ),
    gauge(
        "kafka_controller_kafkacontroller_offlinepartitionscount",
        "Partitions of the cluster without a leader. A diskless one is among them only if it was classic before, its "
        "broker is away, and not all of its older records are in remote storage.",
        lambda s: s.offline_partitions,
    ),
    gauge(
        "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
        "Classic partitions of the cluster that another broker leads than their first replica.",
        lambda s: s.partitions_without_preferred_leader,
    ),
    gauge(
        "kafka_controller_kafkacontroller_activebrokercount",
        "Brokers alive.",
        lambda s: len(s.brokers) - _fenced(s),
    ),
    gauge("kafka_controller_kafkacontroller_fencedbrokercount", "Brokers fenced.", _fenced),
    gauge(
        "kafka_log_logmanager_offlinelogdirectorycount",
        "Log directories that failed.",
        lambda s: sum(not row.is_online for row in s.log_dirs),
    ),
    untyped(
        "kafka_log_logcleanermanager_uncleanable_partitions_count",
        "Partitions that compaction cannot read.",
        lambda s: len(s.cleaner.uncleanable),
    ),
    gauge(
        "kafka_log_logcleanermanager_max_dirty_percent",
        "The largest part of a compacted partition that is not compacted yet.",
        lambda s: 100 * s.cleaner.max_dirty_ratio,
    ),
    gauge("kafka_coordinator_group_groupmetadatamanager_numgroups", "Groups coordinated here.", lambda s: s.groups),
    *(_groups(state) for state in ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")),
    gauges(
        "strandline_transactional_ids",
        "Transactional ids coordinated here, by the state of their last transaction.",
        "state",
        lambda s: s.transactions.by_state,
    ),
    gauge(
        "strandline_transaction_longest_open_seconds",
        "How long the oldest open transaction coordinated here has been open. read_committed consumers wait for it.",
        lambda s: s.transactions.longest_open_s,
    ),
    gauge(
        "strandline_transactions_without_markers",
        "Transactions that are decided, and whose markers are not in all of their partitions yet.",
        lambda s: s.transactions.unmarked,
    ),
    gauges(
        "strandline_client_memory_bytes",
        "Bytes held for clients: requests being served, diskless batches without a commit, answers in memory.",
        "kind",
        lambda s: {name: held for name, (held, _) in s.client_memory.items()},
    ),
    gauges(
        "strandline_client_memory_limit_bytes",
        "Their limits. At a limit, connections that would need more are not read, or Fetch requests wait.",
        "kind",
        lambda s: {name: limit for name, (_, limit) in s.client_memory.items()},
    ),
    gauge("kafka_server_fetchsessioncache_numincrementalfetchsessions", "Fetch sessions.", lambda s: s.fetch_sessions),
    gauge(
        "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached",
        "Partitions in fetch sessions.",
        lambda s: s.fetch_session_partitions,
    ),
    counter(
        "kafka_server_fetchsessioncache_incrementalfetchsessionevictions",
        "Fetch sessions that had to make room for others.",
        lambda s: s.fetch_session_evictions,
    ),
    gauge("strandline_metadata_offset", "The last metadata record applied.", lambda s: s.metadata_offset),
    gauge("strandline_uptime_seconds", "Time since the start.", lambda s: s.uptime_s),
    info(
        "strandline_build",
        "The version that runs.",
        ("version", "cluster_id"),
        lambda s: {"version": s.version, "cluster_id": s.cluster_id},
    ),
    gauges(
        "strandline_log_dir_bytes",
        "Bytes of segments in a log directory.",
        "dir",
        lambda s: {row.path: row.bytes for row in s.log_dirs},
    ),
    counter("kafka_server_socket_server_metrics_incoming_byte", "Bytes received.", lambda s: s.network_bytes_in),
    counter("kafka_server_socket_server_metrics_outgoing_byte", "Bytes sent.", lambda s: s.network_bytes_out),
    counter(
        "strandline_cold_reads",
        "Ranges of segments that were not in memory when a consumer asked.",
        lambda s: s.cold_reads,
    ),
)
