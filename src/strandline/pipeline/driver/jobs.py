"""Runs jobs on Spark without blocking the event loop: with names that people understand, and an end when asked."""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, Final

from strandline.clock import Clock
from strandline.pipeline.driver.reporting import Reporter

if TYPE_CHECKING:
    from pyspark import SparkContext

logger = logging.getLogger(__name__)

Task = Callable[[Iterable[str]], Iterable[str]]
_POLL_SECONDS: Final = 0.5
_CANCEL_ATTEMPTS: Final = 20
_CAUSE: Final = re.compile(r"(?:Exception|Error|failure): (.+)")


class JobFailed(Exception):
    """A job has no results: its tasks died, again and again. A sentence."""


class SparkJobs:
    """Jobs of one Spark application. Several may run at a time; Spark gives free cores to the oldest first."""

    def __init__(self, context: SparkContext, threads: Executor, clock: Clock, reporter: Reporter) -> None:
        self._context, self._threads, self._clock, self._reporter = context, threads, clock, reporter
        self._numbers = itertools.count(1)

    @property
    def slots(self) -> int:
        """How many tasks run at a time."""
        return int(self._context.defaultParallelism)

    async def run(self, stage: str, description: str, tasks: Sequence[str], work: Task) -> list[str]:
        """The results of all tasks, each of which gets one row. Cancelled, the job ends before this does.

        Raises JobFailed.
        """
        group = f"strandline-{stage}-{next(self._numbers)}"
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(self._threads, self._collect, group, stage, description, tasks, work)
        watching = asyncio.create_task(self._watch(group, description, len(tasks)))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await self._cancel(group, running)
            raise
        finally:
            watching.cancel()
            self._reporter.job_ended(group)

    async def _cancel(self, group: str, running: asyncio.Future[list[str]]) -> None:
        """End a job. Spark may not know it yet, and does not remember what was cancelled: say it until it has ended."""
        loop = asyncio.get_running_loop()
        for _ in range(_CANCEL_ATTEMPTS):
            cancelling = loop.run_in_executor(self._threads, self._cancel_group, group)
            both: set[asyncio.Future[Any]] = {cancelling, running}
            await asyncio.wait(both, timeout=_POLL_SECONDS)
            if running.done():
                logger.debug("job %s was cancelled: %s", group, running.exception())
                return
        logger.warning("job %s does not end; its tasks end with the application", group)

    def _cancel_group(self, group: str) -> None:
        from py4j.protocol import Py4JError

        try:
            self._context.cancelJobGroup(group)
        except (Py4JError, OSError) as error:
            logger.debug("Spark does not take the end of job %s: %s", group, error)

    def _collect(self, group: str, stage: str, description: str, tasks: Sequence[str], work: Task) -> list[str]:
        from py4j.protocol import Py4JError

        context = self._context
        # These are of this thread, which runs one job at a time.
        context.setJobGroup(group, description, interruptOnCancel=True)
        context.setLocalProperty("callSite.short", stage)
        context.setLocalProperty("callSite.long", description)
        try:
            rows = context.parallelize(tasks, len(tasks))
            return context.runJob(rows, work)
        except (Py4JError, OSError) as error:
            raise JobFailed(_sentence(description, str(error))) from error

    async def _watch(self, group: str, description: str, total: int) -> None:
        if not self._reporter.wants_progress:
            return
        loop = asyncio.get_running_loop()
        while True:
            done = await loop.run_in_executor(self._threads, self._tasks_done, group)
            self._reporter.job_runs(group, description, done=done, total=total)
            await self._clock.sleep(_POLL_SECONDS)

    def _tasks_done(self, group: str) -> int:
        tracker = self._context.statusTracker()
        done = 0
        for number in tracker.getJobIdsForGroup(group):
            job = tracker.getJobInfo(number)
            for stage in job.stageIds if job is not None else ():
                info = tracker.getStageInfo(stage)
                done += info.numCompletedTasks if info is not None else 0
        return done


def _sentence(description: str, text: str) -> str:
    """What a stack trace is about."""
    if "Python worker exited unexpectedly" in text or "Connection reset" in text or "EOFException" in text:
        why = "the process of a task died (out of memory, or killed)"
    else:
        causes = _CAUSE.findall(text)
        why = causes[-1].strip().rstrip(".") if causes else text.strip().partition("\n")[0].rstrip(".")
    return f"The job to {description} failed: {why}."
