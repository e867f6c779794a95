"""The results as a table for people and as JSON for later comparison."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table

from bench.figure import Against, Figure
from bench.figures import FIGURES, Results
from bench.perftool import Comparison

LIMITS: Final[Mapping[str, str]] = {"produce": "loopback.in", "consume": "loopback.out", "drain": "loopback.out"}


def results_table(results: Results, *, title: str) -> Table:
    """One line per figure: medians, ratio, the bare loopback copy where it is the limit, and the verdict."""
    table = Table(title=title, title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    for column in ("Strandline", "Kafka", "unit", "ratio", "loopback", "target", ""):
        table.add_column(column, justify="left" if column in ("unit", "target", "") else "right")
    section = ""
    for figure in measured_figures(results):
        if figure.section != section:
            if section:
                table.add_section()
            section = figure.section
            table.add_row(f"[bold]{section}[/bold]")
        table.add_row(*_row(results, figure))
    return table


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """Our load generator beside Kafka's perf tools."""
    title = "Load generators against the same Kafka broker, MB/s"
    table = Table(title=title, title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    for column in ("Kafka's perf tool", "ours", "ratio"):
        table.add_column(column, justify="right")
    for item in comparisons:
        table.add_row(item.work, f"{item.perf_tool:.0f}", f"{item.ours:.0f}", f"{item.ratio:.2f}x")
    return table


def print_verdict(console: Console, results: Results) -> None:
    """How many targets are met, and which are not."""
    judged = [(figure, results.is_met(figure)) for figure in measured_figures(results)]
    missed = [figure for figure, is_met in judged if is_met is False]
    met = sum(is_met is True for _, is_met in judged)
    if not met and not missed:
        return
    console.print(f"\n[bold]{met} of {met + len(missed)} targets met.[/bold]", highlight=False)
    for figure in missed:
        console.print(
            f"  [red]missed[/red]  {figure.section}: {figure.title} ({target_words(figure)})", highlight=False
        )


def write_json(
    path: Path,
    results: Results,
    comparisons: Iterable[Comparison],
    machine: Mapping[str, str | int | float],
    command: str,
    failures: Sequence[str],
    changes: Mapping[str, object] | None = None,
    outages: Sequence[Mapping[str, object]] | None = None,
) -> None:
    """Everything that was measured, each sample of it.

    `changes` where two commits were compared, `outages` where brokers of a cluster were killed.
    """
    figures = {
        name: {
            "title": FIGURES[name].title if name in FIGURES else name,
            "unit": FIGURES[name].unit if name in FIGURES else "MB/s",
            "samples": samples,
            "median": {system: results.median(name, system) for system in samples},
            "ratio": results.ratio(name),
            "met": results.is_met(FIGURES[name]) if name in FIGURES else None,
        }
        for name, samples in results.samples.items()
    }
    document: dict[str, object] = {
        "command": command,
        "machine": dict(machine),
        "figures": figures,
        "generator_check": [
            {"work": item.work, "perf_tool_mb_s": item.perf_tool, "ours_mb_s": item.ours} for item in comparisons
        ],
        "failures": list(failures),
    }
    if changes is not None:
        document["changes"] = dict(changes)
    if outages is not None:
        document["outages"] = [dict(outage) for outage in outages]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")


def measured_figures(results: Results) -> Iterable[Figure]:
    return (figure for name, figure in FIGURES.items() if name in results.samples)


def _row(results: Results, figure: Figure) -> tuple[str, ...]:
    ratio = results.ratio(figure.name)
    limit = results.median(LIMITS.get(figure.name.partition(".")[0], ""), "loopback")
    return (
        f"  {figure.title}",
        short_number(results.median(figure.name, "strandline")),
        short_number(results.median(figure.name, "kafka")),
        figure.unit,
        "" if ratio is None else f"{ratio:.2f}x",
        short_number(limit),
        target_words(figure),
        {True: "[green]met[/green]", False: "[red]missed[/red]", None: ""}[results.is_met(figure)],
    )


def target_words(figure: Figure) -> str:
    if figure.target is None:
        return ""
    sign = "≥" if figure.more_is_better else "≤"
    if figure.target.against is Against.ANOTHER:
        return f"{sign} {figure.target.bound:g}x of {figure.target.words}"
    unit = "x" if figure.target.against is Against.KAFKA else f" {figure.unit}"
    return f"{sign} {figure.target.bound:g}{unit}"


def short_number(value: float | None) -> str:
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
