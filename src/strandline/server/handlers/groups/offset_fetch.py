"""OffsetFetch 1-10: the offsets that groups have committed.

One group up to version 7, several from 8 on; all partitions of a group if no topics are named (from 2 on). From 7 on a
client may ask for stable offsets only. From 9 on a member of a consumer group may name its epoch, and gets
STALE_MEMBER_EPOCH if that is not its current one. From version 10 on topics have ids: an unknown id gets
UNKNOWN_TOPIC_ID, and an offset that was committed for another topic of the same name counts as none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from strandline.coordinators.groups import CommittedOffset, GroupCoordinator
from strandline.errors import StrandlineError
from strandline.metadata import Images, MetadataImage
from strandline.model import NO_OFFSET, ZERO_UUID, TopicPartition
from strandline.server.context import Handler, RequestContext
from strandline.server.handlers.common import outcome
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

_HAS_GROUP_ERROR: Final = 2
_SEVERAL_GROUPS: Final = 8
_BY_TOPIC_ID: Final = 10


@dataclass(slots=True)
class _Wanted:
    """A topic of the request. `name` is None if its id is unknown."""

    name: str | None
    topic_id: UUID
    partitions: Sequence[int]


class OffsetFetchHandler:
    """Reads committed offsets."""

    def __init__(self, coordinator: GroupCoordinator, images: Images) -> None:
        self._coordinator, self._images = coordinator, images

    def routes(self) -> Mapping[ApiKey, Handler]:
        return {ApiKey.OFFSET_FETCH: self.offset_fetch}

    async def offset_fetch(self, request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
        version = context.api_version
        if version < _SEVERAL_GROUPS:
            return await self._fetch_single(request, version)
        if len(request.groups) == 1:  # as most clients ask; without the tasks of a gathering
            only = await self._fetch_group(request.groups[0], request.require_stable, version)
            return OffsetFetchResponse(groups=[only])
        answers = await asyncio.gather(
            *(self._fetch_group(group, request.require_stable, version) for group in request.groups)
        )
        return OffsetFetchResponse(groups=list(answers))

    async def _fetch_single(self, request: OffsetFetchRequest, version: int) -> OffsetFetchResponse:
        topics = None
        if request.topics is not None:
            topics = [
                OffsetFetchRequestTopics(name=t.name, partition_indexes=t.partition_indexes) for t in request.topics
            ]
        group = await self._fetch_group(
            OffsetFetchRequestGroup(group_id=request.group_id, topics=topics), request.require_stable, version
        )
        if group.error_code and version < _HAS_GROUP_ERROR:
            return OffsetFetchResponse(topics=_error_in_partitions(topics or (), group.error_code))
        return OffsetFetchResponse(error_code=group.error_code, topics=_as_single(group.topics))

    async def _fetch_group(
        self, group: OffsetFetchRequestGroup, require_stable: bool, version: int
    ) -> OffsetFetchResponseGroup:
        by_id = version >= _BY_TOPIC_ID
        wanted = None if group.topics is None else _wanted(group.topics, self._images.image, by_id=by_id)
        try:
            answers = await self._coordinator.fetch(
                group.group_id,
                None if wanted is None else _partitions_of(wanted),
                member_id=group.member_id,
                member_epoch=group.member_epoch,
                require_stable=require_stable,
            )
        except StrandlineError as error:
            return OffsetFetchResponseGroup(group_id=group.group_id, error_code=outcome(error)[0])
        if wanted is None:
            topics = _all_topics(answers, self._images.image, by_id=by_id)
        else:
            topics = _asked_topics(wanted, answers)
        return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


def _wanted(topics: Iterable[OffsetFetchRequestTopics], image: MetadataImage, *, by_id: bool) -> list[_Wanted]:
    wanted = []
    for topic in topics:
        name: str | None = topic.name
        if by_id:
            found = image.topics_by_id.get(topic.topic_id)
            name = None if found is None else found.name
        wanted.append(_Wanted(name, topic.topic_id, topic.partition_indexes))
    return wanted


def _partitions_of(wanted: Iterable[_Wanted]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, at) for topic in wanted if topic.name is not None for at in topic.partitions]


def _asked_topics(wanted: Iterable[_Wanted], answers: Iterable[CommittedOffset]) -> list[OffsetFetchResponseTopics]:
    """The answers stand in the order of the request; topics whose id is unknown have none."""
    remaining = iter(answers)
    topics = []
    for topic in wanted:
        if topic.name is None:
            partitions = [_nothing(at, ErrorCode.UNKNOWN_TOPIC_ID) for at in topic.partitions]
        else:
            partitions = [_partition(next(remaining), topic.topic_id) for _ in topic.partitions]
        topics.append(OffsetFetchResponseTopics(name=topic.name or "", topic_id=topic.topic_id, partitions=partitions))
    return topics


def _all_topics(
    answers: Iterable[CommittedOffset], image: MetadataImage, *, by_id: bool
) -> list[OffsetFetchResponseTopics]:
    topics: dict[str, OffsetFetchResponseTopics] = {}
    for answer in answers:
        found = image.topics.get(answer.topic)
        if by_id and found is None:
            continue  # the response could not name a topic without an id
        topic_id = ZERO_UUID if found is None else found.topic_id
        partition = _partition(answer, topic_id if by_id else ZERO_UUID)
        if by_id and partition.committed_offset == NO_OFFSET and not partition.error_code:
            continue  # committed for another topic of the same name
        topic = topics.setdefault(answer.topic, OffsetFetchResponseTopics(name=answer.topic, topic_id=topic_id))
        topic.partitions.append(partition)
    return list(topics.values())


def _partition(answer: CommittedOffset, topic_id: UUID) -> OffsetFetchResponsePartitions:
    if answer.error is not None:
        return _nothing(answer.partition, int(outcome(answer.error)[0]))
    if topic_id is not ZERO_UUID and ZERO_UUID not in (topic_id, answer.topic_id) and topic_id != answer.topic_id:
        return _nothing(answer.partition)
    return OffsetFetchResponsePartitions(
        partition_index=answer.partition,
        committed_offset=answer.offset,
        committed_leader_epoch=answer.leader_epoch,
        metadata=answer.metadata,
    )


def _nothing(partition: int, error_code: int = 0) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(partition_index=partition, committed_offset=NO_OFFSET, error_code=error_code)


def _as_single(topics: Iterable[OffsetFetchResponseTopics]) -> list[OffsetFetchResponseTopic]:
    """Versions with one group have classes of their own for the same fields."""
    return [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=p.partition_index,
                    committed_offset=p.committed_offset,
                    committed_leader_epoch=p.committed_leader_epoch,
                    metadata=p.metadata,
                    error_code=p.error_code,
                )
                for p in topic.partitions
            ],
        )
        for topic in topics
    ]


def _error_in_partitions(topics: Iterable[OffsetFetchRequestTopics], error_code: int) -> list[OffsetFetchResponseTopic]:
    return _as_single(
        OffsetFetchResponseTopics(name=t.name, partitions=[_nothing(at, error_code) for at in t.partition_indexes])
        for t in topics
    )
