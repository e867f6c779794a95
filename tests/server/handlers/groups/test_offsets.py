"""OffsetCommit, OffsetFetch and OffsetDelete in every version."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from strandline.model import ZERO_UUID
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from strandline.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.server.handlers.conftest import create_topic
from tests.server.handlers.groups.test_membership import group_id as group_id
from tests.server.handlers.groups.test_membership import stable_member, topic_id_of, versions
from tests.waiting import wait_until

UNKNOWN_ID = UUID(int=12345)


def commit(
    client: Client,
    group_id: str,
    topics: dict[str | UUID, dict[int, int]],
    *,
    version: int = 9,
    metadata: str | None = "m",
    member_id: str = "",
    generation: int = -1,
) -> dict[int, int]:
    """Commit offsets by partition, and give the error codes by partition."""
    request = OffsetCommitRequest(
        group_id=group_id,
        member_id=member_id,
        generation_id_or_member_epoch=generation,
        topics=[
            OffsetCommitRequestTopic(
                name=topic if isinstance(topic, str) else "",
                topic_id=topic if isinstance(topic, UUID) else ZERO_UUID,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offset,
                        committed_leader_epoch=4,
                        committed_metadata=metadata,
                    )
                    for partition, offset in offsets.items()
                ],
            )
            for topic, offsets in topics.items()
        ],
    )
    answer = client.request(ApiKey.OFFSET_COMMIT, request, version=version)
    assert [topic.name or topic.topic_id for topic in answer.topics] == list(topics)
    return {p.partition_index: int(p.error_code) for topic in answer.topics for p in topic.partitions}


def fetch(
    client: Client, group_id: str, topics: dict[str | UUID, list[int]] | None, *, version: int = 9, stable: bool = False
) -> dict[tuple[str | UUID, int], tuple[int, int, str | None, int]]:
    """(offset, leader epoch, metadata, error) by topic and partition."""
    request = OffsetFetchRequest(group_id=group_id, require_stable=stable)
    if version < 8:
        request.topics = (
            None
            if topics is None
            else [OffsetFetchRequestTopic(name=str(t), partition_indexes=p) for t, p in topics.items()]
        )
    else:
        wanted = (
            None
            if topics is None
            else [
                OffsetFetchRequestTopics(
                    name=topic if isinstance(topic, str) else "",
                    topic_id=topic if isinstance(topic, UUID) else ZERO_UUID,
                    partition_indexes=partitions,
                )
                for topic, partitions in topics.items()
            ]
        )
        request.groups = [OffsetFetchRequestGroup(group_id=group_id, topics=wanted)]
    answer = client.request(ApiKey.OFFSET_FETCH, request, version=version)
    if version >= 8:
        (answer,) = answer.groups
        assert answer.group_id == group_id
    assert answer.error_code == ErrorCode.NONE
    return {
        (topic.name if version < 10 else topic.topic_id, p.partition_index): (
            p.committed_offset,
            p.committed_leader_epoch,
            p.metadata,
            p.error_code,
        )
        for topic in answer.topics
        for p in topic.partitions
    }


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_COMMIT))
def test_offsets_are_committed_in_every_version(client: Client, group_id: str, topic: str, version: int) -> None:
    name: str | UUID = topic_id_of(client, topic) if version >= 10 else topic
    assert commit(client, group_id, {name: {0: 5, 1: 6}}, version=version) == {0: 0, 1: 0}
    epoch = 4 if version >= 6 else -1
    assert fetch(client, group_id, {topic: [0, 1, 2]}) == {
        (topic, 0): (5, epoch, "m", 0),
        (topic, 1): (6, epoch, "m", 0),
        (topic, 2): (-1, -1, "", 0),
    }


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_COMMIT))
def test_each_partition_has_its_own_answer(client: Client, group_id: str, topic: str, version: int) -> None:
    known: str | UUID = topic_id_of(client, topic) if version >= 10 else topic
    unknown: str | UUID = UNKNOWN_ID if version >= 10 else "no-such-topic"
    answers = commit(client, group_id, {unknown: {7: 1}, known: {0: 5, 99: 1}}, version=version)
    no_topic = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answers == {7: no_topic, 0: ErrorCode.NONE, 99: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    too_long = commit(client, group_id, {known: {1: 5}}, version=version, metadata="x" * 5000)
    assert too_long == {1: ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert list(fetch(client, group_id, None)) == [(topic, 0)]


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_COMMIT))
def test_strangers_may_not_commit(client: Client, group_id: str, topic: str, version: int) -> None:
    name: str | UUID = topic_id_of(client, topic) if version >= 10 else topic
    absent = commit(client, group_id, {name: {0: 1}}, version=version, member_id="x", generation=1)
    assert absent == {0: ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION}
    member_id = stable_member(client, group_id)
    assert commit(client, group_id, {name: {0: 1}}, version=version) == {0: ErrorCode.UNKNOWN_MEMBER_ID}
    stale = commit(client, group_id, {name: {0: 1}}, version=version, member_id=member_id, generation=9)
    assert stale == {0: ErrorCode.ILLEGAL_GENERATION}
    good = commit(client, group_id, {name: {0: 1}}, version=version, member_id=member_id, generation=1)
    assert good == {0: ErrorCode.NONE}


def test_missing_metadata_is_empty(client: Client, group_id: str, topic: str) -> None:
    commit(client, group_id, {topic: {0: 5}}, metadata=None)
    assert fetch(client, group_id, {topic: [0]})[topic, 0] == (5, 4, "", 0)


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_FETCH))
@pytest.mark.parametrize("stable", [False, True])
def test_offsets_are_fetched_in_every_version(
    client: Client, group_id: str, topic: str, version: int, stable: bool
) -> None:
    name: str | UUID = topic_id_of(client, topic) if version >= 10 else topic
    commit(client, group_id, {topic: {0: 5, 1: 6}})
    epoch = 4 if version >= 5 else -1
    stored = {(name, 0): (5, epoch, "m", 0), (name, 1): (6, epoch, "m", 0)}
    asked = fetch(client, group_id, {name: [0, 1, 2]}, version=version, stable=stable)
    assert asked == {**stored, (name, 2): (-1, -1, "", 0)}
    if version >= 2:
        assert fetch(client, group_id, None, version=version, stable=stable) == stored
        assert fetch(client, "nobody-uses-this-group", None, version=version, stable=stable) == {}
    none = fetch(client, "nobody-uses-this-group", {name: [0]}, version=version, stable=stable)
    assert none == {(name, 0): (-1, -1, "", 0)}


def test_an_unknown_topic_id_is_named(client: Client, group_id: str, topic: str) -> None:
    commit(client, group_id, {topic: {0: 5}})
    topic_id = topic_id_of(client, topic)
    assert fetch(client, group_id, {UNKNOWN_ID: [0, 1], topic_id: [0]}, version=10) == {
        (UNKNOWN_ID, 0): (-1, -1, "", ErrorCode.UNKNOWN_TOPIC_ID),
        (UNKNOWN_ID, 1): (-1, -1, "", ErrorCode.UNKNOWN_TOPIC_ID),
        (topic_id, 0): (5, 4, "m", 0),
    }


def test_several_groups_are_answered_together(client: Client, group_id: str, topic: str) -> None:
    commit(client, group_id, {topic: {0: 5}})
    commit(client, group_id + "-b", {topic: {0: 7}})
    names = [group_id, group_id + "-b", "nobody"]
    groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]
    answer = client.request(ApiKey.OFFSET_FETCH, OffsetFetchRequest(groups=groups), version=9)
    assert [group.group_id for group in answer.groups] == names
    offsets = [[p.committed_offset for t in group.topics for p in t.partitions] for group in answer.groups]
    assert offsets == [[5], [7], []]


def test_offsets_are_deleted(client: Client, group_id: str, topic: str) -> None:
    commit(client, group_id, {topic: {0: 5, 1: 6}})

    def delete(name: str, *partitions: int, group: str = group_id) -> tuple[int, list[int]]:
        rows = [OffsetDeleteRequestPartition(partition_index=partition) for partition in partitions]
        request = OffsetDeleteRequest(group_id=group, topics=[OffsetDeleteRequestTopic(name=name, partitions=rows)])
        answer = client.request(ApiKey.OFFSET_DELETE, request)
        return int(answer.error_code), [int(p.error_code) for t in answer.topics for p in t.partitions]

    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert delete(topic, 0, 2, 99) == (ErrorCode.NONE, [ErrorCode.NONE, ErrorCode.NONE, unknown])
    assert delete("no-such-topic", 0) == (ErrorCode.NONE, [unknown])
    assert delete(topic, 0, group="absent") == (ErrorCode.GROUP_ID_NOT_FOUND, [])
    assert delete(topic, 0, group="") == (ErrorCode.INVALID_GROUP_ID, [])
    assert list(fetch(client, group_id, None)) == [(topic, 1)]


def test_offsets_go_with_their_topic(client: Client, group_id: str, topic: str, new_name: Callable[[], str]) -> None:
    other = create_topic(client, new_name())
    commit(client, group_id, {topic: {0: 5}, other: {0: 6}})
    client.request(ApiKey.DELETE_TOPICS, DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)]))
    wait_until(lambda: list(fetch(client, group_id, None)) == [(other, 0)], what="the offsets of the topic to go")
