"""Which brokers a controller fences, and when it leaves the lease to others instead.

A broker is fenced when its process has ended, which the locks in the database show within half a second, or when it
has sent no heartbeat for a whole session.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar
from uuid import UUID

from strandline.clock import Clock
from strandline.metadata.controller.death_watch import DeathWatch, Inquiry
from strandline.metadata.controller.deaths import Sign
from strandline.metadata.controller.leadership import LEASE_SECONDS, RENEW_SECONDS, Leadership, broker_name
from strandline.metadata.controller.listening import ListeningTime
from strandline.metadata.controller.sessions import Sessions
from strandline.metadata.image import Images, MetadataImage
from strandline.metadata.plans.membership import BrokerState, MembershipPlanner
from strandline.metadata.requests import Plan
from strandline.sql import SqlStore

logger = logging.getLogger(__name__)

T = TypeVar("T")

HURRY_SECONDS: Final = 1.0  # a broker that lives sends a heartbeat as soon as it sees a new controller
OFFER_SECONDS: Final = 3.0  # a lease that is given up is left to others for this long: they look at least every second


class MetadataWriter(Protocol):
    """The controller, as its own work uses it."""

    @property
    def is_active(self) -> bool: ...

    @property
    def leadership(self) -> Leadership: ...

    async def activate(self, dead: frozenset[UUID] = frozenset()) -> bool: ...

    async def write(self, decide: Callable[[MetadataImage], Plan[T]]) -> T: ...


class _Offer(NamedTuple):
    """A lease that was offered to other brokers, and the silent brokers that were the reason."""

    epoch: int
    silent: tuple[int, ...]
    ends: float


class Fencing:
    """Takes the lease when it is free or its holder is dead, and fences brokers while it is ours."""

    def __init__(
        self,
        controller: MetadataWriter,
        sql: SqlStore,
        images: Images,
        sessions: Sessions,
        listening: ListeningTime,
        inquiry: Inquiry,
        membership: MembershipPlanner,
        clock: Clock,
    ) -> None:
        self._controller, self._sql, self._images = controller, sql, images
        self._sessions, self._inquiry, self._membership, self._clock = sessions, inquiry, membership, clock
        self.watch = DeathWatch(
            sql,
            inquiry,
            clock,
            listening,
            watched=self._watched,
            heard=sessions.is_heard_since,
            session_seconds=sessions.timeout,
        )
        """Sees which brokers have died; runs whether this controller is active or not."""
        self._offer: _Offer | None = None

    def _watched(self) -> Mapping[UUID, int]:
        leadership, brokers = self._controller.leadership, self._images.image.brokers.values()
        watched = {one.incarnation_id: one.node_id for one in brokers if not one.fenced}
        if leadership.holder is not None and not self._controller.is_active:
            watched[leadership.holder[1]] = leadership.holder[0]
        return {process: node_id for process, node_id in watched.items() if node_id != leadership.node_id}

    def is_due(self) -> bool:
        """True if there is a broker to fence, or a lease to take from a process that has ended."""
        if self._controller.is_active:
            return bool(self._dead_brokers() or self._sessions.silent())
        holder = self._controller.leadership.holder
        return holder is not None and holder[1] in self.watch.dead

    async def take_lease(self) -> bool:
        """Become the active controller if that may be. True if this one is active now."""
        offer = self._offer
        if offer is not None and self._clock.monotonic() < offer.ends:
            return False
        if not await self._controller.activate(self.watch.dead):
            return False
        if offer is not None and self._controller.leadership.require().epoch == offer.epoch + 1:
            self._sessions.expire(offer.silent)  # no other controller meanwhile: their time is over
        elif offer is not None and self._clock.monotonic() > offer.ends + self._longest_vain_term:
            self._offer = None  # another controller was active, and has heard of brokers: a new silence
        await self._judge_overdue()
        return True

    async def _judge_overdue(self) -> None:
        """A controller that let its lease expire is suspended or away from the database: it gets no new session.

        Unless it answers. A database that was away for longer than a lease has held up every broker. It is not fenced
        before it would notice that it was suspended, after half a session.
        """
        overdue = self._controller.leadership.overdue
        if overdue is None or await self._inquiry.ask(overdue) is Sign.ANSWERED:
            return
        passed = LEASE_SECONDS - RENEW_SECONDS  # at least, since it last ran
        self._sessions.hurry(overdue, max(HURRY_SECONDS, self._sessions.timeout / 2 - passed))

    @property
    def _longest_vain_term(self) -> float:
        """How long a controller that hears of no other broker keeps the lease at most, in seconds."""
        return 2 * self._sessions.timeout

    async def fence(self) -> None:
        """Fence brokers that are dead or silent, unless this broker may be the unreachable one.

        The lease is offered once in a silence. If it comes back and the silence goes on, other brokers cannot reach the
        silent ones either. Brokers that offered it to each other again and again would never fence any broker.
        """
        await self._fence_dead()
        silent = self._sessions.silent()
        if self._offer is None and silent and await self._may_be_unreachable():
            await self._offer_lease(silent)
            return
        for node_id in silent:

            def decide(image: MetadataImage, node_id: int = node_id) -> Plan[bool]:
                return self._fenced(image, node_id, node_id in self._sessions.silent())

            if await self._controller.write(decide):
                logger.warning("broker %d is fenced: its session has expired", node_id)
            if node_id in self._sessions.silent():
                self._sessions.forget(node_id)
        if silent or self._sessions.is_heard(self._others()):
            self._offer = None

    async def _fence_dead(self) -> None:
        for node_id, process in self._dead_brokers().items():

            def decide(image: MetadataImage, node_id: int = node_id, process: UUID = process) -> Plan[bool]:
                broker = image.brokers.get(node_id)
                is_it = broker is not None and broker.incarnation_id == process
                return self._fenced(image, node_id, is_it and process in self.watch.dead)

            if await self._controller.write(decide):
                self._sessions.forget(node_id)
                logger.warning("broker %d is fenced: its process has ended", node_id)

    def _dead_brokers(self) -> Mapping[int, UUID]:
        dead = self.watch.dead
        if not dead:
            return {}
        brokers = self._images.image.brokers.values()
        return {one.node_id: one.incarnation_id for one in brokers if not one.fenced and one.incarnation_id in dead}

    def _fenced(self, image: MetadataImage, node_id: int, is_over: bool) -> Plan[bool]:
        broker = image.brokers.get(node_id)
        if broker is None or broker.fenced or not is_over:
            return Plan((), False)
        return Plan(self._membership.change_state(image, broker, BrokerState.FENCED), True)

    async def _may_be_unreachable(self) -> bool:
        """True if no other broker is heard of, although one of them is connected to the database."""
        if self._sql.is_exclusive:
            return False
        others = self._others()
        if not others or self._sessions.are_young or self._sessions.is_heard(others):
            return False
        return bool((await self._sql.holders([broker_name(node_id) for node_id in others])).sessions)

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
