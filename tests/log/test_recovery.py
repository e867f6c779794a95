"""Recovery after a crash: whatever is left of the last write, everything before it stays."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from strandline.config.topic import TopicConfig
from strandline.log import AppendOrigin, LoadedOffsets
from strandline.records.batch import CRC_START
from tests.log.harness import NOW, LogHarness, batch, headers_in, marker, offsets_in


def written_log(root: Path) -> tuple[LogHarness, list[tuple[int, int, int]]]:
    """A log of one segment with idempotent, transactional and plain batches; (end position, next offset, producers)."""
    harness = LogHarness(root, TopicConfig(index_interval_bytes=100))
    log = harness.create()
    ends = [(0, 0, 0)]
    sequence = 0
    for step in range(2):
        harness.append(batch(2, producer_id=7, sequence=sequence, timestamp=NOW + step), epoch=step)
        ends.append((log.size, log.log_end_offset, len(log.producers)))
        sequence += 2
        harness.append(batch(1, producer_id=9, sequence=step, is_transactional=True, timestamp=NOW + step), epoch=step)
        ends.append((log.size, log.log_end_offset, len(log.producers)))
        harness.append(batch(3), epoch=step)
        ends.append((log.size, log.log_end_offset, len(log.producers)))
        harness.append(marker(9, commits=step % 2 == 0), origin=AppendOrigin.COORDINATOR, epoch=step)
        ends.append((log.size, log.log_end_offset, len(log.producers)))
    log.segments.active.write_indexes()
    return harness, ends


def test_recovery_at_every_truncation_point(tmp_path: Path) -> None:
    harness, ends = written_log(tmp_path / "original")
    size = harness.log.size
    harness.log.abandon()
    path = harness.directory / "00000000000000000000.log"
    content = path.read_bytes()
    copy = LogHarness(tmp_path / "copy", harness.config)
    shutil.copytree(harness.directory, copy.directory)
    damaged = copy.directory / path.name
    for cut in range(size + 1):
        damaged.write_bytes(content[:cut])
        log = copy.open(is_clean=False)
        position, next_offset, producers = max(end for end in ends if end[0] <= cut)
        assert log.log_end_offset == next_offset
        assert log.size == position == damaged.stat().st_size
        assert len(log.producers) == producers
        assert all(entry.position < position for entry in log.segments.active.offset_index.entries)
        assert log.epochs.latest == (headers_in(log)[-1].leader_epoch if next_offset else None)
        log.abandon()


def test_recovery_from_damage_at_every_batch(tmp_path: Path) -> None:
    harness, ends = written_log(tmp_path / "original")
    harness.log.abandon()
    path = harness.directory / "00000000000000000000.log"
    content = path.read_bytes()
    for (start, next_offset, _), (end, _, _) in pairwise(ends):
        for position in (start + CRC_START, end - 1):
            damaged = bytearray(content)
            damaged[position] ^= 0x40
            path.write_bytes(damaged)
            log = harness.open(is_clean=False)
            assert log.log_end_offset == next_offset
            assert log.size == start
            log.abandon()


def test_what_follows_a_torn_segment_goes_too(tmp_path: Path) -> None:
    harness = LogHarness(tmp_path, TopicConfig(internal_segment_bytes=200))
    harness.create()
    for _ in range(9):
        harness.append(batch(2, value=b"x" * 30))
    segments = harness.log.segments.as_list()
    assert len(segments) > 3
    torn = segments[1]
    torn.file.truncate(torn.size - 1)
    log = harness.crash()
    assert log.log_end_offset < segments[2].base_offset
    assert len(log.segments) == 2
    assert offsets_in(log) == [header.base_offset for header in headers_in(log)]
    assert harness.files(".log") == [f"{base:020d}.log" for base in log.segments.bases]
    # And the log goes on.
    assert harness.append(batch()).first_offset == log.log_end_offset - 1


def test_segments_below_the_recovery_point_are_trusted(tmp_path: Path) -> None:
    """They were forced to disk with their indexes: reading them again at every crash would only cost time."""
    harness = LogHarness(tmp_path, TopicConfig(internal_segment_bytes=200))
    log = harness.create()
    for _ in range(9):
        harness.append(batch(2, value=b"x" * 30))
    log.flusher.flush()
    first = log.segments.first
    with open(first.file.path, "r+b") as file:
        file.seek(70)
        file.write(b"?")
    end = log.log_end_offset
    assert harness.crash().log_end_offset == end


def test_a_lost_index_is_rebuilt_even_after_a_clean_stop(tmp_path: Path) -> None:
    harness = LogHarness(tmp_path, TopicConfig(internal_segment_bytes=600, index_interval_bytes=50))
    log = harness.create()
    for i in range(20):
        harness.append(batch(2, timestamp=NOW + i))
    log.close()
    index = harness.directory / "00000000000000000000.index"
    content = index.read_bytes()
    assert content
    index.unlink()
    (harness.directory / "00000000000000000000.timeindex").unlink()
    log = harness.open(harness.offsets(), is_clean=True)
    assert log.segments.first.offset_index.entries
    assert log.segments.first.time_index.last.timestamp >= NOW
    assert offsets_in(log) == list(range(0, 40, 2))


def test_snapshots_above_the_recovered_end_are_forgotten(tmp_path: Path) -> None:
    harness = LogHarness(tmp_path, TopicConfig(internal_segment_bytes=250))
    log = harness.create()
    for i in range(6):
        harness.append(batch(2, value=b"x" * 20, producer_id=1, sequence=2 * i))
    assert len(log.segments) > 2
    second = log.segments.as_list()[1]
    second.file.truncate(0)
    log = harness.crash()
    assert all(offset <= log.log_end_offset for offset in log.producers.snapshots)
    entry = log.producers.entries[1]
    assert entry.last_offset == log.log_end_offset - 1


def test_a_damaged_snapshot_is_replaced_by_reading_the_log(tmp_path: Path) -> None:
    harness = LogHarness(tmp_path, TopicConfig(internal_segment_bytes=250))
    log = harness.create()
    for i in range(6):
        harness.append(batch(2, value=b"x" * 20, producer_id=1, sequence=2 * i))
    log.close()
    for path in harness.directory.glob("*.snapshot"):
        path.write_bytes(b"\0" * 12)
    log = harness.open(harness.offsets(), is_clean=True)
    assert log.producers.entries[1].last_sequence == 11


def test_a_log_that_ends_below_its_start_begins_again_there(harness: LogHarness) -> None:
    harness.append(batch(5))
    harness.log.close()
    log = harness.open(LoadedOffsets(log_start=50), is_clean=False)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (50, 50, 50)
    assert harness.append(batch()).first_offset == 50


def test_an_empty_directory_becomes_an_empty_log(tmp_path: Path) -> None:
    harness = LogHarness(tmp_path)
    harness.directory.mkdir()
    log = harness.open(is_clean=False)
    assert (log.log_start_offset, log.log_end_offset) == (0, 0)


@pytest.mark.parametrize("is_clean", [True, False])
def test_leftovers_of_deletions_and_cleanings_are_removed(harness: LogHarness, is_clean: bool) -> None:
    harness.append(batch(5))
    harness.log.close()
    for name in ("00000000000000000009.log.deleted", "00000000000000000000.log.cleaned", "leader-epoch-checkpoint.tmp"):
        (harness.directory / name).write_bytes(b"old")
    (harness.directory / "00000000000000000077.index").write_bytes(b"orphaned")
    log = harness.open(harness.offsets(), is_clean=is_clean)
    assert offsets_in(log) == [0]
    names = harness.files()
    assert not [name for name in names if name.endswith((".deleted", ".cleaned", ".tmp"))]
    assert "00000000000000000077.index" not in names


def test_lost_epochs_are_read_off_the_batches(tmp_path: Path) -> None:
    harness = LogHarness(tmp_path, TopicConfig(internal_segment_bytes=250))
    log = harness.create()
    for epoch in range(6):
        harness.append(batch(2, value=b"x" * 20), epoch=epoch)
    log.flusher.flush()
    entries = log.epochs.entries
    (harness.directory / "leader-epoch-checkpoint").write_bytes(b"")
    assert harness.crash().epochs.entries == entries


def test_a_damaged_epoch_checkpoint_is_made_again(tmp_path: Path) -> None:
    harness = LogHarness(tmp_path, TopicConfig(internal_segment_bytes=250))
    log = harness.create()
    for epoch in range(6):
        harness.append(batch(2, value=b"x" * 20), epoch=epoch)
    log.flusher.flush()
    entries = log.epochs.entries
    (harness.directory / "leader-epoch-checkpoint").write_text("0\n9\n1 1\n")
    assert harness.crash().epochs.entries == entries
    assert harness.reopen().epochs.entries == entries


def test_a_damaged_transaction_index_is_made_again(tmp_path: Path) -> None:
    harness = LogHarness(tmp_path)
    harness.create()
    harness.append(batch(producer_id=1, sequence=0, is_transactional=True))
    harness.append(marker(1, commits=False), origin=AppendOrigin.COORDINATOR)
    harness.log.close()
    path = harness.directory / "00000000000000000000.txnindex"
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    harness.open(harness.offsets(), is_clean=True)
    assert path.read_bytes() == content
    assert harness.log.producers.entries[1].txn_first_offset == -1


def test_old_batches_behind_the_end_are_not_taken_for_new_ones(harness: LogHarness) -> None:
    """A preallocated file may hold valid batches of an earlier life of the disk blocks."""
    harness.append(batch(3))
    harness.append(batch(3))
    path = harness.directory / "00000000000000000000.log"
    stale = path.read_bytes()
    path.write_bytes(stale + stale)
    log = harness.crash()
    assert (log.log_end_offset, log.size) == (6, len(stale))
