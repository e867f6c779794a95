"""The tiers of one broker beside its local logs, and when they are opened.

The diskless tier is opened when the first diskless topic appears, tiered storage at the start of a broker that has it
switched on. What they are made of (`opening`, `tiered_opening`) is loaded then, and in a thread: brokers without such
topics do without it, and clients do not wait for it.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from strandline.clock import Chance, Clock, Ids
from strandline.config import Settings
from strandline.config.topic import TopicConfig
from strandline.controlplane.plane import SqlControlPlane
from strandline.errors import StrandlineError
from strandline.hybrid.diskless_topics import DisklessTopics
from strandline.hybrid.tier import DisklessTier
from strandline.hybrid.tiering import TieredTopics
from strandline.metadata import ActiveController, MetadataLoader
from strandline.objects.store import ObjectStoreError
from strandline.remote.ports import RemoteStorageError
from strandline.replication import ReplicaManager
from strandline.sql import SqlError, SqlStore

logger = logging.getLogger(__name__)


class TierFailed(StrandlineError):
    """The broker has topics that it cannot serve without a tier, and the tier is not to be had."""


class Tiers:
    """Holds both tiers: `diskless` and `tiered`."""

    def __init__(
        self,
        sql: SqlStore,
        loader: MetadataLoader,
        *,
        settings: Callable[[], Settings],
        topic_config: Callable[[str], TopicConfig],
        clock: Clock,
        ids: Ids,
        chance: Chance,
    ) -> None:
        self._sql, self._loader = sql, loader
        self._settings, self._topic_config = settings, topic_config
        self._clock, self._ids, self._chance = clock, ids, chance
        self._plane = SqlControlPlane(sql, clock=clock)
        self._node_id = settings().cluster.node_id
        self._has_remote = settings().tiers.remote_log_storage_system_enable
        self.diskless = DisklessTopics(
            self._node_id,
            loader,
            self._plane,
            self._open_diskless,
            topic_config=topic_config,
            clock=clock,
            is_enabled=settings().diskless.diskless_storage_system_enable,
        )
        self.tiered = TieredTopics()

    def check(self) -> None:
        """Raise TierFailed if a log would be opened without its remote part: it would forget that it has one."""
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
    async def running(
        self, replicas: ReplicaManager, controller: ActiveController, *, on_failure: Callable[[str], None]
    ) -> AsyncIterator[None]:
        """Serve diskless and tiered topics while the block lasts. Raises TierFailed, and InvalidConfig."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.diskless.running(on_failure=on_failure))
            try:
                await self.diskless.wait_opened()
            except (ObjectStoreError, SqlError, OSError) as error:
                raise TierFailed(f"diskless topics cannot be served: {error}") from error
            if self._has_remote:
                await self._open_tiered(stack, replicas, controller)
            yield

    def follow_settings(self) -> None:
        """Settings may have changed."""
        if self.tiered.tier is not None:
            self.tiered.tier.follow(self._settings().tiers)

    @asynccontextmanager
    async def _open_diskless(self) -> AsyncIterator[DisklessTier]:
        opening = await asyncio.to_thread(importlib.import_module, "strandline.hybrid.opening")
        async with opening.open_tier(
            self._sql,
            self._plane,
            self._loader,
            self._settings(),
            topics=self.diskless.topics,
            topic_config=self._topic_config,
            clock=self._clock,
            ids=self._ids,
            chance=self._chance,
        ) as tier:
            logger.info("diskless topics are kept in %s", tier.objects.url)
            yield tier

    async def _open_tiered(self, stack: AsyncExitStack, replicas: ReplicaManager, controller: ActiveController) -> None:
        opening = await asyncio.to_thread(importlib.import_module, "strandline.hybrid.tiered_opening")
        tier = opening.open_remote_tier(
            self._settings(),
            self._loader,
            controller,
            replicas,
            clock=self._clock,
            ids=self._ids,
            chance=self._chance,
        )
        try:
            opened = await stack.enter_async_context(self.tiered.serving(tier))
        except (RemoteStorageError, OSError) as error:
            raise TierFailed(f"tiered topics cannot be served: {error}") from error
        logger.info("finished segments of tiered topics are kept in %s", opened.storage.url)
