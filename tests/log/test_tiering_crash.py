"""A broker dies (SIGKILL) while a tiered log changes: what comes after finds the log start, the epochs, the rest."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.crash import ENVIRONMENT_VARIABLE
from strandline.log import UnifiedLog
from tests.log.harness import NOW, PARTITION, batch, offsets_in
from tests.log.tiered_process import CONFIG, RECORDS, delete, fill, opened

SIGKILLED = -9
REPOSITORY = Path(__file__).parents[2]


def died_while(directory: Path, action: str, place: str) -> UnifiedLog:
    """The log after the death of a process at a place, and a start."""
    command = [sys.executable, "-m", "tests.log.tiered_process", str(directory), action]
    environment = {**os.environ, ENVIRONMENT_VARIABLE: place}
    assert subprocess.run(command, cwd=REPOSITORY, env=environment, check=False).returncode == SIGKILLED
    log = opened(directory).get(PARTITION)
    assert log is not None
    return log


@pytest.mark.parametrize(
    ("place", "local_start"),
    [
        ("log.retention.removed_segment:1", 3),
        ("log.retention.removed_segment:2", 6),
        ("log.retention.removed_segment:3", 9),
        ("log.roll.before_snapshot:4", 0),
        ("log.roll.before_segment:4", 0),
        ("log.roll.done:4", 0),
    ],
)
def test_death_while_copied_segments_are_deleted(tmp_path: Path, place: str, local_start: int) -> None:
    log = died_while(tmp_path, "delete", place)
    assert (log.log_start_offset, log.local_log_start_offset, log.log_end_offset) == (0, local_start, RECORDS)
    assert log.epochs.entries == tuple((step, step) for step in range(RECORDS))
    assert offsets_in(log) == list(range(local_start, RECORDS))
    assert log.producers.entries[1].last_sequence == RECORDS - 1
    assert log.retention.delete_old_segments(NOW + 10**9) == 0  # what was copied has to be learned first
    log.update_high_watermark(RECORDS)
    log.roll()
    assert log.remote.segments_to_copy(9)[0].leader_epochs == {9: 9}


@pytest.mark.parametrize(("removed", "local_start"), [(1, 3), (2, 6), (3, 9), (4, RECORDS)])
def test_death_while_a_log_becomes_empty_at_its_end(tmp_path: Path, removed: int, local_start: int) -> None:
    """Once the last record has left the disk, the empty segment says where the log ends."""
    log = died_while(tmp_path / "data", "empty", f"log.retention.removed_segment:{removed}")
    check_ends_at_its_last_record(log, local_start)
    log.update_high_watermark(RECORDS)
    log.remote.update_highest_offset(RECORDS - 1)
    log.retention.delete_old_segments(NOW + 10**9)
    check_ends_at_its_last_record(log, RECORDS)
    shutil.copytree(tmp_path / "data", tmp_path / "after", ignore=shutil.ignore_patterns(".lock"))
    found = opened(tmp_path / "after").get(PARTITION)
    assert found is not None
    check_ends_at_its_last_record(found, RECORDS)


def check_ends_at_its_last_record(log: UnifiedLog, local_start: int) -> None:
    assert (log.log_start_offset, log.local_log_start_offset, log.log_end_offset) == (0, local_start, RECORDS)
    assert (log.segments.active.base_offset, log.segments.active.size) == (RECORDS, 0)
    assert log.epochs.entries == tuple((step, step) for step in range(RECORDS))
    assert log.producers.entries[1].last_sequence == RECORDS - 1


@pytest.mark.parametrize("place", ["log.start_again.before_epochs", "log.start_again.before_segment"])
@pytest.mark.parametrize("action", ["start_from_remote", "cut"])
def test_death_while_a_follower_starts_again_leaves_an_empty_log_at_its_start(
    tmp_path: Path, action: str, place: str
) -> None:
    """It is then told to start from remote storage again, and nothing of before is in its way."""
    log = died_while(tmp_path, action, place)
    assert (log.log_start_offset, log.local_log_start_offset, log.log_end_offset) == (0, 0, 0)
    assert not log.epochs.entries
    assert not log.producers.entries
    log.append_as_follower(batch(base_offset=0, leader_epoch=3), leader_epoch=3)
    assert offsets_in(log) == [0]
    assert log.epochs.entries == ((3, 0),)


@pytest.mark.parametrize("is_checkpointed", [True, False])
def test_a_log_start_that_was_not_checkpointed_is_forgotten_and_its_epochs_are_not(
    tmp_path: Path, is_checkpointed: bool
) -> None:
    """What the old log start brings back can be copied: its epochs are known."""
    manager = opened(tmp_path / "before")
    log = fill(manager)
    for storage in manager.storages if is_checkpointed else ():
        for write in storage.plan_checkpoints([log], only_changed=False):
            write()
    log.start.increment(8)
    log.append(batch(timestamp=NOW, producer_id=1, sequence=RECORDS), leader_epoch=RECORDS)  # the epochs are written
    assert log.epochs.entries[0] == (8, 8)
    shutil.copytree(tmp_path / "before", tmp_path / "after", ignore=shutil.ignore_patterns(".lock"))

    found = opened(tmp_path / "after").get(PARTITION)
    assert found is not None
    assert found.log_start_offset == 0
    assert found.epochs.entries == tuple((step, step) for step in range(RECORDS + 1))
    found.update_high_watermark(found.log_end_offset)
    assert found.remote.segments_to_copy(0)[0].leader_epochs == {0: 0, 1: 1, 2: 2}


def test_a_log_that_forgets_its_remote_part_knows_it_again_if_a_crash_brings_it_back(tmp_path: Path) -> None:
    """Tiering was switched off, a crash came before the checkpoint, and now the topic is tiered again."""
    manager = opened(tmp_path / "before")
    log = fill(manager)
    for storage in manager.storages:
        for write in storage.plan_checkpoints([log], only_changed=False):
            write()
    delete(log)
    log.update_config(replace(CONFIG, remote_storage_enable=False))
    log.remote.forget()
    log.append(batch(timestamp=NOW, producer_id=1, sequence=RECORDS), leader_epoch=RECORDS)
    assert log.epochs.entries[0] == (9, 9)
    shutil.copytree(tmp_path / "before", tmp_path / "after", ignore=shutil.ignore_patterns(".lock"))

    found = opened(tmp_path / "after").get(PARTITION)
    assert found is not None
    assert (found.log_start_offset, found.local_log_start_offset) == (0, 9)
    assert found.epochs.entries == tuple((step, step) for step in range(RECORDS + 1))
