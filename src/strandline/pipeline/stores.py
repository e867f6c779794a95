"""The stores of a cluster, opened where a task of the pipeline runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from strandline.clock import SystemChance, SystemClock, SystemIds
from strandline.config import Settings
from strandline.config.remote import BUILT_IN_STORAGE
from strandline.diskless.storage import object_options, object_place
from strandline.errors import InvalidConfig
from strandline.objects import ObjectStore, open_objects, prefix_owner
from strandline.objects.address import parse_address
from strandline.objects.checking import advised
from strandline.objects.marker import REMOTE_STORE_ID_KEY, check_owner
from strandline.remote.plugins import PluginContext, add_class_paths, open_remote_storage
from strandline.remote.ports import RemoteStorageManager
from strandline.remote.storage.objects import ObjectRemoteStorage


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Settings of brokers by name, as in a properties file: those that say where the stores are. Can be pickled."""

    settings: Mapping[str, str] = field(repr=False)
    """Not shown: there may be passwords."""
    cluster_id: str = ""
    """If given, an object store of another cluster is refused, and so is a storage of segments that is no cluster's."""


class Stores(NamedTuple):
    """Where WAL objects and split files are, and where segments are."""

    objects: ObjectStore
    remote: RemoteStorageManager


@asynccontextmanager
async def open_stores(settings: StoreSettings) -> AsyncIterator[Stores]:
    """Both stores, until the block ends. Raises InvalidConfig, RemoteStorageError, ObjectStoreErrors.

    A directory must exist: the brokers have made it, so one that is missing is not the brokers'.
    """
    async with open_object_store(settings) as objects, open_segment_store(settings) as remote:
        yield Stores(objects, remote)


@asynccontextmanager
async def open_object_store(settings: StoreSettings) -> AsyncIterator[ObjectStore]:
    """Only the store of WAL objects and split files."""
    known = Settings.from_properties(dict(settings.settings))
    address = known.diskless.objects_address
    _check_shared("strandline.objects.url", address)
    async with AsyncExitStack() as stack:
        with advised(object_place(known.diskless)):
            options = object_options(known.diskless)
            objects = await stack.enter_async_context(
                open_objects(address, options, clock=SystemClock(), ids=SystemIds(), chance=SystemChance())
            )
            if settings.cluster_id:
                check_owner(objects, await prefix_owner(objects), settings.cluster_id)
        yield objects


@asynccontextmanager
async def open_segment_store(settings: StoreSettings) -> AsyncIterator[RemoteStorageManager]:
    """Only the store of segments."""
    known = Settings.from_properties(dict(settings.settings))
    storage_class = known.tiers.remote_log_storage_manager_class_name
    if storage_class == BUILT_IN_STORAGE:  # another one may mean anything by its settings
        _check_shared("rsm.config.url", known.rsm_config.get("url", ""))
    add_class_paths(known.tiers.remote_log_storage_manager_class_path)
    context = PluginContext(
        data_dir=Path(known.cluster.strandline_data_dir),
        log_dirs=tuple(map(Path, known.log.log_dirs)),
        node_id=known.cluster.node_id,
        cluster_id=settings.cluster_id,
        clock=SystemClock(),
        ids=SystemIds(),
        chance=SystemChance(),
    )
    class_name = known.tiers.remote_log_storage_manager_class_name
    async with open_remote_storage(known.rsm_config, context, class_name=class_name) as remote:
        if settings.cluster_id and storage_class == BUILT_IN_STORAGE:
            await _check_storage(remote.inner)
        yield remote


async def _check_storage(storage: RemoteStorageManager) -> None:
    """Raise InvalidConfig if no broker has opened the storage. Which one it is shows when a segment is committed."""
    assert isinstance(storage, ObjectRemoteStorage)
    if await storage.store_id() is None:
        raise InvalidConfig(
            f"{storage.url} has no object {REMOTE_STORE_ID_KEY}, which brokers write to their remote storage: it is "
            "another one. See rsm.config.url in the properties of the pipeline, and whether a directory is mounted on "
            "every worker."
        )


def _check_shared(setting: str, url: str) -> None:
    """Raise InvalidConfig if only the broker can reach the store."""
    if not url:
        return
    address = parse_address(url)
    if address.scheme == "memory":
        raise InvalidConfig(f"{setting}={url} is in the memory of one process: the pipeline cannot use it.")
    if address.scheme == "file" and not Path(address.path).is_dir():
        raise InvalidConfig(
            f"{setting}={url} is not a directory of this machine. Tasks of the pipeline need the directory that the "
            "brokers use: share it, or name where it is mounted here in a properties file."
        )
