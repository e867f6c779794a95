"""A plain copy in two steps, to compare the conversion with: the same bytes, the same store, as many cores, no parsing.

Step 1 reads each object and writes its bytes to a new one. Step 2 reads those and writes objects as large as segments.
Both wait until each object is on the disk, as the store promises. The processes are started before the clock is.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from strandline.objects import open_objects

_AT_ONCE: Final = 4
_OBJECTS_PER_TASK: Final = 8


class CopySeconds(NamedTuple):
    """How long the steps took."""

    first: float
    second: float


class PlainCopier:
    """Processes that copy objects of a directory."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def copy(self, directory: Path, target: Path, segment_bytes: int) -> CopySeconds:
        """Copy all files of a directory twice."""
        files = sorted(path for path in directory.rglob("*") if path.is_file())
        target.mkdir(parents=True)
        begun = time.perf_counter()
        tasks = [
            [(str(path.relative_to(directory)),) for path in files[first : first + _OBJECTS_PER_TASK]]
            for first in range(0, len(files), _OBJECTS_PER_TASK)
        ]
        self._run(tasks, directory, target / "objects", "copy")
        between = time.perf_counter()
        groups = _groups(
            [(f"copy/{path.relative_to(directory)}", path.stat().st_size) for path in files], segment_bytes
        )
        self._run([[group] for group in groups], target / "objects", target / "segments", "segment")
        return CopySeconds(between - begun, time.perf_counter() - between)

    def _run(self, tasks: Sequence[Sequence[Sequence[str]]], source: Path, target: Path, name: str) -> None:
        target.mkdir()
        for running in [self._pool.submit(_copy_task, task, str(source), str(target), name) for task in tasks]:
            running.result()


@contextmanager
def plain_copier(processes: int) -> Iterator[PlainCopier]:
    """Processes that are ready to copy."""
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        for running in [pool.submit(time.sleep, 0.5) for _ in range(processes)]:
            running.result()
        yield PlainCopier(pool)


def _groups(objects: Sequence[tuple[str, int]], most_bytes: int) -> list[list[str]]:
    """Keys of objects that are as large as a segment together."""
    groups: list[list[str]] = []
    room = 0
    for key, size in objects:
        if not groups or size > room:
            groups.append([])
            room = most_bytes
        groups[-1].append(key)
        room -= size
    return groups


def _copy_task(groups: Sequence[Sequence[str]], source: str, target: str, name: str) -> None:
    asyncio.run(_copy(groups, source, target, name))


async def _copy(groups: Sequence[Sequence[str]], source: str, target: str, name: str) -> None:
    """Write an object of each group of objects."""
    turns = asyncio.Semaphore(_AT_ONCE)
    async with open_objects(f"file://{source}") as objects, open_objects(f"file://{target}") as copies:

        async def copy(keys: Sequence[str]) -> None:
            async with turns:
                await copies.put(f"{name}/{keys[0]}", [await objects.get(key) for key in keys])

        await asyncio.gather(*(copy(keys) for keys in groups))
