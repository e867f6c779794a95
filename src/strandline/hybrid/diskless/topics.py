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
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final

from strandline.clock import Clock
from strandline.config import TopicConfig
from strandline.controlplane import DisklessLog, DisklessLogs, LogCreation
from strandline.errors import NotLeaderOrFollower, StrandlineError
from strandline.health import Health
from strandline.hybrid.diskless.catching_up import CatchingUp
from strandline.hybrid.diskless.engine import DisklessEngine, DisklessNotOpen, is_open_engine
from strandline.hybrid.diskless.leftovers import Leftovers
from strandline.hybrid.diskless.refusals import storage_errors, uncreatable
from strandline.hybrid.diskless.registry import DisklessPartitions
from strandline.hybrid.diskless.stand_ins import with_stand_ins
from strandline.hybrid.diskless.tier import DisklessTier
from strandline.hybrid.diskless.waiting import SERVED_WITHIN_S, ServedWaiters
from strandline.hybrid.kinds import PartitionKinds, key_of
from strandline.hybrid.partitions import Partitions
from strandline.hybrid.parts.diskless import DisklessPart
from strandline.metadata import MetadataDelta, MetadataImage, MetadataLoader, TopicImage
from strandline.model import BrokerId, TopicIdPartition, TopicPartition
from strandline.objects.counting import DELETES

logger = logging.getLogger(__name__)

_DISKLESS: Final = "diskless.enable"
_LOGS_PER_CALL: Final = 1000
# A broker that is behind may create the logs of a topic after they were removed: the controller looks again.
_LOOK_AGAIN_S: Final = 600.0
# How often the control plane is asked for boundaries that are not known here.
_BOUNDARY_S: Final = 1.0

OpenTier = Callable[[], AbstractAsyncContextManager[DisklessTier]]


class DisklessTopics:
    """Holds a `DisklessPart` for each partition of a diskless topic."""

    def __init__(
        self,
        node_id: BrokerId,
        loader: MetadataLoader,
        open_tier: OpenTier,
        *,
        logs: DisklessLogs,
        creation: LogCreation,
        leftovers: Leftovers,
        kinds: PartitionKinds,
        partitions: Partitions,
        topic_config: Callable[[str], TopicConfig],
        store_health: Health,
        clock: Clock,
        is_enabled: bool = True,
        on_log_wanted: Callable[[TopicImage], None] = lambda topic: None,
    ) -> None:
        """`on_log_wanted` is called when a replica here needs a log that it does not have."""
        self._node_id = node_id
        self._loader = loader
        self._logs, self._creation, self._leftovers = logs, creation, leftovers
        self._open_tier = open_tier
        self._kinds = kinds
        self._served = partitions
        self._store_health = store_health
        self._on_log_wanted = on_log_wanted
        self._clock = clock
        self.registry = DisklessPartitions(node_id, topic_config=topic_config, tiered=partitions.tiered, clock=clock)
        self._partitions = self.registry.by_key
        # Partitions that may have no log in the control plane yet.
        self._unmade: dict[TopicIdPartition, None] = {}  # in the order of the metadata
        self._unswitched: set[TopicIdPartition] = set()
        """Those of them that another broker has the log of, and whose boundary is not known here yet."""
        self._must_look_for_leftovers = False
        self.engine: DisklessEngine = DisklessNotOpen(node_id, lambda: self._work.trouble)
        """Opened when the first diskless topic appears."""
        self._is_enabled = is_enabled
        self._work = CatchingUp(
            self._catch_up,
            what="diskless topics cannot follow the metadata",
            look_again_s=lambda: _BOUNDARY_S if self._unmade else _LOOK_AGAIN_S,
            clock=clock,
        )
        is_off = "diskless.storage.system.enable is false on this broker"
        self._work.trouble = "the object store is not open" if is_enabled else is_off
        self._stack = AsyncExitStack()
        self._looked_at = clock.monotonic()
        self._waiters = ServedWaiters(self._is_unserved)
        self._is_required = False

    # Finding

    @property
    def by_key(self) -> dict[tuple[str, int], DisklessPart]:
        """Every partition that is served, by topic and number; always as it is now."""
        return self._partitions

    @property
    def unserved(self) -> int:
        """How many partitions wait for their log in the control plane."""
        return len(self._unmade)

    def why_missing(self, topic: str, partition: int) -> StrandlineError | None:
        """The error for a diskless partition that is not served yet; None if the partition is not diskless."""
        known = self._loader.image.topics.get(topic)
        if known is None or not 0 <= partition < len(known.partitions):
            return None
        if self._kinds.classic_partitions(known)(partition):
            return None
        name, is_led = TopicPartition(topic, partition), known.partitions[partition].leader == self._node_id
        if (error := self.engine.why_unserved(name, is_led=is_led)) is not None:
            return error
        if TopicIdPartition(known.topic_id, name) in self._unswitched:
            return NotLeaderOrFollower(
                f"{topic}-{partition} is being switched to diskless: broker {self._node_id} does not know its boundary "
                "yet."
            )
        return NotLeaderOrFollower(f"Broker {self._node_id} does not serve the new partition {topic}-{partition} yet.")

    def why_not_creatable(self, topic: str, configs: Mapping[str, str | None]) -> StrandlineError | None:
        """The error for a new topic that asks for an object store which is away and never worked since the start.

        Most likely its settings are wrong. One that has worked is expected to come back: topics can be created.
        """
        is_asked_for = configs.get(_DISKLESS) == "true"
        return uncreatable(topic, self._store_health, self._node_id) if is_asked_for else None

    def as_served(self, topic: TopicImage, reachable: Collection[int]) -> TopicImage:
        """The topic as clients see it that can reach these brokers: a partition that any can serve has a leader."""
        if not self._kinds.is_diskless_topic(topic):
            return topic
        return with_stand_ins(topic, reachable, may_move=partial(self.registry.may_move, topic.name))

    @property
    def view_version(self) -> int:
        """See `ServedTopics`."""
        return self.registry.version

    def topics(self) -> Iterator[TopicImage]:
        """Every diskless topic of the cluster."""
        return filter(self._kinds.is_diskless_topic, self._loader.image.topics.values())

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
            logs = await self._logs.logs(keys)
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
            logs = await self._logs.logs(keys)
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
            elif self._unswitched:
                self._give_up(topic)
        if delta.changed_configs:
            self.registry.refresh_limits(None if delta.changes_defaults else delta.topics_with_other_settings())
        is_controller = image.controller_id == self._node_id
        if is_controller and (delta.deleted_topics or delta.old.controller_id != self._node_id):
            self._must_look_for_leftovers = True
        if self._is_enabled and (self._unmade or self._must_look_for_leftovers):
            self._work.wake()

    def _follow(self, topic: TopicImage) -> None:
        is_classic = self._kinds.classic_partitions(topic)
        for image in topic.partitions:
            partition = self._partitions.get((topic.name, image.partition))
            if partition is None and is_classic(image.partition):
                continue
            if partition is None:
                self._unmade[key_of(topic, image)] = None
            else:
                partition.follow(image)

    def _give_up(self, topic: TopicImage) -> None:
        """The topic is not diskless: its switch was aborted."""
        for key in self._unswitched & {key_of(topic, image) for image in topic.partitions}:
            self._unswitched.discard(key)
            self._unmade.pop(key, None)

    def _remove(self, topic: TopicImage) -> None:
        self._kinds.forget(topic.topic_id)
        for image in topic.partitions:
            self._unmade.pop(key_of(topic, image), None)
            self._unswitched.discard(key_of(topic, image))
        for part in self.registry.remove(topic):
            self._served.remove(part)

    # The work

    @asynccontextmanager
    async def running(self, *, on_failure: Callable[[str], None]) -> AsyncIterator[DisklessTopics]:
        """Follow the metadata while the block lasts. `on_failure` is called if that fails for good."""
        task = asyncio.create_task(self._run(on_failure), name="diskless-topics")
        try:
            yield self
        finally:
            self._work.stop()
            if not self.engine.is_open:
                task.cancel()  # it may be opening a store that does not answer
            await asyncio.gather(task, return_exceptions=True)

    async def wait_opened(self, *, within: float) -> None:
        """Return when the engine is open or not needed, when opening it has failed once, or after `within` seconds.

        The broker serves its other topics meanwhile, and goes on trying.
        """
        if self._is_enabled:
            self._work.wake()
            await self._work.first_attempt(within=within)

    async def _run(self, on_failure: Callable[[str], None]) -> None:
        try:
            async with self._stack:
                await self._work.run()
        except Exception as error:
            logger.exception("diskless topics have failed")
            on_failure(f"diskless topics have failed: {error}")

    async def _catch_up(self) -> None:
        """Make the control plane match the metadata. Raises SqlError or ObjectStoreError; safe to repeat."""
        if not self._is_enabled:
            return
        if self._clock.monotonic() - self._looked_at >= _LOOK_AGAIN_S:
            self._looked_at = self._clock.monotonic()
            is_controller = self._loader.image.controller_id == self._node_id
            self._must_look_for_leftovers = self._must_look_for_leftovers or is_controller
        engine = self.engine
        if is_open_engine(engine):
            await self._match_with(engine)
        elif self._unmade or self._is_required or await self._leftovers.are_there():
            await self._match_with(await self._open())
        else:
            self._must_look_for_leftovers = False

    async def _open(self) -> DisklessTier:
        engine = await self._stack.enter_async_context(self._open_tier())
        self.engine = engine
        self._stack.callback(self.registry.close, NotLeaderOrFollower(f"Broker {self._node_id} is shutting down."))
        return engine

    async def _match_with(self, engine: DisklessTier) -> None:
        some = list(self._unmade)
        for first in range(0, len(some), _LOGS_PER_CALL):
            await self._create_some(engine, some[first : first + _LOGS_PER_CALL])
        if self._must_look_for_leftovers:
            self._must_look_for_leftovers = False
            try:
                await self._leftovers.remove()
            except BaseException:
                self._must_look_for_leftovers = True
                raise

    async def _create_some(self, tier: DisklessTier, some: Sequence[TopicIdPartition]) -> None:
        """Create a bounded number of logs with one call, and serve their partitions.

        A partition that was classic gets its log by the switch, from the broker that has its records. Until then it
        stays unmade.
        """
        await self._creation.create_logs(some)
        logs = await self._logs.logs(some)
        self._kinds.learn({log.partition.topic_id for log in logs.values() if log.diskless_log_start_offset >= 0})
        for partition in some:
            if partition not in self._unmade:
                continue  # its topic was deleted meanwhile
            topic, log = self._loader.image.topics_by_id[partition.topic_id], logs.get(partition)
            if self._kinds.classic_partitions(topic)(partition.partition):
                del self._unmade[partition]  # its log was created here meanwhile: `TopicSwitches` serves it
                self._unswitched.discard(partition)
                continue
            if log is None or log.diskless_log_start_offset < 0:
                self._expect_switch(topic, partition)
                continue
            self._unswitched.discard(partition)
            del self._unmade[partition]
            self._served.serve(self.registry.add(topic, partition, tier, log))
        self._waiters.tell()

    def _expect_switch(self, topic: TopicImage, partition: TopicIdPartition) -> None:
        """A partition was classic when its topic was flagged, and has no boundary yet."""
        if self._node_id not in topic.partitions[partition.partition].replicas:
            self._unswitched.add(partition)
            return
        del self._unmade[partition]
        self._kinds.expect_log(partition)
        self._on_log_wanted(topic)

    def boundary_lost(self, part: DisklessPart) -> None:
        """The control plane has another boundary of a partition, or none any more: it is asked for it again."""
        self.registry.drop(part, NotLeaderOrFollower(f"The boundary of {part.topic_partition} has changed."))
        self._served.remove(part)
        self._unmade[part.id] = None
        self._work.wake()

    # Partitions whose log is on this broker

    def require_open(self) -> None:
        """Open the object store, also if no partition without a local log needs it."""
        self._is_required = True
        if self._is_enabled and not self.engine.is_open:
            self._work.wake()

    def look_for_boundaries(self) -> None:
        """Some may be known now that were not."""
        if self._unswitched:
            self._work.wake()

    def why_not_writable(self) -> str:
        """A sentence that says why nothing can be written to diskless topics here; empty if it can."""
        if sentence := self.engine.why_not_writable():
            return sentence
        status = self._store_health.status(ignoring=DELETES)  # the next one may be hours away, and writes none
        return f"{status.what} is away: {status.problem}" if status.is_away else ""

    def join(self, key: TopicIdPartition, log: DisklessLog) -> DisklessPart | None:
        """The diskless part of a partition whose log is on this broker.

        None while diskless topics are not open, or if the metadata has no such topic (any more).
        """
        topic, engine = self._loader.image.topics_by_id.get(key.topic_id), self.engine
        if topic is None or not is_open_engine(engine):
            return None
        self._kinds.learn((key.topic_id,))
        part = self._partitions.get(key.topic_partition)
        if part is None or part.id != key:
            part = self.registry.add(topic, key, engine, log, is_joined=True)
        return part
