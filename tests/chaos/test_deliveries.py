"""The judge of groups: each committed record is given to a member at least once, and nothing else is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from chaos.history import Delivery, Event, GroupOffset
from chaos.values import CLASSIC_GROUP, SHARE_GROUP
from chaos.verify import verify
from chaos.violations import Kind

from tests.chaos.test_verify import END_A, END_B, WRITTEN, A, B

ALL_OF_A = [(0, "txn-1/1"), (4, "txn-1/5"), (6, "idem-1.1/1")]
ALL_OF_B = [(0, "txn-1/2"), (2, "txn-1/6")]


def given(
    group: str, place: tuple[str, int], records: Sequence[tuple[int, str]], member: str = "m-1", at: float = 3.0
) -> Delivery:
    return Delivery(at=at, group=group, member=member, topic=place[0], partition=place[1], records=list(records))


def offset(group: str, place: tuple[str, int], at: int) -> GroupOffset:
    return GroupOffset(at=4.0, group=group, topic=place[0], partition=place[1], offset=at)


def kinds(*events: Event) -> set[Kind]:
    return {one.kind for one in verify([*WRITTEN, *END_A, *END_B, *events])}


@pytest.mark.parametrize("group", [CLASSIC_GROUP, SHARE_GROUP])
def test_members_who_were_given_everything_some_of_it_twice(group: str) -> None:
    deliveries = [given(group, A, ALL_OF_A[:2]), given(group, A, ALL_OF_A[1:], "m-2"), given(group, B, ALL_OF_B)]
    assert kinds(*deliveries, *[offset(group, place, 7) for place in (A, B)]) == set()


def test_a_group_need_not_have_what_is_behind_its_offset() -> None:
    assert (
        kinds(given(CLASSIC_GROUP, A, ALL_OF_A[:2]), offset(CLASSIC_GROUP, A, 5), offset(CLASSIC_GROUP, B, 0)) == set()
    )


def test_a_record_that_was_committed_by_a_group_and_given_to_no_member() -> None:
    for records in (ALL_OF_A[:1], ALL_OF_A[1:2]):
        assert kinds(given(CLASSIC_GROUP, A, records), offset(CLASSIC_GROUP, A, 5)) == {Kind.LOST}


def test_another_group_does_not_stand_in() -> None:
    others = [given("other", A, ALL_OF_A), given(CLASSIC_GROUP, A, [])]
    assert kinds(*others, offset(CLASSIC_GROUP, A, 5)) == {Kind.LOST}


@pytest.mark.parametrize("missing", [given(SHARE_GROUP, A, ALL_OF_A[1:]), given(SHARE_GROUP, A, [])])
def test_a_share_group_gets_all_that_is_committed(missing: Delivery) -> None:
    assert kinds(missing, given(SHARE_GROUP, B, ALL_OF_B)) == {Kind.LOST}
    assert kinds(given(SHARE_GROUP, A, ALL_OF_A)) == {Kind.LOST}  # nothing of the other partition


def test_members_are_not_given_what_was_aborted_is_gone_or_is_something_else() -> None:
    everything = [given(SHARE_GROUP, A, ALL_OF_A), given(SHARE_GROUP, B, ALL_OF_B)]
    for expected, record in (
        (Kind.ABORTED_READ, (2, "txn-1/3")),
        (Kind.LOST, (9, "txn-1/9")),
        (Kind.CHANGED, (0, "txn-1/5")),
        (Kind.TORN, (0, "torn:txn-1/1 with 9 bytes")),
    ):
        assert kinds(*everything, given(SHARE_GROUP, A, [record])) == {expected}
    early = replace(everything[0], at=0.5)
    assert kinds(early, everything[1]) == {Kind.EARLY_READ}


def test_offsets_of_each_group_never_go_back() -> None:
    all_of_it = given(CLASSIC_GROUP, A, ALL_OF_A)
    assert kinds(all_of_it, offset(CLASSIC_GROUP, A, 7), offset("other", A, 0)) == set()
    assert kinds(all_of_it, offset(CLASSIC_GROUP, A, 7), offset(CLASSIC_GROUP, A, 5)) == {Kind.WENT_BACK}
