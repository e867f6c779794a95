"""The driver of `strandline tiering run --once` without Spark: its tasks run in threads.

Its crash points are those of the real one, and of executors. A test that kills it needs no Java and takes a moment.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from pyspark import SparkFiles

from strandline.clock import SystemClock, SystemIds
from strandline.crash import arm
from strandline.pipeline.client import TieringClient
from strandline.pipeline.driver.holds import Holds
from strandline.pipeline.driver.jobs import SparkJobs, Task
from strandline.pipeline.driver.lines import LineReporter
from strandline.pipeline.driver.rounds import run_once
from strandline.pipeline.driver.threads import DaemonThreads
from strandline.pipeline.driver.troubles import Troubles
from strandline.pipeline.driver.world import RunWorld
from strandline.pipeline.stores import StoreSettings


class PlainJobs:
    """Each task in a thread, as Spark's workers run them in processes."""

    slots = 2

    async def run(self, stage: str, description: str, tasks: Sequence[str], work: Task) -> list[str]:
        turns = asyncio.Semaphore(self.slots)

        async def one(row: str) -> list[str]:
            async with turns:
                return await asyncio.to_thread(lambda: list(work([row])))

        found: Iterable[list[str]] = await asyncio.gather(*(one(row) for row in tasks))
        return [text for texts in found for text in texts]


def make_world(client: TieringClient, topics: Sequence[str], *, reporter: LineReporter | None = None) -> RunWorld:
    """A run of the real driver with such jobs."""
    described = client.describe()
    clock = SystemClock()
    claimant = f"plain:{SystemIds().uuid()}"
    return RunWorld(
        client=client,
        jobs=cast(SparkJobs, PlainJobs()),
        threads=DaemonThreads(),
        claimant=claimant,
        topics=tuple(topics),
        settings=described.pipeline,
        stores=StoreSettings(described.store_settings, described.cluster_id),
        clock=clock,
        reporter=reporter or LineReporter(as_json=True),
        holds=Holds(claimant),
        troubles=Troubles(clock),
    )


def prepare_tasks() -> None:
    """Tasks ask Spark for a directory to work in; on executors it is set like this."""
    files: Any = SparkFiles
    files._is_running_on_worker, files._root_directory = True, tempfile.gettempdir()


def run_driver(log: str, crash_at: str, bootstrap: str, *topics: str) -> None:
    """The whole life of a process. What it says is in `log`; it ends with status 1 if something was not converted."""
    sys.stdout = sys.stderr = Path(log).open("w", buffering=1)  # noqa: SIM115 - until the process ends
    arm(crash_at)
    prepare_tasks()
    with TieringClient(bootstrap) as client:
        world = make_world(client, topics)
        asyncio.run(run_once(world))
    sys.exit(1 if world.troubles.sentences() else 0)
