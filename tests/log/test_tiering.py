"""A log whose closed segments are in remote storage: where it starts, what retention may delete, what is copied."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from strandline.config.topic import TopicConfig
from strandline.errors import CorruptMessage, KafkaStorageError, OffsetMovedToTieredStorage, OffsetOutOfRange
from strandline.log import AppendOrigin, LoadedOffsets
from strandline.log.checkpoints import format_epochs
from strandline.log.producer_snapshot import parse_snapshot
from strandline.reads import EARLIEST, FetchIsolation
from strandline.replication.offsets import list_offset
from tests.log.harness import NOW, LogHarness, batch, marker, offsets_in

SIZE = len(batch())


def config(**settings: object) -> TopicConfig:
    defaults = {"remote_storage_enable": True, "internal_segment_bytes": 3 * SIZE, "retention_ms": -1}
    return TopicConfig(**(defaults | settings))  # type: ignore[arg-type]


def made(root: Path, **settings: object) -> LogHarness:
    """Ten batches of one record in segments of three, one second apart, each in a leader epoch of its own."""
    harness = LogHarness(root, config(**settings), remote_enabled=True)
    harness.create()
    for step in range(10):
        harness.append(batch(timestamp=NOW + 1000 * step), epoch=step)
    return harness


def tiered(root: Path, *, up_to: int = 5, **settings: object) -> LogHarness:
    """The same, with everything up to an offset in remote storage, and nothing of that on disk."""
    harness = made(root, **({"local_retention_bytes": 0} | settings))
    harness.log.remote.update_highest_offset(up_to)
    harness.log.retention.delete_old_segments(NOW)
    return harness


def starts(harness: LogHarness) -> tuple[int, int, list[int]]:
    log = harness.log
    return log.log_start_offset, log.local_log_start_offset, log.segments.bases


class TestTieringIsSwitchedOff:
    """Until the remote log metadata can be read, it is not known what is to be deleted in remote storage."""

    def switched_off(self, root: Path) -> LogHarness:
        harness = tiered(root)
        harness.log.update_config(config(remote_storage_enable=False, remote_log_delete_on_disable=True))
        return harness

    def test_the_earliest_offset_is_one_that_can_be_read(self, tmp_path: Path) -> None:
        log = self.switched_off(tmp_path).log
        found = list_offset(log, EARLIEST, isolation=FetchIsolation.HIGH_WATERMARK, leader_epoch=9)
        assert found.offset == 6
        assert log.read(found.offset, 1).records is not None

    def test_delete_records_does_not_move_the_local_start_below_the_first_segment(self, tmp_path: Path) -> None:
        harness = self.switched_off(tmp_path)
        assert harness.log.delete_records(3) == 3
        assert starts(harness)[:2] == (3, 6)
        with pytest.raises(OffsetOutOfRange):
            harness.log.read(3, 1)
        harness.log.remote.forget()
        assert starts(harness)[:2] == (6, 6)


class TestWhichLogsAreTiered:
    def test_a_broker_default_of_compaction_does_not_make_a_log_forget_what_is_remote(self, tmp_path: Path) -> None:
        """log.cleanup.policy may change at any time; topics without a policy of their own follow it."""
        harness = tiered(tmp_path)
        harness.config = config(cleanup_policy=("compact",), local_retention_bytes=0)
        harness.log.update_config(harness.config)
        assert not harness.config.is_compacted
        with pytest.raises(OffsetMovedToTieredStorage):
            harness.log.read(0, 1)
        harness.reopen()
        assert starts(harness)[:2] == (0, 6)

    @pytest.mark.parametrize(
        ("remote_enabled", "settings", "is_remote"),
        [
            (True, {"remote_storage_enable": True}, True),
            (True, {}, False),
            (False, {"remote_storage_enable": True}, False),
            (True, {"remote_storage_enable": True, "cleanup_policy": ("compact",)}, True),
        ],
    )
    def test_topic_and_broker_decide(
        self, tmp_path: Path, remote_enabled: bool, settings: dict[str, object], is_remote: bool
    ) -> None:
        harness = LogHarness(tmp_path, TopicConfig(**settings), remote_enabled=remote_enabled)  # type: ignore[arg-type]
        assert harness.create().is_remote is is_remote

    def test_an_existing_topic_can_become_one(self, tmp_path: Path) -> None:
        harness = made(tmp_path, remote_storage_enable=False)
        harness.log.remote.update_highest_offset(5)
        assert harness.log.remote.highest_offset == -1
        harness.env.directory.has_new_log_starts = False
        harness.log.update_config(config(local_retention_bytes=0))
        assert harness.log.is_remote
        assert harness.env.directory.has_new_log_starts
        assert harness.log.retention.delete_old_segments(NOW) == 0
        harness.log.remote.update_highest_offset(5)
        assert harness.log.retention.delete_old_segments(NOW) == 2


class TestLocalRetention:
    """Only what is copied may leave the disk, by local.retention.*, and the log start stays."""

    def test_nothing_goes_that_is_not_copied(self, tmp_path: Path) -> None:
        harness = made(tmp_path, local_retention_ms=1, local_retention_bytes=1)
        assert harness.log.retention.delete_old_segments(NOW + 10**9) == 0
        for highest, first in ((1, 0), (2, 3), (4, 3), (7, 6)):
            harness.log.remote.update_highest_offset(highest)
            harness.log.retention.delete_old_segments(NOW + 10**9)
            assert starts(harness)[:2] == (0, first)

    def test_by_local_size(self, tmp_path: Path) -> None:
        harness = tiered(tmp_path, up_to=8, local_retention_bytes=5 * SIZE)
        assert starts(harness) == (0, 3, [3, 6, 9])

    def test_by_local_time(self, tmp_path: Path) -> None:
        harness = tiered(tmp_path, up_to=8, local_retention_bytes=-2, local_retention_ms=10_000)
        assert harness.log.retention.delete_old_segments(NOW + 12_000) == 0
        assert harness.log.retention.delete_old_segments(NOW + 12_001) == 1
        assert starts(harness) == (0, 3, [3, 6, 9])

    @pytest.mark.parametrize("setting", ["retention_bytes", "retention_ms"])
    def test_without_local_limits_those_of_the_whole_log_hold(self, tmp_path: Path, setting: str) -> None:
        limit = {"retention_bytes": 5 * SIZE} if setting == "retention_bytes" else {"retention_ms": 10_000}
        harness = made(tmp_path, **limit)
        harness.log.remote.update_highest_offset(8)
        assert harness.log.retention.delete_old_segments(NOW + 12_001) == 1
        assert starts(harness) == (0, 3, [3, 6, 9])

    def test_a_limit_of_the_whole_log_alone_does_not_count(self, tmp_path: Path) -> None:
        harness = tiered(tmp_path, up_to=8, retention_ms=1, retention_bytes=1, local_retention_bytes=-1)
        harness.log.update_config(config(retention_ms=1, local_retention_ms=-1, local_retention_bytes=-1))
        assert harness.log.retention.delete_old_segments(NOW + 10**9) == 0

    def test_nothing_above_the_high_watermark_goes(self, tmp_path: Path) -> None:
        harness = made(tmp_path, local_retention_ms=0)
        harness.log.remote.update_highest_offset(8)
        harness.log.update_high_watermark(4)
        harness.log.retention.delete_old_segments(NOW + 10**6)
        assert starts(harness) == (0, 3, [3, 6, 9])

    def test_an_active_segment_that_breaches_is_rolled_and_goes_when_it_was_copied(self, tmp_path: Path) -> None:
        harness = made(tmp_path, local_retention_ms=10_000)
        log = harness.log
        log.remote.update_highest_offset(8)
        assert log.retention.delete_old_segments(NOW + 100_000) == 3
        assert starts(harness) == (0, 9, [9, 10])
        assert log.retention.delete_old_segments(NOW + 100_000) == 0
        assert [segment.base_offset for segment in log.remote.segments_to_copy(9)] == [9]
        log.remote.update_highest_offset(9)
        assert log.retention.delete_old_segments(NOW + 100_000) == 1
        assert starts(harness) == (0, 10, [10])
        assert log.retention.delete_old_segments(NOW + 10**9) == 0  # an empty one is not rolled again
        assert harness.append(batch(timestamp=NOW)).first_offset == 10

    def test_an_active_segment_is_not_rolled_before_its_turn(self, tmp_path: Path) -> None:
        harness = made(tmp_path, local_retention_ms=10_000)
        harness.log.remote.update_highest_offset(5)
        harness.log.retention.delete_old_segments(NOW + 100_000)
        assert starts(harness) == (0, 6, [6, 9])

    def test_below_the_log_start_segments_go_copied_or_not(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        harness.log.delete_records(4)
        assert starts(harness) == (4, 4, [0, 3, 6, 9])
        assert harness.log.retention.delete_old_segments(NOW) == 0  # not before a restart would know of it
        harness.checkpoint()
        assert harness.log.retention.delete_old_segments(NOW) == 1
        assert starts(harness) == (4, 4, [3, 6, 9])

    def test_with_copying_disabled_retention_is_that_of_an_ordinary_log(self, tmp_path: Path) -> None:
        harness = tiered(tmp_path)
        assert starts(harness) == (0, 6, [6, 9])
        harness.log.update_config(
            config(remote_log_copy_disable=True, retention_ms=10_000, local_retention_bytes=-2, local_retention_ms=-2)
        )
        assert harness.log.retention.delete_old_segments(NOW + 18_000) == 0
        assert starts(harness) == (0, 6, [6, 9])
        assert harness.log.retention.delete_old_segments(NOW + 18_001) == 0
        assert starts(harness) == (9, 9, [6, 9])
        assert harness.log.epochs.entries == ((9, 9),)
        harness.checkpoint()
        assert harness.log.retention.delete_old_segments(NOW + 18_001) == 1
        assert starts(harness) == (9, 9, [9])
        harness.log.retention.delete_old_segments(NOW + 100_000)
        harness.checkpoint()
        assert harness.log.retention.delete_old_segments(NOW + 100_000) == 1
        assert starts(harness) == (10, 10, [10])

    def test_a_crash_before_the_checkpoint_leaves_no_offset_in_neither_tier(self, tmp_path: Path) -> None:
        """What is deleted for good is gone from the checkpoint first, else the log would start in front of a hole."""
        harness = tiered(tmp_path)
        before = harness.checkpoint()
        harness.config = config(remote_log_copy_disable=True, retention_ms=10_000)
        harness.log.update_config(harness.config)
        harness.log.retention.delete_old_segments(NOW + 18_001)
        harness.clock.move(10**6)
        harness.delete_due()
        harness.log.abandon()
        harness.open(before, is_clean=False)
        assert starts(harness) == (0, 6, [6, 9])

    def test_epochs_and_producers_outlive_local_deletion(self, tmp_path: Path) -> None:
        harness = LogHarness(tmp_path, config(local_retention_bytes=0), remote_enabled=True)
        log = harness.create()
        for step in range(10):
            harness.append(batch(producer_id=step % 4, sequence=step // 4, timestamp=NOW), epoch=step)
        log.remote.update_highest_offset(8)
        log.retention.delete_old_segments(NOW)
        assert log.epochs.entries == tuple((step, step) for step in range(10))
        assert log.end_offset_for_epoch(2) == (2, 3)
        known = {pid: entry.last_sequence for pid, entry in log.producers.entries.items()}
        for reopened in (harness.reopen(), harness.crash()):
            assert {pid: entry.last_sequence for pid, entry in reopened.producers.entries.items()} == known
            assert reopened.epochs.entries == tuple((step, step) for step in range(10))

    def test_segments_below_the_log_start_do_not_count_in_the_size(self, tmp_path: Path) -> None:
        """Of an ordinary log too: what one rule has deleted is not there for the next."""
        harness = made(tmp_path, remote_storage_enable=False, retention_bytes=7 * SIZE)
        harness.log.delete_records(3)
        assert harness.log.retention.delete_old_segments(NOW) == 1
        assert harness.log.segments.bases == [3, 6, 9]


class TestReading:
    def test_each_range_has_its_answer(self, tmp_path: Path) -> None:
        harness = tiered(tmp_path)
        log = harness.log
        log.delete_records(2)
        for offset in (2, 5):
            with pytest.raises(OffsetMovedToTieredStorage, match="orders-0"):
                log.read(offset, 1 << 20)
            assert log.available_bytes(offset) == 0
        for offset in (0, 1, 11):
            with pytest.raises(OffsetOutOfRange):
                log.read(offset, 1 << 20)
        result = log.read(6, 1 << 20)
        assert (result.log_start_offset, log.log_end_offset) == (2, 10)
        assert offsets_in(log) == [6, 7, 8, 9]

    def test_a_log_that_is_no_longer_tiered_has_no_other_place(self, tmp_path: Path) -> None:
        harness = tiered(tmp_path)
        harness.log.update_config(config(remote_storage_enable=False))
        with pytest.raises(OffsetOutOfRange):
            harness.log.read(2, 1 << 20)

    def test_by_time_only_the_local_log_is_searched(self, tmp_path: Path) -> None:
        harness = tiered(tmp_path)
        assert harness.log.offset_by_timestamp(NOW) == (NOW + 6000, 6, 6)
        harness.log.delete_records(7)
        assert harness.log.offset_by_timestamp(NOW) == (NOW + 7000, 7, 7)


class TestLogStart:
    def test_delete_records_into_the_remote_range(self, tmp_path: Path) -> None:
        harness = tiered(tmp_path)
        assert harness.log.delete_records(4) == 4
        assert starts(harness) == (4, 6, [6, 9])
        assert harness.log.epochs.entries[0] == (4, 4)
        assert harness.log.delete_records(7) == 7
        assert starts(harness) == (7, 7, [6, 9])
        with pytest.raises(OffsetOutOfRange):
            harness.log.start.increment(11)

    def test_a_leader_learns_it_from_remote_storage(self, tmp_path: Path) -> None:
        harness = tiered(tmp_path)
        log = harness.log
        assert log.remote.set_log_start(3)
        assert starts(harness)[:2] == (3, 6)
        assert log.epochs.entries[0] == (3, 3)
        assert not log.remote.set_log_start(3)
        assert log.remote.set_log_start(100)
        assert starts(harness)[:2] == (6, 6)

    def test_what_was_deleted_does_not_come_back(self, tmp_path: Path) -> None:
        """The earliest remote segment begins below the offset up to which DeleteRecords deleted records."""
        harness = tiered(tmp_path)
        harness.log.delete_records(4)
        assert not harness.log.remote.set_log_start(3)
        harness.reopen()
        assert not harness.log.remote.set_log_start(0)
        assert harness.log.log_start_offset == 4

    def test_an_ordinary_log_learns_nothing(self, tmp_path: Path) -> None:
        harness = made(tmp_path, remote_storage_enable=False)
        assert not harness.log.remote.set_log_start(3)
        harness.log.truncate_fully_and_start_at(20, log_start=5)
        assert starts(harness) == (20, 20, [20])

    def test_forgetting_remote_storage(self, tmp_path: Path) -> None:
        harness = tiered(tmp_path)
        harness.log.update_config(config(remote_storage_enable=False))
        harness.log.remote.forget()
        assert starts(harness) == (6, 6, [6, 9])
        assert harness.log.remote.highest_offset == -1
        assert harness.log.epochs.entries[0] == (6, 6)
        harness.log.remote.forget()
        assert starts(harness) == (6, 6, [6, 9])


class TestRestart:
    """In another system a restart moved the log start to the local log start."""

    @pytest.mark.parametrize("is_clean", [True, False])
    @pytest.mark.parametrize("is_checkpointed", [True, False])
    def test_the_log_start_stays(self, tmp_path: Path, is_clean: bool, is_checkpointed: bool) -> None:
        harness = tiered(tmp_path, up_to=8)
        harness.log.delete_records(2)
        harness.append(batch(timestamp=NOW), epoch=11)  # the epochs are written with it
        offsets = harness.offsets()
        if not is_checkpointed:
            offsets = LoadedOffsets(recovery_point=offsets.recovery_point)
        harness.log.close() if is_clean else harness.log.abandon()
        log = harness.open(offsets, is_clean=is_clean)
        assert starts(harness) == (2, 9, [9, 10])
        assert log.epochs.entries[:2] == ((2, 2), (3, 3))
        assert log.high_watermark >= 9
        assert log.remote.highest_offset == -1
        assert log.retention.delete_old_segments(NOW + 10**9) == 0

    def test_a_broker_without_the_switch_sees_the_local_log(self, tmp_path: Path) -> None:
        harness = tiered(tmp_path)
        harness.remote_enabled = False
        harness.reopen()
        assert starts(harness) == (6, 6, [6, 9])

    def test_lost_epochs_are_read_off_the_local_batches(self, tmp_path: Path) -> None:
        harness = tiered(tmp_path)
        harness.log.close()
        (harness.directory / "leader-epoch-checkpoint").unlink()
        log = harness.open(harness.offsets(), is_clean=True)
        assert log.epochs.entries == ((6, 6), (7, 7), (8, 8), (9, 9))

    def test_a_log_that_ends_below_its_start_begins_there(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        harness.log.close()
        harness.open(LoadedOffsets(log_start=40), is_clean=True)
        assert starts(harness) == (40, 40, [40])


class TestTruncation:
    def test_within_the_local_log(self, tmp_path: Path) -> None:
        harness = tiered(tmp_path, up_to=8, local_retention_bytes=4 * SIZE)
        assert starts(harness) == (0, 6, [6, 9])
        harness.log.truncate_to(7)
        assert starts(harness) == (0, 6, [6])
        assert harness.log.remote.highest_offset == 6

    def test_below_the_local_log_the_remote_part_stays(self, tmp_path: Path) -> None:
        harness = tiered(tmp_path)
        log = harness.log
        log.truncate_to(4)
        assert starts(harness) == (0, 4, [4])
        assert (log.log_end_offset, log.high_watermark, log.remote.highest_offset) == (4, 4, 3)
        assert log.epochs.entries == ((0, 0), (1, 1), (2, 2), (3, 3))
        assert harness.reopen().epochs.entries == ((0, 0), (1, 1), (2, 2), (3, 3))
        assert starts(harness) == (0, 4, [4])

    def test_below_the_log_start(self, tmp_path: Path) -> None:
        harness = tiered(tmp_path)
        harness.log.delete_records(3)
        harness.log.truncate_to(1)
        assert starts(harness) == (1, 1, [1])
        assert harness.log.epochs.entries == ()

    def test_what_was_cut_off_must_be_copied_again(self, tmp_path: Path) -> None:
        harness = made(tmp_path, local_retention_bytes=0)
        harness.log.remote.update_highest_offset(8)
        harness.log.truncate_to(4)
        for _ in range(6):
            harness.append(batch(timestamp=NOW), epoch=20)
        harness.log.retention.delete_old_segments(NOW)
        assert harness.log.local_log_start_offset == 3


class TestWhatIsCopied:
    def test_finished_segments_below_the_last_stable_offset(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        log = harness.log
        assert [(s.base_offset, s.end_offset) for s in log.remote.segments_to_copy(0)] == [(0, 2), (3, 5), (6, 8)]
        assert [s.base_offset for s in log.remote.segments_to_copy(4)] == [3, 6]
        assert [s.base_offset for s in log.remote.segments_to_copy(0, limit=2)] == [0, 3]
        assert log.remote.segments_to_copy(9) == []
        assert log.remote.segments_to_copy(50) == []
        log.update_high_watermark(6)
        assert [s.base_offset for s in log.remote.segments_to_copy(0)] == [0, 3]
        log.update_high_watermark(5)
        assert [s.base_offset for s in log.remote.segments_to_copy(0)] == [0]

    def test_an_open_transaction_holds_back_what_follows_it(self, tmp_path: Path) -> None:
        harness = LogHarness(tmp_path, config(), remote_enabled=True)
        log = harness.create()
        for _ in range(4):
            harness.append(batch())
        harness.append(batch(producer_id=1, sequence=0, is_transactional=True))
        for _ in range(6):
            harness.append(batch())
        assert [s.base_offset for s in log.remote.segments_to_copy(0)] == [0]
        harness.append(marker(1, commits=False), origin=AppendOrigin.COORDINATOR)
        log.roll()
        segments = log.remote.segments_to_copy(0)
        assert [s.txn_index is None for s in segments] == [True] * (len(segments) - 1) + [False]
        last = segments[-1]
        assert last.txn_index is not None
        assert last.txn_index.stat().st_size == 34
        assert last.next_base_offset == log.log_end_offset

    def test_files_hold_everything(self, tmp_path: Path) -> None:
        harness = LogHarness(tmp_path, config(index_interval_bytes=1), remote_enabled=True)
        log = harness.create()
        for step in range(4):
            harness.append(batch(producer_id=7, sequence=step, timestamp=NOW + step))
        (segment,) = log.remote.segments_to_copy(0)
        assert (segment.size, segment.max_timestamp) == (segment.log.stat().st_size, NOW + 2)
        assert segment.offset_index.stat().st_size == 2 * 8
        assert segment.time_index.stat().st_size == 2 * 12
        assert segment.producer_snapshot.name == "00000000000000000003.snapshot"
        (producer,) = parse_snapshot(segment.producer_snapshot.read_bytes())
        assert (producer.last_sequence, producer.last_offset) == (2, 2)

    def test_epochs_are_clipped_to_the_segment_and_the_history_is_whole(self, tmp_path: Path) -> None:
        harness = LogHarness(tmp_path, config(), remote_enabled=True)
        log = harness.create()
        for epoch in (1, 1, 4, 4, 4, 4, 4, 6, 6, 9):
            harness.append(batch(), epoch=epoch)
        segments = log.remote.segments_to_copy(0)
        assert [s.leader_epochs for s in segments] == [{1: 0, 4: 2}, {4: 3}, {4: 6, 6: 7}]
        assert [s.epoch_history for s in segments] == [
            format_epochs([(1, 0), (4, 2)]),
            format_epochs([(1, 0), (4, 2)]),
            format_epochs([(1, 0), (4, 2), (6, 7)]),
        ]

    def test_a_segment_with_the_log_start_in_its_middle_is_copied_whole(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        harness.log.delete_records(4)
        segment = harness.log.remote.segments_to_copy(4)[0]
        assert (segment.base_offset, segment.leader_epochs) == (3, {4: 3, 5: 5})

    def test_a_lost_snapshot_is_made_again(self, tmp_path: Path) -> None:
        harness = LogHarness(tmp_path, config(), remote_enabled=True)
        log = harness.create()
        for step in range(10):
            harness.append(batch(producer_id=step % 2, sequence=step // 2, timestamp=NOW))
        path = harness.directory / "00000000000000000006.snapshot"
        before = path.read_bytes()
        path.unlink()
        known = {pid: entry.last_sequence for pid, entry in log.producers.entries.items()}
        assert log.remote.segments_to_copy(3, limit=1)[0].producer_snapshot == path
        assert path.read_bytes() == before
        assert {pid: entry.last_sequence for pid, entry in log.producers.entries.items()} == known

    def test_a_segment_without_records_has_empty_indexes(self, tmp_path: Path) -> None:
        harness = LogHarness(tmp_path, config(), remote_enabled=True)
        log = harness.create()
        log.segments.roll(5)
        log.append_as_follower(batch(base_offset=5, leader_epoch=0), leader_epoch=0)
        log.update_high_watermark(6)
        (segment,) = log.remote.segments_to_copy(0)
        assert (segment.size, segment.end_offset) == (0, 4)
        assert segment.offset_index.stat().st_size == segment.time_index.stat().st_size == 0

    def test_the_same_after_a_restart(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        before = harness.log.remote.segments_to_copy(0)
        assert harness.reopen().remote.segments_to_copy(0) == before
        assert harness.crash().remote.segments_to_copy(0) == before

    def test_bytes_that_are_only_here(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        assert harness.log.remote.only_local_size == 10 * SIZE
        harness.log.remote.update_highest_offset(5)
        assert harness.log.remote.only_local_size == 4 * SIZE

    def test_the_highest_remote_offset_only_rises_and_stays_in_the_log(self, tmp_path: Path) -> None:
        log = made(tmp_path).log
        for offset, known in ((5, 5), (2, 5), (100, 9)):
            log.remote.update_highest_offset(offset)
            assert log.remote.highest_offset == known

    def test_a_failing_disk_takes_the_directory_offline(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        os.rename(harness.directory, tmp_path / "away")
        (harness.directory).write_text("no directory")
        with pytest.raises(KafkaStorageError):
            harness.log.remote.segments_to_copy(0)
        assert harness.log.is_offline


class TestStartingFromRemote:
    """What a follower does whose next offset is in remote storage only."""

    HISTORY = format_epochs([(0, 0), (3, 50), (4, 90)])

    def leader_snapshot(self, root: Path) -> bytes:
        harness = LogHarness(root, config(), remote_enabled=True)
        harness.create()
        harness.append(batch(producer_id=1, sequence=0, timestamp=NOW))
        harness.append(batch(producer_id=2, sequence=0, timestamp=NOW, is_transactional=True))
        harness.log.roll()
        return (harness.directory / "00000000000000000002.snapshot").read_bytes()

    def test_offsets_epochs_and_producers_are_those_of_the_leader(self, tmp_path: Path) -> None:
        harness = made(tmp_path / "follower")
        log = harness.log
        log.start_from_remote(
            100,
            log_start=60,
            epoch_history=self.HISTORY,
            producer_snapshot=self.leader_snapshot(tmp_path / "leader"),
            source="a segment",
        )
        for _ in range(3):
            log = harness.log
            assert starts(harness) == (60, 100, [100])
            assert (log.log_end_offset, log.high_watermark) == (100, 100)
            assert log.epochs.entries == ((3, 60), (4, 90))
            assert log.end_offset_for_epoch(3) == (3, 90)
            assert sorted(log.producers.entries) == [1, 2]
            assert log.last_stable_offset == 60  # a transaction is open that began before the log start
            harness.reopen()
        harness.crash()
        assert sorted(harness.log.producers.entries) == [1, 2]
        harness.log.append_as_follower(batch(base_offset=100, leader_epoch=5), leader_epoch=5)
        assert harness.log.epochs.entries == ((3, 60), (4, 90), (5, 100))
        with pytest.raises(OffsetMovedToTieredStorage):
            harness.log.read(99, 1)

    @pytest.mark.parametrize(
        ("history", "snapshot", "error"),
        [
            (b"0\n5\n0 0\n", None, KafkaStorageError),
            (b"0\n1\nnonsense\n", None, KafkaStorageError),
            (b"\xff", None, KafkaStorageError),
            (HISTORY, b"nonsense", CorruptMessage),
        ],
    )
    def test_damaged_state_changes_nothing(
        self, tmp_path: Path, history: bytes, snapshot: bytes | None, error: type[Exception]
    ) -> None:
        harness = made(tmp_path / "follower")
        good = self.leader_snapshot(tmp_path / "leader")
        with pytest.raises(error):
            harness.log.start_from_remote(
                100,
                log_start=60,
                epoch_history=history,
                producer_snapshot=good if snapshot is None else snapshot,
                source="the segment orders-0/xyz",
            )
        assert starts(harness) == (0, 0, [0, 3, 6, 9])
        assert offsets_in(harness.log) == list(range(10))

    def test_starting_again_below_the_leaders_local_log(self, tmp_path: Path) -> None:
        harness = made(tmp_path)
        harness.log.truncate_fully_and_start_at(100, log_start=60)
        assert starts(harness) == (60, 100, [100])
        assert harness.log.epochs.entries == ()
        harness.log.truncate_fully_and_start_at(100, log_start=200)
        assert starts(harness) == (100, 100, [100])


class TestCheckpoint:
    def test_new_epochs_of_a_tiered_log_go_to_disk_soon(self, tmp_path: Path) -> None:
        told: list[str] = []
        for name, enabled in (("tiered", True), ("ordinary", False)):
            harness = LogHarness(tmp_path / name, config(remote_storage_enable=enabled), remote_enabled=True)
            harness.env.on_flush_wanted = lambda _, name=name: told.append(name)  # type: ignore[misc]
            harness.create()
            harness.append(batch(), epoch=1)
            harness.append(batch(), epoch=1)
        assert told == ["tiered"]
