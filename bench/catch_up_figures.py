"""Figures of catching up on diskless topics that were written slowly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bench.figure import Figure

LINGERS_MS: Final = (0, 10, 50, 250)
LATENCY_MS: Final = 20
CASES: Final = {
    "cold": "from a directory, nothing in the page cache",
    "warm": "from a directory, all in the page cache",
    "slow": f"from a directory with {LATENCY_MS} ms more for each call",
    "s3": f"from S3 with {LATENCY_MS} ms more for each call",
}


def catch_up_figures() -> Iterator[Figure]:
    section = "Catching up: 100 B records written at 5,000/s to 8 diskless partitions"
    for case, words in CASES.items():
        yield Figure(name=f"catchup.{case}", title=f"consume {words}", unit="records/s", section=section)
    for case, words in CASES.items():
        yield _less(f"catchup.{case}.cpu", f"broker CPU for a million records, {words}", "s", section)
        yield _less(f"catchup.{case}.gets", f"requests for each object, {words}", "GET", section)
    yield _less("catchup.objects", "objects for 10,000 records", "", section)
    yield _less("catchup.rows", "rows for 10,000 records", "", section)
    section = "Objects that wait for more batches (strandline.produce.linger.ms), the same producers"
    for linger in LINGERS_MS:
        yield _less(f"linger.{linger}.objects", f"objects for 10,000 records, {linger} ms", "", section)
        yield _less(f"linger.{linger}.p50", f"acknowledged p50, {linger} ms", "ms", section)
        yield _less(f"linger.{linger}.p99", f"acknowledged p99, {linger} ms", "ms", section)
        title = f"consume, nothing in the page cache, {linger} ms"
        yield Figure(name=f"linger.{linger}.catchup", title=title, unit="records/s", section=section)


def _less(name: str, title: str, unit: str, section: str) -> Figure:
    return Figure(name=name, title=title, unit=unit, more_is_better=False, section=section)
