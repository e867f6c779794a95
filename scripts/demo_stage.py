"""What the demo is played on: a broker process, the `strandline` command, and how things are shown."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from strandline.admin.commands import main as commands

PROGRAM = Path(sys.executable).with_name("strandline")

console = Console(highlight=False, width=min(Console().width, 110) if Console().is_terminal else 100)


class DemoFailed(Exception):
    """A step did not do what it says."""


class Broker:
    """A broker process on free ports."""

    def __init__(self, directory: Path) -> None:
        self.data = directory / "data"
        self.log = directory / "broker.log"
        self.port, self.http_port = _free_port(), _free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Start it and wait until it takes connections; the seconds that took."""
        began = time.monotonic()
        command = [
            str(PROGRAM), "broker", "--data-dir", str(self.data), "--listen", self.bootstrap,
            "--http", f"127.0.0.1:{self.http_port}", "--set", "offsets.topic.num.partitions=4",
            "--set", "group.initial.rebalance.delay.ms=0",
            # Objects that no row refers to are deleted at once, not after minutes.
            "--set", "inkless.file.cleaner.interval.ms=200", "--set", "inkless.file.cleaner.retention.period.ms=0",
            # Topics may be tiered; what there is to copy and to delete is looked for all the time.
            "--set", "remote.log.storage.system.enable=true", "--set", "remote.log.manager.task.interval.ms=200",
            "--set", "rlmm.config.remote.log.metadata.topic.num.partitions=3",
            "--set", "log.retention.check.interval.ms=200", "--set", "log.initial.task.delay.ms=0",
        ]  # fmt: skip
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        wait_for(self._takes_connections, "the broker to take connections")
        return time.monotonic() - began

    def end(self, how: signal.Signals) -> tuple[int, float]:
        """Send a signal and wait for the end; exit status and seconds."""
        assert self._process is not None
        began = time.monotonic()
        self._process.send_signal(how)
        return self._process.wait(timeout=20), time.monotonic() - began

    def kill_if_running(self) -> None:
        """The way out of a failed demo."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def get(self, path: str) -> str:
        """The answer of the HTTP listener."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}{path}", timeout=5) as answer:
            return str(answer.read(), "utf-8")

    def is_ready(self) -> bool:
        """Whether it says that it serves clients."""
        try:
            return self.get("/readyz").strip() == "ready"
        except OSError:
            return False

    def _takes_connections(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            raise DemoFailed("the broker ended before it took connections")
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True


def run(broker: Broker, *arguments: str, expect: int = 0, is_client: bool = True) -> None:
    """Run a strandline command as a person would, and show it with its output."""
    where = ("--bootstrap", broker.bootstrap) if is_client else ()
    show_command(*arguments)
    done = subprocess.run([str(PROGRAM), *arguments, *where], capture_output=True, text=True, timeout=30, check=False)
    for line in (done.stdout + done.stderr).rstrip().splitlines():
        if line.strip():
            console.print(Padding(Text(line.rstrip()), (0, 0, 0, 4), expand=False))
    if done.returncode != expect:
        raise DemoFailed(f"strandline {' '.join(arguments)} ended with status {done.returncode}, not {expect}")


def ask(*arguments: str) -> Any:
    """What a strandline command answers with --json, here and without a process of its own. Shows nothing."""
    return json.loads(_answer(*arguments))


def ask_lines(*arguments: str) -> list[Any]:
    """The same for a command that answers with a line for each thing."""
    return [json.loads(line) for line in _answer(*arguments).splitlines()]


def _answer(*arguments: str) -> str:
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        status = commands.run([*arguments, "--json"])
    if status != 0:
        raise DemoFailed(f"strandline {' '.join(arguments)} ended with status {status}: {err.getvalue()}")
    return out.getvalue()


def wait_for(condition: Callable[[], bool], what: str, *, within: float = 20) -> None:
    """Return when the condition holds. Raises DemoFailed after so many seconds."""
    deadline = time.monotonic() + within
    pause = threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            raise DemoFailed(f"waited {within:.0f} s in vain for {what}")
        pause.wait(0.01)


def files_below(directory: Path, prefix: str = "") -> list[Path]:
    """The files in directories below one whose names begin so. Directories come and go: what is gone is left out."""
    folders = ((Path(folder), names) for folder, _, names in os.walk(directory))
    return [folder / name for folder, names in folders if folder.name.startswith(prefix) for name in names]


def title(text: str) -> None:
    """A new step begins."""
    console.print()
    console.print(Rule(f"[bold]{text}[/]", align="left", style="cyan"))


def say(text: str) -> None:
    """A sentence."""
    console.print(Padding(Text(text), (0, 0, 0, 2), expand=False))


def show_command(*arguments: str) -> None:
    """What a person would type."""
    console.print(f"  [cyan]$ strandline {' '.join(arguments)}[/]")


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table whose first column is text and whose others are numbers."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(f"{value:,}" if isinstance(value, int) else str(value)) for value in row))
    console.print(Padding(table, (0, 0, 0, 4), expand=False))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
