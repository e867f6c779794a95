"""The work that a controller does by itself: keep the lease, fence brokers, balance leaders, write snapshots.

It is done every second, and at once when the lease is free, another broker has died, or its session is over.
Snapshots are written by a task of their own: that of a million topics takes longer than the lease lasts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from strandline.clock import Clock
from strandline.config import ClusterSettings
from strandline.errors import NotController, StrandlineError
from strandline.metadata.controller.death_watch import DeathWatch
from strandline.metadata.controller.fencing import Fencing, MetadataWriter
from strandline.metadata.controller.listening import ListeningTime
from strandline.metadata.image import MetadataImage
from strandline.metadata.log.loader import MetadataLoader
from strandline.metadata.log.store import MetadataStore
from strandline.metadata.plans.election_requests import plan_balance
from strandline.metadata.plans.elections import grouped
from strandline.metadata.plans.membership import MembershipPlanner
from strandline.metadata.plans.replica_growth import ReplicaGrowth
from strandline.metadata.requests import Plan
from strandline.metadata.topic_map import indexed_topics
from strandline.sql import SqlError
from strandline.tasks import Setbacks, next_turn

logger = logging.getLogger(__name__)

TICK_SECONDS: Final = 1.0
_LEAST_PAUSE_SECONDS: Final = 0.1  # before a lease that should be over is asked for again
SNAPSHOT_RECORDS: Final = 1000  # new records after which a snapshot is due
SNAPSHOT_FEW: Final = 5  # enough if SNAPSHOT_SECONDS have passed, or the broker stops
SNAPSHOT_SECONDS: Final = 60.0
_MOST_BALANCED: Final = 1000  # partitions that change their leader at once
TOPICS_PER_STEP: Final = 250  # what is looked at in one turn of the event loop


class Upkeep:
    """One step a second or when it is due, and beside the steps one snapshot at a time.

    What fails is repeated a second later, whatever the state of the database is.
    """

    def __init__(
        self,
        controller: MetadataWriter,
        store: MetadataStore,
        loader: MetadataLoader,
        fencing: Fencing,
        listening: ListeningTime,
        membership: MembershipPlanner,
        growth: ReplicaGrowth,
        settings: ClusterSettings,
        clock: Clock,
    ) -> None:
        self._controller, self._store, self._loader = controller, store, loader
        self._fencing, self._listening, self._membership = fencing, listening, membership
        self._growth = growth
        self._settings, self._clock = settings, clock
        self._stopping, self._due = asyncio.Event(), asyncio.Event()
        self._last_balance = clock.monotonic()
        self._last_unclean = clock.monotonic()
        self._snapshot_offset: int | None = None
        self._steps: asyncio.Task[None] | None = None
        self._snapshots: asyncio.Task[None] | None = None
        self._last_snapshot = clock.monotonic()

    @property
    def watch(self) -> DeathWatch:
        """Sees which brokers have died; it runs beside the steps."""
        return self._fencing.watch

    async def step(self) -> None:
        """Everything that is due now, except a snapshot."""
        await self._controller.leadership.keep()
        if not self._controller.is_active and not await self._fencing.take_lease():
            return
        await self._fencing.fence()
        if not self._controller.is_active:
            return
        await self._grow_internal_topics()
        await self._balance_leaders()
        await self._elect_uncleanly()

    async def _grow_internal_topics(self) -> None:
        """Give internal topics the replicas that they lack, if there are brokers for them now."""
        if self._growth.plan(self._loader.image):
            await self._controller.write(lambda image: Plan(self._growth.plan(image), None))

    async def _balance_leaders(self) -> None:
        now = self._clock.monotonic()
        interval = self._settings.leader_imbalance_check_interval_seconds
        if not self._settings.auto_leader_rebalance_enable or now - self._last_balance < interval:
            return
        self._last_balance = now
        room = _MOST_BALANCED
        for names in _pages(indexed_topics(self._loader.image).astray):
            room -= await self._controller.write(partial(_balanced, names, room))
            if room <= 0:
                return
            await self._breathe()

    async def _elect_uncleanly(self) -> None:
        now = self._clock.monotonic()
        if now - self._last_unclean < self._settings.unclean_leader_election_interval_ms / 1000:
            return
        self._last_unclean = now
        for names in _pages(indexed_topics(self._loader.image).leaderless):
            await self._controller.write(partial(self._elected, names))
            await self._breathe()

    def _elected(self, names: Sequence[str], image: MetadataImage) -> Plan[None]:
        return Plan(self._membership.elect_uncleanly(image, names), None)

    async def _breathe(self) -> None:
        """Between two pages of topics: others get their turn, and the lease does not expire before the last page."""
        await next_turn()
        await self._controller.leadership.keep()

    async def snapshot_if_due(self) -> None:
        """Write a snapshot when enough records followed the last one, so that brokers start quickly."""
        if not self._controller.is_active:
            return
        image = self._loader.image
        count = await self._records_since_snapshot(image)
        if count < SNAPSHOT_FEW:
            return
        has_waited = self._clock.monotonic() - self._last_snapshot >= SNAPSHOT_SECONDS
        if has_waited or count >= max(SNAPSHOT_RECORDS, indexed_topics(image).partition_count // 4):
            await self._snapshot(image)

    async def _records_since_snapshot(self, image: MetadataImage) -> int:
        if self._snapshot_offset is None:
            self._snapshot_offset = await self._store.newest_snapshot_offset()
        return image.offset - self._snapshot_offset

    async def _snapshot(self, image: MetadataImage) -> None:
        await self._store.add_snapshot(image)
        self._snapshot_offset, self._last_snapshot = image.offset, self._clock.monotonic()
        logger.info("wrote a metadata snapshot at offset %d", image.offset)

    async def finish(self) -> None:
        """Write a last snapshot before a normal stop, after the last step: the next start finds it."""
        image = self._loader.image
        if not self._controller.is_active or await self._records_since_snapshot(image) < SNAPSHOT_FEW:
            return
        keep = self._repeat(self._controller.leadership.keep, "renewing the controller's lease", asyncio.Event())
        keeping = asyncio.create_task(keep, name="controller-lease")
        try:
            await self._snapshot(image)
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Step, and write snapshots, while the block lasts."""
        self._stopping.clear()
        snapshots = self._repeat(self.snapshot_if_due, "writing a snapshot of the metadata", self._stopping)
        stop_listening = self._store.listen_for_lease(self._due.set)
        try:
            async with asyncio.TaskGroup() as tasks:
                listening = tasks.create_task(self._listening.run(), name="controller-listening")
                watching = tasks.create_task(self.watch.run(self._looked), name="controller-watch")
                self._steps = tasks.create_task(self._take_steps(), name="controller-upkeep")
                self._snapshots = tasks.create_task(snapshots, name="controller-snapshots")
                yield
                self._end_steps()
                self._snapshots.cancel()
                watching.cancel()
                listening.cancel()
        finally:
            stop_listening()

    def _looked(self) -> None:
        if self._fencing.is_due():
            self._due.set()

    def _end_steps(self) -> None:
        self._stopping.set()
        self._due.set()

    async def stop(self) -> None:
        """Take no further step, and return when the last one is over. A snapshot that is under way is given up."""
        self._end_steps()
        if self._steps is not None and self._snapshots is not None:
            self._snapshots.cancel()
            await asyncio.wait([self._steps, self._snapshots])

    async def _repeat(self, work: Callable[[], Awaitable[None]], what: str, end: asyncio.Event) -> None:
        setbacks = Setbacks(what, logger)
        while not await self._clock.wait_set(end, within=TICK_SECONDS):
            await _attempt(work, setbacks)

    @property
    def _pause(self) -> float:
        if self._controller.is_active:
            return TICK_SECONDS
        return min(max(self._controller.leadership.free_in, _LEAST_PAUSE_SECONDS), TICK_SECONDS)

    async def _take_steps(self) -> None:
        setbacks = Setbacks("the controller's periodic work", logger)
        while True:
            await self._clock.wait_set(self._due, within=self._pause)
            self._due.clear()
            if self._stopping.is_set():
                return
            await _attempt(self.step, setbacks)


async def _attempt(work: Callable[[], Awaitable[None]], setbacks: Setbacks) -> None:
    try:
        await work()
    except NotController:
        return  # lost the lease meanwhile: the next step tries to take it again
    except (SqlError, StrandlineError) as error:
        setbacks.met(error)
    else:
        setbacks.over()


def _pages(names: Iterable[str]) -> Iterator[Sequence[str]]:
    """Topics as of now. Each page is decided on the newest image: topics may be gone by then, or have changed."""
    rest = list(names)
    for start in range(0, len(rest), TOPICS_PER_STEP):
        yield rest[start : start + TOPICS_PER_STEP]


def _balanced(names: Sequence[str], limit: int, image: MetadataImage) -> Plan[int]:
    changes = plan_balance(image, names, limit)
    return Plan(grouped(changes), len(changes))
