"""Any order of operations on a log agrees with a list of batches."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from strandline.config.topic import TopicConfig
from strandline.reads import FetchIsolation
from strandline.records.batch import iter_headers
from tests.log.harness import LogHarness, batch, headers_in


@dataclass(frozen=True)
class Batch:
    base: int
    last: int
    timestamp: int


class LogAgainstModel(RuleBasedStateMachine):
    """The model: the batches that must be readable, and where the log starts and ends."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        config = TopicConfig(
            internal_segment_bytes=700, index_interval_bytes=150, segment_index_bytes=64, retention_ms=60_000
        )
        self.harness = LogHarness(self.root, config)
        self.harness.create()
        self.batches: list[Batch] = []
        self.start = 0
        self.end = 0

    def teardown(self) -> None:
        self.harness.log.abandon()
        shutil.rmtree(self.root)

    @property
    def now(self) -> int:
        return self.harness.clock.now_ms()

    # Appending

    @rule(count=st.integers(1, 5), size=st.integers(0, 200), age=st.integers(0, 50_000))
    def append(self, count: int, size: int, age: int) -> None:
        timestamp = self.now - age
        info = self.harness.append(batch(count, value=b"x" * (size // count), timestamp=timestamp))
        assert (info.first_offset, info.last_offset) == (self.end, self.end + count - 1)
        self.batches.append(Batch(info.first_offset, info.last_offset, timestamp))
        self.end += count

    @rule(sizes=st.lists(st.integers(0, 300), min_size=1, max_size=6))
    def append_in_two_steps(self, sizes: list[int]) -> None:
        log = self.harness.log
        pending = [log.begin_append(batch(2, value=b"y" * size, timestamp=self.now), leader_epoch=1) for size in sizes]
        assert log.log_end_offset == self.end
        for append in reversed(pending):
            append.write()
        for append in pending:
            log.finish_append(append)
            self.batches.append(Batch(append.info.first_offset, append.info.last_offset, self.now))
            self.end += 2
        log.update_high_watermark(log.log_end_offset)

    @rule(gap=st.integers(0, 40), count=st.integers(1, 3))
    def append_as_follower(self, gap: int, count: int) -> None:
        base = self.end + gap
        records = batch(count, base_offset=base, leader_epoch=1, timestamp=self.now)
        self.harness.log.append_as_follower(records, leader_epoch=1)
        self.harness.log.update_high_watermark(base + count)
        self.batches.append(Batch(base, base + count - 1, self.now))
        self.end = base + count

    @rule()
    def roll(self) -> None:
        self.harness.log.roll()

    @rule()
    def flush(self) -> None:
        self.harness.log.flusher.flush()
        assert self.harness.log.flusher.recovery_point == self.end

    # Cutting

    @rule(back=st.integers(0, 30))
    def truncate(self, back: int) -> None:
        target = max(self.end - back, 0)
        was_cut = self.harness.log.truncate_to(target)
        assert was_cut == (target < self.end)
        self.batches = [b for b in self.batches if b.last < target]
        self.end = target
        self.start = min(self.start, target)

    @rule(ahead=st.integers(0, 50))
    def start_again(self, ahead: int) -> None:
        self.end += ahead
        self.start = self.end
        self.batches = []
        self.harness.log.truncate_fully_and_start_at(self.end)

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        target = self.start + int(share * (self.end - self.start))
        assert self.harness.log.delete_records(target) == target
        self._start_at(target)

    @rule(seconds=st.integers(0, 90))
    def let_time_pass(self, seconds: int) -> None:
        self.harness.clock.move(seconds)

    @rule()
    def retention(self) -> None:
        log = self.harness.log
        log.retention.delete_old_segments(self.now)
        assert self.start <= log.log_start_offset <= self.end
        gone = [b for b in self.batches if b.last < log.log_start_offset and b.last >= self.start]
        assert all(self.now - b.timestamp > 60_000 for b in gone)
        if log.log_start_offset > self.start:
            self._start_at(log.log_start_offset)
        self.harness.delete_due()

    def _start_at(self, offset: int) -> None:
        self.start = offset
        self.batches = [b for b in self.batches if b.last >= offset]

    # Starting again

    @rule()
    def stop_and_start(self) -> None:
        self.harness.reopen()
        self._after_start()

    @rule(tail=st.binary(max_size=100))
    def crash(self, tail: bytes) -> None:
        active = Path(self.harness.log.segments.active.file.path)
        with active.open("ab") as file:
            file.write(tail)
        self.harness.crash()
        self._after_start()

    def _after_start(self) -> None:
        """A cut inside a batch moved the end below the cut; the file only knows where the last batch ends."""
        log = self.harness.log
        last = self.batches[-1].last + 1 if self.batches else 0
        self.end = max(last, log.segments.active.base_offset, self.start)
        if log.segments.active.base_offset <= last < self.start:
            self.batches = []
        log.update_high_watermark(log.log_end_offset)

    # What must hold

    @invariant()
    def offsets_agree(self) -> None:
        log = self.harness.log
        assert (log.log_start_offset, log.log_end_offset) == (self.start, self.end)
        assert log.high_watermark == self.end
        assert log.flusher.recovery_point <= self.end

    @invariant()
    def a_reader_gets_every_batch(self) -> None:
        assert [(h.base_offset, h.last_offset) for h in headers_in(self.harness.log)] == [
            (b.base, b.last) for b in self.batches if b.last >= self.start
        ]

    @precondition(lambda self: self.end > self.start)
    @rule(data=st.data())
    def read_anywhere(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end - 1))
        size = data.draw(st.integers(1, 2000))
        result = self.harness.log.read(offset, size, isolation=FetchIsolation.HIGH_WATERMARK)
        following = [b for b in self.batches if b.last >= offset]
        if not following:
            assert result.records is None
            return
        assert result.records is not None
        headers = [header for _, header in iter_headers(result.records.read())]
        assert headers[0].base_offset == following[0].base
        assert result.records.length <= max(size, headers[0].size)
        assert self.harness.log.available_bytes(offset) >= result.records.length

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def find_by_time(self, data: st.DataObject) -> None:
        wanted = data.draw(st.sampled_from([b.timestamp for b in self.batches]))
        found = self.harness.log.offset_by_timestamp(wanted)
        assert found is not None
        first = next(b for b in self.batches if b.timestamp >= wanted)
        assert (found.offset, found.timestamp) == (max(first.base, self.start), first.timestamp)


LogAgainstModel.TestCase.settings = settings(stateful_step_count=40)
TestLogAgainstModel = LogAgainstModel.TestCase
