"""`strandline fsck`: the object store compared with the control plane."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from typing import Annotated, Final

import typer
from rich.console import Console

from strandline.admin.client import CommandFailed, Json
from strandline.admin.data import Config, DataDir, Set, check_database, check_objects, open_bucket, settings_of
from strandline.admin.output import AsJson, print_json, print_line, print_table
from strandline.admin.text import duration, size
from strandline.clock import SystemClock
from strandline.config import Settings
from strandline.controlplane import SqlControlPlane
from strandline.diskless.fsck import Fsck, FsckOptions, FsckReport, Kind
from strandline.diskless.storage import orphan_grace_ms
from strandline.metadata import MetadataLoader, MetadataStore
from strandline.objects import MARKER_KEY, ObjectStore, ObjectStoreError, prefix_owner
from strandline.sql import SqlError, SqlStore, open_store

EXIT_FINDINGS: Final = 1
EXIT_NOT_RUN: Final = 2

# A file cleaner that is at work comes by this often before a file counts as left behind.
_ROUNDS_MISSED: Final = 10


def fsck(
    deep: Annotated[bool, typer.Option("--deep", help="Read every byte and check every checksum.")] = False,
    repair: Annotated[bool, typer.Option("--repair", help="Delete orphans. Nothing else is ever changed.")] = False,
    grace: Annotated[
        float | None,
        typer.Option(
            "--grace",
            metavar="SECONDS",
            min=0,
            help="Younger objects are no orphans; 0 is safe only while all brokers are stopped. "
            "By default one interval of the broker's own search for orphans.",
            show_default=False,
        ),
    ] = None,
    data_dir: DataDir = None,
    config: Config = None,
    assignments: Set = None,
    as_json: AsJson = False,
) -> None:
    """Compare the objects of diskless topics with the control plane: missing, damaged, orphaned, overdue.

    Takes the settings of a broker. With PostgreSQL brokers may run; an embedded database (SQLite) belongs to its
    broker: stop it first. Exit status 0 if all is well, 1 if something was found, 2 if it could not run.
    Example: strandline fsck --config server.properties --deep
    """
    try:
        settings = settings_of(config, assignments, data_dir)
        check_database(settings)
        check_objects(settings)
        report = asyncio.run(_run(settings, _options(settings, deep=deep, repair=repair, grace=grace)))
    except (CommandFailed, ObjectStoreError, SqlError) as error:
        print(f"strandline: {error}", file=sys.stderr)
        raise typer.Exit(EXIT_NOT_RUN) from error
    if as_json:
        print_json(_as_json(report))
    else:
        _print(report)
    if not report.is_clean:
        raise typer.Exit(EXIT_FINDINGS)


def _options(settings: Settings, *, deep: bool, repair: bool, grace: float | None) -> FsckOptions:
    diskless = settings.diskless
    cleaner_ms = diskless.inkless_file_cleaner_interval_ms
    return FsckOptions(
        grace_ms=orphan_grace_ms(diskless) if grace is None else round(grace * 1000),
        overdue_ms=diskless.inkless_file_cleaner_retention_period_ms + _ROUNDS_MISSED * cleaner_ms,
        deep=deep,
        repair=repair,
        broker_id=settings.cluster.node_id,
    )


async def _run(settings: Settings, options: FsckOptions) -> FsckReport:
    async with open_store(settings.cluster.strandline_metadata_url) as sql, open_bucket(settings) as store:
        await _check_owner(sql, store, is_repaired=options.repair)
        with Console(stderr=True).status("Comparing…") as status:

            def show(what: str, done: int) -> None:
                status.update(f"{done} {what}")

            return await Fsck(SqlControlPlane(sql), store, SystemClock(), options, show).run()


async def _check_owner(sql: SqlStore, store: ObjectStore, *, is_repaired: bool) -> None:
    """The objects of another cluster would all look like orphans."""
    cluster_id = (await MetadataLoader(MetadataStore(sql), SystemClock()).load()).cluster_id
    owner = await prefix_owner(store)
    if owner is None and is_repaired:
        raise CommandFailed(
            f"{store.url} has no object {MARKER_KEY} that says which cluster it belongs to: nothing is deleted there. "
            "A broker that starts writes it."
        )
    if owner not in (None, cluster_id):
        raise CommandFailed(
            f"{store.url} belongs to the cluster {owner}, and the database is that of the cluster {cluster_id}."
        )


def _print(report: FsckReport) -> None:
    counts = Counter(finding.kind for finding in report.findings if not finding.is_repaired)
    repaired = sum(finding.is_repaired for finding in report.findings)
    print_table(
        ["found", "object", "size", "age", "what"],
        [
            (finding.kind, finding.key, size(finding.size), duration(finding.age_ms / 1000), finding.detail)
            for finding in report.findings
        ],
        empty="Nothing is wrong.",
    )
    print_line(
        f"{report.objects} objects ({size(report.object_bytes)}), {report.files} files in the control plane: "
        + ", ".join(f"{counts[kind]} {kind}" for kind in Kind)
        + (f"; {repaired} orphans deleted" if repaired else "")
        + f". {report.young_objects} objects are too young to judge, {report.marked_files} files wait for the cleaner"
        + (f", {report.foreign_objects} objects are none of ours." if report.foreign_objects else ".")
    )
    if counts[Kind.ORPHAN]:
        print_line(
            "Orphans hold nothing that anybody can read. The broker deletes them by itself; --repair does it now."
        )


def _as_json(report: FsckReport) -> Json:
    return {
        "clean": report.is_clean,
        "objects": report.objects,
        "object_bytes": report.object_bytes,
        "files": report.files,
        "young_objects": report.young_objects,
        "marked_files": report.marked_files,
        "foreign_objects": report.foreign_objects,
        "findings": [finding._asdict() for finding in report.findings],
    }
