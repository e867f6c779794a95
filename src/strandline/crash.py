"""Named places where a test may kill this process. In production they do nothing.

`STRANDLINE_CRASH_AT=log.roll.after_create` in the environment at start makes the process die with SIGKILL when it
reaches that place; `name:3` when it reaches it for the third time. Nothing is flushed or cleaned up, as in a crash.
"""

from __future__ import annotations

import itertools
import os
import signal
from typing import Final

ENVIRONMENT_VARIABLE: Final = "STRANDLINE_CRASH_AT"


def _parse(text: str) -> tuple[str | None, int]:
    """Name and count of the armed place; None if no place is armed."""
    name, _, count = text.partition(":")
    return name or None, int(count or 1)


_armed, _visit = _parse(os.environ.get(ENVIRONMENT_VARIABLE, ""))
_visits = itertools.count(1)


def crash_point(name: str) -> None:
    """Die here if this place is armed and it is visited for the wanted time. Call it where a crash would hurt most."""
    if name == _armed and next(_visits) == _visit:
        os.kill(os.getpid(), signal.SIGKILL)
