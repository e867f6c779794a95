"""The results as Markdown, between two marks of a page that is otherwise written by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from bench.figure import Figure
from bench.figures import Results
from bench.perftool import Comparison
from bench.report import LIMITS, measured_figures, short_number, target_words

BEGIN: Final = "<!-- results: written by `python -m bench --page` -->"
END: Final = "<!-- end of results -->"


def update_page(page: Path, text: str) -> None:
    """Replace what stands between the marks. Raises ValueError when the page has none."""
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no place for results: it lacks `{BEGIN}` or `{END}`.")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")


def render(
    results: Results,
    comparisons: Sequence[Comparison],
    machine: Mapping[str, str | int | float],
    command: str,
    rounds: int,
) -> str:
    """Command, machine, one table per section, and the check of the load generator."""
    lines = [
        f"`{command}`, {'medians of ' + str(rounds) + ' rounds' if rounds > 1 else 'one round'}, commit"
        f" {machine['commit']}. {machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB,"
        f" Linux {machine['kernel']}, Python {machine['python']}, {machine['java']},"
        f" librdkafka {machine['librdkafka']}; hot modules: {machine['hot_modules']};"
        f" load before the run: {machine['load_before']}.",
        "",
        *_results(results),
    ]
    if comparisons:
        lines += ["### The load generator beside Kafka's perf tools, against one Kafka broker", ""]
        lines += ["| work | perf tool, MB/s | ours, MB/s | ratio |", "|---|---:|---:|---:|"]
        lines += [
            f"| {item.work} | {item.perf_tool:.0f} | {item.ours:.0f} | {item.ratio:.2f}x |" for item in comparisons
        ]
        lines.append("")
    return "\n".join(lines)


def _results(results: Results) -> Iterator[str]:
    section = ""
    for figure in measured_figures(results):
        if figure.section != section:
            if section:
                yield ""
            section = figure.section
            yield from (f"### {section}", "", "| | Strandline | Kafka | unit | ratio | bare loopback | target | |")
            yield "|---|---:|---:|---|---:|---:|---|---|"
        yield _row(results, figure)
    yield ""


def _row(results: Results, figure: Figure) -> str:
    ratio = results.ratio(figure.name)
    cells = (
        figure.title,
        short_number(results.median(figure.name, "strandline")),
        short_number(results.median(figure.name, "kafka")),
        figure.unit,
        "" if ratio is None else f"{ratio:.2f}x",
        short_number(results.median(LIMITS.get(figure.name.partition(".")[0], ""), "loopback")),
        target_words(figure),
        {True: "met", False: "**missed**", None: ""}[results.is_met(figure)],
    )
    return f"| {' | '.join(cells)} |"
