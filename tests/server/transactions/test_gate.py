"""Transactional batches that wait for their coordinator: their order, whatever it answers to which of them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import cast

import pytest

from strandline.config import Settings
from strandline.coordinators.transactions.admissions import (
    Admission,
    AdmissionResults,
    Participant,
    TransactionAdmissions,
)
from strandline.errors import (
    ConcurrentTransactions,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    KafkaStorageError,
    NotEnoughReplicas,
    OutOfOrderSequence,
    StrandlineError,
    TransactionAbortable,
)
from strandline.hybrid.partition import ServedPartition
from strandline.log import AppendOrigin, LogAppendInfo
from strandline.model import ProducerAndEpoch, TopicPartition
from strandline.records import NOT_VERIFIED, TransactionVerification
from strandline.records.batch import read_header
from strandline.replication import Append, Appended
from strandline.server.transactions.gate import ADDS_PARTITIONS, TransactionGate
from strandline.testing.clock import VirtualClock
from tests.wirelevel.raw import batch

P = TopicPartition("orders", 0)
OLD_VERSION = 11
STARTED = 900_000


class ScriptedCoordinators:
    """Gives the next answer of a list to each question."""

    def __init__(self, *answers: StrandlineError | None) -> None:
        self.answers = list(answers)

    async def admit(self, who: Participant, partitions: Collection[TopicPartition]) -> AdmissionResults:
        return dict.fromkeys(partitions, Admission(self.answers.pop(0), STARTED))


@dataclass
class WrittenPartition:
    """Takes everything, as a log does that does not know the producer."""

    topic_partition: TopicPartition = P
    epoch: int = 0
    stored_epoch: int | StrandlineError = 0
    """What is not known to the broker, or why it cannot be asked for."""
    sequences: list[int] = field(default_factory=list)
    verified: list[object] = field(default_factory=list)

    @property
    def appends(self) -> WrittenPartition:
        return self

    @property
    def newest(self) -> WrittenPartition:
        return self

    def has_transaction(self, producer: ProducerAndEpoch) -> bool:
        return bool(self.sequences)

    def check_leader(self) -> None:
        pass

    def check_epoch(self, producer: ProducerAndEpoch) -> None:
        if producer.epoch < self.epoch:
            raise InvalidProducerEpoch("The epoch is over.")

    async def check_stored_epoch(self, producer: ProducerAndEpoch) -> None:
        if isinstance(self.stored_epoch, StrandlineError):
            raise self.stored_epoch
        if producer.epoch < self.stored_epoch:
            raise InvalidProducerEpoch("The epoch is over.")

    def append(self, append: Append) -> Appended:
        self.sequences.append(read_header(append.records).base_sequence)
        self.verified.append(append.verification)
        info = LogAppendInfo(
            first_offset=0,
            last_offset=0,
            log_append_time_ms=0,
            log_start_offset=0,
            is_duplicate=False,
            size=len(append.records),
            max_timestamp=0,
        )
        return Appended(info, is_done=True)


class GateWorld:
    def __init__(self, *answers: StrandlineError | None) -> None:
        self.clock, self.partition = VirtualClock(1_000_000), WrittenPartition()
        self.gate = TransactionGate(
            TransactionAdmissions(ScriptedCoordinators(*answers)), lambda: Settings(), self.clock
        )

    async def send(self, sequence: int, *, version: int = ADDS_PARTITIONS) -> type[StrandlineError] | None:
        """What became of a batch."""
        result: asyncio.Future[StrandlineError | None] = asyncio.get_running_loop().create_future()
        records = batch(b"x", producer_id=5, producer_epoch=0, base_sequence=sequence, is_transactional=True)
        try:
            appended = self._append(records, version, result)
        except StrandlineError as refusal:
            return type(refusal)
        error = None if appended.is_done else await result
        return None if error is None else type(error)

    def _append(self, records: bytes, version: int, result: asyncio.Future[StrandlineError | None]) -> Appended:
        wanted = Append(memoryview(bytearray(records)), acks=-1, origin=AppendOrigin.CLIENT, done=result.set_result)
        return self.gate.append(cast(ServedPartition, self.partition), wanted, transactional_id="t", version=version)


@pytest.mark.parametrize(
    ("version", "refusal"), [(ADDS_PARTITIONS, ConcurrentTransactions), (OLD_VERSION, NotEnoughReplicas)]
)
async def test_nothing_overtakes_a_first_batch_that_was_refused_for_a_moment(
    version: int, refusal: type[StrandlineError]
) -> None:
    world = GateWorld(ConcurrentTransactions("Try again."), None, None, None)
    assert await world.send(0, version=version) is refusal
    for sequence in (1, 2):  # the first of which is given leave
        assert await world.send(sequence, version=version) is OutOfOrderSequence
    assert world.partition.sequences == []
    for sequence in range(3):
        assert await world.send(sequence, version=version) is None
    assert world.partition.sequences == [0, 1, 2]


@pytest.mark.parametrize("version", [OLD_VERSION, ADDS_PARTITIONS])
async def test_the_partition_learns_what_the_coordinator_has_said(version: int) -> None:
    world = GateWorld(None)
    for sequence in range(2):
        assert await world.send(sequence, version=version) is None
    first = TransactionVerification(STARTED, has_epoch_bump=version == ADDS_PARTITIONS)
    assert world.partition.verified == [first, NOT_VERIFIED], "it knows the second one to be part of the first's"


async def test_batches_that_wait_together_keep_their_order() -> None:
    world = GateWorld(None)
    results = await asyncio.gather(*(world.send(sequence) for sequence in range(5)))
    assert results == [None] * 5
    assert world.partition.sequences == [0, 1, 2, 3, 4]


async def test_a_batch_that_is_refused_for_good_is_not_waited_for() -> None:
    world = GateWorld(ConcurrentTransactions("Try again."), TransactionAbortable("Abort."), None)
    assert await world.send(0, version=10) is NotEnoughReplicas
    assert await world.send(0, version=10) is InvalidTxnState
    assert await world.send(7, version=10) is None


async def test_a_topic_of_the_same_name_does_not_wait_for_a_batch_of_the_deleted_one() -> None:
    world = GateWorld(ConcurrentTransactions("Try again."), None)
    assert await world.send(0) is ConcurrentTransactions
    world.gate.forget_topics({"others"})
    assert await world.send(1) is OutOfOrderSequence
    world.gate.forget_topics({P.topic})
    assert await world.send(1) is None


async def test_a_refused_batch_that_never_comes_again_is_forgotten() -> None:
    world = GateWorld(ConcurrentTransactions("Try again."), None)
    assert await world.send(0) is ConcurrentTransactions
    await world.clock.advance(121)
    assert await world.send(3) is None


async def test_no_coordinator_is_asked_about_an_epoch_that_is_over_in_the_partition() -> None:
    """It may be that of somebody else, whom the coordinator does not know under this transactional id."""
    world = GateWorld()
    world.partition.epoch = 1
    assert await world.send(0) is InvalidProducerEpoch


@pytest.mark.parametrize(
    ("stored", "answer"),
    [
        (0, InvalidProducerIdMapping),
        (1, InvalidProducerEpoch),
        (KafkaStorageError("The database is away."), KafkaStorageError),
    ],
    ids=["not over", "over", "nobody can tell"],
)
async def test_a_refusal_for_good_is_judged_by_what_is_stored(
    stored: int | StrandlineError, answer: type[StrandlineError]
) -> None:
    """Brokers do not know the producers of a diskless partition: they are looked up before somebody is refused."""
    world = GateWorld(InvalidProducerIdMapping("Somebody else has it."))
    world.partition.stored_epoch = stored
    assert await world.send(0) is answer
    assert world.partition.sequences == []


async def test_a_refusal_for_a_moment_looks_nothing_up() -> None:
    world = GateWorld(ConcurrentTransactions("Try again."))
    world.partition.stored_epoch = 1
    assert await world.send(0) is ConcurrentTransactions
