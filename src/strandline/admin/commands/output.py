"""What commands print: a table for people, or JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, TypeVar

import typer
from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table
from rich.text import Text

from strandline.client import Cluster, CommandFailed, partition_leaders

_T = TypeVar("_T")

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "-b",
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="A broker of the cluster.",
        envvar="STRANDLINE_BOOTSTRAP",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
DEFAULT_BOOTSTRAP = "127.0.0.1:9092"


def confirm(question: str, *, yes: bool, otherwise: str) -> None:
    """Ask on standard error, unless `yes`. Raises CommandFailed(otherwise) for any answer but yes, also for none."""
    if yes:
        return
    try:
        is_agreed = typer.confirm(question, default=False, err=True)
    except typer.Abort as error:  # Ctrl-C, or an input that has ended; its own word would be "Aborted!"
        sys.stderr.write("\n")
        raise CommandFailed(otherwise) from error
    if not is_agreed:
        raise CommandFailed(otherwise)


def warn_of_missing(what: str, cluster: Cluster, topic: str) -> None:
    """Say on standard error that a list lacks something: the partitions of `topic` that keep it have no leader."""
    absent = [number for (_, number), leader in partition_leaders(cluster, [topic]).items() if leader < 0]
    if absent:
        typer.echo(
            f"strandline: {what} are missing in the list: {len(absent)} partitions of {topic}, which keep some of "
            "them, have no leader at the moment.",
            err=True,
        )


def print_json(value: Any) -> None:
    """One JSON document, indented."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def print_json_line(value: Any) -> None:
    """One JSON document on one line, for outputs that may be long."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def print_line(text: str) -> None:
    """One line for people, printed as it is: not read as markup."""
    console().print(Text(text), soft_wrap=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """A table, or the sentence `empty` if there are no rows. Columns of numbers are set to the right."""
    cells = [[_cell(value) for value in row] for row in rows]
    if not cells:
        print_line(empty)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        is_numeric = all(row[index].lstrip("-").isdigit() or row[index] == "-" for row in cells)
        table.add_column(column, justify="right" if is_numeric else "left", overflow="fold")
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)


def shown_progress(items: Sequence[_T], what: str) -> Iterator[_T]:
    """The items one after the other, with a bar on standard error if that is a terminal. The bar goes at the end."""
    screen = Console(stderr=True)
    yield from track(items, what, console=screen, transient=True, disable=not screen.is_terminal)


def console() -> Console:
    """Standard output; as wide as needed when it is not a terminal, so that nothing is cut in a pipe."""
    made = Console(highlight=False)
    return made if made.is_terminal else Console(highlight=False, width=max(made.width, 200))


def _cell(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ",".join(str(item) for item in value)
        case _:
            return str(value)
