"""Permission for a partition to take records of a transaction: the transaction's coordinator is asked before the first.

Producers of `transaction.version` 2 add a partition by writing to it, older ones add it first and the coordinator only
confirms that. Without this question, a batch that comes late would begin a transaction that no coordinator will ever
end, and that holds up every `read_committed` consumer.

The coordinator is asked once for all waiting requests of a producer, and those that come meanwhile wait: batches of one
producer keep their order. If a marker is written to the partition meanwhile, the answer may be about the transaction
that the marker has ended: the coordinator is asked again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeAlias

from strandline.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    InvalidProducerEpoch,
    InvalidTxnState,
    NotCoordinator,
    NotEnoughReplicas,
    OperationNotAttempted,
    ProducerFenced,
    RequestTimedOut,
    StrandlineError,
    TransactionAbortable,
)
from strandline.model import NO_TIMESTAMP, ProducerAndEpoch, ProducerId, TimestampMs, TopicPartition
from strandline.tasks import TaskSet

logger = logging.getLogger(__name__)


_MOST_ADDED: Final = 100_000


class Participant(NamedTuple):
    """A producer within its transaction, and how its partitions become part of it."""

    transactional_id: str
    producer: ProducerAndEpoch
    adds: bool
    """Writing to a partition adds it (`transaction.version` 2); otherwise it has to be part of the transaction."""


class Admission(NamedTuple):
    """What a coordinator says of one partition."""

    error: StrandlineError | None = None
    start_ms: TimestampMs = NO_TIMESTAMP
    """When the transaction began, if the coordinator says so: records that come later than its end are known by it."""


Admitted: TypeAlias = Callable[[Admission], None]
AdmissionResults: TypeAlias = Mapping[TopicPartition, Admission]


class TransactionCoordinators(Protocol):
    """The coordinators of all transactional ids, on this broker or on others."""

    async def admit(self, who: Participant, partitions: Collection[TopicPartition]) -> AdmissionResults:
        """Whether each partition is part of the transaction, which it may become by this. Errors are answers."""


@dataclass(slots=True, eq=False)
class _Line:
    """The questions about one participant: those that are being asked, and those for the next time."""

    asked: dict[TopicPartition, list[Admitted]] = field(default_factory=dict)
    waiting: dict[TopicPartition, list[Admitted]] = field(default_factory=dict)
    marked: set[TopicPartition] = field(default_factory=set)
    """Partitions that got a marker of the producer while they were asked about."""


class TransactionAdmissions:
    """Asks coordinators on behalf of the partitions of this broker."""

    def __init__(self, coordinators: TransactionCoordinators) -> None:
        self._coordinators = coordinators
        self._lines: dict[Participant, _Line] = {}
        self._added: dict[tuple[TopicPartition, ProducerId], int] = {}
        """The epoch in which a producer has added a partition."""
        self._tasks = TaskSet()

    def has_added(self, who: Participant, partition: TopicPartition) -> bool:
        """True if it is known that the producer has added the partition, in the transaction of this epoch.

        Each transaction of such a producer has an epoch of its own: a partition where it has ended refuses the batch.
        """
        return who.adds and self._added.get((partition, who.producer.producer_id)) == who.producer.epoch

    def admit(self, who: Participant, partition: TopicPartition, done: Admitted) -> None:
        """Ask; `done` is called later, in the order of the calls about a participant and partition."""
        line = self._lines.get(who)
        if line is None:
            line = self._lines[who] = _Line()
            self._tasks.start(self._run(who, line), name="transaction admission")
        waits = line.asked if partition in line.asked else line.waiting
        waits.setdefault(partition, []).append(done)

    def marker_comes(self, partition: TopicPartition, producer_id: ProducerId) -> None:
        """A marker of the producer is about to be written to the partition."""
        self._added.pop((partition, producer_id), None)
        for who, line in self._lines.items():
            if who.producer.producer_id == producer_id and partition in line.asked:
                line.marked.add(partition)

    def forget_topics(self, deleted: Collection[str]) -> None:
        """Topics are gone, and get no markers: what is known of them is not about others of the same names."""
        for partition, producer_id in [key for key in self._added if key[0].topic in deleted]:
            del self._added[partition, producer_id]

    async def close(self) -> None:
        """Stop asking. No request waits any more."""
        await self._tasks.close()

    async def _run(self, who: Participant, line: _Line) -> None:
        while line.waiting:
            line.asked, line.waiting = line.waiting, {}
            answers = await self._ask(who, line.asked)
            asked, line.asked = line.asked, {}
            for partition, waits in asked.items():
                if partition in line.marked:
                    line.waiting[partition] = waits + line.waiting.get(partition, [])
                else:
                    if who.adds and answers[partition].error is None:
                        self._remember(who.producer, partition)
                    _answer(waits, answers[partition])
            line.marked.clear()
        del self._lines[who]

    def _remember(self, producer: ProducerAndEpoch, partition: TopicPartition) -> None:
        while len(self._added) >= _MOST_ADDED:  # of partitions that get their markers from another broker
            del self._added[next(iter(self._added))]
        self._added[partition, producer.producer_id] = producer.epoch

    async def _ask(self, who: Participant, partitions: Collection[TopicPartition]) -> AdmissionResults:
        try:
            return await self._coordinators.admit(who, [*partitions])
        except Exception as error:  # the waiting requests have to be answered
            logger.exception("the coordinator of %r could not be asked", who.transactional_id)
            return dict.fromkeys(partitions, Admission(StrandlineError(f"The coordinator could not be asked: {error}")))


def _answer(waits: Collection[Admitted], answer: Admission) -> None:
    for done in waits:
        try:
            done(answer)
        except Exception:  # the others have to be answered
            logger.exception("an admission to a transaction could not be processed")


def producer_error(error: StrandlineError, who: Participant, *, knows_abortable: bool) -> StrandlineError:
    """A refusal as a producer understands it: one that is over in a moment makes it send the batch again.

    `knows_abortable`: the version of the request has TRANSACTION_ABORTABLE.
    """
    match error:
        case ProducerFenced():
            return InvalidProducerEpoch(str(error))
        case TransactionAbortable() if not knows_abortable:
            return InvalidTxnState(str(error))
        case ConcurrentTransactions() if who.adds:
            return error
        case ConcurrentTransactions() | NotCoordinator() | CoordinatorNotAvailable() | CoordinatorLoadInProgress():
            return NotEnoughReplicas(f"The transaction's coordinator cannot tell now: {error}")
        case OperationNotAttempted():
            return NotEnoughReplicas(f"Another partition could not be added to the transaction: {error}")
        case RequestTimedOut():
            return NotEnoughReplicas(f"The transaction's coordinator did not answer: {error}")
    return error
