"""Opens the diskless tier: the object store, the reader, the writer and the background work, in this order.

Loaded when the first diskless topic appears; brokers without one do not pay for it. Closed in the reverse order: the
writer commits the batches it has accepted before the object store is closed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from strandline.clock import Chance, Clock, Ids
from strandline.config import Settings
from strandline.config.diskless import DisklessSettings
from strandline.config.topic import TopicConfig
from strandline.controlplane.plane import SqlControlPlane
from strandline.controlplane.ports import LogTrimming
from strandline.controlplane.values import RetentionRule, Trimmed
from strandline.diskless.reader import DisklessReader, DisklessReaderLimits, OffsetLookups, RecycledMemory
from strandline.diskless.storage import object_options, object_place, orphan_grace_ms
from strandline.diskless.upkeep import FileCleaner, LeftoverFinder, OrphanFinder, RetentionEnforcer, TopicRetention
from strandline.diskless.writer import WalWriter, WriterLimits
from strandline.health import Health
from strandline.hybrid.diskless.gathered_reads import GatheredReads
from strandline.hybrid.diskless.store_check import check_shared
from strandline.hybrid.diskless.tier import DisklessTier
from strandline.hybrid.store_identity import StoreIdentity
from strandline.metadata import MetadataLoader
from strandline.metadata.image import TopicImage
from strandline.objects import claim_prefix, harden
from strandline.objects.address import parse_address
from strandline.objects.checking import advised
from strandline.objects.guarding import GuardedStore
from strandline.objects.opening import open_bare
from strandline.sql import SqlStore
from strandline.tasks import in_background

FLUSH_SECONDS: Final = 5.0


@asynccontextmanager
async def open_tier(
    sql: SqlStore,
    plane: SqlControlPlane,
    loader: MetadataLoader,
    settings: Settings,
    *,
    topics: Callable[[], Iterable[TopicImage]],
    topic_config: Callable[[str], TopicConfig],
    health: Health,
    identity: StoreIdentity,
    clock: Clock,
    ids: Ids,
    chance: Chance,
) -> AsyncIterator[DisklessTier]:
    """The tier, until the block ends.

    Raises ObjectStoreErrors, also if the store belongs to another cluster, would be this broker's alone, or is
    not the one that holds the objects which the control plane refers to.
    """
    diskless, node_id, cluster_id = settings.diskless, settings.cluster.node_id, loader.image.cluster_id
    check_shared(settings, loader.image.brokers)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        address, options = parse_address(diskless.objects_address), object_options(diskless)
        with advised(object_place(diskless)):
            bare = GuardedStore(await enter(open_bare(address, options, clock=clock, ids=ids)), identity.why_wrong)
            objects = harden(bare, options, clock=clock, chance=chance, health=health)
            unguarded = harden(bare.store, options, clock=clock, chance=chance, health=health)
            await identity.compare(unguarded)  # before a claim: nothing is left in a store that is not ours
            await claim_prefix(unguarded, cluster_id)
            await identity.settle(unguarded)
        reader = await enter(
            DisklessReader(
                plane.reads,
                sql,
                objects,
                clock=clock,
                limits=_reader_limits(diskless),
                is_known=lambda partition: partition.topic_id in loader.image.topics_by_id,
            ).running()
        )
        max_pending = settings.network.strandline_queued_max_diskless_bytes
        writer = WalWriter(
            objects,
            plane.commits,
            reader,
            WriterLimits.from_settings(diskless, max_pending_bytes=max_pending),
            broker_id=node_id,
            cluster_id=cluster_id,
            clock=clock,
            ids=ids,
            chance=chance,
        )
        stack.push_async_callback(lambda: writer.close(within=FLUSH_SECONDS))

        def is_controller() -> bool:
            return loader.image.controller_id == node_id

        tier = DisklessTier(
            producers=plane.producers,
            trimming=plane.trimming,
            objects=objects,
            writer=writer,
            reader=reader,
            memory=RecycledMemory(),
            lookups=OffsetLookups(GatheredReads(plane.reads), reader),
            retention=RetentionEnforcer(
                lambda: _retention_of(topics(), topic_config),
                _NotifyingTrimming(plane.trimming, reader),
                plane.producers,
                clock=clock,
                chance=chance,
                interval_ms=diskless.inkless_retention_enforcement_interval_ms,
                max_rows=diskless.inkless_retention_enforcement_max_batches_per_request,
                producer_expiration_ms=settings.transactions.producer_id_expiration_ms,
                is_on_duty=is_controller,
            ),
            cleaner=FileCleaner(
                plane.files,
                objects,
                clock=clock,
                chance=chance,
                interval_ms=diskless.inkless_file_cleaner_interval_ms,
                grace_ms=diskless.inkless_file_cleaner_retention_period_ms,
                max_files_per_round=diskless.inkless_file_cleaner_max_files_per_cycle,
                is_on_duty=is_controller,
            ),
            orphans=OrphanFinder(
                plane.files,
                objects,
                clock=clock,
                chance=chance,
                broker_id=node_id,
                interval_ms=diskless.strandline_objects_orphan_scan_interval_ms,
                grace_ms=orphan_grace_ms(diskless),
                is_on_duty=is_controller,
            ),
            leftovers=LeftoverFinder(
                plane.runs, objects, clock=clock, chance=chance, broker_id=node_id, is_on_duty=is_controller
            ),
        )
        finds_orphans = diskless.strandline_objects_orphan_scan_interval_ms > 0
        await enter(in_background(_upkeep(tier, finds_orphans=finds_orphans)))
        yield tier


def _upkeep(tier: DisklessTier, *, finds_orphans: bool) -> dict[str, Coroutine[None, None, None]]:
    work = {
        "diskless-retention": tier.retention.run(),
        "wal-file-cleaner": tier.cleaner.run(),
        "split-leftover-finder": tier.leftovers.run(),
    }
    return work | {"wal-orphan-finder": tier.orphans.run()} if finds_orphans else work


class _NotifyingTrimming:
    """`LogTrimming` that also notifies the reader of this broker of deleted records."""

    def __init__(self, trimming: LogTrimming, reader: DisklessReader) -> None:
        self._trimming, self._reader = trimming, reader

    async def enforce_retention(self, rules: Sequence[RetentionRule], *, max_rows: int) -> Sequence[Trimmed]:
        answers = await self._trimming.enforce_retention(rules, max_rows=max_rows)
        for rule, trimmed in zip(rules, answers, strict=True):
            if trimmed.rows_deleted:
                self._reader.log_start_moved(rule.partition, trimmed.log_start_offset)
        return answers


def _reader_limits(settings: DisklessSettings) -> DisklessReaderLimits:
    return DisklessReaderLimits(
        cache_max_bytes=settings.inkless_consume_cache_max_bytes,
        parallel_reads=settings.inkless_fetch_data_thread_pool_size,
        parallel_lagging_reads=settings.inkless_fetch_lagging_consumer_thread_pool_size,
        lagging_threshold_ms=settings.inkless_fetch_lagging_consumer_threshold_ms,
        max_rows=settings.inkless_fetch_find_batches_max_per_partition,
    )


def _retention_of(topics: Iterable[TopicImage], topic_config: Callable[[str], TopicConfig]) -> Iterator[TopicRetention]:
    for topic in topics:
        config = topic_config(topic.name)
        yield TopicRetention(
            topic.topic_id,
            topic.name,
            range(len(topic.partitions)),
            config.cleanup_policy,
            config.retention_ms,
            config.retention_bytes,
        )
