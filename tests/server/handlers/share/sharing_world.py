"""A broker in this process that serves share groups over its listener, and members of a group that ask it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from strandline.broker import Broker
from strandline.clock import SystemClock
from strandline.config import Settings
from strandline.coordinators.share_states import SharePartitionKey
from strandline.records import Record, build_batch
from strandline.records.batch import iter_headers
from strandline.wire.api import ApiKey
from strandline.wire.messages import initialize_share_group_state as beginning
from strandline.wire.messages import read_share_group_state_summary as summing
from strandline.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from strandline.wire.messages.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.messages.share_acknowledge import AcknowledgementBatch as Acknowledged
from strandline.wire.messages.share_acknowledge import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from strandline.wire.messages.share_fetch import AcknowledgementBatch, FetchPartition, FetchTopic, ShareFetchRequest
from tests.broker import free_port
from tests.server.test_produce_memory import CREATE, PRODUCE, Client

GROUP = "sharers"
VERSION = 2
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4


class Member:
    """One member of the group, on a connection of its own."""

    def __init__(self, name: str, client: Client, topic_id: UUID) -> None:
        self.name, self.client, self.topic_id = name, client, topic_id
        self.epoch = 0
        self.other_topics: tuple[UUID, ...] = ()
        """Which it fetches, too."""

    def request(
        self,
        *,
        max_wait_ms: int = 0,
        epoch: int | None = None,
        said: Sequence[tuple[int, int, Sequence[int]]] = (),
        **fields: Any,
    ) -> ShareFetchRequest:
        batches = [
            AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(types))
            for first, last, types in said
        ]
        epoch = self.epoch if epoch is None else epoch
        partition = FetchPartition(partition_index=0, acknowledgement_batches=batches)
        topics = [FetchTopic(topic_id=self.topic_id, partitions=[partition])] if epoch == 0 or said else []
        if epoch == 0:
            others = [FetchPartition(partition_index=0)]
            topics += [FetchTopic(topic_id=one, partitions=others) for one in self.other_topics]
        usual = {"min_bytes": 1, "max_records": 500, "batch_size": 500, "max_bytes": 1 << 20}
        return ShareFetchRequest(
            group_id=GROUP,
            member_id=self.name,
            share_session_epoch=epoch,
            max_wait_ms=max_wait_ms,
            topics=topics,
            **{**usual, **fields},
        )

    async def ask(self, **fields: Any) -> Any:
        response = await self.client.call(ApiKey.SHARE_FETCH, VERSION, self.request(**fields))
        if response.error_code == 0 and fields.get("epoch") is None:
            self.epoch += 1
        return response

    async def fetch(self, **fields: Any) -> list[tuple[int, int, int]]:
        """What is acquired: first and last offset, delivery count. The records come with it."""
        response = await self.ask(**{"max_wait_ms": 0 if "is_renew_ack" in fields else 20_000, **fields})
        assert response.error_code == 0, response.error_message
        found = []
        for topic in response.responses:
            for partition in topic.partitions:
                assert (partition.error_code, partition.acknowledge_error_code) == (0, 0), partition
                acquired = [
                    (one.first_offset, one.last_offset, one.delivery_count) for one in partition.acquired_records
                ]
                headers = [header for _, header in iter_headers(partition.records or b"")]
                for first, last, _ in acquired:
                    assert headers[0].base_offset <= first
                    assert last <= headers[-1].last_offset
                found += acquired
        return found

    async def acknowledge(
        self, *said: tuple[int, int, Sequence[int]], epoch: int | None = None, is_renewal: bool = False
    ) -> Any:
        batches = [
            Acknowledged(first_offset=first, last_offset=last, acknowledge_types=list(types))
            for first, last, types in said
        ]
        partition = AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
        request = ShareAcknowledgeRequest(
            group_id=GROUP,
            member_id=self.name,
            share_session_epoch=self.epoch if epoch is None else epoch,
            is_renew_ack=is_renewal,
            topics=[AcknowledgeTopic(topic_id=self.topic_id, partitions=[partition])] if said else [],
        )
        response = await self.client.call(ApiKey.SHARE_ACKNOWLEDGE, VERSION, request)
        if response.error_code == 0 and epoch is None:
            self.epoch += 1
        return response

    async def settle(self, *said: tuple[int, int, Sequence[int]]) -> None:
        response = await self.acknowledge(*said)
        assert response.error_code == 0, response.error_message
        assert [one.error_code for topic in response.responses for one in topic.partitions] == [0]


class SharingWorld:
    """A broker with one topic of one partition, whose group begins at offset 0."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._clients: list[Client] = []

    async def connect(self) -> Client:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self.broker.listeners[0].port))
        client = Client(*await asyncio.open_connection(sock=sock))
        self._clients.append(client)
        return client

    async def close(self) -> None:
        for client in self._clients:
            await client.close()

    @property
    def topic_id(self) -> UUID:
        return self.id_of("topic")

    async def member(self, name: str) -> Member:
        return Member(name, await self.connect(), self.topic_id)

    async def create_topic(self, topic_name: str = "topic", /, **configs: str) -> None:
        client = await self.connect()
        entries = [CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()]
        topic = CreatableTopic(name=topic_name, num_partitions=1, replication_factor=1, configs=entries)
        response = await client.call(ApiKey.CREATE_TOPICS, CREATE, CreateTopicsRequest(topics=[topic]))
        assert [row.error_code for row in response.topics] == [0]

    def id_of(self, topic: str) -> UUID:
        return self.broker.loader.image.topics[topic].topic_id

    async def begin_group(self, start_offset: int = 0, state_epoch: int = 1, *, topic_name: str = "topic") -> None:
        client = await self.connect()
        topic_id = self.id_of(topic_name)
        key = SharePartitionKey(GROUP, topic_id, 0).coordinator_key
        found = await client.call(
            ApiKey.FIND_COORDINATOR, 6, FindCoordinatorRequest(key_type=2, coordinator_keys=[key])
        )
        assert [(one.error_code, one.node_id) for one in found.coordinators] == [(0, self.broker.node_id)]
        partition = beginning.PartitionData(partition=0, state_epoch=state_epoch, start_offset=start_offset)
        topic = beginning.InitializeStateData(topic_id=topic_id, partitions=[partition])
        request = beginning.InitializeShareGroupStateRequest(group_id=GROUP, topics=[topic])
        answer = await client.call(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, request)
        assert [one.error_code for result in answer.results for one in result.partitions] == [0]

    @property
    def key(self) -> SharePartitionKey:
        return SharePartitionKey(GROUP, self.topic_id, 0)

    async def summary(self) -> tuple[int, int]:
        """Start offset, and how many offsets from there on are settled, as the coordinator has stored it."""
        client = await self.connect()
        topic = summing.ReadStateSummaryData(topic_id=self.topic_id, partitions=[summing.PartitionData(partition=0)])
        request = summing.ReadShareGroupStateSummaryRequest(group_id=GROUP, topics=[topic])
        answer = await client.call(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 1, request)
        found = answer.results[0].partitions[0]
        assert found.error_code == 0
        return found.start_offset, found.delivery_complete_count

    async def produce(self, *batches: int, topic: str = "topic", size: int = 10) -> None:
        """Batches of so many records each, which have values of at least so many bytes."""
        client = await self.connect()
        for count in batches:
            now = SystemClock().now_ms()
            records = bytes(build_batch([Record(at, now, None, b"value %d" % at + bytes(size)) for at in range(count)]))
            data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])
            client.send(ApiKey.PRODUCE, PRODUCE, ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data]))
            assert (await client.produced())[0] == 0


def sharing_settings(directory: Path, **properties: str) -> Settings:
    return Settings.from_properties(
        {
            "strandline.data.dir": str(directory),
            "socket.send.buffer.bytes": "65536",  # an answer that nobody reads has to stay in the broker
            "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
            "strandline.http.listen": "",
            "share.coordinator.state.topic.num.partitions": "2",
            **{name.replace("_", "."): value for name, value in properties.items()},
        }
    )


@asynccontextmanager
async def sharing_broker(directory: Path, **properties: str) -> AsyncIterator[SharingWorld]:
    async with Broker(sharing_settings(directory, **properties)) as broker:
        world = SharingWorld(broker)
        try:
            yield world
        finally:
            await world.close()
