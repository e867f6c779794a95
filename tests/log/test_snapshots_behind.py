"""A log that rolls faster than the snapshots of its producers are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.config.topic import TopicConfig
from strandline.log.producer_snapshot import SnapshotEncoding
from tests.log.crowds import give_producers, path_of, pending_in, state
from tests.log.harness import NOW, LogHarness, batch

ROLLS = 6


def harness_of(root: Path, config: TopicConfig, *, is_tiered: bool = False) -> LogHarness:
    harness = LogHarness(root, config, remote_enabled=is_tiered)
    give_producers(harness.create())
    return harness


def roll_often(harness: LogHarness) -> dict[int, bytes]:
    """The state at the start of each new segment."""
    states = {}
    for number in range(ROLLS):
        harness.append(batch(producer_id=1000, sequence=5 + number))
        harness.append(batch(producer_id=1000 * number + 2000, sequence=5))
        harness.log.roll()
        states[harness.log.log_end_offset] = state(harness.log)
    return states


@pytest.fixture
def rolling(tmp_path: Path) -> LogHarness:
    return harness_of(tmp_path / "data", TopicConfig(retention_bytes=0))


def test_two_are_pending_and_those_between_are_dropped(rolling: LogHarness) -> None:
    log = rolling.log
    states = roll_often(rolling)
    assert log.segments.bases == [0, *states]
    assert pending_in(log) == [2, 12]
    log.producers.finish_snapshots()
    assert log.producers.snapshots == [0, 2, 12]
    assert all(path_of(log, offset).read_bytes() == states[offset] for offset in (2, 12))


@pytest.mark.parametrize("flushed", [0, 5, 7, 12])
@pytest.mark.parametrize("written", [0, 1, 2])
def test_a_crash_costs_no_producer(rolling: LogHarness, flushed: int, written: int) -> None:
    log = rolling.log
    last = roll_often(rolling)[12]
    log.producers.make_room(2 - written)
    log.flusher.flush(flushed)
    assert state(rolling.crash()) == last


@pytest.mark.parametrize("offset", [2, 4, 8, 12])
def test_a_log_that_is_cut_knows_the_producers_up_to_there(rolling: LogHarness, offset: int) -> None:
    states = roll_often(rolling)
    rolling.append(batch(producer_id=3, sequence=0))
    rolling.log.truncate_to(offset)
    assert state(rolling.log) == states[offset]
    assert state(rolling.crash()) == states[offset]


@pytest.mark.parametrize("limit", [1, 2, 20])
def test_retention_goes_as_far_as_there_are_snapshots(rolling: LogHarness, limit: int) -> None:
    """The log never starts where a crash would cost it producers: neither at 12 yet, nor between 2 and 12."""
    log = rolling.log
    last = roll_often(rolling)[12]
    assert log.retention.delete_old_segments(NOW, limit=limit) == 0
    log.producers.make_room(1)
    assert log.retention.delete_old_segments(NOW, limit=limit) == 1
    assert log.log_start_offset == 2
    assert log.retention.delete_old_segments(NOW, limit=limit) == 0
    log.producers.finish_snapshots()
    assert log.retention.delete_old_segments(NOW, limit=limit) == 5
    assert log.log_start_offset == 12
    assert state(rolling.crash()) == last


def test_nor_does_it_after_a_start(rolling: LogHarness) -> None:
    """A cut, too, would cost it producers."""
    states = roll_often(rolling)
    log = rolling.reopen()
    log.update_high_watermark(12)
    assert log.producers.snapshots == [0, 2, 12]
    assert log.retention.delete_old_segments(NOW, limit=1) == 1
    log.truncate_to(8)
    assert state(log) == states[8]
    assert log.log_start_offset == 2


def test_a_segment_from_elsewhere_has_no_snapshot_to_wait_for(rolling: LogHarness) -> None:
    log = rolling.log
    roll_often(rolling)
    log.producers.finish_snapshots()
    log.producers.remove_snapshots(lambda _: True)
    assert log.retention.delete_old_segments(NOW, limit=4) == 4
    assert log.log_start_offset == 8


def test_after_a_crash_the_first_segment_that_is_recovered_has_its_snapshot(rolling: LogHarness) -> None:
    """What it was rebuilt from may be deleted before the next crash."""
    last = roll_often(rolling)[12]
    rolling.log.flusher.flush(5)
    log = rolling.crash()
    log.update_high_watermark(12)
    assert log.retention.delete_old_segments(NOW, limit=2) == 2
    assert log.log_start_offset == 4
    assert state(rolling.crash()) == last


def test_each_remote_segment_has_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So they are finished at once, and copying has nothing to rebuild."""
    harness = harness_of(tmp_path / "data", TopicConfig(remote_storage_enable=True), is_tiered=True)
    log = harness.log
    states = roll_often(harness)
    assert pending_in(log) == [10, 12]
    log.producers.finish_snapshots()
    monkeypatch.setattr(SnapshotEncoding, "encode", lambda *_: pytest.fail("a snapshot is rebuilt"))
    copied = log.remote.segments_to_copy(0)
    assert {segment.next_base_offset: segment.producer_snapshot.read_bytes() for segment in copied} == states
