"""Members of a share group: who is let in, who is fenced, what they are told to read, and when they are forgotten."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from strandline.coordinators.groups.share import group as share_group
from strandline.coordinators.groups.share import states
from strandline.coordinators.groups.share.schemas import ShareRecordType, ShareTopicValue
from strandline.coordinators.groups.share.values import ShareHeartbeatRequest
from strandline.coordinators.groups.states import GroupState, GroupType
from strandline.coordinators.groups.values import CommitRequest, PartitionCommit
from strandline.errors import (
    CoordinatorNotAvailable,
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRequest,
    NonEmptyGroup,
    StrandlineError,
    UnknownMemberId,
)
from strandline.metadata.image import ConfigResource, ConfigResourceType
from tests.coordinators.groups.share.share_world import ShareWorld
from tests.coordinators.groups.timed_shard import Call
from tests.coordinators.steps import take_all


def stable(members: int = 1, **settings: Any) -> ShareWorld:
    """A group "g" whose members m0, m1, ... read topic "a" of four partitions."""
    world = ShareWorld({"a": 4, "b": 2}, **settings)
    for at in range(members):
        world.join(f"m{at}", "a")
    world.create_states()
    world.let_time_pass(2)
    for _ in range(2):
        for at in range(members):
            world.beat(f"m{at}")
    return world


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"group_id": "  "}, "GroupId can't be empty."),
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"topics": None}, "SubscribedTopicNames must be set in first request."),
        ({"topics": ()}, "SubscribedTopicNames must be set in first request."),
        ({"member_epoch": -2}, "MemberEpoch is invalid."),
        ({"member_id": "m" * 40_000}, "MemberId of 40000 characters is too long"),
    ],
)
def test_requests_that_no_group_accepts(fields: dict[str, Any], sentence: str) -> None:
    world = ShareWorld({"a": 1})
    request: dict[str, Any] = {"group_id": "g", "member_id": "m", "topics": ("a",), **fields}
    with pytest.raises(InvalidRequest, match=sentence):
        world.send(ShareHeartbeatRequest(**request))
    assert (world.records, world.shard.groups) == ([], {})


@pytest.mark.parametrize("epoch", [1, 7, -1])
def test_a_group_is_created_by_joining_only(epoch: int) -> None:
    world = ShareWorld({"a": 1})
    with pytest.raises(GroupIdNotFound, match="Group g not found"):
        world.beat("m", epoch=epoch)
    assert world.shard.groups == {}


@pytest.mark.parametrize("epoch", [1, -1])
def test_an_unknown_member_has_to_join(epoch: int) -> None:
    world = stable()
    with pytest.raises(UnknownMemberId, match="Member x is not a member of group g"):
        world.beat("x", epoch=epoch)


def test_epochs_are_fenced_but_for_the_one_before() -> None:
    world = stable()
    member = world.group().members["m0"]
    assert (member.previous_epoch, member.epoch) == (2, 3)
    assert world.beat("m0", epoch=2).member_epoch == 3
    written = len(world.records)
    for epoch, relation in ((1, "smaller"), (4, "greater")):
        with pytest.raises(FencedMemberEpoch, match=f"{relation} member epoch"):
            world.beat("m0", epoch=epoch)
    assert len(world.records) == written


def test_a_member_that_forgot_its_epoch_joins_again_and_is_told_everything() -> None:
    world = stable()
    told = world.join("m0", "a")
    assert (told.member_epoch, told.assignment) == (3, world.topics.all_of("a"))
    assert world.beat("m0").assignment is None
    assert world.beat("m0", topics=("a",)).assignment == world.topics.all_of("a")


def test_a_full_group_takes_nobody_else() -> None:
    world = stable(2, group_share_max_size=2)
    with pytest.raises(GroupMaxSizeReached, match=r"has 2 members: group\.share\.max\.size"):
        world.join("m2", "a")
    world.join("m1", "a")
    world.leave("m0")
    assert world.join("m2", "a").member_epoch > 0


def test_members_share_partitions_when_there_are_more_members() -> None:
    world = stable(5)
    parts = [set(world.group().targets[f"m{at}"].get(world.topics.id_of("a"), ())) for at in range(5)]
    assert sorted(map(len, parts)) == [1, 1, 2, 2, 2]
    assert sorted(number for part in parts for number in part) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_assignments_wait_for_their_interval() -> None:
    world = stable()
    world.let_time_pass(5)
    world.join("m1", "a")  # assigned at once: the last target is old
    assert world.group().target_epoch == world.group().epoch
    world.join("m2", "a")
    assert world.group().target_epoch < world.group().epoch
    told = world.join("m3", "a")
    assert (told.assignment, told.member_epoch) == ({}, world.group().target_epoch)
    world.let_time_pass(1)
    for member in ("m0", "m1", "m2", "m3"):
        world.beat(member)
    assert {len(part) for part in world.group().targets.values()} == {1}
    assert {member.epoch for member in world.group().members.values()} == {world.group().epoch}


def test_a_topic_that_comes_later_is_read_when_it_has_state() -> None:
    world = ShareWorld({"a": 1})
    assert world.join("m", "a", "later").assignment == {}
    world.create_states()
    world.let_time_pass(5)
    assert world.beat("m").assignment == world.topics.all_of("a")
    world.topics.create("later", 2)
    epoch = world.group().epoch
    world.let_time_pass(5)
    told = world.beat("m")
    assert told.member_epoch == world.group().epoch == epoch + 1
    world.create_states()
    world.let_time_pass(5)
    assert world.beat("m").assignment == world.topics.all_of("a", "later")


def test_more_partitions_are_read_when_they_have_state() -> None:
    world = stable()
    world.topics.enlarge("a", 6)
    world.let_time_pass(5)
    world.beat("m0")
    assert [one.partitions for one in world.creations] == [{world.topics.id_of("a"): frozenset({4, 5})}]
    world.create_states()
    world.let_time_pass(5)
    assert world.beat("m0").assignment == world.topics.all_of("a")


def test_a_topic_that_is_created_again_is_another_one() -> None:
    world = stable()
    world.topics.create("a", 1)
    take_all(world.shard.forget_vanished_topics())
    world.settle()
    assert world.group().states.initialized == {}
    world.let_time_pass(5)
    assert world.beat("m0").assignment == {}
    world.create_states()
    world.let_time_pass(5)
    assert world.beat("m0").assignment == world.topics.all_of("a")
    epoch = world.group().epoch
    world.let_time_pass(5)
    world.beat("m0")
    assert world.group().epoch == epoch  # it has come to rest


def test_other_topics_take_effect_at_once() -> None:
    world = stable()
    told = world.beat("m0", topics=("b",))
    assert told.assignment == {}
    world.create_states()
    world.let_time_pass(5)
    assert world.beat("m0").assignment == world.topics.all_of("b")


def test_state_that_nobody_answered_about_is_created_again_later() -> None:
    world = ShareWorld({"a": 1})
    world.join("m", "a")
    assert len(world.creations) == 1
    world.let_time_pass(20)
    world.beat("m")
    assert len(world.creations) == 1
    world.let_time_pass(11)
    world.beat("m")
    assert len(world.creations) == 2
    assert world.creations[0] == world.creations[1]


def test_state_that_could_not_be_created_is_tried_at_the_next_heartbeat() -> None:
    world = ShareWorld({"a": 2})
    world.join("m", "a")
    (creation,) = world.creations
    topic = world.topics.id_of("a")
    world.shard.share.not_created("g", {topic: frozenset({1})}, Call())
    world.shard.share.created("g", {topic: frozenset({0})}, Call())
    world.settle()
    assert world.group().states.initialized == {topic: ShareTopicValue("a", frozenset({0}))}
    world.let_time_pass(5)
    assert world.beat("m").assignment == {topic: frozenset({0})}
    assert world.creations[1:][0].partitions == {topic: frozenset({1})}
    assert creation.state_epoch < world.creations[1].state_epoch


def test_a_new_coordinator_goes_on_with_what_was_begun() -> None:
    world = ShareWorld({"a": 2})
    world.join("m", "a")
    world.creations.clear()
    world.restart()
    world.beat("m")
    assert [one.partitions for one in world.creations] == [world.topics.all_of("a")]


def test_state_of_a_group_that_is_gone_is_not_wanted() -> None:
    world = ShareWorld({"a": 1})
    world.join("m", "a")
    world.leave("m")
    deletion = Call()
    world.shard.delete_group("g", deletion)
    world.settle()
    done = Call()
    assert world.shard.share.created("g", world.topics.all_of("a"), done) == world.topics.all_of("a")
    assert (deletion.answers, done.answers) == ([None], [None])


def test_a_silent_member_is_forgotten() -> None:
    world = stable(2)
    for _ in range(4):
        world.let_time_pass(15)
        world.beat("m0")
    assert list(world.group().members) == ["m0"]
    world.beat("m0")
    assert world.group().targets == {"m0": world.topics.all_of("a")}


def test_sessions_begin_again_with_a_new_coordinator() -> None:
    world = stable()
    world.let_time_pass(40)
    world.restart()
    world.let_time_pass(40)
    assert list(world.group().members) == ["m0"]
    world.let_time_pass(6)
    assert (world.group().members, world.group().state) == ({}, GroupState.EMPTY)


def test_a_group_has_its_own_session_timeout_and_heartbeat_interval() -> None:
    world = ShareWorld({"a": 1})
    resource = ConfigResource(ConfigResourceType.GROUP, "g")
    settings = {"share.session.timeout.ms": "50000", "share.heartbeat.interval.ms": "900000"}
    image = world.topics.image
    object.__setattr__(image, "configs", {resource: settings})
    assert world.join("m", "a").heartbeat_interval_ms == 15_000  # the most that the broker allows
    world.let_time_pass(49)
    assert world.group().members
    world.let_time_pass(2)
    assert not world.group().members


def test_who_leaves_is_told_so() -> None:
    world = stable(2)
    answer = world.leave("m1")
    assert (answer.member_id, answer.member_epoch, answer.assignment) == ("m1", -1, None)
    world.let_time_pass(5)
    assert world.beat("m0").assignment == world.topics.all_of("a")
    with pytest.raises(UnknownMemberId):
        world.leave("m1")


def test_the_log_refuses_and_the_member_asks_again() -> None:
    world = ShareWorld({"a": 1}, takes_all=False)
    call = Call()
    request = ShareHeartbeatRequest(group_id="g", member_id="m", topics=("a",))
    world.shard.share.heartbeat(request, call)
    world.log.finish_one(accept=False)
    assert isinstance(call.answers[0].response.error, CoordinatorNotAvailable)
    assert call.answers[0].creation is None
    world.takes_all = True
    told = world.join("m", "a")
    assert told.member_epoch == 2
    assert [one.partitions for one in world.creations] == [world.topics.all_of("a")]
    assert world.replayed().groups.keys() == {"g"}


def test_a_group_of_another_kind_is_not_a_share_group() -> None:
    world = ShareWorld({"a": 1})
    offset = PartitionCommit(topic="a", partition=0, offset=1, topic_id=world.topics.id_of("a"))
    world.shard.commit(CommitRequest(group_id="g", offsets=(offset,)), Call())
    world.settle()
    for epoch in (0, 1, -1):
        with pytest.raises(GroupIdNotFound, match="Group g is not a share group"):
            world.beat("m", epoch=epoch, topics=("a",))


def test_a_share_group_is_no_consumer_group() -> None:
    world = stable()
    listed = world.group().listed()
    assert (listed.protocol_type, listed.group_type, listed.state) == ("share", GroupType.SHARE, GroupState.STABLE)
    with pytest.raises(GroupIdNotFound, match="not a consumer group"):
        world.shard.commit(CommitRequest(group_id="g"), Call())
    with pytest.raises(GroupIdNotFound, match="not a consumer group"):
        world.shard.delete_offsets("g", [], Call())
    with pytest.raises(UnknownMemberId):
        world.shard.classic.heartbeat("g", "m0", 1, None)
    assert isinstance(world.group().described().error, GroupIdNotFound)


def test_an_empty_group_stays_until_it_is_deleted() -> None:
    world = stable()
    with pytest.raises(NonEmptyGroup):
        world.shard.delete_group("g", Call())
    world.leave("m0")
    take_all(world.shard.expire())
    world.settle()
    assert world.group().state is GroupState.EMPTY
    deletion = Call()
    world.shard.delete_group("g", deletion)
    world.settle()
    assert deletion.answers == [None]
    assert world.replayed().groups == {}


def test_a_deletion_that_the_log_refused_leaves_the_group_in_the_log() -> None:
    world = stable()
    world.leave("m0")
    world.takes_all = False
    deletion = Call()
    world.shard.delete_group("g", deletion)
    world.log.records += world.group_records_of_deletion()  # the write has failed, and is in the log nevertheless
    while world.log.waiting:
        world.log.finish_one(accept=False)
    assert isinstance(deletion.answers[0], StrandlineError)
    assert world.replayed().groups == {}
    world.takes_all = True
    world.let_time_pass(2)
    assert world.replayed().share.table.existing("g").epoch == world.group().epoch


def test_a_subscription_that_is_too_large_is_refused_and_the_group_goes_on() -> None:
    world = stable()
    world.log.limit = 4000
    before = world.group().epoch
    with pytest.raises(StrandlineError, match=r"max\.message\.bytes"):
        world.join("m9", *(f"{'x' * 200}-{at}" for at in range(30)))
    assert set(world.group().members) == {"m0"}
    assert world.group().epoch == before
    world.let_time_pass(5)
    assert world.beat("m0", topics=("b",)).member_epoch == before + 1
    assert world.replayed().share.table.existing("g").epoch == world.group().epoch


def test_members_never_go_back_to_an_earlier_epoch() -> None:
    """The log refused a target and took what a member was told of it; then the broker ended."""
    world = stable()
    world.let_time_pass(5)
    lost = len(world.records)
    world.beat("m0", topics=("b",))
    kept = [record for record in world.records[lost:] if record[0][1] == ShareRecordType.ASSIGNMENT]
    world.log.records[lost:] = kept
    epoch = world.group().members["m0"].epoch
    world.restart()
    assert world.group().target_epoch < epoch < world.group().epoch
    world.let_time_pass(5)
    told = world.beat("m0")
    assert (told.member_epoch, told.assignment) == (epoch + 1, world.topics.all_of("a"))


def test_a_heartbeat_that_changes_nothing_looks_at_no_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups may have tens of thousands of them, and hundreds of members."""
    world = stable(2)
    looks: list[str] = []

    def watch(module: ModuleType, name: str) -> None:
        function: Callable[..., Any] = getattr(module, name)

        def noted(*args: Any) -> Any:
            looks.append(name)
            return function(*args)

        monkeypatch.setattr(module, name, noted)

    watch(share_group, "united")
    watch(states, "_known")
    for _ in range(3):
        world.beat("m0")
        world.beat("m1")
    assert looks == []
    world.topics.enlarge("a", 5)
    world.beat("m0")
    assert "_known" in looks
    world.create_states()
    world.let_time_pass(2)
    world.beat("m0")
    world.beat("m1")
    assert "united" in looks
    told = {number for member in world.group().members.values() for number in member.assigned[world.topics.id_of("a")]}
    assert told == {0, 1, 2, 3, 4}
