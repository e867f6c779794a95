"""Metrics of tiered storage, made of its status, under the names of KIP-405 and of Kafka 4.

KIP-405's `RemoteBytesInPerSec` and others were renamed by KIP-930 before they were in a release. Both names are served:
the KIP's own, and those that dashboards made for Kafka 4 look for. A rate becomes a counter, as elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from strandline.admin.tiered_status import StorageCalls, TieredStatus, TieredTopic

_TOPIC_METRICS: Final = "kafka_server_brokertopicmetrics_"
_COUNTERS: Final[tuple[tuple[str, str, Callable[[TieredTopic], int]], ...]] = (
    ("remotefetchrequests", "Reads of remote segments.", lambda t: t.fetch_requests),
    ("remotefetchbytes", "Bytes of remote segments given to clients.", lambda t: t.fetch_bytes),
    ("remotefetcherrors", "Reads of remote segments that failed.", lambda t: t.fetch_errors),
    ("remotecopyrequests", "Segments that were to be copied.", lambda t: t.copy_requests),
    ("remotecopybytes", "Bytes copied to remote storage.", lambda t: t.copy_bytes),
    ("remotecopyerrors", "Copies that failed.", lambda t: t.copy_errors),
    ("remotedeleterequests", "Remote segments that were to be deleted.", lambda t: t.delete_requests),
    ("remotedeleteerrors", "Deletions that failed.", lambda t: t.delete_errors),
    ("remotereadrequests", "As remotefetchrequests: the name in KIP-405.", lambda t: t.fetch_requests),
    ("remotebytesin", "As remotefetchbytes: the name in KIP-405.", lambda t: t.fetch_bytes),
    ("remotereaderror", "As remotefetcherrors: the name in KIP-405.", lambda t: t.fetch_errors),
    ("remotebytesout", "As remotecopybytes: the name in KIP-405.", lambda t: t.copy_bytes),
    ("remotewriteerror", "As remotecopyerrors: the name in KIP-405.", lambda t: t.copy_errors),
)
_GAUGES: Final[tuple[tuple[str, str, Callable[[TieredTopic], int]], ...]] = (
    ("remotecopylagbytes", "Bytes of segments that can be copied and are not yet.", lambda t: t.copy_lag_bytes),
    ("remotecopylagsegments", "Segments that can be copied and are not yet.", lambda t: t.copy_lag_segments),
    ("remotedeletelagbytes", "Bytes of remote segments that are to be deleted.", lambda t: t.delete_lag_bytes),
    ("remotedeletelagsegments", "Remote segments that are to be deleted.", lambda t: t.delete_lag_segments),
    ("remotelogmetadatacount", "Remote segments of partitions led here.", lambda t: t.remote_segments),
    ("remotelogsizebytes", "Bytes of remote segments of partitions led here.", lambda t: t.remote_bytes),
)


def tiered_families(status: TieredStatus) -> Iterable[Metric]:
    """The families of one scrape."""
    for name, text, count in _COUNTERS:
        family = CounterMetricFamily(_TOPIC_METRICS + name, text, labels=["topic"])
        yield _with_topics(family, status.topics, count)
    for name, text, value in _GAUGES:
        gauge = GaugeMetricFamily(_TOPIC_METRICS + name, text, labels=["topic"])
        yield _with_topics(gauge, status.topics, value)
    for name, text, number in _numbers(status):
        yield GaugeMetricFamily(name, text, value=number)
    yield CounterMetricFamily(
        "strandline_remote_reads_throttled",
        "Reads that waited for the fetch quota.",
        value=status.reads_throttled,
    )
    yield from _storage(status.storage_calls)


def _with_topics(
    family: CounterMetricFamily | GaugeMetricFamily,
    topics: Mapping[str, TieredTopic],
    value: Callable[[TieredTopic], int],
) -> Metric:
    for name, topic in topics.items():
        family.add_metric([name], value(topic))
    return family


def _numbers(status: TieredStatus) -> Iterable[tuple[str, str, float]]:
    pool = "kafka_log_remote_remotestoragethreadpool_"
    yield pool + "remotelogreadertaskqueuesize", "Reads that wait for their turn.", status.reads_waiting
    yield (
        pool + "remotelogreaderavgidlepercent",
        "The part of remote.log.reader.threads that has nothing to do, from 0 to 1.",
        status.reader_idle_percent / 100,
    )
    yield (
        "kafka_log_remote_remotelogmanager_remotelogmanagertasksavgidlepercent",
        "The part of the copier and expiration pools that has nothing to do, from 0 to 1.",
        status.manager_idle_percent / 100,
    )
    yield "strandline_remote_partitions", "Tiered partitions led here.", status.partitions
    yield "strandline_remote_copies_running", "Segments being copied.", status.copies_running
    yield (
        "strandline_remote_oldest_copy_seconds",
        "How long the oldest of them has been going on.",
        status.oldest_copy_s,
    )
    yield (
        "strandline_remote_deletions_running",
        "Partitions of deleted topics whose remote segments are being deleted.",
        status.deletions_running,
    )
    yield "strandline_remote_reads_running", "Reads of remote storage under way.", status.reads_running
    yield "strandline_remote_stuck_calls", "Calls that do not end after their deadline.", status.storage_stuck
    yield "strandline_remote_index_cache_bytes", "Disk in use for remote indexes.", status.index_cache_bytes
    yield "strandline_remote_index_cache_limit_bytes", "Disk that they may use.", status.index_cache_limit
    yield "strandline_remote_index_memory_bytes", "Memory in use for remote indexes.", status.index_memory_bytes
    yield "strandline_remote_index_memory_limit_bytes", "Memory that they may use.", status.index_memory_limit
    yield "strandline_remote_read_cache_bytes", "Memory in use for parts of remote segments.", status.read_cache_bytes
    yield "strandline_remote_read_cache_limit_bytes", "Memory that they may use.", status.read_cache_limit


def _storage(calls: Mapping[str, StorageCalls]) -> Iterable[Metric]:
    counters: tuple[tuple[str, str, Callable[[StorageCalls], int]], ...] = (
        ("requests", "Calls to the remote storage.", lambda c: c.calls),
        ("errors", "Calls to the remote storage that failed.", lambda c: c.errors),
        ("timeouts", "Those that did not end in time.", lambda c: c.timeouts),
        ("bytes", "Bytes of segments and indexes to and from the remote storage.", lambda c: c.bytes),
    )
    for name, text, count in counters:
        family = CounterMetricFamily(f"strandline_remote_storage_{name}", text, labels=["operation"])
        for operation, call in calls.items():
            family.add_metric([operation], count(call))
        yield family
    oldest = GaugeMetricFamily(
        "strandline_remote_storage_oldest_pending_seconds",
        "How long the oldest call without an answer has been waiting.",
        labels=["operation"],
    )
    for operation, call in calls.items():
        oldest.add_metric([operation], call.oldest_pending_s)
    yield oldest
