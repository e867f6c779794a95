"""The state that a partition keeps of one producer, and the rules for its next batch.

Local logs and the control plane of diskless topics use the same rules.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from strandline.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from strandline.model import INT32_MAX, NO_EPOCH, NO_OFFSET, NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP

RETAINED_BATCHES: Final = 5
TRANSACTIONS_WITH_EPOCH_BUMP: Final = 2


class SequencedBatch(Protocol):
    """What the rules need to know of a batch: fields of its header."""

    @property
    def producer_epoch(self) -> int: ...

    @property
    def base_sequence(self) -> int: ...

    @property
    def last_sequence(self) -> int: ...

    @property
    def last_offset_delta(self) -> int: ...

    @property
    def max_timestamp(self) -> int: ...

    @property
    def is_transactional(self) -> bool: ...


class TransactionVerification(NamedTuple):
    """What the coordinator of a transaction has said of a batch before it is appended."""

    start_ms: int = NO_TIMESTAMP
    """When the transaction began: no two transactions of a producer began at the same time."""
    has_epoch_bump: bool = False
    """Its producer has `transaction.version` 2, and a new epoch with every transaction."""


NOT_VERIFIED: Final = TransactionVerification()


class BatchSpan(NamedTuple):
    """One of the newest batches of a producer, kept to recognise duplicates."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


_new_span = tuple.__new__  # skips a Python call for each batch


class ProducerEntry:
    """State of one producer id: its epoch, its newest five batches under that epoch, its open transaction."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "producer_id",
        "txn_ended_ms",
        "txn_first_offset",
    )

    def __init__(
        self,
        producer_id: int,
        epoch: int = NO_PRODUCER_EPOCH,
        batches: list[BatchSpan] | None = None,
        last_timestamp: int = NO_TIMESTAMP,
        coordinator_epoch: int = NO_EPOCH,
        txn_first_offset: int = NO_OFFSET,
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.batches: list[BatchSpan] = [] if batches is None else batches
        self.last_timestamp = last_timestamp
        self.coordinator_epoch = coordinator_epoch
        self.txn_first_offset = txn_first_offset
        self.txn_ended_ms = NO_TIMESTAMP
        """When the newest transaction began that a marker has ended, where that is kept: in the control plane."""

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    @property
    def last_offset_delta(self) -> int:
        return self.batches[-1].offset_delta if self.batches else 0

    def is_next(self, header: SequencedBatch) -> bool:
        """True if the batch passes every rule at once: same epoch, next sequence, not outside an open transaction."""
        batches = self.batches
        return (
            header.producer_epoch == self.epoch
            and bool(batches)
            and header.base_sequence == batches[-1][0] + 1
            and (self.txn_first_offset < 0 or header.is_transactional)
        )

    def duplicate_of(self, header: SequencedBatch) -> BatchSpan | None:
        """The retained batch that has the same epoch and sequences."""
        if header.producer_epoch == self.epoch:
            last_sequence, delta = header.last_sequence, header.last_offset_delta
            for span in self.batches:
                if span.last_sequence == last_sequence and span.offset_delta == delta:
                    return span
        return None

    def check_epoch(self, epoch: int) -> None:
        """Refuse an epoch older than the one known. Raises InvalidProducerEpoch."""
        if epoch < self.epoch:
            raise InvalidProducerEpoch(
                f"Epoch {epoch} of producer {self.producer_id} is older than the last one seen, which is {self.epoch}."
            )

    def check_sequence(self, header: SequencedBatch) -> None:
        """Refuse a gap in the sequence. Raises OutOfOrderSequence.

        A producer that is not known is accepted with any sequence: retention may have deleted its earlier records.
        """
        first = header.base_sequence
        if header.producer_epoch != self.epoch:
            if first and self.epoch != NO_PRODUCER_EPOCH:
                raise OutOfOrderSequence(
                    f"Producer {self.producer_id} starts epoch {header.producer_epoch} with sequence {first} instead "
                    f"of 0; the epoch before was {self.epoch}."
                )
            return
        last = self.last_sequence
        if first != last + 1 and not (first == 0 and last == INT32_MAX):
            raise OutOfOrderSequence(
                f"Producer {self.producer_id} sent sequence {first}, but its last one was {last}: a batch between "
                "them is missing."
            )

    def check_verified(self, header: SequencedBatch, verification: TransactionVerification) -> None:
        """Refuse a batch for what its coordinator has said of it. Raises OutOfOrderSequence, InvalidTxnState.

        A producer with a new epoch for every transaction begins with sequence 0 wherever it is not known: retention
        cannot have deleted earlier records of the same transaction. And the transaction may have ended since.
        """
        if verification.has_epoch_bump and self.epoch == NO_PRODUCER_EPOCH and header.base_sequence > 0:
            raise OutOfOrderSequence(
                f"Producer {self.producer_id} begins its transaction with sequence {header.base_sequence} instead of "
                "0: a batch before it is missing."
            )
        if 0 <= verification.start_ms <= self.txn_ended_ms:
            raise InvalidTxnState(f"The batch belongs to a transaction of producer {self.producer_id} that has ended.")

    def check_transaction(self, header: SequencedBatch) -> None:
        """Refuse a batch outside the transaction its producer has open. Raises InvalidTxnState."""
        if self.txn_first_offset >= 0 and not header.is_transactional:
            raise InvalidTxnState(
                f"Producer {self.producer_id} has a transaction open from offset {self.txn_first_offset} on, but sent "
                "a batch outside of it."
            )

    def check_marker(
        self, epoch: int, coordinator_epoch: int, transaction_version: int, start_ms: int = NO_TIMESTAMP
    ) -> None:
        """Refuse the marker of a coordinator or producer that has been replaced, or of a transaction that has ended.

        `start_ms`: when the transaction began, if that is known. Without epochs of their own, nothing else tells the
        transactions of a producer from each other.

        Raises InvalidProducerEpoch or TransactionCoordinatorFenced.
        """
        if transaction_version >= TRANSACTIONS_WITH_EPOCH_BUMP and epoch <= self.epoch:
            raise InvalidProducerEpoch(
                f"A marker of producer {self.producer_id} has epoch {epoch}, which is not above {self.epoch}: it "
                "belongs to an earlier transaction."
            )
        self.check_epoch(epoch)
        if coordinator_epoch < self.coordinator_epoch:
            raise TransactionCoordinatorFenced(
                f"The marker of producer {self.producer_id} comes from coordinator epoch {coordinator_epoch}, but "
                f"{self.coordinator_epoch} has been seen."
            )
        if 0 <= start_ms <= self.txn_ended_ms:
            raise InvalidProducerEpoch(f"The transaction of producer {self.producer_id} has ended before.")

    def add_batch(self, header: SequencedBatch, last_offset: int) -> None:
        """Remember a batch that was appended."""
        span = (header.last_sequence, last_offset, header.last_offset_delta, header.max_timestamp)
        self.add_span(header.producer_epoch, _new_span(BatchSpan, span))

    def add_span(self, epoch: int, span: BatchSpan) -> None:
        """Remember a batch of this epoch that was appended."""
        if epoch != self.epoch:
            self.move_to_epoch(epoch)
        batches = self.batches
        if len(batches) >= RETAINED_BATCHES:
            del batches[0]
        batches.append(span)
        self.last_timestamp = span[3]

    def move_to_epoch(self, epoch: int) -> None:
        """Move to an epoch. Batches of earlier epochs no longer count as duplicates or for sequences."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()
