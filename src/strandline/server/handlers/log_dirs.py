"""DescribeLogDirs, versions 1 to 5: how large each replica is, and how much room its directory has.

Null stands for all partitions. A directory that failed is listed with KAFKA_STORAGE_ERROR and nothing in it. Diskless
partitions are in no directory: those that the metadata gives this broker are listed under the address of the object
store, with the size that the control plane knows. What tiered partitions have in remote storage is listed under the
address of that storage, beside what they have in a directory. Known gap: replicas do not move between directories, so
none is a future one and no directory is cordoned.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from strandline.errors import StrandlineError
from strandline.hybrid.diskless_topics import DisklessTopics
from strandline.hybrid.remote_tier import RemoteTier
from strandline.hybrid.tiering import TieredTopics
from strandline.log import LogDirectory, LogManager
from strandline.replication.partition import Partition
from strandline.replication.replica_manager import ReplicaManager
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import outcome
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


class LogDirsHandler:
    """Describes log directories."""

    def __init__(
        self, logs: LogManager, replicas: ReplicaManager, diskless: DisklessTopics, tiered: TieredTopics
    ) -> None:
        self._logs = logs
        self._replicas = replicas
        self._diskless = diskless
        self._tiered = tiered

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
        results = [
            await asyncio.to_thread(_directory, directory, topics.get(Path(directory.path), {}))
            for directory in self._logs.directories
        ]
        if self._diskless.tier is not None:
            results.append(await self._object_store(wanted))
        if self._tiered.tier is not None:
            results.append(self._remote_storage(self._tiered.tier, wanted))
        return DescribeLogDirsResponse(results=results)

    async def _object_store(self, wanted: set[tuple[str, int]] | None) -> DescribeLogDirsResult:
        url = self._diskless.opened_tier.objects.url
        try:
            sizes = await self._diskless.sizes(wanted)
        except StrandlineError as error:
            code, _ = outcome(error)
            return DescribeLogDirsResult(error_code=code, log_dir=url)
        topics: dict[str, list[DescribeLogDirsPartition]] = {}
        for key, size in sizes.items():
            described = DescribeLogDirsPartition(partition_index=key.partition, partition_size=size)
            topics.setdefault(key.topic, []).append(described)
        return _result(url, topics, UNKNOWN_SIZE, UNKNOWN_SIZE)

    def _remote_storage(self, tier: RemoteTier, wanted: set[tuple[str, int]] | None) -> DescribeLogDirsResult:
        topics: dict[str, list[DescribeLogDirsPartition]] = {}
        for partition in self._replicas.partitions():
            key = partition.topic_partition
            if partition.log.is_remote and (wanted is None or key in wanted):
                size = tier.remote_bytes(partition)
                described = DescribeLogDirsPartition(partition_index=key.partition, partition_size=size)
                topics.setdefault(key.topic, []).append(described)
        return _result(tier.storage.url, topics, UNKNOWN_SIZE, UNKNOWN_SIZE)

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


def _directory(directory: LogDirectory, topics: Mapping[str, list[DescribeLogDirsPartition]]) -> DescribeLogDirsResult:
    """One directory. Asks the file system, which may hang: runs in a thread."""
    path = os.path.abspath(directory.path)
    if directory.is_offline:
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=path)
    total, usable = UNKNOWN_SIZE, UNKNOWN_SIZE
    with suppress(OSError):
        total, _, usable = shutil.disk_usage(path)
    return _result(path, topics, total, usable)


def _result(
    name: str, topics: Mapping[str, list[DescribeLogDirsPartition]], total: int, usable: int
) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(
        log_dir=name,
        topics=[DescribeLogDirsTopic(name=topic, partitions=partitions) for topic, partitions in topics.items()],
        total_bytes=total,
        usable_bytes=usable,
    )
