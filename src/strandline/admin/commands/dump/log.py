"""`strandline log dump`: what is on disk, readable for people and for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from strandline.admin.commands.dump.log_files import files_below, is_readable, read_file
from strandline.admin.commands.output import AsJson, print_json_line, print_line
from strandline.admin.text import preview, size, timestamp
from strandline.client import CommandFailed, Json

log_app = typer.Typer(help="Look at the files of partitions.", no_args_is_help=True)


@log_app.callback()
def _log() -> None:
    """Look at the files of partitions."""


@log_app.command("dump")
def dump_log(
    path: Annotated[Path, typer.Argument(metavar="FILE|DIR", help="A file, a partition, or a whole log directory.")],
    records: Annotated[bool, typer.Option("--records", "-r", help="Also the records in the batches.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print batches, indexes, producer snapshots and checkpoints. Only reads; the broker may be running.

    Exit status 1 if a batch is damaged. Example: strandline log dump strandline-data/logs/orders-0 --records
    """
    if not path.exists():
        raise CommandFailed(f"There is no file or directory {path}.")
    damaged: list[str] = []
    for file, rows in groupby(_rows(path, with_records=records), key=lambda pair: pair[0]):
        if not as_json:
            print_line(f"{file}  ({size(file.stat().st_size)})")
        for _, row in rows:
            if row.get("crc_ok") is False:
                damaged.append(f"The batch at position {row['position']} of {file} does not match its checksum")
            if as_json:
                print_json_line({"file": str(file), **row})
            else:
                _print_row(row)
    if damaged:
        raise CommandFailed(f"{'; '.join(damaged)}.")


def _rows(path: Path, *, with_records: bool) -> Iterator[tuple[Path, Json]]:
    for file in _files(path):
        for row in read_file(file, with_records=with_records):
            yield file, row


def _files(path: Path) -> Iterable[Path]:
    if path.is_file():
        return [path]
    found = sorted(file for file in files_below(path) if is_readable(file) and file.is_file())
    if not found:
        raise CommandFailed(f"{path} has no files of a log directory in it.")
    return found


def _print_row(row: Json) -> None:
    if "problem" in row:
        print_line(f"  ! {row['problem']}" + (f" at position {row['position']}" if "position" in row else ""))
    elif "base_offset" in row:
        _print_batch(row)
    else:
        print_line("  " + "  ".join(f"{name} {value}" for name, value in row.items()))


def _print_batch(row: Json) -> None:
    producer = f"  producer {row['producer_id']}/{row['producer_epoch']}" if row["producer_id"] >= 0 else ""
    sequence = f" from sequence {row['base_sequence']}" if row["base_sequence"] >= 0 else ""
    kind = " control" * row["control"] + " transactional" * row["transactional"]
    broken = "" if row["crc_ok"] else "  CHECKSUM DOES NOT FIT"
    print_line(
        f"  offsets {row['base_offset']}..{row['last_offset']}  {row['records']} records  {row['codec']}"
        f"  {size(row['size'])} at {row['position']}  epoch {row['leader_epoch']}"
        f"  {timestamp(row['max_timestamp'])}{producer}{sequence}{kind}{broken}"
    )
    for record in row.get("content", ()):
        _print_record(record)


def _print_record(record: Json) -> None:
    if "control" in record:
        what = record["control"]
    else:
        headers = "".join(f"  {name}={_cut(value)}" for name, value in record.get("headers", ()))
        what = f"{_cut(record['key'])} = {_cut(record['value'])}{headers}"
    print_line(f"    {record['offset']:>8}  {timestamp(record['timestamp'])}  {what}")


def _cut(text: str | None) -> str:
    return preview(None if text is None else text.encode())
