"""When work on a partition is due, and how much of it runs at the same time.

One queue and one task serve all partitions of a pool. A look at an idle partition is one call that compares a few
numbers; the time of its next look is rounded up, so that thousands of idle partitions wake the broker only a few times
per interval.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
import math
from collections import deque
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Protocol

from strandline.clock import Chance, Clock
from strandline.errors import StrandlineError
from strandline.remote.manager.limits import ManagerLimits
from strandline.remote.ports import RemoteStorageError

logger = logging.getLogger(__name__)

_PERMILLE: Final = 1000
_LONGEST_TICK_S: Final = 1.0
_TICKS_PER_INTERVAL: Final = 16


class Look(Enum):
    """The result of a look at a partition."""

    IDLE = auto()
    """Nothing to do; look again after the interval."""
    WORK = auto()
    NOT_READY = auto()
    """Not known yet; look again soon."""
    DONE = auto()
    """The job is over; remove it."""


class Job(Protocol):
    """Recurring work on one partition. Runs on the event loop."""

    @property
    def name(self) -> str:
        """What it does, for messages, such as "copying of orders-0 to remote storage"."""

    def look(self) -> Look:
        """Whether there is something to do. Must be cheap."""

    async def run(self, pool: JobPool) -> bool:
        """Do it. True if there is more to do at once. Must be repeatable from any point, as after a crash."""


@dataclass(eq=False, slots=True)
class JobState:
    """A job in a pool."""

    job: Job
    due: float = math.inf
    is_ready: bool = False
    """It waits for a slot of the pool."""
    running_since: float | None = None
    is_woken: bool = False
    """It was woken while it was running."""
    is_removed: bool = False
    failures: int = 0
    postponed: int = 0
    last_error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStatus:
    """How busy a pool is."""

    size: int
    jobs: int
    running: int
    ready: int
    """Jobs that wait for a slot."""
    failing: int
    """Jobs whose last turn failed."""
    busy_seconds: float
    """Of all slots together, since the start."""
    oldest_running_seconds: float


class JobPool:
    """Runs at most `size` jobs at once; the others wait in the order in which they were found to have work."""

    def __init__(self, size: int, limits: ManagerLimits, *, clock: Clock, chance: Chance) -> None:
        self._size, self._limits = size, limits
        self._clock, self._chance = clock, chance
        self._interval = limits.task_interval_ms / _PERMILLE
        self._tick = min(self._interval / _TICKS_PER_INTERVAL, _LONGEST_TICK_S)
        self._jobs: dict[Job, JobState] = {}
        self._queue: list[tuple[float, int, JobState]] = []
        self._numbers = itertools.count()
        self._ready: deque[JobState] = deque()
        self._running: set[JobState] = set()
        self._changed = asyncio.Event()
        self._busy_seconds = 0.0

    # Jobs

    @property
    def others_wait(self) -> bool:
        """Whether other jobs wait for a slot: a long job then ends its turn early."""
        return bool(self._ready)

    def wake(self, job: Job) -> None:
        """Look at a job now. A new job is added."""
        state = self._jobs.get(job)
        if state is None:
            self._jobs[job] = state = JobState(job)
        state.postponed = 0
        if state.running_since is not None:
            state.is_woken, state.is_removed = True, False
        elif not state.is_ready:
            self._schedule(state, self._clock.monotonic())

    def remove(self, job: Job) -> None:
        """Remove a job. If it is running, its turn still completes."""
        state = self._jobs.get(job)
        if state is not None:
            state.is_removed, state.is_woken, state.due = True, False, math.inf
            if state.running_since is None:
                del self._jobs[job]

    def state_of(self, job: Job) -> JobState | None:
        return self._jobs.get(job)

    def status(self) -> PoolStatus:
        now = self._clock.monotonic()
        since = [state.running_since for state in self._running if state.running_since is not None]
        return PoolStatus(
            size=self._size,
            jobs=len(self._jobs),
            running=len(self._running),
            ready=len(self._ready),
            failing=sum(state.failures > 0 for state in self._jobs.values()),
            busy_seconds=self._busy_seconds + sum(now - start for start in since),
            oldest_running_seconds=max((now - start for start in since), default=0.0),
        )

    # Running them

    async def run(self) -> None:
        """Look and work until cancelled. Running turns are cancelled too."""
        async with asyncio.TaskGroup() as turns:
            while True:
                self._changed.clear()
                self._look_at_due()
                while self._ready and len(self._running) < self._size:
                    self._start(self._ready.popleft(), turns)
                if self._queue:
                    within = max(self._queue[0][0] - self._clock.monotonic(), 0.0)
                    await self._clock.wait_set(self._changed, within=within)
                else:
                    await self._changed.wait()

    def _schedule(self, state: JobState, due: float) -> None:
        state.due = due
        heapq.heappush(self._queue, (due, next(self._numbers), state))
        if self._queue[0][2] is state:
            self._changed.set()

    def _schedule_regularly(self, state: JobState) -> None:
        due = self._clock.monotonic() + self._interval
        self._schedule(state, math.ceil(due / self._tick) * self._tick)

    def _look_at_due(self) -> None:
        now = self._clock.monotonic()
        while self._queue and self._queue[0][0] <= now:
            due, _, state = heapq.heappop(self._queue)
            if state.due == due:  # otherwise it was rescheduled or removed
                self._look_at(state)

    def _look_at(self, state: JobState) -> None:
        try:
            look = state.job.look()
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything; other partitions must go on
            self._schedule(state, self._clock.monotonic() + self._failed(state, error))
            return
        if look is Look.WORK:
            state.due, state.is_ready, state.postponed = math.inf, True, 0
            self._ready.append(state)
        elif look is Look.NOT_READY:
            pause = min(self._limits.task_retry_backoff_ms / _PERMILLE * 2**state.postponed, self._interval)
            state.postponed = min(state.postponed + 1, 30)
            self._schedule(state, self._clock.monotonic() + pause)
        elif look is Look.DONE:
            self.remove(state.job)
        else:
            state.postponed = 0
            self._schedule_regularly(state)

    def _start(self, state: JobState, turns: asyncio.TaskGroup) -> None:
        state.is_ready = False
        if not state.is_removed:
            state.running_since = self._clock.monotonic()
            self._running.add(state)
            turns.create_task(self._turn(state), name=state.job.name)

    async def _turn(self, state: JobState) -> None:
        pause: float | None = None
        try:
            if await state.job.run(self):
                pause = 0.0
        except (RemoteStorageError, StrandlineError, OSError, ValueError) as error:
            pause = self._failed(state, error)
        except Exception as error:
            logger.exception("%s failed unexpectedly", state.job.name)
            pause = self._failed(state, error)
        else:
            state.failures, state.last_error = 0, None
        finally:
            self._end(state)
        if state.is_removed:
            del self._jobs[state.job]
            return
        if state.is_woken and not state.failures:
            pause = 0.0
        state.is_woken = False
        if pause is None:
            self._schedule_regularly(state)
        else:
            self._schedule(state, self._clock.monotonic() + pause)

    def _end(self, state: JobState) -> None:
        if state.running_since is not None:
            self._busy_seconds += self._clock.monotonic() - state.running_since
        state.running_since = None
        self._running.discard(state)
        self._changed.set()

    def _failed(self, state: JobState, error: Exception) -> float:
        """Record a failure. Returns the seconds until the next attempt."""
        limits = self._limits
        backoff = min(limits.task_retry_backoff_ms * 2.0**state.failures, limits.task_retry_backoff_max_ms)
        jitter = limits.task_retry_jitter * (2 * self._chance.below(_PERMILLE + 1) / _PERMILLE - 1)
        pause = backoff * (1 + jitter) / _PERMILLE
        state.failures = min(state.failures + 1, 60)
        state.last_error = str(error) or repr(error)
        # Log less and less often: during an outage of a day there are thousands of failures.
        if state.failures & (state.failures - 1) == 0 and not state.is_removed:
            logger.warning(
                "%s failed %d times in a row, next attempt in %.3g s: %s", state.job.name, state.failures, pause, error
            )
        return pause
