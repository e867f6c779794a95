"""A driver of the pipeline as a child process: what it says, how long its halves take, the memory of its tasks."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from bench.generator import LoadFailed
from bench.tiering.converter import READY
from bench.tree import SourceTree, python

_START_SECONDS: Final = 180.0
_CONVERT_SECONDS: Final = 900.0
_LOOK_SECONDS: Final = 0.05
_STOP_SECONDS: Final = 30.0

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """One run of the driver over one topic."""

    bytes: int
    batches: int
    segments: int
    split_seconds: float
    merge_seconds: float

    @property
    def seconds(self) -> float:
        return self.split_seconds + self.merge_seconds


class DriverProcess:
    """A process that says what it does in lines of JSON. A block: leaving it stops the process."""

    def __init__(self, command: list[str], log_file: Path) -> None:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        self._log_file = log_file
        self._started_at = time.monotonic()
        with log_file.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **SourceTree.working().environment},
            )
        self._lines: queue.Queue[str] = queue.Queue()
        self.events: list[Event] = []
        """All that was read so far."""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.memory = TaskMemory(self._process.pid)

    def __enter__(self) -> Self:
        self.memory.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.memory.stop()
        if self._process.stdin is not None:
            self._process.stdin.close()
        if error is not None or self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()

    def wait_for(self, event: str, seconds: float) -> list[Event]:
        """What was said until then, that event last. Raises LoadFailed."""
        deadline = time.monotonic() + seconds
        said: list[Event] = []
        while not said or said[-1]["event"] != event:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise LoadFailed(f"The driver has not said {event!r} within {seconds:g} s: {self.said()}") from None
            if not line:
                raise LoadFailed(f"The driver has ended before {event!r}: {self.said()}")
            if line.startswith("{"):
                said.append(json.loads(line))
                self.events.append(said[-1])
        return said

    def send(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def seconds_since_start(self) -> float:
        return time.monotonic() - self._started_at

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def said(self) -> str:
        """The last it has said, and the end of its log."""
        while not self._lines.empty():
            if (line := self._lines.get()).startswith("{"):
                self.events.append(json.loads(line))
        said = [event["message"] for event in self.events[-3:]]
        return "\n".join([*said, *self._log_file.read_text(errors="replace").splitlines()[-20:]])


class WarmConverter(DriverProcess):
    """`bench.tiering.converter`: one Spark, many conversions."""

    def __init__(self, bootstrap: str, master: str, log_file: Path) -> None:
        super().__init__([*python(), "-m", "bench.tiering.converter", bootstrap, master], log_file)

    def wait_started(self) -> float:
        """Seconds from exec until Spark takes jobs."""
        self.wait_for(READY, _START_SECONDS)
        return self.seconds_since_start()

    def convert(self, topic: str) -> Conversion:
        """Convert what is eligible of a topic. Raises LoadFailed, also if not all of it went well."""
        self.send(topic)
        said = self.wait_for("done", _CONVERT_SECONDS)
        return _conversion(topic, said)


def _conversion(topic: str, said: list[Event]) -> Conversion:
    done = said[-1]
    if done["failing"] or not done["segments"]:
        raise LoadFailed(f"{topic} was not converted: {done['message']}")
    begun = next(event["at_ms"] for event in said if event["event"] == "spark-started")
    split = max((event["at_ms"] for event in said if event["event"] == "split"), default=begun)
    return Conversion(
        bytes=done["bytes_merged"],
        batches=done["batches"],
        segments=done["segments"],
        split_seconds=(split - begun) / 1000,
        merge_seconds=(done["at_ms"] - split) / 1000,
    )


@dataclass(slots=True)
class TaskMemory:
    """The most memory that any Python worker of a driver has had: Spark's tasks run in them, one at a time each."""

    driver: int
    peak_bytes: int = 0
    _is_over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(_LOOK_SECONDS):
            for worker in _workers(self.driver):
                self.peak_bytes = max(self.peak_bytes, _peak_bytes(worker))


def _workers(driver: int) -> Iterator[int]:
    """The children of Spark's Python daemon, which is a child of its JVM."""
    for child in _children(driver):
        if b"pyspark.daemon" in _text(f"/proc/{child}/cmdline"):
            yield from _children(child)
        else:
            yield from _workers(child)


def _children(process: int) -> list[int]:
    """Of all threads of a process: the JVM starts others from any of them."""
    try:
        threads = os.listdir(f"/proc/{process}/task")
    except OSError:
        return []
    return [int(child) for one in threads for child in _text(f"/proc/{process}/task/{one}/children").split()]


def _peak_bytes(process: int) -> int:
    for line in _text(f"/proc/{process}/status").splitlines():
        if line.startswith(b"VmHWM"):
            return int(line.split()[1]) * 1024
    return 0


def _text(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""  # it has ended
