"""A change judged by its figures: both trees' medians, their ratio, and how much that differs from round to round."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich import box
from rich.table import Table

from bench.figure import Figure
from bench.figures import Results
from bench.report import short_number

NOW: Final = "strandline"
BEFORE: Final = "before"
_ENOUGH_ROUNDS: Final = 3
_COLUMNS: Final = ("before", "now", "unit", "now by before", "smallest", "largest", "")


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of the working tree beside that of the commit it is compared with."""

    figure: Figure
    before: float
    now: float
    ratio: float
    """Of the medians over all rounds."""
    by_round: Sequence[float]
    """Of the medians of each round."""

    @property
    def verdict(self) -> str:
        """`better` or `worse` where all rounds agree; nothing after too few rounds to tell."""
        if len(self.by_round) < _ENOUGH_ROUNDS:
            return ""
        if min(self.by_round) > 1:
            return "better" if self.figure.more_is_better else "worse"
        if max(self.by_round) < 1:
            return "worse" if self.figure.more_is_better else "better"
        return "noise"


def changes(figures: Iterable[Figure], results: Results, rounds: Sequence[Results]) -> Iterator[Change]:
    """Those of the figures that were measured of both trees."""
    for figure in figures:
        before, now = results.median(figure.name, BEFORE), results.median(figure.name, NOW)
        if before and now is not None:
            by_round = [ratio for one in rounds if (ratio := _ratio(one, figure.name)) is not None]
            yield Change(figure, before, now, now / before, by_round)


def changes_table(found: Sequence[Change], *, title: str) -> Table:
    """One line per figure."""
    table = Table(title=title, title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    for column in _COLUMNS:
        table.add_column(column, justify="left" if column in ("unit", "") else "right")
    section = ""
    for change in found:
        if change.figure.section != section:
            if section:
                table.add_section()
            section = change.figure.section
            table.add_row(f"[bold]{section}[/bold]")
        table.add_row(*_row(change))
    return table


def as_json(found: Sequence[Change]) -> dict[str, dict[str, float | str | list[float]]]:
    """The ratios by the name of the figure; the samples are beside them in the file."""
    return {
        change.figure.name: {"ratio": change.ratio, "by_round": [*change.by_round], "verdict": change.verdict}
        for change in found
    }


def _ratio(results: Results, name: str) -> float | None:
    before, now = results.median(name, BEFORE), results.median(name, NOW)
    return now / before if before and now is not None else None


def _row(change: Change) -> tuple[str, ...]:
    colour = {"better": "[green]better[/green]", "worse": "[red]worse[/red]"}
    spread = [f"{pick(change.by_round):.2f}x" if len(change.by_round) > 1 else "" for pick in (min, max)]
    return (
        f"  {change.figure.title}",
        short_number(change.before),
        short_number(change.now),
        change.figure.unit,
        f"{change.ratio:.2f}x",
        *spread,
        colour.get(change.verdict, change.verdict),
    )
