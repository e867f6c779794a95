"""The rules of the in-sync set."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.replication.in_sync import high_watermark, is_under_min_isr

ends = st.integers(0, 20)


@given(own=ends, followers=st.dictionaries(st.integers(2, 5), st.none() | ends))
def test_the_high_watermark_is_where_the_first_record_lies_that_an_in_sync_replica_may_lack(
    own: int, followers: dict[int, int | None]
) -> None:
    """Asked for each record: does every in-sync replica have it, as far as is known?"""
    has_all = [offset for offset in range(own) if all(end is not None and offset < end for end in followers.values())]
    reached = high_watermark(own, followers.values())
    if None in followers.values():
        assert reached is None
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
