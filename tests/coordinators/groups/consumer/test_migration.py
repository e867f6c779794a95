"""Groups that move between the classic and the consumer protocol, and classic members of consumer groups."""

from __future__ import annotations

from typing import Any

import pytest

from strandline.coordinators.groups import (
    CommitRequest,
    GroupState,
    GroupType,
    HeartbeatRequest,
    JoinResponse,
    MemberProtocol,
    PartitionCommit,
    SyncRequest,
)
from strandline.coordinators.groups.classic_group import ClassicGroup
from strandline.coordinators.groups.consumer.embedded import read_embedded_assignment, write_embedded_assignment
from strandline.coordinators.groups.consumer.group import ConsumerGroup
from strandline.errors import (
    FencedInstanceId,
    GroupIdNotFound,
    IllegalGeneration,
    InconsistentGroupProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from strandline.model import TopicPartition
from tests.coordinators.groups.consumer.consumer_world import state_of
from tests.coordinators.groups.consumer.shard_world import Answers, ShardWorld
from tests.coordinators.groups.members import join_request, subscription


@pytest.fixture
def world() -> ShardWorld:
    return ShardWorld()


def classic_group(world: ShardWorld, *members: str, **fields: Any) -> dict[str, int]:
    """A stable classic group; the generation of each member. Each has the partitions that its place says."""
    waiting = [world.classic_join("", **fields) for _ in members]
    world.let_time_pass(0.1)
    responses: list[JoinResponse] = [answers.only for answers in waiting]
    leader = next(response for response in responses if response.member_id == response.leader)
    ids = [response.member_id for response in responses]
    share = 4 // len(ids)
    assignments = {
        member_id: write_embedded_assignment(0, {"orders": frozenset(range(at * share, (at + 1) * share))})
        for at, member_id in enumerate(ids)
    }
    followers = [Answers() for _ in ids[1:]]
    for member_id, answers in zip(ids[1:], followers, strict=True):
        request = SyncRequest(group_id="g", member_id=member_id, generation_id=leader.generation_id)
        world.shard.memberships.sync(request, answers)
    world.classic_sync(leader.member_id, leader.generation_id, assignments=assignments)
    assert world.classic.state is GroupState.STABLE
    return {response.member_id: response.generation_id for response in responses}


def check_replayed(world: ShardWorld) -> None:
    again, group = world.replayed().groups["g"], world.shard.groups["g"]
    assert type(again) is type(group)
    if isinstance(again, ConsumerGroup):
        assert state_of(again) == state_of(world.group)


# Groups without members


def test_an_empty_classic_group_becomes_a_consumer_group(world: ShardWorld) -> None:
    ((member_id, _),) = classic_group(world, "c1").items()
    world.classic_leave(member_id)
    assert world.classic.state is GroupState.EMPTY
    assert world.join("m1", "orders").member_epoch == 2
    check_replayed(world)


def test_an_empty_consumer_group_becomes_a_classic_group(world: ShardWorld) -> None:
    world.join("m1", "orders")
    world.leave("m1")
    assert world.state() is GroupState.EMPTY
    unknown = world.joined("m1")
    assert isinstance(unknown.error, UnknownMemberId)
    classic_group(world, "c1")
    assert world.shard.groups["g"].group_type is GroupType.CLASSIC
    check_replayed(world)


# Up


def test_a_classic_group_is_upgraded_while_its_members_work(world: ShardWorld) -> None:
    (first, generation), (second, _) = classic_group(world, "c1", "c2").items()
    joined = world.join("m1", "orders")
    assert world.group.epoch == joined.member_epoch == generation + 1
    assert joined.assignment == {}, "the others have everything"
    assert world.assigned(first) == world.topics.partitions(orders={0, 1})
    assert world.assigned(second) == world.topics.partitions(orders={2, 3})
    check_replayed(world)
    with pytest.raises(RebalanceInProgress):
        world.classic_heartbeat(first, generation)
    with pytest.raises(RebalanceInProgress):
        world.classic_heartbeat(second, generation)
    # Members of the eager protocol give up everything when they rejoin, and get what they are to have.
    for member_id in (first, second):
        rejoined = world.joined(member_id)
        assert rejoined.error is None
        assert (rejoined.generation_id, rejoined.leader, rejoined.members) == (generation + 1, "", ())
        assert rejoined.protocol_name == "range"
        world.synced(member_id, rejoined.generation_id)
    world.obey("m1")
    owned = [world.assigned(member_id) for member_id in (first, second, "m1")]
    numbers = sorted(number for partitions in owned for of_topic in partitions.values() for number in of_topic)
    assert numbers == [0, 1, 2, 3]
    assert all(owned)
    for member_id in (first, second):
        world.classic_heartbeat(member_id, world.group.members[member_id].epoch)
    check_replayed(world)


def test_members_that_wait_in_a_rebalance_join_the_upgraded_group(world: ShardWorld) -> None:
    ((first, _),) = classic_group(world, "c1").items()
    waiting = world.classic_join("")
    assert waiting.given == []
    world.join("m1", "orders")
    assert isinstance(waiting.only.error, RebalanceInProgress)
    assert world.joined(first).error is None


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_upgrades_that_the_policy_forbids(policy: str) -> None:
    world = ShardWorld(group_consumer_migration_policy=policy)
    classic_group(world, "c1")
    with pytest.raises(GroupIdNotFound, match="online upgrade is disabled"):
        world.join("m1", "orders")
    assert world.classic.state is GroupState.STABLE


def test_groups_that_cannot_be_upgraded(world: ShardWorld) -> None:
    answers = Answers()
    metadata = (MemberProtocol(name="v1", metadata=b"?"),)
    request = join_request(protocol_type="connect", protocols=metadata, requires_member_id=False)
    world.shard.memberships.join(request, answers)
    world.let_time_pass(0.1)
    with pytest.raises(GroupIdNotFound, match="embedded protocol"):
        world.join("m1", "orders")
    assert isinstance(world.shard.groups["g"], ClassicGroup)


def test_an_assignor_with_data_of_its_own_cannot_be_upgraded(world: ShardWorld) -> None:
    ((member_id, _),) = classic_group(world, "c1").items()
    world.classic.members[member_id].assignment = b"\0\0" + b"\0\0\0\0" + b"\0\0\0\x04data"
    with pytest.raises(GroupIdNotFound, match="custom assignor"):
        world.join("m1", "orders")
    world.classic.members[member_id].assignment = b"\0"
    with pytest.raises(GroupIdNotFound, match="malformed"):
        world.join("m1", "orders")
    assert world.classic.state is GroupState.STABLE


def test_a_heartbeat_does_not_upgrade(world: ShardWorld) -> None:
    classic_group(world, "c1")
    with pytest.raises(GroupIdNotFound, match="not a consumer group"):
        world.heartbeat("m1", 3)
    with pytest.raises(GroupIdNotFound, match="not a consumer group"):
        world.leave("m1")


# Classic members


def test_a_classic_member_joins_a_consumer_group(world: ShardWorld) -> None:
    world.join("m1", "orders")
    named = world.classic_join("", requires_member_id=True).only
    assert isinstance(named.error, MemberIdRequired)
    joined = world.joined(named.member_id)
    assert (joined.error, joined.generation_id) == (None, 3)
    assert world.synced(joined.member_id, 3) == {}, "the other has not given up anything yet"
    world.obey("m1")
    world.obey("m1")
    with pytest.raises(RebalanceInProgress):
        world.classic_heartbeat(joined.member_id, 3)
    again = world.joined(joined.member_id)
    assert world.synced(again.member_id, again.generation_id) == {"orders": frozenset({2, 3})}
    world.classic_heartbeat(again.member_id, again.generation_id)
    assert world.state() is GroupState.STABLE
    check_replayed(world)


def test_classic_members_are_checked(world: ShardWorld) -> None:
    world.join("m1", "orders")
    member_id = world.joined("").member_id
    with pytest.raises(UnknownMemberId):
        world.classic_heartbeat("nobody", 3)
    with pytest.raises(UnknownMemberId, match="classic protocol"):
        world.classic_heartbeat("m1", 2)
    with pytest.raises(IllegalGeneration):
        world.classic_heartbeat(member_id, 2)
    assert isinstance(world.classic_sync(member_id, 2).error, IllegalGeneration)
    assert isinstance(world.classic_sync(member_id, 3, protocol_name="sticky").error, InconsistentGroupProtocol)
    assert isinstance(world.classic_sync("nobody", 3).error, UnknownMemberId)


def test_protocols_that_others_do_not_support(world: ShardWorld) -> None:
    world.join("m1", "orders")
    world.joined("")
    other = (MemberProtocol(name="other", metadata=subscription("orders")),)
    for changes in ({"protocols": other}, {"protocol_type": "connect"}, {"protocols": ()}):
        answers = Answers()
        world.shard.memberships.join(join_request(requires_member_id=False, **changes), answers)
        assert isinstance(answers.only.error, InconsistentGroupProtocol), changes
    broken = (MemberProtocol(name="range", metadata=b"\0"),)
    answers = Answers()
    world.shard.memberships.join(join_request(requires_member_id=False, protocols=broken), answers)
    assert isinstance(answers.only.error, InconsistentGroupProtocol)
    assert len(world.group.members) == 2


def test_a_classic_member_that_does_not_ask_for_its_assignment_is_removed(world: ShardWorld) -> None:
    world.join("m1", "orders")
    member_id = world.joined("").member_id
    for _ in range(7):
        world.let_time_pass(9)
        world.keep_alive("m1")
        if member_id in world.group.members:
            world.shard.consumer.start_session(
                world.group, world.group.members[member_id], world.shard.consumer.around("g")
            )
    assert set(world.group.members) == {"m1"}


def test_a_classic_member_that_does_not_rejoin_is_removed(world: ShardWorld) -> None:
    world.join("m1", "orders")
    joined = world.joined("")
    world.synced(joined.member_id, joined.generation_id)
    world.join("m2", "orders")
    for _ in range(7):
        if joined.member_id in world.group.members:
            with pytest.raises(RebalanceInProgress):
                world.classic_heartbeat(joined.member_id, joined.generation_id)
        for member_id in ("m1", "m2"):
            world.obey(member_id)
        world.let_time_pass(9)
    assert set(world.group.members) == {"m1", "m2"}


def test_a_silent_classic_member_is_removed_by_its_own_session_timeout(world: ShardWorld) -> None:
    world.join("m1", "orders")
    joined = world.joined("")
    world.synced(joined.member_id, joined.generation_id)
    world.let_time_pass(11)
    assert set(world.group.members) == {"m1"}


# Down


def test_when_the_last_consumer_leaves_the_group_is_classic_again(world: ShardWorld) -> None:
    world.join("m1", "orders")
    joined = world.joined("")
    world.synced(joined.member_id, joined.generation_id)
    world.leave("m1")
    assert set(world.classic.members) == {joined.member_id}
    assert world.classic.state is GroupState.PREPARING_REBALANCE
    check_replayed(world)
    again = world.joined(joined.member_id)
    assert (again.error, again.leader) == (None, joined.member_id)
    assert again.generation_id > joined.generation_id
    assignment = write_embedded_assignment(0, {"orders": frozenset({0})})
    world.classic_sync(joined.member_id, again.generation_id, assignments={joined.member_id: assignment})
    world.classic_heartbeat(joined.member_id, again.generation_id)
    check_replayed(world)


def test_when_the_last_consumer_is_silent_the_group_is_classic_again(world: ShardWorld) -> None:
    world.join("m1", "orders")
    joined = world.joined("")
    for _ in range(12):
        world.let_time_pass(4)
        if isinstance(world.shard.groups["g"], ClassicGroup):
            break
        world.shard.consumer.start_session(
            world.group, world.group.members[joined.member_id], world.shard.consumer.around("g")
        )
    assert set(world.classic.members) == {joined.member_id}


@pytest.mark.parametrize("policy", ["disabled", "upgrade"])
def test_downgrades_that_the_policy_forbids(policy: str) -> None:
    world = ShardWorld(group_consumer_migration_policy=policy)
    world.join("m1", "orders")
    joined = world.joined("")
    world.leave("m1")
    assert set(world.group.members) == {joined.member_id}
    check_replayed(world)


def test_a_static_consumer_comes_back_as_a_classic_member(world: ShardWorld) -> None:
    world.join("m1", "orders", instance_id="i1")
    before = world.assigned("m1")
    back = world.joined("", group_instance_id="i1")
    assert back.error is None
    assert set(world.classic.members) == {back.member_id}
    assert world.classic.state is GroupState.STABLE, "the same subscription: nobody has to rejoin"
    member = world.classic.members[back.member_id]
    assert read_embedded_assignment(member.assignment).partitions == {"orders": frozenset({0, 1, 2, 3})}
    assert before == world.topics.partitions(orders={0, 1, 2, 3})
    assert world.synced(back.member_id, back.generation_id) == {"orders": frozenset({0, 1, 2, 3})}
    check_replayed(world)


def test_a_static_member_changes_its_protocol_in_a_group_of_both(world: ShardWorld) -> None:
    world.join("m1", "orders", instance_id="i1")
    world.join("m2", "orders", instance_id="i2")
    for member_id in ("m1", "m1", "m2"):
        world.obey(member_id)
    before = world.assigned("m2")
    back = world.joined("", group_instance_id="i2")
    assert world.assigned(back.member_id) == before
    stale = world.classic_join("m2", group_instance_id="i2").only
    assert isinstance(stale.error, FencedInstanceId)
    again = world.join("m3", "orders", instance_id="i2")
    assert again.assignment == before, "a consumer takes the place of a classic member without its leave"
    check_replayed(world)


def test_a_downgrade_that_the_log_refused_is_written_later(world: ShardWorld) -> None:
    world.join("m1", "orders")
    joined = world.joined("")
    world.send(HeartbeatRequest(group_id="g", member_id="m1", member_epoch=-1))
    world.settle(accept=False)
    assert set(world.classic.members) == {joined.member_id}
    again = world.joined(joined.member_id)
    world.classic_sync(joined.member_id, again.generation_id)
    world.let_time_pass(2)
    check_replayed(world)
    world.classic_leave(joined.member_id)
    answers = Answers()
    world.shard.delete_group("g", answers)
    world.settle()
    assert world.replayed().groups == {}, "no record of the consumer group is left"


def test_offsets_stay_when_an_empty_group_changes_its_protocol(world: ShardWorld) -> None:
    """Also if the member that changes it is refused, and also after the log was read again."""
    world.join("m1", "orders")
    topic_id = world.topics.id_of("orders")
    offset = PartitionCommit(topic="orders", partition=0, offset=7, topic_id=topic_id)
    request = CommitRequest(
        group_id="g", member_id="m1", generation_id=2, reports_unknown_group=True, offsets=(offset,)
    )
    world.shard.commit(request, Answers())
    world.settle()
    world.leave("m1")
    answers = Answers()
    world.shard.memberships.join(join_request(protocols=(), requires_member_id=False), answers)
    world.settle()
    assert isinstance(answers.only.error, InconsistentGroupProtocol)

    def fetched() -> list[int]:
        return [one.offset for one in world.shard.fetch("g", [TopicPartition("orders", 0)])]

    assert fetched() == [7]
    world.restart()
    assert fetched() == [7]
    classic_group(world, "c1")
    assert fetched() == [7]
    (member_id,) = world.classic.members
    world.classic_leave(member_id)
    world.join("m2", "orders")
    assert fetched() == [7]
