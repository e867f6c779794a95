"""Any order of appends, copies, deletions and restarts of a tiered log: no record is ever in no tier."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from strandline.config.topic import TopicConfig
from strandline.errors import OffsetMovedToTieredStorage, OffsetOutOfRange
from strandline.log import LoadedOffsets
from strandline.log.checkpoints import parse_epochs
from strandline.log.producer_snapshot import parse_snapshot
from tests.log.harness import LogHarness, batch, headers_in

LOCAL_RETENTION_MS = 60_000
LOCAL_RETENTION_BYTES = 1_500


@dataclass(frozen=True)
class Batch:
    base: int
    last: int
    epoch: int
    timestamp: int


class TieredLogAgainstModel(RuleBasedStateMachine):
    """The model: all batches since the log start, the ranges that remote storage has, and whether retention may move
    the log start.
    """

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.harness = LogHarness(self.root, self.config(copies=True), remote_enabled=True)
        self.harness.create()
        self.batches: list[Batch] = []
        self.remote: list[tuple[int, int]] = []
        self.start = 0
        self.end = 0
        self.epoch = 0
        self.sequence = 0
        self.checkpoint = LoadedOffsets()

    @staticmethod
    def config(*, copies: bool) -> TopicConfig:
        return TopicConfig(
            remote_storage_enable=True,
            remote_log_copy_disable=not copies,
            internal_segment_bytes=500,
            index_interval_bytes=100,
            retention_ms=-1 if copies else LOCAL_RETENTION_MS,
            local_retention_ms=LOCAL_RETENTION_MS if copies else -2,
            local_retention_bytes=LOCAL_RETENTION_BYTES if copies else -2,
        )

    def teardown(self) -> None:
        self.harness.log.abandon()
        shutil.rmtree(self.root)

    @property
    def now(self) -> int:
        return self.harness.clock.now_ms()

    @property
    def copies(self) -> bool:
        return not self.harness.log.config.remote_log_copy_disable

    @property
    def highest(self) -> int:
        return self.remote[-1][1] if self.remote else -1

    # What producers and leaders do

    @rule(count=st.integers(1, 5), age=st.integers(0, 30_000))
    def append(self, count: int, age: int) -> None:
        records = batch(count, timestamp=self.now - age, producer_id=1, sequence=self.sequence)
        info = self.harness.append(records, epoch=self.epoch)
        assert info.first_offset == self.end
        self.batches.append(Batch(info.first_offset, info.last_offset, self.epoch, self.now - age))
        self.end += count
        self.sequence += count

    @rule(up=st.integers(1, 3))
    def become_leader_again(self, up: int) -> None:
        self.epoch += up
        self.harness.log.assign_epoch(self.epoch, self.harness.log.reserved_end)

    @rule()
    def roll(self) -> None:
        self.harness.log.roll()

    # What tiered storage does

    @precondition(lambda self: self.copies)
    @rule(limit=st.integers(1, 4))
    def copy(self, limit: int) -> None:
        log = self.harness.log
        from_offset = max(self.highest + 1, self.start)
        for segment in log.remote.segments_to_copy(from_offset, limit=limit):
            assert segment.base_offset <= max(self.highest + 1, self.start) < segment.next_base_offset
            assert segment.next_base_offset <= log.segments.active.base_offset
            inside = [b for b in self.batches if segment.base_offset <= b.base < segment.next_base_offset]
            visible = {b.epoch for b in inside if b.last >= self.start}
            assert visible <= set(segment.leader_epochs)
            assert next(iter(segment.leader_epochs.values()), segment.base_offset) == segment.base_offset
            history = dict(parse_epochs(segment.epoch_history, "history"))
            assert set(segment.leader_epochs) <= set(history)
            producers = parse_snapshot(segment.producer_snapshot.read_bytes())
            if inside:
                assert [p.last_offset for p in producers] == [inside[-1].last]
            assert segment.log.stat().st_size == segment.size
            self.remote.append((segment.base_offset, segment.end_offset))
            log.remote.update_highest_offset(segment.end_offset)

    @precondition(lambda self: self.remote)
    @rule(data=st.data())
    def expire_remote(self, data: st.DataObject) -> None:
        """The log start moves first, then the segments go."""
        count = data.draw(st.integers(1, len(self.remote)))
        new_start = max(self.remote[count - 1][1] + 1, self.start)
        self.harness.log.start.increment(new_start)
        self._start_at(new_start)

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        target = self.start + int(share * (self.end - self.start))
        assert self.harness.log.delete_records(target) == target
        self._start_at(target)

    @rule(share=st.floats(0, 1), epochs=st.integers(0, 2))
    def truncate(self, share: float, epochs: int) -> None:
        """Another leader had less, as a follower finds out. What was copied beyond is no part of the log any more."""
        target = self.end - int(share**3 * (self.end - self.start))
        log = self.harness.log
        was_local = target >= log.segments.first.base_offset
        assert log.truncate_to(target) == (target < self.end)
        self.batches = [b for b in self.batches if b.last < target]
        self.remote = [(first, min(last, target - 1)) for first, last in self.remote if first < target]
        assert log.remote.highest_offset < target or target == 0
        assert was_local or log.local_log_start_offset == target
        self.end = target
        self.epoch += epochs
        self._continue_sequence()

    def _continue_sequence(self) -> None:
        entry = self.harness.log.producers.entries.get(1)
        if entry is not None:
            self.sequence = entry.last_sequence + 1

    @rule(copies=st.booleans())
    def switch_copying(self, copies: bool) -> None:
        self.harness.config = self.config(copies=copies)
        self.harness.log.update_config(self.harness.config)

    # Retention

    @rule(seconds=st.integers(0, 90))
    def let_time_pass(self, seconds: int) -> None:
        self.harness.clock.move(seconds)

    @rule()
    def retention(self) -> None:
        log = self.harness.log
        local_start, size = log.local_log_start_offset, log.size
        log.retention.delete_old_segments(self.now)
        gone = [b for b in self.batches if local_start <= b.last < log.local_log_start_offset]
        is_old = all(self.now - b.timestamp > LOCAL_RETENTION_MS for b in gone)
        if self.copies:
            assert log.log_start_offset == self.start
            assert is_old or size > LOCAL_RETENTION_BYTES
        else:
            assert is_old
            self._start_at(log.log_start_offset)
        self.harness.delete_due()

    @precondition(lambda self: self.copies)
    @rule()
    def in_the_end_everything_is_remote(self) -> None:
        """The first retention finds that the active segment is too old and rolls it; after its copy it goes too."""
        log = self.harness.log
        self.harness.clock.move(2 * LOCAL_RETENTION_MS / 1000)
        log.remote.update_highest_offset(self.highest)
        for _ in range(3):
            self.copy(limit=10**6)
            self.write_checkpoints()
            self.retention()
        if all(segment.size for segment in log.segments.as_list()[:-1]):  # the age of an empty one is that of its file
            assert log.size == 0

    def _start_at(self, offset: int) -> None:
        self.start = offset
        self.batches = [b for b in self.batches if b.last >= offset]
        self.remote = [r for r in self.remote if r[1] >= offset]

    # Starting again

    @rule()
    def write_checkpoints(self) -> None:
        self.harness.log.epochs.write()
        self.checkpoint = self.harness.checkpoint()

    @rule(learns=st.booleans())
    def stop_and_start(self, learns: bool) -> None:
        self.harness.reopen()
        self._started(learns)

    @rule(learns=st.booleans())
    def crash(self, learns: bool) -> None:
        """The checkpoints may be old: the log start is no higher than it was, and what it is short of is learned."""
        self.harness.log.abandon()
        self.harness.open(
            LoadedOffsets(log_start=self.checkpoint.log_start, recovery_point=self.checkpoint.recovery_point),
            is_clean=False,
        )
        log = self.harness.log
        assert log.log_start_offset <= self.start
        log.update_high_watermark(log.log_end_offset)
        self.start = min(self.start, log.log_end_offset)  # a cut inside a batch is forgotten, as is the log start in it
        log.start.increment(self.start)
        self._started(learns)

    def _started(self, learns: bool) -> None:
        log = self.harness.log
        log.update_high_watermark(log.log_end_offset)
        # After a cut inside a batch a file only knows where the batch before ends.
        assert (self.batches[-1].last + 1 if self.batches else self.start) <= log.log_end_offset <= self.end
        self.end = log.log_end_offset
        self._continue_sequence()
        assert log.remote.highest_offset == -1
        assert (
            log.retention.delete_old_segments(self.now) == 0
            or not self.copies
            or log.segments.first.base_offset <= self.start
        )
        if not self.copies:
            self._start_at(log.log_start_offset)
        if self.remote:
            log.remote.set_log_start(self.remote[0][0])
        if learns:
            log.remote.update_highest_offset(self.highest)

    # What must hold

    @invariant()
    def offsets_agree(self) -> None:
        log = self.harness.log
        assert (log.log_start_offset, log.log_end_offset) == (self.start, self.end)
        assert self.start <= log.local_log_start_offset <= log.high_watermark == self.end
        assert log.local_log_start_offset == max(self.start, log.segments.first.base_offset)

    @invariant()
    def every_record_is_in_some_tier(self) -> None:
        log = self.harness.log
        local = {(h.base_offset, h.last_offset) for h in headers_in(log)}
        for wanted in self.batches:
            if (wanted.base, wanted.last) not in local:
                assert any(first <= wanted.base and wanted.last <= last for first, last in self.remote), wanted

    @invariant()
    def every_epoch_is_known(self) -> None:
        log = self.harness.log
        for wanted in self.batches:
            assert log.epoch_for_offset(max(wanted.base, self.start)) == wanted.epoch

    @invariant()
    def reads_say_where_to_look(self) -> None:
        log = self.harness.log
        for offset in (self.start, (self.start + log.local_log_start_offset) // 2, log.local_log_start_offset - 1):
            if self.start <= offset < log.local_log_start_offset:
                assert self._refusal(offset) is OffsetMovedToTieredStorage
        if self.start:
            assert self._refusal(self.start - 1) is OffsetOutOfRange
        assert self._refusal(log.local_log_start_offset) is None

    def _refusal(self, offset: int) -> type[Exception] | None:
        try:
            self.harness.log.read(offset, 1)
        except (OffsetMovedToTieredStorage, OffsetOutOfRange) as error:
            return type(error)
        return None


TieredLogAgainstModel.TestCase.settings = settings(stateful_step_count=50)
TestTieredLogAgainstModel = TieredLogAgainstModel.TestCase
