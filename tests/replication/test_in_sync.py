"""The rules of the in-sync set."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.model import NO_OFFSET
from strandline.replication.in_sync import high_watermark, is_caught_up, is_under_min_isr, may_join, without

ends = st.integers(0, 20)


@given(own=ends, followers=st.dictionaries(st.integers(2, 5), st.just(NO_OFFSET) | ends))
def test_the_high_watermark_is_where_the_first_record_lies_that_an_in_sync_replica_may_lack(
    own: int, followers: dict[int, int]
) -> None:
    """Asked for each record: does every in-sync replica have it, as far as is known?"""
    has_all = [offset for offset in range(own) if all(offset < end for end in followers.values())]
    reached = high_watermark(own, followers.values())
    if NO_OFFSET in followers.values():
        assert reached == NO_OFFSET
    else:
        assert reached == len(has_all)
        assert has_all == list(range(len(has_all)))


@given(own=ends)
def test_with_one_replica_it_is_the_end_of_its_log(own: int) -> None:
    assert high_watermark(own, ()) == own


@pytest.mark.parametrize(
    ("in_sync", "replicas", "least", "is_under"),
    [(1, 1, 1, False), (1, 1, 2, False), (1, 2, 2, True), (1, 2, 1, False), (2, 3, 2, False), (2, 3, 3, True)],
)
def test_too_few_are_fewer_than_the_setting_asks_for_and_not_all_there_are(
    in_sync: int, replicas: int, least: int, is_under: bool
) -> None:
    assert is_under_min_isr(in_sync, replicas, least) is is_under


@pytest.mark.parametrize(
    ("end", "caught_up_at", "expected"),
    [(10, -1e9, True), (9, 70.0, True), (9, 69.9, False), (11, 69.9, False)],
)
def test_a_follower_is_caught_up_at_the_end_of_the_log_or_if_it_was_not_long_ago(
    end: int, caught_up_at: float, expected: bool
) -> None:
    assert is_caught_up(end, 10, caught_up_at=caught_up_at, now=100.0, lag_seconds=30.0) is expected


@pytest.mark.parametrize(("end", "expected"), [(4, False), (5, False), (7, True), (8, True)])
def test_a_follower_joins_when_it_has_all_that_may_be_committed(end: int, expected: bool) -> None:
    """KAFKA-7128: also what lies between the high watermark and the beginning of the leader's epoch."""
    assert may_join(end, high_watermark=5, epoch_start=7) is expected
    assert may_join(end, high_watermark=7, epoch_start=5) is expected


def test_those_who_leave_do_not_change_the_order_of_the_others() -> None:
    assert without((3, 1, 2), [1]) == (3, 2)
