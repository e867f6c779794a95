"""Disks that fail, for real: full devices, closed descriptors, directories that vanish."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strandline.clock import SystemChance
from strandline.config.log import LogSettings
from strandline.config.topic import TopicConfig
from strandline.errors import KafkaStorageError
from strandline.log import LogManager, UnifiedLog
from strandline.model import TopicPartition
from strandline.testing.clock import VirtualClock
from tests.log.harness import NOW, LogHarness, batch, offsets_in

SIZE = len(batch())


def fill_the_disk(log: UnifiedLog) -> None:
    """From now on every write to the active segment fails with ENOSPC."""
    full = os.open("/dev/full", os.O_RDWR)
    os.dup2(full, log.segments.active.file.fileno())
    os.close(full)


def close_behind_its_back(log: UnifiedLog) -> None:
    os.close(log.segments.active.file.fileno())


def remove_the_directory(log: UnifiedLog) -> None:
    """The next append needs a new segment, which cannot be made."""
    shutil.rmtree(log.directory)
    log.update_config(TopicConfig(internal_segment_bytes=2 * SIZE))


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[LogManager, list[Path]]]:
    """A manager over two log directories with two partitions each, and the directories that were reported."""
    failed: list[Path] = []
    config = TopicConfig(internal_segment_bytes=10 * SIZE)
    manager = LogManager(
        LogSettings(log_dirs=(str(tmp_path / "a"), str(tmp_path / "b"))),
        node_id=1,
        clock=VirtualClock(NOW),
        chance=SystemChance(1),
        on_directory_failure=failed.append,
    )
    manager.load(lambda topic: config)
    for number in range(4):
        log = manager.get_or_create(TopicPartition("t", number), None, config)
        log.append(batch(2), leader_epoch=0)
        log.update_high_watermark(2)
    yield manager, failed
    manager.shutdown()


@pytest.mark.parametrize("break_it", [fill_the_disk, close_behind_its_back, remove_the_directory])
def test_a_failed_append_takes_its_directory_offline_and_no_other(
    two: tuple[LogManager, list[Path]], break_it: Callable[[UnifiedLog], None]
) -> None:
    manager, failed = two
    logs = sorted(manager.all_logs(), key=lambda log: log.topic_partition)
    broken = logs[0]
    break_it(broken)
    with pytest.raises(KafkaStorageError):
        broken.append(batch(2), leader_epoch=0)
    parent = broken.directory.parent
    assert failed == [parent]
    for log in logs:
        if log.directory.parent == parent:
            assert log.is_offline
            with pytest.raises(KafkaStorageError):
                log.append(batch(), leader_epoch=0)
            with pytest.raises(KafkaStorageError):
                log.read(0, 100)
            with pytest.raises(KafkaStorageError):
                manager.get_or_create(log.topic_partition, None, log.config)
        else:
            assert log.append(batch(), leader_epoch=0).first_offset == 2
            assert offsets_in(log) == [0, 2]
    assert [directory.path for directory in manager.offline_directories] == [str(parent)]
    new = manager.get_or_create(TopicPartition("new", 0), None, TopicConfig())
    assert new.directory.parent != parent
    if break_it is close_behind_its_back:  # the number may belong to another file by now
        broken.segments.active.file._fd = -1


def test_a_failed_large_append(two: tuple[LogManager, list[Path]]) -> None:
    manager, failed = two
    log = next(manager.all_logs())
    fill_the_disk(log)
    first = log.begin_append(batch(), leader_epoch=0)
    second = log.begin_append(batch(), leader_epoch=0)
    with pytest.raises(OSError, match="No space left") as caught:
        first.write()
    assert isinstance(log.fail_append(caught.value), KafkaStorageError)
    assert log.is_offline
    assert not log.has_pending_appends
    assert log.log_end_offset == 2
    assert failed == [log.directory.parent]
    with pytest.raises(OSError, match="No space left"):
        second.write()


def test_an_offline_directory_has_no_clean_shutdown(tmp_path: Path) -> None:
    manager = LogManager(
        LogSettings(log_dirs=(str(tmp_path / "a"), str(tmp_path / "b"))),
        node_id=1,
        clock=VirtualClock(NOW),
        chance=SystemChance(1),
    )
    manager.load(lambda topic: TopicConfig())
    log = manager.get_or_create(TopicPartition("t", 0), None, TopicConfig())
    log.append(batch(), leader_epoch=0)
    fill_the_disk(log)
    with pytest.raises(KafkaStorageError):
        log.append(batch(), leader_epoch=0)
    manager.shutdown()
    failed, other = sorted((tmp_path / "a", tmp_path / "b"), key=lambda path: path != log.directory.parent)
    assert not (failed / ".kafka_cleanshutdown").exists()
    assert (other / ".kafka_cleanshutdown").exists()


def test_a_directory_that_cannot_be_made_is_offline_from_the_start(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file, not a directory")
    manager = LogManager(
        LogSettings(log_dirs=(str(tmp_path / "a"), str(tmp_path / "b"))),
        node_id=1,
        clock=VirtualClock(NOW),
        chance=SystemChance(1),
    )
    manager.load(lambda topic: TopicConfig())
    assert [directory.path for directory in manager.offline_directories] == [str(tmp_path / "a")]
    log = manager.get_or_create(TopicPartition("t", 0), None, TopicConfig())
    assert log.directory.parent == tmp_path / "b"
    with pytest.raises(KafkaStorageError):
        manager.get_or_create(TopicPartition("old", 0), None, TopicConfig(), is_new=False)
    manager.shutdown()


def test_without_any_directory_there_is_no_broker(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file, not a directory")
    manager = LogManager(
        LogSettings(log_dirs=(str(tmp_path / "a"),)), node_id=1, clock=VirtualClock(NOW), chance=SystemChance(1)
    )
    with pytest.raises(KafkaStorageError):
        manager.load(lambda topic: TopicConfig())
    manager.shutdown()


def test_a_failed_flush_takes_the_directory_offline(harness: LogHarness) -> None:
    harness.append(batch())
    os.close(harness.log.segments.active.file.fileno())
    with pytest.raises(KafkaStorageError):
        harness.log.flusher.flush()
    assert harness.log.is_offline
    harness.log.segments.active.file._fd = -1


def test_a_failed_read_takes_the_directory_offline(tmp_path: Path) -> None:
    harness = LogHarness(tmp_path, TopicConfig(internal_segment_bytes=2 * SIZE))
    harness.create()
    for _ in range(5):
        harness.append(batch())
    log = harness.reopen()
    log.update_high_watermark(5)
    (harness.directory / "00000000000000000000.log").unlink()
    with pytest.raises(KafkaStorageError):
        log.read(1, 100)
    assert log.is_offline


def test_a_failed_roll_takes_the_directory_offline(tmp_path: Path) -> None:
    harness = LogHarness(tmp_path, TopicConfig(internal_segment_bytes=2 * SIZE))
    harness.create()
    for _ in range(2):
        harness.append(batch())
    shutil.rmtree(harness.directory)
    with pytest.raises(KafkaStorageError):
        harness.append(batch())
    assert harness.log.is_offline
