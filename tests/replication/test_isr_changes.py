"""Changes of in-sync sets reach the controller: together, one request at a time, until they are decided."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from uuid import UUID

import pytest

from strandline.errors import (
    IneligibleReplica,
    InvalidUpdateVersion,
    NewLeaderElected,
    NotController,
    StaleBrokerEpoch,
    StrandlineError,
)
from strandline.metadata import IsrChange, IsrMember, PartitionImage
from strandline.replication import IsrChangeSender
from strandline.replication.isr_changes import RETRY_SECONDS
from strandline.testing.clock import VirtualClock
from strandline.wire.errors import ErrorCode, error_of

Result = PartitionImage | StrandlineError


class Proposed:
    """An `IsrProposal`."""

    def __init__(self, partition: int, *, is_expansion: bool = True) -> None:
        self.change = IsrChange(
            topic_id=UUID(int=7), partition=partition, leader_epoch=0, partition_epoch=0, isr=(IsrMember(1),)
        )
        self.is_expansion = is_expansion
        self.is_wanted = True
        self.results: list[Result] = []
        self.then: Callable[[], object] = lambda: None

    def answered(self, result: PartitionImage | StrandlineError) -> None:
        self.results.append(result)
        self.is_wanted = False
        self.then()


class SlowController:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.requests: list[tuple[int, int, list[int]]] = []
        self.answers: asyncio.Queue[list[Result] | Exception] = asyncio.Queue()

    async def alter_partition(self, node_id: int, broker_epoch: int, changes: Sequence[IsrChange]) -> list[Result]:
        self.requests.append((node_id, broker_epoch, [change.partition for change in changes]))
        answer = await self.answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def asked(self) -> list[list[int]]:
        return [partitions for _, _, partitions in self.requests]


class Sending:
    def __init__(self) -> None:
        self.clock, self.controller, self.epoch = VirtualClock(), SlowController(), 5
        self.sender = IsrChangeSender(self.controller, node_id=1, broker_epoch=lambda: self.epoch, clock=self.clock)

    async def settle(self, seconds: float = 0.0) -> None:
        await self.clock.advance(seconds)

    async def answer(self, *results: Result | None) -> None:
        """None: accepted."""
        _, _, partitions = self.controller.requests[-1]
        images = [PartitionImage(number, (1, 2), (1, 2), 1, 0, 1) for number in partitions]
        self.controller.answers.put_nowait(
            [image if result is None else result for image, result in zip(images, results, strict=True)]
        )
        await self.settle()


@pytest.fixture
def sending() -> Sending:
    return Sending()


async def test_what_is_proposed_in_one_turn_goes_together_and_what_comes_later_waits(sending: Sending) -> None:
    first, second, third = (Proposed(number) for number in range(3))
    assert sending.sender.submit(first)
    assert sending.sender.submit(second)
    await sending.settle()
    assert sending.controller.requests == [(1, 5, [0, 1])]
    assert sending.sender.submit(third)
    await sending.settle(10)
    assert len(sending.controller.requests) == 1, "one at a time"
    await sending.answer(None, IneligibleReplica("No."))
    assert [type(one.results[0]) for one in (first, second)] == [PartitionImage, IneligibleReplica]
    assert sending.controller.asked == [[0, 1], [2]]
    await sending.answer(None)
    assert len(third.results) == 1
    assert (sending.sender.expands, sending.sender.shrinks) == (2, 0)
    await sending.sender.close()


async def test_a_partition_has_one_change_on_its_way(sending: Sending) -> None:
    first = Proposed(0)
    assert sending.sender.submit(first)
    assert not sending.sender.submit(Proposed(0))
    await sending.settle()
    assert not sending.sender.submit(Proposed(0))
    again: list[bool] = []
    first.then = lambda: again.append(sending.sender.submit(Proposed(0)))
    await sending.answer(None)
    assert again == [True], "the answer may lead to the next one"
    assert sending.controller.asked == [[0], [0]]
    await sending.sender.close()


async def test_one_that_metadata_has_overtaken_is_not_sent(sending: Sending) -> None:
    old, new = Proposed(0), Proposed(0, is_expansion=False)
    sending.sender.submit(old)
    old.is_wanted = False
    assert sending.sender.submit(new)
    gone = Proposed(1)
    sending.sender.submit(gone)
    gone.is_wanted = False
    await sending.settle()
    assert sending.controller.asked == [[0]]
    await sending.answer(None)
    assert (old.results, gone.results, len(new.results)) == ([], [], 1)
    assert (sending.sender.expands, sending.sender.shrinks) == (0, 1)
    await sending.sender.close()


@pytest.mark.parametrize("failure", [NotController("Elsewhere."), StaleBrokerEpoch("Old."), ValueError("a bug")])
async def test_a_request_that_fails_is_sent_again_with_the_epoch_of_then(sending: Sending, failure: Exception) -> None:
    proposal = Proposed(0)
    sending.sender.submit(proposal)
    await sending.settle()
    sending.controller.answers.put_nowait(failure)
    await sending.settle()
    sending.epoch = 6
    assert proposal.results == []
    await sending.settle(RETRY_SECONDS)
    assert sending.controller.requests == [(1, 5, [0]), (1, 6, [0])]
    await sending.answer(None)
    assert len(proposal.results) == 1
    await sending.sender.close()


async def test_a_partition_that_is_not_decided_is_sent_again(sending: Sending) -> None:
    undecided, decided = Proposed(0), Proposed(1)
    sending.sender.submit(undecided)
    sending.sender.submit(decided)
    await sending.settle()
    await sending.answer(NotController("Newer."), InvalidUpdateVersion("Old."))
    assert (undecided.results, len(decided.results)) == ([], 1)
    await sending.settle(RETRY_SECONDS)
    assert sending.controller.asked == [[0, 1], [0]]
    await sending.answer(None)
    assert len(undecided.results) == 1
    await sending.sender.close()


async def test_there_is_no_task_while_nothing_waits(sending: Sending) -> None:
    sending.sender.submit(Proposed(0))
    await sending.settle()
    await sending.answer(None)
    assert [task for task in asyncio.all_tasks() if task.get_name() == "isr-changes"] == []


async def test_a_change_that_was_made_and_has_moved_the_leader_is_decided(sending: Sending) -> None:
    proposal = Proposed(0)
    sending.sender.submit(proposal)
    await sending.settle()
    await sending.answer(error_of(ErrorCode.NEW_LEADER_ELECTED))
    assert [type(result) for result in proposal.results] == [NewLeaderElected]
    await sending.settle(10)
    assert sending.controller.asked == [[0]]
    await sending.sender.close()
