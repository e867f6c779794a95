"""DeleteRecords, versions 0 to 2.

Moves the start of each partition's log; -1 stands for the high watermark. Internal topics and `__remote_log_metadata`
get INVALID_TOPIC_EXCEPTION, topics whose cleanup.policy has no `delete` POLICY_VIOLATION. Records of a tiered partition
that are in remote storage can be deleted as well: the next round of the expiration deletes their segments. The answer
waits until every replica has moved its log start, but for those on fenced brokers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strandline.errors import InvalidTopic, StrandlineError
from strandline.hybrid.partitions import Partitions
from strandline.model import REMOTE_LOG_METADATA_TOPIC
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import each, is_internal, outcome
from strandline.wire.api import ApiKey
from strandline.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

NO_LOW_WATERMARK: Final = -1
TO_HIGH_WATERMARK: Final = -1


class RecordsHandler:
    """Deletes the oldest records of partitions."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {ApiKey.DELETE_RECORDS: self.delete_records}

    async def delete_records(self, request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
        """One answer per partition: its low watermark, or why nothing was deleted."""
        return DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(
                    name=topic.name,
                    partitions=await each(
                        self._delete(topic.name, partition, request.timeout_ms) for partition in topic.partitions
                    ),
                )
                for topic in request.topics
            ]
        )

    async def _delete(
        self, topic: str, partition: DeleteRecordsPartition, timeout_ms: int
    ) -> DeleteRecordsPartitionResult:
        try:
            if is_internal(topic) or topic == REMOTE_LOG_METADATA_TOPIC:
                raise InvalidTopic(f"Records of the internal topic {topic} cannot be deleted.")
            served = self._partitions.find(topic, partition.partition_index)
            low_watermark = await served.newest.delete_records(partition.offset)
            replica = served.appends.local_replica
            if replica is not None:
                wanted = low_watermark if partition.offset == TO_HIGH_WATERMARK else partition.offset
                low_watermark = await replica.wait_deleted(wanted, timeout_ms=timeout_ms)
        except StrandlineError as error:
            code, _ = outcome(error)
            return DeleteRecordsPartitionResult(
                partition_index=partition.partition_index, low_watermark=NO_LOW_WATERMARK, error_code=code
            )
        return DeleteRecordsPartitionResult(partition_index=partition.partition_index, low_watermark=low_watermark)
