"""Status values of components that have done nothing yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from strandline.diskless.reader import DisklessReaderStatus
from strandline.diskless.reader.cache import BlockCache
from strandline.diskless.upkeep import FileCleanerStatus, LeftoverStatus, OrphanStatus, RetentionStatus, UpkeepStatus
from strandline.diskless.writer import WriterStatus, WriterTotals
from strandline.hybrid.diskless.status import DisklessTierStatus
from strandline.hybrid.remote.status import TieredStatus
from strandline.log.cleaning import LogCleanerStatus
from strandline.objects import ObjectStoreStatus, OperationStatus
from strandline.remote.indexes import IndexCacheStatus
from strandline.remote.manager import ManagerStatus, TopicTierStatus
from strandline.remote.manager.jobs import PoolStatus
from strandline.remote.reader import RemoteReaderStatus
from strandline.remote.reader.status import TopicReads
from strandline.remote.storage import RemoteStorageStatus, StorageOperationStatus

_UPKEEP = UpkeepStatus(rounds=0, failures_in_a_row=0, last_error=None, last_completed_ms=None)
_POOL = PoolStatus(size=1, jobs=0, running=0, ready=0, failing=0, busy_seconds=0, oldest_running_seconds=0)

CLEANER = LogCleanerStatus(
    is_running=True,
    cleaning=None,
    passes=0,
    bytes_read=0,
    bytes_written=0,
    records_read=0,
    records_kept=0,
    max_dirty_ratio=0,
    max_compaction_delay_ms=0,
    last_run_ms=-1,
    uncleanable=frozenset(),
)


def diskless_tier(
    *,
    url: str,
    totals: WriterTotals | None = None,
    hot_bytes: int = 0,
    operations: Mapping[str, OperationStatus] | None = None,
) -> DisklessTierStatus:
    return DisklessTierStatus(
        objects=ObjectStoreStatus(url=url, operations=dict(operations or {}), retries=0, hedges=0, hedges_won=0),
        writer=WriterStatus(
            gathered_bytes=0,
            gathered_batches=0,
            pending_bytes=0,
            uploads_running=0,
            uploads_waiting=0,
            files_waiting_for_commit=0,
            files_committing=0,
            oldest_pending_seconds=0,
            totals=totals or WriterTotals(),
        ),
        reader=DisklessReaderStatus(
            partitions=0,
            watched=0,
            queries=0,
            requests=0,
            bytes_read=0,
            cache=replace(BlockCache(0).status(), hot_bytes=hot_bytes),
        ),
        retention=RetentionStatus(upkeep=_UPKEEP, rows_deleted=0, bytes_deleted=0, producers_expired=0),
        cleaner=FileCleanerStatus(upkeep=_UPKEEP, files_deleted=0, bytes_deleted=0),
        orphans=OrphanStatus(upkeep=_UPKEEP, objects_listed=0, orphans_taken=0),
        leftovers=LeftoverStatus(upkeep=_UPKEEP, leftovers_taken=0),
    )


def tiered(
    *,
    url: str,
    stored: Mapping[str, TopicTierStatus] | None = None,
    reads: Mapping[str, TopicReads] | None = None,
    reads_waiting: int = 0,
    operations: Mapping[str, StorageOperationStatus] | None = None,
) -> TieredStatus:
    return TieredStatus(
        manager=ManagerStatus(
            topics=stored or {},
            partitions=0,
            deletions=0,
            copier=_POOL,
            expiration=_POOL,
            oldest_copy_seconds=0,
            copier_idle_percent=0,
            expiration_idle_percent=0,
        ),
        reader=RemoteReaderStatus(
            topics=reads or {},
            running=0,
            waiting=reads_waiting,
            idle_percent=0,
            storage_requests=0,
            storage_bytes=0,
            read_seconds=0,
            throttled=0,
            throttle_seconds=0,
            cache_bytes=0,
            cache_limit=0,
            open_segments=0,
        ),
        storage=RemoteStorageStatus(url=url, operations=dict(operations or {}), oldest_pending_seconds=0, stuck=0),
        indexes=IndexCacheStatus(
            segments=0,
            bytes=0,
            max_bytes=0,
            memory_bytes=0,
            max_memory_bytes=0,
            memory_hits=0,
            disk_hits=0,
            fetches=0,
            errors=0,
            damaged=0,
            evictions=0,
            pending=0,
        ),
    )
