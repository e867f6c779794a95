"""find_batches at the end of logs with many rows, and of the same logs after their rows were converted."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Generator, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

import uvloop

from bench.controlplane_load import (
    DATABASES,
    LOGS,
    PARTITIONS,
    RECORDS_PER_ROW,
    ROW_BYTES,
    databases,
    loaded_plane,
)
from bench.measures import Measured
from bench.tiering.place import TieringPlace, TieringStep
from strandline.controlplane import FindBatches, SqlControlPlane
from strandline.sql import open_store

_ROWS: Final = (100_000, 1_000_000)
_QUICK_ROWS: Final = (100_000,)
_ROWS_LEFT: Final = 16
"""Of each log, after its conversion: that is where both are asked."""
_COUNT: Final = 500
_QUICK_COUNT: Final = 200
_WARM_UP: Final = 50
_PARTITIONS: Final = (1, 16)
_FETCH_BYTES: Final = 2 * ROW_BYTES
_MAX_ROWS: Final = 500
_DELETED: Final = "DELETE FROM inkless_batch WHERE last_offset < {boundary}"
_FILES_DELETED: Final = "DELETE FROM inkless_file WHERE file_id NOT IN (SELECT file_id FROM inkless_batch)"
_MOVED: Final = "UPDATE inkless_log SET diskless_start_offset = {boundary}, tiered_high_offset = {boundary} - 1"


def steps(place: TieringPlace) -> Generator[TieringStep]:
    """Each database with each number of rows."""
    for kind in DATABASES:
        for rows in _QUICK_ROWS if place.is_quick else _ROWS:
            run = partial(_measure, place, kind, rows)
            yield TieringStep(f"tiering, find_batches, {rows:,} rows, {kind}", run)


def _measure(place: TieringPlace, kind: str, rows: int) -> Measured:
    directory = place.home / f"find-{kind}-{rows}"
    directory.mkdir(parents=True)
    with databases(kind, directory) as address, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        count = _QUICK_COUNT if place.is_quick else _COUNT
        return runner.run(_in_turn(kind, rows, {"rows": address(1), "converted": address(2)}, count))


async def _in_turn(kind: str, rows: int, addresses: Mapping[str, str], count: int) -> Measured:
    measured: Measured = {}
    async with AsyncExitStack() as stack:
        end = rows // LOGS * RECORDS_PER_ROW
        first = end - _ROWS_LEFT * RECORDS_PER_ROW
        for address in addresses.values():
            async with loaded_plane(address, rows):
                pass
        await _convert(addresses["converted"], first)
        planes = {
            name: SqlControlPlane(await stack.enter_async_context(open_store(address, deadline=60)))
            for name, address in addresses.items()
        }
        chance = random.Random(1)
        for partitions in _PARTITIONS:
            times: dict[str, list[float]] = {name: [] for name in planes}
            for turn in range(_WARM_UP + count):
                for name, plane in planes.items():
                    seconds = await _find(plane, chance, first, end - 2 * RECORDS_PER_ROW, partitions)
                    if turn >= _WARM_UP:
                        times[name].append(seconds * 1000)
            for name, found in times.items():
                found.sort()
                for quantile, share in (("p50", 0.5), ("p99", 0.99)):
                    where = f"tiering.find.{kind}.{rows}.{partitions}p.{name}.{quantile}"
                    measured[where] = found[int(len(found) * share)]
    return measured


async def _convert(address: str, boundary: int) -> None:
    """What the commits of segments leave, in one go: the newest rows, and a boundary below them."""
    async with open_store(address, deadline=60) as store:
        for statement in (_DELETED, _FILES_DELETED, _MOVED):
            async with store.transaction(within=600) as tx:
                await tx.execute(statement.format(boundary=boundary))
        if store.dialect.name == "postgresql":
            async with store.transaction(within=600) as tx:
                await tx.execute("ANALYZE")


async def _find(plane: SqlControlPlane, chance: random.Random, first: int, last: int, partitions: int) -> float:
    requests = [
        FindBatches(partition, chance.randrange(first, last), _FETCH_BYTES)
        for partition in chance.sample(PARTITIONS, partitions)
    ]
    begun = time.perf_counter()
    found = await plane.reads.find_batches(requests, max_rows=_MAX_ROWS)
    seconds = time.perf_counter() - begun
    if not all(answer.rows for answer in found):
        raise RuntimeError(f"The control plane found nothing at {requests}.")
    return seconds
