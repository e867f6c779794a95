"""Plans: few requests for many rows, and fair shares."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from strandline.controlplane import BatchRow
from strandline.diskless.reader.planning import plan_ranges
from strandline.records import TimestampType, fair_shares


def row(key: str, start: int, size: int) -> BatchRow:
    return BatchRow(0, 0, 1, key, start, size, TimestampType.CREATE_TIME, -1, 0, 0)


def planned(*rows: BatchRow, max_gap: int = 10, max_range: int = 1000) -> list[tuple[str, int, int, int]]:
    plan = plan_ranges([(row, None) for row in rows], max_gap=max_gap, max_range=max_range)
    return [(ranged.object_key, ranged.start, ranged.length, len(ranged.rows)) for ranged in plan]


def test_neighbours_of_one_object_are_read_together() -> None:
    assert planned(row("a", 100, 50), row("a", 0, 100), row("b", 150, 10)) == [("a", 0, 150, 2), ("b", 150, 10, 1)]


def test_a_small_gap_is_read_in_vain_and_a_large_one_is_not() -> None:
    assert planned(row("a", 0, 100), row("a", 110, 10)) == [("a", 0, 120, 2)]
    assert planned(row("a", 0, 100), row("a", 111, 10)) == [("a", 0, 100, 1), ("a", 111, 10, 1)]


def test_ranges_stay_below_the_largest_unless_one_row_is_larger() -> None:
    assert planned(row("a", 0, 600), row("a", 600, 400), row("a", 1000, 1)) == [("a", 0, 1000, 2), ("a", 1000, 1, 1)]
    assert planned(row("a", 0, 5000), row("a", 5000, 1)) == [("a", 0, 5000, 1), ("a", 5000, 1, 1)]


@given(
    rows=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 60), st.integers(1, 90))),
    max_gap=st.integers(0, 300),
    max_range=st.integers(1, 800),
)
def test_every_row_is_read_once_and_lies_in_its_range(
    rows: list[tuple[str, int, int]], max_gap: int, max_range: int
) -> None:
    wanted = [(row(key, slot * 100, size), index) for index, (key, slot, size) in enumerate(rows)]
    plan = plan_ranges(wanted, max_gap=max_gap, max_range=max_range)
    assert sorted(index for ranged in plan for _, index in ranged.rows) == list(range(len(rows)))
    for ranged in plan:
        position = ranged.start
        for planned_row, _ in ranged.rows:
            assert planned_row.object_key == ranged.object_key
            assert planned_row.byte_offset - position <= max_gap
            position = max(position, planned_row.byte_offset + planned_row.byte_size)
        assert position == ranged.start + ranged.length
        assert ranged.length <= max(max_range, max(r.byte_size for r, _ in ranged.rows))


@given(wanted=st.lists(st.integers(0, 1000)), budget=st.integers(-10, 5000))
def test_nobody_gets_more_than_another_who_wanted_more(wanted: list[int], budget: int) -> None:
    shares = fair_shares(wanted, budget)
    assert all(0 <= share <= want for share, want in zip(shares, wanted, strict=True))
    assert sum(shares) <= max(budget, 0)
    if sum(wanted) <= budget:
        assert shares == wanted
    else:
        assert sum(shares) >= max(budget, 0) - len(wanted), "nothing is left over but by rounding"
    for mine, want in zip(shares, wanted, strict=True):
        if mine < want:
            assert max(shares) <= mine + 1
