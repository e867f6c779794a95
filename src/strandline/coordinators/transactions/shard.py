"""The transactional ids of one partition of `__transaction_state`: their state, and the records that change it.

Memory follows the log: a change counts when its record is committed, and until then every other request about the same
id is told to try again. An end is decided when its Prepare record is committed; the client is answered then, markers
are written to the partitions of the transaction, and when all are there the Complete record follows. A broker that
loads the partition goes on with whatever is prepared.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, Protocol
from weakref import WeakValueDictionary

from strandline.clock import Clock
from strandline.coordinators.runtime import KeyValue, ReadBatch, RecordSink, Timer, Timers, WriteResult, client_error
from strandline.coordinators.transactions.metadata import TransactionMetadata, of_value
from strandline.coordinators.transactions.rules import (
    Step,
    Verified,
    decide_add,
    decide_end,
    decide_init,
    verify,
)
from strandline.coordinators.transactions.schemas import read_key, read_value, write_key, write_value
from strandline.coordinators.transactions.states import TransactionState
from strandline.coordinators.transactions.table import TransactionTable
from strandline.crash import crash_point
from strandline.errors import ConcurrentTransactions, InvalidProducerIdMapping, StrandlineError
from strandline.model import NO_PRODUCER_ID, ProducerAndEpoch, ProducerId, TopicPartition

_S = TransactionState
_VALUE_VERSION = 1
FIRST_RETRY_MS: Final = 50
_LONGEST_RETRY_MS: Final = 5_000
# Some milliseconds of work, also if a record is written for each.
IDS_PER_STEP: Final = 500

Changed = Callable[[TransactionMetadata | StrandlineError], None]
"""Gets the state that is committed, or why nothing is."""
Decided = Callable[[TransactionMetadata | Step | StrandlineError], None]
"""The same; or what has to happen first."""


class MarkerSender(Protocol):
    """Writes the markers of transactions that are decided."""

    @property
    def outstanding(self) -> int:
        """Transactions that have partitions without a marker."""

    def send(self, transaction: TransactionMetadata, *, coordinator_epoch: int, done: Callable[[], None]) -> None:
        """Write a marker to each of its partitions, however long that takes; `done` is called when all are there.

        Partitions of deleted topics count as done. A second call for the same transactional id replaces the first.
        """

    def forget(self, transactional_ids: Collection[str]) -> None:
        """Another broker coordinates these ids now: nothing more is sent, and `done` is not called."""


class TransactionShard:
    """One partition's transactional ids. Synchronous: results of writes come through callbacks."""

    def __init__(
        self, sink: RecordSink, markers: MarkerSender, clock: Clock, timers: Timers, *, epoch: Callable[[], int]
    ) -> None:
        """`epoch`: that of this coordinator, by which partitions refuse the markers of an earlier one."""
        self.transactions = TransactionTable()
        self._sink, self._markers, self._clock, self._epoch = sink, markers, clock, epoch
        self._pending: set[str] = set()
        """Ids of which a change is being written."""
        self._marked: set[str] = set()
        """Prepared, with all markers written: what is left is the Complete record."""
        self._timers = timers
        self._retry: Timer | None = None
        """Pending while a Complete record could not be written."""
        self._retry_ms = FIRST_RETRY_MS
        self._changes = WeakValueDictionary[str, asyncio.Event]()
        """For requests that wait. Other ids take no memory: requests may name ids that do not exist."""
        self._is_open = False

    def __str__(self) -> str:
        return f"{len(self.transactions)} transactional ids"

    # Loading and unloading

    def replay(self, batch: ReadBatch) -> None:
        """Apply a batch read from the log. Raises CorruptMessage."""
        for _, key, value in batch.records:
            transactional_id = None if key is None else read_key(key)
            if transactional_id is None:
                continue
            if value is None:
                self.transactions.pop(transactional_id, None)
            else:
                self.transactions[transactional_id] = of_value(transactional_id, read_value(value))

    def prepare(self) -> Iterator[None]:
        """Nothing waits for it."""
        return iter(())

    def loaded(self) -> Iterator[None]:
        """Markers that another coordinator has not written, or not all of them, are written. In steps."""
        self._is_open = True
        # No other coordinator ends these: without markers, requests about them are told to try again.
        for number, transactional_id in enumerate(self.transactions.prepared, 1):
            self._send_markers(self.transactions[transactional_id])
            if number % IDS_PER_STEP == 0:
                yield

    def unloaded(self, error: StrandlineError) -> Iterator[None]:
        """Another broker coordinates these ids now. Requests that wait for a write have been answered."""
        self._is_open = False
        if self._retry is not None:
            self._retry.cancel()
        # Only what is decided has markers to write. At once: this broker may be elected again, and send them anew.
        self._markers.forget(self.transactions.prepared)
        for transactional_id in [*self._changes.keys()]:
            self._changed(transactional_id)
        return iter(())

    def let_go(self) -> Iterator[None]:
        """Forget all ids, in steps."""
        forgotten = 0
        while self.transactions:
            self.transactions.popitem()
            forgotten += 1
            if forgotten % IDS_PER_STEP == 0:
                yield

    def next_change(self, transactional_id: str) -> asyncio.Event:
        """Is set when the state of the id has changed, or another broker coordinates it."""
        event = self._changes.get(transactional_id)
        if event is None:
            event = self._changes[transactional_id] = asyncio.Event()
        return event

    @property
    def waited_for(self) -> int:
        """How many ids have requests that wait for their next change."""
        return len(self._changes)

    def _changed(self, transactional_id: str) -> None:
        event = self._changes.pop(transactional_id, None)
        if event is not None:
            event.set()

    # Requests

    def init_producer_id(
        self,
        transactional_id: str,
        answer: Decided,
        *,
        expected: ProducerAndEpoch | None,
        timeout_ms: int,
        new_producer_id: ProducerId = NO_PRODUCER_ID,
    ) -> None:
        """A producer begins to use an id: it gets an epoch, and the previous producer with the id is fenced."""
        now_ms = self._clock.now_ms()
        current = self.transactions.get(transactional_id)
        if current is None:
            if new_producer_id == NO_PRODUCER_ID:
                answer(Step.NEEDS_PRODUCER_ID)
                return
            current = TransactionMetadata(
                transactional_id=transactional_id,
                producer_id=new_producer_id,
                timeout_ms=timeout_ms,
                last_update_ms=now_ms,
            )
        try:
            decided = decide_init(
                current,
                expected=expected,
                timeout_ms=timeout_ms,
                is_pending=transactional_id in self._pending,
                new_producer_id=new_producer_id,
                now_ms=now_ms,
            )
        except StrandlineError as error:
            answer(error)
            return
        if isinstance(decided, TransactionMetadata):
            self._write(decided, answer)
        elif decided is Step.ABORT_FIRST:
            self._fence(current, lambda result: answer(_try_again(result)))
        else:
            answer(decided)

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerAndEpoch,
        partitions: Collection[TopicPartition],
        answer: Changed,
        *,
        client_version: int,
    ) -> None:
        """The transaction has, or is about to have, records in these partitions."""
        try:
            current = self._known(transactional_id)
            decided = decide_add(
                current,
                producer,
                partitions,
                client_version=client_version,
                is_pending=transactional_id in self._pending,
                now_ms=self._clock.now_ms(),
            )
        except StrandlineError as error:
            answer(error)
            return
        if decided is None:
            answer(current)
        else:
            self._write(decided, answer)

    def verify_partitions(
        self, transactional_id: str, producer: ProducerAndEpoch, partitions: Collection[TopicPartition]
    ) -> Verified:
        """Whether each is part of the open transaction. Raises a StrandlineError for all of them."""
        current = self._known(transactional_id)
        return verify(current, producer, partitions, is_pending=transactional_id in self._pending)

    def end(
        self,
        transactional_id: str,
        producer: ProducerAndEpoch,
        answer: Decided,
        *,
        is_commit: bool,
        client_version: int,
        new_producer_id: ProducerId = NO_PRODUCER_ID,
    ) -> None:
        """Commit or abort. Answered when that is decided for good; markers follow."""
        try:
            current = self._known(transactional_id)
            decided = decide_end(
                current,
                producer,
                is_commit=is_commit,
                client_version=client_version,
                is_pending=transactional_id in self._pending,
                new_producer_id=new_producer_id,
                now_ms=self._clock.now_ms(),
            )
        except StrandlineError as error:
            answer(error)
            return
        if isinstance(decided, TransactionMetadata):
            self._end(decided, answer)
        else:
            answer(current if decided is None else decided)

    # By time

    def abort_timed_out(self) -> Iterator[None]:
        """Abort transactions that take longer than their timeout. In steps."""
        now_ms = self._clock.now_ms()
        for some in self._in_steps():
            for transaction in some:
                if transaction.has_timed_out(now_ms):
                    self._fence(transaction, lambda _: None)
            yield

    def expire(self, expiration_ms: int) -> Iterator[None]:
        """Forget ids that no producer has used for so long. In steps."""
        before_ms = self._clock.now_ms() - expiration_ms
        for some in self._in_steps():
            for transaction in some:
                if transaction.state.is_complete and transaction.last_update_ms < before_ms:
                    self._forget(transaction.transactional_id)
            yield

    def _in_steps(self) -> Iterator[list[TransactionMetadata]]:
        """All ids of which no change is being written, in their state at the time of the step."""
        transactional_ids = list(self.transactions)
        while transactional_ids:  # taken out some at a time: to let go of a million at once takes long
            some = transactional_ids[-IDS_PER_STEP:]
            del transactional_ids[-IDS_PER_STEP:]
            yield self._unchanging(some)

    def _unchanging(self, transactional_ids: Iterable[str]) -> list[TransactionMetadata]:
        found = (self.transactions.get(one) for one in transactional_ids if one not in self._pending)
        return [one for one in found if one is not None]

    def _forget(self, transactional_id: str) -> None:
        def done(result: WriteResult) -> None:
            self._pending.discard(transactional_id)
            if result.error is None:
                self.transactions.pop(transactional_id, None)
            self._changed(transactional_id)

        self._pending.add(transactional_id)
        self._sink.write([(write_key(transactional_id), None)], done)

    # Writing

    def _known(self, transactional_id: str) -> TransactionMetadata:
        found = self.transactions.get(transactional_id)
        if found is None:
            raise InvalidProducerIdMapping(f"The transactional id {transactional_id!r} is not known here.")
        return found

    def _write(self, changed: TransactionMetadata, done: Changed) -> None:
        transactional_id = changed.transactional_id

        def written(result: WriteResult) -> None:
            self._pending.discard(transactional_id)
            if result.error is not None:
                done(client_error(result.error))
            else:
                self.transactions[transactional_id] = changed
                done(changed)
            self._changed(transactional_id)

        self._pending.add(transactional_id)
        self._sink.write([_record(changed)], written)

    def _fence(self, current: TransactionMetadata, done: Changed) -> None:
        """Abort an open transaction, because another producer has its id now or because it has timed out."""
        self._end(current.fenced(client_version=current.client_version, now_ms=self._clock.now_ms()), done)

    def _end(self, prepared: TransactionMetadata, done: Changed) -> None:
        def decided(result: TransactionMetadata | StrandlineError) -> None:
            crash_point("transactions.after_prepare")
            done(result)
            if isinstance(result, TransactionMetadata) and self._is_open:
                self._send_markers(result)

        crash_point("transactions.before_prepare")
        self._write(prepared, decided)

    def _send_markers(self, prepared: TransactionMetadata) -> None:
        def done() -> None:
            if self._is_open and self.transactions.get(prepared.transactional_id) == prepared:
                self._marked.add(prepared.transactional_id)
                self._complete(prepared)

        self._markers.send(prepared, coordinator_epoch=self._epoch(), done=done)

    def _complete(self, prepared: TransactionMetadata) -> None:
        def done(result: TransactionMetadata | StrandlineError) -> None:
            if isinstance(result, TransactionMetadata):
                self._marked.discard(prepared.transactional_id)
                self._retry_ms = FIRST_RETRY_MS
            elif self._is_open:
                self._complete_later()

        crash_point("transactions.before_complete")
        self._write(prepared.completed(self._clock.now_ms()), done)

    def _complete_later(self) -> None:
        """Its producer cannot begin another transaction before: soon, then less and less often."""
        if self._retry is not None and self._retry.is_pending:
            return
        self._retry = self._timers.after(self._retry_ms, self._complete_marked)
        self._retry_ms = min(2 * self._retry_ms, _LONGEST_RETRY_MS)

    def _complete_marked(self) -> None:
        for transaction in self._unchanging(list(self._marked)):
            self._complete(transaction)


def _record(changed: TransactionMetadata) -> KeyValue:
    return write_key(changed.transactional_id), write_value(changed.value(), version=_VALUE_VERSION)


def _try_again(result: TransactionMetadata | StrandlineError) -> StrandlineError:
    if isinstance(result, StrandlineError):
        return result
    return ConcurrentTransactions(
        f"An open transaction of {result.transactional_id!r} is being aborted first. Try again."
    )
