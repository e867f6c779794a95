"""A writer thread without a thread: appends reach their files late, in their order, and not at all after a crash."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from typing import NamedTuple

from strandline.replication import LogWriter
from strandline.replication.writer import Writable, Written


class _Submitted(NamedTuple):
    append: Writable
    written: Written


class LateWriter(LogWriter):
    """Writes one append after the other, each after a while."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str, chance: random.Random) -> None:
        super().__init__(loop, name)
        self._virtual, self._chance = loop, chance
        self._queue: deque[_Submitted] = deque()
        self._is_stopped = False

    def submit(self, append: Writable, written: Written) -> None:
        self._queue.append(_Submitted(append, written))
        if len(self._queue) == 1:
            self._begin()

    def _begin(self) -> None:
        most = 0.005 if self._chance.random() < 0.8 else 0.3
        self._virtual.call_later(most * self._chance.random(), self._write_next)

    def _write_next(self) -> None:
        if self._is_stopped:
            return
        one = self._queue.popleft()
        one.append.write()
        one.written(None)
        if self._queue:
            self._begin()

    def kill(self) -> None:
        """The process dies: the rest is never written."""
        self._is_stopped = True
        self._queue.clear()

    def close(self) -> None:
        """Finish what is queued."""
        while self._queue:
            one = self._queue.popleft()
            one.append.write()
            one.written(None)
        self._is_stopped = True
