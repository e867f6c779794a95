"""Gathers what a broker tells about its diskless topics from their components."""

from __future__ import annotations

from strandline.admin.diskless_status import DisklessStatus, ObjectCalls
from strandline.hybrid.diskless.tier import DisklessTier
from strandline.hybrid.diskless.topics import DisklessTopics


def describe_diskless(topics: DisklessTopics) -> DisklessStatus:
    """The tier now. Looks at memory only."""
    if topics.tier is None:
        return DisklessStatus(unserved_partitions=topics.unserved)
    return _describe(topics, topics.tier)


def _describe(topics: DisklessTopics, tier: DisklessTier) -> DisklessStatus:
    writer, reader, objects = tier.writer.status(), tier.reader.status(), tier.objects.status()
    retention, cleaner, orphans = tier.retention.status(), tier.cleaner.status(), tier.orphans.status()
    totals, cache = writer.totals, reader.cache
    return DisklessStatus(
        objects_url=objects.url,
        topics=len({partition.id.topic_id for partition in topics.by_key.values()}),
        partitions=len(topics.by_key),
        unserved_partitions=topics.unserved,
        watched_partitions=reader.watched,
        pending_bytes=writer.pending_bytes,
        oldest_pending_s=writer.oldest_pending_seconds,
        uploads_running=writer.uploads_running,
        wal_files=totals.files,
        wal_bytes=totals.bytes,
        batches={
            "committed": totals.batches,
            "refused": totals.batches_refused,
            "failed": totals.batches_failed,
            "over_limit": totals.batches_over_limit,
        },
        uploads_failed=totals.uploads_failed,
        commits_failed=totals.commits_failed,
        cache_bytes={"hot": cache.hot_bytes, "cold": cache.cold_bytes},
        cache_limits={"hot": cache.hot_limit, "cold": cache.cold_limit},
        queries=reader.queries,
        object_calls={
            name: ObjectCalls(
                calls=calls.calls,
                errors=calls.errors,
                bytes=calls.bytes,
                oldest_pending_s=calls.oldest_pending_seconds if calls.pending else 0.0,
            )
            for name, calls in objects.operations.items()
        },
        object_retries=objects.retries,
        retention_rows_deleted=retention.rows_deleted,
        retention_bytes_deleted=retention.bytes_deleted,
        files_deleted=cleaner.files_deleted,
        orphans_found=orphans.orphans_taken,
        upkeep_failures={
            "retention": retention.upkeep.failures_in_a_row,
            "cleaning": cleaner.upkeep.failures_in_a_row,
            "orphans": orphans.upkeep.failures_in_a_row,
        },
    )
