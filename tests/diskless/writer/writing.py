"""A writer on a real store and a real control plane, both of which a test can hold up and make fail."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from strandline.clock import Clock, SystemChance, SystemClock, SystemIds
from strandline.controlplane import BatchCommits, CommittedBatch, FileToCommit, FindBatches, SqlControlPlane
from strandline.diskless.values import CommittedBlock, DisklessAppend, DisklessAppended
from strandline.diskless.writer import WalWriter, WriterLimits
from strandline.errors import StrandlineError
from strandline.model import Offset, TopicIdPartition
from strandline.objects import ObjectStore
from strandline.objects.opening import open_objects
from strandline.objects.store import Buffer, ObjectInfo, ObjectRange, ObjectStoreError
from strandline.records import Record, TimestampType, build_batch, iter_headers, read_header
from strandline.sql import open_store
from strandline.testing.objects import FaultyStore
from tests.diskless.batches import NOON_MS, TOPIC_A, TOPIC_B
from tests.partitions import id_partition
from tests.waiting import until

P0 = id_partition(TOPIC_A, 0)
P1 = id_partition(TOPIC_A, 1)
UNKNOWN = id_partition(TOPIC_B, 0)
LIMITS = WriterLimits(max_bytes=8000, max_pending_bytes=100_000, parallel_uploads=4)


def batch(
    partition: TopicIdPartition = P0,
    *,
    records: int = 1,
    producer: int = -1,
    epoch: int = 0,
    sequence: int = -1,
    value: bytes = b"value",
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    leader_epoch: int = 0,
) -> DisklessAppend:
    """One batch; an idempotent one with a producer and a sequence."""
    buffer = build_batch(
        [Record(i, NOON_MS + i, None, value) for i in range(records)],
        producer_id=producer,
        producer_epoch=epoch if producer >= 0 else -1,
        base_sequence=sequence,
    )
    return DisklessAppend(partition, buffer, read_header(buffer), timestamp_type, leader_epoch)


class HeldStore:
    """Passes everything on to a store. While `is_held`, each write waits for what the test says."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.is_held = False
        self.held: list[tuple[str, asyncio.Future[Exception | None]]] = []
        self.failures: deque[Exception] = deque()
        self.deleted: list[str] = []
        self.most_at_once = 0
        self.puts = 0

    @property
    def url(self) -> str:
        return self._store.url

    async def put(self, key: str, parts: Sequence[Buffer]) -> None:
        self.puts += 1
        if self.failures:
            raise self.failures.popleft()
        if self.is_held:
            future: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
            self.held.append((key, future))
            self.most_at_once = max(self.most_at_once, len(self.held))
            if (failure := await future) is not None:
                raise failure
        await self._store.put(key, parts)

    def release(self, index: int = 0, failure: Exception | None = None) -> None:
        """Let the write at `index` of those that wait go on, or fail."""
        _, future = self.held.pop(index)
        if not future.cancelled():
            future.set_result(failure)

    def release_all(self) -> None:
        """Hold nothing any more."""
        self.is_held = False
        while self.held:
            self.release()

    async def put_new(self, key: str, parts: Sequence[Buffer]) -> None:
        await self._store.put_new(key, parts)

    async def put_file(self, key: str, path: Path) -> None:
        await self._store.put_file(key, path)

    async def get(self, key: str) -> Buffer:
        return await self._store.get(key)

    async def get_range(self, key: str, start: int, length: int) -> Buffer:
        return await self._store.get_range(key, start, length)

    @property
    def ranges_at_once(self) -> int:
        return self._store.ranges_at_once

    async def get_ranges(self, ranges: Sequence[ObjectRange]) -> Sequence[Buffer | ObjectStoreError]:
        return await self._store.get_ranges(ranges)

    def list(self, prefix: str, *, after: str = "") -> AsyncGenerator[ObjectInfo, None]:
        return self._store.list(prefix, after=after)

    async def delete(self, keys: Sequence[str]) -> None:
        self.deleted += keys
        await self._store.delete(keys)

    async def keys(self) -> set[str]:
        """Every object there is."""
        return {info.key async for info in self._store.list("wal/")}


class HeldCommits:
    """Passes commits on to the control plane. Failures are used up one by one; held calls wait for `release`."""

    def __init__(self, commits: BatchCommits) -> None:
        self._commits = commits
        self.calls: list[list[str]] = []
        self.failures: deque[Exception] = deque()
        """Instead of a call."""
        self.lost_answers: deque[Exception] = deque()
        """Instead of the answer to a call that has happened."""
        self.is_busy = False
        """The database is at work."""
        self.gate = asyncio.Event()
        self.gate.set()

    async def commit_files(self, files: Sequence[FileToCommit]) -> Sequence[Sequence[CommittedBatch]]:
        self.calls.append([file.object_key for file in files])
        await self.gate.wait()
        if self.failures:
            raise self.failures.popleft()
        self.is_busy = True
        try:
            answers = await self._commits.commit_files(files)
        finally:
            self.is_busy = False
        if self.lost_answers:
            raise self.lost_answers.popleft()
        return answers


class Listening:
    """Remembers the notifications of readers."""

    def __init__(self) -> None:
        self.blocks: list[CommittedBlock] = []
        self.failure: Exception | None = None

    def committed(
        self, blocks: Sequence[CommittedBlock], *, log_start_offsets: Sequence[Offset], object_key: str
    ) -> None:
        assert len(blocks) == len(log_start_offsets)
        self.blocks += blocks
        if self.failure is not None:
            raise self.failure


@dataclass
class World:
    """Everything around one writer."""

    writer: WalWriter
    store: HeldStore
    faults: FaultyStore
    """Below `store`."""
    held_commits: HeldCommits
    plane: SqlControlPlane
    readers: Listening
    results: dict[int, DisklessAppended | StrandlineError] = field(default_factory=dict)
    answered: list[int] = field(default_factory=list)
    _sent: int = 0

    def send(self, one: DisklessAppend) -> int:
        """Append a batch; its number is the key of its result."""
        number, self._sent = self._sent, self._sent + 1

        def done(result: DisklessAppended | StrandlineError) -> None:
            assert number not in self.results
            self.results[number] = result
            self.answered.append(number)

        self.writer.append(one, done)
        assert number not in self.results
        return number

    async def result(self, number: int) -> DisklessAppended | StrandlineError:
        """What became of a batch."""
        await until(lambda: number in self.results, f"the answer to batch {number}")
        return self.results[number]

    async def offset(self, number: int) -> Offset:
        """The offset that a batch got."""
        result = await self.result(number)
        assert isinstance(result, DisklessAppended), result
        return result.base_offset

    async def error(self, number: int) -> StrandlineError:
        """Why a batch was refused."""
        result = await self.result(number)
        assert isinstance(result, StrandlineError), result
        return result

    async def high_watermark(self, partition: TopicIdPartition) -> Offset:
        return (await self.plane.reads.logs([partition]))[partition].high_watermark

    async def stored(self, partition: TopicIdPartition) -> list[tuple[Offset, bytes]]:
        """Every batch of a partition, in the order of offsets: its base offset, and its bytes as uploaded."""
        found: list[tuple[Offset, bytes]] = []
        offset = 0
        while True:
            (page,) = await self.plane.reads.find_batches([FindBatches(partition, offset, 1 << 30)], max_rows=1000)
            if not page.rows:
                return found
            for row in page.rows:
                assert row.base_offset == offset
                data = bytes(await self.store.get_range(row.object_key, row.byte_offset, row.byte_size))
                for position, header in iter_headers(data):
                    found.append((offset, data[position : position + header.size]))
                    offset += header.last_offset_delta + 1
                assert offset == row.last_offset + 1


@asynccontextmanager
async def open_world(
    path: Path,
    *,
    limits: WriterLimits = LIMITS,
    clock: Clock | None = None,
    time: Clock | None = None,
    objects_url: str | None = None,
) -> AsyncIterator[World]:
    """A writer on a directory and a SQLite file. At the end it is closed, and nothing may be left undone.

    `clock` is the broker's, `time` the database's.
    """
    async with (
        open_objects(objects_url or f"file://{path}/objects") as objects,
        open_store(f"sqlite:///{path}/metadata.db") as sql,
    ):
        plane = SqlControlPlane(sql, clock=clock, time=time)
        await plane.lifecycle.create_logs([P0, P1])
        faults = FaultyStore(objects, clock or SystemClock())
        store, held_commits, readers = HeldStore(faults), HeldCommits(plane.commits), Listening()
        writer = WalWriter(
            store,
            held_commits,
            readers,
            limits,
            broker_id=7,
            cluster_id="a-cluster",
            clock=clock or SystemClock(),
            ids=SystemIds(),
            chance=SystemChance(),
        )
        yield World(writer, store, faults, held_commits, plane, readers)
        store.release_all()
        held_commits.gate.set()
        await writer.close(within=10)
        status = writer.status()
        assert (status.pending_bytes, status.oldest_pending_seconds) == (0, 0)
