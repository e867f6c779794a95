"""Rows of the control plane under steady load: with a driver that follows, and without one.

Two brokers get the same load at the same time. What is in their databases is read every few seconds, from the files.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final, NamedTuple

from bench.generator import Load, LoadFailed
from bench.measures import Measured, killed_on_error
from bench.systems import StrandlineBroker
from bench.tiering.conversion import DriverProcess
from bench.tiering.place import DISKLESS, KILOBYTE, MASTER, TieringPlace, TieringStep
from bench.tiering.plot import Curve, draw
from bench.topics import Topics

PARTITIONS: Final = 16
RECORDS_PER_SECOND: Final = 800
RETENTION_MS: Final = 30_000
_PRODUCERS: Final = 4
_SECONDS: Final = 600
_QUICK_SECONDS: Final = 150
_LOOK_SECONDS: Final = 5.0
_START_SECONDS: Final = 180.0
_STEADY_GROWTH: Final = 1.5
"""Rows that only come grow by 5/3 from the second third of the time to the last one."""
_TABLES: Final = ("inkless_batch", "inkless_file", "inkless_split_batch")
# Segments of a few minutes of load: with the defaults, of 1 MB to 1 GB, a topic as quiet as this one would wait for the
# rest of the hour.
_SETTINGS: Final = {
    "inkless.tiering.splitter.interval.ms": "5000",
    "inkless.tiering.merger.initial.delay.ms": "5000",
    "inkless.tiering.merger.interval.ms": "10000",
    "inkless.tiering.merger.max.wait.ms": "30000",
    "inkless.file.cleaner.interval.ms": "5000",
    "inkless.file.cleaner.retention.period.ms": "10000",
}
PLOT: Final = Path(__file__).resolve().parents[2] / "docs" / "images" / "control-plane-rows.svg"


class Sample(NamedTuple):
    """What the databases of both brokers hold, by table."""

    second: float
    converted: tuple[int, ...]
    plain: tuple[int, ...]


def steps(place: TieringPlace) -> Generator[TieringStep]:
    """One measurement."""
    seconds = _QUICK_SECONDS if place.is_quick else _SECONDS
    yield TieringStep(f"tiering, rows, {seconds} s of load", lambda: _measure(place, seconds))


def _measure(place: TieringPlace, seconds: int) -> Measured:
    samples = _under_load(place, seconds)
    results = place.cache / "bench" / "control-plane-rows.json"
    results.write_text(json.dumps([sample._asdict() for sample in samples]))
    last, third = samples[-1], seconds / 3
    growth = _growth([(one.second, one.plain[0]) for one in samples], third)
    if growth < _STEADY_GROWTH:
        raise LoadFailed(
            f"The load was not steady: without conversion the last third has {growth:.2f}x the rows of the second one "
            f"instead of 1.67x, so that flat rows with conversion would show nothing. The samples are in {results}."
        )
    if not place.is_quick:
        draw_samples(samples, PLOT)
    return {
        "tiering.rows.with": last.converted[0],
        "tiering.rows.without": last.plain[0],
        "tiering.rows.files.with": last.converted[1],
        "tiering.rows.files.without": last.plain[1],
        "tiering.rows.splits.most": max(sample.converted[2] for sample in samples),
        "tiering.rows.growth": _growth([(one.second, one.converted[0]) for one in samples], third),
        "tiering.rows.growth.without": growth,
    }


def _under_load(place: TieringPlace, seconds: int) -> list[Sample]:
    with ExitStack() as stack:
        converted = stack.enter_context(place.broker("rows-converted", _SETTINGS))
        plain = stack.enter_context(place.broker("rows-plain", _SETTINGS))
        for broker in (converted, plain):
            config = {**DISKLESS, "local.retention.ms": str(RETENTION_MS)}
            Topics(broker.bootstrap).create({"rows": PARTITIONS}, config)
        program = [str(place.system.program), "tiering", "run", "--follow", "--json", "--no-ui", "--master", MASTER]
        command = [*program, "--bootstrap", converted.bootstrap]
        driver = stack.enter_context(DriverProcess(command, place.home / "rows-driver.log"))
        driver.wait_for("spark-started", _START_SECONDS)
        loads = [_load(place, broker, seconds) for broker in (converted, plain)]
        with killed_on_error(*loads):
            samples = _watch(converted, plain, seconds)
            for load in loads:
                load.stop()
    if samples[-1].converted[0] >= samples[-1].plain[0]:
        raise LoadFailed(f"Nothing was converted: {driver.said()}")
    return samples


def _load(place: TieringPlace, broker: StrandlineBroker, seconds: int) -> Load:
    return place.generator.start(
        "switch",
        brokers=broker.bootstrap,
        topic="rows",
        partitions=PARTITIONS,
        producers=_PRODUCERS,
        rate=RECORDS_PER_SECOND,
        seconds=seconds + 60,
        size=KILOBYTE,
        file=str(broker.data_dir.with_name(f"{broker.data_dir.name}-acknowledged")),
    )


def _watch(converted: StrandlineBroker, plain: StrandlineBroker, seconds: int) -> list[Sample]:
    begun = time.monotonic()
    samples: list[Sample] = []
    while (passed := time.monotonic() - begun) < seconds:
        samples.append(Sample(round(passed, 1), _counts(converted), _counts(plain)))
        time.sleep(max(0.0, begun + len(samples) * _LOOK_SECONDS - time.monotonic()))
    return samples


def _counts(broker: StrandlineBroker) -> tuple[int, ...]:
    """How many rows each table has now, read beside the broker."""
    with closing(sqlite3.connect(f"file:{broker.data_dir / 'metadata.db'}?mode=ro", uri=True, timeout=30)) as database:
        return tuple(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in _TABLES)


def _growth(values: Sequence[tuple[float, int]], third: float) -> float:
    """The mean of the last third by that of the second one."""
    second = [value for at, value in values if third <= at < 2 * third]
    last = [value for at, value in values if at >= 2 * third]
    return (sum(last) / len(last)) / max(1.0, sum(second) / len(second))


def draw_samples(samples: Sequence[Sample], file: Path) -> None:
    """The picture of docs/benchmarks.md."""
    curves = [
        Curve("batches, not converted", "#9db3bc", [(one.second, one.plain[0]) for one in samples]),
        Curve("batches, converted", "#0f6e84", [(one.second, one.converted[0]) for one in samples]),
        Curve("files, converted", "#d9b35b", [(one.second, one.converted[1]) for one in samples]),
        Curve("split files, converted", "#b5533c", [(one.second, one.converted[2]) for one in samples]),
    ]
    draw(
        file,
        curves,
        title="Rows of the control plane under steady load",
        description="The number of batches in the control plane grows with the load where nothing is converted, and "
        "stays flat with a driver that follows and local.retention.ms=30000.",
    )
