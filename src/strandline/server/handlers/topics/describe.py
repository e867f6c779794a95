"""DescribeTopicPartitions, version 0: topics page by page, in the order of their names.

The page ends after `response_partition_limit` partitions or max.request.partition.size.limit, whichever is less; the
cursor says where the next one starts. A topic that follows the cursor's name is whole; topics before it are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strandline.errors import InvalidRequest, StrandlineError
from strandline.metadata import Images, MetadataImage, TopicImage
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import TOPIC_OPERATIONS, ServedTopics, is_internal, outcome, unknown_topic
from strandline.server.handlers.topics.view import broker_endpoints, view_partition
from strandline.wire.api import ApiKey
from strandline.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

MAX_PARTITIONS: Final = 2000


class TopicPartitionsHandler:
    """Describes topics in pages."""

    def __init__(self, images: Images, served: ServedTopics, max_partitions: int = MAX_PARTITIONS) -> None:
        self._images = images
        self._served = served
        self._max_partitions = max_partitions

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {ApiKey.DESCRIBE_TOPIC_PARTITIONS: self.describe_topic_partitions}

    async def describe_topic_partitions(
        self, request: DescribeTopicPartitionsRequest, context: RequestContext
    ) -> DescribeTopicPartitionsResponse:
        """One page. An impossible cursor, or a limit below 1, gets INVALID_REQUEST for each topic named."""
        image = self._images.image
        cursor = request.cursor
        if cursor is not None and cursor.partition_index < 0:
            return _refused(
                request, InvalidRequest(f"DescribeTopicPartitionsRequest cursor partition must be valid: {cursor}")
            )
        names = sorted({topic.name for topic in request.topics} if request.topics else image.topics)
        if cursor is not None:
            names = [name for name in names if name >= cursor.topic_name]
        room = max(1, min(self._max_partitions, request.response_partition_limit))
        reachable = frozenset(broker.node_id for broker, _ in broker_endpoints(image, context.listener))
        response = DescribeTopicPartitionsResponse()
        for name in names:
            topic = image.topics.get(name)
            if topic is None:
                # A page may begin at a topic that was deleted after the last one; then it is simply not there.
                if request.topics:
                    response.topics.append(_failed(name, unknown_topic(name)))
                continue
            first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
            if room == 0:
                response.next_cursor = Cursor(topic_name=name, partition_index=first)
                break
            described = _described(image, self._served.as_served(topic, reachable), first, room, reachable)
            response.topics.append(described)
            room -= len(described.partitions)
            if first + len(described.partitions) < len(topic.partitions):
                response.next_cursor = Cursor(topic_name=name, partition_index=first + len(described.partitions))
                break
        return response


def _described(
    image: MetadataImage, topic: TopicImage, first: int, room: int, reachable: frozenset[int]
) -> DescribeTopicPartitionsResponseTopic:
    partitions = []
    for partition in topic.partitions[first : first + room]:
        view = view_partition(partition, image.brokers, reachable)
        partitions.append(
            DescribeTopicPartitionsResponsePartition(
                error_code=view.error,
                partition_index=partition.partition,
                leader_id=view.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
                eligible_leader_replicas=list(partition.elr),
                last_known_elr=list(partition.last_known_elr),
                offline_replicas=list(view.offline),
            )
        )
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=partitions,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _failed(name: str, error: StrandlineError) -> DescribeTopicPartitionsResponseTopic:
    code, _ = outcome(error)
    return DescribeTopicPartitionsResponseTopic(error_code=code, name=name, is_internal=is_internal(name))


def _refused(request: DescribeTopicPartitionsRequest, error: StrandlineError) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(topics=[_failed(topic.name, error) for topic in request.topics])
