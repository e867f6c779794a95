"""The periodic work of a controller: renew the lease, fence silent brokers, balance leaders, write snapshots.

Snapshots are written by a task of their own: that of a million topics takes longer than the lease lasts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeVar

from strandline.clock import Clock
from strandline.config import ClusterSettings
from strandline.errors import NotController, StrandlineError
from strandline.metadata.controller.leadership import Leadership, process_name
from strandline.metadata.controller.listening import ListeningTime
from strandline.metadata.controller.sessions import Sessions
from strandline.metadata.image import MetadataImage
from strandline.metadata.log.loader import MetadataLoader
from strandline.metadata.log.store import MetadataStore
from strandline.metadata.plans.election_requests import plan_balance
from strandline.metadata.plans.elections import grouped
from strandline.metadata.plans.membership import BrokerState, MembershipPlanner
from strandline.metadata.plans.replica_growth import ReplicaGrowth
from strandline.metadata.requests import Plan
from strandline.metadata.topic_map import indexed_topics
from strandline.sql import SqlError
from strandline.tasks import Setbacks, next_turn

logger = logging.getLogger(__name__)

T = TypeVar("T")

TICK_SECONDS: Final = 1.0
OFFER_SECONDS: Final = 3.0  # a lease that is given up is left to others for this long: they look every TICK_SECONDS
SNAPSHOT_RECORDS: Final = 1000  # new records after which a snapshot is due
SNAPSHOT_FEW: Final = 5  # enough if SNAPSHOT_SECONDS have passed, or the broker stops
SNAPSHOT_SECONDS: Final = 60.0
_MOST_BALANCED: Final = 1000  # partitions that change their leader at once
TOPICS_PER_STEP: Final = 250  # what is looked at in one turn of the event loop


class Writer(Protocol):
    """The controller, as upkeep uses it."""

    @property
    def is_active(self) -> bool: ...

    @property
    def leadership(self) -> Leadership: ...

    async def activate(self) -> bool: ...

    async def write(self, decide: Callable[[MetadataImage], Plan[T]]) -> T: ...


class _Offer(NamedTuple):
    """A lease that was offered to other brokers, and the silent brokers that were the reason."""

    epoch: int
    silent: tuple[int, ...]
    ends: float


class Upkeep:
    """One step a second, and beside the steps one snapshot at a time.

    What fails is repeated a second later, whatever the state of the database is.
    """

    def __init__(
        self,
        controller: Writer,
        store: MetadataStore,
        loader: MetadataLoader,
        sessions: Sessions,
        listening: ListeningTime,
        membership: MembershipPlanner,
        growth: ReplicaGrowth,
        settings: ClusterSettings,
        clock: Clock,
    ) -> None:
        self._controller, self._store, self._loader = controller, store, loader
        self._sessions, self._listening, self._membership = sessions, listening, membership
        self._growth = growth
        self._settings, self._clock = settings, clock
        self._stopping = asyncio.Event()
        self._last_balance = clock.monotonic()
        self._last_unclean = clock.monotonic()
        self._snapshot_offset: int | None = None
        self._offer: _Offer | None = None
        self._steps: asyncio.Task[None] | None = None
        self._snapshots: asyncio.Task[None] | None = None
        self._last_snapshot = clock.monotonic()

    async def step(self) -> None:
        """Everything that is due now, except a snapshot."""
        await self._controller.leadership.keep()
        if not self._controller.is_active and not await self._take_lease():
            return
        await self.fence_silent_brokers()
        if not self._controller.is_active:
            return
        await self._grow_internal_topics()
        await self._balance_leaders()
        await self._elect_uncleanly()

    async def _take_lease(self) -> bool:
        offer = self._offer
        if offer is not None and self._clock.monotonic() < offer.ends:
            return False
        if not await self._controller.activate():
            return False
        if offer is not None and self._controller.leadership.require().epoch == offer.epoch + 1:
            self._sessions.expire(offer.silent)  # no other controller meanwhile: their time is over
        elif offer is not None and self._clock.monotonic() > offer.ends + self._longest_vain_term:
            self._offer = None  # another controller was active, and has heard of brokers: a new silence
        return True

    @property
    def _longest_vain_term(self) -> float:
        """How long a controller that hears of no other broker keeps the lease at most, in seconds."""
        return 2 * self._settings.broker_session_timeout_ms / 1000

    async def fence_silent_brokers(self) -> None:
        """Fence every broker whose session is over, unless this broker may be the unreachable one.

        The lease is offered once in a silence. If it comes back and the silence goes on, other brokers cannot reach the
        silent ones either. Brokers that offered it to each other again and again would never fence any broker.
        """
        silent = self._sessions.silent()
        if self._offer is None and silent and await self._may_be_unreachable():
            await self._offer_lease(silent)
            return
        for node_id in silent:

            def decide(image: MetadataImage, node_id: int = node_id) -> Plan[bool]:
                broker = image.brokers.get(node_id)
                if broker is None or broker.fenced or node_id not in self._sessions.silent():
                    return Plan((), False)
                return Plan(self._membership.change_state(image, broker, BrokerState.FENCED), True)

            if await self._controller.write(decide):
                logger.warning("broker %d is fenced: its session has expired", node_id)
            if node_id in self._sessions.silent():
                self._sessions.forget(node_id)
        if silent or self._sessions.is_heard(self._others()):
            self._offer = None

    async def _may_be_unreachable(self) -> bool:
        """True if no other broker is heard of, although one of them is connected to the database."""
        if self._store.sql.is_exclusive:
            return False
        others = self._others()
        if not others or self._sessions.is_heard(others):
            return False
        for node_id in others:
            if await self._store.sql.is_held(process_name(node_id)):
                return True
        return False

    def _others(self) -> set[int]:
        return self._sessions.others(self._controller.leadership.require().node_id)

    async def _offer_lease(self, silent: Sequence[int]) -> None:
        """Leave the lease to any broker that wants it; if none does, the silent ones are fenced after all."""
        term = self._controller.leadership.require()
        logger.warning(
            "broker %d gives up being the active controller: it has heard of no other broker for half a session, and "
            "at least one of them is connected to the database. Can other brokers reach its inter-broker listener?",
            term.node_id,
        )
        await self._controller.leadership.resign()  # if that fails, others could not take it: nothing was offered
        ends = self._clock.monotonic() + OFFER_SECONDS
        self._offer = _Offer(epoch=term.epoch, silent=tuple(silent), ends=ends)

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
        steps = self._repeat(self.step, "the controller's periodic work", self._stopping)
        snapshots = self._repeat(self.snapshot_if_due, "writing a snapshot of the metadata", self._stopping)
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(self._listening.run(), name="controller-listening")
            self._steps = tasks.create_task(steps, name="controller-upkeep")
            self._snapshots = tasks.create_task(snapshots, name="controller-snapshots")
            yield
            self._stopping.set()
            self._snapshots.cancel()
            listening.cancel()

    async def stop(self) -> None:
        """Take no further step, and return when the last one is over. A snapshot that is under way is given up."""
        self._stopping.set()
        if self._steps is not None and self._snapshots is not None:
            self._snapshots.cancel()
            await asyncio.wait([self._steps, self._snapshots])

    async def _repeat(self, work: Callable[[], Awaitable[None]], what: str, end: asyncio.Event) -> None:
        setbacks = Setbacks(what, logger)
        while not await self._clock.wait_set(end, within=TICK_SECONDS):
            try:
                await work()
            except NotController:
                continue  # lost the lease meanwhile: the next step tries to take it again
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
