"""A broker's status as JSON: `/status`, and `/topics/TOPIC/tiers`, which `strandline topics tiers` reads.

The names are for other programs to read: they stay when ours change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from strandline.admin.http.migration_json import led_migrations
from strandline.admin.status import BrokerStatus, DisklessStatus, TopicRow, read
from strandline.hybrid.diskless.status import DisklessTierStatus
from strandline.hybrid.remote.status import TieredStatus

if TYPE_CHECKING:  # a broker without tiered storage does not load it
    from strandline.objects import OperationStatus
    from strandline.remote.manager import PartitionTierStatus, TopicTierStatus
    from strandline.remote.reader.status import TopicReads
    from strandline.remote.storage import StorageOperationStatus

S = TypeVar("S")
Json: TypeAlias = dict[str, Any]
# Names, how their values are read from a status, and what they are where there is none.
_Fields: TypeAlias = tuple[tuple[str, Callable[[S], object], object], ...]

_DISKLESS_TIER: Final[_Fields[DisklessTierStatus]] = (
    ("watched_partitions", lambda t: t.reader.watched, 0),
    ("pending_bytes", lambda t: t.writer.pending_bytes, 0),
    ("oldest_pending_s", lambda t: t.writer.oldest_pending_seconds, 0.0),
    ("uploads_running", lambda t: t.writer.uploads_running, 0),
    ("wal_files", lambda t: t.writer.totals.files, 0),
    ("wal_bytes", lambda t: t.writer.totals.bytes, 0),
    ("batches", lambda t: _batches(t), {}),
    ("uploads_failed", lambda t: t.writer.totals.uploads_failed, 0),
    ("commits_failed", lambda t: t.writer.totals.commits_failed, 0),
    ("cache_bytes", lambda t: {"hot": t.reader.cache.hot_bytes, "cold": t.reader.cache.cold_bytes}, {}),
    ("cache_limits", lambda t: {"hot": t.reader.cache.hot_limit, "cold": t.reader.cache.cold_limit}, {}),
    ("queries", lambda t: t.reader.queries, 0),
    ("object_calls", lambda t: {name: _object_calls(each) for name, each in t.objects.operations.items()}, {}),
    ("object_retries", lambda t: t.objects.retries, 0),
    ("retention_rows_deleted", lambda t: t.retention.rows_deleted, 0),
    ("retention_bytes_deleted", lambda t: t.retention.bytes_deleted, 0),
    ("files_deleted", lambda t: t.cleaner.files_deleted, 0),
    ("orphans_found", lambda t: t.orphans.orphans_taken, 0),
    ("upkeep_failures", lambda t: _upkeep_failures(t), {}),
)
_TIERED: Final[_Fields[TieredStatus]] = (
    ("storage_url", lambda t: t.storage.url, ""),
    ("topics", lambda t: {name: _tiered_topic(t, name) for name in t.topics}, {}),
    ("partitions", lambda t: t.manager.partitions, 0),
    ("reads_running", lambda t: t.reader.running, 0),
    ("reads_waiting", lambda t: t.reader.waiting, 0),
    ("reader_idle_percent", lambda t: t.reader.idle_percent, 0.0),
    ("reads_throttled", lambda t: t.reader.throttled, 0),
    ("manager_idle_percent", lambda t: t.manager_idle_percent, 0.0),
    ("copies_running", lambda t: t.manager.copies_running, 0),
    ("oldest_copy_s", lambda t: t.manager.oldest_copy_seconds, 0.0),
    ("deletions_running", lambda t: t.manager.deletions, 0),
    ("storage_calls", lambda t: {name: _storage_calls(each) for name, each in t.storage.operations.items()}, {}),
    ("storage_stuck", lambda t: t.storage.stuck, 0),
    ("index_cache_bytes", lambda t: t.indexes.bytes, 0),
    ("index_cache_limit", lambda t: t.indexes.max_bytes, 0),
    ("index_memory_bytes", lambda t: t.indexes.memory_bytes, 0),
    ("index_memory_limit", lambda t: t.indexes.max_memory_bytes, 0),
    ("read_cache_bytes", lambda t: t.reader.cache_bytes, 0),
    ("read_cache_limit", lambda t: t.reader.cache_limit, 0),
)
_READS_OF_TOPIC: Final[_Fields[TopicReads]] = (
    ("fetch_requests", lambda t: t.requests, 0),
    ("fetch_bytes", lambda t: t.bytes, 0),
    ("fetch_errors", lambda t: t.errors, 0),
)
_TIERS_OF_TOPIC: Final[_Fields[TopicTierStatus]] = (
    ("copy_requests", lambda t: t.copy_requests, 0),
    ("copy_bytes", lambda t: t.copy_bytes, 0),
    ("copy_errors", lambda t: t.copy_errors, 0),
    ("delete_requests", lambda t: t.delete_requests, 0),
    ("delete_errors", lambda t: t.delete_errors, 0),
    ("copy_lag_segments", lambda t: t.copy_lag_segments, 0),
    ("copy_lag_bytes", lambda t: t.copy_lag_bytes, 0),
    ("delete_lag_segments", lambda t: t.delete_lag_segments, 0),
    ("delete_lag_bytes", lambda t: t.delete_lag_bytes, 0),
    ("remote_segments", lambda t: t.metadata_count, 0),
    ("remote_bytes", lambda t: t.remote_bytes, 0),
)


def broker_status(status: BrokerStatus) -> Json:
    """What `/status` answers."""
    return {
        "is_ready": status.is_ready,
        "version": status.version,
        "node_id": status.node_id,
        "cluster_id": status.cluster_id,
        "not_ready_because": status.not_ready_because,
        "uptime_s": status.uptime_s,
        "listeners": status.listeners,
        "controller_id": status.controller_id,
        "controller_epoch": status.controller_epoch,
        "metadata_offset": status.metadata_offset,
        "brokers": [asdict(row) for row in status.brokers],
        "topics": status.topics,
        "partitions": status.partitions,
        "local_partitions": status.local_partitions,
        "led_partitions": status.led_partitions,
        "under_replicated_partitions": status.under_replicated_partitions,
        "under_min_isr_partitions": status.under_min_isr_partitions,
        "offline_partitions": status.offline_partitions,
        "leaderless": status.leaderless,
        "clock_problem": status.clock_problem,
        "groups": status.groups,
        "connections": status.connections,
        "client_memory": {
            name: {"bytes": held, "limit": limit} for name, (held, limit) in status.client_memory.items()
        },
        "connections_accepted": status.connections_accepted,
        "network_bytes_in": status.network_bytes_in,
        "network_bytes_out": status.network_bytes_out,
        "cold_reads": status.cold_reads,
        "fetch_sessions": status.fetch_sessions,
        "fetch_session_partitions": status.fetch_session_partitions,
        "requests": status.requests,
        "uncleanable_partitions": len(status.cleaner.uncleanable),
        "max_dirty_percent": 100 * status.cleaner.max_dirty_ratio,
        "log_dirs": [asdict(row) for row in status.log_dirs],
        "diskless": _diskless(status.diskless),
        "tiered": _fields(_TIERED, status.tiered),
        "migration": {topic: led_migrations(rows) for topic, rows in status.migration.of_topics().items()},
        "tiering": {topic: backlog._asdict() for topic, backlog in status.tiering.topics.items()},
        "topic_rows": [_topic(row) for row in status.topic_rows],
        "traffic": asdict(status.traffic),
        "dependencies": [asdict(health) for health in status.dependencies],
    }


def partition_tiers(status: PartitionTierStatus) -> Json:
    """One of the partitions of `/topics/TOPIC/tiers`: where its segments are."""
    return {
        "partition": status.partition.partition,
        "log_start_offset": status.log_start_offset,
        "local_log_start_offset": status.local_log_start_offset,
        "highest_remote_offset": status.highest_offset_in_remote_storage,
        "log_end_offset": status.log_end_offset,
        "local_bytes": status.local_bytes,
        "remote_bytes": status.remote_bytes,
        "remote_segments": status.remote_segments,
        "pending_segments": status.pending_segments,
        "pending_bytes": status.pending_bytes,
        "deleting_segments": status.deleting_segments,
        "local_from": status.local_from,
        "local_because": status.local_because,
        "last_error": status.last_error,
        "segments": [row._asdict() | {"tier": row.tier.value} for row in status.segments],
        "segments_left_out": status.segments_left_out,
    }


def _topic(row: TopicRow) -> Json:
    """As `asdict`, which copies every number: there may be thousands of topics, and clients wait meanwhile."""
    shown = {name: getattr(row, name) for name in row.__slots__}
    return {**shown, "traffic": {name: getattr(row.traffic, name) for name in row.traffic.__slots__}}


def _fields(fields: _Fields[S], status: S | None) -> Json:
    return {name: read(status, value, otherwise) for name, value, otherwise in fields}


def _diskless(status: DisklessStatus) -> Json:
    return {
        "objects_url": read(status.tier, lambda tier: tier.objects.url, ""),
        "topics": status.topics,
        "partitions": status.partitions,
        "unserved_partitions": status.unserved_partitions,
        **_fields(_DISKLESS_TIER, status.tier),
    }


def _batches(tier: DisklessTierStatus) -> Json:
    totals = tier.writer.totals
    return {
        "committed": totals.batches,
        "refused": totals.batches_refused,
        "failed": totals.batches_failed,
        "over_limit": totals.batches_over_limit,
    }


def _upkeep_failures(tier: DisklessTierStatus) -> Json:
    return {
        "retention": tier.retention.upkeep.failures_in_a_row,
        "cleaning": tier.cleaner.upkeep.failures_in_a_row,
        "orphans": tier.orphans.upkeep.failures_in_a_row,
        "leftovers": tier.leftovers.upkeep.failures_in_a_row,
    }


def _object_calls(operation: OperationStatus) -> Json:
    return {
        "calls": operation.calls,
        "errors": operation.errors,
        "bytes": operation.bytes,
        "oldest_pending_s": operation.oldest_pending_seconds,
    }


def _storage_calls(operation: StorageOperationStatus) -> Json:
    return {
        "calls": operation.calls,
        "errors": operation.errors,
        "timeouts": operation.timeouts,
        "bytes": operation.bytes,
        "oldest_pending_s": operation.oldest_pending_seconds,
    }


def _tiered_topic(status: TieredStatus, name: str) -> Json:
    reads, stored = status.reader.topics.get(name), status.manager.topics.get(name)
    return _fields(_READS_OF_TOPIC, reads) | _fields(_TIERS_OF_TOPIC, stored)
