"""Metrics of diskless topics."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from strandline.admin.http.metrics.families import Family, counter, counters, gauge, gauges
from strandline.admin.status import DisklessStatus
from strandline.hybrid.diskless.status import DisklessTierStatus

if TYPE_CHECKING:
    from strandline.objects import OperationStatus

_PREFIX: Final = "strandline_diskless_"

DISKLESS_TOPICS: Final[tuple[Family[DisklessStatus], ...]] = (
    gauge(_PREFIX + "topics", "Diskless topics of the cluster.", lambda s: s.topics),
    gauge(_PREFIX + "partitions", "Diskless partitions that this broker serves.", lambda s: s.partitions),
    gauge(
        _PREFIX + "unserved_partitions",
        "Diskless partitions that this broker does not serve yet.",
        lambda s: s.unserved_partitions,
    ),
)


def _by_operation(
    value: Callable[[OperationStatus], float],
) -> Callable[[DisklessTierStatus], dict[str, float]]:
    return lambda status: {name: value(operation) for name, operation in status.objects.operations.items()}


DISKLESS_TIER: Final[tuple[Family[DisklessTierStatus], ...]] = (
    gauge(
        _PREFIX + "watched_partitions",
        "Diskless partitions on which consumers wait.",
        lambda s: s.reader.watched,
    ),
    gauge(_PREFIX + "pending_bytes", "Bytes of batches that are not committed yet.", lambda s: s.writer.pending_bytes),
    gauge(
        _PREFIX + "oldest_pending_seconds",
        "How long the oldest batch that is not committed has been waiting.",
        lambda s: s.writer.oldest_pending_seconds,
    ),
    gauge(_PREFIX + "uploads_running", "WAL objects being written.", lambda s: s.writer.uploads_running),
    counter(_PREFIX + "wal_files", "WAL objects committed.", lambda s: s.writer.totals.files),
    counter(_PREFIX + "wal_bytes", "Bytes of WAL objects committed.", lambda s: s.writer.totals.bytes),
    counter(
        _PREFIX + "uploads_failed", "WAL objects that could not be written.", lambda s: s.writer.totals.uploads_failed
    ),
    counter(
        _PREFIX + "commits_failed",
        "WAL objects that were written but not committed.",
        lambda s: s.writer.totals.commits_failed,
    ),
    counter(_PREFIX + "queries", "Queries of readers to the control plane.", lambda s: s.reader.queries),
    counter(
        _PREFIX + "object_retries", "Requests to the object store that were sent again.", lambda s: s.objects.retries
    ),
    counter(_PREFIX + "retention_rows_deleted", "Rows deleted by retention.", lambda s: s.retention.rows_deleted),
    counter(
        _PREFIX + "retention_bytes_deleted",
        "Bytes of records deleted by retention.",
        lambda s: s.retention.bytes_deleted,
    ),
    counter(
        _PREFIX + "files_deleted",
        "WAL objects deleted because nothing refers to them.",
        lambda s: s.cleaner.files_deleted,
    ),
    counter(
        _PREFIX + "orphans_found",
        "WAL objects of uploads that were never committed.",
        lambda s: s.orphans.orphans_taken,
    ),
    counters(
        _PREFIX + "batches",
        "Batches of producers, by their result.",
        "outcome",
        lambda s: {
            "committed": s.writer.totals.batches,
            "refused": s.writer.totals.batches_refused,
            "failed": s.writer.totals.batches_failed,
            "over_limit": s.writer.totals.batches_over_limit,
        },
    ),
    gauges(
        _PREFIX + "cache_bytes",
        "Memory of the cache in use.",
        "part",
        lambda s: {"hot": s.reader.cache.hot_bytes, "cold": s.reader.cache.cold_bytes},
    ),
    gauges(
        _PREFIX + "cache_limit_bytes",
        "Memory that the cache may use.",
        "part",
        lambda s: {"hot": s.reader.cache.hot_limit, "cold": s.reader.cache.cold_limit},
    ),
    counters(
        _PREFIX + "object_requests",
        "Requests to the object store, every attempt.",
        "operation",
        _by_operation(lambda o: o.calls),
    ),
    counters(
        _PREFIX + "object_errors",
        "Requests to the object store that failed.",
        "operation",
        _by_operation(lambda o: o.errors),
    ),
    counters(
        _PREFIX + "object_bytes",
        "Bytes to and from the object store.",
        "operation",
        _by_operation(lambda o: o.bytes),
    ),
    gauges(
        _PREFIX + "object_oldest_pending_seconds",
        "How long the oldest request without an answer has been waiting.",
        "operation",
        _by_operation(lambda o: o.oldest_pending_seconds),
    ),
    gauges(
        _PREFIX + "upkeep_failures",
        "Failures in a row of background work.",
        "work",
        lambda s: {
            "retention": s.retention.upkeep.failures_in_a_row,
            "cleaning": s.cleaner.upkeep.failures_in_a_row,
            "orphans": s.orphans.upkeep.failures_in_a_row,
            "leftovers": s.leftovers.upkeep.failures_in_a_row,
        },
    ),
)
