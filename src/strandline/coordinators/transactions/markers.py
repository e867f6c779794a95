"""Brings the markers of decided transactions to the leaders of their partitions, however long it takes.

By level: what is to be sent follows, at every look, from the partitions that have no marker yet and from the leaders
that metadata names. Each leader gets one request at a time, with everything there is for it; a leader that does not
answer holds up nobody else.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
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
from strandline.metadata.image import MetadataImage
from strandline.model import BrokerId, ProducerAndEpoch, TopicPartition
from strandline.tasks import Setbacks, TaskSet

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 0.1
"""After a refusal or without a leader, this long until the next look."""
_PARTITIONS_PER_REQUEST: Final = 1000
_ENDED: Final = (InvalidProducerEpoch, UnsupportedForMessageFormat, UnsupportedVersion)
"""The partition needs no marker. A newer epoch, or this one, is there only after a marker of the transaction: one that
was written before this coordinator was loaded."""


class TransactionMarker(NamedTuple):
    """The end of one transaction in some partitions."""

    transactional_id: str
    """Ours; it is not sent."""
    end: TransactionEnd
    partitions: tuple[TopicPartition, ...]


MarkerResults = Mapping[tuple[str, TopicPartition], StrandlineError | None]
"""By transactional id and partition."""


class MarkerTransport(Protocol):
    """Carries markers to one broker, which may be this one."""

    async def write(self, broker: BrokerId, markers: Sequence[TransactionMarker]) -> MarkerResults:
        """What became of each partition. Raises StrandlineError if the broker does not answer: anything may be."""


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
    """A marker on its way, and what it is of."""

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
        self._wake.set()

    def forget(self, transactional_ids: Collection[str]) -> None:
        for transactional_id in transactional_ids:
            self._outstanding.pop(transactional_id, None)

    def metadata_changed(self) -> None:
        """Partitions may have other leaders now, or be gone."""
        self._wake.set()

    async def run(self) -> None:
        """Send, endlessly."""
        tasks = TaskSet()
        try:
            while True:
                self._wake.clear()
                if self._look(tasks):
                    await self._clock.wait_set(self._wake, within=RETRY_SECONDS)
                else:
                    await self._wake.wait()
        finally:
            await tasks.close()

    def _look(self, tasks: TaskSet) -> bool:
        """Send what can be sent; True if something has to wait for time to pass."""
        image = self._image()
        by_leader: dict[BrokerId, list[_Sent]] = {}
        room: dict[BrokerId, int] = {}
        has_leaderless = False
        for outstanding in list(self._outstanding.values()):
            leaders: dict[BrokerId, list[TopicPartition]] = {}
            for partition in list(outstanding.remaining):
                found = image.partition(*partition)
                if found is None:
                    outstanding.remaining.discard(partition)  # its topic was deleted
                    continue
                leader = found.leader if found.has_leader else self._stand_in(partition)
                if leader is None:
                    has_leaderless = True
                elif leader not in self._busy:
                    leaders.setdefault(leader, []).append(partition)
            for leader, partitions in leaders.items():
                left = room.setdefault(leader, _PARTITIONS_PER_REQUEST)
                if left > 0:
                    sent = _Sent(outstanding, outstanding.marker(partitions[:left]))
                    by_leader.setdefault(leader, []).append(sent)
                    room[leader] = left - len(partitions)
            self._check_done(outstanding)
        for leader, request in by_leader.items():
            self._busy.add(leader)
            tasks.start(self._send(leader, request), name=f"transaction markers to broker {leader}")
        return has_leaderless

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
            self._wake.set()

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
            if refused:
                refusals += [error for error in refused.values() if error is not None]
                # The others first, next time: a request has room for so many.
                self._outstanding[transactional_id] = self._outstanding.pop(transactional_id)
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
