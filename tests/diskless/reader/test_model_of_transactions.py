"""Readers of committed records, on two brokers: nobody sees what is not decided, and everybody learns what was aborted.

One broker hears of its own commits only, as if every announcement were late: what it has in memory may be old.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from strandline.diskless.reader import DisklessReader, DisklessReaderLimits
from strandline.diskless.values import DisklessRead
from strandline.reads import AbortedTransaction, FetchIsolation, ReadResult
from strandline.records import BatchHeader, iter_headers
from strandline.records.control import ControlType, read_marker
from tests.diskless.reader.lake import P0, Lake, Write, open_lake, read_one
from tests.reads import found

COMMITTED = FetchIsolation.TXN_COMMITTED
ids = st.integers(1, 3)


class Aborted(NamedTuple):
    """A transaction that was aborted, with the offset of its marker."""

    producer_id: int
    first: int
    last: int


class CommittedReadersAgainstModel(RuleBasedStateMachine):
    """The model knows of every batch whether it is plain, open, committed or aborted."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.end = 0
        self.start = 0
        self.open: dict[int, int] = {}
        self.sequences: dict[int, int] = {}
        self.pending: dict[int, list[int]] = {}
        """Offsets of open transactions."""
        self.visible: set[int] = set()
        """Offsets of records that are committed, or outside of any transaction."""
        self.aborted: list[Aborted] = []

    @property
    def stable(self) -> int:
        return max(min(self.open.values(), default=self.end), self.start)

    @initialize(cache=st.sampled_from([0, 2_000, 1 << 26]), max_rows=st.sampled_from([0, 1, 3]))
    def begin(self, cache: int, max_rows: int) -> None:
        self.lake: Lake = self.runner.run(self.stack.enter_async_context(open_lake()))
        limits = DisklessReaderLimits(cache_max_bytes=cache, max_rows=max_rows)
        self.readers = [self.lake.reader(limits), self.lake.reader(limits)]

    def batch(self, producer_id: int, count: int, kind: str) -> Write:
        """The next batch of a history, which the model takes over."""
        offset = self.end
        if kind in ("commit", "abort"):
            self.end += 1
            first = self.open.pop(producer_id, None)
            offsets = self.pending.pop(producer_id, [])
            if kind == "commit":
                self.visible.update(offsets)
            elif first is not None:
                self.aborted.append(Aborted(producer_id, first, offset))
            ends = ControlType.COMMIT if kind == "commit" else ControlType.ABORT
            return Write(producer=(producer_id, 0, -1), ends=ends)
        self.end += count
        offsets = list(range(offset, offset + count))
        if kind == "plain":
            self.visible.update(offsets)
            return Write(records=count, size=20)
        self.open.setdefault(producer_id, offset)
        self.pending.setdefault(producer_id, []).extend(offsets)
        sequence = self.sequences.get(producer_id, 0)
        self.sequences[producer_id] = sequence + count
        return Write(records=count, size=20, producer=(producer_id, 0, sequence), is_transactional=True)

    @rule(
        items=st.lists(
            st.tuples(ids, st.integers(1, 3), st.sampled_from(["data", "data", "data", "plain", "commit", "abort"])),
            min_size=1,
            max_size=6,
        ),
        which=st.sampled_from([0, 1, None]),
    )
    def write(self, items: list[tuple[int, int, str]], which: int | None) -> None:
        """By one of the two brokers, or by a third."""
        writes = [self.batch(*item) for item in items]
        self.runner.run(self.lake.write(*writes, reader=None if which is None else self.readers[which]))

    @rule(part=st.floats(0, 1))
    def delete_records(self, part: float) -> None:
        self.start += round((self.end - self.start) * part)
        self.runner.run(self.lake.plane.trimming.delete_records({P0: self.start}))
        for reader in self.readers:
            reader.log_start_moved(P0, self.start)

    @rule(seconds=st.sampled_from([0.5, 30.0]))
    def wait(self, seconds: float) -> None:
        self.runner.run(self.lake.clock.advance(seconds))

    @rule(which=st.integers(0, 1), part=st.floats(0, 1), limit=st.integers(1, 800))
    def read(self, which: int, part: float, limit: int) -> None:
        offset = self.start + round((self.end - self.start) * part)
        answer = self.runner.run(
            self.readers[which].read([DisklessRead(P0, offset, limit, COMMITTED)], max_bytes=limit)
        )
        result = found(answer[0])
        headers = self.check(offset, result)
        if offset < self.stable:
            assert headers, "there is something to read, and the control plane was asked if memory did not have it"

    @rule(which=st.integers(0, 1), part=st.floats(0, 1), limit=st.integers(1, 800), min_one=st.booleans())
    def read_now(self, which: int, part: float, limit: int, min_one: bool) -> None:
        offset = self.start + round((self.end - self.start) * part)

        async def now() -> ReadResult | None:
            return self.readers[which].read_now(DisklessRead(P0, offset, limit, COMMITTED), min_one_message=min_one)

        result = self.runner.run(now())
        if result is not None:
            self.check(offset, result)

    def check(self, offset: int, result: ReadResult) -> list[BatchHeader]:
        """Nothing undecided, a last stable offset that may be old but never too high, all aborted transactions."""
        data = b"" if result.records is None else result.records.read()
        headers = [header for _, header in iter_headers(data)]
        assert result.last_stable_offset <= self.stable
        assert result.high_watermark <= self.end
        assert result.aborted_transactions is not None
        if not headers:
            return headers
        end = headers[-1].next_offset
        assert end <= self.stable
        named = set(result.aborted_transactions)
        assert len(named) == len(result.aborted_transactions)
        assert named == {
            AbortedTransaction(one.producer_id, one.first)
            for one in self.aborted
            if one.last >= offset and one.first < end
        }
        return headers

    @rule(which=st.integers(0, 1), limit=st.integers(1, 600))
    def consume(self, which: int, limit: int) -> None:
        """A consumer from the start on skips aborted records as clients do, and has the committed ones."""
        reader, offset, seen = self.readers[which], self.start, set()
        while offset < self.stable:
            result = self.runner.run(self.read_committed(reader, offset, limit))
            data = b"" if result.records is None else result.records.read()
            got = _without_aborted(data, result.aborted_transactions or [])
            seen |= {at for header in got for at in range(header.base_offset, header.next_offset)}
            offset = [header.next_offset for _, header in iter_headers(data)][-1]
        assert {at for at in seen if at >= self.start} == {at for at in self.visible if self.start <= at < self.stable}

    async def read_committed(self, reader: DisklessReader, offset: int, limit: int) -> ReadResult:
        """What memory has may be old: the consumer asks again until there is something."""
        result = found(await read_one(reader, P0, offset, limit, COMMITTED))
        if result.records is None:
            await self.lake.clock.advance(60)
            result = found(await read_one(reader, P0, offset, limit, COMMITTED))
        assert result.records is not None
        return result

    @invariant()
    def control_plane_agrees(self) -> None:
        if not hasattr(self, "lake"):
            return
        log = self.runner.run(self.lake.plane.reads.logs([P0]))[P0]
        assert (log.high_watermark, log.last_stable_offset) == (self.end, self.stable)

    def teardown(self) -> None:
        self.runner.run(self.stack.aclose())
        self.runner.close()


def _without_aborted(data: bytes, aborted: list[AbortedTransaction]) -> list[BatchHeader]:
    """The batches that a client gives to its application."""
    waiting = sorted(aborted, key=lambda one: one.first_offset)
    skipped: set[int] = set()
    kept = []
    for position, header in iter_headers(data):
        while waiting and waiting[0].first_offset <= header.last_offset:
            skipped.add(waiting.pop(0).producer_id)
        if header.is_control:
            marker = read_marker(data[position : position + header.size])
            if marker is not None and marker.is_abort:
                skipped.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in skipped):
            kept.append(header)
    return kept


CommittedReadersAgainstModel.TestCase.settings = settings(stateful_step_count=30)
TestCommittedReaders = CommittedReadersAgainstModel.TestCase
