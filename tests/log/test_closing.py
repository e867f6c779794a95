"""Files of deleted segments are closed by one thread, which gives way to all others."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from strandline.log.closing import DeletedFiles, close_soon
from strandline.log.segment_file import SegmentFile
from tests.waiting import wait_until


def closers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "close-deleted"]


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def test_many_deleted_segments_are_closed_by_one_thread_with_a_low_priority(tmp_path: Path) -> None:
    files = [SegmentFile(str(tmp_path / f"{number}.log"), 0) for number in range(50)]
    for file in files:
        file.create()
        file.unlink()
    descriptors = [file.fileno() for file in files]
    del file
    files.clear()  # the last references
    wait_until(lambda: not any(map(is_open, descriptors)), what="the descriptors to be closed")
    [closer] = closers()
    assert closer.native_id is not None
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, closer.native_id) == min(own + 10, 19)
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == own


def test_a_descriptor_that_is_closed_already_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "file"
    first, second = (os.open(path, os.O_CREAT | os.O_RDWR) for _ in range(2))
    os.close(first)
    close_soon(first)
    close_soon(second)
    wait_until(lambda: not is_open(second), what="the next one to be closed")


def test_a_thread_that_cannot_be_started_is_started_for_the_next_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    deleted = DeletedFiles("close-in-a-test")
    first, second = (os.open(tmp_path / name, os.O_CREAT | os.O_RDWR) for name in ("first", "second"))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        deleted.close(first)
    assert is_open(first)
    deleted.close(second)
    wait_until(lambda: not is_open(first) and not is_open(second), what="both to be closed")
