"""Named places where a test may kill this process. In production they do nothing.

`STRANDLINE_CRASH_AT=log.roll.after_create` in the environment at start makes the process die with SIGKILL when it
reaches that place; `name:3` when it reaches it for the third time. Nothing is flushed or cleaned up, as in a crash.
`stop@name` suspends it there with SIGSTOP instead, until the test lets it go on.
"""

from __future__ import annotations

import itertools
import os
import signal
from typing import Final

ENVIRONMENT_VARIABLE: Final = "STRANDLINE_CRASH_AT"
_STOP: Final = "stop@"


def arm(text: str) -> None:
    """Choose the place to die at, as `name` or `name:count`; an empty text chooses none."""
    global _armed, _signal, _visit, _visits
    place = text.removeprefix(_STOP)
    name, _, count = place.partition(":")
    _signal = signal.SIGKILL if place == text else signal.SIGSTOP
    _armed, _visit, _visits = name or None, int(count or 1), itertools.count(1)


_armed: str | None
_signal: signal.Signals
_visit: int
_visits: itertools.count[int]
arm(os.environ.get(ENVIRONMENT_VARIABLE, ""))


def crash_point(name: str) -> None:
    """Die here if this place is armed and the chosen visit is reached. Call it where a crash would do most harm."""
    if name == _armed and next(_visits) == _visit:
        os.kill(os.getpid(), _signal)
