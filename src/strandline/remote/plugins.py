"""Storages and metadata managers that are chosen by class name, and what they are given to start with.

A plugin is a Python class, named as package.module.Class, with

    @classmethod
    async def open(cls, config: Mapping[str, str], context: PluginContext) -> Self

`config` holds the settings behind its prefix, without the prefix.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from strandline.clock import Chance, Clock, Ids
from strandline.config.remote import BUILT_IN_STORAGE
from strandline.errors import InvalidConfig, StrandlineError
from strandline.model import BrokerId
from strandline.remote.ports import RemoteStorageError
from strandline.remote.storage import DeadlineStorage, StorageDeadlines
from strandline.remote.topic_based.topic import MetadataTopic

STORAGE_CLASS_SETTING: Final = "remote.log.storage.manager.class.name"
METADATA_CLASS_SETTING: Final = "remote.log.metadata.manager.class.name"

_STORAGE_METHODS: Final = (
    "open",
    "copy_log_segment_data",
    "fetch_log_segment",
    "fetch_index",
    "delete_log_segment_data",
    "close",
)
_METADATA_METHODS: Final = (
    "open",
    "add_remote_log_segment_metadata",
    "update_remote_log_segment_metadata",
    "put_remote_partition_delete_metadata",
    "remote_log_segment_metadata",
    "next_segment_with_txn_index",
    "highest_offset_for_epoch",
    "leader_epochs_from",
    "list_remote_log_segments",
    "iter_remote_log_segments",
    "remote_log_summary",
    "remote_log_size",
    "is_ready",
    "partition_delete_state",
    "partitions",
    "on_partition_leadership_changes",
    "on_stop_partitions",
    "close",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginContext:
    """What a plugin may know of the broker."""

    data_dir: Path
    """strandline.data.dir: for files that no setting places elsewhere."""
    log_dirs: tuple[Path, ...]
    node_id: BrokerId
    cluster_id: str
    clock: Clock
    ids: Ids
    chance: Chance
    serves_clients: bool = False
    """This process is a broker: what takes processor time for long belongs into another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataPluginContext(PluginContext):
    """The same for a RemoteLogMetadataManager, with the metadata topic of the broker if it wants to use it."""

    metadata_topic: MetadataTopic


def add_class_paths(*paths: str | None) -> None:
    """Let Python find the modules of plugins also in these directories."""
    for path in paths:
        if path and path not in sys.path:
            sys.path.append(path)


async def load_class(setting: str, name: str, methods: Collection[str]) -> type[Any]:
    """The class that a setting names; it must have these methods. Raises InvalidConfig.

    Its module is imported in a thread: importing may take long, and must not hold up clients.
    """
    module_name, _, class_name = name.rpartition(".")
    if not all(part.isidentifier() for part in name.split(".")) or not module_name:
        raise InvalidConfig(f"{setting}={name} names no Python class: write it as package.module.Class.")
    try:
        module = await asyncio.to_thread(importlib.import_module, module_name)
    except ImportError as error:
        hint = " Java classes cannot be used." if name.startswith(("org.", "com.", "io.")) else ""
        raise InvalidConfig(
            f"{setting}={name} cannot be loaded: {error}. The module must be installed where this broker runs.{hint}"
        ) from error
    except Exception as error:  # a module may do anything when it is imported
        raise InvalidConfig(f"{setting}={name} cannot be loaded: its module fails with {error!r}.") from error
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        raise InvalidConfig(f"{setting}={name} cannot be loaded: {module_name} has no class {class_name}.")
    missing = [method for method in methods if not callable(getattr(found, method, None))]
    if missing:
        raise InvalidConfig(f"{setting}={name} cannot be used: the class has no {' and no '.join(missing)}.")
    return found


async def _open(
    setting: str, name: str, methods: Collection[str], config: Mapping[str, str], context: PluginContext
) -> Any:
    chosen = await load_class(setting, name, methods)
    try:
        return await chosen.open(config, context)
    except (StrandlineError, RemoteStorageError):
        raise
    except Exception as error:  # a plugin may raise anything
        raise RemoteStorageError(f"{setting}={name} cannot be opened: {error!r}.") from error


async def open_metadata_plugin(name: str, config: Mapping[str, str], context: PluginContext) -> Any:
    """The RemoteLogMetadataManager of a class. The caller closes it. Raises InvalidConfig, RemoteStorageError."""
    return await _open(METADATA_CLASS_SETTING, name, _METADATA_METHODS, config, context)


@asynccontextmanager
async def open_remote_storage(
    config: Mapping[str, str],
    context: PluginContext,
    *,
    class_name: str = BUILT_IN_STORAGE,
    deadlines: StorageDeadlines | None = None,
) -> AsyncIterator[DeadlineStorage]:
    """The remote storage of this broker with deadlines and counters, closed at the end of the block.

    `config` holds what follows rsm.config., or whatever remote.log.storage.manager.impl.prefix says. Raises
    InvalidConfig; RemoteStorageError if the storage cannot be reached and must be.
    """
    plugin = await _open(STORAGE_CLASS_SETTING, class_name, _STORAGE_METHODS, config, context)
    storage = DeadlineStorage(plugin, deadlines or StorageDeadlines(), clock=context.clock)
    try:
        yield storage
    finally:
        await storage.close()
