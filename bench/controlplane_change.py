"""The control plane of the working tree beside that of another commit: `python -m bench.controlplane --against REV`.

Each tree measures itself in a process of its own, in turn, since both packages have the same name.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from bench.change import BEFORE, NOW, changes, changes_table
from bench.figure import Figure
from bench.figures import Results
from bench.tree import SourceTree, TreeFailed, python


def compare(
    trees: Mapping[str, SourceTree], arguments: Sequence[str], rounds: int, console: Console, *, title: str
) -> None:
    """Run both trees with the same arguments and print what changed. Raises TreeFailed."""
    for tree in trees.values():
        tree.prepare()
    figures: dict[str, Figure] = {}
    every, by_round = Results(), [Results() for _ in range(rounds)]
    for number, one in enumerate(by_round):
        for name in (NOW, BEFORE) if number % 2 == 0 else (BEFORE, NOW):
            console.print(f"[dim]round {number + 1} of {rounds}: {name}[/dim]", highlight=False)
            for figure, value in _measure(trees[name], arguments):
                figures[figure.name] = figure
                every.add(name, {figure.name: value})
                one.add(name, {figure.name: value})
    sections = [*dict.fromkeys(figure.section for figure in figures.values())]
    together = sorted(figures.values(), key=lambda figure: sections.index(figure.section))
    console.print(changes_table([*changes(together, every, by_round)], title=title))


def _measure(tree: SourceTree, arguments: Sequence[str]) -> Iterator[tuple[Figure, float]]:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "figures.json"
        run = subprocess.run(
            [*python(), "-m", "bench.controlplane", *arguments, "--json", str(file)],
            env={**os.environ, **tree.environment},
            capture_output=True,
            text=True,
        )
        if run.returncode != 0:
            raise TreeFailed(f"The control plane of {tree.root} could not be measured:\n{run.stderr[-2000:]}")
        lines = json.loads(file.read_text())["figures"]
    for line in lines:
        operation = line["operation"].partition(" (")[0]  # how many rows went differs from run to run
        for part in ("p50", "p99"):
            figure = Figure(
                name=f"{line['database']}.{line['rows']}.{operation}.{part}",
                title=f"{operation}, {part}",
                unit="ms",
                more_is_better=False,
                section=f"{line['database']}, {line['rows']:,} rows",
            )
            yield figure, float(line[f"{part}_ms"])
