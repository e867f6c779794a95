"""`strandline wal`: what is in the objects of diskless topics."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from strandline.admin.commands.data import Config, DataDir, Set, check_objects, open_bucket, settings_of
from strandline.admin.commands.dump.wal_rows import describe_bytes, describe_key, read_whole
from strandline.admin.commands.output import AsJson, print_json, print_line, print_table
from strandline.admin.text import size, timestamp
from strandline.client import Cluster, CommandFailed, Json, sentences
from strandline.config import Settings
from strandline.diskless.wal import DamagedObject, keys, read_footer
from strandline.model import uuid_to_text
from strandline.objects import ObjectInfo, ObjectStore, ObjectStoreError

wal_app = typer.Typer(help="Look at the objects of diskless topics.", no_args_is_help=True)


@wal_app.command("dump")
def dump_object(
    name: Annotated[str, typer.Argument(metavar="KEY|FILE", help="The key of an object, or a file with its bytes.")],
    batches: Annotated[bool, typer.Option("--batches", "-B", help="Also the header of every batch.")] = False,
    bootstrap: Annotated[
        str | None,
        typer.Option(
            "--bootstrap",
            "-b",
            "--bootstrap-server",
            metavar="HOST:PORT",
            help="A broker that knows the topics' names.",
            show_default=False,
        ),
    ] = None,
    data_dir: DataDir = None,
    config: Config = None,
    assignments: Set = None,
    as_json: AsJson = False,
) -> None:
    """Print what a WAL object holds: partitions, byte ranges, counts, times. Only reads; brokers may be running.

    With --batches every byte is read and checked. Exit status 1 if something is damaged.
    Example: strandline wal dump wal/2026010112/1-Q3Jhc2hlcyBoYXBwZW4gOg --batches
    """
    with _sentences(name):
        if Path(name).is_file():
            row = asyncio.run(describe_bytes(name, read_whole(Path(name)), with_batches=batches))
        else:
            settings = settings_of(config, assignments, data_dir)
            check_objects(settings)
            row = asyncio.run(_dump(name, settings, with_batches=batches))
    names = _topic_names(bootstrap) if bootstrap is not None else {}
    for extent in row["extents"]:
        extent["topic"] = names.get(extent["topic_id"])
    if as_json:
        print_json(row)
    else:
        _print_object(row)
    problems = [extent["problem"] for extent in row["extents"] if extent.get("problem")]
    if problems:
        raise CommandFailed(f"{name} is damaged: {'; '.join(problem.rstrip('.') for problem in problems)}.")


@wal_app.command("list")
def list_objects(
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="Only the newest N objects.")] = 20,
    data_dir: DataDir = None,
    config: Config = None,
    assignments: Set = None,
    as_json: AsJson = False,
) -> None:
    """Print the newest WAL objects, with what their footers say. Only reads; brokers may be running.

    Example: strandline wal list --data-dir ./strandline-data --limit 5
    """
    with _sentences("the list of objects"):
        settings = settings_of(config, assignments, data_dir)
        check_objects(settings)
        rows = asyncio.run(_list(settings, limit))
    if as_json:
        print_json(rows)
        return
    print_table(
        ["object", "size", "created", "broker", "partitions", "batches", "records", "problem"],
        [
            (
                row["object"],
                size(row["size"]),
                timestamp(row["created_ms"]),
                row["broker_id"],
                row["partitions"],
                row["batches"],
                row["records"],
                row["problem"],
            )
            for row in rows
        ],
        empty="There are no WAL objects.",
    )


async def _dump(name: str, settings: Settings, *, with_batches: bool) -> Json:
    async with open_bucket(settings) as store:
        return await describe_key(store, name, with_batches=with_batches)


async def _list(settings: Settings, limit: int) -> list[Json]:
    async with open_bucket(settings) as store:
        newest: list[tuple[int, ObjectInfo]] = []
        async for item in store.list(keys.PREFIX):
            if keys.parse(item.key) is not None:
                heapq.heappush(newest, (item.modified_ms, item))
                if len(newest) > limit:
                    heapq.heappop(newest)
        return [await _line(store, item) for _, item in sorted(newest)]


async def _line(store: ObjectStore, item: ObjectInfo) -> Json:
    row: Json = {"object": item.key, "size": item.size, "created_ms": item.modified_ms, "broker_id": None}
    row |= {"partitions": None, "batches": None, "records": None, "problem": None}
    try:
        footer = await read_footer(store, item.key, item.size)
    except DamagedObject as error:
        return row | {"problem": str(error)}
    return row | {
        "created_ms": footer.created_ms,
        "broker_id": footer.broker_id,
        "partitions": len({(extent.topic_id, extent.partition) for extent in footer.extents}),
        "batches": sum(extent.batch_count for extent in footer.extents),
        "records": sum(extent.record_count for extent in footer.extents),
    }


def _topic_names(bootstrap: str) -> dict[str, str]:
    """Names by id, of all topics there are now: an object may also hold records of deleted ones."""
    with sentences(), Cluster(bootstrap) as cluster:
        return {uuid_to_text(topic.topic_id): topic.name or "" for topic in cluster.metadata(None).topics}


@contextmanager
def _sentences(name: str) -> Iterator[None]:
    try:
        yield
    except DamagedObject as error:
        raise CommandFailed(f"{name} is damaged: {str(error).rstrip('.')}.") from error
    except ObjectStoreError as error:
        raise CommandFailed(str(error)) from error


def _print_object(row: Json) -> None:
    print_line(
        f"{row['object']}  ({size(row['size'])})  created {timestamp(row['created_ms'])}  by broker {row['broker_id']}"
        f"  of cluster {row['cluster_id']}  format {row['version']}"
    )
    for extent in row["extents"]:
        print_line(
            f"  {extent['topic'] or extent['topic_id']}-{extent['partition']}  bytes {extent['byte_offset']}.."
            f"{extent['byte_offset'] + extent['byte_size'] - 1}  records {extent['record_count']}  "
            f"batches {extent['batch_count']}  {timestamp(extent['min_timestamp'])} to "
            f"{timestamp(extent['max_timestamp'])}  {extent['timestamp_type']}  epoch {extent['leader_epoch']}"
        )
        for batch in extent.get("batches", ()):
            _print_batch(batch)
        if extent.get("problem"):
            print_line(f"  ! {extent['problem']}")


def _print_batch(batch: Json) -> None:
    producer = f"  producer {batch['producer_id']}/{batch['producer_epoch']}" if batch["producer_id"] >= 0 else ""
    sequence = f" from sequence {batch['base_sequence']}" if batch["base_sequence"] >= 0 else ""
    broken = "" if batch["crc_ok"] else "  CHECKSUM DOES NOT FIT"
    print_line(
        f"    {batch['records']} records  {batch['codec']}  {size(batch['size'])} at {batch['position']}"
        f"  {timestamp(batch['max_timestamp'])}{producer}{sequence}{broken}"
    )
