"""Leave for partitions: one question at a time, in order, and asked again when a marker has come between."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field

import pytest

from strandline.coordinators.runtime import wait_result
from strandline.coordinators.transactions.admissions import (
    Admission,
    AdmissionResults,
    Participant,
    TransactionAdmissions,
    producer_error,
)
from strandline.errors import NotEnoughReplicas, OperationNotAttempted, StrandlineError, TransactionAbortable
from strandline.model import ProducerAndEpoch, TopicPartition
from strandline.tasks import next_turn

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
OLD = Participant("pay", ProducerAndEpoch(7, 3), adds=False)
NEW = Participant("pay", ProducerAndEpoch(7, 3), adds=True)


@dataclass
class Coordinators:
    """Answer when, and what, the test says."""

    asked: list[tuple[Participant, list[TopicPartition]]] = field(default_factory=list)
    errors: dict[TopicPartition, StrandlineError] = field(default_factory=dict)
    fails_with: Exception | None = None
    is_open: asyncio.Event = field(default_factory=asyncio.Event)

    async def admit(self, who: Participant, partitions: Collection[TopicPartition]) -> AdmissionResults:
        self.asked.append((who, sorted(partitions)))
        await self.is_open.wait()
        if self.fails_with is not None:
            raise self.fails_with
        return {one: Admission(self.errors.get(one), 5) for one in partitions}


@dataclass
class World:
    coordinators: Coordinators = field(default_factory=Coordinators)
    answers: list[tuple[str, StrandlineError | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.admissions = TransactionAdmissions(self.coordinators)

    def admit(self, who: Participant, partition: TopicPartition, name: str) -> None:
        self.admissions.admit(who, partition, lambda answer: self.answers.append((name, answer.error)))

    async def wait_admitted(self, who: Participant, partition: TopicPartition) -> None:
        answer: Admission = await wait_result(lambda done: self.admissions.admit(who, partition, done))
        if answer.error is not None:
            raise answer.error
        assert answer.start_ms == 5

    async def settle(self) -> None:
        for _ in range(10):
            await next_turn()


async def test_requests_of_one_producer_share_a_question_and_keep_their_order() -> None:
    world = World()
    world.admit(OLD, A, "first of a")
    world.admit(OLD, B, "first of b")
    await world.settle()
    world.admit(OLD, A, "second of a")
    world.admit(NEW, A, "another producer")
    await world.settle()
    assert world.coordinators.asked == [(OLD, [A, B]), (NEW, [A])]
    assert world.answers == []
    world.coordinators.is_open.set()
    await world.settle()
    assert [name for name, _ in world.answers] == ["first of a", "second of a", "first of b", "another producer"]
    assert len(world.coordinators.asked) == 2, "the second batch waited for the first question"


async def test_a_marker_on_the_way_makes_the_question_be_asked_again() -> None:
    world = World()
    world.admit(OLD, A, "late")
    world.admit(OLD, B, "other")
    await world.settle()
    world.admissions.marker_comes(A, 7)
    world.coordinators.errors[A] = TransactionAbortable("not part of it")
    world.coordinators.is_open.set()
    await world.settle()
    assert world.coordinators.asked == [(OLD, [A, B]), (OLD, [A])]
    assert world.answers == [("other", None), ("late", world.coordinators.errors[A])]


async def test_what_was_added_is_known_until_a_marker_comes() -> None:
    world = World()
    world.coordinators.is_open.set()
    await world.wait_admitted(NEW, A)
    assert world.admissions.has_added(NEW, A)
    next_epoch = NEW._replace(producer=ProducerAndEpoch(7, 4))
    assert not any(world.admissions.has_added(who, where) for who, where in ((NEW, B), (OLD, A), (next_epoch, A)))
    world.admissions.marker_comes(A, 7)
    assert not world.admissions.has_added(NEW, A)
    await world.wait_admitted(OLD, A)
    assert not world.admissions.has_added(OLD, A), "an epoch of an older client is not that of one transaction"


def test_a_partition_of_a_request_that_was_not_carried_out_is_asked_for_again() -> None:
    error = producer_error(OperationNotAttempted("another one is new"), NEW, knows_abortable=True)
    assert isinstance(error, NotEnoughReplicas)
    assert error.retriable


async def test_refusals_and_failures_are_answers() -> None:
    world = World()
    world.coordinators.is_open.set()
    world.coordinators.errors[A] = TransactionAbortable("not part of it")
    with pytest.raises(TransactionAbortable):
        await world.wait_admitted(NEW, A)
    assert not world.admissions.has_added(NEW, A)
    world.coordinators.fails_with = ZeroDivisionError("a defect")
    with pytest.raises(StrandlineError, match="could not be asked: a defect"):
        await world.wait_admitted(NEW, A)
