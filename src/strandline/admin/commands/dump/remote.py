"""`strandline remote dump`: the remote log metadata, record by record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from strandline.admin.commands.dump.remote_records import find_segments, rows_of_cluster, rows_of_file
from strandline.admin.commands.output import AsJson, print_json_line, print_line
from strandline.admin.text import size, timestamp
from strandline.client import CommandFailed, Json

remote_app = typer.Typer(help="Look at remote storage.", no_args_is_help=True)


@remote_app.callback()
def _remote() -> None:
    """Look at remote storage."""


@remote_app.command("dump")
def dump_remote(
    path: Annotated[
        Path | None, typer.Argument(metavar="FILE|DIR", help="A log directory, or a part of one.", show_default=False)
    ] = None,
    bootstrap: Annotated[
        str | None,
        typer.Option(
            "--bootstrap", "-b", "--bootstrap-server", metavar="HOST:PORT", help="Ask a running broker instead."
        ),
    ] = None,
    topic: Annotated[
        str | None, typer.Option("--topic", metavar="TOPIC", help="Only what is about this topic.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the records of __remote_log_metadata: which segments were copied and deleted, by which broker and when.

    Reads the files of a log directory, also while the broker runs, or asks a broker with --bootstrap-server. Exit
    status 1 if a record cannot be read. Example: strandline remote dump strandline-data/logs --topic orders
    """
    if (path is None) == (bootstrap is None):
        raise CommandFailed("Name either a log directory, or a broker with --bootstrap-server.")
    damaged = 0
    for row in _rows(path, bootstrap):
        damaged += "problem" in row
        if topic is None or "problem" in row or row["topic"] == topic:
            print_json_line(row) if as_json else _print_row(row)
    if damaged:
        raise CommandFailed(f"{damaged} of the records cannot be read; brokers skip them.")


def _rows(path: Path | None, bootstrap: str | None) -> Iterator[Json]:
    if bootstrap is not None:
        yield from rows_of_cluster(bootstrap)
    elif path is not None:
        try:
            for file in find_segments(path):
                yield from rows_of_file(file)
        except OSError as error:
            raise CommandFailed(f"{path} cannot be read: {error.strerror}.") from error


def _print_row(row: Json) -> None:
    place = f"{row.get('metadata_partition', '-')}/{row.get('offset', '-')}"
    if "problem" in row:
        print_line(f"{place:>8}  ! {row['problem']}")
        return
    what = f"{row['topic']}-{row['partition']}  {row['state']}"
    if "segment_id" in row:
        what += f"  {row['segment_id']}"
    if "start_offset" in row:
        epochs = ",".join(f"{epoch}@{start}" for epoch, start in row["leader_epochs"].items())
        index = "" if row["txn_index_empty"] else "  with aborted transactions"
        what += f"  offsets {row['start_offset']}..{row['end_offset']}  {size(row['size'])}  epochs {epochs}{index}"
    if row.get("custom_metadata") is not None:
        what += f"  custom metadata 0x{row['custom_metadata']}"
    print_line(f"{place:>8}  {timestamp(row['event_timestamp'])}  broker {row['broker_id']}  {what}")
