"""Brings the markers of decided transactions to the leaders of their partitions, however long it takes.

By level: what is to be sent follows, at every look, from the partitions that have no marker yet and from the leaders
that metadata names. Each leader gets one request at a time, with everything there is for it; a leader that does not
answer does not hold up the others. A transaction is looked at when something may have become possible: thousands that
wait for a dead leader cost the others nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from strandline.clock import Clock
from strandline.coordinators.runtime import TransactionEnd
from strandline.coordinators.transactions.metadata import TransactionMetadata
from strandline.coordinators.transactions.states import TransactionState
from strandline.errors import (
    InvalidProducerEpoch,
    StrandlineError,
    TransactionCoordinatorFenced,
    UnsupportedForMessageFormat,
    UnsupportedVersion,
)
from strandline.metadata import MetadataImage
from strandline.model import BrokerId, ProducerAndEpoch, TopicPartition
from strandline.tasks import Setbacks, TaskSet

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 0.1
"""After a refusal, this long until the next request to the same leader."""
LEADERLESS_SECONDS: Final = 1.0
"""How often the stand-in of a missing leader is asked for. A new leader is noticed at once."""
_PARTITIONS_PER_REQUEST: Final = 1000
_ENDED: Final = (InvalidProducerEpoch, UnsupportedForMessageFormat, UnsupportedVersion)
"""The partition needs no marker. A newer epoch, or this one, is there only after a marker of the transaction: one that
was written before this coordinator was loaded."""


class TransactionMarker(NamedTuple):
    """The end of one transaction in some partitions."""

    transactional_id: str
    """Only for this coordinator: it is not sent."""
    end: TransactionEnd
    partitions: tuple[TopicPartition, ...]


MarkerResults = Mapping[tuple[str, TopicPartition], StrandlineError | None]
"""By transactional id and partition."""


class MarkerTransport(Protocol):
    """Carries markers to one broker, which may be this one."""

    async def write(self, broker: BrokerId, markers: Sequence[TransactionMarker]) -> MarkerResults:
        """What became of each partition. Raises StrandlineError if the broker does not answer: that is unknown then."""


@dataclass(slots=True)
class _Outstanding:
    """A transaction with partitions that have no marker yet."""

    transaction: TransactionMetadata
    coordinator_epoch: int
    remaining: set[TopicPartition]
    done: Callable[[], None]

    def marker(self, partitions: Collection[TopicPartition]) -> TransactionMarker:
        transaction = self.transaction
        return TransactionMarker(
            transactional_id=transaction.transactional_id,
            end=TransactionEnd(
                producer=ProducerAndEpoch(transaction.producer_id, transaction.producer_epoch),
                is_commit=transaction.state is TransactionState.PREPARE_COMMIT,
                coordinator_epoch=self.coordinator_epoch,
                transaction_version=transaction.client_version,
                start_ms=transaction.start_ms,
            ),
            partitions=tuple(sorted(partitions)),
        )


class _Sent(NamedTuple):
    """A marker on its way, and the transaction that it ends."""

    outstanding: _Outstanding
    marker: TransactionMarker


class MarkerChannel:
    """`MarkerSender` over a transport."""

    def __init__(
        self,
        transport: MarkerTransport,
        image: Callable[[], MetadataImage],
        clock: Clock,
        *,
        stand_in: Callable[[TopicPartition], BrokerId | None],
    ) -> None:
        """`stand_in` names a broker that can write to a partition while that has no leader, if there is one."""
        self._transport, self._image, self._clock, self._stand_in = transport, image, clock, stand_in
        self._outstanding: dict[str, _Outstanding] = {}
        self._due: dict[str, None] = {}
        """Transactions to look at, in this order: something may be sent for them."""
        self._waiting = defaultdict[BrokerId | None, dict[str, None]](dict)
        """Those that have partitions of a leader that is busy, or (None) without one."""
        self._busy: set[BrokerId] = set()
        self._wake = asyncio.Event()
        self._setbacks = defaultdict[BrokerId, Setbacks](lambda: Setbacks("writing transaction markers", logger))

    @property
    def outstanding(self) -> int:
        """Transactions that are decided and have partitions without a marker."""
        return len(self._outstanding)

    def send(self, transaction: TransactionMetadata, *, coordinator_epoch: int, done: Callable[[], None]) -> None:
        if not transaction.partitions:
            done()
            return
        remaining = set(transaction.partitions)
        self._outstanding[transaction.transactional_id] = _Outstanding(transaction, coordinator_epoch, remaining, done)
        self._look_at([transaction.transactional_id])

    def forget(self, transactional_ids: Collection[str]) -> None:
        for transactional_id in transactional_ids:
            self._outstanding.pop(transactional_id, None)

    def metadata_changed(self) -> None:
        """Partitions may have other leaders now, or be gone."""
        self._look_at(self._outstanding)

    def _look_at(self, transactional_ids: Iterable[str]) -> None:
        self._due.update(dict.fromkeys(transactional_ids))
        self._wake.set()

    async def run(self) -> None:
        """Send, endlessly."""
        tasks = TaskSet()
        next_try = self._clock.monotonic()
        try:
            while True:
                self._wake.clear()
                now = self._clock.monotonic()
                if now >= next_try:  # however much else there is to do
                    next_try = now + LEADERLESS_SECONDS
                    self._due.update(self._waiting.pop(None, {}))
                self._look(tasks)
                if self._waiting[None]:
                    await self._clock.wait_set(self._wake, within=next_try - now)
                else:
                    await self._wake.wait()
        finally:
            await tasks.close()

    def _look(self, tasks: TaskSet) -> None:
        """Send what can be sent of what is due; the rest waits for its leaders."""
        image, due = self._image(), self._due
        self._due = {}
        by_leader: dict[BrokerId, list[_Sent]] = {}
        room = defaultdict[BrokerId, int](lambda: _PARTITIONS_PER_REQUEST)
        for transactional_id in due:
            outstanding = self._outstanding.get(transactional_id)
            if outstanding is None:
                continue
            for leader, partitions in self._by_leader(outstanding, image).items():
                left = 0 if leader is None or leader in self._busy else room[leader]
                if left < len(partitions):
                    self._waiting[leader][transactional_id] = None
                if leader is not None and left > 0:
                    sent = _Sent(outstanding, outstanding.marker(partitions[:left]))
                    by_leader.setdefault(leader, []).append(sent)
                    room[leader] = max(left - len(partitions), 0)
            self._check_done(outstanding)
        for leader, request in by_leader.items():
            self._busy.add(leader)
            tasks.start(self._send(leader, request), name=f"transaction markers to broker {leader}")

    def _by_leader(
        self, outstanding: _Outstanding, image: MetadataImage
    ) -> Mapping[BrokerId | None, Sequence[TopicPartition]]:
        """The partitions without a marker. Those of deleted topics count as done."""
        leaders: dict[BrokerId | None, list[TopicPartition]] = {}
        for partition in list(outstanding.remaining):
            found = image.partition(*partition)
            if found is None:
                outstanding.remaining.discard(partition)
            else:
                leader = found.leader if found.has_leader else self._stand_in(partition)
                leaders.setdefault(leader, []).append(partition)
        return leaders

    async def _send(self, leader: BrokerId, request: Sequence[_Sent]) -> None:
        must_wait = True
        try:
            results = await self._transport.write(leader, [sent.marker for sent in request])
            must_wait = self._settle(leader, request, results)
        except StrandlineError as error:
            self._setbacks[leader].met(error)
        finally:
            if must_wait:
                await self._clock.sleep(RETRY_SECONDS)
            self._busy.discard(leader)
            # The others first: a request has room for so many.
            self._look_at(self._waiting.pop(leader, {}))
            self._look_at(sent.marker.transactional_id for sent in request)

    def _settle(self, leader: BrokerId, request: Sequence[_Sent], results: MarkerResults) -> bool:
        """Count what is written; True if something was refused and is to be sent again.

        An answer counts for the transaction that was asked about: the id may have another one by now.
        """
        refusals: list[StrandlineError] = []
        for outstanding, marker in request:
            transactional_id = marker.transactional_id
            if self._outstanding.get(transactional_id) is not outstanding:
                continue
            errors = {one: results[transactional_id, one] for one in marker.partitions}
            fenced = next((one for one in errors.values() if isinstance(one, TransactionCoordinatorFenced)), None)
            if fenced is not None:
                logger.info("the markers of %r are another coordinator's: %s", transactional_id, fenced)
                del self._outstanding[transactional_id]
                continue
            refused = {one: error for one, error in errors.items() if not (error is None or isinstance(error, _ENDED))}
            outstanding.remaining -= errors.keys() - refused.keys()
            refusals += [error for error in refused.values() if error is not None]
            self._check_done(outstanding)
        if refusals:
            self._setbacks[leader].met(refusals[0])
        else:
            self._setbacks[leader].over()
        return bool(refusals)

    def _check_done(self, outstanding: _Outstanding) -> None:
        transactional_id = outstanding.transaction.transactional_id
        if not outstanding.remaining and self._outstanding.get(transactional_id) is outstanding:
            del self._outstanding[transactional_id]
            outstanding.done()
