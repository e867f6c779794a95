"""Retention, deletion, truncation, flushing, and segments that take the place of others."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from strandline.config.topic import TopicConfig
from strandline.errors import OffsetOutOfRange
from strandline.log import AppendOrigin, FileSlice, LogSegment
from strandline.log.files import CLEANED
from tests.log.harness import NOW, LogHarness, batch, marker, offsets_in

SIZE = len(batch())


def made(root: Path, **config: object) -> LogHarness:
    """Ten batches of one record in segments of three, one second apart."""
    settings = {"internal_segment_bytes": 3 * SIZE} | config
    harness = LogHarness(root, TopicConfig(**settings))  # type: ignore[arg-type]
    harness.create()
    for step in range(10):
        harness.append(batch(timestamp=NOW + 1000 * step))
    return harness


class TestRetention:
    def test_by_time(self, tmp_path: Path) -> None:
        harness = made(tmp_path, retention_ms=10_000)
        log = harness.log
        assert log.retention.delete_old_segments(NOW + 12_000) == 0
        assert log.retention.delete_old_segments(NOW + 12_001) == 1
        assert (log.log_start_offset, log.segments.bases) == (3, [3, 6, 9])
        assert offsets_in(log) == list(range(3, 10))

    def test_an_old_active_segment_is_rolled_and_goes_too(self, tmp_path: Path) -> None:
        harness = made(tmp_path, retention_ms=10_000)
        log = harness.log
        assert log.retention.delete_old_segments(NOW + 100_000) == 4
        assert (log.log_start_offset, log.log_end_offset, log.segments.bases) == (10, 10, [10])
        assert log.retention.delete_old_segments(NOW + 200_000) == 0
        assert harness.append(batch()).first_offset == 10

    def test_by_size(self, tmp_path: Path) -> None:
        harness = made(tmp_path, retention_bytes=5 * SIZE, retention_ms=-1)
        assert harness.log.retention.delete_old_segments(NOW) == 1
        assert harness.log.segments.bases == [3, 6, 9]
        harness.log.update_config(TopicConfig(retention_bytes=0, retention_ms=-1, internal_segment_bytes=3 * SIZE))
        assert harness.log.retention.delete_old_segments(NOW) == 3

    def test_below_the_log_start(self, tmp_path: Path) -> None:
        harness = made(tmp_path, cleanup_policy=("compact",))
        log = harness.log
        assert log.retention.delete_old_segments(NOW + 10**12) == 0
        log.delete_records(5)
        assert log.retention.delete_old_segments(NOW) == 1
        assert (log.log_start_offset, log.segments.bases) == (5, [3, 6, 9])
        log.delete_records(-1)
        assert log.retention.delete_old_segments(NOW) == 2
        assert log.segments.bases == [9]

    def test_nothing_above_the_high_watermark_goes(self, tmp_path: Path) -> None:
        harness = made(tmp_path, retention_ms=0)
        harness.log.update_high_watermark(4)
        assert harness.log.retention.delete_old_segments(NOW + 10**6) == 1
        assert harness.log.segments.bases == [3, 6, 9]

    def test_unlimited(self, tmp_path: Path) -> None:
        harness = made(tmp_path, retention_ms=-1)
        assert harness.log.retention.delete_old_segments(NOW + 10**12) == 0

    def test_records_without_time_go_by_the_age_of_the_file(self, tmp_path: Path) -> None:
        harness = LogHarness(tmp_path, TopicConfig(retention_ms=10_000, internal_segment_bytes=3 * SIZE))
        log = harness.create()
        for _ in range(4):
            harness.append(batch(timestamp=-1))
        path = log.segments.first.file.path
        os.utime(path, (NOW / 1000, NOW / 1000))
        os.utime(log.segments.active.file.path, (NOW / 1000 + 100, NOW / 1000 + 100))
        assert log.retention.delete_old_segments(NOW + 10_000) == 0
        assert log.retention.delete_old_segments(NOW + 10_001) == 1

    def test_epochs_and_snapshots_follow(self, tmp_path: Path) -> None:
        harness = LogHarness(tmp_path, TopicConfig(internal_segment_bytes=3 * SIZE))
        log = harness.create()
        for step in range(9):
            harness.append(batch(producer_id=5, sequence=step), epoch=step)
        log.delete_records(7)
        log.retention.delete_old_segments(NOW)
        assert log.segments.first.base_offset == 6
        assert log.epochs.entries == ((7, 7), (8, 8))
        assert log.producers.snapshots == [6]
        assert log.producers.entries[5].last_sequence == 8

    def test_files_stay_for_a_while(self, tmp_path: Path) -> None:
        harness = made(tmp_path, retention_ms=10_000)
        harness.log.retention.delete_old_segments(NOW + 12_001)
        assert "00000000000000000000.log.deleted" in harness.files()
        assert "00000000000000000000.index.deleted" in harness.files()
        harness.clock.move(59.999)
        harness.delete_due()
        assert harness.files(".deleted")
        harness.clock.move(0.001)
        harness.delete_due()
        assert not harness.files(".deleted")
        assert len(harness.env.deletions) == 0

    def test_while_appends_are_pending(self, tmp_path: Path) -> None:
        harness = made(tmp_path, retention_ms=0)
        log = harness.log
        pending = log.begin_append(batch(), leader_epoch=0)
        assert log.retention.delete_old_segments(NOW + 10**6) == 3
        assert log.segments.bases == [9]
        pending.write()
        log.finish_append(pending)
        assert offsets_in(log) == [9, 10]


class TestDeleteRecords:
    def test_bounds(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        for offset in (-2, 11):
            with pytest.raises(OffsetOutOfRange):
                harness.log.delete_records(offset)
        assert harness.log.delete_records(4) == 4
        assert harness.log.delete_records(2) == 4
        assert harness.log.delete_records(-1) == 10

    def test_the_start_survives_restarts(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        harness.log.delete_records(4)
        assert harness.reopen().log_start_offset == 4
        assert harness.crash().log_start_offset == 4


class TestTruncation:
    def test_to_a_batch(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        log = harness.log
        assert not log.truncate_to(10)
        assert log.truncate_to(4)
        assert (log.log_end_offset, log.high_watermark, log.segments.bases) == (4, 4, [0, 3])
        assert offsets_in(log) == [0, 1, 2, 3]
        assert harness.append(batch(timestamp=NOW)).first_offset == 4
        assert harness.reopen().log_end_offset == 5

    def test_to_the_start_of_a_segment(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        harness.log.truncate_to(6)
        assert harness.log.segments.bases == [0, 3, 6]
        assert harness.log.segments.active.size == 0
        assert harness.append(batch()).first_offset == 6

    def test_inside_a_batch_the_whole_batch_goes(self, harness: LogHarness) -> None:
        harness.append(batch(5))
        harness.append(batch(5))
        harness.log.truncate_to(7)
        assert harness.log.log_end_offset == 7
        assert offsets_in(harness.log) == [0]

    def test_below_the_first_segment_starts_again(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        harness.log.delete_records(10)
        harness.log.retention.delete_old_segments(NOW)
        assert harness.log.segments.first.base_offset == 9
        harness.log.truncate_to(5)
        assert (harness.log.log_start_offset, harness.log.log_end_offset) == (5, 5)

    def test_epochs_and_times_go_back(self, tmp_path: Path) -> None:
        harness = LogHarness(tmp_path)
        log = harness.create()
        for step in range(4):
            harness.append(batch(timestamp=NOW + step), epoch=step)
        log.truncate_to(2)
        assert log.epochs.entries == ((0, 0), (1, 1))
        assert log.offset_of_max_timestamp() == (NOW + 1, 1, 1)
        harness.append(batch(timestamp=NOW), epoch=9)
        assert (harness.directory / "leader-epoch-checkpoint").read_text() == "0\n3\n0 0\n1 1\n9 2\n"

    def test_fully(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        log = harness.log
        log.truncate_fully_and_start_at(1000)
        assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (1000, 1000, 1000)
        assert log.segments.bases == [1000]
        assert log.epochs.entries == ()
        log.append_as_follower(batch(base_offset=1000), leader_epoch=3)
        assert harness.crash().log_end_offset == 1001


class TestFlushing:
    def test_flush_moves_the_recovery_point(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        assert harness.log.flusher.recovery_point == 0
        harness.log.flusher.flush(6)
        assert harness.log.flusher.recovery_point == 6
        harness.log.flusher.flush()
        assert harness.log.flusher.recovery_point == 10
        assert harness.log.flusher.begin() is None

    def test_flush_messages_forces_each_append(self, tmp_path: Path) -> None:
        harness = LogHarness(tmp_path, TopicConfig(flush_messages=1))
        log = harness.create()
        pending = log.begin_append(batch(), leader_epoch=0)
        assert pending.must_leave_loop
        pending.write()
        assert log.flusher.recovery_point == 0
        log.finish_append(pending)
        assert log.flusher.recovery_point == 1
        harness.append(batch(3))
        assert log.flusher.recovery_point == 4

    def test_flush_messages_counts_records(self, tmp_path: Path) -> None:
        harness = LogHarness(tmp_path, TopicConfig(flush_messages=5, internal_segment_bytes=2 * SIZE))
        log = harness.create()
        points = []
        for _ in range(7):
            harness.append(batch())
            points.append(log.flusher.recovery_point)
        assert points == [0, 0, 0, 0, 5, 5, 5]
        assert not log.begin_append(batch(), leader_epoch=0).must_leave_loop

    def test_appends_go_on_while_a_flush_runs(self, harness: LogHarness) -> None:
        log = harness.log
        harness.append(batch(2))
        plan = log.flusher.begin()
        assert plan is not None
        harness.append(batch(2))
        plan.run()
        log.flusher.finish(plan)
        assert log.flusher.recovery_point == 2

    def test_a_log_says_when_it_becomes_dirty_and_when_it_rolls(self, tmp_path: Path) -> None:
        harness = LogHarness(tmp_path, TopicConfig(internal_segment_bytes=2 * SIZE))
        told: list[str] = []
        harness.env.on_dirty = lambda partition: told.append(f"{partition} dirty")
        harness.env.on_flush_wanted = lambda partition: told.append(f"{partition} rolled")
        log = harness.create()
        for _ in range(3):
            harness.append(batch())
        log.flusher.flush()
        harness.append(batch())
        assert told == ["orders-0 dirty", "orders-0 rolled", "orders-0 dirty"]


class TestReplacement:
    """What compaction does: new segments take the place of old ones, whatever happens in between."""

    def cleaned(self, harness: LogHarness, base: int, offsets: list[int]) -> LogSegment:
        segment = LogSegment.create(
            str(harness.directory), base, created_ms=NOW, cache=harness.env.cache, state=CLEANED
        )
        for offset in offsets:
            records = batch(base_offset=offset, leader_epoch=0, timestamp=NOW + 1000 * offset)
            position = segment.reserve(len(records), NOW + 1000 * offset, offset, 0)
            segment.file.write(records, position)
        segment.file.size = segment.reserved
        segment.finish()
        return segment

    def test_readers_go_on(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        log = harness.log
        held = log.read(0, 1 << 20).records
        old = log.segments.as_list()[:2]
        log.segments.replace([self.cleaned(harness, 0, [1, 4])], old)
        assert log.segments.bases == [0, 6, 9]
        assert offsets_in(log) == [1, 4, 6, 7, 8, 9]
        assert held is not None
        assert len(held.read()) == 3 * SIZE
        assert len(harness.files(".log.deleted")) == 2
        harness.reopen()
        assert offsets_in(harness.log) == [1, 4, 6, 7, 8, 9]
        assert not harness.files(".deleted")

    @pytest.mark.parametrize("state", ["cleaned", "swap", "renamed"])
    def test_a_crash_in_between_leaves_the_old_or_the_new(self, tmp_path: Path, state: str) -> None:
        harness = made(tmp_path)
        new = self.cleaned(harness, 0, [1, 4])
        if state != "cleaned":
            new.rename(".swap")
        if state == "renamed":  # the log file is in place, its indexes not yet
            (harness.directory / "00000000000000000003.log").unlink()
            os.replace(new.file.path, harness.directory / "00000000000000000000.log")
        log = harness.crash()
        wanted = list(range(6)) if state == "cleaned" else [1, 4]
        assert offsets_in(log) == [*wanted, 6, 7, 8, 9]
        assert not [name for name in harness.files() if name.endswith((".cleaned", ".swap"))]

    def test_a_crash_while_swaps_are_prepared_keeps_the_old(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        low, high = self.cleaned(harness, 0, [1]), self.cleaned(harness, 3, [4])
        high.rename(".swap")
        assert low.file.path.endswith(".cleaned")
        log = harness.crash()
        assert offsets_in(log) == list(range(10))

    def test_several_for_several(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        new = [self.cleaned(harness, 0, [2]), self.cleaned(harness, 3, [3, 5])]
        harness.log.segments.replace(new, harness.log.segments.as_list()[:2])
        assert offsets_in(harness.log) == [2, 3, 5, 6, 7, 8, 9]
        assert harness.log.segments.bases == [0, 3, 6, 9]


class TestClosing:
    def test_nothing_changes_when_nothing_happened(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        harness.log.close()
        before = {path.name: path.stat().st_mtime_ns for path in harness.directory.iterdir()}
        harness.open(harness.offsets(), is_clean=True).close()
        assert {path.name: path.stat().st_mtime_ns for path in harness.directory.iterdir()} == before

    def test_files_are_closed(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        harness.log.close()
        assert not any(segment.file.is_open for segment in harness.log.segments)
        assert harness.log.is_offline

    def test_idle_files_are_closed_and_opened_again(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        log = harness.log
        held = log.read(0, 1 << 20).records
        plan = log.flusher.begin(4)
        assert isinstance(held, FileSlice)
        assert plan is not None
        assert log.close_idle_files() == 2  # the reader has the first, the flush that and the second
        assert held.file.is_open
        plan.run()
        del held, plan
        assert log.close_idle_files() == 2
        assert offsets_in(log) == list(range(10))
        pending = log.begin_append(batch(), leader_epoch=0)
        assert log.close_idle_files() == 0
        pending.write()
        log.finish_append(pending)

    def test_moving_keeps_slices_readable(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        records = harness.log.read(0, 1 << 20).records
        harness.log.abandon()
        harness.log.move_to(str(tmp_path / "elsewhere"))
        assert records is not None
        assert len(records.read()) == 3 * SIZE
        shutil.rmtree(tmp_path / "elsewhere")
        assert len(records.read()) == 3 * SIZE

    def test_the_transaction_index_moves_with_its_segment(self, tmp_path: Path) -> None:
        harness = LogHarness(tmp_path, TopicConfig(internal_segment_bytes=4 * SIZE, retention_ms=10))
        harness.create()
        harness.append(batch(producer_id=1, sequence=0, is_transactional=True))
        harness.append(marker(1, commits=False), origin=AppendOrigin.COORDINATOR)
        harness.log.roll()
        harness.log.retention.delete_old_segments(NOW + 11)
        assert "00000000000000000000.txnindex.deleted" in harness.files()
