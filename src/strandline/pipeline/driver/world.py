"""What the parts of a run share: the brokers, Spark, the settings, and what has happened so far."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Final, ParamSpec, TypeVar

from strandline.clock import Clock
from strandline.conversion_api.values import PipelineSettings
from strandline.pipeline.client import TieringClient
from strandline.pipeline.driver.holds import Holds
from strandline.pipeline.driver.jobs import SparkJobs
from strandline.pipeline.driver.reporting import Reporter, Tally
from strandline.pipeline.driver.troubles import Trouble, Troubles
from strandline.pipeline.stores import StoreSettings

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
JOBS_AT_ONCE: Final = 2
"""While the brokers are told of one job, the next one keeps the executors busy."""


@dataclass(slots=True, kw_only=True)
class RunWorld:
    """One run of the driver."""

    client: TieringClient
    jobs: SparkJobs
    threads: Executor
    claimant: str
    topics: tuple[str, ...]
    settings: PipelineSettings
    stores: StoreSettings
    clock: Clock
    reporter: Reporter
    holds: Holds
    troubles: Troubles
    tally: Tally = field(default_factory=Tally)
    merge_claimant: str = ""
    """Of the segments that are under way; another one in each pass."""

    async def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """A call that waits for a broker, in a thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.threads, lambda: function(*args, **kwargs))

    def fail(self, key: Hashable, what: str, sentence: str) -> Trouble:
        """Something cannot be converted now. It is tried again later; an operator has to look if it goes on failing."""
        trouble = self.troubles.failed(key, sentence)
        self.tally.failures += 1
        figures = {"what": what, "attempts": trouble.attempts, "error": sentence}
        if trouble.attempts >= self.settings.alert_after_failures:
            self.tally.alerts += 1
            logger.error("%s has failed %d times, and needs somebody to look: %s", what, trouble.attempts, sentence)
            self.reporter.say("alert", f"{what} has failed {trouble.attempts} times: {sentence}", **figures)
        else:
            logger.info("%s failed (attempt %d): %s", what, trouble.attempts, sentence)
            self.reporter.say("failure", sentence, **figures)
        return trouble


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of all. The first error ends the others, and is raised as it is."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
