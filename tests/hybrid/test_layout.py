"""Which tier serves an offset."""

from __future__ import annotations

from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.hybrid.layout import Extent, PartitionLayout, Tier, diskless_layout, joined, replica_layout
from strandline.model import Offset
from strandline.reads import FetchIsolation


class Unread:
    """An `Engine` of a layout whose records nobody reads."""

    def read_now(self, offset: Offset, max_bytes: int, *, isolation: FetchIsolation, min_one_message: bool) -> NoReturn:
        raise AssertionError("a layout is decided without reading")

    def available_bytes(self, offset: Offset, isolation: FetchIsolation) -> int | None:
        raise AssertionError("a layout is decided without reading")


ENGINE = Unread()


def extent(tier: Tier, start: int, end: int = 2**63 - 1) -> Extent:
    return Extent(tier, ENGINE, start, end)


def replica(log_start: int, local_start: int, *, has_remote: bool, end: int = 2**63 - 1) -> PartitionLayout:
    return replica_layout(extent(Tier.LOCAL, local_start, end), log_start, ENGINE if has_remote else None)


def diskless(boundary: int, read_boundary: int) -> PartitionLayout:
    return diskless_layout(extent(Tier.DISKLESS, read_boundary), boundary, ENGINE)


# A partition that went from classic to diskless at 500: local from 450 on, remote from 100 on.
THREE_TIERS = PartitionLayout((extent(Tier.LOCAL, 450, 500), extent(Tier.REMOTE, 100, 500), extent(Tier.DISKLESS, 500)))


@pytest.mark.parametrize(
    ("offset", "tier"),
    [
        (99, None),
        (100, Tier.REMOTE),
        (449, Tier.REMOTE),
        (450, Tier.LOCAL),
        (499, Tier.LOCAL),
        (500, Tier.DISKLESS),
        (10**12, Tier.DISKLESS),
        (2**63 - 1, Tier.DISKLESS),
    ],
)
def test_the_first_extent_that_holds_an_offset_serves_it(offset: int, tier: Tier | None) -> None:
    assert THREE_TIERS.tier_of(offset) is tier


@given(start=st.integers(0, 50), local_start=st.integers(0, 100), has_remote=st.booleans(), offset=st.integers(0, 150))
def test_a_replica_is_served_from_its_log_start_on(start: int, local_start: int, has_remote: bool, offset: int) -> None:
    tier = replica(start, local_start, has_remote=has_remote).tier_of(offset)
    if offset >= local_start:
        assert tier is Tier.LOCAL
    elif has_remote and offset >= start:
        assert tier is Tier.REMOTE
    else:
        assert tier is None


@given(st.integers(0, 2**62))
def test_a_diskless_partition_is_served_by_the_control_plane(offset: int) -> None:
    assert diskless(0, 0).tier_of(offset) is Tier.DISKLESS


@pytest.mark.parametrize(
    ("offset", "tier"),
    [
        (99, None),
        (100, Tier.REMOTE),
        (449, Tier.REMOTE),
        (450, Tier.LOCAL),
        (500, Tier.REMOTE),
        (799, Tier.REMOTE),
        (800, Tier.DISKLESS),
    ],
)
def test_the_converted_part_of_a_diskless_log_is_remote_up_to_the_read_boundary(offset: int, tier: Tier | None) -> None:
    whole = joined((diskless(500, 800), replica(100, 450, has_remote=True, end=500)))
    assert whole.tier_of(offset) is tier
    assert diskless(500, 800).tier_of(offset) is (tier if offset >= 500 else None)


BOUNDARIES = st.lists(st.integers(1, 200), max_size=4, unique=True).map(sorted)


@given(boundaries=BOUNDARIES, shares=st.lists(st.integers(0, 100), min_size=5, max_size=5), offset=st.integers(0, 250))
def test_each_offset_of_a_log_of_any_number_of_parts_is_served_by_the_part_that_has_it(
    boundaries: list[int], shares: list[int], offset: int
) -> None:
    """Replicas and diskless parts by turns, as if topics could go there and back."""
    starts, ends = [0, *boundaries], [*boundaries, 2**63 - 1]
    layouts: list[PartitionLayout] = []
    expected: Tier | None = None
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        edge = min(start + shares[place], end)  # where the older extent of the part ends
        is_replica = place % 2 == 0
        newer, older = (Tier.LOCAL if is_replica else Tier.DISKLESS), Tier.REMOTE
        layouts.append(PartitionLayout((extent(newer, edge, end), extent(older, start, edge))))
        if start <= offset < end:
            expected = newer if offset >= edge else older
    assert joined(reversed(layouts)).tier_of(offset) is expected


def test_a_part_that_is_gone_leaves_no_extent() -> None:
    gone = replica(500, 500, has_remote=True, end=500)
    assert joined((diskless(500, 500), gone)) == diskless(500, 500)
