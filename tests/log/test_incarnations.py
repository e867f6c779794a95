"""Whether a broker that starts has everything that its last incarnation wrote."""

from __future__ import annotations

import errno
from pathlib import Path
from uuid import UUID

import pytest

from strandline.clock import SystemChance, SystemClock
from strandline.config import LogSettings, TopicConfig
from strandline.log import LogManager, read_boot_id
from strandline.log.incarnations import INCARNATION, KeptIncarnation


def manager(*directories: Path, boot_id: str | None = "today") -> LogManager:
    return LogManager(
        LogSettings(log_dirs=tuple(map(str, directories))),
        node_id=1,
        clock=SystemClock(),
        chance=SystemChance(seed=1),
        cluster_id="cluster",
        boot_id=boot_id,
    )


def loaded(*directories: Path, boot_id: str | None = "today") -> LogManager:
    logs = manager(*directories, boot_id=boot_id)
    logs.load(lambda _: TopicConfig())
    return logs


def die(logs: LogManager) -> None:
    """The process is gone: nothing is closed but its descriptors."""
    for storage in logs.storages:
        storage._release()


def test_a_new_directory_has_nothing_of_an_earlier_broker(tmp_path: Path) -> None:
    logs = loaded(tmp_path / "a")
    assert logs.kept.broker_epoch == -1
    assert len(set(logs.directory_ids)) == 1
    logs.shutdown()


@pytest.mark.parametrize("boot_id", ["today", "tomorrow", None])
def test_after_a_clean_stop_everything_is_there(tmp_path: Path, boot_id: str | None) -> None:
    directories = tmp_path / "a", tmp_path / "b"
    logs = loaded(*directories)
    ids = logs.directory_ids
    logs.note_incarnation(17)
    logs.shutdown(broker_epoch=17)
    again = loaded(*directories, boot_id=boot_id)
    assert (again.kept.broker_epoch, again.directory_ids) == (17, ids)
    again.shutdown()


@pytest.mark.parametrize(("boot_id", "kept"), [("today", 17), ("tomorrow", -1), (None, -1)])
def test_a_process_that_dies_loses_nothing_a_machine_may(tmp_path: Path, boot_id: str | None, kept: int) -> None:
    logs = loaded(tmp_path / "a")
    logs.note_incarnation(17)
    die(logs)
    again = loaded(tmp_path / "a", boot_id=boot_id)
    assert again.kept.broker_epoch == kept
    again.shutdown()


def test_a_process_that_dies_before_it_has_registered_changes_nothing(tmp_path: Path) -> None:
    logs = loaded(tmp_path / "a", boot_id="yesterday")
    logs.note_incarnation(17)
    logs.shutdown(broker_epoch=17)
    for _ in range(2):  # the mark of the clean stop is gone when the logs are loaded
        again = loaded(tmp_path / "a")
        assert again.kept.broker_epoch == 17
        die(again)


def test_directories_that_disagree_prove_nothing(tmp_path: Path) -> None:
    logs = loaded(tmp_path / "a", tmp_path / "b")
    logs.note_incarnation(17)
    die(logs)
    (tmp_path / "b" / INCARNATION).unlink()
    again = loaded(tmp_path / "a", tmp_path / "b")
    assert again.kept.broker_epoch == -1
    die(again)
    more = loaded(tmp_path / "a", tmp_path / "c")
    assert more.kept.broker_epoch == -1
    die(more)


def test_a_damaged_file_proves_nothing(tmp_path: Path) -> None:
    logs = loaded(tmp_path / "a")
    logs.note_incarnation(17)
    die(logs)
    for content in ("", "{", "[]", '{"brokerEpoch": "x", "bootId": "today"}'):
        (tmp_path / "a" / INCARNATION).write_text(content)
        again = loaded(tmp_path / "a")
        assert again.kept.broker_epoch == -1
        die(again)


@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_directory_that_failed_may_have_lost_what_was_written_to_it(tmp_path: Path, is_stopped: bool) -> None:
    logs = loaded(tmp_path / "a", tmp_path / "b")
    logs.note_incarnation(17)
    logs.directories[1].fail(OSError(errno.EIO, "the disk is broken"))
    assert len(logs.directory_ids) == 1
    if is_stopped:
        logs.shutdown(broker_epoch=17)
    die(logs)
    again = loaded(tmp_path / "a", tmp_path / "b")  # it can be read again
    assert again.kept.broker_epoch == -1
    die(again)


def test_the_machine_says_when_it_was_started() -> None:
    found = read_boot_id()
    assert found is None or found == read_boot_id() != ""


def test_a_process_that_dies_before_it_hears_its_epoch_is_known_by_its_id(tmp_path: Path) -> None:
    """The controller has registered it, and expects that its successor has what it had."""
    logs = loaded(tmp_path / "a", tmp_path / "b")
    logs.note_incarnation(17)
    logs.note_incarnation(17, UUID(int=1))
    die(logs)
    again = loaded(tmp_path / "a", tmp_path / "b")
    assert again.kept.newest_epoch(UUID(int=1), 20) == 20
    assert again.kept.newest_epoch(UUID(int=2), 20) == 17, "the id of the one before was not registered"
    again.note_incarnation(20)
    die(again)
    last = loaded(tmp_path / "a", tmp_path / "b")
    assert last.kept.newest_epoch(UUID(int=1), 20) == 20
    assert last.kept.incarnation_id is None
    last.shutdown()


def test_ids_that_only_one_directory_has_prove_nothing(tmp_path: Path) -> None:
    logs = loaded(tmp_path / "a", tmp_path / "b")
    logs.note_incarnation(17)
    logs.storages[0].note_incarnation(KeptIncarnation(17, UUID(int=1)))
    die(logs)
    again = loaded(tmp_path / "a", tmp_path / "b")
    assert again.kept == KeptIncarnation(17)
    again.shutdown()
