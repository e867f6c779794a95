"""`strandline stores`: which object stores hold what the cluster has written."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, NamedTuple, TypeVar

import typer

from strandline.admin.commands.data import Config, DataDir, Set, check_database, check_objects, open_bucket, settings_of
from strandline.admin.commands.fsck.remote import check_remote_storage, remote_use_of
from strandline.admin.commands.output import AsJson, print_json, print_line, print_table
from strandline.client import CommandFailed
from strandline.clock import SystemClock, SystemIds
from strandline.config import Settings
from strandline.controlplane import RecordedStore, SqlControlPlane, StoreRecords
from strandline.hybrid.diskless.store_check import objects_identity
from strandline.hybrid.store_identity import StoreIdentity
from strandline.metadata import MetadataLoader, MetadataStore
from strandline.objects import ObjectStore, ObjectStoreError, claim_prefix, open_objects
from strandline.objects.store import WrongStore
from strandline.sql import SqlError, StoreInUse, open_store

T = TypeVar("T")

stores_app = typer.Typer(help="Object stores that the cluster has recorded.", no_args_is_help=True)


class Purpose(enum.StrEnum):
    """What a store is for."""

    DISKLESS = "diskless"
    REMOTE = "remote"


class _OpenDatabase(NamedTuple):
    records: StoreRecords
    loader: MetadataLoader


@stores_app.command("list")
def list_stores(
    data_dir: DataDir = None, config: Config = None, assignments: Set = None, as_json: AsJson = False
) -> None:
    """Print which stores are recorded, with their ids. Takes the settings of a broker; brokers may run.

    Example: strandline stores list --config server.properties
    """
    settings = settings_of(config, assignments, data_dir)

    async def read() -> dict[str, RecordedStore]:
        async with _opened(settings, read_only=True) as opened:
            found = {purpose: await opened.records.recorded_store(purpose) for purpose in Purpose}
        return {purpose: store for purpose, store in found.items() if store is not None}

    recorded = _run(read)
    if as_json:
        print_json(
            [{"purpose": purpose, "id": store.store_id, "url": store.url} for purpose, store in recorded.items()]
        )
    else:
        rows = [(purpose, store.store_id, store.url) for purpose, store in recorded.items()]
        empty = "No store is recorded: a broker records it when it opens it for the first time."
        print_table(("STORE", "ID", "RECORDED AT"), rows, empty=empty)


@stores_app.command("accept")
def accept(
    purpose: Annotated[Purpose, typer.Argument(help="Which store: that of diskless topics, or of remote segments.")],
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Accept a store without the objects: the records in them cannot be read any more."
        ),
    ] = False,
    data_dir: DataDir = None,
    config: Config = None,
    assignments: Set = None,
) -> None:
    """Say that the store has moved: from now on it is the one that the settings name.

    Stop the brokers, copy all objects, and run this with the new settings before the brokers start. The store gets an
    id of its own, and brokers that still name the old one refuse it. Refused if the objects that the database names
    are not there. Example: strandline stores accept diskless --config server.properties
    """
    settings = settings_of(config, assignments, data_dir)

    async def work() -> RecordedStore:
        async with (
            _opened(settings, read_only=False) as opened,
            _identified(purpose, settings, opened) as (store, identity),
        ):
            if purpose is Purpose.DISKLESS:
                await claim_prefix(store, opened.loader.image.cluster_id)
            return await identity.accept(store, is_forced=force)

    accepted = _run(work)
    print_line(f"{accepted.url} is the store {accepted.store_id}. Start the brokers with this address.")


def _run(work: Callable[[], Awaitable[T]]) -> T:
    async def awaited() -> T:
        return await work()

    try:
        return asyncio.run(awaited())
    except StoreInUse as error:
        raise CommandFailed(f"{error} Stop the broker first.") from error
    except WrongStore as error:
        raise CommandFailed(f"{error} Copy them first; --force gives up the records in them.") from error
    except (ObjectStoreError, SqlError) as error:
        raise CommandFailed(str(error)) from error


@asynccontextmanager
async def _opened(settings: Settings, *, read_only: bool) -> AsyncIterator[_OpenDatabase]:
    check_database(settings)
    async with open_store(settings.cluster.strandline_metadata_url, read_only=read_only) as sql:
        loader = MetadataLoader(MetadataStore(sql), SystemClock())
        await loader.load()
        yield _OpenDatabase(SqlControlPlane(sql).stores, loader)


@asynccontextmanager
async def _identified(
    purpose: Purpose, settings: Settings, opened: _OpenDatabase
) -> AsyncIterator[tuple[ObjectStore, StoreIdentity]]:
    """The store that the settings name, and what is recorded of it."""
    records, loader = opened
    if purpose is Purpose.DISKLESS:
        check_objects(settings)
        async with open_bucket(settings) as objects:
            yield objects, objects_identity(settings, loader, records, SystemIds())
        return
    found = check_remote_storage(settings)
    use = remote_use_of(found, settings, loader.image, records)
    async with open_objects(found.url, found.options) as objects:
        yield objects, StoreIdentity(use, records, ids=SystemIds())
