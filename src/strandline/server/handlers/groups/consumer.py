"""ConsumerGroupHeartbeat 0-1 and ConsumerGroupDescribe 0-1: the consumer protocol of KIP-848.

The rules are in `coordinators.groups.consumer`; here are the versions: in version 0 of the heartbeat the broker may
choose the member id, from 1 on the client does, and it may subscribe by regular expression. From version 1 on a
description says which members still speak the classic protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from strandline.coordinators.groups import (
    DescribedConsumer,
    GroupCoordinator,
    HeartbeatRequest,
    HeartbeatResponse,
    Partitions,
)
from strandline.metadata import Images, MetadataImage
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.groups.membership import client_host
from strandline.server.handlers.groups.modern import described_fields, heartbeat_fields, named_topics
from strandline.wire.api import ApiKey
from strandline.wire.messages import consumer_group_describe as describing
from strandline.wire.messages import consumer_group_heartbeat as beating

_CLIENT_CHOOSES_ID: Final = 1
_CLASSIC_MEMBER: Final = 0
_CONSUMER_MEMBER: Final = 1


class ConsumerGroupsHandler:
    """What members of consumer groups ask, and how administrators see them."""

    def __init__(self, coordinator: GroupCoordinator, images: Images) -> None:
        self._coordinator, self._images = coordinator, images

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {
            ApiKey.CONSUMER_GROUP_HEARTBEAT: self.heartbeat,
            ApiKey.CONSUMER_GROUP_DESCRIBE: self.describe,
        }

    async def heartbeat(
        self, request: beating.ConsumerGroupHeartbeatRequest, context: RequestContext
    ) -> beating.ConsumerGroupHeartbeatResponse:
        """Answers when what was decided is in the log."""
        names = request.subscribed_topic_names
        answer = await self._coordinator.consumer_heartbeat(
            HeartbeatRequest(
                group_id=request.group_id,
                member_id=request.member_id,
                member_epoch=request.member_epoch,
                instance_id=request.instance_id,
                rack_id=request.rack_id,
                rebalance_timeout_ms=request.rebalance_timeout_ms,
                topics=None if names is None else tuple(names),
                regex=request.subscribed_topic_regex,
                assignor=request.server_assignor,
                owned=None if request.topic_partitions is None else _owned(request.topic_partitions),
                client_id=context.client_id or "",
                client_host=client_host(context),
                may_lack_id=context.api_version < _CLIENT_CHOOSES_ID,
            )
        )
        return _heartbeat_response(answer)

    async def describe(
        self, request: describing.ConsumerGroupDescribeRequest, context: RequestContext
    ) -> describing.ConsumerGroupDescribeResponse:
        image = self._images.image
        found = map(self._coordinator.describe_consumer_group, request.group_ids)
        return describing.ConsumerGroupDescribeResponse(
            groups=[
                describing.DescribedGroup(
                    members=[_member(member, image) for member in group.members],
                    **described_fields(group, asks_for_operations=request.include_authorized_operations),
                )
                for group in found
            ]
        )


def _owned(topics: Iterable[beating.TopicPartitions]) -> dict[UUID, frozenset[int]]:
    return {topic.topic_id: frozenset(topic.partitions) for topic in topics if topic.partitions}


def _heartbeat_response(answer: HeartbeatResponse) -> beating.ConsumerGroupHeartbeatResponse:
    assignment = None
    if answer.assignment is not None:
        assignment = beating.Assignment(
            topic_partitions=[
                beating.TopicPartitions(topic_id=topic_id, partitions=sorted(numbers))
                for topic_id, numbers in answer.assignment.items()
            ]
        )
    return beating.ConsumerGroupHeartbeatResponse(assignment=assignment, **heartbeat_fields(answer))


def _member(member: DescribedConsumer, image: MetadataImage) -> describing.Member:
    return describing.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(member.assigned, image),
        target_assignment=_assignment(member.target, image),
        member_type=_CLASSIC_MEMBER if member.is_classic else _CONSUMER_MEMBER,
    )


def _assignment(partitions: Partitions, image: MetadataImage) -> describing.Assignment:
    return describing.Assignment(
        topic_partitions=[
            describing.TopicPartitions(topic_id=topic_id, topic_name=name, partitions=numbers)
            for topic_id, name, numbers in named_topics(partitions, image)
        ]
    )
