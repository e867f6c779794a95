"""Broker processes that are forked from one which has loaded the code already.

Loading it is most of what a start costs, and the tests start hundreds of brokers. What is forked is a process like any
other: it has an id, its own environment and its own files, and it is killed, paused and waited for. On systems other
than Linux brokers are started as users start them (the demo and its test do that everywhere).
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypedDict

# What a broker loads whatever its settings are, and what tests often switch on. None of it starts a thread: threads do
# not survive a fork.
_LOADED: Final = (
    "obstore.store",
    "uvloop",
    "strandline.__main__",
    "strandline.admin.http.server",
    "strandline.admin.commands.start",
    "strandline.broker",
    "strandline.diskless.reader",
    "strandline.diskless.upkeep",
    "strandline.diskless.writer",
    "strandline.remote.manager",
    "strandline.remote.reader",
    "strandline.remote.topic_based",
    "strandline.sql.postgres.store",
)
_PR_SET_CHILD_SUBREAPER: Final = 36
_STEP_SECONDS: Final = 0.005

IS_SUPPORTED: Final = sys.platform == "linux"


class _Order(TypedDict):
    command: Sequence[str]
    environment: Mapping[str, str]
    log: str
    directory: str


class ForkedProcess:
    """What tests need of `subprocess.Popen`, for a process that something else has started for us."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status, None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Wait for its end. Raises subprocess.TimeoutExpired."""
        deadline = time.monotonic() + timeout
        pause = threading.Event()
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            pause.wait(_STEP_SECONDS)
        return status

    def send_signal(self, number: int) -> None:
        """Nothing happens if it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Nursery:
    """The process that others are forked from."""

    def __init__(self, environment: Mapping[str, str], within: Sequence[str] = ()) -> None:
        """`within` is a command that runs another one in its place and keeps its id, such as `unshare --net`."""
        # A process whose parent has ended becomes our child: we see its exit status.
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")
        self._process = subprocess.Popen(
            [*within, sys.executable, "-m", "tests.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).resolve().parent.parent,
            env=environment,
            text=True,
        )
        self._lock = threading.Lock()
        atexit.register(self._process.kill)

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """End it; processes that were forked from it go on."""
        atexit.unregister(self._process.kill)
        self._process.kill()
        self._process.communicate()

    def start(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> ForkedProcess:
        """Run a `strandline` command; what it prints is appended to `log`."""
        order = _Order(command=command, environment=environment, log=str(log), directory=os.getcwd())
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        assert answer, "the process that brokers are forked from has ended: see its words on standard error"
        return ForkedProcess(int(answer))


# In the process that is forked


def main() -> None:
    """Load the code, then fork for each order; what is forked returns from here as the process that was ordered."""
    for name in _LOADED:
        importlib.import_module(name)
    assert threading.active_count() == 1, threading.enumerate()
    gc.freeze()
    for line in sys.stdin:
        order: _Order = json.loads(line)
        pid = _fork_orphan()
        if pid == 0:
            _become(order)
            return
        print(pid, flush=True)
    sys.exit()


def _fork_orphan() -> int:
    """Fork a process whose parent has ended when this returns. Zero in that process."""
    reader, writer = os.pipe()
    between = os.fork()
    if between == 0:
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            os.close(writer)
            return 0
        os.write(writer, str(pid).encode())
        os._exit(0)
    os.waitpid(between, 0)
    pid = int(os.read(reader, 20))
    os.close(reader)
    os.close(writer)
    return pid


def _become(order: _Order) -> None:
    for fd, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        (2, order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    ):
        opened = os.open(path, flags, 0o644)
        os.dup2(opened, fd)
        os.close(opened)
    os.chdir(order["directory"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv = [*order["command"]]
    from strandline import crash

    crash.arm(os.environ.get(crash.ENVIRONMENT_VARIABLE, ""))


if __name__ == "__main__":
    main()
    from strandline.__main__ import main as strandline

    strandline()
