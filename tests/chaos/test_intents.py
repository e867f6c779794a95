"""What a killed client had begun and not recorded may have been written; everything else is judged as before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from chaos.history import NO_RETURN, Append, Begun, Ended, Event, Outcome, Promise, Read, from_line, to_line
from chaos.intents import CLIENT_LOST
from chaos.report import report_of
from chaos.violations import Kind

from tests.chaos.test_verify import COPY, END_A, END_B, WRITTEN, A, B, Records, attempt, content, group_at, kinds

KILLED = Ended(at=3.0, writer="txn-2", operation="commit_transaction", error=NO_RETURN, text="", is_fatal=True)


def begun(*appends: tuple[tuple[str, int], str], promise: Promise = Promise.TRANSACTIONAL, **how: str) -> Begun:
    values = [Append(topic=place[0], partition=place[1], value=value) for place, value in appends]
    client = how.get("client", "txn-2")
    return Begun(at=2.0, client=client, writer=how.get("writer", client), promise=promise, appends=values)


LOST = begun((COPY, "txn-2/1"), (COPY, "txn-2/2"))


@pytest.mark.parametrize(
    ("records", "dropped", "expected"),
    [
        ([], (), set()),  # it was never written
        ([(0, "txn-2/1"), (1, "txn-2/2")], (), set()),  # and committed
        ([(0, "txn-2/1")], ("txn-2/1",), set()),  # in part, and aborted
        ([(0, "txn-2/1")], (), {Kind.PARTIAL}),
        ([(0, "txn-2/2"), (1, "txn-2/1")], (), {Kind.REORDERED}),
        ([(0, "txn-2/1"), (1, "txn-2/1"), (2, "txn-2/2")], (), {Kind.DOUBLED}),
        ([(0, "txn-2/1"), (1, "txn-2/2"), (2, "txn-2/3")], (), {Kind.INVENTED}),
        ([(0, "txn-2/1"), (2, "txn-2/2")], (), {Kind.GAP}),
    ],
)
def test_a_transaction_of_a_killed_client(records: Records, dropped: tuple[str, ...], expected: set[Kind]) -> None:
    end = content(COPY, records, dropped=dropped)
    assert kinds([*WRITTEN, LOST, KILLED, *END_A, *END_B, *end]) == expected


@pytest.mark.parametrize("step", ["begin_transaction", "produce", "consume", "send_offsets_to_transaction", "flush"])
def test_a_transaction_that_a_killed_client_had_not_asked_to_commit_is_aborted(step: str) -> None:
    start = [*WRITTEN, LOST, replace(KILLED, operation=step), *END_A, *END_B]
    there: Records = [(0, "txn-2/1"), (1, "txn-2/2")]
    assert kinds([*start, *content(COPY, there, dropped=("txn-2/1", "txn-2/2"))]) == set()
    assert kinds([*start, *content(COPY, there)]) == {Kind.ABORTED_READ}
    later = replace(KILLED, at=4.0)  # the end of another process of the same client
    assert kinds([*start, later, *content(COPY, there)]) == {Kind.ABORTED_READ}


def test_a_value_of_a_killed_client_in_another_partition_than_it_wrote_to() -> None:
    ends = [*content(COPY, []), *END_A, *content(B, [(0, "txn-1/2"), (2, "txn-1/6"), (4, "txn-2/1")], (1, 3))]
    assert kinds([*WRITTEN, begun((COPY, "txn-2/1")), KILLED, *ends]) == {Kind.INVENTED}


def test_single_records_of_a_killed_client_are_there_or_not_one_by_one() -> None:
    sent = begun(
        (COPY, "plain-1.1/1"), (COPY, "plain-1.1/2"), promise=Promise.PLAIN, client="plain-1", writer="plain-1.1"
    )
    known = attempt(Outcome.COMMITTED, (COPY, "plain-1.1/1", 0), writer="plain-1.1", promise=Promise.PLAIN)
    killed = replace(KILLED, writer="plain-1")
    for records in ([(0, "plain-1.1/1")], [(0, "plain-1.1/1"), (1, "plain-1.1/2")]):
        assert kinds([*WRITTEN, sent, known, killed, *END_A, *END_B, *content(COPY, records)]) == set()
    gone = content(COPY, [(0, "plain-1.1/2")])
    assert Kind.LOST in kinds([*WRITTEN, sent, known, killed, *END_A, *END_B, *gone])  # the other one was acknowledged


@pytest.mark.parametrize(
    "events",
    [
        [LOST],  # nobody killed it
        [KILLED, LOST],  # this one was begun by the process that took over
        [LOST, replace(KILLED, writer="txn-3")],
        [LOST, replace(KILLED, error="_FENCED")],  # its producer was replaced; the client went on
    ],
)
def test_a_client_that_was_not_killed_has_to_record_what_it_did(events: Sequence[Event]) -> None:
    assert kinds([*WRITTEN, *events, *END_A, *END_B, *content(COPY, [])]) == {Kind.NOT_READ}


def test_what_was_recorded_is_judged_by_its_record() -> None:
    committed = attempt(Outcome.COMMITTED, (COPY, "txn-2/1", 0), (COPY, "txn-2/2", 1), writer="txn-2")
    aborted = attempt(Outcome.ABORTED, (COPY, "txn-2/1", 0), (COPY, "txn-2/2", 1), writer="txn-2")
    there, nothing = content(COPY, [(0, "txn-2/1"), (1, "txn-2/2")]), content(COPY, [])
    for recorded, end, expected in (
        (committed, there, set()),
        (committed, nothing, {Kind.LOST}),
        (aborted, nothing, set()),
        (aborted, there, {Kind.ABORTED_READ}),
    ):
        assert kinds([*WRITTEN, LOST, recorded, KILLED, *END_A, *END_B, *end]) == expected


def test_what_a_killed_copier_had_read_is_judged() -> None:
    copies = begun((COPY, "copy-1/1<2:txn-1/3"), client="copy-1")
    read = replace(copies, reads=[Read(topic=A[0], partition=A[1], offset=2, value="txn-1/3")])
    killed = replace(KILLED, writer="copy-1")
    assert kinds([*WRITTEN, read, killed, *END_A, *END_B, *content(COPY, [])]) == {Kind.ABORTED_READ}


def test_copies_of_a_killed_copier_are_there_together_with_their_offsets() -> None:
    copied = begun((COPY, "copy-1/1<0:txn-1/1"), (COPY, "copy-1/2<4:txn-1/5"), client="copy-1")
    killed = replace(KILLED, writer="copy-1")
    there = content(COPY, [(0, "copy-1/1<0:txn-1/1"), (1, "copy-1/2<4:txn-1/5")])
    start = [*WRITTEN, copied, killed, *END_A, *END_B]
    assert kinds([*start, *there, group_at(5)]) == set()
    assert kinds([*start, *content(COPY, []), group_at(0)]) == set()
    assert kinds([*start, *there, group_at(0)]) == {Kind.PARTIAL}
    assert kinds([*start, *content(COPY, []), group_at(5)]) == {Kind.LOST}


def test_transactions_of_a_killed_client_have_their_place_in_the_order() -> None:
    first = replace(begun((COPY, "txn-2/1")), reads=[Read(topic=COPY[0], partition=COPY[1], offset=1, value="txn-2/2")])
    second = attempt(Outcome.COMMITTED, (COPY, "txn-2/2", 1), writer="txn-2")
    end = content(COPY, [(0, "txn-2/1"), (1, "txn-2/2")])
    assert kinds([*WRITTEN, first, KILLED, second, *END_A, *END_B, *end]) == {Kind.CYCLE}


def test_the_verdict_counts_what_a_killed_client_had_begun() -> None:
    report = report_of([*WRITTEN, LOST, KILLED, *END_A, *END_B, *content(COPY, [])])
    assert report.operations[Promise.TRANSACTIONAL][Outcome.UNKNOWN] == 2
    assert report.errors == {(Promise.TRANSACTIONAL, Outcome.UNKNOWN, CLIENT_LOST): 1}
    assert "clients replaced after commit_transaction, no return (fatal): 1" in report.lines()


def test_it_is_the_same_after_it_was_written() -> None:
    read = replace(LOST, reads=[Read(topic=A[0], partition=A[1], offset=0, value="txn-1/1")])
    assert from_line(to_line(read)) == read
