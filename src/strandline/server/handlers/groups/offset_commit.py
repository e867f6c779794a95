"""OffsetCommit 2-10 and OffsetDelete 0: the offsets that groups commit.

Partitions that do not exist are refused one by one; the others go to the coordinator together. From version 10 on
topics have ids; an unknown one gets UNKNOWN_TOPIC_ID. Up to version 4 a client may choose its own retention.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from strandline.coordinators.groups import CommitRequest, GroupCoordinator, PartitionCommit
from strandline.errors import StrandlineError, UnknownTopicId, UnknownTopicOrPartition
from strandline.metadata import Images, MetadataImage, TopicImage
from strandline.model import TopicPartition
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import outcome
from strandline.wire.api import ApiKey
from strandline.wire.errors import error_code_of
from strandline.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from strandline.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

_COMMIT_BY_TOPIC_ID: Final = 10
_COMMIT_REPORTS_UNKNOWN_GROUP: Final = 9


class GroupOffsetsHandler:
    """Stores and deletes committed offsets."""

    def __init__(self, coordinator: GroupCoordinator, images: Images) -> None:
        self._coordinator, self._images = coordinator, images

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {ApiKey.OFFSET_COMMIT: self.offset_commit, ApiKey.OFFSET_DELETE: self.offset_delete}

    async def offset_commit(self, request: OffsetCommitRequest, context: RequestContext) -> OffsetCommitResponse:
        """Answers when the offsets are committed in the log."""
        image = self._images.image
        by_id = context.api_version >= _COMMIT_BY_TOPIC_ID
        # Commits in the order of the request, and for each partition its place among them or its refusal.
        commits: list[PartitionCommit] = []
        places: list[list[int | StrandlineError]] = []
        for topic in request.topics:
            found = _find(image, topic, by_id=by_id)
            places.append(_place(found, topic, commits))
        results = await self._commit(request, context, commits) if commits else []
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=[
                        OffsetCommitResponsePartition(
                            partition_index=partition.partition_index,
                            error_code=_code(results[place] if isinstance(place, int) else place),
                        )
                        for partition, place in zip(topic.partitions, of_topic, strict=True)
                    ],
                )
                for topic, of_topic in zip(request.topics, places, strict=True)
            ]
        )

    async def _commit(
        self, request: OffsetCommitRequest, context: RequestContext, commits: list[PartitionCommit]
    ) -> list[StrandlineError | None]:
        try:
            return await self._coordinator.commit(
                CommitRequest(
                    group_id=request.group_id,
                    member_id=request.member_id,
                    generation_id=request.generation_id_or_member_epoch,
                    group_instance_id=request.group_instance_id,
                    retention_time_ms=request.retention_time_ms,
                    reports_unknown_group=context.api_version >= _COMMIT_REPORTS_UNKNOWN_GROUP,
                    offsets=tuple(commits),
                )
            )
        except StrandlineError as error:
            return [error] * len(commits)

    async def offset_delete(self, request: OffsetDeleteRequest, context: RequestContext) -> OffsetDeleteResponse:
        image = self._images.image
        asked = [TopicPartition(topic.name, p.partition_index) for topic in request.topics for p in topic.partitions]
        known = [partition for partition in asked if image.partition(*partition) is not None]
        try:
            results = await self._coordinator.delete_offsets(request.group_id, known)
        except StrandlineError as error:
            return OffsetDeleteResponse(error_code=outcome(error)[0])
        errors = dict(zip(known, results, strict=True))
        return OffsetDeleteResponse(
            topics=[
                OffsetDeleteResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetDeleteResponsePartition(
                            partition_index=p.partition_index,
                            error_code=outcome(
                                errors.get(TopicPartition(topic.name, p.partition_index), _unknown(topic.name))
                            )[0],
                        )
                        for p in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )


def _find(image: MetadataImage, topic: OffsetCommitRequestTopic, *, by_id: bool) -> TopicImage | StrandlineError:
    if by_id:
        return image.topics_by_id.get(topic.topic_id) or UnknownTopicId(f"No topic has the id {topic.topic_id}.")
    return image.topics.get(topic.name) or _unknown(topic.name)


def _code(refusal: StrandlineError | None) -> int:
    return 0 if refusal is None else error_code_of(refusal)


def _unknown(name: str) -> StrandlineError:
    return UnknownTopicOrPartition(f"Topic {name} has no such partition.")


def _place(
    found: TopicImage | StrandlineError, topic: OffsetCommitRequestTopic, commits: list[PartitionCommit]
) -> list[int | StrandlineError]:
    """Add the partitions that exist to `commits`. For each partition its index there, or its refusal."""
    places: list[int | StrandlineError] = []
    for partition in topic.partitions:
        if isinstance(found, StrandlineError):
            places.append(found)
        elif found.partition(partition.partition_index) is None:
            places.append(_unknown(found.name))
        else:
            places.append(len(commits))
            commits.append(
                PartitionCommit(
                    topic=found.name,
                    partition=partition.partition_index,
                    offset=partition.committed_offset,
                    leader_epoch=partition.committed_leader_epoch,
                    metadata=partition.committed_metadata or "",
                    topic_id=found.topic_id,
                )
            )
    return places
