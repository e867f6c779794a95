"""Any mix of writes, conversions, deletions and reads on two brokers: the bytes are those of the log, in order.

The brokers share nothing but the control plane and the stores, and hear of the read boundary only when they ask.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import defaultdict
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from strandline.diskless.reader import DisklessReaderLimits
from strandline.errors import OffsetOutOfRange
from strandline.model import TopicIdPartition
from strandline.reads import EARLIEST, FetchIsolation, FoundOffset, ReadResult
from strandline.records import Codec, TimestampType, iter_headers, read_records
from strandline.remote.values import RemoteLogSegmentMetadata
from tests.diskless.batches import NOON_MS
from tests.diskless.reader.lake import LONG_AGO, P0, P1, Write, data_of
from tests.hybrid.diskless.converting import open_converting

partitions = st.sampled_from([P0, P1])
brokers = st.integers(0, 1)
writes = st.builds(
    Write,
    partition=partitions,
    records=st.integers(1, 4),
    size=st.integers(0, 300),
    timestamp=st.sampled_from([NOON_MS, LONG_AGO, NOON_MS + 1]),
    step_ms=st.integers(0, 1),
    codec=st.sampled_from([Codec.NONE, Codec.LZ4]),
    timestamp_type=st.sampled_from(TimestampType),
    producer=st.just((-1, -1, -1)),
    is_transactional=st.just(False),
    ends=st.none(),
)


class ConversionAgainstModel(RuleBasedStateMachine):
    """Two brokers that read, of which the first is told of what it writes."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.over = asyncio.Event()
        self.living: asyncio.Task[None] | None = None
        self.starts: defaultdict[TopicIdPartition, int] = defaultdict(int)
        self.rows: defaultdict[TopicIdPartition, list[int]] = defaultdict(list)
        """Where the rows of a log end, of those that are not converted."""
        self.segments: defaultdict[TopicIdPartition, list[RemoteLogSegmentMetadata]] = defaultdict(list)
        self.epoch = 0

    @initialize(cache=st.sampled_from([0, 2000, 1 << 26]), max_rows=st.sampled_from([0, 1, 3]))
    def open(self, cache: int, max_rows: int) -> None:
        limits = DisklessReaderLimits(cache_max_bytes=cache, max_rows=max_rows)
        self.runner.run(self.begin(limits))

    async def begin(self, limits: DisklessReaderLimits) -> None:
        is_open = asyncio.Event()

        async def live() -> None:  # one task opens the world and closes it
            with tempfile.TemporaryDirectory() as directory:
                async with open_converting(Path(directory)) as self.world:
                    for _ in range(2):
                        await self.world.broker(limits)
                    is_open.set()
                    await self.over.wait()

        self.living = asyncio.create_task(live())
        await is_open.wait()

    @rule(batches=st.lists(writes, min_size=1, max_size=6), is_new_epoch=st.booleans())
    def write(self, batches: list[Write], is_new_epoch: bool) -> None:
        self.epoch += is_new_epoch
        lake = self.world.lake
        self.runner.run(lake.write(*batches, reader=self.world.brokers[0].reader, leader_epoch=self.epoch))
        for partition in {write.partition for write in batches}:
            self.rows[partition].append(lake.high_watermark(partition))

    @rule(partition=partitions, rows=st.integers(1, 3), is_committed=st.booleans())
    def convert(self, partition: TopicIdPartition, rows: int, is_committed: bool) -> None:
        """A segment of some rows; the read boundary follows at once, or with the next segment."""
        known = self.rows[partition]
        end = known[min(rows, len(known)) - 1] if known else 0
        if end <= self.starts[partition]:
            return
        start = max(self.world.converted[partition], self.starts[partition])
        if start > self.world.converted[partition]:
            return  # rows below were deleted: nothing is left to build a segment of
        del known[: known.index(end) + 1]
        self.segments[partition].append(self.runner.run(self.world.upload(partition, end)))
        if is_committed:
            self.runner.run(self.world.move_boundary(partition, end))

    @rule(partition=partitions, part=st.floats(0, 1), is_told=st.booleans())
    def delete_records(self, partition: TopicIdPartition, part: float, is_told: bool) -> None:
        end, start = self.world.lake.high_watermark(partition), self.starts[partition]
        self.starts[partition] = offset = start + round((end - start) * part)
        self.runner.run(self.world.plane.trimming.delete_records({partition: offset}))
        if is_told:
            self.world.brokers[0].reader.log_start_moved(partition, offset)

    @rule(partition=partitions)
    def expire(self, partition: TopicIdPartition) -> None:
        for segment in tuple(self.segments[partition]):
            if segment.end_offset < self.starts[partition]:
                self.segments[partition].remove(segment)
                self.runner.run(self.world.delete_segment(segment))

    @rule(
        which=brokers,
        asked=st.lists(st.tuples(partitions, st.floats(0, 1), st.integers(1, 1500)), min_size=1, max_size=3),
        max_bytes=st.integers(1, 3000),
        isolation=st.sampled_from([FetchIsolation.HIGH_WATERMARK, FetchIsolation.TXN_COMMITTED]),
    )
    def read(
        self, which: int, asked: list[tuple[TopicIdPartition, float, int]], max_bytes: int, isolation: FetchIsolation
    ) -> None:
        lake, broker = self.world.lake, self.world.brokers[which]
        wanted = [(partition, int(lake.high_watermark(partition) * part), limit) for partition, part, limit in asked]
        answers = self.runner.run(broker.answers(wanted, max_bytes, isolation=isolation))
        for (partition, offset, _), answer in zip(wanted, answers, strict=True):
            start = self.starts[partition]
            if isinstance(answer, OffsetOutOfRange):
                assert offset < start
                continue
            assert isinstance(answer, ReadResult), answer
            assert lake.expected(partition, offset).startswith(data_of(answer))
            assert answer.high_watermark <= lake.high_watermark(partition)
            assert answer.log_start_offset <= start
        results = [
            (offset, one) for (_, offset, _), one in zip(wanted, answers, strict=True) if isinstance(one, ReadResult)
        ]
        # A broker does not hear of the other's commits here.
        assert any(data_of(one) for _, one in results) or all(offset >= one.high_watermark for offset, one in results)

    @rule(which=brokers, partition=partitions, limit=st.integers(1, 2000))
    def read_everything(self, which: int, partition: TopicIdPartition, limit: int) -> None:
        start, broker = self.starts[partition], self.world.brokers[which]
        self.runner.run(broker.reader.refresh([partition]))
        data = self.runner.run(broker.read_all(partition, start, limit))
        assert data == self.world.lake.expected(partition, start)

    @rule(which=brokers, partition=partitions, timestamp=st.sampled_from([LONG_AGO, NOON_MS, NOON_MS + 1, NOON_MS + 2]))
    def search(self, which: int, partition: TopicIdPartition, timestamp: int) -> None:
        answer = self.runner.run(self.world.brokers[which].list_offset(partition, timestamp))
        assert answer == next((one for one in self.records(partition) if one.timestamp >= timestamp), (-1, -1, -1))

    @rule(which=brokers, partition=partitions)
    def search_the_first(self, which: int, partition: TopicIdPartition) -> None:
        answer = self.runner.run(self.world.brokers[which].list_offset(partition, EARLIEST))
        first = next(iter(self.records(partition)), None)
        assert answer == (-1, self.starts[partition], -1 if first is None else first.leader_epoch)

    def records(self, partition: TopicIdPartition) -> list[FoundOffset]:
        """Every record that may be read."""
        start, data = self.starts[partition], self.world.lake.expected(partition, self.starts[partition])
        return [
            FoundOffset(record.timestamp, record.offset, header.leader_epoch)
            for position, header in iter_headers(data)
            for record in read_records(data[position : position + header.size])
            if record.offset >= start
        ]

    def teardown(self) -> None:
        self.runner.run(self.end())
        self.runner.close()

    async def end(self) -> None:
        self.over.set()
        if self.living is not None:
            await self.living


ConversionAgainstModel.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestConversionAgainstModel = ConversionAgainstModel.TestCase
