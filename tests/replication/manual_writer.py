"""A writer thread that writes when the test says so."""

from __future__ import annotations

import asyncio
from collections import deque

from strandline.replication import LogWriter
from strandline.replication.writer import Writable, Written


class ManualWriter(LogWriter):
    """Keeps what is submitted until `write_next`."""

    def __init__(self) -> None:
        super().__init__(asyncio.new_event_loop(), "manual")
        self._loop.close()
        self.submitted: deque[tuple[Writable, Written]] = deque()

    def submit(self, append: Writable, written: Written) -> None:
        self.submitted.append((append, written))

    def write_next(self) -> None:
        """Write the oldest append, and report it."""
        append, written = self.submitted.popleft()
        append.write()
        written(None)
