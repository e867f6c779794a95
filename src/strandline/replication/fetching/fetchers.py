"""Gives each partition that this broker follows to the fetcher of its leader."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple, TypeAlias

from strandline.clock import Clock
from strandline.config.replication import ReplicationSettings
from strandline.errors import LeaderNotAvailable
from strandline.metadata import Images
from strandline.model import NO_LEADER, BrokerId, TopicPartition, java_string_hash
from strandline.replication.fetching.fetcher import Fetcher
from strandline.replication.fetching.followed import FetchStage, FollowedPartition
from strandline.replication.fetching.status import FetchersStatus
from strandline.replication.partition import Partition
from strandline.replication.replica_manager import ReplicaManager
from strandline.wire.kept_connection import BrokerAddress

logger = logging.getLogger(__name__)

FetcherKey: TypeAlias = tuple[BrokerId, int]
"""A leader, and which of the num.replica.fetchers connections to it."""


def fetcher_number(partition: TopicPartition, fetchers: int) -> int:
    """Which of so many fetchers copies a partition: Kafka's rule."""
    return abs(31 * java_string_hash(partition.topic) + partition.partition) % fetchers


class _RunningFetcher(NamedTuple):
    fetcher: Fetcher
    task: asyncio.Task[None]


class ReplicaFetchers:
    """A `ReplicaListener`. It follows by level: what a replica is now says which fetcher has it, if any.

    Fetchers run inside `running`. One without partitions ends: a broker that follows nothing has none.
    """

    def __init__(
        self,
        replicas: ReplicaManager,
        images: Images,
        *,
        node_id: BrokerId,
        listener: str,
        settings: Callable[[], ReplicationSettings],
        broker_epoch: Callable[[], int],
        clock: Clock,
    ) -> None:
        """`listener` is the name of the listener over which brokers reach each other."""
        self._replicas: Final = replicas
        self._images = images
        self._node_id = node_id
        self._listener = listener
        self._settings = settings
        self._broker_epoch = broker_epoch
        self._clock = clock
        self._running: dict[FetcherKey, _RunningFetcher] = {}
        self._fetched_by: dict[Partition, FetcherKey] = {}
        self._bytes_of_ended = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Copy inside the block what this broker follows."""
        leave = self._replicas.add_replica_listener(self)
        try:
            yield
        finally:
            leave()
            ended = [self._end(key) for key in tuple(self._running)]
            self._fetched_by.clear()
            await asyncio.gather(*ended, return_exceptions=True)

    # Following the metadata

    def replica_changed(self, partition: Partition) -> None:
        """See `ReplicaListener`."""
        key = self._wanted(partition)
        if key is None:
            self._leave(partition)
            return
        before = self._fetched_by.get(partition)
        if before is not None and before != key:
            self._leave(partition)
        self._fetched_by[partition] = key
        self._fetcher(key).state.follow(partition)

    def replica_removed(self, partition: Partition, *, is_deleted: bool) -> None:
        """See `ReplicaListener`."""
        self._leave(partition)

    def follow_settings(self) -> None:
        """num.replica.fetchers may have changed: give the partitions to other fetchers."""
        for partition, key in tuple(self._fetched_by.items()):
            if self._wanted(partition) != key:
                self.replica_changed(partition)

    def _wanted(self, partition: Partition) -> FetcherKey | None:
        leader = partition.leader
        if partition.is_leader or leader in (NO_LEADER, self._node_id) or partition.log.is_offline:
            return None
        return leader, fetcher_number(partition.topic_partition, self._settings().num_replica_fetchers)

    def _leave(self, partition: Partition) -> None:
        key = self._fetched_by.pop(partition, None)
        running = None if key is None else self._running.get(key)
        if key is None or running is None:
            return
        state = running.fetcher.state
        state.leave((partition.topic_id.bytes, partition.topic_partition.partition))
        if not len(state):
            self._end(key)

    # Fetchers

    def _fetcher(self, key: FetcherKey) -> Fetcher:
        running = self._running.get(key)
        if running is None:
            leader, number = key
            fetcher = Fetcher(
                leader,
                number,
                self._settings(),
                node_id=self._node_id,
                broker_epoch=self._broker_epoch,
                address=self._address,
                cluster_id=lambda: self._images.image.cluster_id,
                clock=self._clock,
            )
            task = asyncio.get_running_loop().create_task(fetcher.run(), name=f"copying from broker {leader}")
            running = self._running[key] = _RunningFetcher(fetcher, task)
        return running.fetcher

    def _end(self, key: FetcherKey) -> asyncio.Task[None]:
        fetcher, task = self._running.pop(key)
        self._bytes_of_ended += fetcher.state.bytes_in
        task.cancel()
        return task

    def _address(self, leader: BrokerId) -> BrokerAddress:
        broker = self._images.image.brokers.get(leader)
        listener = None if broker is None else broker.listener(self._listener)
        if listener is None:
            raise LeaderNotAvailable(
                f"Broker {leader} is not registered with a listener {self._listener} (inter.broker.listener.name)."
            )
        return BrokerAddress(leader, listener.host, listener.port)

    def status(self) -> FetchersStatus:
        """For metrics. It costs by the partitions that are copied."""
        followed = list(self._all())
        bytes_now = sum(one.fetcher.state.bytes_in for one in self._running.values())
        return FetchersStatus(
            connections=len(self._running),
            partitions=len(followed),
            failed_partitions=sum(one.stage is FetchStage.FAILED for one in followed),
            max_lag=max((one.lag or 0 for one in followed), default=0),
            bytes_in=self._bytes_of_ended + bytes_now,
        )

    def _all(self) -> Iterator[FollowedPartition]:
        for running in self._running.values():
            yield from running.fetcher.state.followed
