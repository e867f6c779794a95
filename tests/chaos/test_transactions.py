"""What the run knows of the outcome of a transaction, from what the client says."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from chaos.history import Append, Outcome
from chaos.recorder import Recorder
from chaos.stage import Stage
from chaos.transactions import Transaction, TransactionalProducer, attempt
from confluent_kafka import KafkaError, KafkaException, Producer

ABORTABLE = KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "refused", txn_requires_abort=True)
FATAL = KafkaError(KafkaError._FENCED, "fenced", fatal=True)
RETRIABLE = KafkaError(KafkaError._TIMED_OUT, "again", retriable=True)


class Delivered:
    """A message whose place is known."""

    def __init__(self, value: bytes) -> None:
        self._value = value

    def value(self) -> bytes:
        return self._value

    def offset(self) -> int:
        return 7


class ScriptedProducer:
    """Answers each call with the next of its errors, or does as it is told."""

    def __init__(self, errors: Mapping[str, Sequence[KafkaError]], *, acknowledges: bool = True) -> None:
        self._acknowledges = acknowledges
        self._errors = {name: list(one) for name, one in errors.items()}
        self.calls: list[str] = []

    def begin_transaction(self) -> None:
        self._answer("begin_transaction")

    def produce(self, *_: object, on_delivery: Any, value: bytes, **__: object) -> None:
        self._answer("produce")
        if self._acknowledges:
            on_delivery(None, Delivered(value))

    def flush(self, _: float) -> None:
        self.calls.append("flush")

    def commit_transaction(self, _: float) -> None:
        self._answer("commit_transaction")

    def abort_transaction(self, _: float) -> None:
        self._answer("abort_transaction")

    def purge(self) -> None:
        self.calls.append("purge")

    def _answer(self, name: str) -> None:
        self.calls.append(name)
        if self._errors.get(name):
            raise KafkaException(self._errors[name].pop(0))


def play(scripted: ScriptedProducer, *, commits: bool) -> tuple[Outcome, TransactionalProducer, list[dict[str, Any]]]:
    """One transaction; what came of it, what is left of the producer, and the history."""
    output = io.StringIO()
    producer = cast(Producer, scripted)
    own = TransactionalProducer(Stage("nowhere:1", ["classic"], 1, Recorder(output)), "txn-1", producer)

    one = Append(topic="list-classic", partition=0, value="txn-1/1")
    transaction = Transaction(appends=[one])
    outcome = attempt(own, producer, transaction, lambda: transaction.send(producer, one), commits=commits)
    return outcome, own, [json.loads(line) for line in output.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("errors", "commits", "expected", "is_kept"),
    [
        ({}, True, Outcome.COMMITTED, True),
        ({}, False, Outcome.ABORTED, True),
        ({"commit_transaction": [RETRIABLE]}, True, Outcome.COMMITTED, True),  # asked again
        ({"commit_transaction": [ABORTABLE]}, True, Outcome.ABORTED, True),
        ({"commit_transaction": [ABORTABLE], "abort_transaction": [FATAL]}, True, Outcome.UNKNOWN, False),
        ({"commit_transaction": [FATAL]}, True, Outcome.UNKNOWN, False),
        ({"abort_transaction": [FATAL]}, False, Outcome.ABORTED, False),  # nobody asked to commit it
        ({"produce": [ABORTABLE]}, True, Outcome.ABORTED, True),
        ({"produce": [FATAL]}, True, Outcome.ABORTED, False),
        ({"begin_transaction": [FATAL]}, True, Outcome.ABORTED, False),
    ],
)
def test_the_outcome_of_a_transaction(
    errors: dict[str, list[KafkaError]], commits: bool, expected: Outcome, is_kept: bool
) -> None:
    outcome, own, history = play(ScriptedProducer(errors), commits=commits)
    assert (outcome, own.producer is not None) == (expected, is_kept)
    written = [one for one in history if one["event"] == "attempt"]
    assert [one["outcome"] for one in written] == [expected]
    assert len([one for one in history if one["event"] == "ended"]) == (0 if is_kept else 1)


def test_a_producer_that_failed_is_not_asked_to_commit() -> None:
    scripted = ScriptedProducer({"produce": [ABORTABLE]})
    _, _, history = play(scripted, commits=True)
    assert scripted.calls == ["begin_transaction", "produce", "flush", "abort_transaction"]
    assert history[-1]["commit_at"] is None
    assert history[-1]["error"] == "OUT_OF_ORDER_SEQUENCE_NUMBER"


@pytest.mark.parametrize("errors", [{}, {"commit_transaction": [ABORTABLE]}])
def test_a_producer_is_not_used_after_an_abort_if_it_does_not_know_what_was_written(
    errors: dict[str, list[KafkaError]],
) -> None:
    scripted = ScriptedProducer(errors, acknowledges=False)
    outcome, own, history = play(scripted, commits=bool(errors))
    assert (outcome, own.producer) == (Outcome.ABORTED, None)
    assert scripted.calls[-1] == "purge"
    assert [one["event"] for one in history] == ["begun", "attempt"]  # it has not failed


def test_the_end_of_a_producer_says_in_which_call() -> None:
    _, _, history = play(ScriptedProducer({"produce": [FATAL]}), commits=True)
    (ended,) = (one for one in history if one["event"] == "ended")
    assert (ended["operation"], ended["error"]) == ("produce", "_FENCED")


def test_what_a_transaction_is_about_to_append_is_in_the_history_before_its_first_call() -> None:
    output = io.StringIO()

    class Looking(ScriptedProducer):
        def _answer(self, name: str) -> None:
            super()._answer(name)
            before.append(output.getvalue())

    before: list[str] = []
    producer = cast(Producer, Looking({}))
    own = TransactionalProducer(Stage("nowhere:1", ["classic"], 1, Recorder(output)), "txn-1", producer)
    one = Append(topic="list-classic", partition=0, value="txn-1/1")
    transaction = Transaction(appends=[one])
    attempt(own, producer, transaction, lambda: transaction.send(producer, one), commits=True)
    begun = json.loads(before[0])
    assert (begun["event"], begun["client"], begun["writer"]) == ("begun", "txn-1", "txn-1")
    assert [value["value"] for value in begun["appends"]] == ["txn-1/1"]


def test_a_value_that_the_client_refused_is_recorded_with_its_transaction() -> None:
    _, _, history = play(ScriptedProducer({"produce": [ABORTABLE]}), commits=True)
    assert [one["value"] for one in history[-1]["appends"]] == ["txn-1/1"]
    assert history[-1]["outcome"] == "aborted"
