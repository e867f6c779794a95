"""The controller's lease: taking, renewing and releasing it, and writing only while it is held.

The lease only decides who *tries*: safety comes from the controller epoch, which every append checks in its own
transaction. A store that only one process can open needs no renewals: a process that has opened it knows that the
earlier holder of the lease is dead.
"""

from __future__ import annotations

import logging
import math
import uuid
from collections.abc import AsyncIterator, Sequence, Set
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from strandline.clock import Clock
from strandline.errors import KafkaStorageError, NotController, RequestTimedOut, StrandlineError
from strandline.metadata.log.loader import MetadataLoader
from strandline.metadata.log.store import Deposed, Lease, MetadataStore, Term, WrittenTogether
from strandline.metadata.records import MetadataRecord
from strandline.model import uuid_from_text, uuid_to_text
from strandline.sql import SqlError, StoreInUse

logger = logging.getLogger(__name__)

LEASE_SECONDS: Final = 8.0  # a suspended controller keeps it, and its broker the session: together as long as a session
RENEW_SECONDS: Final = 2.0
IDENTITY_SECONDS: Final = 12.0  # the database keeps the session of a machine that lost power for about this long
RETRY_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTiming:
    """How long a lease lasts without renewal, and how often it is renewed."""

    lease: float = LEASE_SECONDS
    renew: float = RENEW_SECONDS


def as_kafka_error(error: SqlError) -> StrandlineError:
    """The error for clients when the database fails."""
    if error.retriable:
        return RequestTimedOut(f"The metadata database is not available: {error}")
    return KafkaStorageError(f"The metadata database refused the change: {error}")


def broker_name(node_id: int) -> str:
    """What the process of a broker holds in the database while it runs and is connected: one process at a time."""
    return f"broker with node.id {node_id}"


def process_name(incarnation_id: uuid.UUID) -> str:
    """What this process and no later one of the same broker holds. Taken before the name of the broker."""
    return f"process {uuid_to_text(incarnation_id)}"


class Leadership:
    """The lease as one broker sees it. `term` is None while this broker does not hold it."""

    def __init__(
        self, store: MetadataStore, loader: MetadataLoader, node_id: int, clock: Clock, timing: LeaseTiming
    ) -> None:
        self._store, self._loader, self.node_id = store, loader, node_id
        self._clock, self._timing = clock, timing
        self._term: Term | None = None
        self._renewed_at = 0.0
        self._holder: tuple[int, uuid.UUID] | None = None
        self._overdue: int | None = None
        self._free_at = math.inf
        self._has_tried = False
        self._is_waiting = False
        self._must_read_first = False

    @property
    def term(self) -> Term | None:
        """This broker's term; None if it does not hold the lease, as far as it knows.

        A lease that is over by the broker's own clock counts as lost, whatever the database would say: another broker
        may be the controller, and answer heartbeats.
        """
        return None if self._has_run_out else self._term

    @property
    def _has_run_out(self) -> bool:
        if self._store.sql.is_exclusive:
            return False
        return self._clock.monotonic() - self._renewed_at >= self._timing.lease

    @property
    def overdue(self) -> int | None:
        """The broker that had the lease before this one, if it had let it expire."""
        return self._overdue

    @property
    def free_in(self) -> float:
        """Seconds until the lease of another broker is over, if it is not renewed as when it was last seen."""
        return self._free_at - self._clock.monotonic()

    @property
    def holder(self) -> tuple[int, uuid.UUID] | None:
        """The broker that had the lease when this one last asked for it, and its process. None if it was free."""
        return self._holder

    def require(self) -> Term:
        """This broker's term. Raises NotController if it has none."""
        term = self.term
        if term is None:
            raise NotController(
                f"Broker {self.node_id} is not the active controller; {self._loader.image.controller_id} is."
            )
        return term

    @asynccontextmanager
    async def identity(self) -> AsyncIterator[None]:
        """Make sure that no other process has our node id; an earlier process of this broker gets some time to end.

        Raises StoreInUse.
        """
        deadline = self._clock.monotonic() + IDENTITY_SECONDS
        async with AsyncExitStack() as held:
            await held.enter_async_context(self._store.sql.hold(process_name(self._store.process_id)))
            while not await self._try_hold(held, deadline):
                await self._clock.sleep(RETRY_SECONDS)
            yield

    async def _try_hold(self, held: AsyncExitStack, deadline: float) -> bool:
        try:
            await held.enter_async_context(self._store.sql.hold(broker_name(self.node_id)))
        except StoreInUse as error:
            if self._clock.monotonic() >= deadline:
                raise
            if not self._is_waiting:
                logger.warning("%s Waiting %.0f s for it to end.", error, IDENTITY_SECONDS)
            self._is_waiting = True
            return False
        return True

    async def take(self, dead: Set[uuid.UUID] = frozenset()) -> bool:
        """Become the active controller if there is none. True if this broker is now, with an up-to-date image.

        A lease that has not expired is taken from a holder that is among the `dead` processes.

        A broker that could not read the metadata log after taking the lease does not take it again until it can: it
        would keep other brokers out that can read it, for instance because they have the version that wrote it.
        """
        if self._must_read_first:
            await self._loader.catch_up()
        is_first, self._has_tried = not self._has_tried, True
        duration = None if self._store.sql.is_exclusive else int(self._timing.lease * 1000)
        begun = self._clock.monotonic()

        def may_take(lease: Lease) -> bool:
            self._holder = _holder(lease)
            self._free_at = math.inf if lease.remaining_ms is None else begun + lease.remaining_ms / 1000
            self._overdue = lease.node_id if lease.has_expired and lease.node_id != self.node_id else None
            return self._may_take(lease, is_first=is_first) or (self._holder is not None and self._holder[1] in dead)

        term = await self._store.take_lease(self.node_id, may_take=may_take, duration_ms=duration)
        if term is None:
            return False
        self._renewed_at = begun
        self._must_read_first = True
        await self._loader.catch_up()
        self._must_read_first = False
        self._term = term
        logger.info("broker %d is the active controller, epoch %d", self.node_id, term.epoch)
        return True

    def _may_take(self, lease: Lease, *, is_first: bool) -> bool:
        if lease.node_id is None or lease.has_expired:
            return True
        if self._store.sql.is_exclusive and lease.session_id != self._store.sql.session_id:
            return True
        # Either an earlier process of this broker left it (only checked at the start: later it could belong to another
        # process), or we took it and the answer of the database was lost.
        is_ours = is_first or lease.session_id == self._store.sql.session_id
        return is_ours and lease.node_id == self.node_id

    async def keep(self) -> None:
        """Renew the lease if it is due. A broker that finds itself deposed, or its lease over, steps down.

        Raises RequestTimedOut or KafkaStorageError.
        """
        if self._term is None or self._store.sql.is_exclusive:
            return
        if self._has_run_out:
            self.step_down("its lease was not renewed in time.")
            return
        now = self._clock.monotonic()
        if now - self._renewed_at < self._timing.renew:
            return
        try:
            await self._store.renew_lease(self._term, int(self._timing.lease * 1000))
            self._renewed_at = now
        except Deposed as error:
            self.step_down(str(error))
        except SqlError as error:
            raise as_kafka_error(error) from error

    def step_down(self, reason: str) -> None:
        """Stop being the controller without releasing the lease in the database."""
        if self._term is not None:
            logger.warning("broker %d is no longer the active controller: %s", self.node_id, reason)
        self._term = None

    async def resign(self) -> None:
        """Release the lease, so that another broker can take it at once."""
        term, self._term = self._term, None
        if term is not None:
            await self._store.release_lease(term)

    async def append(
        self, term: Term, records: Sequence[MetadataRecord], together: WrittenTogether | None = None
    ) -> None:
        """Write records decided on the loader's image, and publish them.

        Raises ImageIsBehind (decide again), NotController, RequestTimedOut (may have been written), KafkaStorageError
        or what `together` raises.
        """
        base_offset = self._loader.image.offset + 1
        try:
            await self._store.append(term, base_offset, records, together)
        except Deposed as error:
            self.step_down(str(error))
            raise NotController(f"Another broker has become the active controller. {error}") from error
        except SqlError as error:
            raise as_kafka_error(error) from error
        self._loader.committed(base_offset, records)

    async def rehearse(self, together: WrittenTogether) -> None:
        """Raise what `together` would raise in an append; nothing is written. Raises RequestTimedOut, too."""
        try:
            await self._store.rehearse(together)
        except SqlError as error:
            raise as_kafka_error(error) from error


def _holder(lease: Lease) -> tuple[int, uuid.UUID] | None:
    if lease.node_id is None or lease.session_id is None:
        return None
    return lease.node_id, uuid_from_text(lease.session_id)
