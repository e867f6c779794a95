"""Writing to one partition of a coordinator: writes are gathered into appends, and count when they are committed."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from strandline.clock import Clock
from strandline.coordinators.runtime.log import (
    CoordinatorLog,
    CoordinatorRecord,
    TransactionEnd,
    WriteDone,
    WriteResult,
)
from strandline.errors import (
    CoordinatorNotAvailable,
    FencedLeaderEpoch,
    InvalidFetchSize,
    KafkaStorageError,
    MessageTooLarge,
    NotCoordinator,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    RecordListTooLarge,
    RequestTimedOut,
    StrandlineError,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)
from strandline.model import INT32_MAX, LeaderEpoch, ProducerAndEpoch, ProducerId

logger = logging.getLogger(__name__)

KeyValue: TypeAlias = tuple[bytes, bytes | None]

# Room for the batch header and the varints of each record.
_BATCH_OVERHEAD = 128
_RECORD_OVERHEAD = 24
# Some milliseconds of work: of what one append gathers, and of what is appended before others have a turn.
_RECORDS_PER_TURN = 1_000


class RecordSink(Protocol):
    """Takes the records of one decision.

    Writes are applied in the order of the calls, each whole or not at all. `done` is called exactly once, on the event
    loop, in the order of the calls: later, or at once if the sink is closed or takes nothing for the time being. A
    write without records is a fence: it is done when all writes before it are.

    While this broker leads the partition, the result is the truth: a write that is in the log waits until it is
    committed, however long that takes, so that memory follows the log. When that is over, a write that failed may be
    in the log of the next leader nevertheless.
    """

    def write(self, records: Sequence[KeyValue], done: WriteDone) -> None: ...


class BoundedSink(RecordSink, Protocol):
    """Knows how much one write may hold."""

    def max_write_bytes(self) -> int:
        """The largest `write_size` that the log takes. A limit that is not known now is none: the write meets it."""


def write_size(records: Iterable[KeyValue]) -> int:
    """What records take in a batch that is not compressed, at most."""
    return sum(len(key) + len(value or b"") + _RECORD_OVERHEAD for key, value in records)


class TransactionalSink(BoundedSink, Protocol):
    """Takes what belongs to transactions of producers, too. All that is written keeps one order."""

    def write_now(self, records: Sequence[KeyValue]) -> WriteResult | None:
        """Write records that are committed when this returns, behind all that was written before.

        None if that cannot be: then nothing has happened, and `write` does it or says why not.
        """

    def write_transactional(self, records: Sequence[KeyValue], producer: ProducerAndEpoch, done: WriteDone) -> None:
        """Records that count when the producer's transaction is committed."""

    def write_marker(self, end: TransactionEnd, done: WriteDone) -> None:
        """The end of a transaction."""

    def has_transaction(self, producer: ProducerAndEpoch) -> bool:
        """Whether what is written next can be part of a transaction that the producer has open, in this epoch.

        Raises NotLeaderOrFollower or UnknownTopicOrPartition.
        """


def client_error(error: StrandlineError) -> StrandlineError:
    """The error for a client whose write the log refused: it tells the client where to go, not what went wrong."""
    if isinstance(error, UnknownTopicOrPartition | NotEnoughReplicas | NotEnoughReplicasAfterAppend | RequestTimedOut):
        return CoordinatorNotAvailable(f"The coordinator's log could not be written: {error}")
    if isinstance(error, NotLeaderOrFollower | FencedLeaderEpoch | UnknownLeaderEpoch | KafkaStorageError):
        return NotCoordinator(f"This broker no longer leads the coordinator's log: {error}")
    if isinstance(error, MessageTooLarge | RecordListTooLarge | InvalidFetchSize):
        return StrandlineError(f"The state does not fit into one record: {error}")
    return error


@dataclass(slots=True)
class _Write:
    records: Sequence[CoordinatorRecord]
    size: int
    done: WriteDone
    producer: ProducerAndEpoch | None = None
    end: TransactionEnd | None = None

    def may_share_append(self, other: _Write) -> bool:
        """Whether both can be in one batch: it has one producer, and a marker stands alone."""
        return self.end is None and other.end is None and self.producer == other.producer


class CoordinatorPartitionWriter:
    """The `TransactionalSink` of one partition. While an append is under way, further writes gather for the next one.

    Appends are made in `leader_epoch`: in any other epoch the log refuses them.
    """

    def __init__(
        self,
        coordinator: str,
        partition: int,
        leader_epoch: LeaderEpoch,
        *,
        log: CoordinatorLog,
        clock: Clock,
        patience_ms: int,
    ) -> None:
        """`patience_ms`: when an append has been under way for longer, further records are refused. Those who wait for
        them have given up, and what they send again must not pile up."""
        self.partition, self.leader_epoch = partition, leader_epoch
        self._coordinator = coordinator
        self._log, self._clock, self._patience_s = log, clock, patience_ms / 1000
        self._loop = asyncio.get_running_loop()
        self._queue: deque[_Write] = deque()
        self._under_way: list[_Write] = []
        self._ending: Counter[ProducerId] = Counter()
        """Markers that are not known to be in the log yet, by producer: what comes behind one is not part of what it
        ends, although the log has it open."""
        self._is_running = self._is_beginning = False
        self._began = 0.0
        """When the append began that is under way."""
        self._closed: StrandlineError | None = None

    def __str__(self) -> str:
        return f"partition {self.partition} of the {self._coordinator} coordinator"

    def write(self, records: Sequence[KeyValue], done: WriteDone) -> None:
        self._enqueue(self._write_of(records, done))

    def write_now(self, records: Sequence[KeyValue]) -> WriteResult | None:
        if self._is_running or self._closed is not None or not records:
            return None
        now = self._clock.now_ms()
        stamped = [CoordinatorRecord(key, value, now) for key, value in records]
        try:
            offset = self._log.append_now(self.partition, stamped, leader_epoch=self.leader_epoch)
        except StrandlineError:
            return None  # the append of `write` meets the same error, and reports it
        return None if offset < 0 else WriteResult(None, offset)

    def write_transactional(self, records: Sequence[KeyValue], producer: ProducerAndEpoch, done: WriteDone) -> None:
        self._enqueue(self._write_of(records, done, producer))

    def write_marker(self, end: TransactionEnd, done: WriteDone) -> None:
        producer_id = end.producer.producer_id

        def ended(result: WriteResult) -> None:
            self._ending[producer_id] -= 1
            if not self._ending[producer_id]:
                del self._ending[producer_id]
            done(result)

        self._ending[producer_id] += 1
        self._enqueue(_Write((), 0, ended, end=end))

    def has_transaction(self, producer: ProducerAndEpoch) -> bool:
        return producer.producer_id not in self._ending and self._log.has_transaction(self.partition, producer)

    def _write_of(
        self, records: Sequence[KeyValue], done: WriteDone, producer: ProducerAndEpoch | None = None
    ) -> _Write:
        now = self._clock.now_ms()
        stamped = [CoordinatorRecord(key, value, now) for key, value in records]
        return _Write(stamped, write_size(records), done, producer)

    def _enqueue(self, write: _Write) -> None:
        if self._closed is not None:
            write.done(WriteResult(self._closed))
            return
        if self._is_stuck and (write.records or write.end is not None):
            write.done(WriteResult(RequestTimedOut(f"{self} waits for other replicas and takes nothing meanwhile.")))
            return
        self._queue.append(write)
        if not self._is_running:
            self._is_running = True
            self._loop.call_soon(self._run)

    @property
    def _is_stuck(self) -> bool:
        return bool(self._under_way) and self._clock.monotonic() - self._began > self._patience_s

    def close(self, error: StrandlineError) -> None:
        """Fail the writes that are not committed yet, and all later ones."""
        self._closed = error
        abandoned = [*self._under_way, *self._queue]
        self._under_way = []
        self._queue.clear()
        for write in abandoned:
            _finish(write, WriteResult(error))

    def _run(self) -> None:
        """Append what is in the queue, one append after the other, until one has to wait."""
        this_turn = 0
        while self._queue:
            writes = self._under_way = self._next_append()
            self._began = self._clock.monotonic()
            self._is_beginning = True
            self._begin(writes)
            self._is_beginning = False
            if self._under_way is writes:
                return  # `_ended` goes on
            this_turn += sum(len(write.records) for write in writes)
            if this_turn >= _RECORDS_PER_TURN:  # an append to a log without followers has not waited for anything
                self._loop.call_soon(self._run)
                return
        self._is_running = False

    def _ended(self, writes: list[_Write], outcome: WriteResult) -> None:
        """An append is committed, or has failed."""
        if self._under_way is not writes:
            return  # closed meanwhile: all have their result
        self._under_way = []
        self._report(writes, outcome)
        if not self._is_beginning:
            self._loop.call_soon(self._run)  # with what is written in this turn, as an answer to these results

    @staticmethod
    def _report(finished: list[_Write], outcome: WriteResult) -> None:
        position = 0
        for write in finished:
            if not write.records and write.end is None:
                result = WriteResult(None)  # a fence is not part of the append: it only stands behind it
            elif outcome.error is not None:
                result = outcome
            else:
                result = WriteResult(None, outcome.base_offset + position)
            position += len(write.records)
            _finish(write, result)

    def _next_append(self) -> list[_Write]:
        """As many writes as fit into one batch, and do not take long; a write is never split."""
        limit = self.max_write_bytes()
        taken = [self._queue.popleft()]
        size, records = taken[0].size, len(taken[0].records)
        while self._queue and taken[0].may_share_append(self._queue[0]):
            size, records = size + self._queue[0].size, records + len(self._queue[0].records)
            if size > limit or records > _RECORDS_PER_TURN:
                break
            taken.append(self._queue.popleft())
        return taken

    def max_write_bytes(self) -> int:
        try:
            return self._log.max_batch_bytes(self.partition) - _BATCH_OVERHEAD
        except StrandlineError:
            return INT32_MAX  # the append meets the same error, and reports it

    def _begin(self, writes: list[_Write]) -> None:
        records = [record for write in writes for record in write.records]
        end, producer = writes[0].end, writes[0].producer
        if not records and end is None:
            self._ended(writes, WriteResult(None))
            return
        what = f"{len(records)} records" if end is None else f"a marker of producer {end.producer.producer_id}"

        def done(outcome: WriteResult) -> None:
            if outcome.error is not None:
                logger.warning("%s did not take %s: %s", self, what, outcome.error)
            self._ended(writes, outcome)

        try:
            if end is not None:
                self._log.append_marker(self.partition, end, done, leader_epoch=self.leader_epoch)
            else:
                self._log.append(self.partition, records, done, leader_epoch=self.leader_epoch, producer=producer)
        except StrandlineError as error:
            done(WriteResult(error))
        except Exception as error:  # the requests that wait for the append must be answered
            logger.exception("%s did not take %s", self, what)
            self._ended(writes, WriteResult(StrandlineError(f"The coordinator's log failed: {error}")))


def _finish(write: _Write, result: WriteResult) -> None:
    try:
        write.done(result)
    except Exception:  # the other writes of the same append must get their results
        logger.exception("the result of a write could not be processed")
