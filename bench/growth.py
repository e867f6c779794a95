"""How costs grow: `python -m bench.growth`.

    .venv/bin/python -m bench.growth                                  # everything: about twenty minutes
    .venv/bin/python -m bench.growth --only partitions,segments --sizes 100,1000,10000

Each figure is measured at some sizes, on fresh brokers and by CPU time, and its exponent is the slope between them in
logarithms, from the middle size on: 1 is linear, 0 is independent of the size. What grows by 0.15 more than it may is
marked: look into it.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from bench.growing import connections, members, partitions
from bench.growing.measuring import TOLERANCE, Growth, Measured, exponent
from bench.systems import Strandline
from bench.tree import SourceTree

_SIZES: Final[Mapping[str, Sequence[int]]] = {
    "partitions": (100, 1_000, 10_000),
    "connections": (100, 1_000, 8_000),
    "members": (100, 1_000, 5_000),
    "rows": (1_000, 10_000, 100_000),
    "segments": (100, 1_000, 10_000),
    "crashed": (10_000, 100_000, 1_000_000),
    "coordinated": (10_000, 100_000, 1_000_000),
    "topics": (1_000, 10_000, 100_000),
}


def _with_broker(name: str, size: int, root: Path) -> Measured:
    system = Strandline(SourceTree.working())
    settings = members.SETTINGS if name == "members" else {}
    broker = system.new_broker(root / f"{name}-{size}", settings)
    measures: Mapping[str, Callable[..., Measured]] = {
        "partitions": partitions.measure,
        "connections": connections.measure,
        "members": members.measure,
    }
    try:
        return measures[name](broker, size)
    finally:
        broker.stop()


def measure(name: str, size: int, root: Path) -> Measured:
    """One dimension at one size."""
    if name == "rows":
        from bench.growing import rows

        return rows.measure(root, size)
    if name == "segments":
        from bench.growing import segments

        return segments.measure(root, size)
    if name == "crashed":
        from bench.growing import crashed_logs

        return crashed_logs.measure(root, size)
    if name == "coordinated":
        from bench.growing import coordinated

        return coordinated.measure(root, size)
    if name == "topics":
        from bench.growing import topics

        return topics.measure(root, size)
    return _with_broker(name, size, root)


def table(name: str, sizes: Sequence[int], found: Sequence[Measured]) -> str:
    """As Markdown: a row for each figure, with its exponent."""
    lines = [
        f"| {name} | {' | '.join(f'{size:,}' for size in sizes)} | exponent | may be |",
        "|---|" + "---:|" * (len(sizes) + 2),
    ]
    figures: list[Growth] = list(dict.fromkeys(figure for one in found for figure in one))
    for figure in figures:
        values = [one.get(figure) for one in found]
        points = [(size, value) for size, value in zip(sizes, values, strict=True) if value is not None]
        grows = exponent(points)
        shown = f"**{grows:.2f}**" if grows > figure.allowed + TOLERANCE else f"{grows:.2f}"
        cells = ("" if value is None else f"{value:.3g}" if value < 1000 else f"{value:,.0f}" for value in values)
        lines.append(f"| {figure.what}, {figure.unit} | {' | '.join(cells)} | {shown} | {figure.allowed:g} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description="How costs grow.")
    parser.add_argument("--only", default=",".join(_SIZES), help="dimensions, separated by commas")
    parser.add_argument("--sizes", help="other sizes, separated by commas")
    arguments = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a file for each connection
    for name in arguments.only.split(","):
        sizes = [int(size) for size in arguments.sizes.split(",")] if arguments.sizes else _SIZES[name]
        with tempfile.TemporaryDirectory(prefix="growth-") as root:
            found = [measure(name, size, Path(root)) for size in sizes]
        print(table(name, sizes, found), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
