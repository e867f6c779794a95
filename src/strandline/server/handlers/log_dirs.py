"""DescribeLogDirs (versions 1 to 5): how large each replica is, and how much room its directory has.
AlterReplicaLogDirs (versions 1 and 2): in which directory a replica is to be.

Null stands for all partitions. A directory that failed is listed with KAFKA_STORAGE_ERROR and nothing in it. Diskless
partitions are in no directory: those that the metadata gives this broker are listed under the address of the object
store, with the size that the control plane knows. The remote segments of tiered partitions are listed under the address
of remote storage, beside the local ones in a directory.

Known gap: replicas do not move between directories, so none is a future one and no directory is cordoned. A request for
the directory that a replica is in succeeds; any other gets UNSUPPORTED_VERSION, and the broker's log says so.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from strandline.admin_errors import ReplicaNotAvailable
from strandline.errors import UnknownTopicOrPartition, UnsupportedVersion
from strandline.hybrid.log_dirs import LogDir, LogDirs
from strandline.metadata import Images
from strandline.model import TopicPartition
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import outcome
from strandline.wire.api import ApiKey
from strandline.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from strandline.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

logger = logging.getLogger(__name__)


class LogDirsHandler:
    """Describes log directories, and says which replica can be where."""

    def __init__(self, log_dirs: LogDirs, images: Images) -> None:
        self._log_dirs, self._images = log_dirs, images

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {
            ApiKey.DESCRIBE_LOG_DIRS: self.describe_log_dirs,
            ApiKey.ALTER_REPLICA_LOG_DIRS: self.alter_replica_log_dirs,
        }

    async def alter_replica_log_dirs(
        self, request: AlterReplicaLogDirsRequest, context: RequestContext
    ) -> AlterReplicaLogDirsResponse:
        """One answer per replica. Of several places for the same one the last counts, as in Kafka."""
        wishes = {
            TopicPartition(topic.name, index): place.path
            for place in request.dirs
            for topic in place.topics
            for index in topic.partitions
        }
        topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
        for partition, path in wishes.items():
            result = AlterReplicaLogDirPartitionResult(
                partition_index=partition.partition, error_code=self._placed(partition, path)
            )
            topics.setdefault(partition.topic, []).append(result)
        return AlterReplicaLogDirsResponse(
            results=[
                AlterReplicaLogDirTopicResult(topic_name=name, partitions=results) for name, results in topics.items()
            ]
        )

    def _placed(self, partition: TopicPartition, path: str) -> int:
        refusal = self._log_dirs.why_not_in(partition, path)
        if isinstance(refusal, UnsupportedVersion):
            logger.warning("a replica cannot be moved to another log directory: %s", refusal)
        elif isinstance(refusal, ReplicaNotAvailable) and self._images.image.partition(*partition) is None:
            refusal = UnknownTopicOrPartition(f"There is no partition {partition}.")
        code, _ = outcome(refusal)
        return code

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
