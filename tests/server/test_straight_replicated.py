"""Requests of the straight path whose records other replicas have to have: written at once, answered in their order."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.broker import Broker
from strandline.clock import SystemClock
from strandline.metadata.image import PartitionImage
from strandline.records import Record, build_batch
from strandline.server.exchange import MAX_IN_FLIGHT
from strandline.server.outbox import Outbox
from strandline.server.straight_replicated import ReplicatedExchange
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest
from strandline.wire.registry import encode_request
from tests.server.test_connection import turn
from tests.server.test_produce_memory import CREATE, PRODUCE, Client, World, production, settings
from tests.waiting import until

ME, OTHER = 1, 2
NOT_LEADER, TIMED_OUT = int(ErrorCode.NOT_LEADER_OR_FOLLOWER), int(ErrorCode.REQUEST_TIMED_OUT)


class Replicated(World):
    """A broker whose topic has another replica, of which nothing is known."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.client: Client

    async def begin(self, *, acks: int = -1, timeout_ms: int = 30_000) -> None:
        """Open a connection whose requests take the straight path."""
        self.client = await self.create_topic()
        for _ in range(2):
            self.send(b"first", acks=acks, timeout_ms=timeout_ms)
            assert (await self.client.produced())[0] == 0
        self.follow(isr=(self.me, OTHER))

    async def begin_other(self, value: bytes, *, timeout_ms: int = 30_000) -> None:
        """Another topic, without other replicas, which this connection has written to before."""
        topic = CreatableTopic(name="other", num_partitions=1, replication_factor=1)
        await self.client.call(ApiKey.CREATE_TOPICS, CREATE, CreateTopicsRequest(topics=[topic]))
        for _ in range(4):
            self.send(value, timeout_ms=timeout_ms, topic="other")
            assert (await self.client.produced())[0] == 0
        self.follow(isr=(self.me,))  # partitions have come: routes are learned again
        self.send(value)
        assert (await self.client.produced())[0] == 0
        self.follow(isr=(self.me, OTHER))

    @property
    def me(self) -> int:
        return self.partition.node_id

    def follow(self, *, isr: tuple[int, ...], leader: int | None = None, later: int = 0, topic: str = "topic") -> None:
        """What the metadata says from now on."""
        known, leads = self.broker.replicas.find(topic, 0), self.me if leader is None else leader
        image = PartitionImage(0, (self.me, OTHER), isr, leads, known.leader_epoch + later, known.partition_epoch + 1)
        known.follow(image)

    def caught_up(self) -> None:
        """The other replica is not in sync any more: what this broker has is enough."""
        self.follow(isr=(self.me,))

    def send(self, *values: bytes, acks: int = -1, timeout_ms: int = 30_000, topic: str = "topic") -> None:
        """Requests that arrive together."""
        frames = b""
        for value in values:
            message = production(value, acks=acks, timeout_ms=timeout_ms)
            message.topic_data[0].name = topic
            frame = encode_request(ApiKey.PRODUCE, PRODUCE, 1, "test", message)
            frames += struct.pack(">i", len(frame)) + frame
        self.client._writer.write(frames)

    async def written(self, end: int) -> None:
        await until(lambda: self.partition.log.log_end_offset == end)

    @property
    def waiting(self) -> list[bool]:
        """For each request in flight, whether it has come straight."""
        (connection,) = self.broker.network.connections
        return [isinstance(exchange, ReplicatedExchange) for exchange in connection.exchanges]


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[Replicated]:
    async with Broker(settings(tmp_path)) as broker:
        made = Replicated(broker)
        try:
            yield made
        finally:
            await made.close()


async def test_requests_are_written_at_once_and_answered_by_one_move_of_the_high_watermark(world: Replicated) -> None:
    await world.begin()
    world.send(b"a", b"b")
    await world.written(4)
    world.send(b"c")  # behind those that wait
    await world.written(5)
    assert world.waiting == [True] * 3
    assert world.partition.log.high_watermark == 2
    world.caught_up()
    assert await world.client.all_produced(3) == [(0, 2), (0, 3), (0, 4)]
    assert world.waiting == []
    world.send(b"d")  # this broker alone is in sync now: nothing to wait for
    assert await world.client.produced() == (0, 5)


@pytest.mark.plain
async def test_answers_that_one_move_of_the_high_watermark_releases_leave_together(
    world: Replicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.begin()
    sent: list[int] = []

    def send(outbox: Outbox, budget: int) -> int:
        sent.append(original(outbox, budget))
        return sent[-1]

    original = Outbox.send
    monkeypatch.setattr(Outbox, "send", send)
    world.send(b"a", b"b", b"c", b"d")
    await world.written(6)
    world.send(b"e")
    await world.written(7)
    assert sent == []
    world.caught_up()
    assert await world.client.all_produced(5) == [(0, offset) for offset in range(2, 7)]
    assert len(sent) == 1
    world.follow(isr=(world.me, OTHER))
    world.send(b"alone")
    await world.written(8)
    world.caught_up()
    assert len(sent) == 2, "nothing else waits: it is sent at once"
    assert await world.client.produced() == (0, 7)


async def test_answers_that_are_due_are_forgotten_if_the_client_leaves(world: Replicated) -> None:
    await world.begin()
    world.send(b"a", b"b")
    await world.written(4)
    (connection,) = world.broker.network.connections
    world.caught_up()
    assert connection.is_busy, "they leave in the next turn of the loop"
    connection.close(None)
    await turn()
    assert not connection.is_busy


async def test_they_are_refused_when_leadership_is_lost(world: Replicated) -> None:
    await world.begin()
    world.send(b"a", b"b")
    await world.written(4)
    failures = world.broker.partitions.traffic["topic"].totals().produce_failures
    world.follow(isr=(world.me, OTHER), leader=OTHER, later=1)
    assert await world.client.all_produced(2) == [(NOT_LEADER, -1)] * 2
    world.send(b"c")
    assert await world.client.produced() == (NOT_LEADER, -1)
    assert world.partition.log.log_end_offset == 4
    assert world.broker.partitions.traffic["topic"].totals().produce_failures == failures, "producers expect that"
    world.follow(isr=(world.me,), leader=world.me, later=1)
    world.send(b"d")
    assert await world.client.produced() == (0, 4)


async def test_they_wait_on_in_a_new_epoch_of_the_same_leader(world: Replicated) -> None:
    await world.begin()
    world.send(b"a")
    await world.written(3)
    world.follow(isr=(world.me, OTHER), later=1)
    world.send(b"b")
    await world.written(4)
    world.caught_up()
    assert await world.client.all_produced(2) == [(0, 2), (0, 3)]


async def test_they_time_out_and_stay_written(world: Replicated) -> None:
    await world.begin(timeout_ms=30)
    world.send(b"a", timeout_ms=30)
    assert await world.client.produced() == (TIMED_OUT, -1)
    assert world.partition.log.log_end_offset == 3
    world.caught_up()
    world.send(b"b", timeout_ms=30)
    assert await world.client.produced() == (0, 3), "the first one is answered once"


async def test_answers_that_need_no_replica_stay_behind_those_that_do(world: Replicated) -> None:
    await world.begin()
    for _ in range(2):
        world.send(b"known", acks=1)
        assert (await world.client.produced())[0] == 0
    world.send(b"a")
    world.send(b"b", acks=1)
    await world.written(6)
    for _ in range(5):
        await turn()
    assert world.waiting == [True, True]
    world.caught_up()
    assert await world.client.all_produced(2) == [(0, 4), (0, 5)]


async def test_a_timeout_that_is_not_sent_yet_stays_one(world: Replicated) -> None:
    await world.begin()
    await world.begin_other(b"known", timeout_ms=30)
    world.follow(isr=(world.me, OTHER), topic="other")
    world.send(b"a")
    world.send(b"b", timeout_ms=30, topic="other")
    await until(lambda: world.waiting == [True, True])
    (connection,) = world.broker.network.connections
    await until(lambda: len(connection.waiting) == 1)
    world.follow(isr=(world.me,), topic="other")
    world.caught_up()
    assert await world.client.all_produced(2) == [(0, 3), (TIMED_OUT, -1)]


@pytest.mark.parametrize("size", [10, 200_000])
async def test_another_partition_without_other_replicas_answers_in_its_place(world: Replicated, size: int) -> None:
    await world.begin()
    await world.begin_other(b"known")
    world.send(b"a")
    world.send(b"b" * size, topic="other")
    log = world.broker.replicas.find("other", 0).log
    await until(lambda: log.log_end_offset == 5)
    for _ in range(5):
        await turn()
    assert world.waiting == [True, True]
    world.caught_up()
    assert await world.client.all_produced(2) == [(0, 3), (0, 4)]


async def test_other_requests_keep_their_place_behind_them(world: Replicated) -> None:
    await world.begin()
    world.send(b"a")
    await world.written(3)
    again = CreateTopicsRequest(topics=[CreatableTopic(name="topic", num_partitions=1, replication_factor=1)])
    world.client.send(ApiKey.CREATE_TOPICS, CREATE, again)
    await until(lambda: world.waiting == [True, False])
    world.caught_up()
    assert await world.client.produced() == (0, 2)
    answer = await world.client.receive(ApiKey.CREATE_TOPICS, CREATE)
    assert [row.error_code for row in answer.topics] == [int(ErrorCode.TOPIC_ALREADY_EXISTS)]


async def test_a_connection_has_no_more_in_flight_than_others(world: Replicated) -> None:
    await world.begin()
    total = 2 * MAX_IN_FLIGHT + 5
    world.send(*(b"one of many" for _ in range(total)))
    await world.written(2 + MAX_IN_FLIGHT)
    for _ in range(20):
        await turn()
    assert world.partition.log.log_end_offset == 2 + MAX_IN_FLIGHT
    assert world.waiting == [True] * MAX_IN_FLIGHT
    answers = asyncio.create_task(world.client.all_produced(total))
    while not answers.done():
        world.follow(isr=(world.me,))
        world.follow(isr=(world.me, OTHER))
        await asyncio.wait([answers], timeout=0.01)
    assert answers.result() == [(0, 2 + number) for number in range(total)]


async def test_large_requests_take_the_same_way(world: Replicated) -> None:
    """They are received into buffers of their own, which are free again before they are answered."""
    await world.begin()
    world.send(b"x" * 100_000, b"y" * 100_000)
    await world.written(4)
    assert world.waiting == [True, True]
    assert world.broker.network.memory.frames.held == 0
    world.caught_up()
    assert await world.client.all_produced(2) == [(0, 2), (0, 3)]


async def test_a_client_that_leaves_has_no_answers_and_no_deadlines(world: Replicated) -> None:
    await world.begin()
    other = await world.connect()
    world.send(b"a", b"b")
    await world.written(4)
    world.client.drop()
    await until(lambda: len(world.broker.network.connections) == 1)
    world.caught_up()
    other.send(ApiKey.PRODUCE, PRODUCE, production(b"c"))
    assert await other.produced() == (0, 4)


async def test_requests_to_several_partitions_take_the_same_way(world: Replicated) -> None:
    await world.begin()
    world.caught_up()
    message = production(b"one of two", acks=-1)
    message.topic_data[0].partition_data *= 2
    for _ in range(2):
        await world.client.call(ApiKey.PRODUCE, PRODUCE, message)
    end = world.partition.log.log_end_offset
    world.follow(isr=(world.me, OTHER))
    world.client.send(ApiKey.PRODUCE, PRODUCE, message)
    await world.written(end + 2)
    assert world.waiting == [True]
    world.send(b"behind")
    world.client.send(ApiKey.PRODUCE, PRODUCE, message)
    await world.written(end + 5)
    assert world.waiting == [True] * 3
    world.caught_up()
    answer = await world.client.receive(ApiKey.PRODUCE, PRODUCE)
    rows = answer.responses[0].partition_responses
    assert [(row.error_code, row.base_offset) for row in rows] == [(0, end), (0, end + 1)]
    assert await world.client.produced() == (0, end + 2)
    assert await rows_of(world.client) == [(0, end + 3), (0, end + 4)]


async def several(world: Replicated, *, acks: int = -1, timeout_ms: int = 30_000) -> ProduceRequest:
    """A request with two batches, of which the connection knows how it begins; nothing replicates it."""
    await world.begin()
    world.caught_up()
    message = production(b"one of two", acks=acks, timeout_ms=timeout_ms)
    message.topic_data[0].partition_data *= 2
    for _ in range(2):
        await world.client.call(ApiKey.PRODUCE, PRODUCE, message)
    world.follow(isr=(world.me, OTHER))
    return message


async def rows_of(client: Client) -> list[tuple[int, int]]:
    answer = await client.receive(ApiKey.PRODUCE, PRODUCE)
    return [(row.error_code, row.base_offset) for row in answer.responses[0].partition_responses]


async def test_several_partitions_with_acks_1_are_answered_at_once_in_their_place(world: Replicated) -> None:
    message = await several(world, acks=1)
    end = world.partition.log.log_end_offset
    world.client.send(ApiKey.PRODUCE, PRODUCE, message)
    assert await rows_of(world.client) == [(0, end), (0, end + 1)]


async def test_several_partitions_time_out_and_stay_written(world: Replicated) -> None:
    message = await several(world, timeout_ms=20)
    end = world.partition.log.log_end_offset
    world.client.send(ApiKey.PRODUCE, PRODUCE, message)
    assert await rows_of(world.client) == [(TIMED_OUT, -1)] * 2
    assert world.partition.log.log_end_offset == end + 2
    assert world.waiting == []


async def test_several_partitions_are_refused_when_leadership_is_lost(world: Replicated) -> None:
    message = await several(world)
    end = world.partition.log.log_end_offset
    failures = world.broker.partitions.traffic["topic"].totals().produce_failures
    world.client.send(ApiKey.PRODUCE, PRODUCE, message)
    await world.written(end + 2)
    assert world.waiting == [True]
    world.follow(isr=(world.me, OTHER), leader=OTHER, later=1)
    assert await rows_of(world.client) == [(NOT_LEADER, -1)] * 2
    assert world.broker.partitions.traffic["topic"].totals().produce_failures == failures


async def test_a_batch_that_goes_the_general_way_waits_with_those_before_it(world: Replicated) -> None:
    """The second one begins the state of a producer, which is not for the straight path."""
    message = await several(world)
    end = world.partition.log.log_end_offset
    record = Record(0, SystemClock().now_ms(), None, b"x")
    begins = build_batch([record], producer_id=9, producer_epoch=0, base_sequence=0)
    message.topic_data[0].partition_data = [
        message.topic_data[0].partition_data[0],
        PartitionProduceData(index=0, records=bytes(begins)),
    ]
    world.client.send(ApiKey.PRODUCE, PRODUCE, message)
    await world.written(end + 2)
    assert world.waiting == [False]
    world.caught_up()
    assert await rows_of(world.client) == [(0, end), (0, end + 1)]
