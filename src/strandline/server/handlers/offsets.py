"""ListOffsets, versions 1 to 11, and OffsetForLeaderEpoch, versions 2 to 4.

ListOffsets knows every special timestamp: latest (-1), earliest (-2), maximum (-3, from version 7), earliest local
(-4, from 8), latest tiered (-5, from 9) and earliest pending upload (-6, from 11); in older versions a special value
gets UNSUPPORTED_VERSION, as in Kafka. A partition named twice gets INVALID_REQUEST. Only the leader answers, unless
the debugging consumer (replica id -2) asks. Timestamps are looked for in remote storage first, then in the local log; a
client of version 10 or later says how long it waits for that, others wait remote.list.offsets.request.timeout.ms.

OffsetForLeaderEpoch answers UNDEFINED (-1, -1) for an epoch the log does not know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from strandline.errors import (
    InvalidRequest,
    LeaderNotAvailable,
    OffsetNotAvailable,
    StrandlineError,
    UnsupportedVersion,
)
from strandline.hybrid.partitions import Partitions
from strandline.reads import EARLIEST_LOCAL, EARLIEST_PENDING_UPLOAD, LATEST_TIERED, MAX_TIMESTAMP, FetchIsolation
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import each, outcome
from strandline.wire.api import ApiKey
from strandline.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from strandline.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

CONSUMER: Final = -1
READ_COMMITTED: Final = 1
_FIRST_VERSION_OF: Final = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
_OFFSET_NOT_AVAILABLE: Final = 5


class OffsetsHandler:
    """Finds offsets by time and by leader epoch."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {
            ApiKey.LIST_OFFSETS: self.list_offsets,
            ApiKey.OFFSET_FOR_LEADER_EPOCH: self.offset_for_leader_epoch,
        }

    async def list_offsets(self, request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:
        """One answer per partition."""
        times = Counter(
            (topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions
        )
        isolation = _isolation(request)
        version = context.api_version

        async def answer(topic: str, partition: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
            try:
                if times[topic, partition.partition_index] > 1:
                    raise InvalidRequest("A partition may be named only once.")
                return await self._list_offset(topic, partition, isolation, version, request.timeout_ms)
            except StrandlineError as error:
                code, _ = outcome(_spoken(error, version))
                return ListOffsetsPartitionResponse(partition_index=partition.partition_index, error_code=code)

        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=await each(answer(topic.name, partition) for partition in topic.partitions),
                )
                for topic in request.topics
            ]
        )

    async def _list_offset(
        self, topic: str, partition: ListOffsetsPartition, isolation: FetchIsolation, version: int, timeout_ms: int
    ) -> ListOffsetsPartitionResponse:
        timestamp = partition.timestamp
        if timestamp < EARLIEST_PENDING_UPLOAD or version < _FIRST_VERSION_OF.get(timestamp, 0):
            raise UnsupportedVersion(f"Version {version} of ListOffsets has no special timestamp {timestamp}.")
        found = await self._partitions.find(topic, partition.partition_index).list_offset(
            timestamp,
            isolation=isolation,
            current_leader_epoch=partition.current_leader_epoch,
            timeout_ms=timeout_ms,
        )
        return ListOffsetsPartitionResponse(
            partition_index=partition.partition_index,
            timestamp=found.timestamp,
            offset=found.offset,
            leader_epoch=found.leader_epoch,
        )

    async def offset_for_leader_epoch(
        self, request: OffsetForLeaderEpochRequest, context: RequestContext
    ) -> OffsetForLeaderEpochResponse:
        """One answer per partition."""
        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=await each(self._end_offset(topic.topic, partition) for partition in topic.partitions),
                )
                for topic in request.topics
            ]
        )

    async def _end_offset(self, topic: str, partition: OffsetForLeaderPartition) -> EpochEndOffset:
        try:
            epoch, offset = await self._partitions.find(topic, partition.partition).end_offset_for_epoch(
                partition.leader_epoch, current_leader_epoch=partition.current_leader_epoch
            )
        except StrandlineError as error:
            code, _ = outcome(error)
            return EpochEndOffset(error_code=code, partition=partition.partition)
        return EpochEndOffset(partition=partition.partition, leader_epoch=epoch, end_offset=offset)


def _isolation(request: ListOffsetsRequest) -> FetchIsolation:
    """Replicas and the debugging consumer see the whole log."""
    if request.replica_id != CONSUMER:
        return FetchIsolation.LOG_END
    return FetchIsolation.TXN_COMMITTED if request.isolation_level == READ_COMMITTED else FetchIsolation.HIGH_WATERMARK


def _spoken(error: StrandlineError, version: int) -> StrandlineError:
    """Old consumers do not know OFFSET_NOT_AVAILABLE; they retry on LEADER_NOT_AVAILABLE."""
    if isinstance(error, OffsetNotAvailable) and version < _OFFSET_NOT_AVAILABLE:
        return LeaderNotAvailable(str(error))
    return error
