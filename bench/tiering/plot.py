"""Curves over time as an SVG, in the colours of the other pictures of the documents."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

_WIDTH: Final = 960
_HEIGHT: Final = 420
_LEFT: Final = 84
_RIGHT: Final = 190
_TOP: Final = 48
_BOTTOM: Final = 48
_TICKS: Final = 5
_STYLE: Final = """\
    text { font-family: "Segoe UI", "Helvetica Neue", Helvetica, Arial, "DejaVu Sans", sans-serif; fill: #1c2b33; }
    .head { font-size: 15px; font-weight: 600; }
    .note { font-size: 12px; fill: #5b7280; }
    .grid { stroke: #e2eaed; stroke-width: 1; }
    .curve { fill: none; stroke-width: 2.2; stroke-linejoin: round; }"""


class Curve(NamedTuple):
    """One line of the picture: seconds and values."""

    title: str
    colour: str
    points: Sequence[tuple[float, float]]


def draw(file: Path, curves: Sequence[Curve], *, title: str, description: str) -> None:
    """Write the picture. The time is in minutes; each curve is named at its end."""
    file.write_text("\n".join(_lines(curves, title, description)) + "\n")


def _lines(curves: Sequence[Curve], title: str, description: str) -> Iterator[str]:
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    longest = max(at for curve in curves for at, _ in curve.points)
    step = _round_step(max(value for curve in curves for _, value in curve.points) / _TICKS)
    most = step * math.ceil(max(value for curve in curves for _, value in curve.points) / step)

    def x(second: float) -> float:
        return _LEFT + width * second / longest

    def y(value: float) -> float:
        return _TOP + height * (1 - value / most)

    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        'aria-labelledby="title description">'
    )
    yield f'  <title id="title">{escape(title)}</title>'
    yield f'  <desc id="description">{escape(description)}</desc>'
    yield f"  <style>\n{_STYLE}\n  </style>"
    yield f'  <rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>'
    yield f'  <text class="head" x="{_LEFT}" y="26">{escape(title)}</text>'
    for tick in range(round(most / step) + 1):
        at = y(tick * step)
        yield f'  <line class="grid" x1="{_LEFT}" y1="{at:.1f}" x2="{_LEFT + width}" y2="{at:.1f}"/>'
        yield f'  <text class="note" x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{tick * step:,.0f}</text>'
    minutes = longest / 60
    every = max(1, round(minutes / 10))
    for minute in range(0, int(minutes + 0.01) + 1, every):
        middle, below = f"{x(minute * 60):.1f}", _HEIGHT - _BOTTOM + 20
        yield f'  <text class="note" x="{middle}" y="{below}" text-anchor="middle">{minute} min</text>'
    for curve, label in zip(curves, _label_heights([y(curve.points[-1][1]) for curve in curves]), strict=True):
        points = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in curve.points)
        yield f'  <polyline class="curve" stroke="{curve.colour}" points="{points}"/>'
        yield (
            f'  <text class="note" x="{_LEFT + width + 8}" y="{label + 4:.1f}" style="fill: {curve.colour}">'
            f"{escape(curve.title)}</text>"
        )
    yield "</svg>"


def _round_step(step: float) -> float:
    """The next of 1, 2, 5, 10, 20, 50..."""
    power = 10.0 ** math.floor(math.log10(max(step, 1)))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step)


def _label_heights(wanted: Sequence[float], room: float = 18.0) -> list[float]:
    """Heights that do not overlap, in the order of the curves, the lowest label where it belongs."""
    heights = list(wanted)
    order = sorted(range(len(heights)), key=lambda number: -heights[number])
    for above, below in zip(order[1:], order, strict=False):
        heights[above] = min(heights[above], heights[below] - room)
    return heights
