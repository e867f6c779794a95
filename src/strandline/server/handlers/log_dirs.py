"""DescribeLogDirs, versions 1 to 5: how large each replica is, and how much room its directory has.

Null stands for all partitions. A directory that failed is listed with KAFKA_STORAGE_ERROR and nothing in it.
Known gap: replicas do not move between directories, so none is a future one and no directory is cordoned.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Protocol

from strandline.replication.partition import Partition
from strandline.replication.replica_manager import ReplicaManager
from strandline.server.context import Handler, RequestContext
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

UNKNOWN_SIZE: Final = -1


class LogDirectories(Protocol):
    """Who knows the directories: the log manager."""

    @property
    def directories(self) -> Iterable[Path]:
        """All configured directories."""

    @property
    def offline_directories(self) -> Iterable[Path]:
        """Those that failed."""


class LogDirsHandler:
    """Describes log directories."""

    def __init__(self, directories: LogDirectories, replicas: ReplicaManager) -> None:
        self._directories = directories
        self._replicas = replicas

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {ApiKey.DESCRIBE_LOG_DIRS: self.describe_log_dirs}

    async def describe_log_dirs(
        self, request: DescribeLogDirsRequest, context: RequestContext
    ) -> DescribeLogDirsResponse:
        """Every directory, with those of the asked replicas that it holds."""
        wanted = None
        if request.topics is not None:
            wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
        topics = self._topics_by_directory(wanted)
        offline = set(self._directories.offline_directories)
        results = []
        for directory in self._directories.directories:
            if directory in offline:
                results.append(DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=str(directory)))
                continue
            total, usable = await asyncio.to_thread(_room, directory)
            results.append(
                DescribeLogDirsResult(
                    log_dir=str(directory.absolute()),
                    topics=[
                        DescribeLogDirsTopic(name=name, partitions=partitions)
                        for name, partitions in topics.get(directory, {}).items()
                    ],
                    total_bytes=total,
                    usable_bytes=usable,
                )
            )
        return DescribeLogDirsResponse(results=results)

    def _topics_by_directory(
        self, wanted: set[tuple[str, int]] | None
    ) -> dict[Path, dict[str, list[DescribeLogDirsPartition]]]:
        found: dict[Path, dict[str, list[DescribeLogDirsPartition]]] = {}
        for partition in self._replicas.partitions():
            if wanted is None or partition.topic_partition in wanted:
                topics = found.setdefault(partition.log.directory.parent, {})
                topics.setdefault(partition.topic_partition.topic, []).append(_described(partition))
        return found


def _described(partition: Partition) -> DescribeLogDirsPartition:
    log = partition.log
    return DescribeLogDirsPartition(
        partition_index=partition.topic_partition.partition,
        partition_size=log.size,
        offset_lag=max(log.high_watermark - log.log_end_offset, 0),
    )


def _room(directory: Path) -> tuple[int, int]:
    """Total and usable bytes of the file system. A hanging disk must not hold up the event loop: runs in a thread."""
    try:
        usage = shutil.disk_usage(directory)
    except OSError:
        return UNKNOWN_SIZE, UNKNOWN_SIZE
    return usage.total, usage.free
