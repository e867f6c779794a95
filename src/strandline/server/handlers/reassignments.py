"""AlterPartitionReassignments (versions 0 and 1) and ListPartitionReassignments (version 0).

Partitions do not move from one broker to another yet, so none is ever listed. Tools ask before they change anything
(topicctl, sarama, kafkajs, kafka-reassign-partitions); as with Kafka, topics and partitions that do not exist are not
mentioned, and are no error. An assignment to the brokers that have the partition succeeds and changes nothing, a
cancellation gets NO_REASSIGNMENT_IN_PROGRESS, and a real move INVALID_REPLICA_ASSIGNMENT.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from strandline.errors import StrandlineError
from strandline.metadata import Controller, Reassignment
from strandline.model import TopicPartition
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import outcome
from strandline.wire.api import ApiKey
from strandline.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from strandline.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


class ReassignmentsHandler:
    """Lists the reassignments that are under way: none, while partitions cannot move. Refuses others."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {
            ApiKey.ALTER_PARTITION_REASSIGNMENTS: self.alter_partition_reassignments,
            ApiKey.LIST_PARTITION_REASSIGNMENTS: self.list_partition_reassignments,
        }

    async def list_partition_reassignments(
        self, request: ListPartitionReassignmentsRequest, context: RequestContext
    ) -> ListPartitionReassignmentsResponse:
        return ListPartitionReassignmentsResponse()

    async def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest, context: RequestContext
    ) -> AlterPartitionReassignmentsResponse:
        """One answer per partition."""
        wishes = [
            Reassignment(
                partition=TopicPartition(topic.name, one.partition_index),
                replicas=None if one.replicas is None else tuple(one.replicas),
            )
            for topic in request.topics
            for one in topic.partitions
        ]
        may_change_factor, whole = request.allow_replication_factor_change, None
        answers: Sequence[StrandlineError | None]
        try:
            answers = await self._controller.reassign(wishes, may_change_factor=may_change_factor)
        except StrandlineError as error:
            whole, answers = error, [error] * len(wishes)
        code, message = outcome(whole)
        return AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=may_change_factor,
            error_code=code,
            error_message=message,
            responses=_responses(request, answers),
        )


def _responses(
    request: AlterPartitionReassignmentsRequest, answers: Sequence[StrandlineError | None]
) -> list[ReassignableTopicResponse]:
    remaining = iter(answers)
    responses = []
    for topic in request.topics:
        partitions = []
        for one in topic.partitions:
            code, message = outcome(next(remaining))
            partitions.append(
                ReassignablePartitionResponse(
                    partition_index=one.partition_index, error_code=code, error_message=message
                )
            )
        responses.append(ReassignableTopicResponse(name=topic.name, partitions=partitions))
    return responses
