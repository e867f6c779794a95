"""Metrics of tiered storage, under the names of KIP-405 and of Kafka 4.

KIP-405's `RemoteBytesInPerSec` and others were renamed by KIP-930 before they were in a release. Both names are served:
the KIP's own, and those that dashboards made for Kafka 4 look for. A rate becomes a counter, as elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from strandline.admin.http.metrics.families import Family, counter, counters, gauge, gauges
from strandline.admin.status import read
from strandline.hybrid.remote.status import TieredStatus

if TYPE_CHECKING:  # a broker without tiered storage does not load it
    from strandline.remote.manager import TopicTierStatus
    from strandline.remote.reader.status import TopicReads
    from strandline.remote.storage import StorageOperationStatus

_TOPIC: Final = "kafka_server_brokertopicmetrics_"
_POOL: Final = "kafka_log_remote_remotestoragethreadpool_"
_STORAGE: Final = "strandline_remote_storage_"


def _stored(value: Callable[[TopicTierStatus], int]) -> Callable[[TieredStatus], Mapping[str, float]]:
    """By topic, a number of the RemoteLogManager."""
    return lambda status: {name: read(status.manager.topics.get(name), value, 0) for name in status.topics}


def _fetched(value: Callable[[TopicReads], int]) -> Callable[[TieredStatus], Mapping[str, float]]:
    """By topic, a number of the reader."""
    return lambda status: {name: read(status.reader.topics.get(name), value, 0) for name in status.topics}


def _by_operation(value: Callable[[StorageOperationStatus], float]) -> Callable[[TieredStatus], Mapping[str, float]]:
    return lambda status: {name: value(operation) for name, operation in status.storage.operations.items()}


TIERED: Final[tuple[Family[TieredStatus], ...]] = (
    counters(_TOPIC + "remotefetchrequests", "Reads of remote segments.", "topic", _fetched(lambda t: t.requests)),
    counters(
        _TOPIC + "remotefetchbytes",
        "Bytes of remote segments given to clients.",
        "topic",
        _fetched(lambda t: t.bytes),
    ),
    counters(
        _TOPIC + "remotefetcherrors",
        "Reads of remote segments that failed.",
        "topic",
        _fetched(lambda t: t.errors),
    ),
    counters(
        _TOPIC + "remotecopyrequests",
        "Segments that were to be copied.",
        "topic",
        _stored(lambda t: t.copy_requests),
    ),
    counters(_TOPIC + "remotecopybytes", "Bytes copied to remote storage.", "topic", _stored(lambda t: t.copy_bytes)),
    counters(_TOPIC + "remotecopyerrors", "Copies that failed.", "topic", _stored(lambda t: t.copy_errors)),
    counters(
        _TOPIC + "remotedeleterequests",
        "Remote segments that were to be deleted.",
        "topic",
        _stored(lambda t: t.delete_requests),
    ),
    counters(_TOPIC + "remotedeleteerrors", "Deletions that failed.", "topic", _stored(lambda t: t.delete_errors)),
    counters(
        _TOPIC + "remotereadrequests",
        "As remotefetchrequests: the name in KIP-405.",
        "topic",
        _fetched(lambda t: t.requests),
    ),
    counters(
        _TOPIC + "remotebytesin", "As remotefetchbytes: the name in KIP-405.", "topic", _fetched(lambda t: t.bytes)
    ),
    counters(
        _TOPIC + "remotereaderror", "As remotefetcherrors: the name in KIP-405.", "topic", _fetched(lambda t: t.errors)
    ),
    counters(
        _TOPIC + "remotebytesout", "As remotecopybytes: the name in KIP-405.", "topic", _stored(lambda t: t.copy_bytes)
    ),
    counters(
        _TOPIC + "remotewriteerror",
        "As remotecopyerrors: the name in KIP-405.",
        "topic",
        _stored(lambda t: t.copy_errors),
    ),
    gauges(
        _TOPIC + "remotecopylagbytes",
        "Bytes of segments that can be copied and are not yet.",
        "topic",
        _stored(lambda t: t.copy_lag_bytes),
    ),
    gauges(
        _TOPIC + "remotecopylagsegments",
        "Segments that can be copied and are not yet.",
        "topic",
        _stored(lambda t: t.copy_lag_segments),
    ),
    gauges(
        _TOPIC + "remotedeletelagbytes",
        "Bytes of remote segments that are to be deleted.",
        "topic",
        _stored(lambda t: t.delete_lag_bytes),
    ),
    gauges(
        _TOPIC + "remotedeletelagsegments",
        "Remote segments that are to be deleted.",
        "topic",
        _stored(lambda t: t.delete_lag_segments),
    ),
    gauges(
        _TOPIC + "remotelogmetadatacount",
        "Remote segments of partitions led here.",
        "topic",
        _stored(lambda t: t.metadata_count),
    ),
    gauges(
        _TOPIC + "remotelogsizebytes",
        "Bytes of remote segments of partitions led here.",
        "topic",
        _stored(lambda t: t.remote_bytes),
    ),
    gauge(_POOL + "remotelogreadertaskqueuesize", "Reads that wait for their turn.", lambda s: s.reader.waiting),
    gauge(
        _POOL + "remotelogreaderavgidlepercent",
        "The part of remote.log.reader.threads that had nothing to do in the last minute, from 0 to 1.",
        lambda s: s.reader.idle_percent / 100,
    ),
    gauge(
        "kafka_log_remote_remotelogmanager_remotelogmanagertasksavgidlepercent",
        "The part of the copier and expiration pools that had nothing to do in the last minute, from 0 to 1.",
        lambda s: s.manager_idle_percent / 100,
    ),
    gauge("strandline_remote_partitions", "Tiered partitions led here.", lambda s: s.manager.partitions),
    gauge(
        "strandline_remote_failing_partitions",
        "Partitions whose last copy to remote storage failed.",
        lambda s: s.manager.copier.failing,
    ),
    gauge("strandline_remote_copies_running", "Segments being copied.", lambda s: s.manager.copies_running),
    gauge(
        "strandline_remote_oldest_copy_seconds",
        "How long the oldest of these copies has been running.",
        lambda s: s.manager.oldest_copy_seconds,
    ),
    gauge(
        "strandline_remote_deletions_running",
        "Partitions of deleted topics whose remote segments are being deleted.",
        lambda s: s.manager.deletions,
    ),
    gauge("strandline_remote_reads_running", "Reads of remote storage under way.", lambda s: s.reader.running),
    gauge(
        "strandline_remote_stuck_calls",
        "Calls to the remote storage that still run after their deadline.",
        lambda s: s.storage.stuck,
    ),
    gauge("strandline_remote_index_cache_bytes", "Disk space in use for remote indexes.", lambda s: s.indexes.bytes),
    gauge(
        "strandline_remote_index_cache_limit_bytes",
        "Disk space that remote indexes may use.",
        lambda s: s.indexes.max_bytes,
    ),
    gauge(
        "strandline_remote_index_memory_bytes",
        "Memory in use for remote indexes.",
        lambda s: s.indexes.memory_bytes,
    ),
    gauge(
        "strandline_remote_index_memory_limit_bytes",
        "Memory that they may use.",
        lambda s: s.indexes.max_memory_bytes,
    ),
    gauge(
        "strandline_remote_read_cache_bytes",
        "Memory in use for parts of remote segments.",
        lambda s: s.reader.cache_bytes,
    ),
    gauge("strandline_remote_read_cache_limit_bytes", "Memory that they may use.", lambda s: s.reader.cache_limit),
    counter(
        "strandline_remote_reads_throttled",
        "Reads that returned no records because the fetch quota was used up.",
        lambda s: s.reader.throttled,
    ),
    counters(_STORAGE + "requests", "Calls to the remote storage.", "operation", _by_operation(lambda o: o.calls)),
    counters(
        _STORAGE + "errors",
        "Calls to the remote storage that failed.",
        "operation",
        _by_operation(lambda o: o.errors),
    ),
    counters(
        _STORAGE + "timeouts",
        "Calls to the remote storage that missed their deadline.",
        "operation",
        _by_operation(lambda o: o.timeouts),
    ),
    counters(
        _STORAGE + "bytes",
        "Bytes of segments and indexes to and from the remote storage.",
        "operation",
        _by_operation(lambda o: o.bytes),
    ),
    gauges(
        _STORAGE + "oldest_pending_seconds",
        "How long the oldest call without an answer has been waiting.",
        "operation",
        _by_operation(lambda o: o.oldest_pending_seconds),
    ),
)
