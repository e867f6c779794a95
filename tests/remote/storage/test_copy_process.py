"""Copies in a process of its own: what the broker is spared, and what happens when the process dies or hangs."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.clock import SystemClock
from strandline.crash import ENVIRONMENT_VARIABLE
from strandline.objects import open_objects
from strandline.remote.ports import RemoteStorageError
from strandline.remote.storage.copy_process import IDLE_SECONDS, POLITENESS, START_SECONDS, CopyProcess
from strandline.remote.storage.objects import ObjectRemoteStorage
from strandline.remote.storage.settings import parse_object_settings
from strandline.testing.clock import VirtualClock
from tests.remote.segments import Made, make_segment
from tests.waiting import wait_until

SECONDS = 60
REPOSITORY = Path(__file__).parents[3]

COPY_AND_STAY = """
import asyncio, sys
from pathlib import Path
from strandline.clock import SystemClock
from strandline.remote.storage.copy_process import CopyProcess
from strandline.remote.storage.settings import parse_object_settings
from tests.remote.segments import make_segment

async def main():
    made = make_segment(Path(sys.argv[1]) / "logs")
    copies = CopyProcess(parse_object_settings({}, Path(sys.argv[1])), clock=SystemClock())
    await copies.copy(made.metadata, made.data)
    print(copies.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest_asyncio.fixture
async def copies(tmp_path: Path) -> AsyncIterator[CopyProcess]:
    copies = CopyProcess(parse_object_settings({}, tmp_path), clock=SystemClock())
    yield copies
    await copies.close()


def worker_of(copies: CopyProcess) -> int:
    assert copies.pid is not None
    return copies.pid


def is_running(pid: int) -> bool:
    """A zombie runs no more: whoever inherits it may be slow to notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def remote_logs(directory: Path) -> list[Path]:
    return [*(directory / "remote").rglob("*.log")]


def large(made: Made, size: int) -> Made:
    made.data.log_segment.write_bytes(bytes(size))
    return replace(made, metadata=replace(made.metadata, segment_size_in_bytes=size))


@pytest.fixture
def callbacks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts what the event loop calls."""
    count, run = [0], asyncio.Handle._run

    def counted(handle: asyncio.Handle) -> None:
        count[0] += 1
        run(handle)

    monkeypatch.setattr(asyncio.Handle, "_run", counted)
    return count


async def test_segments_are_copied_by_another_process_with_a_lower_priority(
    copies: CopyProcess, tmp_path: Path
) -> None:
    made = make_segment(tmp_path / "logs")
    await copies.copy(made.metadata, made.data)
    pid = worker_of(copies)
    assert pid != os.getpid()
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, pid) == min(own + POLITENESS, 19)
    assert [path.read_bytes() for path in remote_logs(tmp_path)] == [made.log]
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("objects-")]


async def test_the_event_loop_does_no_more_for_a_large_segment_than_for_a_small_one(
    copies: CopyProcess, tmp_path: Path, callbacks: list[int]
) -> None:
    made = make_segment(tmp_path / "logs")
    await copies.copy(made.metadata, made.data)
    counts = []
    for each in (made, large(made, 32 * 1024 * 1024)):
        callbacks[0] = 0
        await copies.copy(each.metadata, each.data)
        counts.append(callbacks[0])
    assert counts[0] == counts[1] <= 8


@pytest.mark.parametrize("place", ["remote.storage.after_indexes", "objects.put.after_write:5"])
async def test_a_process_that_dies_fails_its_copies_and_is_replaced(
    copies: CopyProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    made, other = make_segment(tmp_path / "a"), make_segment(tmp_path / "b", base_offset=1000, number=2)
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, f"alone@{place}")
    with pytest.raises(RemoteStorageError, match="The process that copies segments ended"):
        await copies.copy(made.metadata, made.data)
    assert remote_logs(tmp_path) == []
    monkeypatch.delenv(ENVIRONMENT_VARIABLE)
    await asyncio.gather(*(copies.copy(each.metadata, each.data) for each in (made, other)))
    assert sorted(path.read_bytes() for path in remote_logs(tmp_path)) == sorted([made.log, other.log])


async def test_a_process_that_hangs_holds_up_nothing_but_its_copies(copies: CopyProcess, tmp_path: Path) -> None:
    made, other = make_segment(tmp_path / "a"), make_segment(tmp_path / "b", base_offset=1000, number=2)
    await copies.copy(made.metadata, made.data)
    hung = worker_of(copies)
    os.kill(hung, signal.SIGSTOP)
    copying = [asyncio.ensure_future(copies.copy(each.metadata, each.data)) for each in (other, other)]
    await asyncio.wait(copying, timeout=0)
    copying[0].cancel()  # as a deadline does
    with pytest.raises(asyncio.CancelledError):
        await copying[0]
    with pytest.raises(RemoteStorageError, match="ended"):  # whatever it had is tried again
        await copying[1]
    assert not is_running(hung), "what it had begun has ended, too"
    assert len(remote_logs(tmp_path)) == 1
    await copies.copy(other.metadata, other.data)
    assert worker_of(copies) != hung
    assert len(remote_logs(tmp_path)) == 2


async def test_a_cancelled_copy_has_ended_when_the_cancellation_returns(copies: CopyProcess, tmp_path: Path) -> None:
    """Otherwise an object could appear after the segment was deleted again."""
    made = make_segment(tmp_path / "a")
    await copies.copy(made.metadata, made.data)
    worker = worker_of(copies)
    async with open_objects(f"file://{tmp_path}/remote") as store:
        storage = ObjectRemoteStorage(store)
        other = large(make_segment(tmp_path / "b", base_offset=1000, number=2), 64 * 1024 * 1024)
        for _ in range(5):
            copying = asyncio.ensure_future(copies.copy(other.metadata, other.data))
            await asyncio.wait([copying], timeout=0.002)
            copying.cancel()
            await asyncio.gather(copying, return_exceptions=True)
            await storage.delete_log_segment_data(other.metadata)
        await copies.copy(made.metadata, made.data)
        assert len(remote_logs(tmp_path)) == 1
    assert worker_of(copies) == worker, "it answered each time"


async def test_a_copy_that_is_cancelled_while_the_process_starts_leaves_it_to_the_next_one(
    copies: CopyProcess, tmp_path: Path
) -> None:
    made = make_segment(tmp_path / "logs")
    for patience in (0.0, 0.005):
        copying = asyncio.ensure_future(copies.copy(made.metadata, made.data))
        await asyncio.wait([copying], timeout=patience)
        copying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await copying
    await copies.copy(made.metadata, made.data)
    assert len(copies._workers) == 1
    assert [path.read_bytes() for path in remote_logs(tmp_path)] == [made.log]


async def test_a_process_that_hangs_while_it_starts_is_replaced(tmp_path: Path) -> None:
    clock = VirtualClock()
    copies = CopyProcess(parse_object_settings({}, tmp_path), clock=clock)
    made = make_segment(tmp_path / "logs")
    copying = asyncio.ensure_future(copies.copy(made.metadata, made.data))
    while copies.pid is None:
        await asyncio.wait([copying], timeout=0.001)
    hung = copies.pid
    os.kill(hung, signal.SIGSTOP)
    await clock.advance(START_SECONDS - 1)
    assert not copying.done()
    await clock.advance(1)
    with pytest.raises(RemoteStorageError, match="ended"):
        await copying
    await copies.copy(made.metadata, made.data)
    assert worker_of(copies) != hung
    await copies.close()
    assert not is_running(hung)


async def test_a_process_that_hangs_without_work_is_killed(tmp_path: Path) -> None:
    clock = VirtualClock()
    copies = CopyProcess(parse_object_settings({}, tmp_path), clock=clock)
    made = make_segment(tmp_path / "logs")
    await copies.copy(made.metadata, made.data)
    hung = worker_of(copies)
    os.kill(hung, signal.SIGSTOP)
    await clock.advance(IDLE_SECONDS)
    assert copies.pid is None
    await clock.advance(0.5)
    await asyncio.to_thread(
        lambda: wait_until(lambda: not is_running(hung), within=SECONDS, what="the end of the process")
    )
    await copies.close()


@pytest.mark.parametrize("trouble", ["descriptors", "program"])
async def test_a_process_that_cannot_be_started_fails_its_copies(
    copies: CopyProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    def no_more() -> tuple[socket.socket, socket.socket]:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    made = make_segment(tmp_path / "logs")
    with monkeypatch.context() as patch:
        if trouble == "descriptors":
            patch.setattr(socket, "socketpair", no_more)
        else:
            patch.setattr(sys, "executable", str(tmp_path / "gone"))
        with pytest.raises(RemoteStorageError, match="cannot be started"):
            await copies.copy(made.metadata, made.data)
    await copies.copy(made.metadata, made.data)
    assert [path.read_bytes() for path in remote_logs(tmp_path)] == [made.log]


async def test_a_process_that_never_ends_does_not_hold_up_the_end_of_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel may not let it go, because of a disk for instance."""
    may_end, waiting = threading.Event(), []

    def wait(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        waiting.append(threading.current_thread())
        may_end.wait()
        return really_wait(process, timeout)

    really_wait = subprocess.Popen.wait
    monkeypatch.setattr(subprocess.Popen, "wait", wait)
    copies = CopyProcess(parse_object_settings({}, tmp_path), clock=SystemClock())
    made = make_segment(tmp_path / "logs")
    await copies.copy(made.metadata, made.data)
    await copies.close()
    assert [thread.daemon for thread in waiting] == [True]
    may_end.set()
    waiting[0].join()


async def test_errors_of_the_store_are_those_of_a_copy_in_the_broker(copies: CopyProcess, tmp_path: Path) -> None:
    made = make_segment(tmp_path / "logs")
    (tmp_path / "remote").write_text("no directory")
    with pytest.raises(RemoteStorageError, match="is not a directory"):
        await copies.copy(made.metadata, made.data)
    (tmp_path / "remote").unlink()
    made.data.log_segment.unlink()
    with pytest.raises(RemoteStorageError, match=r"\.log cannot be copied: No such file"):
        await copies.copy(made.metadata, made.data)


async def test_a_process_without_work_ends(tmp_path: Path) -> None:
    clock = VirtualClock()
    copies = CopyProcess(parse_object_settings({}, tmp_path), clock=clock)
    made = make_segment(tmp_path / "logs")
    await copies.copy(made.metadata, made.data)
    await clock.advance(IDLE_SECONDS - 1)
    first = worker_of(copies)
    await copies.copy(made.metadata, made.data)
    await clock.advance(IDLE_SECONDS - 1)
    assert worker_of(copies) == first
    await clock.advance(1)
    assert copies.pid is None
    await copies.copy(made.metadata, made.data)
    assert worker_of(copies) != first
    await copies.close()
    assert not is_running(first)


def test_the_process_ends_with_its_broker(tmp_path: Path) -> None:
    command = [sys.executable, "-c", COPY_AND_STAY, str(tmp_path)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdout is not None
        pid = int(broker.stdout.readline())
        assert is_running(pid)
        os.kill(pid, signal.SIGTERM)  # a service manager asks all of them; the broker decides
        os.kill(pid, signal.SIGINT)
        made = make_segment(tmp_path / "logs")
        assert [path.read_bytes() for path in remote_logs(tmp_path)] == [made.log]
        assert is_running(pid)
        broker.kill()
    wait_until(lambda: not is_running(pid), within=SECONDS, what="the end of the process")
