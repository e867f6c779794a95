"""Any mix of writes, reads and deletions: the reader gives the model's bytes, whole, dense and within the limits."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from strandline.diskless.reader import DisklessReaderLimits
from strandline.diskless.values import DisklessRead
from strandline.errors import OffsetOutOfRange, StrandlineError
from strandline.model import TopicIdPartition
from strandline.reads import ReadResult
from strandline.records import Codec, TimestampType
from tests.diskless.batches import NOON_MS
from tests.diskless.reader.lake import LONG_AGO, PARTITIONS, Lake, Write, data_of, open_lake, read_to_end
from tests.reads import found

writes = st.builds(
    Write,
    partition=st.sampled_from(PARTITIONS[:3]),
    records=st.integers(1, 4),
    size=st.integers(0, 300),
    timestamp=st.sampled_from([NOON_MS, LONG_AGO]),
    step_ms=st.just(0),
    codec=st.sampled_from([Codec.NONE, Codec.LZ4]),
    timestamp_type=st.sampled_from(TimestampType),
    producer=st.just((-1, -1, -1)),
    is_transactional=st.just(False),
    ends=st.none(),
)


class ReaderAgainstModel(RuleBasedStateMachine):
    """Two readers of one lake: each is notified of its own commits only."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.starts = dict.fromkeys(PARTITIONS, 0)

    @initialize(
        cache=st.sampled_from([0, 3000, 20_000, 1 << 26]),
        lagging=st.integers(0, 2),
        max_rows=st.sampled_from([0, 1, 3]),
    )
    def open(self, cache: int, lagging: int, max_rows: int) -> None:
        self.lake: Lake = self.runner.run(self.stack.enter_async_context(open_lake()))
        limits = DisklessReaderLimits(
            cache_max_bytes=cache, parallel_reads=2, parallel_lagging_reads=lagging, max_rows=max_rows
        )
        self.readers = [self.lake.reader(limits), self.lake.reader(limits)]

    @rule(batches=st.lists(writes, min_size=1, max_size=8), which=st.integers(0, 1))
    def write(self, batches: list[Write], which: int) -> None:
        self.runner.run(self.lake.write(*batches, reader=self.readers[which]))

    @rule(partition=st.sampled_from(PARTITIONS[:3]), part=st.floats(0, 1), is_told=st.booleans())
    def delete_records(self, partition: TopicIdPartition, part: float, is_told: bool) -> None:
        end = self.lake.high_watermark(partition)
        start = self.starts[partition]
        self.starts[partition] = offset = start + round((end - start) * part)
        self.runner.run(self.lake.plane.trimming.delete_records({partition: offset}))
        if is_told:
            self.readers[0].log_start_moved(partition, offset)

    @rule(
        which=st.integers(0, 1),
        asked=st.lists(
            st.tuples(st.sampled_from(PARTITIONS[:3]), st.floats(-0.1, 1.1), st.integers(0, 1500)),
            min_size=1,
            max_size=4,
        ),
        max_bytes=st.integers(0, 3000),
    )
    def read(self, which: int, asked: list[tuple[TopicIdPartition, float, int]], max_bytes: int) -> None:
        requests = []
        for partition, part, limit in asked:
            offset = max(0, round(self.lake.high_watermark(partition) * part))
            requests.append(DisklessRead(partition, offset, limit))
        results = self.runner.run(self.readers[which].read(requests, max_bytes=max_bytes))
        total, exceeded = 0, False
        for request, result in zip(requests, results, strict=True):
            data = self.check(request, result)
            total += len(data)
            if data and not exceeded and len(data) == total and len(data) > min(request.max_bytes, max_bytes):
                exceeded = True
                first = self.lake.batches_from(request.partition, request.offset)[0].data
                assert data == first, "beyond the limits comes one batch, and it is the first of all"
            else:
                assert len(data) <= request.max_bytes
        assert total <= max_bytes or exceeded
        readable = [
            request
            for request, result in zip(requests, results, strict=True)
            if isinstance(result, ReadResult) and request.offset < self.lake.high_watermark(request.partition)
        ]
        assert total or not readable

    @rule(
        which=st.integers(0, 1),
        partition=st.sampled_from(PARTITIONS[:3]),
        part=st.floats(-0.1, 1.1),
        limit=st.integers(0, 1500),
        min_one=st.booleans(),
    )
    def read_now(self, which: int, partition: TopicIdPartition, part: float, limit: int, min_one: bool) -> None:
        offset = max(0, round(self.lake.high_watermark(partition) * part))
        request = DisklessRead(partition, offset, limit)

        async def now() -> ReadResult | None:
            return self.readers[which].read_now(request, min_one_message=min_one)

        try:
            result = self.runner.run(now())
        except OffsetOutOfRange:
            return
        if result is None:
            return
        data = b"" if result.records is None else result.records.read()
        known = [
            batch for batch in self.lake.batches_from(partition, offset) if batch.last_offset < result.high_watermark
        ]
        assert b"".join(batch.data for batch in known).startswith(data)
        if known and min_one:
            assert data
        assert len(data) <= limit or (min_one and data == known[0].data)

    @rule(which=st.integers(0, 1), partition=st.sampled_from(PARTITIONS[:3]), limit=st.integers(1, 2000))
    def read_everything(self, which: int, partition: TopicIdPartition, limit: int) -> None:
        start = self.starts[partition]
        reader = self.readers[which]
        # A reader does not hear of the other's commits here: let it look at the end of the log first.
        end = self.lake.high_watermark(partition)
        self.runner.run(reader.read([DisklessRead(partition, end, limit)], max_bytes=limit))
        data, _ = self.runner.run(read_to_end(reader, partition, start, limit))
        assert data == self.lake.expected(partition, start)

    def check(self, request: DisklessRead, answer: ReadResult | StrandlineError) -> bytes:
        """The bytes of a result, which are those of the model."""
        start, end = self.starts[request.partition], self.lake.high_watermark(request.partition)
        if isinstance(answer, OffsetOutOfRange):
            assert not start <= request.offset <= end
            return b""
        result = found(answer)
        data = data_of(result)
        assert b"".join(batch.data for batch in self.lake.batches_from(request.partition, request.offset)).startswith(
            data
        )
        assert result.high_watermark <= end
        assert result.log_start_offset <= start
        return data

    def teardown(self) -> None:
        self.runner.run(self.stack.aclose())
        self.runner.close()


ReaderAgainstModel.TestCase.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
TestReaderAgainstModel = ReaderAgainstModel.TestCase
