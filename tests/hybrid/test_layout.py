"""Which tier serves an offset."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.hybrid.layout import Extent, PartitionLayout, Tier, classic_layout, hybrid_layout, suffix_layout

# The prefix of a partition that went from classic to diskless at 500: local from 450 on, remote from 100 on.
THREE_TIERS = PartitionLayout((Extent(Tier.LOCAL, 450, 500), Extent(Tier.REMOTE, 100, 500), Extent(Tier.DISKLESS, 500)))


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
    ],
)
def test_the_first_extent_that_holds_an_offset_serves_it(offset: int, tier: Tier | None) -> None:
    assert THREE_TIERS.tier_of(offset) is tier


@given(start=st.integers(0, 50), local_start=st.integers(0, 100), has_remote=st.booleans(), offset=st.integers(0, 150))
def test_a_classic_partition_is_served_from_its_log_start_on(
    start: int, local_start: int, has_remote: bool, offset: int
) -> None:
    tier = classic_layout(start, local_start, has_remote).tier_of(offset)
    if offset >= local_start:
        assert tier is Tier.LOCAL
    elif has_remote and offset >= start:
        assert tier is Tier.REMOTE
    else:
        assert tier is None


@given(st.integers(0, 2**62))
def test_a_diskless_partition_is_served_by_the_control_plane(offset: int) -> None:
    assert suffix_layout(0, 0).tier_of(offset) is Tier.DISKLESS


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
    assert hybrid_layout(100, 450, True, 500, 800).tier_of(offset) is tier
    assert suffix_layout(500, 800).tier_of(offset) is (tier if offset >= 500 else None)
