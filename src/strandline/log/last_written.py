"""Compares the clock with the time of the last write, all that a broker without a shared database can compare it with.

A broker that was away for days and a clock that is days ahead look alike. So nothing is refused, but the log says how
much time has passed. An operator who knows that it was an hour, and reads that it was days, knows that retention is
about to delete records too early.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Final

from strandline.clock import Clock
from strandline.log.checkpoints import HIGH_WATERMARKS, RECOVERY_POINTS

logger = logging.getLogger(__name__)

_LONG_MS: Final = 24 * 3_600_000
_BEHIND_MS: Final = 60_000


def check_clock(directories: Iterable[str], clock: Clock) -> None:
    """Warn if the checkpoints of log directories, which are written all the time, are much older or of the future."""
    written = [(moment, directory) for directory in directories if (moment := _last_written_ms(directory)) is not None]
    if not written:
        return
    newest_ms, directory = max(written)
    since_ms = clock.now_ms() - newest_ms
    by = timedelta(seconds=abs(since_ms) // 1000)
    if since_ms > _LONG_MS:
        logger.warning(
            "the last checkpoint in %s is %s old. If the broker was not away for so long, its clock is ahead: stop it "
            "and set the clock, before retention deletes records too early",
            directory,
            by,
        )
    elif since_ms < -_BEHIND_MS:
        logger.warning(
            "the last checkpoint in %s is from %s in the future: the clock is behind, or was ahead before. Records "
            "may have timestamps of that time",
            directory,
            by,
        )


def _last_written_ms(directory: str) -> int | None:
    found = []
    for name in (HIGH_WATERMARKS, RECOVERY_POINTS):
        with suppress(OSError):  # a new directory has none; one that cannot be read is reported elsewhere
            found.append(os.stat(os.path.join(directory, name)).st_mtime_ns // 1_000_000)
    return max(found, default=None)
