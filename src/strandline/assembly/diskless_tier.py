"""The diskless tier as it is opened: the object store, the reader, the writer and the background work, in this order.

Loaded when the first diskless topic appears; brokers without one do not pay for it. Closed in the reverse order: the
writer commits the batches it has accepted before the object store is closed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, NamedTuple

from strandline.assembly.base import Base
from strandline.config import DisklessSettings, Settings, TopicConfig
from strandline.controlplane import SqlControlPlane
from strandline.diskless.reader import DisklessReader, DisklessReaderLimits, OffsetLookups, RecycledMemory
from strandline.diskless.storage import object_options, object_place, orphan_grace_ms
from strandline.diskless.upkeep import FileCleaner, LeftoverFinder, OrphanFinder, RetentionEnforcer, TopicRetention
from strandline.diskless.writer import WalWriter, WriterLimits
from strandline.health import Health
from strandline.hybrid.diskless.gathered_reads import GatheredReads
from strandline.hybrid.diskless.retention import NotifyingTrimming, retention_of
from strandline.hybrid.diskless.store_check import check_shared
from strandline.hybrid.diskless.tier import DisklessTier
from strandline.hybrid.store_identity import StoreIdentity
from strandline.metadata import MetadataLoader, TopicImage
from strandline.objects import RetryingStore, claim_prefix, harden
from strandline.objects.address import parse_address
from strandline.objects.checking import advised
from strandline.objects.guarding import GuardedStore
from strandline.objects.opening import open_bare
from strandline.sql import SqlStore
from strandline.tasks import in_background

FLUSH_SECONDS: Final = 5.0


@asynccontextmanager
async def open_diskless_tier(
    base: Base,
    sql: SqlStore,
    plane: SqlControlPlane,
    loader: MetadataLoader,
    settings: Settings,
    *,
    topics: Callable[[], Iterable[TopicImage]],
    topic_config: Callable[[str], TopicConfig],
    health: Health,
    identity: StoreIdentity,
) -> AsyncIterator[DisklessTier]:
    """The tier, until the block ends.

    Raises ObjectStoreErrors, also if the store belongs to another cluster, would be this broker's alone, or is
    not the one that holds the objects which the control plane refers to.
    """
    check_shared(settings, loader.image.brokers)
    cluster_id = loader.image.cluster_id
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        objects = await enter(_open_objects(base, settings.diskless, cluster_id, health=health, identity=identity))
        reader = await enter(_build_reader(base, sql, plane, loader, settings.diskless, objects).running())
        writer = _build_writer(base, plane, settings, objects, reader, cluster_id)
        stack.push_async_callback(lambda: writer.close(within=FLUSH_SECONDS))
        upkeep = _Upkeep(
            base=base,
            plane=plane,
            settings=settings,
            objects=objects,
            is_on_duty=lambda: loader.image.controller_id == base.node_id,
        )
        tier = _build_tier(plane, objects, writer, reader, upkeep, lambda: retention_of(topics(), topic_config))
        finds_orphans = settings.diskless.strandline_objects_orphan_scan_interval_ms > 0
        await enter(in_background(_endless(tier, finds_orphans=finds_orphans)))
        yield tier


@asynccontextmanager
async def _open_objects(
    base: Base, diskless: DisklessSettings, cluster_id: str, *, health: Health, identity: StoreIdentity
) -> AsyncIterator[RetryingStore]:
    """The store, once it is known to be that of this cluster."""
    address, options = parse_address(diskless.objects_address), object_options(diskless)
    clock, chance = base.clock, base.chance
    async with AsyncExitStack() as stack:
        with advised(object_place(diskless)):
            opened = await stack.enter_async_context(open_bare(address, options, clock=clock, ids=base.ids))
            bare = GuardedStore(opened, identity.why_wrong)
            objects = harden(bare, options, clock=clock, chance=chance, health=health)
            unguarded = harden(bare.store, options, clock=clock, chance=chance, health=health)
            await identity.compare(unguarded)  # before a claim: nothing is left in a store that is not ours
            await claim_prefix(unguarded, cluster_id)
            await identity.settle(unguarded)
        yield objects


def _build_reader(
    base: Base,
    sql: SqlStore,
    plane: SqlControlPlane,
    loader: MetadataLoader,
    diskless: DisklessSettings,
    objects: RetryingStore,
) -> DisklessReader:
    limits = DisklessReaderLimits(
        cache_max_bytes=diskless.inkless_consume_cache_max_bytes,
        parallel_reads=diskless.inkless_fetch_data_thread_pool_size,
        parallel_lagging_reads=diskless.inkless_fetch_lagging_consumer_thread_pool_size,
        lagging_threshold_ms=diskless.inkless_fetch_lagging_consumer_threshold_ms,
        max_rows=diskless.inkless_fetch_find_batches_max_per_partition,
    )
    return DisklessReader(
        plane.reads,
        sql,
        objects,
        clock=base.clock,
        limits=limits,
        is_known=lambda partition: partition.topic_id in loader.image.topics_by_id,
    )


def _build_writer(
    base: Base,
    plane: SqlControlPlane,
    settings: Settings,
    objects: RetryingStore,
    reader: DisklessReader,
    cluster_id: str,
) -> WalWriter:
    max_pending = settings.network.strandline_queued_max_diskless_bytes
    return WalWriter(
        objects,
        plane.commits,
        reader,
        WriterLimits.from_settings(settings.diskless, max_pending_bytes=max_pending),
        broker_id=base.node_id,
        cluster_id=cluster_id,
        clock=base.clock,
        ids=base.ids,
        chance=base.chance,
    )


class _Upkeep(NamedTuple):
    """Builds what works in the background, mostly on the broker that is the active controller."""

    base: Base
    plane: SqlControlPlane
    settings: Settings
    objects: RetryingStore
    is_on_duty: Callable[[], bool]

    def retention(
        self, trimming: NotifyingTrimming, retained: Callable[[], Iterable[TopicRetention]]
    ) -> RetentionEnforcer:
        diskless = self.settings.diskless
        return RetentionEnforcer(
            retained,
            trimming,
            self.plane.producers,
            clock=self.base.clock,
            chance=self.base.chance,
            interval_ms=diskless.inkless_retention_enforcement_interval_ms,
            max_rows=diskless.inkless_retention_enforcement_max_batches_per_request,
            producer_expiration_ms=self.settings.transactions.producer_id_expiration_ms,
            is_on_duty=self.is_on_duty,
        )

    def cleaner(self) -> FileCleaner:
        diskless = self.settings.diskless
        return FileCleaner(
            self.plane.files,
            self.objects,
            clock=self.base.clock,
            chance=self.base.chance,
            interval_ms=diskless.inkless_file_cleaner_interval_ms,
            grace_ms=diskless.inkless_file_cleaner_retention_period_ms,
            max_files_per_round=diskless.inkless_file_cleaner_max_files_per_cycle,
            is_on_duty=self.is_on_duty,
        )

    def orphans(self) -> OrphanFinder:
        diskless = self.settings.diskless
        return OrphanFinder(
            self.plane.files,
            self.objects,
            clock=self.base.clock,
            chance=self.base.chance,
            broker_id=self.base.node_id,
            interval_ms=diskless.strandline_objects_orphan_scan_interval_ms,
            grace_ms=orphan_grace_ms(diskless),
            is_on_duty=self.is_on_duty,
        )

    def leftovers(self) -> LeftoverFinder:
        return LeftoverFinder(
            self.plane.runs,
            self.objects,
            clock=self.base.clock,
            chance=self.base.chance,
            broker_id=self.base.node_id,
            is_on_duty=self.is_on_duty,
        )


def _build_tier(
    plane: SqlControlPlane,
    objects: RetryingStore,
    writer: WalWriter,
    reader: DisklessReader,
    upkeep: _Upkeep,
    retained: Callable[[], Iterable[TopicRetention]],
) -> DisklessTier:
    return DisklessTier(
        producers=plane.producers,
        trimming=plane.trimming,
        objects=objects,
        writer=writer,
        reader=reader,
        memory=RecycledMemory(),
        lookups=OffsetLookups(GatheredReads(plane.reads), reader),
        retention=upkeep.retention(NotifyingTrimming(plane.trimming, reader), retained),
        cleaner=upkeep.cleaner(),
        orphans=upkeep.orphans(),
        leftovers=upkeep.leftovers(),
    )


def _endless(tier: DisklessTier, *, finds_orphans: bool) -> dict[str, Coroutine[Any, Any, None]]:
    work = {
        "diskless-retention": tier.retention.run(),
        "wal-file-cleaner": tier.cleaner.run(),
        "split-leftover-finder": tier.leftovers.run(),
    }
    return work | {"wal-orphan-finder": tier.orphans.run()} if finds_orphans else work
