"""Named places where a test may kill this process. In production they do nothing.

`STRANDLINE_CRASH_AT=log.roll.after_create` in the environment at start makes the process die with SIGKILL when it
reaches that place; `name:3` when it reaches it for the third time. Nothing is flushed or cleaned up, as in a crash.
`stop@name` suspends it there with SIGSTOP instead, until the test lets it go on. A process that works for a broker
(`die_with`) takes the broker with it, unless the text is `alone@name`.
"""

from __future__ import annotations

import itertools
import os
import signal
from typing import Final

ENVIRONMENT_VARIABLE: Final = "STRANDLINE_CRASH_AT"
_STOP: Final = "stop@"
_ALONE: Final = "alone@"


def arm(text: str) -> None:
    """Choose the place to die at, as `name` or `name:count`; an empty text chooses none."""
    global _armed, _is_alone, _signal, _visit, _visits
    place = text.removeprefix(_STOP).removeprefix(_ALONE)
    name, _, count = place.partition(":")
    _signal = signal.SIGSTOP if text.startswith(_STOP) else signal.SIGKILL
    _is_alone = text.startswith(_ALONE)
    _armed, _visit, _visits = name or None, int(count or 1), itertools.count(1)


def die_with(broker: int) -> None:
    """This process works for a broker: what happens to it at a place happens to the broker first."""
    global _broker
    _broker = broker


_armed: str | None
_broker: int | None = None
_is_alone: bool
_signal: signal.Signals
_visit: int
_visits: itertools.count[int]
arm(os.environ.get(ENVIRONMENT_VARIABLE, ""))


def crash_point(name: str) -> None:
    """Die here if this place is armed and the chosen visit is reached. Call it where a crash would do most harm."""
    if name == _armed and next(_visits) == _visit:
        if _broker is not None and not _is_alone:
            os.kill(_broker, _signal)
        os.kill(os.getpid(), _signal)
