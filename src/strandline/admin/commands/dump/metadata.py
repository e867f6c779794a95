"""`strandline metadata`: the metadata log of a cluster, read from its database."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from strandline.admin.commands.output import AsJson, print_json_line, print_line
from strandline.client import CommandFailed, Json
from strandline.metadata import MetadataStore, ScramCredential
from strandline.model import uuid_to_text
from strandline.sql import SqlError, open_store

metadata_app = typer.Typer(help="Look at the metadata log.", no_args_is_help=True)


@metadata_app.callback()
def _metadata() -> None:
    """Look at the metadata log."""


@metadata_app.command("dump")
def dump_metadata(
    data_dir: Annotated[str, typer.Option("--data-dir", metavar="DIR", help="The data directory of a broker.")] = (
        "strandline-data"
    ),
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="The metadata database, instead of --data-dir.")
    ] = None,
    after: Annotated[int, typer.Option("--after", metavar="OFFSET", help="Only records after this offset.")] = -1,
    as_json: AsJson = False,
) -> None:
    """Print the metadata records, oldest first.

    Records before the newest snapshot may have been trimmed. The broker may run meanwhile.
    Example: strandline metadata dump --data-dir ./strandline-data
    """
    if url is None:
        path = Path(data_dir) / "metadata.db"
        if not path.is_file():
            raise CommandFailed(f"There is no metadata database at {path}.")
        url = f"sqlite:///{path}"
    try:
        records = asyncio.run(_read(url, after))
    except SqlError as error:
        raise CommandFailed(str(error)) from error
    for row in records:
        if as_json:
            print_json_line(row)
        else:
            fields = ", ".join(f"{name}={row[name]}" for name in list(row)[2:])
            print_line(f"{row['offset']:>8}  {row['record']:<24} {fields}")


async def _read(url: str, after: int) -> list[Json]:
    rows: list[Json] = []
    async with open_store(url, read_only=True) as sql:
        store = MetadataStore(sql)
        while page := await store.read(after):
            for offset, record in page:
                columns = {column.name: _plain(getattr(record, column.name)) for column in fields(record)}
                rows.append({"offset": offset, "record": type(record).__name__, **columns})
            after = page[-1][0]
    return rows


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(name): _plain(item) for name, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case uuid.UUID():
            return uuid_to_text(value)
        case ScramCredential():  # its keys are secret
            return {"iterations": value.iterations}
        case Enum():
            return value.name
        case _:
            return value
