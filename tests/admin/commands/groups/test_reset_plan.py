"""Which offsets a reset gives, and how times, durations and files are read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.admin.commands.groups.reset_plan import (
    Destination,
    PartitionBounds,
    ResetTarget,
    parse_duration,
    parse_moment,
    parse_rows,
    plan_reset,
)
from strandline.admin.commands.groups.scope import parse_scope, within_scope
from strandline.client import CommandFailed

A = ("a", 0)


def _one(target: ResetTarget, bounds: PartitionBounds) -> tuple[int, str | None]:
    (row,) = plan_reset(target, {A: bounds})
    assert (row.topic, row.partition, row.current) == (*A, bounds.current)
    return row.new, row.note


KNOWN = PartitionBounds(start=10, end=50, current=20, at_time=33)
NEW = PartitionBounds(start=10, end=50, current=None)


@pytest.mark.parametrize(
    ("destination", "number", "bounds", "expected"),
    [
        (Destination.EARLIEST, 0, KNOWN, (10, None)),
        (Destination.LATEST, 0, KNOWN, (50, None)),
        (Destination.CURRENT, 0, KNOWN, (20, None)),
        (Destination.CURRENT, 0, NEW, (50, "has no offset yet: latest")),
        (Destination.TIME, 0, KNOWN, (33, None)),
        (Destination.TIME, 0, NEW, (50, "no record since then: latest")),
        (Destination.OFFSET, 10, KNOWN, (10, None)),
        (Destination.OFFSET, 50, KNOWN, (50, None)),
        (Destination.OFFSET, 9, KNOWN, (10, "9 is below the log: earliest")),
        (Destination.OFFSET, 51, KNOWN, (50, "51 is above the log: latest")),
        (Destination.SHIFT, 5, KNOWN, (25, None)),
        (Destination.SHIFT, -11, KNOWN, (10, "9 is below the log: earliest")),
        (Destination.SHIFT, 31, KNOWN, (50, "51 is above the log: latest")),
    ],
)
def test_each_destination(
    destination: Destination, number: int, bounds: PartitionBounds, expected: tuple[int, str | None]
) -> None:
    assert _one(ResetTarget(destination=destination, number=number), bounds) == expected


def test_rows_of_a_file_are_cut_to_the_log_too() -> None:
    target = ResetTarget(destination=Destination.FILE, rows={A: 99})
    assert _one(target, KNOWN) == (50, "99 is above the log: latest")


def test_what_was_never_committed_cannot_be_shifted() -> None:
    with pytest.raises(CommandFailed, match="no offset of a-0 that could be shifted"):
        plan_reset(ResetTarget(destination=Destination.SHIFT, number=-1), {A: NEW})


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 300), st.integers(-300, 300))
def test_a_new_offset_is_always_in_the_log(start: int, length: int, current: int, number: int) -> None:
    bounds = PartitionBounds(start=start, end=start + length, current=current)
    for destination in (Destination.EARLIEST, Destination.LATEST, Destination.OFFSET, Destination.SHIFT):
        new, _ = _one(ResetTarget(destination=destination, number=number), bounds)
        assert bounds.start <= new <= bounds.end


def test_moments_are_utc_unless_they_say_otherwise() -> None:
    assert parse_moment("1970-01-01T00:00:01") == 1000
    assert parse_moment("1970-01-01T00:00:00.250Z") == 250
    assert parse_moment("1970-01-01T01:00:00.250+01:00") == 250
    assert parse_moment("1970-01-02") == 86_400_000
    with pytest.raises(CommandFailed, match="--to-datetime must be like"):
        parse_moment("yesterday")


@pytest.mark.parametrize(
    ("text", "expected"), [("P1D", 86_400_000), ("PT1H", 3_600_000), ("P1DT1H1M1.5S", 90_061_500), ("PT0S", 0)]
)
def test_durations(text: str, expected: int) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "1D", "P1H", "PT1D", "P-1D", "P1DT"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(CommandFailed, match="--by-duration must be like"):
        parse_duration(text)


def test_a_duration_that_is_longer_than_any_log() -> None:
    with pytest.raises(CommandFailed, match="longer than any log"):
        parse_duration("P999999999999D")


def test_rows_with_and_without_the_group() -> None:
    rows = ["a,0,5\n", "\n", "billing,b,1,7\n"]
    assert parse_rows(rows, "billing", name="plan.csv") == {("a", 0): 5, ("b", 1): 7}


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (["a,0\n"], "plan.csv, line 1: a row must be topic,partition,offset, but is a,0."),
        (["a,0,-1\n"], "plan.csv, line 1: a row must be"),
        (["a,0," + "9" * 5000 + "\n"], "plan.csv, line 1: a row must be"),
        (["a,0,1\n", "a,0,2\n"], "plan.csv, line 2: partition 0 of topic a is named twice."),
        (["others,a,0,1\n"], "plan.csv, line 1: the row is of group others, not of billing."),
        ([], "plan.csv has no rows"),
    ],
)
def test_a_broken_file_is_explained_by_line(rows: list[str], sentence: str) -> None:
    with pytest.raises(CommandFailed) as failure:
        parse_rows(rows, "billing", name="plan.csv")
    assert str(failure.value).startswith(sentence)


def test_scopes() -> None:
    existing = [("a", 0), ("a", 1), ("b", 0)]
    assert parse_scope(["a", "b:0"]) == {"a": None, "b": frozenset({0})}
    assert parse_scope(["a:0", "a:2,1"]) == {"a": frozenset({0, 1, 2})}
    assert parse_scope(["a", "a:1"]) == {"a": None}
    assert within_scope({"a": None}, existing, missing="is not there") == [("a", 0), ("a", 1)]
    assert within_scope({"b": frozenset({0}), "a": frozenset({1})}, existing, missing="") == [("a", 1), ("b", 0)]
    with pytest.raises(CommandFailed, match=r"^Topic c is not there\.$"):
        within_scope({"c": None}, existing, missing="is not there")
    with pytest.raises(CommandFailed, match=r"^Partition 1 of topic b is not there\.$"):
        within_scope({"b": frozenset({0, 1})}, existing, missing="is not there")
    for wrong in (":1", "a:", "a:x", "a:1,"):
        with pytest.raises(CommandFailed, match=r"^--topic must be TOPIC or TOPIC:0,1,2"):
            parse_scope([wrong])
