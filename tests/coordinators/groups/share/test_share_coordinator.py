"""Requests about share groups with a share coordinator that answers, refuses, or is silent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import UUID

import pytest
import pytest_asyncio

from strandline.config.groups import GroupSettings
from strandline.config.share_groups import ShareGroupSettings
from strandline.coordinators.groups import GroupCoordinator, GroupState
from strandline.coordinators.groups.modern.values import HeartbeatResponse
from strandline.coordinators.groups.share.coordinator import ShareGroupCoordinator
from strandline.coordinators.groups.share.group import ShareGroup
from strandline.coordinators.groups.share.states import ShareProgress
from strandline.coordinators.groups.share.values import AlteredShareOffset, ShareHeartbeatRequest
from strandline.errors import (
    CoordinatorNotAvailable,
    GroupIdNotFound,
    InvalidGroupId,
    NonEmptyGroup,
    NotCoordinator,
    NotLeaderOrFollower,
    RequestTimedOut,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from strandline.metadata.features import SHARE_VERSION
from strandline.model import TopicPartition
from strandline.testing.clock import VirtualClock
from tests.coordinators.groups.conftest import CountedIds
from tests.coordinators.groups.partitioned_topics import PartitionedTopics
from tests.coordinators.groups.share.memory_states import MemoryLogEnds, MemoryShareStates
from tests.coordinators.runtime.memory_log import MemoryCoordinatorLog


class ShareCluster:
    """One broker that coordinates everything."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.log = MemoryCoordinatorLog()
        self.topics = PartitionedTopics({"a": 2, "b": 1})
        self.states, self.ends = MemoryShareStates(), MemoryLogEnds()
        self.settings = replace(ShareGroupSettings(), group_share_assignment_interval_ms=0)
        self.groups = GroupCoordinator(
            self.log,
            self.topics,
            clock=self.clock,
            ids=CountedIds(),
            settings=GroupSettings(),
            share_settings=self.settings,
        )
        self.share = ShareGroupCoordinator(
            self.groups, self.states, self.ends, self.topics, clock=self.clock, settings=self.settings
        )

    def group(self) -> ShareGroup:
        return self.groups.runtime.shard_for("g").share.table.existing("g")

    async def beat(
        self, member: str = "m", *, epoch: int = 0, topics: tuple[str, ...] | None = ("a",)
    ) -> HeartbeatResponse:
        answer = await self.share.heartbeat(
            ShareHeartbeatRequest(group_id="g", member_id=member, member_epoch=epoch, topics=topics)
        )
        await self.clock.settle()
        return answer

    async def emptied(self) -> None:
        """A group that has read both topics, and whose member has left."""
        await self.beat(topics=("a", "b"))
        await self.beat(epoch=-1)

    def id_of(self, name: str) -> UUID:
        return self.topics.id_of(name)


@pytest_asyncio.fixture
async def cluster() -> AsyncIterator[ShareCluster]:
    cluster = ShareCluster()
    async with cluster.groups.running(), cluster.share.running():
        cluster.groups.runtime.elected(0, 0)
        await cluster.groups.runtime.wait_loaded()
        yield cluster


async def test_a_member_is_told_of_partitions_when_they_have_state(cluster: ShareCluster) -> None:
    joined = await cluster.beat()
    assert (joined.error, joined.assignment) == (None, {})
    assert cluster.states.partitions_of("g") == {(cluster.id_of("a"), 0), (cluster.id_of("a"), 1)}
    told = await cluster.beat(epoch=joined.member_epoch, topics=None)
    assert told.assignment == cluster.topics.all_of("a")


async def test_a_changed_assignment_interval_counts_at_once(cluster: ShareCluster) -> None:
    await cluster.beat()
    assert cluster.group().target_epoch == cluster.group().epoch
    slow = replace(cluster.settings, group_share_assignment_interval_ms=15_000)
    cluster.groups.follow_settings(GroupSettings(), slow)
    await cluster.beat("n")
    assert cluster.group().target_epoch < cluster.group().epoch
    cluster.groups.follow_settings(GroupSettings(), cluster.settings)
    await cluster.beat("n")
    assert cluster.group().target_epoch == cluster.group().epoch


async def test_members_do_not_wait_for_a_share_coordinator_that_is_silent(cluster: ShareCluster) -> None:
    cluster.states.hold()
    joined = await cluster.beat()
    assert joined.error is None
    for _ in range(5):
        await cluster.clock.advance(5)
        assert (await cluster.beat(epoch=joined.member_epoch, topics=None)).error is None
    assert cluster.states.calls == 2  # one for each partition: nobody asks again before the first ones have ended
    await cluster.clock.advance(6)
    await cluster.beat(epoch=joined.member_epoch, topics=None)
    cluster.states.release()
    await cluster.clock.settle()
    assert (await cluster.beat(epoch=joined.member_epoch, topics=None)).assignment == cluster.topics.all_of("a")


async def test_a_partition_without_state_does_not_keep_the_others_waiting(cluster: ShareCluster) -> None:
    topic = cluster.id_of("a")
    cluster.states.refused[topic, 1] = CoordinatorNotAvailable("The share coordinator is away.")
    joined = await cluster.beat()
    told = await cluster.beat(epoch=joined.member_epoch, topics=None)
    assert told.assignment == {topic: frozenset({0})}
    cluster.states.refused.clear()
    await cluster.beat(epoch=told.member_epoch, topics=None)
    assert (await cluster.beat(epoch=told.member_epoch, topics=None)).assignment == cluster.topics.all_of("a")


async def test_a_share_coordinator_that_hangs_keeps_its_own_partitions_waiting_alone(cluster: ShareCluster) -> None:
    topic = cluster.id_of("a")
    cluster.states.silent.add((topic, 1))
    joined = await cluster.beat()
    await cluster.clock.advance(1.1)
    told = await cluster.beat(epoch=joined.member_epoch, topics=None)
    assert told.assignment == {topic: frozenset({0})}
    cluster.states.silent.clear()
    await cluster.clock.advance(30)
    await cluster.beat(epoch=told.member_epoch, topics=None)
    assert (await cluster.beat(epoch=told.member_epoch, topics=None)).assignment == cluster.topics.all_of("a")


async def test_without_the_feature_there_are_no_share_groups(cluster: ShareCluster) -> None:
    joined = await cluster.beat()
    image = cluster.topics.image
    off = replace(image, administered=replace(image.administered, feature_levels={SHARE_VERSION: 0}))
    cluster.topics.image = off
    assert isinstance((await cluster.beat(epoch=joined.member_epoch, topics=None)).error, UnsupportedVersion)
    assert isinstance(cluster.share.describe("g").error, UnsupportedVersion)
    with pytest.raises(UnsupportedVersion):
        await cluster.share.offsets("g", None)
    with pytest.raises(UnsupportedVersion):
        await cluster.share.alter_offsets("g", [AlteredShareOffset(topic="a", partition=0, start_offset=0)])
    with pytest.raises(UnsupportedVersion):
        await cluster.share.delete_offsets("g", ["a"])
    cluster.topics.image = image
    assert (await cluster.beat(epoch=joined.member_epoch, topics=None)).error is None


async def test_state_is_created_once_for_a_group_that_is_deleted_meanwhile(cluster: ShareCluster) -> None:
    """Its state is deleted again: nobody would ever do it later."""
    cluster.states.hold()
    await cluster.beat()
    await cluster.beat(epoch=-1)
    assert await cluster.groups.delete_groups(["g"]) == [None]
    cluster.states.release()
    await cluster.clock.settle()
    assert cluster.states.found == {}


async def test_the_log_is_away_when_state_was_created(cluster: ShareCluster) -> None:
    cluster.states.hold()
    joined = await cluster.beat()
    cluster.log.fail_with = RequestTimedOut("The log is away.")
    cluster.states.release()
    await cluster.clock.settle()
    cluster.log.fail_with = None
    await cluster.clock.advance(2)
    told = await cluster.beat(epoch=joined.member_epoch, topics=None)
    assert told.assignment == cluster.topics.all_of("a")


async def test_who_does_not_coordinate_says_so(cluster: ShareCluster) -> None:
    cluster.groups.runtime.resigned(0, 1)
    assert isinstance((await cluster.beat()).error, NotCoordinator)
    assert isinstance(cluster.share.describe("g").error, NotCoordinator)
    with pytest.raises(NotCoordinator):
        await cluster.share.offsets("g", None)


async def test_descriptions(cluster: ShareCluster) -> None:
    assert isinstance(cluster.share.describe("").error, InvalidGroupId)
    assert isinstance(cluster.share.describe("g").error, GroupIdNotFound)
    await cluster.beat()
    await cluster.beat()
    described = cluster.share.describe("g")
    assert (described.error, described.state, described.assignor) == (None, GroupState.STABLE, "simple")
    assert (described.epoch, described.target_epoch) == (3, 3)
    (member,) = described.members
    assert (member.member_id, member.member_epoch, member.topics) == ("m", 3, ("a",))
    assert member.assigned == cluster.topics.all_of("a")


async def test_offsets_and_lag(cluster: ShareCluster) -> None:
    topic = cluster.id_of("a")
    await cluster.beat()
    assert await cluster.share.offsets("absent", None) == []
    cluster.states.progress("g", topic, 0, ShareProgress(start_offset=7, leader_epoch=4, delivery_complete_count=2))
    cluster.ends.ends[TopicPartition("a", 0)] = 30
    first, second = await cluster.share.offsets("g", None)
    assert (first.topic, first.partition, first.start_offset, first.leader_epoch, first.lag) == ("a", 0, 7, 4, 21)
    assert (second.partition, second.start_offset, second.lag, second.error) == (1, -1, -1, None)
    asked = [TopicPartition("gone", 3), TopicPartition("a", 0), TopicPartition("b", 0)]
    gone, known, unread = await cluster.share.offsets("g", asked)
    assert (gone.topic, gone.topic_id.int, gone.start_offset, gone.error) == ("gone", 0, -1, None)
    assert known == first
    assert (unread.topic_id, unread.start_offset, unread.lag) == (cluster.id_of("b"), -1, -1)
    cluster.ends.ends.clear()
    (without_leader,) = await cluster.share.offsets("g", asked[1:2])
    assert isinstance(without_leader.error, NotLeaderOrFollower)
    cluster.states.refused[topic, 0] = CoordinatorNotAvailable("The share coordinator is away.")
    (unknown,) = await cluster.share.offsets("g", asked[1:2])
    assert (unknown.start_offset, unknown.leader_epoch, unknown.error) == (-1, 0, None)


def wish(topic: str, partition: int, offset: int = 5) -> AlteredShareOffset:
    return AlteredShareOffset(topic=topic, partition=partition, start_offset=offset)


async def test_offsets_are_altered_in_a_group_without_members(cluster: ShareCluster) -> None:
    await cluster.beat()
    with pytest.raises(NonEmptyGroup):
        await cluster.share.alter_offsets("g", [wish("a", 0)])
    await cluster.beat(epoch=-1)
    answers = await cluster.share.alter_offsets("g", [wish("a", 0), wish("a", 2), wish("a", -1), wish("gone", 0)])
    assert [type(answer.error) for answer in answers] == [type(None), *[UnknownTopicOrPartition] * 3]
    assert [answer.topic_id for answer in answers] == [*[cluster.id_of("a")] * 3, UUID(int=0)]
    first, second = await cluster.share.offsets("g", None)
    assert (first.start_offset, second.start_offset) == (5, -1)
    assert (await cluster.beat()).assignment == cluster.topics.all_of("a")


async def test_a_group_may_begin_with_its_offsets(cluster: ShareCluster) -> None:
    assert [answer.error for answer in await cluster.share.alter_offsets("g", [wish("b", 0, 9)])] == [None]
    assert cluster.group().listed().state is GroupState.EMPTY
    assert (await cluster.beat(topics=("b",))).assignment == cluster.topics.all_of("b")
    (found,) = await cluster.share.offsets("g", None)
    assert found.start_offset == 9


async def test_wishes_that_come_to_nothing_leave_no_group(cluster: ShareCluster) -> None:
    assert await cluster.share.alter_offsets("g", []) == []
    await cluster.share.alter_offsets("g", [wish("gone", 0)])
    with pytest.raises(InvalidGroupId):
        await cluster.share.alter_offsets("", [wish("a", 0)])
    assert await cluster.groups.list_groups() == []


async def test_an_alteration_that_the_share_coordinator_refuses(cluster: ShareCluster) -> None:
    await cluster.emptied()
    before = cluster.group().states
    refusal = CoordinatorNotAvailable("The share coordinator is away.")
    cluster.states.refused[cluster.id_of("a"), 0] = refusal
    answers = await cluster.share.alter_offsets("g", [wish("a", 0), wish("b", 0)])
    assert [answer.error for answer in answers] == [refusal, None]
    assert cluster.group().states == before
    (b,) = await cluster.share.offsets("g", [TopicPartition("b", 0)])
    assert b.start_offset == 5


async def test_administrators_do_not_wait_for_ever(cluster: ShareCluster) -> None:
    await cluster.emptied()
    cluster.states.hold()
    asked = asyncio.ensure_future(cluster.share.alter_offsets("g", [wish("a", 0)]))
    await cluster.clock.advance(31)
    (answer,) = await asked
    assert isinstance(answer.error, RequestTimedOut)


async def test_offsets_are_deleted_in_a_group_without_members(cluster: ShareCluster) -> None:
    with pytest.raises(GroupIdNotFound):
        await cluster.share.delete_offsets("g", ["a"])
    await cluster.beat(topics=("a", "b"))
    with pytest.raises(NonEmptyGroup):
        await cluster.share.delete_offsets("g", ["a"])
    await cluster.beat(epoch=-1)
    answers = await cluster.share.delete_offsets("g", ["a", "gone"])
    assert [(answer.topic, type(answer.error)) for answer in answers] == [
        ("a", type(None)),
        ("gone", UnknownTopicOrPartition),
    ]
    assert cluster.states.partitions_of("g") == {(cluster.id_of("b"), 0)}
    assert (list(cluster.group().states.initialized), cluster.group().states.deleting) == ([cluster.id_of("b")], {})
    (again,) = await cluster.share.delete_offsets("g", ["a"])
    assert str(again.error) == "There is no offset information to delete."


async def test_a_deletion_of_offsets_that_failed_is_done_later(cluster: ShareCluster) -> None:
    await cluster.emptied()
    topic = cluster.id_of("a")
    refusal = CoordinatorNotAvailable("The share coordinator is away.")
    cluster.states.refused[topic, 1] = refusal
    (answer,) = await cluster.share.delete_offsets("g", ["a"])
    assert (answer.error, cluster.group().states.deleting) == (refusal, {topic: "a"})
    cluster.states.refused.clear()
    (answer,) = await cluster.share.delete_offsets("g", ["a"])
    assert (answer.error, cluster.group().states.deleting) == (None, {})
    assert cluster.states.partitions_of("g") == {(cluster.id_of("b"), 0)}


async def test_a_deletion_of_offsets_that_is_not_recorded_is_not_answered_with_success(cluster: ShareCluster) -> None:
    """The group goes to another broker while the share coordinator is asked."""
    await cluster.emptied()
    cluster.states.hold()
    deletion = asyncio.ensure_future(cluster.share.delete_offsets("g", ["a"]))
    await cluster.clock.settle()
    cluster.groups.runtime.resigned(0)
    cluster.states.release()
    with pytest.raises(NotCoordinator):
        await deletion
    cluster.groups.runtime.elected(0, 1)
    await cluster.groups.runtime.wait_loaded()
    assert list(cluster.group().states.deleting) == [cluster.id_of("a")]


async def test_state_that_the_next_coordinator_may_have_created_is_not_deleted(cluster: ShareCluster) -> None:
    """The group goes to another broker while its deletion waits for its turn."""
    await cluster.emptied()
    cluster.topics.create("c", 1)
    cluster.states.hold()
    await cluster.beat(topics=("c",))
    await cluster.beat(epoch=-1)
    of_offsets = asyncio.ensure_future(cluster.share.delete_offsets("g", ["a"]))
    of_the_group = asyncio.ensure_future(cluster.share.delete_groups(["g"]))
    await cluster.clock.settle()
    cluster.groups.runtime.resigned(0)
    before = cluster.states.calls
    cluster.states.release()
    with pytest.raises(NotCoordinator):
        await of_offsets
    (error,) = await of_the_group
    assert isinstance(error, NotCoordinator)
    assert cluster.states.calls == before


async def test_groups_are_deleted_with_their_state(cluster: ShareCluster) -> None:
    await cluster.beat(topics=("a", "b"))
    (error,) = await cluster.share.delete_groups(["g"])
    assert isinstance(error, NonEmptyGroup)
    assert len(cluster.states.found) == 3
    await cluster.beat(epoch=-1)
    refusal = CoordinatorNotAvailable("The share coordinator is away.")
    cluster.states.refused[cluster.id_of("a"), 1] = refusal
    assert await cluster.share.delete_groups(["g"]) == [refusal]
    assert cluster.group().states.initialized == {}
    cluster.states.refused.clear()
    deleted, absent = await cluster.share.delete_groups(["g", "absent"])
    assert (deleted, type(absent)) == (None, GroupIdNotFound)
    assert (cluster.states.found, await cluster.groups.list_groups()) == ({}, [])


async def test_a_group_is_deleted_right_after_one_of_its_topics(cluster: ShareCluster) -> None:
    """The groups have not been told of the topic yet."""
    await cluster.emptied()
    topic = cluster.id_of("a")
    for partition in (0, 1):
        cluster.states.refused[topic, partition] = UnknownTopicOrPartition("This topic does not exist.")
    cluster.topics.delete("a")
    assert await cluster.share.delete_groups(["g"]) == [None]
    assert cluster.states.partitions_of("g") == {(topic, 0), (topic, 1)}, "which the share coordinator ends by itself"
    assert await cluster.groups.list_groups() == []


async def test_a_topic_that_goes_while_a_group_is_deleted_does_not_keep_it(cluster: ShareCluster) -> None:
    await cluster.emptied()
    for partition in (0, 1):
        refusal = UnknownTopicOrPartition("This topic does not exist.")
        cluster.states.refused[cluster.id_of("a"), partition] = refusal
    cluster.states.hold()
    deletion = asyncio.ensure_future(cluster.share.delete_groups(["g"]))
    await cluster.clock.settle()
    cluster.topics.delete("a")
    cluster.states.release()
    assert await deletion == [None]
    assert await cluster.groups.list_groups() == []


async def test_topics_that_go_take_their_state_along(cluster: ShareCluster) -> None:
    await cluster.emptied()
    delta = cluster.topics.delete("a")
    cluster.groups.apply(delta, cluster.topics.image)
    await cluster.clock.settle()
    assert list(cluster.group().states.initialized) == [cluster.id_of("b")]


async def test_a_member_joins_while_offsets_are_deleted(cluster: ShareCluster) -> None:
    """Its state is created after the old one was deleted, not before."""
    await cluster.emptied()
    cluster.states.hold()
    deletion = asyncio.ensure_future(cluster.share.delete_offsets("g", ["a"]))
    await cluster.clock.settle()
    joined = await cluster.beat()
    cluster.states.release()
    (answer,) = await deletion
    await cluster.clock.settle()
    assert answer.error is None
    assert (cluster.id_of("a"), 0) in cluster.states.partitions_of("g")
    told = await cluster.beat(epoch=joined.member_epoch, topics=None)
    assert told.assignment == cluster.topics.all_of("a")


async def test_a_member_joins_before_offsets_are_deleted(cluster: ShareCluster) -> None:
    """While the state of another topic is still being created, a deletion has to wait; then nobody wants it."""
    await cluster.emptied()
    cluster.topics.create("c", 1)
    cluster.states.hold()
    await cluster.beat(topics=("c",))
    await cluster.beat(epoch=-1)
    deletion = asyncio.ensure_future(cluster.share.delete_offsets("g", ["a"]))
    await cluster.clock.settle()
    await cluster.beat(topics=("a",))
    cluster.states.release()
    (answer,) = await deletion
    await cluster.clock.settle()
    assert isinstance(answer.error, NonEmptyGroup)
    assert (cluster.id_of("a"), 1) in cluster.states.partitions_of("g")
    assert cluster.group().states.deleting == {}


async def test_offsets_that_nobody_tells_are_unknown_after_a_while(cluster: ShareCluster) -> None:
    await cluster.beat()
    cluster.states.hold()
    asked = asyncio.ensure_future(cluster.share.offsets("g", [TopicPartition("a", 0)]))
    await cluster.clock.advance(31)
    (unknown,) = await asked
    assert (unknown.start_offset, unknown.error) == (-1, None)
