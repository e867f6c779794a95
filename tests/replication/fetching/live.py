"""A broker in this process that leads, and the logs and fetchers of another one that follow it over the network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from uuid import UUID

from strandline.broker import Broker
from strandline.clock import SystemChance, SystemClock
from strandline.config import Settings
from strandline.config.log import LogSettings
from strandline.config.replication import ReplicationSettings
from strandline.log import LogManager, UnifiedLog
from strandline.metadata import BrokerImage, BrokerRegistration, Listener, MetadataImage, PartitionImage
from strandline.model import TopicPartition
from strandline.records import Record, build_batch
from strandline.replication import LogWriter, Partition, ReplicaFetchers, ReplicaManager
from strandline.wire.api import ApiKey
from strandline.wire.broker_connection import BrokerConnection
from strandline.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker import free_port
from tests.moments import T0
from tests.waiting import until

LEADER: Final = 1
FOLLOWER: Final = 2
CLOCK: Final = SystemClock()


class FixedImages:
    """Metadata that a test sets."""

    def __init__(self, image: MetadataImage) -> None:
        self.image = image


class LiveLeader:
    """A broker that serves clients, and a connection to it."""

    def __init__(self, broker: Broker, port: int, connection: BrokerConnection) -> None:
        self.broker, self.port, self._connection = broker, port, connection

    async def create(self, topic: str, partitions: int = 1) -> UUID:
        """Each partition has a replica on the follower, which is registered, and fenced: it holds nothing back."""
        follower = BrokerRegistration(node_id=FOLLOWER, incarnation_id=UUID(int=FOLLOWER), listeners=())
        await self.broker.controller.register_broker(follower)
        assignments = [
            CreatableReplicaAssignment(partition_index=number, broker_ids=[LEADER, FOLLOWER])
            for number in range(partitions)
        ]
        made = CreatableTopic(name=topic, num_partitions=-1, replication_factor=-1, assignments=assignments)
        await self._connection.request(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=[made], timeout_ms=20_000))
        await until(lambda: self.has_all(topic, partitions), f"replicas of {topic}")
        return self.broker.loader.image.topics[topic].topic_id

    def has_all(self, topic: str, partitions: int) -> bool:
        known = self.broker.replicas.by_key
        return all((topic, number) in known for number in range(partitions))

    def log(self, topic: str, partition: int = 0) -> UnifiedLog:
        return self.broker.replicas.find(topic, partition).log

    async def produce(self, topic: str, *values: bytes, partition: int = 0) -> None:
        records = [Record(at, T0 + at, None, value) for at, value in enumerate(values)]
        topic_id = self.broker.loader.image.topics[topic].topic_id
        rows = [PartitionProduceData(index=partition, records=bytes(build_batch(records)))]
        data = [TopicProduceData(name=topic, topic_id=topic_id, partition_data=rows)]
        answer = await self._connection.request(
            ApiKey.PRODUCE, ProduceRequest(acks=1, timeout_ms=10_000, topic_data=data)
        )
        assert answer.responses[0].partition_responses[0].error_code == 0

    def image(self, **changes: object) -> MetadataImage:
        """What a follower sees of the cluster."""
        listener = Listener("PLAINTEXT", "127.0.0.1", self.port)
        leader = BrokerImage(node_id=LEADER, epoch=7, incarnation_id=UUID(int=1), listeners=(listener,))
        newest = self.broker.loader.image
        return MetadataImage(cluster_id=newest.cluster_id, brokers={LEADER: leader, FOLLOWER: newest.brokers[FOLLOWER]})


@asynccontextmanager
async def live_leader(directory: Path, **settings: str) -> AsyncIterator[LiveLeader]:
    port = free_port()
    properties = {
        "strandline.data.dir": str(directory),
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "strandline.http.listen": "",
        "node.id": str(LEADER),
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    async with Broker(Settings.from_properties(properties)) as broker:
        connection = await BrokerConnection.open("127.0.0.1", port, client_id="test")
        try:
            yield LiveLeader(broker, port, connection)
        finally:
            connection.close()


class LiveFollower:
    """The replicas of a broker that leads nothing."""

    def __init__(self, directory: Path, images: FixedImages, settings: ReplicationSettings) -> None:
        self.logs = LogManager(
            LogSettings(log_dirs=(str(directory),)), node_id=FOLLOWER, clock=CLOCK, chance=SystemChance(1)
        )
        self.logs.load(lambda _: Settings().topic_config({}))
        loop = asyncio.get_running_loop()
        self.writer = LogWriter(loop, "follower")
        self.replicas = ReplicaManager(
            FOLLOWER, self.logs, loop=loop, topic_config=lambda _: Settings().topic_config({})
        )
        self.settings = settings
        self.fetchers = ReplicaFetchers(
            self.replicas,
            images,
            node_id=FOLLOWER,
            listener="PLAINTEXT",
            settings=lambda: self.settings,
            broker_epoch=lambda: images.image.brokers[FOLLOWER].epoch if FOLLOWER in images.image.brokers else 5,
            clock=CLOCK,
        )

    def replica(self, topic: str, topic_id: UUID, number: int = 0, **config: str) -> Partition:
        partition = TopicPartition(topic, number)
        overrides = {name.replace("_", "."): value for name, value in config.items()}
        log = self.logs.get_or_create(partition, topic_id, Settings().topic_config(overrides))
        return Partition(partition, topic_id, log, node_id=FOLLOWER, writer=self.writer)

    def follow(self, partition: Partition, *, leader: int = LEADER, epoch: int = 0) -> None:
        """The metadata says who leads."""
        number = partition.topic_partition.partition
        version = partition.partition_epoch + 1
        partition.follow(PartitionImage(number, (LEADER, FOLLOWER), (LEADER,), leader, epoch, version))
        self.fetchers.replica_changed(partition)


@asynccontextmanager
async def live_follower(
    directory: Path, images: FixedImages, settings: ReplicationSettings | None = None
) -> AsyncIterator[LiveFollower]:
    follower = LiveFollower(directory, images, settings or ReplicationSettings())
    try:
        async with follower.fetchers.running():
            yield follower
    finally:
        follower.writer.close()
        follower.logs.shutdown()


def contents(log: UnifiedLog) -> list[bytes]:
    """The bytes of its segments."""
    return [segment.file.read(0, segment.size) for segment in log.segments]


async def copied(leader: UnifiedLog, follower: UnifiedLog) -> None:
    """The follower has everything that the leader has."""
    await until(lambda: follower.log_end_offset == leader.log_end_offset, "the follower to have all records")
    assert contents(follower) == contents(leader)
