"""The judge of histories finds each kind of violation, and none where all is well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from chaos.history import (
    COMMITTED,
    UNCOMMITTED,
    Append,
    Attempt,
    Batch,
    Bounds,
    Calm,
    Content,
    Ended,
    Event,
    Fault,
    GroupOffset,
    Outcome,
    Promise,
    Read,
    Replica,
    Run,
    Seen,
    StoredBatch,
    Trouble,
    from_line,
    read_history,
    to_line,
)
from chaos.verify import verify
from chaos.violations import Kind

A, B, COPY = ("list-classic", 0), ("list-classic", 1), ("copy-classic", 0)
Records = Sequence[tuple[int, str]]


def attempt(
    outcome: Outcome,
    *appends: tuple[tuple[str, int], str, int | None],
    writer: str = "txn-1",
    promise: Promise = Promise.TRANSACTIONAL,
    reads: Sequence[tuple[tuple[str, int], int, str]] = (),
) -> Attempt:
    written = [Append(topic=place[0], partition=place[1], value=value, offset=at) for place, value, at in appends]
    found = [Read(topic=place[0], partition=place[1], offset=at, value=value) for place, at, value in reads]
    commit_at = None if outcome is Outcome.ABORTED or promise is not Promise.TRANSACTIONAL else 1.0
    return Attempt(
        at=2.0, writer=writer, promise=promise, outcome=outcome, appends=written, reads=found, commit_at=commit_at
    )


def content(place: tuple[str, int], records: Records, markers: Sequence[int] = (), **how: object) -> list[Event]:
    """A partition as it is read at both levels; `dropped` are values that read_committed does not see."""
    dropped = how.get("dropped", ())
    assert isinstance(dropped, tuple)
    end = max([offset for offset, _ in records] + list(markers), default=-1) + 1
    raw = Content(
        source="broker 1",
        isolation=UNCOMMITTED,
        topic=place[0],
        partition=place[1],
        start=0,
        end=end,
        records=list(records),
        markers=list(markers),
    )
    seen = [one for one in records if one[1] not in dropped]
    return [raw, replace(raw, source="consumer", isolation=COMMITTED, records=seen, markers=None)]


def seen(place: tuple[str, int], *records: tuple[int, str], start: int | None = None) -> Seen:
    begin = records[0][0] if start is None else start
    return Seen(
        at=3.0, reader="reader-1", session=1, start=begin, topic=place[0], partition=place[1], records=list(records)
    )


def bounds(end: int, *, start: int = 0, isolation: str = COMMITTED, observer: str = "observer-1") -> Bounds:
    return Bounds(at=1.0, observer=observer, isolation=isolation, topic=A[0], partition=A[1], start=start, end=end)


def group_at(offset: int) -> GroupOffset:
    return GroupOffset(at=1.0, group="copiers", topic=A[0], partition=A[1], offset=offset)


RUN = Run(seed=1, seconds=1.0, tiers=["classic"])
WRITTEN: list[Event] = [
    RUN,
    attempt(Outcome.COMMITTED, (A, "txn-1/1", 0), (B, "txn-1/2", 0)),
    attempt(Outcome.ABORTED, (A, "txn-1/3", 2), (B, "txn-1/4", None)),
    attempt(Outcome.UNKNOWN, (A, "txn-1/5", 4), (B, "txn-1/6", 2)),
    attempt(Outcome.COMMITTED, (A, "idem-1.1/1", 6), writer="idem-1.1", promise=Promise.IDEMPOTENT),
]
IN_A: Records = [(0, "txn-1/1"), (2, "txn-1/3"), (4, "txn-1/5"), (6, "idem-1.1/1")]
IN_B: Records = [(0, "txn-1/2"), (2, "txn-1/6")]
MARKERS_A, MARKERS_B = (1, 3, 5), (1, 3)
END_A = content(A, IN_A, MARKERS_A, dropped=("txn-1/3",))
END_B = content(B, IN_B, MARKERS_B)


def kinds(events: Sequence[Event]) -> set[Kind]:
    return {one.kind for one in verify(events)}


def test_a_history_in_which_all_is_well() -> None:
    reads = [seen(A, (0, "txn-1/1"), (4, "txn-1/5"), (6, "idem-1.1/1")), seen(B, (2, "txn-1/6"))]
    ended = Ended(at=1.0, writer="txn-1", operation="commit", error="_FENCED", text="", is_fatal=True, after="none")
    fault = Fault(at=1.0, kind="SIGKILL", target="broker 1", seconds=1.0)
    assert verify([*WRITTEN, *END_A, *END_B, *reads, fault, ended]) == []


def test_an_unknown_transaction_may_be_absent_as_a_whole() -> None:
    events = [
        *WRITTEN,
        *content(A, IN_A, MARKERS_A, dropped=("txn-1/3", "txn-1/5")),
        *content(B, IN_B, MARKERS_B, dropped=("txn-1/6",)),
    ]
    assert verify(events) == []


@pytest.mark.parametrize(
    ("expected", "changed"),
    [
        (Kind.LOST, content(A, [*IN_A[:3]], MARKERS_A, dropped=("txn-1/3",))),
        (Kind.DOUBLED, content(A, [*IN_A, (7, "idem-1.1/1")], MARKERS_A, dropped=("txn-1/3",))),
        (Kind.REORDERED, content(A, [(0, "txn-1/5"), (2, "txn-1/3"), (4, "txn-1/1"), IN_A[3]], MARKERS_A)),
        (Kind.ABORTED_READ, content(A, IN_A, MARKERS_A)),
        (Kind.PARTIAL, content(A, IN_A, MARKERS_A, dropped=("txn-1/3", "txn-1/1"))),  # of a committed one
        (Kind.PARTIAL, content(A, IN_A, MARKERS_A, dropped=("txn-1/3", "txn-1/5"))),  # of an unknown one
        (Kind.GAP, content(A, IN_A, MARKERS_A[1:], dropped=("txn-1/3",))),
        (Kind.INVENTED, content(A, [*IN_A, (7, "nobody/1")], MARKERS_A, dropped=("txn-1/3",))),
        (Kind.CHANGED, content(A, [(0, "txn-1/1"), (2, "txn-1/3"), (4, "txn-1/5"), (7, "idem-1.1/1")], (1, 3, 5, 6))),
        (Kind.NOT_READ, []),
    ],
)
def test_each_kind_of_violation_in_a_partition(expected: Kind, changed: list[Event]) -> None:
    if expected is Kind.CHANGED:  # what was acknowledged at one offset is another value there for somebody
        changed = [*changed, seen(A, (0, "txn-1/5"))]
    assert expected in kinds([*WRITTEN, *changed, *END_B])


def test_a_record_that_is_not_what_was_sent() -> None:
    torn = [*IN_A[:3], (6, "torn:idem-1.1/1 with 9 bytes and CRC 00000000")]
    found = kinds([*WRITTEN, *content(A, torn, MARKERS_A, dropped=("txn-1/3",)), *END_B])
    assert found == {Kind.TORN, Kind.LOST, Kind.CHANGED}


def test_a_partition_that_does_not_begin_at_its_beginning() -> None:
    raw, consumed = END_A
    assert isinstance(raw, Content)
    later = replace(raw, start=1, records=list(IN_A[1:]))
    assert Kind.GAP in kinds([*WRITTEN, later, consumed, *END_B])


def test_brokers_that_disagree_at_the_end() -> None:
    raw = END_A[0]
    assert isinstance(raw, Content)
    other = replace(raw, source="broker 2", records=[*IN_A[:3], (6, "txn-1/1")])
    assert kinds([*WRITTEN, *END_A, *END_B, other]) == {Kind.CHANGED}


@pytest.mark.parametrize(
    ("expected", "read"),
    [
        (Kind.LOST, seen(A, (0, "txn-1/1"), (6, "idem-1.1/1"))),  # one is skipped
        (Kind.LOST, seen(A, (4, "txn-1/5"), start=0)),  # the first one is skipped
        (Kind.LOST, seen(A, (6, "idem-1.1/1"), (9, "idem-1.1/2"))),  # one is gone afterwards
        (Kind.REORDERED, seen(A, (4, "txn-1/5"), (0, "txn-1/1"))),
        (Kind.REORDERED, seen(A, (4, "txn-1/5"), (4, "txn-1/5"))),
        (Kind.ABORTED_READ, seen(A, (0, "txn-1/1"), (2, "txn-1/3"))),
        (Kind.REORDERED, seen(A, (0, "txn-1/1"), start=4)),  # sent back to before its start
        (Kind.EARLY_READ, replace(seen(A, (0, "txn-1/1")), at=0.5)),
        (Kind.CHANGED, seen(A, (0, "idem-1.1/1"))),
    ],
)
def test_each_kind_of_violation_that_a_reader_sees(expected: Kind, read: Seen) -> None:
    assert expected in kinds([*WRITTEN, *END_A, *END_B, read])


def test_an_acknowledged_offset_that_holds_another_value() -> None:
    more = attempt(Outcome.COMMITTED, (A, "idem-1.1/1", 4), writer="idem-1.1", promise=Promise.IDEMPOTENT)
    assert kinds([*WRITTEN[:4], more, *END_A, *END_B]) == {Kind.CHANGED}


def test_trouble_is_a_violation() -> None:
    trouble = Trouble(at=1.0, what="broker 1 ended by itself", text="")
    assert kinds([*WRITTEN, *END_A, *END_B, trouble]) == {Kind.TROUBLE}


def test_a_run_with_replicas_has_a_calm_time_and_reads_their_files() -> None:
    run = Run(seed=1, seconds=1.0, tiers=["replicated"], brokers=3, replicas=3)
    place = ("list-replicated", 0)
    written = attempt(Outcome.COMMITTED, (place, "plain-1.1/1", 0), writer="plain-1.1", promise=Promise.PLAIN)
    history = [run, written, *content(place, [(0, "plain-1.1/1")])]
    assert [one.kind for one in verify(history)] == [Kind.NOT_READ, Kind.NOT_READ]
    batch = StoredBatch(offset=0, next_offset=1, digest="a")
    replica = Replica(broker=1, topic=place[0], partition=0, assigned=[1], start=0, high_watermark=1, batches=[batch])
    calm = Calm(at=1.0, until=3.0, places=[place], groups=[])
    assert verify([*history, calm, replica]) == []


def test_a_history_without_an_end_is_not_well() -> None:
    assert kinds([RUN, WRITTEN[1]]) == {Kind.NOT_READ, Kind.LOST}
    assert kinds([]) == {Kind.NOT_READ}


@pytest.mark.parametrize(
    ("copies", "upto", "expected"),
    [
        ([(0, "copy-1/1<0:txn-1/1"), (1, "copy-1/2<4:txn-1/5")], 6, set()),
        ([(0, "copy-1/1<0:txn-1/1")], 6, {Kind.LOST}),
        ([(0, "copy-1/1<0:txn-1/1"), (1, "copy-1/2<0:txn-1/1")], 4, {Kind.DOUBLED}),
        ([(0, "copy-1/1<4:txn-1/5"), (1, "copy-1/2<0:txn-1/1")], 6, {Kind.REORDERED}),
        ([(0, "copy-1/1<0:txn-1/1"), (1, "copy-1/2<4:txn-1/5")], 4, {Kind.PARTIAL}),
        ([(0, "copy-1/1<0:txn-1/1"), (1, "copy-1/2<2:txn-1/3")], 4, {Kind.ABORTED_READ}),
    ],
)
def test_copies_are_exactly_once(copies: Records, upto: int, expected: set[Kind]) -> None:
    written = [attempt(Outcome.COMMITTED, (COPY, value, offset), writer="copy-1") for offset, value in copies]
    assert kinds([*WRITTEN, *END_A, *END_B, *written, *content(COPY, copies), group_at(upto)]) == expected


def test_a_transaction_that_read_what_was_aborted_or_is_gone() -> None:
    for expected, read in (
        (Kind.ABORTED_READ, (A, 2, "txn-1/3")),
        (Kind.LOST, (A, 9, "txn-1/9")),
        (Kind.CHANGED, (A, 0, "txn-1/5")),
    ):
        reader = attempt(Outcome.COMMITTED, writer="txn-2", reads=[read])
        assert expected in kinds([*WRITTEN, *END_A, *END_B, reader])


def circle(first_reads: str, second_reads: str) -> list[Event]:
    """Two writers with two transactions each; the first of each reads."""
    places = {"txn-1/1": 0, "txn-2/1": 1, "txn-1/2": 2, "txn-2/2": 3}
    events: list[Event] = [
        RUN,
        attempt(Outcome.COMMITTED, (A, "txn-1/1", 0), reads=[(A, places[first_reads], first_reads)]),
        attempt(Outcome.COMMITTED, (A, "txn-2/1", 1), writer="txn-2", reads=[(A, places[second_reads], second_reads)]),
        attempt(Outcome.COMMITTED, (A, "txn-1/2", 2)),
        attempt(Outcome.COMMITTED, (A, "txn-2/2", 3), writer="txn-2"),
    ]
    return [*events, *content(A, [(offset, value) for value, offset in places.items()])]


@pytest.mark.parametrize(
    ("first_reads", "second_reads"),
    [
        ("txn-2/1", "txn-1/1"),  # each saw the other
        ("txn-2/2", "txn-1/2"),  # each saw what the other did afterwards
        ("txn-1/1", "txn-1/1"),  # the first saw itself, before it was committed
        ("txn-1/2", "txn-1/1"),  # the first saw what its own writer did afterwards
    ],
)
def test_transactions_that_have_seen_what_came_after_them(first_reads: str, second_reads: str) -> None:
    assert kinds(circle(first_reads, second_reads)) == {Kind.CYCLE}


def test_transactions_that_have_seen_what_came_before_them() -> None:
    one_way = circle("txn-2/1", "txn-1/1")
    second = one_way[2]
    assert isinstance(second, Attempt)
    assert verify([*one_way[:2], replace(second, reads=[]), *one_way[3:]]) == []


def test_a_long_chain_of_transactions_is_no_circle() -> None:
    count = 5000
    events: list[Event] = [RUN]
    for number in range(count):
        reads = [(A, number - 1, f"txn-{number - 1}/1")] if number else []
        events.append(attempt(Outcome.COMMITTED, (A, f"txn-{number}/1", number), writer=f"txn-{number}", reads=reads))
    assert verify([*events, *content(A, [(number, f"txn-{number}/1") for number in range(count)])]) == []


@pytest.mark.parametrize(
    "told",
    [
        [bounds(6), bounds(5)],
        [bounds(6, isolation=UNCOMMITTED), bounds(5, isolation=UNCOMMITTED)],
        [group_at(4), group_at(0)],
    ],
)
def test_ends_starts_and_offsets_of_groups_that_go_back(told: list[Event]) -> None:
    assert kinds([*WRITTEN, *END_A, *END_B, *told]) == {Kind.WENT_BACK}


def test_starts_that_move_by_themselves() -> None:
    assert kinds([*WRITTEN, *END_A, *END_B, bounds(6), bounds(6, start=1)]) == {Kind.GAP}
    assert kinds([*WRITTEN, *END_A, *END_B, bounds(6, start=2), bounds(6, start=1)]) == {Kind.GAP, Kind.WENT_BACK}


def test_ends_that_differ_by_level_or_observer_have_not_gone_back() -> None:
    told = [bounds(6, isolation=UNCOMMITTED), bounds(5), bounds(4, observer="observer-2"), bounds(6)]
    assert verify([*WRITTEN, *END_A, *END_B, *told]) == []


def test_a_plain_producer_may_write_a_value_twice_and_never_lose_one() -> None:
    sent = [
        attempt(Outcome.COMMITTED, (B, f"plain-1.1/{number}", None), writer="plain-1.1", promise=Promise.PLAIN)
        for number in (1, 2)
    ]
    twice = [*IN_B, (4, "plain-1.1/2"), (5, "plain-1.1/1"), (6, "plain-1.1/2")]
    assert verify([*WRITTEN, *sent, *END_A, *content(B, twice, MARKERS_B)]) == []
    assert kinds([*WRITTEN, *sent, *END_A, *content(B, twice[:3], MARKERS_B)]) == {Kind.LOST}


def test_a_producer_of_which_a_record_timed_out_may_repeat_itself_in_its_next_epoch() -> None:
    late = replace(
        attempt(Outcome.UNKNOWN, (B, "idem-1.1/2", None), writer="idem-1.1", promise=Promise.IDEMPOTENT),
        error="_MSG_TIMED_OUT",
    )
    twice = content(A, [*IN_A, (7, "idem-1.1/1")], MARKERS_A, dropped=("txn-1/3",))
    assert verify([*WRITTEN, late, *twice, *END_B]) == []
    assert kinds([*WRITTEN, replace(late, error="OUT_OF_ORDER_SEQUENCE_NUMBER"), *twice, *END_B]) == {Kind.DOUBLED}


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([(1, 0, 0, 2), (2, 0, 0, 1), (1, 0, 2, 1), (1, 1, 0, 1), (2, 0, 1, 1)], set()),
        ([(1, 0, 5, 2), (1, 0, 7, 1)], set()),  # the broker has forgotten what was before
        ([(1, 0, 0, 2), (1, 0, 1, 1)], {Kind.DOUBLED}),
        ([(1, 0, 0, 2), (1, 0, 0, 2)], {Kind.DOUBLED}),
        ([(1, 0, 0, 2), (1, 0, 3, 1)], {Kind.LOST}),
    ],
)
def test_sequences_of_each_epoch_are_there_once(batches: list[tuple[int, int, int, int]], expected: set[Kind]) -> None:
    raw, consumed = END_A
    assert isinstance(raw, Content)
    found = [
        Batch(offset=number, count=count, producer_id=producer, epoch=epoch, sequence=sequence)
        for number, (producer, epoch, sequence, count) in enumerate(batches)
    ]
    assert kinds([*WRITTEN, replace(raw, batches=found), consumed, *END_B]) == expected


def test_a_history_is_the_same_after_it_was_written(tmp_path: Path) -> None:
    trouble = Trouble(at=1.0, what="x", text="y")
    reader = attempt(Outcome.COMMITTED, writer="txn-2", reads=[(A, 0, "txn-1/1")])
    raw = END_A[0]
    assert isinstance(raw, Content)
    batch = Batch(offset=0, count=1, producer_id=1, epoch=0, sequence=0)
    events = [
        *WRITTEN,
        *END_A,
        replace(raw, batches=[batch]),
        seen(A, (0, "txn-1/1")),
        bounds(6),
        group_at(4),
        reader,
        trouble,
    ]
    assert [from_line(to_line(event)) for event in events] == events
    path = tmp_path / "history.jsonl"
    path.write_text("".join(to_line(event) + "\n" for event in events))
    assert list(read_history(path)) == events
    path.write_text('{"event":"nothing"}\n')
    with pytest.raises(ValueError, match=r"history\.jsonl:1 is not a line of a history"):
        list(read_history(path))
