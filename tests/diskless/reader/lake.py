"""A control plane, an object store and a reader on top of them, with a model of what readers should see."""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from strandline.controlplane import AbortedRange, BatchToCommit, CommittedBatch, FileToCommit, SqlControlPlane
from strandline.diskless.reader import DisklessReader, DisklessReaderLimits
from strandline.diskless.reader.tails import Announcements
from strandline.diskless.values import CommittedBlock, DisklessAppend, DisklessRead, marker_to_commit
from strandline.diskless.wal import pack
from strandline.errors import StrandlineError
from strandline.model import NO_TIMESTAMP, TopicIdPartition
from strandline.objects import ObjectStore
from strandline.objects.opening import open_objects
from strandline.reads import FetchIsolation, ReadResult
from strandline.records import Codec, Record, TimestampType, build_batch, read_header, stamp, stamp_log_append_time
from strandline.records.control import ControlType, EndTransactionMarker, build_marker
from strandline.sql import SqlStore, open_store
from strandline.testing.clock import VirtualClock
from strandline.testing.objects import FaultyStore
from tests.diskless.batches import NOON_MS, TOPIC_A
from tests.partitions import id_partition
from tests.reads import found

PARTITIONS = tuple(id_partition(TOPIC_A, index) for index in range(16))
P0, P1, P2 = PARTITIONS[:3]
HOUR_MS = 3_600_000
LONG_AGO = NOON_MS - HOUR_MS


class ModelBatch(NamedTuple):
    base_offset: int
    last_offset: int
    data: bytes


class Write(NamedTuple):
    """One batch to write."""

    partition: TopicIdPartition = P0
    records: int = 1
    size: int = 100
    timestamp: int = NOON_MS
    """Of the first record; each next one has `step_ms` more."""
    step_ms: int = 0
    codec: Codec = Codec.NONE
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    producer: tuple[int, int, int] = (-1, -1, -1)
    """Id, epoch and first sequence."""
    is_transactional: bool = False
    ends: ControlType | None = None
    """A marker of the producer, instead of records."""


class Lake:
    """Everything below a reader, real, with a writer that is as simple as can be."""

    def __init__(self, store: SqlStore, objects: ObjectStore, clock: VirtualClock) -> None:
        self.store = store
        self.plane = SqlControlPlane(store, clock=clock, time=clock)
        self.objects = FaultyStore(objects, clock)
        self.clock = clock
        self.model: defaultdict[TopicIdPartition, list[ModelBatch]] = defaultdict(list)
        self.deleted: set[TopicIdPartition] = set()
        """Partitions that the metadata does not have any more."""
        self._numbers = itertools.count()

    @property
    def gets(self) -> int:
        """Reads of objects so far."""
        return self.objects.count("get_range")

    async def create(self, partitions: Sequence[TopicIdPartition] = PARTITIONS) -> None:
        await self.plane.lifecycle.create_logs(partitions)

    def reader(
        self,
        limits: DisklessReaderLimits | None = None,
        *,
        announcements: Announcements | None = None,
        objects: ObjectStore | None = None,
    ) -> DisklessReader:
        return DisklessReader(
            self.plane.reads,
            announcements or self.store,
            objects or self.objects,
            clock=self.clock,
            limits=limits or DisklessReaderLimits(),
            is_known=lambda partition: partition not in self.deleted,
        )

    async def write(self, *writes: Write, reader: DisklessReader | None = None, leader_epoch: int = 3) -> str:
        """One WAL object with these batches, committed; its key. `reader` is notified, as by the writer."""
        appends = [_append(write, leader_epoch) for write in writes]
        packed = pack(appends, broker_id=1, cluster_id="lake", created_ms=self.clock.now_ms())
        key = f"wal/2023111512/1-{next(self._numbers):06}"
        await self.objects.put(key, packed.parts)
        placed = [(appends[index], byte_offset) for index, byte_offset in packed.placed]
        file = FileToCommit(
            object_key=key,
            size=packed.size,
            broker_id=1,
            batches=tuple(
                BatchToCommit(
                    partition=append.partition,
                    byte_offset=byte_offset,
                    byte_size=len(append.buffer),
                    record_count=append.header.record_count,
                    max_timestamp=append.header.max_timestamp,
                    timestamp_type=append.timestamp_type,
                    leader_epoch=append.leader_epoch,
                    producer_id=append.header.producer_id,
                    producer_epoch=append.header.producer_epoch,
                    base_sequence=append.header.base_sequence,
                    is_transactional=append.header.is_transactional,
                    marker=append.marker,
                )
                for append, byte_offset in placed
            ),
        )
        (answers,) = await self.plane.commits.commit_files([file])
        self._committed(key, [append for append, _ in placed], answers, reader)
        return key

    def _committed(
        self,
        key: str,
        appends: Sequence[DisklessAppend],
        answers: Sequence[CommittedBatch],
        reader: DisklessReader | None,
    ) -> None:
        grouped: dict[TopicIdPartition, list[tuple[DisklessAppend, CommittedBatch]]] = {}
        for append, answer in zip(appends, answers, strict=True):
            assert answer.refusal is None, answer.message
            stamp(append.buffer, 0, answer.base_offset, answer.leader_epoch)
            if append.timestamp_type is TimestampType.LOG_APPEND_TIME:
                stamp_log_append_time(append.buffer, 0, answer.log_append_time_ms)
            last_offset = answer.base_offset + append.header.last_offset_delta
            self.model[append.partition].append(ModelBatch(answer.base_offset, last_offset, bytes(append.buffer)))
            grouped.setdefault(append.partition, []).append((append, answer))
        if reader is not None:
            blocks = [
                CommittedBlock(
                    partition,
                    batches[0][1].base_offset,
                    batches[-1][1].base_offset + batches[-1][0].header.last_offset_delta,
                    tuple(append.buffer for append, _ in batches),
                    max(append.header.max_timestamp for append, _ in batches),
                    batches[-1][1].first_unstable_offset,
                    batches[-1][1].last_aborted_offset,
                    tuple(_aborted(append, answer) for append, answer in batches if answer.aborted_from >= 0),
                )
                for partition, batches in grouped.items()
            ]
            starts = [batches[-1][1].log_start_offset for batches in grouped.values()]
            reader.committed(blocks, log_start_offsets=starts, object_key=key)

    def high_watermark(self, partition: TopicIdPartition) -> int:
        batches = self.model[partition]
        return batches[-1].last_offset + 1 if batches else 0

    def batches_from(self, partition: TopicIdPartition, offset: int) -> list[ModelBatch]:
        return [batch for batch in self.model[partition] if batch.last_offset >= offset]

    def expected(
        self, partition: TopicIdPartition, offset: int, max_bytes: int = 1 << 30, *, min_one: bool = True
    ) -> bytes:
        """The whole batches from `offset` on that fit."""
        data = b""
        for batch in self.batches_from(partition, offset):
            if len(data) + len(batch.data) > max_bytes and (data or not min_one):
                break
            data += batch.data
        return data

    async def settled(self, reader: DisklessReader) -> None:
        """Wait until no download and no reading ahead is under way."""
        while True:
            tasks = [
                task for task in asyncio.all_tasks() if task.get_name() in ("diskless-download", "diskless-read-ahead")
            ]
            if not tasks:
                return
            await asyncio.wait(tasks)


def _aborted(append: DisklessAppend, answer: CommittedBatch) -> AbortedRange:
    stable = answer.first_unstable_offset if answer.first_unstable_offset >= 0 else answer.base_offset + 1
    return AbortedRange(append.header.producer_id, answer.aborted_from, answer.base_offset, stable)


def _append(write: Write, leader_epoch: int) -> DisklessAppend:
    if write.ends is not None:
        end = EndTransactionMarker(write.ends, 0)
        producer_id, epoch, _ = write.producer
        marker = build_marker(end, producer_id=producer_id, producer_epoch=epoch, timestamp_ms=write.timestamp)
        return DisklessAppend(
            write.partition,
            marker,
            read_header(marker),
            TimestampType.CREATE_TIME,
            leader_epoch,
            marker_to_commit(memoryview(marker), 0, NO_TIMESTAMP),
        )
    records = [Record(i, write.timestamp + i * write.step_ms, None, b"x" * write.size) for i in range(write.records)]
    producer_id, epoch, sequence = write.producer
    buffer = build_batch(
        records,
        codec=write.codec,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=write.is_transactional,
    )
    return DisklessAppend(write.partition, buffer, read_header(buffer), write.timestamp_type, leader_epoch)


@asynccontextmanager
async def open_lake(url: str = "sqlite:///:memory:", *, create: bool = True) -> AsyncIterator[Lake]:
    clock = VirtualClock(NOON_MS)
    async with open_store(url) as store, open_objects("memory://") as objects:
        lake = Lake(store, objects, clock)
        if create:
            await lake.create()
        yield lake


def data_of(answer: ReadResult | StrandlineError | None) -> bytes:
    """The bytes of a result that has them."""
    result = found(answer)
    if result.records is None:
        return b""
    data = result.records.read()
    assert len(data) == result.records.length
    return data


async def read_one(
    reader: DisklessReader,
    partition: TopicIdPartition,
    offset: int,
    max_bytes: int = 1 << 20,
    isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
) -> ReadResult | StrandlineError:
    """One partition, from memory if that is possible, as the Fetch handler does it."""
    request = DisklessRead(partition, offset, max_bytes, isolation)
    try:
        now = reader.read_now(request, min_one_message=True)
    except StrandlineError as error:
        return error
    if now is not None:
        return now
    (result,) = await reader.read([request], max_bytes=max_bytes)
    return result


async def read_to_end(
    reader: DisklessReader, partition: TopicIdPartition, offset: int, max_bytes: int = 1 << 20
) -> tuple[bytes, int]:
    """Everything from `offset` on, and how many reads it took."""
    data, reads = b"", 0
    while True:
        result = found(await read_one(reader, partition, offset, max_bytes))
        got = data_of(result)
        if not got:
            assert offset == result.high_watermark
            return data, reads
        reads += 1
        data += got
        position = 0
        while position < len(got):
            header = read_header(got, position)
            assert header.base_offset <= offset or position
            offset = header.next_offset
            position += header.size
