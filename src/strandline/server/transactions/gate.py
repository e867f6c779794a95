"""Transactional batches on their way into partitions: the first one waits for the permission of the coordinator.

Where a transaction of the producer is open already, its batches go straight into the log. If a first batch is refused
for a moment, those that the producer has sent right behind it are refused as well, until it has come again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from struct import Struct
from typing import Final

from strandline.clock import Clock
from strandline.coordinators.transactions import Admission, Participant, TransactionAdmissions, producer_error
from strandline.errors import InvalidProducerEpoch, InvalidTxnState, StrandlineError, TransactionAbortable
from strandline.hybrid.partition import ServedPartition
from strandline.model import ProducerAndEpoch, TopicPartition
from strandline.records import TransactionVerification
from strandline.replication import Append, Appended, FirstBatches, HeldAppend
from strandline.server.handlers.common import CurrentSettings
from strandline.tasks import TaskSet

logger = logging.getLogger(__name__)

ADDS_PARTITIONS: Final = 12
"""From this version of Produce on, writing to a partition adds it to the transaction (`transaction.version` 2)."""
_KNOWS_ABORTABLE: Final = 11
_PRODUCER: Final = Struct(">qhi")
"""Producer id, epoch and first sequence in the header of a batch."""
_PRODUCER_AT: Final = 43
_ADDED: Final = TransactionVerification(has_epoch_bump=True)
"""Of a batch whose partition was added before: its epoch tells its transaction from others."""


class TransactionGate:
    """Appends batches that belong to transactions."""

    def __init__(self, admissions: TransactionAdmissions, settings: CurrentSettings, clock: Clock) -> None:
        self._admissions, self._settings, self._clock = admissions, settings, clock
        self._refused: dict[TopicPartition, FirstBatches] = {}
        """By partition, batches that the coordinator could not admit just then."""
        self._tasks = TaskSet()

    async def close(self) -> None:
        """No request waits for refusals any more."""
        await self._tasks.close()

    def forget_topics(self, deleted: Collection[str]) -> None:
        """Topics are gone: what was refused there is not waited for in others of the same names."""
        for partition in [known for known in self._refused if known.topic in deleted]:
            del self._refused[partition]

    def append(
        self,
        partition: ServedPartition,
        append: Append,
        *,
        transactional_id: str | None,
        version: int,
    ) -> Appended:
        """Append now, or when the coordinator has given permission; see `PartitionAppends.append`."""
        producer_id, epoch, sequence = _PRODUCER.unpack_from(append.records, _PRODUCER_AT)
        producer = ProducerAndEpoch(producer_id, epoch)
        if not partition.appends.has_transaction(producer):
            who = Participant(transactional_id or "", producer, adds=version >= ADDS_PARTITIONS)
            if self._has_added(partition, who, append.records):
                append = append.verified(_ADDED)
            elif who.adds or self._settings().transactions.transaction_partition_verification_enable:
                return self._ask_first(partition, append, who, sequence, version=version)
        try:
            return partition.appends.append(append)
        except TransactionAbortable as error:
            raise _understood(error, version) from error

    def _ask_first(
        self,
        partition: ServedPartition,
        append: Append,
        who: Participant,
        sequence: int,
        *,
        version: int,
    ) -> Appended:
        """Append when the coordinator has given permission."""
        if not who.transactional_id:
            raise InvalidTxnState(
                f"A transactional batch for {partition.topic_partition} came without a transactional id, and no "
                "transaction of its producer is open there."
            )
        partition.newest.check_leader()
        partition.appends.check_epoch(who.producer)  # an old epoch is refused here, without asking the coordinator

        def appended(error: StrandlineError | None) -> None:
            append.done(None if error is None else _understood(error, version))

        held = HeldAppend(Append(append.records, acks=append.acks, origin=append.origin, done=appended))

        def refuse(refusal: StrandlineError) -> None:
            if refusal.retriable:
                self._remember(partition.topic_partition, who.producer, sequence)
            held.refuse(refusal)

        def admitted(answer: Admission) -> None:
            try:
                self._check_order(partition.topic_partition, held.records)
            except StrandlineError as refusal:
                refuse(refusal)
                return
            if answer.error is None:
                verification = TransactionVerification(answer.start_ms, has_epoch_bump=who.adds)
                held.go_on(lambda again: partition.appends.append(again.verified(verification)))
                return
            error = producer_error(answer.error, who, knows_abortable=version >= _KNOWS_ABORTABLE)
            if error.retriable or isinstance(error, InvalidProducerEpoch):
                refuse(error)
            else:
                self._tasks.start(self._refuse_for_good(partition, who, error, refuse), name="refusal of a batch")

        self._admissions.admit(who, partition.topic_partition, admitted)
        return Appended(held.info, is_done=False, is_written=False, is_copied=True)

    async def _refuse_for_good(
        self,
        partition: ServedPartition,
        who: Participant,
        error: StrandlineError,
        refuse: Callable[[StrandlineError], None],
    ) -> None:
        """Give the coordinator's reason, unless the epoch is over in the partition: `check_epoch` cannot always tell
        that beforehand, and looking it up for each batch would cost too much."""
        try:
            await partition.appends.check_stored_epoch(who.producer)
        except StrandlineError as found:
            error = found
        except Exception:  # the waiting request has to be answered
            logger.exception("the epoch of producer %d was not found out", who.producer.producer_id)
        refuse(error)

    def _has_added(self, partition: ServedPartition, who: Participant, records: memoryview) -> bool:
        """Whether the partition was added before. Raises OutOfOrderSequence, as for a batch that is just admitted."""
        if not self._admissions.has_added(who, partition.topic_partition):
            return False
        self._check_order(partition.topic_partition, records)
        return True

    def _remember(self, partition: TopicPartition, producer: ProducerAndEpoch, sequence: int) -> None:
        """The producer will send the batch again, and has perhaps sent others behind it."""
        self._refused.setdefault(partition, FirstBatches(self._clock)).refused(producer, sequence)

    def _check_order(self, partition: TopicPartition, records: memoryview) -> None:
        """Raises OutOfOrderSequence if the batch has to wait for one that was refused."""
        refused = self._refused.get(partition)
        if refused is not None and not refused.check(records):
            del self._refused[partition]


def _understood(error: StrandlineError, version: int) -> StrandlineError:
    """The refusal of a partition, in a form that this version of Produce knows."""
    if isinstance(error, TransactionAbortable) and version < _KNOWS_ABORTABLE:
        return InvalidTxnState(str(error))
    return error
