"""Clients as processes: what they say goes to the history, and one that hangs is killed and replaced.

librdkafka may wait forever, and may stop all threads of its process meanwhile (a callback of a consumer's close waits
while it holds Python's lock). Nothing in that process could see to it.
"""

from __future__ import annotations

import itertools
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from chaos.client import Task, step_of
from chaos.history import NO_RETURN, Ended, Trouble, from_line
from chaos.stage import Stage

_START_SECONDS = 60.0
"""How long a process may take to its first step: the machine may be busy."""
_POLL_SECONDS = 0.2
_ROOT = Path(__file__).parents[1]


@dataclass(slots=True, kw_only=True)
class Keeper:
    """Keeps one client going, in one process after the other."""

    stage: Stage
    work: str
    name: str
    stop: threading.Event = field(default_factory=threading.Event)
    """The client is told to finish what it is doing."""
    abandon: threading.Event = field(default_factory=threading.Event)
    """Nobody waits for the client any more: it is killed."""
    module: str = "chaos.client"
    generations: Iterable[int] = field(default_factory=itertools.count)

    def keep(self) -> None:
        """Until the client has ended by itself. None follows one that was killed if the run needs none any more."""
        for generation in self.generations:
            if not self._attend(generation) or self.stop.is_set() or self.abandon.is_set():
                return

    def _attend(self, generation: int) -> bool:
        """One process from its start to its end: whether it had to be killed."""
        task = Task(
            work=self.work,
            name=self.name,
            bootstrap=self.stage.bootstrap,
            tiers=self.stage.tiers,
            seed=self.stage.seed,
            started=self.stage.started,
            generation=generation,
        )
        command = [sys.executable, "-m", self.module, task.to_argument()]
        with subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            hears = _Listener(self.stage)
            try:
                is_killed = self._hear(process, hears)
            except BaseException:
                process.kill()
                raise
        if is_killed:
            self.stage.recorder.write(
                Ended(
                    at=self.stage.now,
                    writer=self.name,
                    operation=hears.step,
                    error=NO_RETURN,
                    text=f"process {generation} of {self.name} was killed",
                    is_fatal=True,
                    after=self.stage.recorder.last_fault,
                )
            )
        elif process.returncode != 0:
            text = f"Its process ended with status {process.returncode} in {hears.step}."
            self.stage.recorder.write(Trouble(at=self.stage.now, what=f"{self.name} failed", text=text))
        return is_killed

    def _hear(self, process: subprocess.Popen[bytes], hears: _Listener) -> bool:
        """Take what the process says until its end; also what it said before it was killed."""
        assert process.stdin is not None
        assert process.stdout is not None
        is_killed = False
        while True:
            if self.stop.is_set():
                process.stdin.close()
            is_ready, _, _ = select.select([process.stdout], [], [], _POLL_SECONDS)
            if is_ready:
                data = os.read(process.stdout.fileno(), 1 << 16)
                if not data:
                    return is_killed
                hears.take(data)
            elif not is_killed and (hears.is_late or self.abandon.is_set()):
                process.kill()
                is_killed = True


class _Listener:
    """Puts what a process says into the history, and knows which step it is in, and how long that may take."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._rest = b""
        self._deadline = time.monotonic() + _START_SECONDS
        self.step = "start"

    @property
    def is_late(self) -> bool:
        return time.monotonic() >= self._deadline

    def take(self, data: bytes) -> None:
        """Full lines. The beginning of one whose process was killed says nothing: what it tells is not done yet."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            text = line.decode()
            step = step_of(text)
            if step is None:
                self._record(text)
            else:
                self.step, within = step
                self._deadline = time.monotonic() + within

    def _record(self, line: str) -> None:
        event = from_line(line)
        if isinstance(event, Ended):
            event = replace(event, after=self._stage.recorder.last_fault)  # its process knows nothing of faults
        self._stage.recorder.write(event)
