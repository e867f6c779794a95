"""`strandline fsck`: WAL objects compared with the control plane, remote storage with remote log metadata."""

from __future__ import annotations

import asyncio
import enum
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Final

import typer
from rich.console import Console

from strandline.admin.commands.data import (
    Config,
    DataDir,
    Set,
    check_database,
    check_objects,
    has_objects,
    is_embedded,
    open_bucket,
    settings_of,
)
from strandline.admin.commands.fsck.remote import (
    PluginsInUse,
    check_remote,
    compare_cluster,
    compare_files,
    remote_options,
    remote_use_of,
)
from strandline.admin.commands.fsck.remote_sources import NO_CONVERSION, Conversion, LogsOutOfReach, read_conversion
from strandline.admin.commands.fsck.report import diskless_as_json, print_diskless, print_remote, remote_as_json
from strandline.admin.commands.output import AsJson, print_json, print_line
from strandline.client import CommandFailed, Json
from strandline.clock import SystemClock
from strandline.config import Settings
from strandline.controlplane import RecordedStore, SqlControlPlane, StoreRecords
from strandline.controlplane.store_records import DISKLESS_STORE, REMOTE_STORE
from strandline.diskless.fsck import Fsck, FsckOptions, FsckReport
from strandline.diskless.storage import orphan_grace_ms
from strandline.hybrid.diskless.store_check import is_any_there
from strandline.metadata import MetadataImage, MetadataLoader, MetadataStore
from strandline.model import REMOTE_LOG_METADATA_TOPIC
from strandline.objects import MARKER_KEY, ObjectStore, ObjectStoreError, open_objects, prefix_owner
from strandline.objects.comparing import ComparisonReport, Progress
from strandline.objects.marker import STORE_ID_KEY, store_id
from strandline.remote.fsck import RemoteFsckReport
from strandline.sql import SqlError, SqlStore, StoreInUse, open_store

EXIT_FINDINGS: Final = 1
EXIT_NOT_RUN: Final = 2

# A store without an id is ours if it has any of this many of the oldest and of the newest objects.
_PROOFS: Final = 10
# A marked file is overdue after this many rounds of the file cleaner.
_ROUNDS_MISSED: Final = 10


class FsckTier(enum.StrEnum):
    """What can be compared."""

    DISKLESS = "diskless"
    REMOTE = "remote"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """The options."""

    tier: FsckTier | None
    """None: every tier that exists."""
    bootstrap: str | None
    deep: bool
    repair: bool
    grace: float | None


@dataclass(slots=True)
class _Compared:
    """The reports."""

    diskless: FsckReport | None = None
    remote: RemoteFsckReport | None = None
    left_out: dict[FsckTier, str] = field(default_factory=dict)
    """Tiers that were not compared although they may exist, and why."""

    @property
    def _reports(self) -> list[ComparisonReport]:
        return [report for report in (self.diskless, self.remote) if report is not None]

    @property
    def is_complete(self) -> bool:
        return not self.left_out and all(report.is_complete for report in self._reports)

    @property
    def status(self) -> int:
        """The exit status of the command."""
        if any(report.has_findings for report in self._reports):
            return EXIT_FINDINGS
        return 0 if self.is_complete else EXIT_NOT_RUN


def fsck(
    deep: Annotated[bool, typer.Option("--deep", help="Read every byte and check every checksum.")] = False,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Delete orphans, and have lost split files made anew. Nothing else changes."),
    ] = False,
    grace: Annotated[
        float | None,
        typer.Option(
            "--grace",
            metavar="SECONDS",
            min=0,
            help="The age from which objects count as orphans, and copies and deletions as stuck; 0 is safe only while "
            "all brokers are stopped. By default one interval of the broker's own search for orphans; in remote "
            "storage one hour for orphans, about six hours for copies and deletions.",
            show_default=False,
        ),
    ] = None,
    tier: Annotated[
        FsckTier | None,
        typer.Option("--tier", help="Compare this tier only. By default both, if both exist.", show_default=False),
    ] = None,
    bootstrap: Annotated[
        str | None,
        typer.Option(
            "--bootstrap",
            "--bootstrap-server",
            "-b",
            metavar="HOST:PORT",
            help="A running broker to read remote log metadata from, instead of the log directories of a stopped one.",
            show_default=False,
        ),
    ] = None,
    data_dir: DataDir = None,
    config: Config = None,
    assignments: Set = None,
    as_json: AsJson = False,
) -> None:
    """Compare the objects of diskless and of tiered topics with what is known of them: missing, damaged, orphaned.

    Takes the settings of a broker. Brokers may run, except that --repair needs an embedded database (SQLite) for
    itself: stop the broker first. Remote storage of tiered topics is compared beside running brokers with --bootstrap,
    else with the log directories of a stopped one. Exit status 0 if all is well, 1 if something was found, 2 if
    nothing was found but not everything could be compared. Example: strandline fsck --config server.properties --deep
    """
    request = _Request(tier=tier, bootstrap=bootstrap, deep=deep, repair=repair, grace=grace)
    try:
        compared = asyncio.run(_run(settings_of(config, assignments, data_dir), request))
    except (CommandFailed, ObjectStoreError, SqlError) as error:
        beside = " To compare without deleting anything, leave --repair out. Remote storage can be repaired beside the "
        beside += "broker with --tier remote --bootstrap HOST:PORT."
        print(f"strandline: {error}{beside if isinstance(error, StoreInUse) else ''}", file=sys.stderr)
        raise typer.Exit(EXIT_NOT_RUN) from error
    for left_out, reason in compared.left_out.items():
        print(f"strandline: {left_out} was not compared: {reason}", file=sys.stderr)
    if as_json:
        print_json(_as_json(compared))
    else:
        _print(compared)
    if compared.status:
        raise typer.Exit(compared.status)


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


async def _run(settings: Settings, request: _Request) -> _Compared:
    # An embedded database can be read beside its broker, but not written.
    is_held = is_embedded(settings) and request.repair
    if request.bootstrap is not None and (request.tier is not None or is_held):
        return await _run_without_database(settings, request, request.bootstrap)
    compared = _Compared()
    check_database(settings)
    async with open_store(settings.cluster.strandline_metadata_url, read_only=not request.repair) as sql:
        image = await MetadataLoader(MetadataStore(sql), SystemClock()).load()
        remote = _wants_remote(settings, request, image, compared)
        is_tiered = remote or FsckTier.REMOTE in compared.left_out
        if request.tier is FsckTier.DISKLESS or (
            request.tier is None and await _has_diskless(settings, sql, is_tiered=is_tiered)
        ):
            compared.diskless = await _run_diskless(settings, request, sql, image)
        if remote:
            plane = SqlControlPlane(sql)
            await _check_remote_store(settings, request, image, plane.stores)
            await _run_remote(settings, request, image, await read_conversion(plane.uploads, plane.files), compared)
    if compared.diskless is None and compared.remote is None:
        raise CommandFailed(compared.left_out[FsckTier.REMOTE])
    return compared


async def _run_without_database(settings: Settings, request: _Request, bootstrap: str) -> _Compared:
    if request.tier is FsckTier.DISKLESS:
        raise CommandFailed("--bootstrap is for remote storage: diskless topics are compared with the database itself.")
    compared = _Compared()
    if request.tier is None and has_objects(settings):
        compared.left_out[FsckTier.DISKLESS] = (
            "--repair needs the embedded database for itself. Stop the broker, and leave --bootstrap out."
        )
    options = remote_options(settings, deep=request.deep, repair=request.repair, grace=request.grace)
    with _progress() as show:
        compared.remote = await compare_cluster(settings, bootstrap, NO_CONVERSION, options, show)
    return compared


def _wants_remote(settings: Settings, request: _Request, image: MetadataImage, compared: _Compared) -> bool:
    if request.tier is not None:
        return request.tier is FsckTier.REMOTE
    if not settings.tiers.remote_log_storage_system_enable and REMOTE_LOG_METADATA_TOPIC not in image.topics:
        return False
    try:
        check_remote(settings)
    except PluginsInUse as error:
        compared.left_out[FsckTier.REMOTE] = str(error)
        return False
    return True


async def _has_diskless(settings: Settings, sql: SqlStore, *, is_tiered: bool) -> bool:
    """Whether to compare diskless topics: always, unless there is remote storage and no trace of diskless topics."""
    return not is_tiered or has_objects(settings) or bool(await SqlControlPlane(sql).files.files_after(-1, 1))


async def _run_diskless(settings: Settings, request: _Request, sql: SqlStore, image: MetadataImage) -> FsckReport:
    check_objects(settings)
    options = _options(settings, deep=request.deep, repair=request.repair, grace=request.grace)
    async with open_bucket(settings) as store:
        await _check_owner(image.cluster_id, store, is_repaired=options.repair)
        plane = SqlControlPlane(sql)
        recorded = await plane.stores.recorded_store(DISKLESS_STORE)

        async def may_be_judged() -> bool:
            proofs = await plane.stores.store_proofs(_PROOFS)
            return not options.repair and await is_any_there(store, (*proofs.oldest, *proofs.newest))

        await _check_recorded(recorded, store, STORE_ID_KEY, "strandline.objects.url", may_be_judged)
        with _progress() as show:
            fsck = Fsck(store, options, show, files=plane.files, splits=plane.claims, conversion=plane.uploads)
            return await fsck.run()


async def _run_remote(
    settings: Settings, request: _Request, image: MetadataImage, conversion: Conversion, compared: _Compared
) -> None:
    options = remote_options(settings, deep=request.deep, repair=request.repair, grace=request.grace)
    with _progress() as show:
        if request.bootstrap is not None:
            compared.remote = await compare_cluster(settings, request.bootstrap, conversion, options, show)
            return
        try:
            compared.remote = await compare_files(settings, image, conversion, options, show)
        except LogsOutOfReach as error:
            # Diskless topics need no log directories: their report is shown all the same.
            if compared.diskless is None:
                raise
            compared.left_out[FsckTier.REMOTE] = str(error)


@contextmanager
def _progress() -> Iterator[Progress]:
    with Console(stderr=True).status("Comparing…") as status:
        yield lambda what, done: status.update(f"{done} {what}")


async def _check_remote_store(
    settings: Settings, request: _Request, image: MetadataImage, records: StoreRecords
) -> None:
    storage = check_remote(settings)
    use = remote_use_of(storage, settings, image, records)
    async with open_objects(storage.url, storage.options) as store:

        async def may_be_judged() -> bool:
            return not request.repair and await use.holds_ours(store)

        await _check_recorded(await records.recorded_store(REMOTE_STORE), store, use.key, use.setting, may_be_judged)


async def _check_recorded(
    recorded: RecordedStore | None,
    store: ObjectStore,
    key: str,
    setting: str,
    may_be_judged: Callable[[], Awaitable[bool]],
) -> None:
    """In another store of the same cluster everything would be missing, and what is there would look like orphans.

    `may_be_judged` is asked about a store without an id.
    """
    found = await store_id(store, key)
    if recorded is None or found == recorded.store_id or (found is None and await may_be_judged()):
        return
    here = f"has no object {key}" if found is None else f"is the store {found}"
    raise CommandFailed(
        f"{store.url} {here}, and the database refers to the store {recorded.store_id}, which was recorded at "
        f"{recorded.url}. See {setting}; if it is a directory, see whether its disk is mounted."
    )


async def _check_owner(cluster_id: str, store: ObjectStore, *, is_repaired: bool) -> None:
    """The objects of another cluster would all look like orphans."""
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


def _print(compared: _Compared) -> None:
    is_both = (compared.diskless is not None and compared.remote is not None) or bool(compared.left_out)
    if compared.diskless is not None:
        if is_both:
            print_line("Diskless topics")
        print_diskless(compared.diskless, is_all=compared.is_complete)
    if compared.remote is not None:
        if is_both:
            print_line("\nTiered topics")
        print_remote(compared.remote, is_all=compared.is_complete)


def _as_json(compared: _Compared) -> Json:
    diskless = {} if compared.diskless is None else diskless_as_json(compared.diskless)
    remote = {} if compared.remote is None else {"remote": remote_as_json(compared.remote)}
    return {**diskless, "clean": compared.status == 0, **remote, "left_out": compared.left_out}
