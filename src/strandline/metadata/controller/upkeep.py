"""The periodic work of a controller: renew the lease, fence silent brokers, balance leaders, write snapshots."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, Protocol, TypeVar

from strandline.clock import Clock
from strandline.config import ClusterSettings
from strandline.errors import NotController, StrandlineError
from strandline.metadata.controller.leadership import Leadership
from strandline.metadata.controller.listening import ListeningTime
from strandline.metadata.controller.sessions import Sessions
from strandline.metadata.image import MetadataImage
from strandline.metadata.log.loader import MetadataLoader
from strandline.metadata.log.store import MetadataStore
from strandline.metadata.plans.election_requests import plan_balance
from strandline.metadata.plans.membership import BrokerState, MembershipPlanner
from strandline.metadata.requests import Plan
from strandline.sql import SqlError
from strandline.tasks import Setbacks

logger = logging.getLogger(__name__)

T = TypeVar("T")

TICK_SECONDS: Final = 1.0
SNAPSHOT_RECORDS: Final = 1000  # new records after which a snapshot is due
SNAPSHOT_FEW: Final = 5  # enough if SNAPSHOT_SECONDS have passed, or the broker stops
SNAPSHOT_SECONDS: Final = 60.0
_BALANCE_PAGE: Final = 1000


class Writer(Protocol):
    """The controller, as upkeep uses it."""

    @property
    def is_active(self) -> bool: ...

    @property
    def leadership(self) -> Leadership: ...

    async def activate(self) -> bool: ...

    async def write(self, decide: Callable[[MetadataImage], Plan[T]]) -> T: ...


class Upkeep:
    """One step a second. A step that fails is repeated a second later, whatever the state of the database is."""

    def __init__(
        self,
        controller: Writer,
        store: MetadataStore,
        loader: MetadataLoader,
        sessions: Sessions,
        listening: ListeningTime,
        membership: MembershipPlanner,
        settings: ClusterSettings,
        clock: Clock,
    ) -> None:
        self._controller, self._store, self._loader = controller, store, loader
        self._sessions, self._listening, self._membership = sessions, listening, membership
        self._settings, self._clock = settings, clock
        self._stopping = asyncio.Event()
        self._last_balance = clock.monotonic()
        self._last_unclean = clock.monotonic()
        self._snapshot_offset: int | None = None
        self._last_snapshot = clock.monotonic()

    async def step(self) -> None:
        """Everything that is due now."""
        await self._controller.leadership.keep()
        if not self._controller.is_active and not await self._controller.activate():
            return
        await self.fence_silent_brokers()
        await self._balance_leaders()
        await self._elect_uncleanly()
        await self.snapshot_if_due()

    async def fence_silent_brokers(self) -> None:
        """Fence every broker whose session is over."""
        for node_id in self._sessions.silent():

            def decide(image: MetadataImage, node_id: int = node_id) -> Plan[bool]:
                broker = image.brokers.get(node_id)
                if broker is None or broker.fenced or node_id not in self._sessions.silent():
                    return Plan((), False)
                return Plan(self._membership.change_state(image, broker, BrokerState.FENCED), True)

            if await self._controller.write(decide):
                logger.warning("broker %d is fenced: its session has expired", node_id)
            if node_id in self._sessions.silent():
                self._sessions.forget(node_id)

    async def _balance_leaders(self) -> None:
        now = self._clock.monotonic()
        interval = self._settings.leader_imbalance_check_interval_seconds
        if not self._settings.auto_leader_rebalance_enable or now - self._last_balance < interval:
            return
        self._last_balance = now
        await self._controller.write(lambda image: Plan(plan_balance(image, _BALANCE_PAGE), None))

    async def _elect_uncleanly(self) -> None:
        now = self._clock.monotonic()
        if now - self._last_unclean < self._settings.unclean_leader_election_interval_ms / 1000:
            return
        self._last_unclean = now
        await self._controller.write(lambda image: Plan(self._membership.elect_uncleanly(image), None))

    async def snapshot_if_due(self) -> None:
        """Write a snapshot when enough records followed the last one, so that brokers start quickly."""
        image = self._loader.image
        count = await self._records_since_snapshot(image)
        if count < SNAPSHOT_FEW:
            return
        has_waited = self._clock.monotonic() - self._last_snapshot >= SNAPSHOT_SECONDS
        if has_waited or count >= max(SNAPSHOT_RECORDS, image.partition_count // 4):
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
        """The last step of a broker that stops normally: the next start finds a snapshot."""
        image = self._loader.image
        if self._controller.is_active and await self._records_since_snapshot(image) >= SNAPSHOT_FEW:
            await self._snapshot(image)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Step while the block lasts."""
        self._stopping.clear()
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(self._listening.run(), name="controller-listening")
            tasks.create_task(self._run(), name="controller-upkeep")
            yield
            self._stopping.set()
            listening.cancel()

    async def _run(self) -> None:
        setbacks = Setbacks("the controller's periodic work", logger)
        while not await self._clock.wait_set(self._stopping, within=TICK_SECONDS):
            try:
                await self.step()
            except NotController:
                continue  # lost the lease meanwhile: the next step tries to take it again
            except (SqlError, StrandlineError) as error:
                setbacks.met(error)
            else:
                setbacks.over()
