"""DescribeLogDirs, versions 1 to 5: how large each replica is, and how much room its directory has.

Null stands for all partitions. A directory that failed is listed with KAFKA_STORAGE_ERROR and nothing in it. Diskless
partitions are in no directory: those that the metadata gives this broker are listed under the address of the object
store, with the size that the control plane knows. The remote segments of tiered partitions are listed under the address
of remote storage, beside the local ones in a directory. Known gap: replicas do not move between directories, so none is
a future one and no directory is cordoned.
"""

from __future__ import annotations

from collections.abc import Mapping

from strandline.hybrid.log_dirs import LogDir, LogDirs
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import outcome
from strandline.wire.api import ApiKey
from strandline.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


class LogDirsHandler:
    """Describes log directories."""

    def __init__(self, log_dirs: LogDirs) -> None:
        self._log_dirs = log_dirs

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {ApiKey.DESCRIBE_LOG_DIRS: self.describe_log_dirs}

    async def describe_log_dirs(
        self, request: DescribeLogDirsRequest, context: RequestContext
    ) -> DescribeLogDirsResponse:
        """Every directory, with those of the asked replicas that it holds."""
        wanted = None
        if request.topics is not None:
            wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
        return DescribeLogDirsResponse(results=[_result(place) for place in await self._log_dirs.describe(wanted)])


def _result(place: LogDir) -> DescribeLogDirsResult:
    if place.error is not None:
        code, _ = outcome(place.error)
        return DescribeLogDirsResult(error_code=code, log_dir=place.name)
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for key, size, offset_lag in place.partitions:
        described = DescribeLogDirsPartition(partition_index=key.partition, partition_size=size, offset_lag=offset_lag)
        topics.setdefault(key.topic, []).append(described)
    return DescribeLogDirsResult(
        log_dir=place.name,
        topics=[DescribeLogDirsTopic(name=topic, partitions=partitions) for topic, partitions in topics.items()],
        total_bytes=place.total_bytes,
        usable_bytes=place.usable_bytes,
    )
