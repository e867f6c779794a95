"""The state of one transactional id, and how it changes. Pure: a change makes another value.

The names are Kafka's. A producer is an id with an epoch; a producer with the same id and a smaller epoch is fenced.
Clients of `transaction.version` 2 get a new epoch with every transaction they end, so that a request of an earlier
transaction that arrives late is recognised (KIP-890); others keep theirs until they initialise again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from strandline.coordinators.transactions.schemas import TransactionValue
from strandline.coordinators.transactions.states import LEGAL_BEFORE, TransactionState
from strandline.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP, ProducerId, TimestampMs, TopicPartition

LAST_EPOCH: Final = 32766
"""A producer with this epoch gets a new id instead of another epoch: 32767 is left for the marker that fences it."""
EPOCH_BUMP_VERSION: Final = 2
"""From this transaction version of clients on, ending a transaction makes a new epoch."""

_S = TransactionState


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionMetadata:
    """One transactional id."""

    transactional_id: str
    producer_id: ProducerId
    previous_producer_id: ProducerId = NO_PRODUCER_ID
    """The id before the last one was used up; a retry of its last request is recognised by it."""
    next_producer_id: ProducerId = NO_PRODUCER_ID
    """The id to go on with once the transaction is complete, because the epochs of this one are used up."""
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The epoch that the same producer had before, and may still have if an answer was lost or its transaction was
    aborted for it: with it, it goes on (KIP-360). None after another producer has taken the transactional id over."""
    timeout_ms: int
    state: TransactionState = _S.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    """In which the transaction has, or may have, records."""
    start_ms: TimestampMs = NO_TIMESTAMP
    """When the transaction began: later than anything that happened to the id before."""
    last_update_ms: TimestampMs
    client_version: int = 0
    """The transaction version of the client."""

    @property
    def is_epoch_exhausted(self) -> bool:
        return self.producer_epoch >= LAST_EPOCH

    def needs_new_producer_id(self, expected_epoch: int | None) -> bool:
        """Whether there is no epoch left to go on with. One that was given away already can be given again."""
        if not self.is_epoch_exhausted:
            return False
        if expected_epoch is None or expected_epoch == self.producer_epoch:
            return True
        return self.producer_epoch > LAST_EPOCH and expected_epoch == self.last_producer_epoch

    @property
    def bumps_epoch(self) -> bool:
        return self.client_version >= EPOCH_BUMP_VERSION

    def has_timed_out(self, now_ms: TimestampMs) -> bool:
        return self.state is _S.ONGOING and now_ms > self.start_ms + self.timeout_ms

    # Changes

    def with_next_epoch(self, *, timeout_ms: int, expected_epoch: int | None, now_ms: TimestampMs) -> EpochChange:
        """The producer initialises again. Without an expected epoch, the previous producer with this id is fenced.

        With one it is the same producer: it goes on after an error, or repeats the request that gave it a new epoch.
        """
        bumped = self.producer_epoch + 1
        if expected_epoch is None:
            epochs = (bumped, NO_PRODUCER_EPOCH)
        elif self.producer_epoch in (NO_PRODUCER_EPOCH, expected_epoch):
            epochs = (bumped, self.producer_epoch)
        elif expected_epoch == self.last_producer_epoch:
            epochs = (self.producer_epoch, self.last_producer_epoch)
        else:
            return None
        return replace(self._emptied(timeout_ms, now_ms), producer_epoch=epochs[0], last_producer_epoch=epochs[1])

    def with_new_producer_id(
        self, producer_id: ProducerId, *, timeout_ms: int, expected_epoch: int | None, now_ms: TimestampMs
    ) -> TransactionMetadata:
        """The epochs of the old id are used up. `expected_epoch`: as for `with_next_epoch`."""
        return replace(
            self._emptied(timeout_ms, now_ms),
            producer_id=producer_id,
            producer_epoch=0,
            last_producer_epoch=NO_PRODUCER_EPOCH if expected_epoch is None else expected_epoch,
        )

    def _emptied(self, timeout_ms: int, now_ms: TimestampMs) -> TransactionMetadata:
        return replace(
            self._moved(_S.EMPTY, now_ms),
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_ms=NO_TIMESTAMP,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
        )

    def with_partitions(
        self, added: Iterable[TopicPartition], *, client_version: int, now_ms: TimestampMs
    ) -> TransactionMetadata:
        """A transaction begins, or reaches more partitions."""
        is_new = self.state is not _S.ONGOING
        if is_new:  # the start time tells it from the one before, whatever the clocks of brokers say
            now_ms = max(now_ms, self.last_update_ms + 1)
        return replace(
            self._moved(_S.ONGOING, now_ms),
            partitions=(frozenset() if is_new else self.partitions) | frozenset(added),
            start_ms=now_ms if is_new else self.start_ms,
            previous_producer_id=self.producer_id,
            client_version=client_version,
        )

    def prepared(
        self,
        *,
        is_commit: bool,
        client_version: int,
        next_producer_id: ProducerId = NO_PRODUCER_ID,
        now_ms: TimestampMs,
    ) -> TransactionMetadata:
        """The transaction is decided. With version 2 the producer has a new epoch from here on."""
        is_bumped = client_version >= EPOCH_BUMP_VERSION
        return replace(
            self._moved(_S.PREPARE_COMMIT if is_commit else _S.PREPARE_ABORT, now_ms),
            producer_epoch=self.producer_epoch + 1 if is_bumped else self.producer_epoch,
            last_producer_epoch=self.producer_epoch if is_bumped else self.last_producer_epoch,
            partitions=self.partitions if self.state is _S.ONGOING else frozenset(),
            start_ms=self.start_ms if self.state is _S.ONGOING else now_ms,
            next_producer_id=next_producer_id,
            previous_producer_id=self.producer_id,
            client_version=client_version,
        )

    def fenced(self, *, client_version: int, now_ms: TimestampMs) -> TransactionMetadata:
        """The transaction is aborted, and not by its producer, which gets a higher epoch and is thereby fenced.

        Unless another producer takes the id over, it may still initialise with the epoch that it knows, and go on.
        """
        return replace(
            self._moved(_S.PREPARE_ABORT, now_ms),
            producer_epoch=self.producer_epoch + 1,
            last_producer_epoch=self.producer_epoch,
            previous_producer_id=self.producer_id,
            client_version=client_version,
        )

    def completed(self, now_ms: TimestampMs) -> TransactionMetadata:
        """All markers are written."""
        state = _S.COMPLETE_COMMIT if self.state is _S.PREPARE_COMMIT else _S.COMPLETE_ABORT
        done = replace(self._moved(state, now_ms), partitions=frozenset())
        if self.next_producer_id == NO_PRODUCER_ID:
            return done
        return replace(
            done,
            producer_id=self.next_producer_id,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
            producer_epoch=0,
        )

    def _moved(self, state: TransactionState, now_ms: TimestampMs) -> TransactionMetadata:
        if self.state not in LEGAL_BEFORE[state]:
            raise ValueError(f"{self.transactional_id} cannot go from {self.state.label} to {state.label}.")
        return replace(self, state=state, last_update_ms=max(now_ms, self.last_update_ms))

    # Records

    def value(self) -> TransactionValue:
        """As it is written."""
        return TransactionValue(
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            timeout_ms=self.timeout_ms,
            state=self.state,
            partitions=tuple(sorted(self.partitions)),
            last_update_ms=self.last_update_ms,
            start_ms=self.start_ms,
            previous_producer_id=self.previous_producer_id,
            next_producer_id=self.next_producer_id,
            client_version=self.client_version,
        )


EpochChange = TransactionMetadata | None
"""None: the producer is fenced."""


def of_value(transactional_id: str, value: TransactionValue) -> TransactionMetadata:
    """As it was read. The epoch before the last one is not written: after a restart a retry is refused, as in Kafka."""
    return TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.timeout_ms,
        state=value.state,
        partitions=frozenset(value.partitions),
        start_ms=value.start_ms,
        last_update_ms=value.last_update_ms,
        client_version=value.client_version,
    )
