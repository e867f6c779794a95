"""Load of many kinds on one broker, from one event loop: pipelined idempotent producers, long polls in sessions.

Everything is remembered that is needed to judge the logs afterwards.
"""

from __future__ import annotations

import asyncio
import struct
from collections import Counter, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from strandline.clock import SystemChance, SystemClock
from strandline.records.batch import iter_headers
from strandline.records.builder import build_batch
from strandline.records.record import Record, read_records
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.registry import decode_response, encode_request

SECONDS = 30
PRODUCE, FETCH, LIST_OFFSETS, INIT_PRODUCER_ID = 9, 11, 7, 4
NETWORK_TROUBLE = (OSError, EOFError)
RETRIABLE = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.KAFKA_STORAGE_ERROR,
}
CLOCK = SystemClock()


class Link:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._sent: deque[tuple[ApiKey, int, int]] = deque()
        self._last_id = 0

    def send(self, api_key: ApiKey, version: int, message: Any) -> None:
        self._last_id += 1
        frame = encode_request(api_key, version, self._last_id, "load", message)
        self.writer.write(struct.pack(">i", len(frame)) + frame)
        self._sent.append((api_key, version, self._last_id))

    async def receive(self) -> Any:
        """The answer to the oldest request without one."""
        try:
            async with asyncio.timeout(SECONDS):
                size = struct.unpack(">i", await self.reader.readexactly(4))[0]
                data = await self.reader.readexactly(size)
        except TimeoutError as error:
            raise AssertionError(f"no answer to {self._sent[0]} within {SECONDS} s") from error
        api_key, version, expected = self._sent.popleft()
        received, message = decode_response(api_key, version, memoryview(data))
        assert received == expected, "answers must come in the order of the requests"
        return message

    async def call(self, api_key: ApiKey, version: int, message: Any) -> Any:
        self.send(api_key, version, message)
        return await self.receive()


@asynccontextmanager
async def linked(port: int) -> AsyncIterator[Link]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 23)
    try:
        yield Link(reader, writer)
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


class Found(NamedTuple):
    """A record in a log: where, whose, and which of theirs."""

    offset: int
    writer: str
    number: int


class Batch(NamedTuple):
    """A batch that waits for its acknowledgement."""

    first_number: int
    size: int
    data: bytes


def records_in(data: bytes) -> list[Found]:
    found = []
    for position, header in iter_headers(data):
        for record in read_records(data[position : position + header.size]):
            writer, number, _ = bytes(record.value or b"").split(b" ", 2)
            found.append(Found(record.offset, writer.decode(), int(number)))
    return found


async def read_partition(port: int, topic: str, partition: int) -> list[Found]:
    """Every record of a partition, up to its high watermark at the time."""
    found: list[Found] = []
    async with linked(port) as link:
        asked = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=partition, timestamp=-2)])
        listed = await link.call(ApiKey.LIST_OFFSETS, LIST_OFFSETS, ListOffsetsRequest(replica_id=-1, topics=[asked]))
        offset = listed.topics[0].partitions[0].offset
        while True:
            wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=5_000_000)
            topics = [FetchTopic(topic=topic, partitions=[wanted])]
            request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=5_000_000, topics=topics)
            [answer] = (await link.call(ApiKey.FETCH, FETCH, request)).responses[0].partitions
            assert answer.error_code == 0, ErrorCode(answer.error_code)
            if not answer.records:
                assert offset == answer.high_watermark
                return found
            found += [record for record in records_in(bytes(answer.records)) if record.offset >= offset]
            offset = found[-1].offset + 1


@dataclass(slots=True)
class PipelinedProducer:
    """An idempotent producer with several batches on their way; after a reconnect it sends them again, in order."""

    port: int
    topic: str
    partition: int
    name: str
    sizes: Sequence[int]
    in_flight: int
    chance: SystemChance
    timeout_ms: int = 30_000
    acknowledged: dict[int, int] = field(default_factory=dict)
    """The number of each acknowledged record, by its offset."""
    is_stopping: bool = False
    _waiting: deque[Batch] = field(default_factory=deque)
    _next_number: int = 0
    _producer_id: int = -1

    async def run(self) -> None:
        """Write until told to stop, then until everything is acknowledged."""
        while self._waiting or not self.is_stopping:
            try:
                async with linked(self.port) as link:
                    await self._write(link)
            except NETWORK_TROUBLE:
                await CLOCK.sleep(0.05)

    async def _write(self, link: Link) -> None:
        if self._producer_id < 0:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
            answer = await link.call(ApiKey.INIT_PRODUCER_ID, INIT_PRODUCER_ID, request)
            assert answer.error_code == 0
            self._producer_id = answer.producer_id
        sent = 0
        while self._waiting or not self.is_stopping:
            while len(self._waiting) < self.in_flight and not self.is_stopping:
                self._waiting.append(self._make_batch())
            for batch in list(self._waiting)[sent:]:
                link.send(ApiKey.PRODUCE, PRODUCE, self._request(batch))
                await link.writer.drain()
            sent = len(self._waiting)
            [answer] = (await link.receive()).responses[0].partition_responses
            if answer.error_code == 0:
                batch = self._waiting.popleft()
                sent -= 1
                self._note(batch, answer.base_offset)
            elif answer.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                await self._look_for_lost_answers()
                return
            else:
                assert answer.error_code in RETRIABLE, answer.error_message
                await CLOCK.sleep(0.05)
                return

    def _make_batch(self) -> Batch:
        size = self.sizes[self.chance.below(len(self.sizes))]
        count = 1 + self.chance.below(20) if size < 10_000 else 1
        values = [f"{self.name} {self._next_number + at} ".encode().ljust(size, b".") for at in range(count)]
        records = [Record(at, CLOCK.now_ms(), None, value) for at, value in enumerate(values)]
        data = build_batch(records, producer_id=self._producer_id, producer_epoch=0, base_sequence=self._next_number)
        batch = Batch(self._next_number, count, bytes(data))
        self._next_number += count
        return batch

    def _request(self, batch: Batch) -> ProduceRequest:
        data = PartitionProduceData(index=self.partition, records=batch.data)
        topic = TopicProduceData(name=self.topic, partition_data=[data])
        return ProduceRequest(acks=-1, timeout_ms=self.timeout_ms, topic_data=[topic])

    def _note(self, batch: Batch, first_offset: int) -> None:
        for at in range(batch.size):
            self.acknowledged[first_offset + at] = batch.first_number + at

    async def _look_for_lost_answers(self) -> None:
        """A restarted log may know only a producer's newest batch. Those before it must be there."""
        found = await read_partition(self.port, self.topic, self.partition)
        offsets = {record.number: record.offset for record in found if record.writer == self.name}
        assert self._waiting[0].first_number in offsets, f"{self.name} was refused what is not in the log"
        while self._waiting and self._waiting[0].first_number in offsets:
            batch = self._waiting.popleft()
            self._note(batch, offsets[batch.first_number])


@dataclass(slots=True)
class Tail:
    """Follows partitions in one incremental fetch session with long polls, and checks each record as it comes."""

    port: int
    partitions: Sequence[tuple[str, int]]
    min_bytes: int = 1
    records: int = 0
    is_stopping: bool = False
    _offsets: Counter[tuple[str, int]] = field(default_factory=Counter)

    async def run(self) -> None:
        while not self.is_stopping:
            try:
                async with linked(self.port) as link:
                    await self._follow(link)
            except NETWORK_TROUBLE:
                await CLOCK.sleep(0.05)

    async def _follow(self, link: Link) -> None:
        session, epoch, changed = 0, 0, set(self.partitions)
        while not self.is_stopping:
            topics = [
                FetchTopic(
                    topic=topic,
                    partitions=[
                        FetchPartition(partition=p, fetch_offset=self._offsets[t, p], partition_max_bytes=1_000_000)
                        for t, p in sorted(changed)
                        if t == topic
                    ],
                )
                for topic in sorted({topic for topic, _ in changed})
            ]
            request = FetchRequest(
                max_wait_ms=300,
                min_bytes=self.min_bytes,
                max_bytes=5_000_000,
                session_id=session,
                session_epoch=epoch,
                topics=topics,
            )
            response = await link.call(ApiKey.FETCH, FETCH, request)
            assert response.error_code == 0
            assert response.session_id > 0
            session, epoch, changed = response.session_id, epoch + 1, set()
            for topic in response.responses:
                for answer in topic.partitions:
                    if answer.error_code:
                        assert answer.error_code in RETRIABLE
                        return
                    if answer.records:
                        self._take((topic.topic, answer.partition_index), bytes(answer.records))
                        changed.add((topic.topic, answer.partition_index))

    def _take(self, place: tuple[str, int], data: bytes) -> None:
        for record in records_in(data):
            if record.offset >= self._offsets[place]:
                assert record.offset == self._offsets[place], f"a gap in {place} before {record}"
                self._offsets[place] += 1
                self.records += 1


def judge(producers: Sequence[PipelinedProducer], found: Sequence[Found]) -> list[str]:
    """What is wrong with one partition, given the producers that wrote to it."""
    wrong = []
    if [record.offset for record in found] != list(range(len(found))):
        wrong.append("the offsets have gaps")
    at = {record.offset: (record.writer, record.number) for record in found}
    for producer in producers:
        numbers = [record.number for record in found if record.writer == producer.name]
        if numbers != list(range(len(numbers))):
            wrong.append(f"records of {producer.name} are lost, doubled or out of order")
        for offset, number in producer.acknowledged.items():
            if at.get(offset) != (producer.name, number):
                wrong.append(f"{producer.name} {number} was acknowledged at {offset}, where {at.get(offset)} is")
    return wrong
