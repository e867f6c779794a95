"""How large each partition is in the places where this broker keeps records: directories, remote storage, objects."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from strandline.admin_errors import LogDirNotFound, ReplicaNotAvailable
from strandline.errors import KafkaStorageError, StrandlineError, UnsupportedVersion
from strandline.hybrid.diskless.topics import DisklessTopics
from strandline.hybrid.remote.topics import TieredTopics
from strandline.log import LogDirectory, LogManager
from strandline.model import TopicPartition
from strandline.replication import Partition, ReplicaManager

UNKNOWN_SIZE: Final = -1

Wanted: TypeAlias = Collection[tuple[str, int]] | None  # None: all


class PartitionSize(NamedTuple):
    """How large a partition is in one place."""

    topic_partition: TopicPartition
    size: int
    offset_lag: int = 0


@dataclass(frozen=True, slots=True)
class LogDir:
    """One place: a directory by its path, remote storage and the object store by their addresses."""

    name: str
    partitions: Sequence[PartitionSize] = ()
    error: StrandlineError | None = None
    total_bytes: int = UNKNOWN_SIZE
    usable_bytes: int = UNKNOWN_SIZE


class LogDirs:
    """The places of one broker."""

    def __init__(
        self, logs: LogManager, replicas: ReplicaManager, diskless: DisklessTopics, tiered: TieredTopics
    ) -> None:
        self._logs, self._replicas, self._diskless, self._tiered = logs, replicas, diskless, tiered

    async def describe(self, wanted: Wanted) -> list[LogDir]:
        """Every place, with the wanted partitions that it holds."""
        replicas = [p for p in self._replicas.partitions() if wanted is None or p.topic_partition in wanted]
        places = [
            await asyncio.to_thread(_directory, directory, _in_directory(Path(directory.path), replicas))
            for directory in self._logs.directories
        ]
        return places + await self._object_store(wanted) + self._remote_storage(replicas)

    def why_not_in(self, partition: TopicPartition, path: str) -> StrandlineError | None:
        """Why the replica of a partition cannot be in this log directory; None if it is there.

        Logs cannot move from one directory to another yet, so that one that is elsewhere stays there.
        """
        found = next((one for one in self._logs.directories if os.path.abspath(one.path) == path), None)
        if found is None:
            return LogDirNotFound(f"{path} is not one of log.dirs.")
        if found.is_offline:
            return KafkaStorageError(f"The log directory {path} is offline.")
        log = self._logs.get(partition)
        if log is None:
            return ReplicaNotAvailable(f"This broker keeps no log of {partition} in a directory.")
        if log.directory.parent == Path(path):
            return None
        return UnsupportedVersion(f"{partition} stays in {log.directory.parent}: logs cannot move to {path} yet.")

    async def _object_store(self, wanted: Wanted) -> list[LogDir]:
        engine = self._diskless.engine
        if not engine.is_open:
            return []
        try:
            sizes = await self._diskless.sizes(wanted)
        except StrandlineError as error:
            return [LogDir(engine.url, error=error)]
        return [LogDir(engine.url, [PartitionSize(key, size) for key, size in sizes.items()])]

    def _remote_storage(self, replicas: Iterable[Partition]) -> list[LogDir]:
        storage = self._tiered.storage
        if not storage.is_open:
            return []
        sizes = [PartitionSize(p.topic_partition, storage.remote_bytes(p)) for p in replicas if p.log.is_remote]
        return [LogDir(storage.url, sizes)]


def _in_directory(directory: Path, replicas: Iterable[Partition]) -> list[PartitionSize]:
    logs = ((p.topic_partition, p.log) for p in replicas if p.log.directory.parent == directory)
    return [PartitionSize(key, log.size, max(log.high_watermark - log.log_end_offset, 0)) for key, log in logs]


def _directory(directory: LogDirectory, partitions: Sequence[PartitionSize]) -> LogDir:
    """One directory. Asks the file system, which may hang: runs in a thread."""
    path = os.path.abspath(directory.path)
    if directory.is_offline:
        return LogDir(path, error=KafkaStorageError(f"The log directory {path} is offline."))
    total, usable = UNKNOWN_SIZE, UNKNOWN_SIZE
    with suppress(OSError):
        total, _, usable = shutil.disk_usage(path)
    return LogDir(path, partitions, total_bytes=total, usable_bytes=usable)
