"""The controller's lease: taking, renewing and releasing it, and writing only while it is held.

The lease only decides who *tries*: safety comes from the controller epoch, which every append checks in its own
transaction. A store that only one process can open needs no renewals: a process that has opened it knows that the
earlier holder of the lease is dead.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from strandline.clock import Clock
from strandline.errors import KafkaStorageError, NotController, RequestTimedOut, StrandlineError
from strandline.metadata.log.loader import MetadataLoader
from strandline.metadata.log.store import Deposed, Lease, MetadataStore, Term, WrittenTogether
from strandline.metadata.records import MetadataRecord
from strandline.sql import SqlError, StoreInUse

logger = logging.getLogger(__name__)

LEASE_SECONDS: Final = 10.0
RENEW_SECONDS: Final = 3.0
IDENTITY_SECONDS: Final = 12.0  # the database keeps the session of a machine that lost power for about this long
RETRY_SECONDS: Final = 0.5


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


def process_name(node_id: int) -> str:
    """What the process of a broker holds in the database while it runs and is connected."""
    return f"broker with node.id {node_id}"


class Leadership:
    """The lease as one broker sees it. `term` is None while this broker does not hold it."""

    def __init__(
        self, store: MetadataStore, loader: MetadataLoader, node_id: int, clock: Clock, timing: LeaseTiming
    ) -> None:
        self._store, self._loader, self._node_id = store, loader, node_id
        self._clock, self._timing = clock, timing
        self._term: Term | None = None
        self._renewed_at = 0.0
        self._has_tried = False
        self._is_waiting = False
        self._must_read_first = False

    @property
    def term(self) -> Term | None:
        """This broker's term; None if it does not hold the lease, as far as it knows."""
        return self._term

    def require(self) -> Term:
        """This broker's term. Raises NotController if it has none."""
        if self._term is None:
            raise NotController(
                f"Broker {self._node_id} is not the active controller; {self._loader.image.controller_id} is."
            )
        return self._term

    @asynccontextmanager
    async def identity(self) -> AsyncIterator[None]:
        """Make sure that no other process has our node id; an earlier process of this broker gets some time to end.

        Raises StoreInUse.
        """
        deadline = self._clock.monotonic() + IDENTITY_SECONDS
        async with AsyncExitStack() as held:
            while not await self._try_hold(held, deadline):
                await self._clock.sleep(RETRY_SECONDS)
            yield

    async def _try_hold(self, held: AsyncExitStack, deadline: float) -> bool:
        try:
            await held.enter_async_context(self._store.sql.hold(process_name(self._node_id)))
        except StoreInUse as error:
            if self._clock.monotonic() >= deadline:
                raise
            if not self._is_waiting:
                logger.warning("%s Waiting %.0f s for it to end.", error, IDENTITY_SECONDS)
            self._is_waiting = True
            return False
        return True

    async def take(self) -> bool:
        """Become the active controller if there is none. True if this broker is now, with an up-to-date image.

        A broker that could not read the metadata log after taking the lease does not take it again until it can: it
        would keep other brokers out that can read it, for instance because they have the version that wrote it.
        """
        if self._must_read_first:
            await self._loader.catch_up()
        is_first, self._has_tried = not self._has_tried, True
        duration = None if self._store.sql.is_exclusive else int(self._timing.lease * 1000)
        term = await self._store.take_lease(
            self._node_id, may_take=lambda lease: self._may_take(lease, is_first=is_first), duration_ms=duration
        )
        if term is None:
            return False
        self._renewed_at = self._clock.monotonic()
        self._must_read_first = True
        await self._loader.catch_up()
        self._must_read_first = False
        self._term = term
        logger.info("broker %d is the active controller, epoch %d", self._node_id, term.epoch)
        return True

    def _may_take(self, lease: Lease, *, is_first: bool) -> bool:
        if lease.node_id is None or lease.has_expired:
            return True
        if self._store.sql.is_exclusive and lease.session_id != self._store.sql.session_id:
            return True
        # Either an earlier process of this broker left it (only checked at the start: later it could belong to another
        # process), or we took it and the answer of the database was lost.
        is_ours = is_first or lease.session_id == self._store.sql.session_id
        return is_ours and lease.node_id == self._node_id

    async def keep(self) -> None:
        """Renew the lease if it is due. A broker that finds itself deposed steps down."""
        if self._term is None or self._store.sql.is_exclusive:
            return
        now = self._clock.monotonic()
        if now - self._renewed_at < self._timing.renew:
            return
        try:
            await self._store.renew_lease(self._term, int(self._timing.lease * 1000))
            self._renewed_at = now
        except Deposed as error:
            self.step_down(str(error))

    def step_down(self, reason: str) -> None:
        """Stop being the controller without releasing the lease in the database."""
        if self._term is not None:
            logger.warning("broker %d is no longer the active controller: %s", self._node_id, reason)
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
