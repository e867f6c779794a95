"""The table of growth: exponents of figures, and which of them are marked."""

from __future__ import annotations

import pytest
from bench.growing.measuring import Growth, exponent
from bench.growth import table

SIZES = (10, 100, 1_000)


@pytest.mark.parametrize(("power", "found"), [(0, 0.0), (1, 1.0), (2, 2.0)])
def test_the_exponent_is_the_power_of_the_size(power: int, found: float) -> None:
    assert exponent([(size, 3.0 * size**power) for size in SIZES]) == pytest.approx(found)


def test_a_constant_part_fades() -> None:
    assert exponent([(size, 100 + size) for size in (100, 10_000, 1_000_000)]) == pytest.approx(1, abs=0.01)


def test_what_grows_faster_than_it_may_is_marked() -> None:
    linear, flat = Growth("walk", "ms"), Growth("find", "ms", 0)
    found = [{linear: float(size), flat: float(size)} for size in SIZES]
    rows = table("things", SIZES, found).splitlines()
    assert rows[0] == "| things | 10 | 100 | 1,000 | exponent | may be |"
    assert rows[2:] == [
        "| walk, ms | 10 | 100 | 1,000 | 1.00 | 1 |",
        "| find, ms | 10 | 100 | 1,000 | **1.00** | 0 |",
    ]


def test_a_size_without_a_figure_is_left_out() -> None:
    figure = Growth("join", "ms")
    [row] = table("members", SIZES, [{figure: 1.0}, {figure: 10.0}, {}]).splitlines()[2:]
    assert row == "| join, ms | 1 | 10 |  | 1.00 | 1 |"
