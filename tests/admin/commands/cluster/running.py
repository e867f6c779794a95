"""A `strandline cluster` process for tests: its events, its brokers, and what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tests.broker import free_port
from tests.waiting import wait_until

_START_S = 90.0

T = TypeVar("T")


def free_row(count: int) -> int:
    """The first of several consecutive ports that are free."""
    while True:
        ports = [free_port() for _ in range(count)]
        if ports == list(range(ports[0], ports[0] + count)):
            return ports[0]


class ClusterCommand:
    """The command with --json, in a process of its own."""

    def __init__(self, directory: Path, options: Sequence[str], *, brokers: int) -> None:
        self.directory = directory
        self.brokers = brokers
        self.port, self.http_port = free_row(brokers), free_row(brokers)
        self._options = options
        self.out = directory.with_name("cluster.out")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; what it prints replaces what it printed before."""
        command = [
            sys.executable, "-m", "strandline", "cluster", "--json", "--brokers", str(self.brokers),
            "--data-dir", str(self.directory), "--port", str(self.port), "--http-port", str(self.http_port),
            *self._options,
        ]  # fmt: skip
        with self.out.open("wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)

    def lines(self) -> list[dict[str, Any]]:
        """What it has printed so far; text that is not JSON is left out."""
        complete = self.out.read_text().rpartition("\n")[0].splitlines()
        return [json.loads(line) for line in complete if line.startswith("{")]

    def events(self, kind: str, broker: int | None = None) -> list[dict[str, Any]]:
        """The events of a kind, of one broker if that is given."""
        return [line for line in self.lines() if line["event"] == kind and (broker is None or line["broker"] == broker)]

    def wait_event(self, kind: str, broker: int | None = None, *, times: int = 1) -> dict[str, Any]:
        """The event, when it has come so often."""
        what = f"event {kind} of the cluster"
        return wait_until(lambda: self._while_running(self.events(kind, broker)[times - 1 :]), what, within=_START_S)[0]

    def _while_running(self, found: T) -> T:
        """What was found, if anything, or if there may be more to come."""
        if not found and self.process is not None and self.process.poll() is not None:
            raise AssertionError(f"the command has ended with status {self.process.returncode}: {self.out.read_text()}")
        return found

    def wait_summary(self, **wanted: object) -> dict[str, Any]:
        """A summary with these values, later than everything that was printed before the call."""
        seen = len(self.events("summary"))

        def found() -> dict[str, Any] | None:
            fitting = (one for one in self.events("summary")[seen:] if wanted.items() <= one.items())
            return self._while_running(next(fitting, None))

        return wait_until(found, f"a summary with {wanted}", within=_START_S)

    def pid(self, broker: int) -> int:
        """Of the broker's newest process."""
        return int(self.events("broker_started", broker)[-1]["pid"])

    def end(self, how: signal.Signals) -> int:
        """Send it a signal, and wait for its exit status."""
        assert self.process is not None
        self.process.send_signal(how)
        return self.process.wait(60)

    def processes(self) -> list[str]:
        """The command lines of what still runs in its directory, or was started for it."""
        found = []
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue  # it has ended meanwhile
            if str(self.directory) in words and int(entry.parent.name) != os.getpid():
                found.append(words)
        return found


@contextmanager
def cluster_command(directory: Path, *options: str, brokers: int = 3) -> Iterator[ClusterCommand]:
    """One that is started, and is ended with all its brokers at the end of the block."""
    command = ClusterCommand(directory, options, brokers=brokers)
    command.start()
    try:
        yield command
    finally:
        if command.process is not None and command.process.poll() is None:
            command.end(signal.SIGTERM)
        wait_until(lambda: not command.processes(), "all processes of the cluster to end")
