"""Appends that have begun and are not written yet, while something else happens to their log."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from strandline.config.topic import TopicConfig
from strandline.errors import KafkaStorageError
from strandline.log import LoadedOffsets, LogManager
from strandline.model import INT64_MAX
from strandline.testing.clock import VirtualClock
from tests.log.harness import NOW, LogHarness, batch, offsets_in
from tests.log.test_manager import T0, T1, doomed, loaded

SIZE = len(batch())


def small_segments(root: Path, **settings: object) -> LogHarness:
    harness = LogHarness(root / "data", TopicConfig(internal_segment_bytes=3 * SIZE, **settings))  # type: ignore[arg-type]
    harness.create()
    return harness


@pytest.mark.parametrize("is_preallocated", [False, True])
def test_a_crash_before_the_writes_of_a_rolled_segment_leaves_no_gap(tmp_path: Path, is_preallocated: bool) -> None:
    """The log has rolled, but what lies before the new segment was never written: its offsets are used again."""
    harness = small_segments(tmp_path, preallocate=is_preallocated)
    harness.append(batch(producer_id=7, sequence=0))
    for sequence in range(1, 5):
        harness.log.begin_append(batch(producer_id=7, sequence=sequence), leader_epoch=0)
    assert len(harness.log.segments) == 2
    log = harness.crash()
    assert (log.log_end_offset, offsets_in(log)) == (1, [0])
    assert not harness.append(batch(producer_id=7, sequence=1)).is_duplicate
    for sequence in range(2, 8):
        harness.append(batch(producer_id=7, sequence=sequence))
    assert offsets_in(harness.log) == list(range(8))
    assert offsets_in(harness.reopen()) == list(range(8))


def test_a_crash_between_the_writes_of_two_segments_keeps_what_was_written(tmp_path: Path) -> None:
    harness = small_segments(tmp_path)
    pending = [harness.log.begin_append(batch(), leader_epoch=0) for _ in range(9)]
    assert len(harness.log.segments) == 3
    for append in pending[:5]:
        append.write()
    log = harness.crash()
    assert offsets_in(log) == [0, 1, 2, 3, 4]
    harness.append(batch())
    assert offsets_in(log) == [0, 1, 2, 3, 4, 5]


def test_after_a_crash_all_batches_that_were_on_their_way_are_recognised(tmp_path: Path) -> None:
    harness = LogHarness(tmp_path / "data")
    harness.create()
    first = [harness.append(batch(2, producer_id=7, sequence=sequence)) for sequence in range(0, 10, 2)]
    harness.crash()
    again = [harness.append(batch(2, producer_id=7, sequence=sequence)) for sequence in range(0, 10, 2)]
    assert all(info.is_duplicate for info in again)
    assert [info.first_offset for info in again] == [info.first_offset for info in first]
    assert harness.append(batch(producer_id=7, sequence=10)).first_offset == 10


@pytest.mark.parametrize("is_clean", [True, False])
def test_preallocated_space_goes_although_the_setting_has_changed(tmp_path: Path, is_clean: bool) -> None:
    harness = small_segments(tmp_path, preallocate=True)
    harness.append(batch())
    harness.config = TopicConfig(internal_segment_bytes=2 * SIZE)
    harness.log.update_config(harness.config)
    for _ in range(4):
        harness.append(batch())
    assert len(harness.log.segments) == 3
    log = harness.reopen() if is_clean else harness.crash()
    assert offsets_in(log) == [0, 1, 2, 3, 4]


def test_preallocated_space_of_the_active_segment_goes_although_the_setting_has_changed(tmp_path: Path) -> None:
    harness = small_segments(tmp_path, preallocate=True)
    harness.append(batch())
    harness.config = TopicConfig()
    harness.log.update_config(harness.config)
    log = harness.reopen()
    assert (log.log_end_offset, log.size) == (1, SIZE)
    harness.append(batch())
    assert offsets_in(log) == [0, 1]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_that_cannot_be_made_takes_the_directory_offline(tmp_path: Path, suffix: str) -> None:
    harness = small_segments(tmp_path)
    (harness.directory / f"{0:020d}{suffix}").mkdir()
    with pytest.raises(KafkaStorageError):
        harness.log.begin_append(batch(producer_id=7, sequence=0), leader_epoch=0)
    assert harness.log.is_offline
    assert not harness.log.has_pending_appends


def test_an_index_that_cannot_be_written_for_a_flush_takes_the_directory_offline(tmp_path: Path) -> None:
    harness = small_segments(tmp_path, index_interval_bytes=0, flush_messages=5)
    for _ in range(4):
        harness.append(batch())
    first = harness.log.segments.first
    first.offset_index._is_longer_on_disk = True  # there is something to write again
    os.unlink(first.offset_index.path)
    os.mkdir(first.offset_index.path)
    with pytest.raises(KafkaStorageError):
        harness.log.begin_append(batch(), leader_epoch=0)
    assert harness.log.is_offline
    assert not harness.log.has_pending_appends


def test_every_flush_forces_the_directory_until_one_is_through(tmp_path: Path) -> None:
    """A flush under way has not made the new segment's name safe yet: the next one may not rely on it."""
    harness = small_segments(tmp_path, flush_messages=4)
    for _ in range(3):
        harness.append(batch())
    slow = harness.log.flusher.begin()
    assert slow is not None
    fast = harness.log.begin_append(batch(), leader_epoch=0)
    assert fast.flush is not None
    assert {slow.forces_directory, fast.flush.forces_directory} == {True}
    fast.write()
    harness.log.finish_append(fast)
    slow.run()
    harness.log.flusher.finish(slow)
    harness.append(batch())
    third = harness.log.flusher.begin()
    assert third is not None
    assert not third.forces_directory


async def test_flush_ms_holds_after_a_crash(tmp_path: Path) -> None:
    clock, config = VirtualClock(NOW), TopicConfig(flush_ms=1000)
    manager = loaded(tmp_path, clock=clock, config=config)
    manager.get_or_create(T0, None, config).append(batch(2), leader_epoch=0)
    manager = crashed(manager, tmp_path, config, clock)
    log = manager.get(T0)
    assert log is not None
    assert (log.log_end_offset, log.flusher.recovery_point) == (2, 0)
    log.append(batch(), leader_epoch=0)
    clock.move(1)
    await manager.housekeeping.flush_due()
    assert log.flusher.recovery_point == 3
    manager.shutdown()


async def test_flush_ms_holds_from_when_it_is_set(tmp_path: Path) -> None:
    clock = VirtualClock(NOW)
    manager = loaded(tmp_path, clock=clock)
    log = manager.get_or_create(T0, None, TopicConfig(flush_ms=INT64_MAX))
    log.append(batch(2), leader_epoch=0)
    log.update_config(TopicConfig(flush_ms=1000))
    clock.move(1)
    await manager.housekeeping.flush_due()
    assert log.flusher.recovery_point == 2
    manager.shutdown()


async def test_flush_ms_and_the_delay_of_deletions_do_not_follow_a_wall_clock_that_is_set_back(tmp_path: Path) -> None:
    clock, config = VirtualClock(NOW), TopicConfig(flush_ms=1000, file_delete_delay_ms=1000)
    manager = loaded(tmp_path, clock=clock, config=config)
    log = manager.get_or_create(T0, None, config)
    manager.get_or_create(T1, None, config)
    log.append(batch(2), leader_epoch=0)
    manager.delete(T1)
    assert doomed(tmp_path)
    clock.set_wall_clock(-3600)
    clock.move(1)
    await manager.housekeeping.flush_due()
    await manager.housekeeping.delete_due()
    assert log.flusher.recovery_point == 2
    assert not doomed(tmp_path)
    manager.shutdown()


async def test_flush_ms_waits_for_writes_under_way_without_spinning(tmp_path: Path) -> None:
    clock, config = VirtualClock(NOW), TopicConfig(flush_ms=1000)
    manager = loaded(tmp_path, clock=clock, config=config)
    log = manager.get_or_create(T0, None, config)
    log.append(batch(), leader_epoch=0)
    log.flusher.flush()
    pending = log.begin_append(batch(2), leader_epoch=0)
    clock.move(1)
    await manager.housekeeping.flush_due()
    assert log.flusher.recovery_point == 1
    assert log.flusher.flushed_at == clock.monotonic(), "the next look comes after another flush.ms"
    pending.write()
    log.finish_append(pending)
    clock.move(1)
    await manager.housekeeping.flush_due()
    assert log.flusher.recovery_point == 3
    manager.shutdown()


def test_a_deleted_log_leaves_nothing_in_the_index_cache(tmp_path: Path) -> None:
    config = TopicConfig(internal_segment_bytes=2 * SIZE)
    manager = loaded(tmp_path, config=config)
    for _ in range(3):
        log = manager.get_or_create(T0, None, config)
        for _ in range(5):
            log.append(batch(), leader_epoch=0)
        log.update_high_watermark(5)
        assert len(offsets_in(log)) == 5
        cache = log.env.cache
        assert len(cache) > 0
        manager.delete(T0)
        assert len(cache) == 0
    manager.shutdown()


def test_retention_leaves_segments_with_writes_under_way_alone(tmp_path: Path) -> None:
    harness = small_segments(tmp_path, retention_ms=1000, retention_bytes=0)
    for _ in range(4):
        harness.append(batch())
    pending = [harness.log.begin_append(batch(), leader_epoch=0) for _ in range(3)]
    assert [segment.base_offset for segment in harness.log.segments] == [0, 3, 6]
    harness.clock.move(10)
    assert harness.log.retention.delete_old_segments(harness.clock.now_ms()) == 1
    assert [segment.base_offset for segment in harness.log.segments] == [3, 6]
    for append in pending:
        append.write()
        harness.log.finish_append(append)
    assert offsets_in(harness.log) == [3, 4, 5, 6]
    harness.log.update_high_watermark(7)
    assert harness.log.retention.delete_old_segments(harness.clock.now_ms()) == 2
    log = harness.crash()
    assert (log.log_start_offset, log.log_end_offset) == (7, 7)


def test_a_crash_after_retention_deleted_everything(tmp_path: Path) -> None:
    harness = small_segments(tmp_path, retention_ms=1000)
    for _ in range(4):
        harness.append(batch())
    harness.clock.move(10)
    assert harness.log.retention.delete_old_segments(harness.clock.now_ms()) == 2
    harness.log.abandon()
    log = harness.open(LoadedOffsets(), is_clean=False)
    assert (log.log_start_offset, log.log_end_offset) == (4, 4)


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_topic_made_again_is_not_taken_for_the_one_before(tmp_path: Path, is_restarted: bool) -> None:
    """Checkpoints name partitions, not topics: what they say of a deleted one must not survive into the next."""
    config = TopicConfig(internal_segment_bytes=2 * SIZE)
    manager = loaded(tmp_path, config=config)
    old = manager.get_or_create(T0, None, config)
    for _ in range(9):
        old.append(batch(), leader_epoch=0)
    old.update_high_watermark(9)
    old.delete_records(7)
    old.flusher.flush()
    await manager.housekeeping.checkpoint()
    manager.delete(T0)
    if is_restarted:
        manager = crashed(manager, tmp_path, config)
    new = manager.get_or_create(T0, None, config)
    pending = [new.begin_append(batch(), leader_epoch=0) for _ in range(5)]
    for append in pending[:3]:
        append.write()
        new.finish_append(append)
    log = crashed(manager, tmp_path, config).get(T0)
    assert log is not None
    assert (log.log_start_offset, log.flusher.recovery_point, offsets_in(log)) == (0, 0, [0, 1, 2])


def crashed(manager: LogManager, directory: Path, config: TopicConfig, clock: VirtualClock | None = None) -> LogManager:
    """A manager after the process of this one has died, and its lock with it."""
    for storage in manager.storages:
        storage._release()
    return loaded(directory, config=config, clock=clock)
