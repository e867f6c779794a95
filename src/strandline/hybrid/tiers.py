"""The tiers of one broker, and when they are opened.

The diskless tier is opened when the first diskless topic appears, tiered storage at the start of a broker that has it
switched on. Their code (`diskless.opening`, `remote.opening`) is loaded then, and in a thread: brokers without such
topics do without it, and clients do not wait for it.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from strandline.clock import Chance, Clock, Ids
from strandline.config import Settings
from strandline.config.topic import TopicConfig
from strandline.controlplane.database import MIGRATION_CHANNEL
from strandline.controlplane.plane import SqlControlPlane
from strandline.errors import StrandlineError
from strandline.health import HealthStatus
from strandline.hybrid.conversion.figures import TieringFigures
from strandline.hybrid.conversion.keeper import ConvertedKeeper, KeeperPorts
from strandline.hybrid.conversion.led import LedPartitions
from strandline.hybrid.conversion.led_tiers import LedTiers
from strandline.hybrid.conversion.needed_metadata import ConvertedMetadata
from strandline.hybrid.conversion.read_plans import ReadPlans
from strandline.hybrid.conversion.service import TieringService
from strandline.hybrid.conversion.uploads import LeaderUploads
from strandline.hybrid.diskless.leftovers import Leftovers
from strandline.hybrid.diskless.prefix_watch import PrefixWatch
from strandline.hybrid.diskless.store_check import objects_identity, watch_objects
from strandline.hybrid.diskless.tier import DisklessTier
from strandline.hybrid.diskless.topics import DisklessTopics
from strandline.hybrid.kinds import PartitionKinds
from strandline.hybrid.log_dirs import LogDirs
from strandline.hybrid.partitions import Partitions
from strandline.hybrid.remote.topics import TieredTopics
from strandline.hybrid.suffix_sizes import SuffixSizes
from strandline.hybrid.switching.checks import TopicSwitchChecks
from strandline.hybrid.switching.prefixes import PrefixKeeper
from strandline.hybrid.switching.reports import SwitchReports
from strandline.hybrid.switching.states import TopicMigrationStates
from strandline.hybrid.switching.switches import TopicSwitches
from strandline.log import LogManager
from strandline.metadata import ActiveController, MetadataDelta, MetadataImage, MetadataLoader
from strandline.objects.store import ObjectStoreError, WrongStore
from strandline.remote.ports import RemoteStorageError
from strandline.replication import Partition, ReplicaManager
from strandline.sql import SqlError, SqlStore
from strandline.tasks import TaskSet, in_background

logger = logging.getLogger(__name__)

# A store that answers does so by then, and diskless topics are there when clients come. No store is waited for longer.
_OPENED_WITHIN_S: Final = 2.0
_OPENING: Final = "opening"
_LOAD_PAUSES_S: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class TierFailed(StrandlineError):
    """The broker has topics in a tier that cannot be opened."""


class Tiers:
    """Joins the tiers: `partitions` serves what `replicas`, `diskless` and `tiered` hold."""

    def __init__(
        self,
        sql: SqlStore,
        loader: MetadataLoader,
        logs: LogManager,
        *,
        loop: asyncio.AbstractEventLoop,
        settings: Callable[[], Settings],
        topic_config: Callable[[str], TopicConfig],
        clock: Clock,
        ids: Ids,
        chance: Chance,
    ) -> None:
        self._sql, self._loader, self._logs = sql, loader, logs
        self._settings, self._topic_config = settings, topic_config
        self._clock, self._ids, self._chance = clock, ids, chance
        # Apart: brokers keep their sessions and the controller its lease while commits and reads wait for the database.
        self._plane = plane = SqlControlPlane(sql.apart(), clock=clock)
        self._node_id = settings().cluster.node_id
        self._has_remote = settings().tiers.remote_log_storage_system_enable
        self._kinds = PartitionKinds(topic_config=topic_config, has_local_log=logs.holds)
        self.replicas = ReplicaManager(
            self._node_id, logs, loop=loop, topic_config=topic_config, local_partitions=self._kinds.classic_partitions
        )
        self.tiered = TieredTopics()
        self.suffix_sizes = SuffixSizes()
        self.partitions = Partitions(self.tiered, topic_name=self.replicas.topic_name, why_missing=self._why_missing)
        self.replicas.add_replica_listener(self.partitions)
        self._objects_identity = objects_identity(settings(), loader, plane.stores, ids)
        self._objects_watch = watch_objects(
            settings(),
            lambda: loader.image.cluster_id,
            self._objects_identity,
            has_topics=lambda: bool(self.diskless.by_key or self.diskless.unserved),
            clock=clock,
            ids=ids,
        )
        self.diskless = DisklessTopics(
            self._node_id,
            loader,
            self._open_diskless,
            logs=plane.reads,
            creation=plane.lifecycle,
            leftovers=Leftovers(plane.lifecycle, plane.files, loader),
            kinds=self._kinds,
            partitions=self.partitions,
            topic_config=topic_config,
            store_health=self._objects_watch.health,
            on_log_wanted=self.replicas.follow,
            clock=clock,
            is_enabled=settings().diskless.diskless_storage_system_enable,
        )
        self.log_dirs = LogDirs(logs, self.replicas, self.diskless, self.tiered)
        self._switches = TopicSwitches(
            self.partitions,
            self.diskless,
            boundaries=plane.migrations,
            logs=plane.reads,
            kinds=self._kinds,
            settings=lambda: settings().diskless,
            clock=clock,
        )
        self.replicas.add_replica_listener(self._switches)
        self._prefixes = PrefixKeeper(
            lambda: self._switches.switches,
            self.diskless,
            self.tiered,
            self.suffix_sizes,
            logs=plane.reads,
            reports=plane.migrations,
            copying_ms=lambda: settings().diskless.inkless_migration_segment_wait_ms,
            on_lost=self._switches.boundary_lost,
            clock=clock,
        )
        self._prefix_watch = PrefixWatch(
            self.diskless.registry,
            plane.reads,
            learn=lambda log: self.diskless.engine.learn(log),
            is_prefix_served=lambda: settings().diskless.inkless_hybrid_read_enabled,
            on_lost=self.diskless.boundary_lost,
            clock=clock,
        )
        self.migrations = SwitchReports(
            self._switches,
            loader,
            plane.migrations,
            topic_config=topic_config,
            without_log=self.diskless.registry.without_log.values,
            node_id=self._node_id,
        )
        self.switch_checks = TopicSwitchChecks(
            loader,
            self.replicas,
            self.tiered,
            self.diskless,
            settings=settings,
        )
        self.migration_states = TopicMigrationStates(plane.migrations, topic_config)
        self._converted, self.tiering = self._make_tiering(plane)

    def _make_tiering(self, plane: SqlControlPlane) -> tuple[ConvertedKeeper, TieringService]:
        """What this broker does for the tiering pipeline."""
        figures, led = TieringFigures(), LedPartitions(self._loader, self._node_id)
        metadata = ConvertedMetadata(self.tiered, self._clock)
        uploads = LeaderUploads(
            metadata,
            led,
            uploads=plane.uploads,
            batches=plane.reads,
            topic_config=self._topic_config,
            producer_id_expiration_ms=lambda: self._settings().transactions.producer_id_expiration_ms,
            on_committed=lambda partition: self._converted.wake(),
            figures=figures,
            clock=self._clock,
            ids=self._ids,
        )
        keeper = ConvertedKeeper(
            KeeperPorts(
                logs=plane.reads,
                conversion=plane.uploads,
                given_up=plane.given_up,
                trimming=plane.trimming,
                prefixes=plane.migrations,
                time=plane.files,
            ),
            self.diskless,
            self.tiered,
            led,
            metadata,
            uploads,
            self.suffix_sizes,
            topic_config=self._topic_config,
            figures=figures,
            clock=self._clock,
        )
        service = TieringService(
            self.diskless,
            uploads,
            ReadPlans(plane.reads, self.partitions, self.tiered, led),
            LedTiers(plane.reads, plane.uploads, self.tiered, led, self._clock),
            self._loader,
            claims=plane.claims,
            merging=plane.merging,
            wishes=plane.wishes,
            settings=self._settings,
            topic_config=self._topic_config,
            figures=figures,
            clock=self._clock,
        )
        return keeper, service

    def _why_missing(self, topic: str, partition: int) -> StrandlineError:
        return self.diskless.why_missing(topic, partition) or self.replicas.why_missing(topic, partition)

    async def load(self) -> None:
        """Find out which topics the control plane orders. Before the broker follows the metadata. Raises SqlError."""
        for pause in _LOAD_PAUSES_S:
            try:
                self._kinds.learn(await self._plane.lifecycle.diskless_topic_ids())
                return
            except SqlError as error:
                if not error.retriable:
                    raise
                logger.warning("the control plane cannot be read, trying again in %g s: %s", pause, error)
                await self._clock.sleep(pause)
        self._kinds.learn(await self._plane.lifecycle.diskless_topic_ids())

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Make every partition what the metadata says. Called on the event loop, in order."""
        self.replicas.apply(delta, image)
        self.diskless.apply(delta, image)
        for topic in delta.deleted_topics.values():
            self.partitions.traffic.forget(topic.name, topic.topic_id.bytes)

    def check(self) -> None:
        """Raise TierFailed if a tiered log would be opened without remote storage: it would lose its remote part."""
        if self._has_remote:
            return
        topics = self._loader.image.topics.values()
        here = (topic for topic in topics if any(self._node_id in p.replicas for p in topic.partitions))
        tiered = sorted(topic.name for topic in here if self._topic_config(topic.name).remote_storage_enable)
        if tiered:
            raise TierFailed(
                f"There are tiered topics ({', '.join(tiered[:3])}{', ...' * (len(tiered) > 3)}), so "
                "remote.log.storage.system.enable has to be true on this broker."
            )

    @asynccontextmanager
    async def running(self, controller: ActiveController, *, on_failure: Callable[[str], None]) -> AsyncIterator[None]:
        """Serve diskless and tiered topics while the block lasts. Raises TierFailed, and InvalidConfig.

        Does not wait for an object store: classic topics need none, diskless ones are served as soon as it answers. A
        store that answers and is not that of this cluster is refused.
        """
        async with AsyncExitStack() as stack:
            watching = TaskSet()
            watching.start(self._objects_watch.run(), name="object-store-watch")
            stack.push_async_callback(watching.close)
            await stack.enter_async_context(self.diskless.running(on_failure=on_failure))
            await self.diskless.wait_opened(within=_OPENED_WITHIN_S)
            if (wrong := self._objects_identity.why_wrong()) is not None:
                raise TierFailed(str(wrong))
            if self._has_remote:
                await self._open_tiered(stack, controller)
            stack.callback(self._sql.listen(MIGRATION_CHANNEL, self._boundary_set))
            switching = {
                "topic-switches": self._switches.run(),
                "prefixes": self._prefixes.run(),
                "prefixes-elsewhere": self._prefix_watch.run(),
            }
            await stack.enter_async_context(in_background({**switching, "converted": self._converted.run()}))
            await self._switches.first_look(within=_OPENED_WITHIN_S)
            yield

    def _boundary_set(self) -> None:
        """Another broker may have set a boundary."""
        self.diskless.look_for_boundaries()
        self._switches.wake()

    def health(self) -> tuple[HealthStatus, ...]:
        """The stores that are in use, or that the settings name."""
        objects = [self._objects_watch.health.status()] if self._objects_watch.is_wanted() else []
        return (*objects, *self.tiered.storage.health())

    def follow_settings(self) -> None:
        """Settings may have changed."""
        self.tiered.storage.follow(self._settings().tiers)

    @asynccontextmanager
    async def _open_diskless(self) -> AsyncIterator[DisklessTier]:
        opening = await asyncio.to_thread(importlib.import_module, "strandline.hybrid.diskless.opening")
        async with (
            self._refusals_shown(),
            opening.open_tier(
                self._sql,
                self._plane,
                self._loader,
                self._settings(),
                topics=self.diskless.topics,
                topic_config=self._topic_config,
                health=self._objects_watch.health,
                identity=self._objects_identity,
                clock=self._clock,
                ids=self._ids,
                chance=self._chance,
            ) as tier,
        ):
            logger.info("diskless topics are kept in %s", tier.objects.url)
            self._objects_watch.health.answered(_OPENING)
            self._switches.wake()  # the first topic that becomes diskless has waited for the store
            yield tier

    @asynccontextmanager
    async def _refusals_shown(self) -> AsyncIterator[None]:
        """A store that is there may still be of no use to this broker, for instance if other brokers have another."""
        try:
            yield
        except ObjectStoreError as error:
            self._objects_watch.health.failed(
                str(error), _OPENING, is_certain=True, is_wrong=isinstance(error, WrongStore)
            )
            raise

    async def _tell_log_start(self, replica: Partition) -> None:
        switch = self._switches.find(replica)
        if switch is not None:
            await self._prefixes.tell_log_start(switch)

    async def _open_tiered(self, stack: AsyncExitStack, controller: ActiveController) -> None:
        opening = await asyncio.to_thread(importlib.import_module, "strandline.hybrid.remote.opening")
        tier = opening.open_remote_tier(
            self._settings(),
            self._loader,
            controller,
            self.replicas,
            self._plane.stores,
            self._logs,
            topic_config=self._topic_config,
            clock=self._clock,
            ids=self._ids,
            chance=self._chance,
            suffix_bytes=self.suffix_sizes,
            tell_log_start=self._tell_log_start,
        )
        try:
            opened = await stack.enter_async_context(self.tiered.serving(tier))
        except WrongStore as error:
            raise TierFailed(str(error)) from error
        except (RemoteStorageError, OSError) as error:
            raise TierFailed(f"Tiered topics cannot be served: {error}") from error
        logger.info("closed segments of tiered topics are kept in %s", opened.storage.url)
