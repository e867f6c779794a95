"""DescribeQuorum, versions 0 to 2: the metadata log as partition 0 of the topic `__cluster_metadata`.

Answered by the active controller, which is the leader; `strandline.metadata.controller.quorum` says what stands for
voters. There are no observers and no directory ids. A request for anything but that one partition gets
UNKNOWN_TOPIC_OR_PARTITION for what it names, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strandline.errors import StrandlineError, UnknownTopicOrPartition
from strandline.metadata import Controller, QuorumReplica, QuorumStatus
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import outcome
from strandline.wire.api import ApiKey
from strandline.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)

CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"


class QuorumHandler:
    """Describes who keeps the metadata."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {ApiKey.DESCRIBE_QUORUM: self.describe_quorum}

    async def describe_quorum(self, request: DescribeQuorumRequest, context: RequestContext) -> DescribeQuorumResponse:
        """The leader and the voters."""
        named = [(topic.topic_name, [one.partition_index for one in topic.partitions]) for topic in request.topics]
        if named != [(CLUSTER_METADATA_TOPIC, [0])]:
            return _unknown(request)
        try:
            quorum = self._controller.quorum()
        except StrandlineError as error:
            code, message = outcome(error)
            return DescribeQuorumResponse(error_code=code, error_message=message)
        return DescribeQuorumResponse(
            topics=[ResponseTopicData(topic_name=CLUSTER_METADATA_TOPIC, partitions=[_partition(quorum)])],
            nodes=[
                Node(
                    node_id=node_id,
                    listeners=[Listener(name=one.name, host=one.host, port=one.port) for one in listeners],
                )
                for node_id, listeners in quorum.listeners.items()
            ],
        )


def _partition(quorum: QuorumStatus) -> ResponsePartitionData:
    return ResponsePartitionData(
        leader_id=quorum.leader_id,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.high_watermark,
        current_voters=[_replica(replica) for replica in quorum.voters],
    )


def _replica(replica: QuorumReplica) -> ReplicaState:
    return ReplicaState(
        replica_id=replica.node_id,
        log_end_offset=replica.log_end_offset,
        last_fetch_timestamp=replica.last_fetch_ms,
        last_caught_up_timestamp=replica.last_caught_up_ms,
    )


def _unknown(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    code, message = outcome(UnknownTopicOrPartition(f"Only partition 0 of {CLUSTER_METADATA_TOPIC} has a quorum."))
    return DescribeQuorumResponse(
        topics=[
            ResponseTopicData(
                topic_name=topic.topic_name,
                partitions=[
                    ResponsePartitionData(partition_index=one.partition_index, error_code=code, error_message=message)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
