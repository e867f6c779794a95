"""Server processes: start one, wait until it answers, read what it costs, stop it and clean up after it."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
_POLL_SECONDS: Final = 0.01
# Below those that the system gives to outgoing connections: a client that tries to reach a broker that is dead may be
# given that broker's port for its own end, connects to itself, and the broker cannot come back.
_FIRST_PORT: Final = 20_000
_PORTS: Final = 12_000
_numbers: Final = itertools.count(os.getpid() * 997)


class ProcessFailed(RuntimeError):
    """A server did not start, did not answer in time, or ended by itself. The text ends with the tail of its log."""


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nothing listens on right now, another one at each call."""
    for number in itertools.islice(_numbers, _PORTS):
        port = _FIRST_PORT + number % _PORTS
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise ProcessFailed(f"Every port from {_FIRST_PORT} to {_FIRST_PORT + _PORTS - 1} is taken.")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has cost so far."""

    cpu_seconds: float
    rss_bytes: int


class ServerProcess:
    """One child process whose output goes to a file. A block: leaving it stops the process."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        log_file: Path,
        environment: Mapping[str, str] | None = None,
        name: str = "server",
    ) -> None:
        self.name, self.log_file = name, log_file
        log_file.parent.mkdir(parents=True, exist_ok=True)
        self.started_at = time.perf_counter()
        with log_file.open("ab") as output:
            self._process = subprocess.Popen(
                list(command), stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})}
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait_until(self, is_ready: Callable[[], bool], *, timeout: float, what: str) -> float:
        """Seconds from the start of the process until `is_ready` returned True. Raises ProcessFailed."""
        while not is_ready():
            if not self.is_running:
                raise ProcessFailed(f"{self.name} ended with {self._process.returncode} {what}\n{self.log_tail()}")
            if time.perf_counter() - self.started_at > timeout:
                raise ProcessFailed(f"{self.name} took more than {timeout:g} s {what}\n{self.log_tail()}")
            time.sleep(_POLL_SECONDS)
        return time.perf_counter() - self.started_at

    def usage(self) -> Usage:
        """CPU time and memory by now, of this process and all its threads (not of its children)."""
        stat = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        status = dict(
            line.split(":", 1) for line in Path(f"/proc/{self.pid}/status").read_text().splitlines() if ":" in line
        )
        return Usage(
            cpu_seconds=(int(stat[11]) + int(stat[12])) / _TICKS_PER_SECOND,
            rss_bytes=int(status["VmRSS"].split()[0]) * 1024,
        )

    def stop(self, *, timeout: float = 30.0) -> float:
        """Send SIGTERM, and SIGKILL after `timeout`. Seconds it took; harmless when it has ended already."""
        asked_at = time.perf_counter()
        if self.is_running:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        return time.perf_counter() - asked_at

    def kill(self) -> None:
        """Send SIGKILL, to measure a recovery."""
        self._process.kill()
        self._process.wait()

    def log_tail(self, lines: int = 20) -> str:
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
