"""Appending: offsets, limits, rolling, and the two halves of a large append."""

from __future__ import annotations

import threading
from pathlib import Path
from uuid import UUID

import pytest

from strandline.clock import SystemChance
from strandline.config.topic import TopicConfig
from strandline.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    KafkaStorageError,
    MessageTooLarge,
    RecordListTooLarge,
)
from strandline.log import AppendOrigin
from strandline.log.loading import create_log
from strandline.model import INT32_MAX, TopicPartition
from strandline.reads import FetchIsolation
from strandline.records.batch import TimestampType, read_header
from tests.log.harness import NOW, LogHarness, batch, headers_in, marker, offsets_in


def made(root: Path, **config: object) -> LogHarness:
    harness = LogHarness(root, TopicConfig(**config))  # type: ignore[arg-type]
    harness.create()
    return harness


class TestOffsets:
    def test_batches_get_offset_and_epoch_stamped(self, harness: LogHarness) -> None:
        harness.append(batch(3), epoch=4)
        info = harness.append(batch(2), epoch=5)
        assert (info.first_offset, info.last_offset, info.log_append_time_ms) == (3, 4, -1)
        assert (info.log_start_offset, info.max_timestamp, info.is_duplicate) == (0, NOW, False)
        assert [(h.base_offset, h.leader_epoch) for h in headers_in(harness.log)] == [(0, 4), (3, 5)]
        assert harness.log.epochs.entries == ((4, 0), (5, 3))
        assert harness.log.end_offset_for_epoch(4) == (4, 3)
        assert harness.log.epoch_for_offset(3) == 5

    def test_the_epoch_is_in_its_checkpoint_before_its_first_batch(self, harness: LogHarness) -> None:
        harness.log.assign_epoch(7, 0)
        path = harness.directory / "leader-epoch-checkpoint"
        assert not path.exists()
        harness.log.begin_append(batch(), leader_epoch=7)
        assert path.read_text() == "0\n1\n7 0\n"

    def test_log_append_time(self, tmp_path: Path) -> None:
        harness = made(tmp_path, message_timestamp_type="LogAppendTime")
        harness.clock.move(5)
        info = harness.append(batch(2, timestamp=17))
        assert (info.log_append_time_ms, info.max_timestamp) == (NOW + 5000, NOW + 5000)
        [header] = headers_in(harness.log)
        assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
        assert header.max_timestamp == NOW + 5000
        assert harness.log.offset_by_timestamp(NOW) == (NOW + 5000, 0, 0)


class TestLimits:
    def test_refusals_change_nothing(self, tmp_path: Path) -> None:
        harness = made(tmp_path, max_message_bytes=200)
        harness.append(batch())
        damaged = batch(1)
        damaged[-1] ^= 1
        control = marker(1, commits=True)
        not_zero = batch(1, base_offset=5)
        early = batch(1, timestamp=NOW + 3_600_001)
        for records, error in (
            (damaged, CorruptMessage),
            (batch(1, value=b"x" * 200), MessageTooLarge),
            (control, InvalidRecord),
            (not_zero, InvalidRecord),
            (early, InvalidTimestamp),
        ):
            with pytest.raises(error):
                harness.append(records)
        assert harness.log.log_end_offset == 1
        assert offsets_in(harness.log) == [0]
        assert harness.append(batch()).first_offset == 1

    def test_a_batch_larger_than_a_segment_is_refused(self, tmp_path: Path) -> None:
        harness = made(tmp_path, internal_segment_bytes=100)
        with pytest.raises(RecordListTooLarge):
            harness.append(batch(1, value=b"x" * 100))

    def test_a_closed_log_takes_nothing(self, harness: LogHarness) -> None:
        harness.log.close()
        with pytest.raises(KafkaStorageError):
            harness.append(batch())
        with pytest.raises(KafkaStorageError):
            harness.log.read(0, 100)

    def test_settings_can_change(self, harness: LogHarness) -> None:
        harness.log.update_config(TopicConfig(max_message_bytes=50))
        with pytest.raises(MessageTooLarge):
            harness.append(batch())


class TestRolling:
    def test_by_size(self, tmp_path: Path) -> None:
        size = len(batch())
        harness = made(tmp_path, internal_segment_bytes=3 * size)
        for _ in range(7):
            harness.append(batch())
        assert harness.log.segments.bases == [0, 3, 6]
        assert [segment.size for segment in harness.log.segments] == [3 * size, 3 * size, size]

    def test_by_the_time_of_the_records(self, tmp_path: Path) -> None:
        harness = made(tmp_path, segment_ms=1000)
        harness.append(batch(timestamp=NOW - 5000))
        harness.append(batch(timestamp=NOW - 4000))
        assert len(harness.log.segments) == 1
        harness.append(batch(timestamp=NOW - 3999))
        assert harness.log.segments.bases == [0, 2]
        # An older record fits into any segment.
        harness.append(batch(timestamp=NOW - 99_999))
        assert len(harness.log.segments) == 2

    def test_by_the_time_of_the_records_after_a_restart(self, tmp_path: Path) -> None:
        harness = made(tmp_path, segment_ms=1000)
        harness.append(batch(timestamp=NOW - 5000))
        harness.append(batch(timestamp=NOW - 4000))
        harness.reopen()
        harness.append(batch(timestamp=NOW - 3999))
        assert harness.log.segments.bases == [0, 2]

    def test_by_the_clock_if_records_have_no_time(self, tmp_path: Path) -> None:
        harness = made(tmp_path, segment_ms=1000)
        harness.append(batch(timestamp=-1))
        harness.clock.move(1)
        harness.append(batch(timestamp=-1))
        assert len(harness.log.segments) == 1
        harness.clock.move(0.001)
        harness.append(batch(timestamp=-1))
        assert harness.log.segments.bases == [0, 2]

    def test_jitter_rolls_earlier(self, tmp_path: Path) -> None:
        config = TopicConfig(segment_ms=100_000, segment_jitter_ms=90_000)
        rolled = []
        for seed in range(3):
            harness = LogHarness(tmp_path / str(seed), config)
            harness.env.chance = SystemChance(seed)
            log = harness.create()
            jitter = log.segments.active.jitter_ms
            assert 0 <= jitter < 90_000
            harness.append(batch(timestamp=NOW - 200_000))
            harness.append(batch(timestamp=NOW - 200_000 + 100_000 - jitter))
            assert len(log.segments) == 1
            harness.append(batch(timestamp=NOW - 200_000 + 100_001 - jitter))
            assert len(log.segments) == 2
            rolled.append(jitter)
        assert len(set(rolled)) > 1

    def test_when_the_offset_index_is_full(self, tmp_path: Path) -> None:
        harness = made(tmp_path, index_interval_bytes=0, segment_index_bytes=5 * 8)
        for _ in range(8):
            harness.append(batch(timestamp=1))
        # The first batch has no entry, the next five have; the index for one timestamp is far from full.
        assert harness.log.segments.bases == [0, 6]
        assert harness.log.segments.first.offset_index.count == 5

    def test_when_the_time_index_is_full(self, tmp_path: Path) -> None:
        harness = made(tmp_path, index_interval_bytes=0, segment_index_bytes=5 * 12)
        for step in range(8):
            harness.append(batch(timestamp=NOW + step))
        # One of its five slots is kept for the entry that ends the segment.
        assert harness.log.segments.bases == [0, 5]
        assert harness.log.segments.first.time_index.count == 4

    def test_when_offsets_do_not_fit(self, harness: LogHarness) -> None:
        log = harness.log
        log.append_as_follower(batch(1, base_offset=5), leader_epoch=0)
        far = 5 + INT32_MAX + 1
        log.append_as_follower(batch(1, base_offset=far), leader_epoch=0)
        assert log.segments.bases == [0, far]

    def test_a_segment_ends_with_a_time_index_entry(self, tmp_path: Path) -> None:
        harness = made(tmp_path, internal_segment_bytes=2 * len(batch()))
        for step in range(3):
            harness.append(batch(timestamp=NOW + step))
        assert harness.log.segments.first.time_index.entries == [(NOW + 1, 1)]

    def test_rolling_takes_a_snapshot_of_the_producers(self, tmp_path: Path) -> None:
        harness = made(tmp_path, internal_segment_bytes=2 * len(batch()))
        for sequence in range(5):
            harness.append(batch(producer_id=7, sequence=sequence))
        assert harness.log.producers.snapshots == [2, 4]
        assert harness.files(".snapshot") == ["00000000000000000002.snapshot", "00000000000000000004.snapshot"]

    def test_an_empty_segment_is_not_rolled(self, harness: LogHarness) -> None:
        harness.log.roll()
        assert len(harness.log.segments) == 1
        harness.append(batch())
        harness.log.roll()
        harness.log.roll()
        assert harness.log.segments.bases == [0, 1]


class TestTwoHalves:
    def test_readers_see_nothing_before_the_end(self, harness: LogHarness) -> None:
        log = harness.log
        first = log.begin_append(batch(2), leader_epoch=0)
        second = log.begin_append(batch(3), leader_epoch=0)
        assert (first.info.first_offset, second.info.first_offset) == (0, 2)
        assert log.has_pending_appends
        second.write()
        first.write()
        assert log.log_end_offset == 0
        assert log.size == 0
        assert log.read(0, 1000, isolation=FetchIsolation.LOG_END).records is None
        log.finish_append(first)
        assert log.log_end_offset == 2
        assert offsets_in(log) == [0]
        log.finish_append(second)
        assert offsets_in(log) == [0, 2]
        assert not log.has_pending_appends

    def test_finishing_out_of_order_is_refused(self, harness: LogHarness) -> None:
        log = harness.log
        log.begin_append(batch(), leader_epoch=0)
        second = log.begin_append(batch(), leader_epoch=0)
        with pytest.raises(RuntimeError):
            log.finish_append(second)

    def test_nothing_overtakes_a_pending_append(self, harness: LogHarness) -> None:
        log = harness.log
        log.begin_append(batch(), leader_epoch=0)
        for attempt in (
            lambda: log.append(batch(), leader_epoch=0),
            lambda: log.append_as_follower(batch(base_offset=9), leader_epoch=0),
            lambda: log.truncate_to(0),
            log.close,
        ):
            with pytest.raises(RuntimeError):
                attempt()

    def test_rolling_between_the_halves(self, tmp_path: Path) -> None:
        harness = made(tmp_path, internal_segment_bytes=2 * len(batch()))
        log = harness.log
        pending = [log.begin_append(batch(timestamp=NOW + i), leader_epoch=0) for i in range(5)]
        assert log.segments.bases == [0, 2, 4]
        for append in reversed(pending):
            append.write()
        for number, append in enumerate(pending):
            log.finish_append(append)
            assert offsets_in(log) == list(range(number + 1))
        assert harness.reopen().log_end_offset == 5

    def test_the_writing_half_works_in_another_thread(self, harness: LogHarness) -> None:
        log = harness.log
        pending = [log.begin_append(batch(50, value=b"z" * 2000), leader_epoch=0) for _ in range(4)]

        def write_all() -> None:
            for append in pending:
                append.write()

        thread = threading.Thread(target=write_all)
        thread.start()
        thread.join()
        for append in pending:
            log.finish_append(append)
        assert offsets_in(log) == [0, 50, 100, 150]

    def test_a_borrowed_buffer_can_be_given_back(self, harness: LogHarness) -> None:
        records = batch(2)
        pending = harness.log.begin_append(records, leader_epoch=0)
        pending.own_records()
        records[:] = bytes(len(records))
        pending.write()
        harness.log.finish_append(pending)
        assert offsets_in(harness.log) == [0]

    def test_a_crash_between_the_halves_loses_only_what_was_not_written(self, harness: LogHarness) -> None:
        log = harness.log
        harness.append(batch(2))
        for _ in range(2):
            log.begin_append(batch(3, producer_id=4, sequence=0), leader_epoch=0)
        log = harness.crash()
        assert log.log_end_offset == 2
        assert len(log.producers) == 0


class TestAsFollower:
    def test_batches_stay_as_they_are(self, harness: LogHarness) -> None:
        records = memoryview(
            bytes(batch(2, base_offset=10, leader_epoch=3)) + bytes(batch(1, base_offset=20, leader_epoch=4))
        )
        info = harness.log.append_as_follower(records, leader_epoch=4)
        assert (info.first_offset, info.last_offset, info.size) == (10, 20, len(records))
        assert [(h.base_offset, h.leader_epoch) for h in headers_in(harness.log)] == [(10, 3), (20, 4)]
        assert harness.log.epochs.entries == ((3, 10), (4, 20))
        assert harness.log.log_end_offset == 21

    def test_batches_of_a_later_epoch_wait(self, harness: LogHarness) -> None:
        records = memoryview(
            bytes(batch(2, base_offset=0, leader_epoch=3)) + bytes(batch(1, base_offset=2, leader_epoch=5))
        )
        harness.log.append_as_follower(records, leader_epoch=4)
        assert harness.log.log_end_offset == 2

    def test_a_cut_batch_at_the_end_is_left_out(self, harness: LogHarness) -> None:
        records = bytes(batch(2, base_offset=0, leader_epoch=1)) + bytes(batch(1, base_offset=2, leader_epoch=1))[:-3]
        harness.log.append_as_follower(memoryview(records), leader_epoch=1)
        assert harness.log.log_end_offset == 2

    def test_damage_and_steps_back_are_refused(self, harness: LogHarness) -> None:
        log = harness.log
        log.append_as_follower(batch(2, base_offset=0, leader_epoch=1), leader_epoch=1)
        with pytest.raises(InvalidRecord):
            log.append_as_follower(batch(2, base_offset=1, leader_epoch=1), leader_epoch=1)
        damaged = batch(1, base_offset=2, leader_epoch=1)
        damaged[-1] ^= 1
        with pytest.raises(CorruptMessage):
            log.append_as_follower(damaged, leader_epoch=1)
        assert log.log_end_offset == 2


def test_a_coordinator_may_write_control_batches(harness: LogHarness) -> None:
    harness.append(marker(3, commits=True), origin=AppendOrigin.COORDINATOR)
    [header] = headers_in(harness.log)
    assert header.is_control


def test_a_partition_without_topic_id_gets_one(harness: LogHarness) -> None:
    log = harness.log
    assert log.topic_id is None
    log.assign_topic_id(UUID(int=5))
    assert harness.reopen().topic_id == UUID(int=5)
    harness.log.assign_topic_id(UUID(int=5))
    with pytest.raises(KafkaStorageError):
        harness.log.assign_topic_id(UUID(int=6))


def test_an_empty_partition_has_a_segment_and_no_open_file(harness: LogHarness) -> None:
    log = create_log(TopicPartition("other", 1), TopicConfig(), harness.env, topic_id=None)
    assert [path.name for path in log.directory.iterdir()] == ["00000000000000000000.log"]
    assert not log.segments.active.file.is_open
    assert "other-1" in repr(log)


def test_stamped_bytes_are_those_on_disk(harness: LogHarness) -> None:
    records = batch(2)
    harness.append(records, epoch=9)
    content = (harness.directory / "00000000000000000000.log").read_bytes()
    assert content == bytes(records)
    assert read_header(content).leader_epoch == 9
