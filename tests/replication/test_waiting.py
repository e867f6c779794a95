"""Producers that wait for the high watermark: in which order they are answered, and each of them once."""

from __future__ import annotations

import pytest

from strandline.errors import NotLeaderOrFollower, StrandlineError
from strandline.replication.append import Done
from strandline.replication.waiting import WaitingProducers


class Answers:
    """Who was answered, and how."""

    def __init__(self) -> None:
        self.given: list[tuple[str, StrandlineError | None]] = []

    def of(self, name: str) -> Done:
        return lambda error: self.given.append((name, error))

    def taken(self) -> list[tuple[str, StrandlineError | None]]:
        given, self.given = self.given, []
        return given


def test_one_move_answers_all_that_it_passes_in_the_order_of_their_offsets() -> None:
    waiting, answers = WaitingProducers(), Answers()
    for offset in (3, 5, 5, 8):
        waiting.add(offset, answers.of(f"to {offset}"))
    waiting.add(4, answers.of("again to 4"))
    waiting.add(5, answers.of("again to 5"))
    waiting.release(2)
    assert answers.taken() == []
    waiting.release(5)
    assert answers.taken() == [(name, None) for name in ("to 3", "again to 4", "to 5", "to 5", "again to 5")]
    waiting.release(7)
    assert (answers.taken(), len(waiting)) == ([], 1)
    waiting.release(100)
    assert answers.taken() == [("to 8", None)]


def test_an_answer_may_lead_to_another_append() -> None:
    waiting, answers = WaitingProducers(), Answers()

    def append_again(error: StrandlineError | None) -> None:
        answers.of("first")(error)
        waiting.add(9, answers.of("next"))
        waiting.release(2)

    waiting.add(1, append_again)
    waiting.add(2, answers.of("second"))
    waiting.release(2)
    assert answers.taken() == [("first", None), ("second", None)]
    waiting.release(9)
    assert answers.taken() == [("next", None)]


def test_those_that_wait_still_get_the_error_that_ends_it() -> None:
    waiting, answers, error = WaitingProducers(), Answers(), NotLeaderOrFollower("Over.")
    waiting.add(1, answers.of("done"))
    waiting.add(2, answers.of("not done"))
    waiting.release(1)
    waiting.end(error)
    waiting.release(2)
    assert answers.taken() == [("done", None), ("not done", error)]
    assert waiting.over is error


def test_an_answer_that_fails_keeps_no_other_from_being_given(caplog: pytest.LogCaptureFixture) -> None:
    waiting, answers = WaitingProducers(), Answers()

    def fail(error: StrandlineError | None) -> None:
        raise ValueError("a bug")

    waiting.add(1, fail)
    waiting.add(2, answers.of("other"))
    waiting.release(2)
    assert answers.taken() == [("other", None)]
    assert "could not be reported" in caplog.text
