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
    "produce": Bound(calls=28, c_calls=32, system_calls=3, bytecodes=1195),
    "produce.two-partitions": Bound(calls=60, c_calls=71, system_calls=4, bytecodes=2484),
    "produce.16-partitions": Bound(calls=312, c_calls=393, system_calls=18, bytecodes=13628),
    "produce.two-partitions.general": Bound(calls=242, c_calls=178, system_calls=4, bytecodes=6675),
    "fetch": Bound(calls=126, c_calls=94, system_calls=3, bytecodes=3724),
    "fetch.nothing-new": Bound(calls=103, c_calls=63, system_calls=2, bytecodes=2874),
    "fetch.nothing-new.10": Bound(calls=283, c_calls=144, system_calls=2, bytecodes=7806),
    "fetch.nothing-new.100": Bound(calls=2083, c_calls=954, system_calls=2, bytecodes=57126),
    "heartbeat": Bound(calls=79, c_calls=58, system_calls=2, bytecodes=2083),
    "heartbeat.consumer": Bound(calls=118, c_calls=79, system_calls=2, bytecodes=3002),
    "offset-commit": Bound(calls=200, c_calls=158, system_calls=3, bytecodes=5169),
    "offset-fetch": Bound(calls=128, c_calls=98, system_calls=2, bytecodes=3388),
    "produce.diskless": Bound(calls=532, c_calls=430, system_calls=2, bytecodes=11059),
    # end
}
