"""Finds split files that a run of the tiering pipeline wrote and did not record, and marks them for the file cleaner.

By level: the control plane knows which runs have claimed WAL objects, and their claimants are in the keys. When a run
has no claim left, whatever the reason, it will not record its other split files any more; the broker on duty looks for
them. A task that writes even later leaves an orphan, which the search for orphans finds.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from strandline.clock import Chance, Clock
from strandline.controlplane.conversion import GivenUpRun, GivenUpRuns
from strandline.crash import crash_point
from strandline.diskless.upkeep.loop import IsOnDuty, UpkeepLoop, UpkeepStatus, always_on_duty
from strandline.diskless.wal import split_keys
from strandline.diskless.wal.hours import HOUR_MS
from strandline.model import TimestampMs
from strandline.objects import ObjectStore

INTERVAL_MS: Final = 5_000
_RUNS: Final = 100
"""That are looked at in one round."""
# Keys in one call to the control plane: few, because on SQLite commits wait for it.
_PAGE: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftoverStatus:
    """Counters since the start."""

    upkeep: UpkeepStatus
    leftovers_taken: int


class LeftoverFinder:
    """Looks below `split/` for what runs without claims have left, in the hours in which they may have written."""

    def __init__(
        self,
        runs: GivenUpRuns,
        store: ObjectStore,
        *,
        clock: Clock,
        chance: Chance,
        broker_id: int,
        interval_ms: int = INTERVAL_MS,
        is_on_duty: IsOnDuty = always_on_duty,
    ) -> None:
        self._runs, self._store, self._broker_id = runs, store, broker_id
        self._upkeep = UpkeepLoop(
            "The search for split files that were not recorded",
            interval_ms=interval_ms,
            clock=clock,
            chance=chance,
            is_on_duty=is_on_duty,
        )
        self._taken = 0

    async def run(self) -> None:
        """Search until cancelled."""
        await self._upkeep.repeat(self.run_once)

    async def run_once(self) -> int:
        """Search once; how many were marked. Raises SqlErrors and ObjectStoreErrors; objects marked before stay so."""
        before = self._taken
        for run in await self._runs.given_up_runs(limit=_RUNS):
            if await self._take_all(run):
                await self._runs.run_looked_at(run)
        return self._taken - before

    def status(self) -> LeftoverStatus:
        return LeftoverStatus(upkeep=self._upkeep.status(), leftovers_taken=self._taken)

    async def _take_all(self, run: GivenUpRun) -> bool:
        """False if the run has claimed again meanwhile."""
        async with aclosing(self._pages(run)) as pages:
            async for page in pages:
                # Looked up first: most files of a run that has ended well are recorded.
                keys = await self._runs.unrecorded(page)
                crash_point("diskless.leftovers.before_take")
                taken = await self._runs.take_leftovers(run, keys, broker_id=self._broker_id)
                crash_point("diskless.leftovers.after_take")
                if taken is None:
                    return False
                self._taken += len(taken)
        return True

    async def _pages(self, run: GivenUpRun) -> AsyncGenerator[list[str], None]:
        page: list[str] = []
        for hour_ms in _hours(run):
            prefix = split_keys.run_prefix(hour_ms, run.claimant)
            # A bucket begins with the key behind that one, instead of listing the hour from its beginning.
            async with aclosing(self._store.list(prefix, after=prefix)) as items:
                async for item in items:
                    if split_keys.parse(item.key) is None:
                        continue  # not ours: never deleted
                    page.append(item.key)
                    if len(page) == _PAGE:
                        yield page
                        page = []
        yield page


def _hours(run: GivenUpRun) -> Iterator[TimestampMs]:
    """Those in which it may have written, and one more on either side: clocks of executors may differ."""
    first_ms = run.first_claim_at_ms - HOUR_MS
    hours = (run.now_ms - first_ms) // HOUR_MS + 2
    return iter(range(first_ms, first_ms + hours * HOUR_MS, HOUR_MS))
