"""Numbers for monitoring: asked for as rarely as they may be old, and by nobody who waits."""

from __future__ import annotations

import asyncio

import pytest

from strandline.errors import KafkaStorageError
from strandline.hybrid.refreshing import Refreshing
from strandline.testing.clock import VirtualClock


class Question:
    """Answers with how often it was asked, after some time."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock, self.asked, self.takes, self.fails = clock, 0, 0.0, False

    async def __call__(self) -> int:
        self.asked += 1
        if self.takes:
            await self.clock.sleep(self.takes)
        if self.fails:
            raise KafkaStorageError("The database is away.")
        return self.asked


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def question(clock: VirtualClock) -> Question:
    return Question(clock)


def numbers(question: Question) -> Refreshing[int]:
    return Refreshing(question, 0, what="numbers", fresh_seconds=10.0, clock=question.clock)


async def test_nobody_is_asked_again_while_the_answer_is_fresh(question: Question, clock: VirtualClock) -> None:
    figures = numbers(question)
    assert (figures.known, question.asked) == (0, 0)
    for _ in range(3):
        await figures.refresh()
    assert (figures.known, question.asked) == (1, 1)
    await clock.advance(10.0)
    await figures.refresh()
    assert figures.known == 2
    await figures.close()


async def test_a_question_that_takes_long_is_asked_more_rarely(question: Question, clock: VirtualClock) -> None:
    figures, question.takes = numbers(question), 2.0
    asking = asyncio.create_task(figures.refresh())
    await clock.advance(2.0)
    await asking
    assert figures.known == 1
    await clock.advance(99.0)
    await figures.refresh()
    assert question.asked == 1
    question.takes = 0.0
    await clock.advance(1.0)
    await figures.refresh()
    assert figures.known == 2
    await figures.close()


async def test_who_is_impatient_gets_the_numbers_of_the_last_time(question: Question) -> None:
    """Real time: the question never ends, and the caller waits for half a second."""
    figures, question.takes = numbers(question), 3600.0
    await asyncio.gather(figures.refresh(), figures.refresh())
    assert (figures.known, question.asked) == (0, 1), "both waited for one question"
    await figures.close()


async def test_a_failure_is_logged_once_a_minute_and_the_old_numbers_stay(
    question: Question, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    figures = numbers(question)
    await figures.refresh()
    question.fails = True
    for _ in range(5):
        await clock.advance(10.0)
        await figures.refresh()
    assert (figures.known, question.asked) == (1, 6)
    assert caplog.messages == ["numbers in /metrics are outdated: The database is away."]
    await figures.close()
