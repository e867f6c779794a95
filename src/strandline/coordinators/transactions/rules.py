"""What becomes of a request about a transaction: rules, without a log.

Each looks at the state of a transactional id and returns the state to be written, or says that nothing is; a refusal is
a StrandlineError. Whether a change is being written already (`is_pending`) is part of the question: until it is known
to be committed, no other begins.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from strandline.coordinators.transactions.metadata import EPOCH_BUMP_VERSION, LAST_EPOCH, TransactionMetadata
from strandline.coordinators.transactions.states import TransactionState
from strandline.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTxnState,
    ProducerFenced,
    StrandlineError,
    TransactionAbortable,
)
from strandline.model import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    ProducerAndEpoch,
    ProducerId,
    TimestampMs,
    TopicPartition,
)

_S = TransactionState


class Step(enum.Enum):
    """What has to happen before a request can be decided."""

    ABORT_FIRST = enum.auto()
    """A transaction is open: it is aborted, and the client told to try again."""
    NEEDS_PRODUCER_ID = enum.auto()
    """The epochs are used up: ask again, with a new producer id."""


# InitProducerId


def decide_init(
    current: TransactionMetadata,
    *,
    expected: ProducerAndEpoch | None,
    timeout_ms: int,
    is_pending: bool,
    new_producer_id: ProducerId = NO_PRODUCER_ID,
    now_ms: TimestampMs,
) -> TransactionMetadata | Step:
    """A producer initialises. Raises ConcurrentTransactions, ProducerFenced."""
    if is_pending:
        raise _concurrent(current)
    if expected is not None and not _may_go_on(current, expected):
        raise _fenced(current, expected.epoch)
    if current.state.is_prepared:
        raise _concurrent(current)
    if current.state is _S.ONGOING:
        return Step.ABORT_FIRST
    epoch = None if expected is None else expected.epoch
    if current.needs_new_producer_id(epoch):
        if new_producer_id == NO_PRODUCER_ID:
            return Step.NEEDS_PRODUCER_ID
        return current.with_new_producer_id(new_producer_id, timeout_ms=timeout_ms, expected_epoch=epoch, now_ms=now_ms)
    changed = current.with_next_epoch(timeout_ms=timeout_ms, expected_epoch=epoch, now_ms=now_ms)
    if changed is None:
        raise _fenced(current, -1 if epoch is None else epoch)
    return changed


def _may_go_on(current: TransactionMetadata, expected: ProducerAndEpoch) -> bool:
    """Whether it is the producer that has the id, or one whose id was used up and whose answer was lost."""
    return (
        current.producer_epoch == NO_PRODUCER_EPOCH
        or expected.producer_id == current.producer_id
        or (expected.producer_id == current.previous_producer_id and expected.epoch >= LAST_EPOCH)
    )


# AddPartitionsToTxn, AddOffsetsToTxn


def decide_add(
    current: TransactionMetadata,
    producer: ProducerAndEpoch,
    partitions: Collection[TopicPartition],
    *,
    client_version: int,
    is_pending: bool,
    now_ms: TimestampMs,
) -> TransactionMetadata | None:
    """A transaction reaches partitions; None if it has them all. Raises a StrandlineError."""
    _check_producer(current, producer)
    if is_pending or current.state.is_prepared:
        raise _concurrent(current)
    if current.state is _S.ONGOING and current.partitions.issuperset(partitions):
        return None
    return current.with_partitions(partitions, client_version=client_version, now_ms=now_ms)


class Verified(NamedTuple):
    """What is true of some partitions and the open transaction."""

    errors: Mapping[TopicPartition, StrandlineError | None]
    """For partitions that are not part of it."""
    start_ms: TimestampMs
    """When it began."""


def verify(
    current: TransactionMetadata,
    producer: ProducerAndEpoch,
    partitions: Collection[TopicPartition],
    *,
    is_pending: bool,
) -> Verified:
    """Whether each partition is part of the open transaction. Raises a StrandlineError for all of them."""
    _check_producer(current, producer)
    if is_pending or current.state.is_prepared:
        raise _concurrent(current)
    known = current.partitions if current.state is _S.ONGOING else frozenset[TopicPartition]()
    errors = {
        one: None
        if one in known
        else TransactionAbortable(f"{one} is not part of the transaction of {current.transactional_id!r}. Abort it.")
        for one in partitions
    }
    return Verified(errors, current.start_ms)


# EndTxn


def decide_end(
    current: TransactionMetadata,
    producer: ProducerAndEpoch,
    *,
    is_commit: bool,
    client_version: int,
    is_pending: bool,
    new_producer_id: ProducerId = NO_PRODUCER_ID,
    now_ms: TimestampMs,
) -> TransactionMetadata | Step | None:
    """The producer ends its transaction; None if that has happened before. Raises a StrandlineError."""
    bumps = client_version >= EPOCH_BUMP_VERSION
    is_retry = _check_end(current, producer, bumps=bumps, is_pending=is_pending)
    match current.state:
        case _S.ONGOING:
            pass
        case _S.PREPARE_COMMIT | _S.PREPARE_ABORT:
            raise _concurrent(current) if _is_same(current.state, is_commit) else _illegal(current, is_commit)
        case _S.COMPLETE_COMMIT | _S.COMPLETE_ABORT if is_retry or not bumps:
            if _is_same(current.state, is_commit):
                return None
            raise _illegal(current, is_commit)
        case _S.EMPTY | _S.COMPLETE_COMMIT | _S.COMPLETE_ABORT if bumps and not is_commit:
            pass  # a transaction that reached no partition
        case _:
            raise _illegal(current, is_commit)
    if bumps and current.is_epoch_exhausted and new_producer_id == NO_PRODUCER_ID:
        return Step.NEEDS_PRODUCER_ID
    return current.prepared(
        is_commit=is_commit,
        client_version=client_version,
        next_producer_id=new_producer_id if bumps and current.is_epoch_exhausted else NO_PRODUCER_ID,
        now_ms=now_ms,
    )


def _check_end(current: TransactionMetadata, producer: ProducerAndEpoch, *, bumps: bool, is_pending: bool) -> bool:
    """Whether the end is a repetition. Raises ConcurrentTransactions, InvalidProducerIdMapping, ProducerFenced.

    A producer whose epoch is bumped learns the next one while the markers are being written, and may end a transaction
    without records with it at once. That is no reason to fence it: as in Kafka, it waits before anything is checked.
    """
    if bumps and (is_pending or current.state.is_prepared):
        raise _concurrent(current)
    is_retry = bumps and _is_retry(current, producer)
    if not is_retry:
        _check_producer(current, producer)
    if is_pending:
        raise _concurrent(current)
    return is_retry


_RESULTS: Final = {
    _S.PREPARE_COMMIT: True,
    _S.COMPLETE_COMMIT: True,
    _S.PREPARE_ABORT: False,
    _S.COMPLETE_ABORT: False,
}


def _is_retry(current: TransactionMetadata, producer: ProducerAndEpoch) -> bool:
    """Whether the same request was carried out before: the producer does not know its new epoch yet."""
    if current.state not in _RESULTS:
        return False
    if current.producer_id == producer.producer_id:
        return current.producer_epoch == producer.epoch + 1
    return (
        current.previous_producer_id == producer.producer_id
        and producer.epoch == LAST_EPOCH
        and current.producer_epoch == 0
    )


def _is_same(state: TransactionState, is_commit: bool) -> bool:
    return _RESULTS[state] is is_commit


# Refusals


def _check_producer(current: TransactionMetadata, producer: ProducerAndEpoch) -> None:
    if current.producer_id != producer.producer_id:
        raise _unknown(current, producer.producer_id)
    if not _is_current(current, producer):
        raise _fenced(current, producer.epoch)


def _is_current(current: TransactionMetadata, producer: ProducerAndEpoch) -> bool:
    """Whether it has the epoch of the id. The epoch above the last one is that of a marker, and of no producer."""
    return producer.epoch == current.producer_epoch and producer.epoch <= LAST_EPOCH


def _concurrent(current: TransactionMetadata) -> StrandlineError:
    return ConcurrentTransactions(
        f"The transaction of {current.transactional_id!r} is just being changed ({current.state.label}). Try again."
    )


def _fenced(current: TransactionMetadata, epoch: int) -> StrandlineError:
    return ProducerFenced(
        f"Producer epoch {epoch} of {current.transactional_id!r} is not the current one, {current.producer_epoch}: "
        "another producer uses this transactional id, or the transaction took longer than its timeout."
    )


def _unknown(current: TransactionMetadata, producer_id: ProducerId) -> StrandlineError:
    return InvalidProducerIdMapping(
        f"The producer id of {current.transactional_id!r} is {current.producer_id}, not {producer_id}."
    )


def _illegal(current: TransactionMetadata, is_commit: bool) -> StrandlineError:
    what = "committed" if is_commit else "aborted"
    return InvalidTxnState(
        f"The transaction of {current.transactional_id!r} cannot be {what}: it is in state {current.state.label}."
    )
