"""The process of a broker: as in `strandline.broker`, without clients, coordinators and a database."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Protocol, cast

from simulation.controller import CLUSTER, SimulatedController
from simulation.hearing import Channel, LateImages
from simulation.network import Network
from simulation.serving import BrokerServer
from simulation.writing import LateWriter
from strandline.clock import Clock, SystemChance
from strandline.config import Settings
from strandline.log import LogManager, UnifiedLog
from strandline.metadata import (
    BrokerRegistration,
    Listener,
)
from strandline.metadata.broker.lifecycle import BrokerLifecycle
from strandline.model import TopicPartition
from strandline.replication import (
    IsrChangeSender,
    LeaderEnvironment,
    LeaderUpkeep,
    Partition,
    ReplicaBrokers,
    ReplicaFetchers,
    ReplicaManager,
)

LISTENER = "PLAINTEXT"


class SeededIds:
    """An `Ids` of which everything follows from a seed."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self._chance.getrandbits(128), version=4)


class Surroundings(Protocol):
    """What all processes share."""

    controller: SimulatedController
    network: Network
    seed: str

    @property
    def clock(self) -> Clock:
        """The time."""

    def settings(self, node: int, directory: Path, /) -> Settings:
        """Those of a broker."""

    def changed(self, process: BrokerProcess, partition: Partition) -> None:
        """A replica of this broker has another role, high watermark or end."""


class BrokerProcess:
    """From its start to its end. `run` is its life; `kill` ends it without a goodbye."""

    def __init__(self, node: int, number: int, directory: Path, boot_id: str, around: Surroundings) -> None:
        self.node, self.name = node, f"broker-{node}"
        self.is_alive = True
        self.is_serving = self._is_closed = False
        self._around, self._number = around, number
        self._chance = random.Random(f"{around.seed}/{self.name}/{number}")
        settings = self.settings = around.settings(node, directory)
        self.ids = SeededIds(self._chance)
        chance = SystemChance(self._chance.getrandbits(32))
        self.images = LateImages(self.name, around.controller, around.network)
        self.logs = LogManager(
            settings.log,
            node_id=node,
            cluster_id=CLUSTER,
            clock=around.clock,
            ids=self.ids,
            chance=chance,
            checkpoint_interval_ms=settings.replication.replica_high_watermark_checkpoint_interval_ms,
            boot_id=boot_id,
        )
        self.writers: list[LateWriter] = []
        self.lifecycle: BrokerLifecycle | None = None
        self.epoch = -1
        channel = self._channel = Channel(self.name, around.controller, around.network, self.is_seen_to_be_the_new_one)
        lag_seconds = settings.replication.replica_lag_time_max_ms / 1000
        self.changes = IsrChangeSender(channel, node_id=node, broker_epoch=self._epoch, clock=around.clock)
        self.replicas = ReplicaManager(
            node,
            self.logs,
            loop=around.network.loop,
            topic_config=self._topic_config,
            environment=LeaderEnvironment(ReplicaBrokers(self.images, self._epoch), self.changes, lag_seconds),
            make_writer=self._make_writer,
        )
        self._watchers: dict[Partition, ChangeWatcher] = {}
        self.replicas.add_replica_listener(self)
        self.upkeep = LeaderUpkeep(self.replicas, self.changes, around.clock, lag_seconds=lag_seconds)
        self.server = BrokerServer(self.replicas, CLUSTER, around.clock, chance)
        self.fetchers = ReplicaFetchers(
            self.replicas,
            self.images,
            node_id=node,
            listener=LISTENER,
            settings=lambda: settings.replication,
            broker_epoch=self._epoch,
            clock=around.clock,
        )
        self._stop = asyncio.Event()
        self.task: asyncio.Task[None] = around.network.loop.create_task(self._run(), name=self.name)

    def _epoch(self) -> int:
        return self.epoch if self.lifecycle is None else self.lifecycle.broker_epoch

    def _topic_config(self, topic: str) -> Any:
        return self._around.controller.rules.topic_config(self.images.image, topic)

    def _make_writer(self, loop: asyncio.AbstractEventLoop, name: str) -> LateWriter:
        writer = LateWriter(loop, name, self._chance)
        self.writers.append(writer)
        return writer

    # Life

    async def _run(self) -> None:
        around = self._around
        await asyncio.sleep(0.05 * self._chance.random())
        await self.images.catch_up()
        self.logs.load(self._topic_config, is_stray=self._is_stray)
        known, kept = self.images.image.brokers.get(self.node), self.logs.kept
        registration = BrokerRegistration(
            node_id=self.node,
            incarnation_id=self.ids.uuid(),
            listeners=(Listener(LISTENER, self.name, 9092),),
            previous_broker_epoch=kept.broker_epoch
            if known is None
            else kept.newest_epoch(known.incarnation_id, known.epoch),
            log_dirs=self.logs.directory_ids,
        )
        lifecycle = self.lifecycle = BrokerLifecycle(
            self._channel,
            cast(Any, self.images),
            registration,
            self.settings.cluster,
            around.clock,
            on_lost=lambda reason: self._stop.set(),
        )
        async with AsyncExitStack() as stack:
            stack.callback(self._close)
            housekeeping = asyncio.create_task(self.logs.run())
            stack.callback(housekeeping.cancel)
            self.logs.note_incarnation(registration.previous_broker_epoch, registration.incarnation_id)
            await stack.enter_async_context(lifecycle.running())
            self.logs.note_incarnation(lifecycle.broker_epoch)
            await lifecycle.unfence()
            stack.push_async_callback(self.upkeep.close)
            self.images.subscribe(self.replicas.apply)
            await stack.enter_async_context(self.fetchers.running())
            upkeep = asyncio.create_task(self.upkeep.run())
            stack.callback(upkeep.cancel)
            stack.push_async_callback(self.server.close)
            around.network.listen(self.name, self.server.accept)
            self.is_serving = True
            await self._stop.wait()
            await lifecycle.shut_down(3.0)
            self.is_serving = False
            around.network.leave(self.name, is_silent=False)
        self.is_alive = False

    def _is_stray(self, partition: Any, topic_id: Any) -> bool:
        topic = self.images.image.topics.get(partition.topic)
        known = None if topic is None else topic.partition(partition.partition)
        return known is None or self.node not in known.replicas

    def _close(self) -> None:
        if not self.is_alive:
            return
        self.images.stop()
        self.replicas.close()
        self._is_closed = True
        self.logs.shutdown(broker_epoch=self._epoch())

    def stop(self) -> None:
        """A controlled shutdown begins."""
        self._stop.set()

    def kill(self, *, is_silent: bool = False) -> None:
        """The process ends here and now. With its machine, nobody is told."""
        if not self.is_alive:
            return
        self.is_alive = self.is_serving = False
        self._around.network.leave(self.name, is_silent=is_silent)
        self.images.stop()
        for writer in self.writers:
            writer.kill()
        for storage in self.logs.storages:
            lock, storage._lock = storage._lock, None
            if lock is not None:
                lock.release()
        for log in self.logs.all_logs():
            log.abandon()
            for segment in log.segments:
                segment.file.close()
                segment.file.path = "/gone"  # nothing may be written after the end of the process
        self.task.cancel()

    def is_seen_to_be_the_new_one(self) -> bool:
        """Whether the controller has seen that the lock of this broker is that of this process."""
        return self.is_alive and self._chance.random() < 0.7

    # Looking inside

    def partition(self, topic: str, number: int) -> Partition | None:
        """Its replica."""
        return None if self._is_closed else self.replicas.by_key.get((topic, number))

    def log(self, topic: str, number: int) -> UnifiedLog | None:
        """Its log, also before it has learned of its role."""
        return None if self._is_closed else self.logs.get(TopicPartition(topic, number))

    # Telling the world, as a `ReplicaListener` and a `Watcher` of each partition

    def replica_changed(self, partition: Partition) -> None:
        """A replica is there, or has another role."""
        if partition not in self._watchers:
            watcher = self._watchers[partition] = ChangeWatcher(self, partition, self._around.changed)
            partition.watch(watcher)
        self._watchers[partition].notify()

    def replica_removed(self, partition: Partition, *, is_deleted: bool) -> None:
        """It is gone."""
        self._watchers.pop(partition, None)


class ChangeWatcher:
    """A `Watcher` of one replica, which is told of all that readers can see."""

    def __init__(
        self, process: BrokerProcess, partition: Partition, changed: Callable[[BrokerProcess, Partition], None]
    ) -> None:
        self._process, self._partition, self._changed = process, partition, changed

    def notify(self) -> None:
        """See `Watcher`."""
        if self._process.is_alive and not self._process._is_closed:
            self._changed(self._process, self._partition)
