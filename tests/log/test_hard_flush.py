"""A hard flush: every file of the log is on disk, whatever the recovery point says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from strandline.config.topic import TopicConfig
from strandline.log.files import LEADER_EPOCHS, PARTITION_METADATA
from tests.log.harness import LogHarness, batch

FILES_OF_A_SEGMENT = (".log", ".index", ".timeindex")


@contextmanager
def forced_to_disk(patch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The paths of the files and directories that are really forced to disk meanwhile."""
    paths: list[str] = []
    fsync = os.fsync

    def record(fd: int) -> None:
        fsync(fd)
        paths.append(os.readlink(f"/proc/self/fd/{fd}"))

    with patch.context() as patched:
        patched.setattr(os, "fsync", record)
        yield paths


def hard_flush(harness: LogHarness, patch: pytest.MonkeyPatch) -> set[str]:
    """Everything a hard flush forces to disk, by its path below the log directory."""
    flusher = harness.log.flusher
    with forced_to_disk(patch) as paths:
        plan = flusher.begin_hard()
        plan.run()
    flusher.finish(plan)
    assert len(paths) == len(set(paths)), "a file was forced to disk twice"
    return {os.path.relpath(path, harness.directory) for path in paths}


def opened(tmp_path: Path, **config: int) -> LogHarness:
    harness = LogHarness(tmp_path / "data", config=TopicConfig(**config))  # type: ignore[arg-type]
    harness.create()
    (harness.directory / PARTITION_METADATA).write_text("version: 0\n")
    return harness


def names(base: int, *suffixes: str) -> set[str]:
    return {f"{base:020d}{suffix}" for suffix in suffixes}


AT_FIRST = {LEADER_EPOCHS, PARTITION_METADATA, ".", ".."}


def test_a_log_whose_recovery_point_is_at_its_end_is_forced_to_disk_with_its_indexes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = opened(tmp_path, flush_messages=1)
    for number in range(3):
        harness.append(batch(2, producer_id=9, sequence=2 * number))
    harness.log.roll()
    flusher = harness.log.flusher
    assert flusher.recovery_point == harness.log.log_end_offset == 6
    flusher.flush()
    assert flusher.begin() is None, "the ordinary flush sees nothing to do, and the indexes are not on disk"

    forced = hard_flush(harness, monkeypatch)

    assert forced == names(0, *FILES_OF_A_SEGMENT) | names(6, ".log", ".snapshot") | AT_FIRST
    assert flusher.recovery_point == 6


def test_the_active_segment_is_forced_to_disk_with_its_indexes(
    harness: LogHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.append(batch(timestamp=1_700_000_000_000))
    harness.log.segments.active.finish()

    forced = hard_flush(harness, monkeypatch)

    assert forced >= names(0, ".log", ".timeindex") | {LEADER_EPOCHS, ".", ".."}
    assert harness.log.flusher.recovery_point == 1


def test_the_transaction_index_is_forced_to_disk(harness: LogHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    harness.append(batch(producer_id=4, sequence=0, is_transactional=True))
    harness.end_transaction(4, commits=False)
    harness.log.roll()

    assert hard_flush(harness, monkeypatch) >= names(0, ".txnindex") | names(2, ".snapshot")


def test_what_an_earlier_hard_flush_has_covered_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the one within the pause of the writes has little to do."""
    harness = opened(tmp_path, flush_messages=1)
    for _ in range(3):
        harness.append(batch())
        harness.log.roll()
    harness.append(batch())
    before = hard_flush(harness, monkeypatch)
    assert before >= names(0, *FILES_OF_A_SEGMENT) | names(1, *FILES_OF_A_SEGMENT) | names(2, *FILES_OF_A_SEGMENT)
    harness.append(batch())
    harness.log.roll()

    assert hard_flush(harness, monkeypatch) == (
        names(3, *FILES_OF_A_SEGMENT, ".snapshot") | names(5, ".log", ".snapshot") | {"."}
    )
    assert hard_flush(harness, monkeypatch) == names(5, ".log", ".snapshot") | {"."}


def test_leader_epochs_that_have_changed_are_forced_again(harness: LogHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    harness.append(batch())
    hard_flush(harness, monkeypatch)
    harness.append(batch(), epoch=1)

    assert LEADER_EPOCHS in hard_flush(harness, monkeypatch)
    assert LEADER_EPOCHS not in hard_flush(harness, monkeypatch)


def test_a_segment_that_is_still_written_is_forced_again(harness: LogHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    log = harness.log
    pending = log.begin_append(batch(), leader_epoch=0)
    log.roll()
    hard_flush(harness, monkeypatch)
    pending.write()
    log.finish_append(pending)

    assert names(0, ".log") <= hard_flush(harness, monkeypatch)
    assert log.flusher.recovery_point == 1


def test_what_was_cut_is_forced_again(harness: LogHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        harness.append(batch())
        harness.log.roll()
    hard_flush(harness, monkeypatch)
    harness.log.truncate_to(1)
    for _ in range(3):
        harness.append(batch())
        harness.log.roll()

    forced = hard_flush(harness, monkeypatch)

    assert names(1, *FILES_OF_A_SEGMENT) | names(2, *FILES_OF_A_SEGMENT) <= forced
    assert not names(0, ".log") & forced
