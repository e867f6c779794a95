"""The diskless topics of the cluster, kept in step with the metadata and the control plane.

The engine is opened when the first diskless topic appears, or when the control plane still has logs or files of
deleted ones; a broker without any pays nothing.

By level, not by edge: the metadata is compared with the logs in the control plane until they match. Every broker
creates the logs of every diskless topic in the control plane before it serves the topic; creating one twice changes
nothing. The controller alone removes them, after it has read the metadata log to its end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from itertools import islice
from typing import Final

from strandline.clock import Clock
from strandline.config.topic import TopicConfig
from strandline.controlplane.ports import ControlPlane
from strandline.controlplane.values import DisklessLog
from strandline.errors import (
    InvalidConfig,
    KafkaStorageError,
    NotLeaderOrFollower,
    StrandlineError,
    UnknownTopicOrPartition,
)
from strandline.health import Health
from strandline.hybrid.diskless.leftovers import Leftovers
from strandline.hybrid.diskless.limits import TopicLimits
from strandline.hybrid.diskless.partition import DisklessPartition
from strandline.hybrid.diskless.refusals import storage_errors
from strandline.hybrid.diskless.stand_ins import with_stand_ins
from strandline.hybrid.diskless.tier import DisklessTier
from strandline.hybrid.diskless.waiting import SERVED_WITHIN_S, ServedWaiters
from strandline.hybrid.kinds import PartitionKinds
from strandline.hybrid.partitions import Partitions
from strandline.metadata import MetadataDelta, MetadataImage, MetadataLoader
from strandline.metadata.image import PartitionImage, TopicImage
from strandline.model import BrokerId, TopicIdPartition, TopicPartition
from strandline.objects.store import ObjectStoreError
from strandline.sql import SqlError

logger = logging.getLogger(__name__)

_DISKLESS: Final = "diskless.enable"
_LOGS_PER_CALL: Final = 1000
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 30.0
# A broker that is behind may create the logs of a topic after they were removed: the controller looks again.
_LOOK_AGAIN_S: Final = 600.0

OpenTier = Callable[[], AbstractAsyncContextManager[DisklessTier]]


class DisklessTopics:
    """Holds a `DisklessPartition` for each partition of a diskless topic."""

    def __init__(
        self,
        node_id: BrokerId,
        loader: MetadataLoader,
        plane: ControlPlane,
        open_tier: OpenTier,
        *,
        kinds: PartitionKinds,
        partitions: Partitions,
        topic_config: Callable[[str], TopicConfig],
        store_health: Health,
        clock: Clock,
        is_enabled: bool = True,
    ) -> None:
        self._node_id = node_id
        self._loader = loader
        self._plane = plane
        self._open_tier = open_tier
        self._kinds = kinds
        self._served = partitions
        self._topic_config = topic_config
        self._store_health = store_health
        self._clock = clock
        self._partitions: dict[tuple[str, int], DisklessPartition] = {}
        # Partitions that may have no log in the control plane yet.
        self._unmade: dict[TopicIdPartition, None] = {}  # in the order of the metadata
        self._leftovers = Leftovers(plane, loader)
        self._must_look_for_leftovers = False
        self._wake = asyncio.Event()
        self._is_stopping = False
        self._tier: DisklessTier | None = None
        self._is_enabled = is_enabled
        self._trouble = "the object store is not open"
        if not is_enabled:
            self._trouble = "diskless.storage.system.enable is false on this broker"
        self._first_attempt = asyncio.Event()
        self._waiters = ServedWaiters(self._is_unserved)
        self._is_required = False

    # Finding

    @property
    def by_key(self) -> dict[tuple[str, int], DisklessPartition]:
        """Every partition that is served, by topic and number; always as it is now."""
        return self._partitions

    @property
    def tier(self) -> DisklessTier | None:
        """The engine; None until there is a diskless topic."""
        return self._tier

    @property
    def unserved(self) -> int:
        """How many partitions wait for their log in the control plane."""
        return len(self._unmade)

    @property
    def is_writing(self) -> bool:
        """True while producers wait for batches to be committed."""
        return self._tier is not None and self._tier.writer.status().pending_bytes > 0

    def why_missing(self, topic: str, partition: int) -> StrandlineError | None:
        """The error for a diskless partition that is not served yet; None if the partition is not diskless."""
        known = self._loader.image.topics.get(topic)
        if known is None or not 0 <= partition < len(known.partitions):
            return None
        if self._kinds.classic_partitions(known)(partition):
            return None
        if self._tier is None:
            return KafkaStorageError(f"{topic}-{partition} is not served yet: {self._trouble}")
        return NotLeaderOrFollower(f"Broker {self._node_id} does not serve the new partition {topic}-{partition} yet.")

    def why_not_creatable(self, topic: str, configs: Mapping[str, str | None]) -> StrandlineError | None:
        """The error for a new topic that asks for an object store which is away and never worked since the start.

        Most likely its settings are wrong. One that has worked is expected to come back: topics can be created.
        """
        if configs.get(_DISKLESS) != "true" or self._store_health.has_worked:
            return None
        status = self._store_health.status()
        if not status.is_away:
            return None
        reason = status.problem
        return InvalidConfig(
            f"{_DISKLESS}=true cannot be used for {topic}: {status.what} has not been of use since the start of broker "
            f"{self._node_id}. {reason}"
        )

    def as_served(self, topic: TopicImage, reachable: Collection[int]) -> TopicImage:
        """The topic as clients see it that can reach these brokers: a diskless partition always has a leader."""
        return with_stand_ins(topic, reachable) if self._kinds.is_diskless_topic(topic) else topic

    def topics(self) -> Iterator[TopicImage]:
        """Every diskless topic of the cluster."""
        return (topic for topic in self._loader.image.topics.values() if self._kinds.is_diskless_topic(topic))

    def diskless_partitions(self, topic: TopicImage) -> frozenset[int]:
        """The partitions of a topic that are diskless on this broker; none if the topic is classic."""
        if not self._kinds.is_diskless_topic(topic):
            return frozenset()
        is_classic = self._kinds.classic_partitions(topic)
        return frozenset(image.partition for image in topic.partitions if not is_classic(image.partition))

    async def logs(self, wanted: Collection[TopicPartition]) -> dict[TopicPartition, DisklessLog]:
        """The logs of these partitions in the control plane, of those that are served. Raises KafkaStorageError."""
        keys = {self._partitions[key].id: key for key in wanted if key in self._partitions}
        with storage_errors("the sizes of diskless partitions"):
            logs = await self._plane.logs(keys)
        return {keys[partition]: log for partition, log in logs.items()}

    async def sizes(self, wanted: Collection[tuple[str, int]] | None) -> dict[TopicPartition, int]:
        """The sizes of the wanted partitions (None: all) that the metadata assigns to this broker.

        Raises RequestTimedOut or KafkaStorageError.
        """
        image = self._loader.image
        keys = {
            partition.id: partition.topic_partition
            for key, partition in self._partitions.items()
            if (wanted is None or key in wanted)
            and (known := image.partition(*key)) is not None
            and self._node_id in known.replicas
        }
        if not keys:
            return {}
        with storage_errors("the sizes of diskless partitions"):
            logs = await self._plane.logs(keys)
        return {keys[partition]: log.byte_size for partition, log in logs.items()}

    async def wait_served(self, topics: Collection[str], *, within: float = SERVED_WITHIN_S) -> None:
        """Return when this broker serves all diskless partitions of these topics, or after `within` seconds."""
        await self._waiters.wait(topics, within=within)

    def _is_unserved(self, name: str) -> bool:
        topic = self._loader.image.topics.get(name)
        if topic is None or not self._kinds.is_diskless_topic(topic):
            return False
        return any((name, image.partition) not in self._served.by_key for image in topic.partitions)

    # Following the metadata

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Take note of a change. Called on the event loop, in order; the work is done by `running`."""
        for topic in delta.deleted_topics.values():
            self._remove(topic)
        for topic in delta.topics_to_look_at():
            if self._kinds.is_diskless_topic(topic):
                self._follow(topic)
        if delta.changed_configs:
            self._refresh_limits()
        is_controller = image.controller_id == self._node_id
        if is_controller and (delta.deleted_topics or delta.old.controller_id != self._node_id):
            self._must_look_for_leftovers = True
        if self._is_enabled and (self._unmade or self._must_look_for_leftovers):
            self._wake.set()

    def _follow(self, topic: TopicImage) -> None:
        is_classic = self._kinds.classic_partitions(topic)
        for image in topic.partitions:
            partition = self._partitions.get((topic.name, image.partition))
            if partition is None and is_classic(image.partition):
                continue
            if partition is None:
                self._unmade[_key(topic, image)] = None
            else:
                partition.follow(image)

    def _remove(self, topic: TopicImage) -> None:
        self._kinds.forget(topic.topic_id)
        for image in topic.partitions:
            self._unmade.pop(_key(topic, image), None)
            partition = self._partitions.get((topic.name, image.partition))
            if partition is not None and partition.id.topic_id == topic.topic_id:
                del self._partitions[topic.name, image.partition]
                self._served.remove(partition)
                partition.close(UnknownTopicOrPartition(f"The topic {topic.name} was deleted."))

    def _refresh_limits(self) -> None:
        for (name, _), partition in self._partitions.items():
            partition.limits = TopicLimits.of(self._topic_config(name))

    # The work

    @asynccontextmanager
    async def running(self, *, on_failure: Callable[[str], None]) -> AsyncIterator[DisklessTopics]:
        """Follow the metadata while the block lasts. `on_failure` is called if that fails for good."""
        task = asyncio.create_task(self._run(on_failure), name="diskless-topics")
        try:
            yield self
        finally:
            self._is_stopping = True
            self._wake.set()
            if self._tier is None:
                task.cancel()  # it may be opening a store that does not answer
            await asyncio.gather(task, return_exceptions=True)

    async def wait_opened(self, *, within: float) -> None:
        """Return when the engine is open or not needed, when opening it has failed once, or after `within` seconds.

        The broker serves its other topics meanwhile, and goes on trying.
        """
        if self._is_enabled:
            self._wake.set()
            await self._clock.wait_set(self._first_attempt, within=within)

    async def _run(self, on_failure: Callable[[str], None]) -> None:
        try:
            async with AsyncExitStack() as stack:
                await self._follow_metadata(stack)
        except Exception as error:
            logger.exception("diskless topics have failed")
            on_failure(f"diskless topics have failed: {error}")

    async def _follow_metadata(self, stack: AsyncExitStack) -> None:
        pause = _FIRST_PAUSE_S
        while True:
            is_woken = await self._clock.wait_set(self._wake, within=_LOOK_AGAIN_S)
            self._wake.clear()
            if self._is_stopping:
                return
            if not is_woken:
                self._must_look_for_leftovers = self._is_enabled and self._loader.image.controller_id == self._node_id
                if not self._must_look_for_leftovers:
                    continue
            try:
                await self._catch_up(stack)
            except (SqlError, ObjectStoreError, OSError) as error:
                self._trouble = str(error)
                logger.warning("diskless topics cannot follow the metadata, trying again in %g s: %s", pause, error)
                self._wake.set()
                self._first_attempt.set()
                await self._rest(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)
            else:
                self._first_attempt.set()
                pause = _FIRST_PAUSE_S

    async def _rest(self, seconds: float) -> None:
        """Wait, unless the broker stops."""
        deadline = self._clock.monotonic() + seconds
        while not self._is_stopping and (left := deadline - self._clock.monotonic()) > 0:
            await self._clock.sleep(min(left, 0.25))

    async def _catch_up(self, stack: AsyncExitStack) -> None:
        """Make the control plane match the metadata. Raises SqlError or ObjectStoreError; safe to repeat."""
        if self._tier is None:
            if not self._unmade and not await self._leftovers.are_there():
                self._must_look_for_leftovers = False
                return
            self._tier = await stack.enter_async_context(self._open_tier())
            stack.callback(self._close_partitions)
        while self._unmade:
            await self._create_some(self._tier)
        if self._must_look_for_leftovers:
            self._must_look_for_leftovers = False
            try:
                await self._leftovers.remove()
            except BaseException:
                self._must_look_for_leftovers = True
                raise

    async def _create_some(self, tier: DisklessTier) -> None:
        """Create a bounded number of logs with one call, and serve their partitions."""
        some = list(islice(self._unmade, _LOGS_PER_CALL))
        await self._plane.create_logs(some)
        self._kinds.learn(partition.topic_id for partition in some)
        for partition in some:
            if partition in self._unmade:  # else its topic was deleted meanwhile
                del self._unmade[partition]
                self._serve(partition.topic_partition, tier)
        self._waiters.tell()

    def _serve(self, key: TopicPartition, tier: DisklessTier) -> None:
        topic = self._loader.image.topics[key.topic]
        limits = TopicLimits.of(self._topic_config(key.topic))
        partition = DisklessPartition(key, topic.topic_id, tier, limits=limits, clock=self._clock)
        partition.follow(topic.partitions[key.partition])
        self._partitions[key] = partition
        self._served.add(partition)

    def _close_partitions(self) -> None:
        for partition in self._partitions.values():
            partition.close(NotLeaderOrFollower(f"Broker {self._node_id} is shutting down."))


def _key(topic: TopicImage, image: PartitionImage) -> TopicIdPartition:
    return TopicIdPartition(topic.topic_id, TopicPartition(topic.name, image.partition))
