"""What the control plane costs, by the number of rows it holds.

    .venv/bin/python -m bench.controlplane [--rows 1000,100000,5000000] [--databases sqlite,postgresql] [--against REV]

Commits by partitions per file, finding by partitions per request, and commits with and without retention beside them,
on both databases with everything flushed to disk. `--against REV` measures another commit of this repository in turn
with the working tree. A regression: commit or find with the most rows cost more than twice what they cost with the
fewest, or retention moves the p99 of commits by more than 1.5 times.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, TypeAlias

import uvloop
from rich.console import Console
from rich.table import Table

from bench import kafka, machine
from bench.change import BEFORE, NOW
from bench.controlplane_change import compare
from bench.controlplane_load import (
    DATABASES,
    FIRST_TIMESTAMP,
    LOGS,
    PARTITIONS,
    RECORDS_PER_ROW,
    ROW_BYTES,
    TOPIC,
    TOPIC_ID,
    databases,
    loaded_plane,
)
from bench.tree import SourceTree, TreeFailed
from strandline.clock import SystemChance, SystemClock
from strandline.controlplane import BatchToCommit, FileToCommit, FindBatches, SqlControlPlane
from strandline.diskless.upkeep import RetentionEnforcer, TopicRetention
from strandline.model import TopicIdPartition
from strandline.records import TimestampType

_ROWS: Final = (1_000, 100_000, 5_000_000)
_FETCH_BYTES: Final = 2 * ROW_BYTES  # the same answer whatever the number of rows
_MAX_ROWS: Final = 500
_WARM_UP: Final = 20
_ROUNDS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One operation on one database."""

    database: str
    rows: int
    operation: str
    p50_ms: float
    p99_ms: float
    count: int


class _Load:
    """Commits and reads as a busy broker sends them."""

    def __init__(self, plane: SqlControlPlane, rows: int) -> None:
        self._plane = plane
        self._random = random.Random(1)
        self._keys = itertools.count()
        self._sequences = dict.fromkeys(PARTITIONS, 0)
        self._end = (rows // LOGS - 1) * RECORDS_PER_ROW  # two rows from there on, at least

    async def commit(self, partitions: int) -> None:
        """A file with one batch of one idempotent producer for each of some partitions."""
        chosen = self._random.sample(PARTITIONS, partitions)
        batches = tuple(self._batch(partition, position) for position, partition in enumerate(chosen))
        file = FileToCommit(
            object_key=f"wal/2026010100/1-{next(self._keys)}", size=ROW_BYTES * partitions, broker_id=1, batches=batches
        )
        (answers,) = await self._plane.commits.commit_files([file])
        if any(answer.refusal for answer in answers):
            raise RuntimeError(f"The control plane refused a batch: {answers}")

    def _batch(self, partition: TopicIdPartition, position: int) -> BatchToCommit:
        sequence = self._sequences[partition]
        self._sequences[partition] = sequence + 10
        return BatchToCommit(
            partition,
            position * ROW_BYTES,
            ROW_BYTES,
            10,
            FIRST_TIMESTAMP,
            TimestampType.CREATE_TIME,
            0,
            7,
            0,
            sequence,
        )

    async def find(self, partitions: int) -> None:
        """Reads from anywhere in some partitions."""
        requests = [
            FindBatches(partition, self._random.randrange(max(1, self._end)), _FETCH_BYTES)
            for partition in self._random.sample(PARTITIONS, partitions)
        ]
        found = await self._plane.reads.find_batches(requests, max_rows=_MAX_ROWS)
        if not all(answer.rows for answer in found):
            raise RuntimeError(f"The control plane found nothing at {requests}.")


Call: TypeAlias = Callable[[_Load], Awaitable[None]]
_OPERATIONS: Final[dict[str, Call]] = {
    "find, 1 partition": lambda load: load.find(1),
    "find, 16 partitions": lambda load: load.find(16),
    "commit, 1 partition": lambda load: load.commit(1),
    "commit, 16 partitions": lambda load: load.commit(16),
    "commit, 64 partitions": lambda load: load.commit(64),
    "commit, 256 partitions": lambda load: load.commit(256),
}


async def _once(call: Awaitable[None]) -> float:
    start = time.perf_counter()
    await call
    return (time.perf_counter() - start) * 1000


async def _interleaved(loads: Mapping[int, _Load], call: Call, count: int) -> dict[int, list[float]]:
    """Times by number of rows. In turn, so that other load on the machine affects all alike."""
    for _ in range(_WARM_UP):
        for load in loads.values():
            await call(load)
    times: dict[int, list[float]] = {rows: [] for rows in loads}
    for _ in range(count):
        for rows, load in loads.items():
            times[rows].append(await _once(call(load)))
    return times


async def _measure(kind: str, sizes: Sequence[int], directory: Path, count: int) -> list[Measured]:
    results = []

    def add(rows: int, operation: str, times: Sequence[float]) -> None:
        ordered = sorted(times)
        p50, p99 = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
        results.append(
            Measured(
                database=kind,
                rows=rows,
                operation=operation,
                p50_ms=round(p50, 3),
                p99_ms=round(p99, 3),
                count=len(ordered),
            )
        )

    async with AsyncExitStack() as stack:
        address = stack.enter_context(databases(kind, directory))
        planes = {rows: await stack.enter_async_context(loaded_plane(address(rows), rows)) for rows in sizes}
        loads = {rows: _Load(plane, rows) for rows, plane in planes.items()}
        for operation, call in _OPERATIONS.items():
            for rows, times in (await _interleaved(loads, call, count)).items():
                add(rows, operation, times)
        most = sizes[-1]
        for operation, times in (await _beside_retention(planes[most], loads[most], most, count)).items():
            add(most, operation, times)
    return results


async def _beside_retention(plane: SqlControlPlane, load: _Load, rows: int, count: int) -> dict[str, list[float]]:
    """Commits of 64 partitions, in turn alone and while retention removes rows."""
    clock = SystemClock()
    too_old = FIRST_TIMESTAMP + rows // 2
    topic = TopicRetention(TOPIC_ID, TOPIC, range(LOGS), ("delete",), clock.now_ms() - too_old, -1)
    alone: list[float] = []
    beside: list[float] = []
    for _ in range(_ROUNDS):
        alone += [await _once(load.commit(64)) for _ in range(count // _ROUNDS)]
        enforcer = RetentionEnforcer(
            lambda: [topic],
            plane.trimming,
            plane.producers,
            clock=clock,
            chance=SystemChance(),
            interval_ms=1,
            max_rows=2_000,
            producer_expiration_ms=1 << 40,
        )
        retention = asyncio.ensure_future(enforcer.run_once())
        beside += [await _once(load.commit(64)) for _ in range(count // _ROUNDS)]
        if retention.done():
            raise RuntimeError("Retention ended before the commits beside it: use more rows.")
        retention.cancel()
        await asyncio.gather(retention, return_exceptions=True)
    deleted = sum(log.log_start_offset for log in (await plane.reads.logs(PARTITIONS)).values()) // RECORDS_PER_ROW
    return {
        "commit, 64 partitions, without retention": alone,
        f"commit, 64 partitions, beside retention ({deleted:,} rows went)": beside,
    }


def _table(results: Sequence[Measured]) -> Table:
    table = Table(title="Control plane, milliseconds")
    for column in ("database", "rows", "operation", "p50", "p99"):
        table.add_column(column, justify="left" if column in ("database", "operation") else "right")
    for line in results:
        table.add_row(line.database, f"{line.rows:,}", line.operation, f"{line.p50_ms:.2f}", f"{line.p99_ms:.2f}")
    return table


def _verdicts(results: Sequence[Measured]) -> list[str]:
    """The cost of many rows as a multiple of the cost of few."""
    lines = []
    least, most = min(line.rows for line in results), max(line.rows for line in results)
    few = {(line.database, line.operation): line for line in results if line.rows == least}
    for line in results:
        base = few.get((line.database, line.operation))
        if line.rows == most and base and base is not line:
            lines.append(
                f"{line.database}: {line.operation}: {line.p50_ms / base.p50_ms:.2f}x (p50), "
                f"{line.p99_ms / base.p99_ms:.2f}x (p99) at {most:,} rows of what it is at {least:,}"
            )
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns 0."""
    parser = argparse.ArgumentParser(prog="python -m bench.controlplane", description=__doc__)
    parser.add_argument("--rows", default=",".join(map(str, _ROWS)), help="numbers of rows, with commas")
    parser.add_argument("--databases", default=",".join(DATABASES), help="sqlite, postgresql")
    parser.add_argument("--count", type=int, default=400, help="how often each operation is done")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--work-dir", type=Path, default=Path(tempfile.gettempdir()), help="where the databases lie")
    parser.add_argument("--against", metavar="REV", help="measure this commit too, in turn, and judge the change")
    parser.add_argument("--rounds", type=int, default=4, help="how often each tree takes its turn with --against")
    parser.add_argument("--cache", type=Path, default=kafka.default_cache(), help="where other commits are unpacked")
    options = parser.parse_args(arguments)
    if options.against:
        return _compare(options)
    rows = sorted(int(text) for text in options.rows.split(","))
    console = Console() if sys.stdout.isatty() else Console(width=150)
    about, results = machine.describe(), []
    for kind in options.databases.split(","):
        directory = Path(tempfile.mkdtemp(prefix="strandline-controlplane-", dir=options.work_dir))
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                results += runner.run(_measure(kind, rows, directory, options.count))
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        console.print(_table([line for line in results if line.database == kind]))
    for line in _verdicts(results):
        console.print(line, highlight=False)
    if options.json:
        options.json.write_text(json.dumps({"machine": about, "figures": [asdict(line) for line in results]}, indent=1))
    return 0


def _compare(options: argparse.Namespace) -> int:
    console = Console() if sys.stdout.isatty() else Console(width=150)
    same = ("rows", "databases", "count", "work_dir")
    arguments = [f"--{name.replace('_', '-')}={getattr(options, name)}" for name in same]
    try:
        trees = {NOW: SourceTree.working(), BEFORE: SourceTree.at(options.against, options.cache)}
        title = f"The working tree (now) and {options.against} (before), {options.rounds} rounds"
        compare(trees, arguments, options.rounds, console, title=title)
    except TreeFailed as failure:
        console.print(f"[red]{failure}[/red]", highlight=False)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
