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
    "produce": Bound(calls=112, c_calls=79, system_calls=3, bytecodes=3091),
    "fetch": Bound(calls=121, c_calls=97, system_calls=3, bytecodes=3557),
    "fetch.nothing-new": Bound(calls=98, c_calls=66, system_calls=2, bytecodes=2732),
    "fetch.nothing-new.10": Bound(calls=269, c_calls=174, system_calls=2, bytecodes=7628),
    "fetch.nothing-new.100": Bound(calls=1979, c_calls=1254, system_calls=2, bytecodes=56588),
    "heartbeat": Bound(calls=103, c_calls=74, system_calls=2, bytecodes=2650),
    "heartbeat.consumer": Bound(calls=193, c_calls=113, system_calls=2, bytecodes=4804),
    "offset-commit": Bound(calls=327, c_calls=234, system_calls=3, bytecodes=7585),
    "produce.diskless": Bound(calls=514, c_calls=423, system_calls=2, bytecodes=10675),
    # end
}
