"""Brokers that only fetch from a leader, as a test tells them to, and the leader: a broker in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from strandline.broker import Broker
from strandline.config import Settings
from strandline.metadata import BrokerHeartbeat, BrokerRegistration, ConfigResource, ConfigResourceType, Plan
from strandline.metadata.records import ConfigRecord, PartitionRecord
from strandline.replication import Partition
from strandline.server.fetch_sessions import FINAL_EPOCH
from strandline.wire.api import ApiKey
from strandline.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from tests.broker import free_port
from tests.server.test_produce_memory import CREATE, Client, World, production
from tests.waiting import until

FETCH = 17
LONG_MS = 60_000
PRODUCE = 12


@dataclass
class Answer:
    """What a follower was told of one partition."""

    error_code: int
    high_watermark: int
    log_start: int
    records: int
    diverging: tuple[int, int] | None

    @classmethod
    def of(cls, row: PartitionData) -> Answer:
        epoch = row.diverging_epoch
        diverging = None if epoch.epoch < 0 and epoch.end_offset < 0 else (epoch.epoch, epoch.end_offset)
        return cls(row.error_code, row.high_watermark, row.log_start_offset, len(row.records or b""), diverging)


class ScriptedFollower:
    """One connection with one session. It has as much as the test says."""

    def __init__(self, client: Client, broker_id: int, broker_epoch: int, topic_id: UUID) -> None:
        self.client, self.broker_id, self.broker_epoch, self.topic_id = client, broker_id, broker_epoch, topic_id
        self._session_id = self._session_epoch = 0

    def ask(
        self,
        *offsets: int,
        wait_ms: int = 0,
        leader_epoch: int = -1,
        last_epoch: int = -1,
        log_start: int = 0,
        forget: Sequence[int] = (),
        first: int = 0,
    ) -> None:
        """Fetch from these offsets, one for each partition; without any, from where the session stands."""
        partitions = [
            FetchPartition(
                partition=number,
                current_leader_epoch=leader_epoch,
                fetch_offset=offset,
                last_fetched_epoch=last_epoch,
                log_start_offset=log_start,
                partition_max_bytes=1 << 20,
            )
            for number, offset in enumerate(offsets, first)
        ]
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=[FetchTopic(topic_id=self.topic_id, partitions=partitions)] if partitions else [],
            forgotten_topics_data=[ForgottenTopic(topic_id=self.topic_id, partitions=list(forget))] if forget else [],
            replica_state=ReplicaState(replica_id=self.broker_id, replica_epoch=self.broker_epoch),
        )
        self.client.send(ApiKey.FETCH, FETCH, request)

    async def told(self) -> dict[int, Answer]:
        """The answer, by partition. Of a session only those with news."""
        response: FetchResponse = await self.client.receive(ApiKey.FETCH, FETCH)
        assert response.error_code == 0
        self._session_id = response.session_id
        self._session_epoch += 1
        return {row.partition_index: Answer.of(row) for topic in response.responses for row in topic.partitions}

    async def fetch(self, *offsets: int, wait_ms: int = 0, leader_epoch: int = -1, log_start: int = 0) -> Answer | None:
        """Fetch partition 0 and take the answer."""
        self.ask(*offsets, wait_ms=wait_ms, leader_epoch=leader_epoch, log_start=log_start)
        return (await self.told()).get(0)

    def start_over(self) -> None:
        """The next request opens another session."""
        self._session_id = self._session_epoch = 0


class Cluster(World):
    """A leader and the brokers 2 and 3, registered and not fenced. The topic has a replica on each."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.epochs: dict[int, int] = {}
        self.topic_id = UUID(int=0)
        self.producer: Client

    @property
    def me(self) -> int:
        return self.broker.node_id

    async def begin(self, *, isr: tuple[int, ...] = (1, 2, 3), partitions: int = 1, min_isr: int = 1) -> None:
        self.producer = await self.connect()
        topic = CreatableTopic(name="topic", num_partitions=partitions, replication_factor=1)
        response = await self.producer.call(ApiKey.CREATE_TOPICS, CREATE, CreateTopicsRequest(topics=[topic]))
        self.topic_id = response.topics[0].topic_id
        await until(lambda: len(self.broker.replicas) == partitions)
        for number in (2, 3):
            await self.register(number)
        resource = ConfigResource(ConfigResourceType.TOPIC, "topic")
        least = ConfigRecord(resource=resource, key="min.insync.replicas", value=str(min_isr))
        records = [self._partition(number, isr) for number in range(partitions)]
        await self.broker.controller.write(lambda _: Plan((least, *records), None))
        await until(lambda: all(one.replicas == (1, 2, 3) for one in self.broker.replicas.partitions()))

    def _partition(self, number: int, isr: tuple[int, ...]) -> PartitionRecord:
        known = self.broker.replicas.find("topic", number)
        return PartitionRecord(
            topic_id=self.topic_id,
            partition=number,
            replicas=(1, 2, 3),
            isr=isr,
            leader=self.me,
            leader_epoch=known.leader_epoch,
            partition_epoch=known.partition_epoch + 1,
        )

    async def register(self, node_id: int) -> None:
        """A new incarnation of the broker, at once in service."""
        controller = self.broker.controller
        known = self.broker.loader.image.brokers.get(node_id)
        if known is not None:
            leave = BrokerHeartbeat(
                node_id=node_id, broker_epoch=known.epoch, current_metadata_offset=1 << 40, want_shut_down=True
            )
            await controller.broker_heartbeat(leave)
        registration = BrokerRegistration(
            node_id=node_id, incarnation_id=UUID(int=len(self.epochs) * 100 + node_id + 1000), listeners=()
        )
        epoch = self.epochs[node_id] = await controller.register_broker(registration)
        await controller.broker_heartbeat(
            BrokerHeartbeat(node_id=node_id, broker_epoch=epoch, current_metadata_offset=1 << 40)
        )
        await until(lambda: self.broker.loader.image.is_active(node_id))

    async def fence(self, node_id: int, *, is_over: bool = False) -> None:
        """The broker wants to be fenced, and is, or does not want it any more."""
        heartbeat = BrokerHeartbeat(
            node_id=node_id,
            broker_epoch=self.epochs[node_id],
            current_metadata_offset=1 << 40,
            want_fence=not is_over,
        )
        await self.broker.controller.broker_heartbeat(heartbeat)
        await until(lambda: self.broker.loader.image.is_active(node_id) is is_over)

    async def follower(self, node_id: int) -> ScriptedFollower:
        return ScriptedFollower(await self.connect(), node_id, self.epochs[node_id], self.topic_id)

    async def lead_again(self) -> None:
        """The next leader epoch, of the same leader."""
        known = self.partition
        record = self._partition(0, known.isr)
        epoch = known.leader_epoch + 1
        again = PartitionRecord(
            topic_id=record.topic_id,
            partition=0,
            replicas=record.replicas,
            isr=record.isr,
            leader=self.me,
            leader_epoch=epoch,
            partition_epoch=record.partition_epoch,
        )
        await self.broker.controller.write(lambda _: Plan((again,), None))
        await until(lambda: known.leader_epoch == epoch)

    def send(self, value: bytes = b"x", *, acks: int = -1, timeout_ms: int = 30_000) -> None:
        self.producer.send(ApiKey.PRODUCE, PRODUCE, production(value, acks=acks, timeout_ms=timeout_ms))

    async def write(self, count: int = 1) -> None:
        """Records that need no follower to be answered."""
        for _ in range(count):
            self.send(acks=1)
            assert (await self.producer.produced())[0] == 0

    async def in_sync(self, *members: int) -> None:
        """Until the leader and the metadata agree that these are."""

        def agree() -> bool:
            image = self.broker.loader.image.partition("topic", 0)
            return image is not None and set(image.isr) == set(members) == set(self.partition.isr)

        await until(agree, f"in sync: {members}")

    @property
    def high_watermark(self) -> int:
        return self.partition.log.high_watermark

    @property
    def parted(self) -> list[Partition]:
        """Every partition of the topic."""
        return sorted(self.broker.replicas.partitions(), key=lambda one: one.topic_partition)

    async def waits(self, followers: int) -> None:
        """Until as many Fetch requests wait for their answers."""
        await until(lambda: sum(c.waiting == [ApiKey.FETCH] for c in self.broker.network.connections) == followers)


__all__ = ["FINAL_EPOCH", "LONG_MS", "Answer", "Cluster", "ScriptedFollower"]


@asynccontextmanager
async def opened_cluster(directory: Path) -> AsyncIterator[Cluster]:
    """A broker that serves in this process. Its followers never lose their sessions by silence."""
    properties = {
        "strandline.data.dir": str(directory),
        "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
        "strandline.http.listen": "",
        "broker.session.timeout.ms": "600000",
    }
    async with Broker(Settings.from_properties(properties)) as broker:
        opened = Cluster(broker)
        try:
            yield opened
        finally:
            await opened.close()
