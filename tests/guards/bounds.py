"""What small requests may cost. `.venv/bin/python -m bench.counts --write` counts them anew and rewrites the table.

A change that makes a request cheaper lowers its row in the same commit; one that makes it dearer says in its message
why that is worth it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

# Counts are the same in every run. The margin is for Python versions, and for changes too small to talk about.
MARGIN: Final = 0.05
# What a diskless batch leaves to be done later, for others, is a part of it that varies.
DISKLESS_MARGIN: Final = 0.1

# Blocks of memory that stay after a request: a reference that nobody drops, or a table that grows.
KEPT: Final = 0.1

# How the calls of a Fetch with nothing new may grow with the partitions of its session: 1 is linear.
SESSION_EXPONENT: Final = 0.95


class Bound(NamedTuple):
    """Counts of one request, as they were when the table was written. See `bench.counted.Tally`."""

    calls: int
    c_calls: int
    system_calls: int
    bytecodes: int


COUNTS: Final[Mapping[str, Bound]] = {
    # counted by `python -m bench.counts --write`
    "produce": Bound(calls=27, c_calls=32, system_calls=3, bytecodes=1152),
    "produce.two-partitions": Bound(calls=187, c_calls=141, system_calls=4, bytecodes=5020),
    "fetch": Bound(calls=122, c_calls=98, system_calls=3, bytecodes=3643),
    "fetch.nothing-new": Bound(calls=97, c_calls=67, system_calls=2, bytecodes=2764),
    "fetch.nothing-new.10": Bound(calls=268, c_calls=175, system_calls=2, bytecodes=7660),
    "fetch.nothing-new.100": Bound(calls=1978, c_calls=1255, system_calls=2, bytecodes=56620),
    "heartbeat": Bound(calls=102, c_calls=75, system_calls=2, bytecodes=2682),
    "heartbeat.consumer": Bound(calls=192, c_calls=114, system_calls=2, bytecodes=4836),
    "offset-commit": Bound(calls=326, c_calls=235, system_calls=3, bytecodes=7617),
    "produce.diskless": Bound(calls=517, c_calls=426, system_calls=2, bytecodes=10765),
    # end
}
