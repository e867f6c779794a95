"""ShareGroupHeartbeat 1, ShareGroupDescribe 1, DescribeShareGroupOffsets 0-1, AlterShareGroupOffsets 0,
DeleteShareGroupOffsets 0: share groups (KIP-932), their members and their offsets.

The rules are in `coordinators.groups.share`. DescribeShareGroupOffsets 0 has no lag; an unknown offset is -1, without
an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from strandline.coordinators.groups import Partitions
from strandline.coordinators.groups.share.coordinator import ShareGroupCoordinator
from strandline.coordinators.groups.share.values import (
    AlteredShareOffset,
    DescribedShareMember,
    ShareHeartbeatRequest,
    ShareOffset,
)
from strandline.errors import StrandlineError
from strandline.metadata import Images, MetadataImage
from strandline.model import TopicPartition
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import each, outcome
from strandline.server.handlers.groups.membership import client_host
from strandline.server.handlers.groups.modern import described_fields, heartbeat_fields, named_topics
from strandline.wire.api import ApiKey
from strandline.wire.messages import share_group_describe, share_group_heartbeat
from strandline.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from strandline.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from strandline.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from strandline.wire.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from strandline.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

_Offset = TypeVar("_Offset", ShareOffset, AlteredShareOffset)


class ShareGroupsHandler:
    """What members of share groups and their administrators ask."""

    def __init__(self, coordinator: ShareGroupCoordinator, images: Images) -> None:
        self._coordinator, self._images = coordinator, images

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {
            ApiKey.SHARE_GROUP_HEARTBEAT: self.heartbeat,
            ApiKey.SHARE_GROUP_DESCRIBE: self.describe,
            ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: self.describe_offsets,
            ApiKey.ALTER_SHARE_GROUP_OFFSETS: self.alter_offsets,
            ApiKey.DELETE_SHARE_GROUP_OFFSETS: self.delete_offsets,
        }

    async def heartbeat(
        self, request: ShareGroupHeartbeatRequest, context: RequestContext
    ) -> ShareGroupHeartbeatResponse:
        """Answers when what was decided is in the log."""
        topics = request.subscribed_topic_names
        answer = await self._coordinator.heartbeat(
            ShareHeartbeatRequest(
                group_id=request.group_id,
                member_id=request.member_id,
                member_epoch=request.member_epoch,
                rack_id=request.rack_id,
                topics=None if topics is None else tuple(topics),
                client_id=context.client_id or "",
                client_host=client_host(context),
            )
        )
        assignment = None if answer.assignment is None else _assignment(answer.assignment)
        return ShareGroupHeartbeatResponse(assignment=assignment, **heartbeat_fields(answer))

    async def describe(self, request: ShareGroupDescribeRequest, context: RequestContext) -> ShareGroupDescribeResponse:
        image = self._images.image
        found = map(self._coordinator.describe, request.group_ids)
        return ShareGroupDescribeResponse(
            groups=[
                share_group_describe.DescribedGroup(
                    members=[_described_member(member, image) for member in group.members],
                    **described_fields(group, asks_for_operations=request.include_authorized_operations),
                )
                for group in found
            ]
        )

    async def describe_offsets(
        self, request: DescribeShareGroupOffsetsRequest, context: RequestContext
    ) -> DescribeShareGroupOffsetsResponse:
        return DescribeShareGroupOffsetsResponse(groups=await each(map(self._offsets_of, request.groups)))

    async def _offsets_of(self, asked: DescribeShareGroupOffsetsRequestGroup) -> DescribeShareGroupOffsetsResponseGroup:
        partitions = None
        if asked.topics is not None:
            partitions = [TopicPartition(one.topic_name, at) for one in asked.topics for at in one.partitions]
        try:
            found = await self._coordinator.offsets(asked.group_id, partitions)
        except StrandlineError as error:
            code, message = outcome(error)
            return DescribeShareGroupOffsetsResponseGroup(
                group_id=asked.group_id, error_code=code, error_message=message
            )
        return DescribeShareGroupOffsetsResponseGroup(
            group_id=asked.group_id,
            topics=[
                DescribeShareGroupOffsetsResponseTopic(
                    topic_name=name,
                    topic_id=offsets[0].topic_id,
                    partitions=[_described_offset(offset) for offset in offsets],
                )
                for name, offsets in _by_topic(found).items()
            ],
        )

    async def alter_offsets(
        self, request: AlterShareGroupOffsetsRequest, context: RequestContext
    ) -> AlterShareGroupOffsetsResponse:
        wishes = [
            AlteredShareOffset(topic=topic.topic_name, partition=one.partition_index, start_offset=one.start_offset)
            for topic in request.topics
            for one in topic.partitions
        ]
        try:
            results = await self._coordinator.alter_offsets(request.group_id, wishes)
        except StrandlineError as error:
            code, message = outcome(error)
            return AlterShareGroupOffsetsResponse(error_code=code, error_message=message)
        return AlterShareGroupOffsetsResponse(
            responses=[
                AlterShareGroupOffsetsResponseTopic(
                    topic_name=name,
                    topic_id=altered[0].topic_id,
                    partitions=[_altered_offset(one) for one in altered],
                )
                for name, altered in _by_topic(results).items()
            ]
        )

    async def delete_offsets(
        self, request: DeleteShareGroupOffsetsRequest, context: RequestContext
    ) -> DeleteShareGroupOffsetsResponse:
        try:
            deleted = await self._coordinator.delete_offsets(
                request.group_id, [topic.topic_name for topic in request.topics]
            )
        except StrandlineError as error:
            code, message = outcome(error)
            return DeleteShareGroupOffsetsResponse(error_code=code, error_message=message)
        responses = []
        for one in deleted:
            code, message = outcome(one.error)
            responses.append(
                DeleteShareGroupOffsetsResponseTopic(
                    topic_name=one.topic, topic_id=one.topic_id, error_code=code, error_message=message
                )
            )
        return DeleteShareGroupOffsetsResponse(responses=responses)


def _assignment(partitions: Partitions) -> share_group_heartbeat.Assignment:
    return share_group_heartbeat.Assignment(
        topic_partitions=[
            share_group_heartbeat.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions[topic_id]))
            for topic_id in sorted(partitions)
        ]
    )


def _described_member(member: DescribedShareMember, image: MetadataImage) -> share_group_describe.Member:
    return share_group_describe.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        assignment=share_group_describe.Assignment(
            topic_partitions=[
                share_group_describe.TopicPartitions(topic_id=topic_id, topic_name=name, partitions=numbers)
                for topic_id, name, numbers in named_topics(member.assigned, image)
            ]
        ),
    )


def _described_offset(offset: ShareOffset) -> DescribeShareGroupOffsetsResponsePartition:
    code, message = outcome(offset.error)
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=offset.partition,
        start_offset=offset.start_offset,
        leader_epoch=offset.leader_epoch,
        lag=offset.lag,
        error_code=code,
        error_message=message,
    )


def _altered_offset(altered: AlteredShareOffset) -> AlterShareGroupOffsetsResponsePartition:
    code, message = outcome(altered.error)
    return AlterShareGroupOffsetsResponsePartition(
        partition_index=altered.partition, error_code=code, error_message=message
    )


def _by_topic(offsets: Sequence[_Offset]) -> Mapping[str, list[_Offset]]:
    """In the order in which the topics come first."""
    found: dict[str, list[_Offset]] = {}
    for offset in offsets:
        found.setdefault(offset.topic, []).append(offset)
    return found
