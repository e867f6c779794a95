"""ListPartitionReassignments, version 0: no partition is moving from one broker to another.

Tools ask before they change anything (topicctl, sarama, kafkajs, kafka-reassign-partitions). As with Kafka, topics and
partitions that do not exist are not mentioned, and are no error. AlterPartitionReassignments is not offered yet.
"""

from __future__ import annotations

from collections.abc import Mapping

from strandline.server.context import Handler, RequestContext
from strandline.wire.api import ApiKey
from strandline.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


class ReassignmentsHandler:
    """Lists the reassignments that are under way: none, while partitions cannot be reassigned."""

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {ApiKey.LIST_PARTITION_REASSIGNMENTS: self.list_partition_reassignments}

    async def list_partition_reassignments(
        self, request: ListPartitionReassignmentsRequest, context: RequestContext
    ) -> ListPartitionReassignmentsResponse:
        return ListPartitionReassignmentsResponse()
