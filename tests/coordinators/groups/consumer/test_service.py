"""Consumer groups in their shard: sessions, revocations that take too long, regular expressions, a log that refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.coordinators.groups import GroupState, HeartbeatRequest
from strandline.coordinators.groups.consumer.description import describe
from strandline.coordinators.groups.consumer.group import ConsumerGroup
from strandline.coordinators.groups.consumer.schemas import ConsumerRecordKey, ConsumerRecordType
from strandline.coordinators.groups.schemas import read_key
from strandline.errors import (
    CoordinatorNotAvailable,
    GroupIdNotFound,
    InvalidRegularExpression,
    NonEmptyGroup,
    StrandlineError,
    UnknownMemberId,
)
from strandline.metadata.image import ConfigResource, ConfigResourceType
from tests.coordinators.groups.consumer.consumer_world import state_of
from tests.coordinators.groups.consumer.shard_world import Answers, ShardWorld, check_replay
from tests.coordinators.steps import take_all


@pytest.fixture
def world() -> ShardWorld:
    return ShardWorld()


# Requests


def test_the_broker_gives_an_id_to_a_client_of_version_0(world: ShardWorld) -> None:
    answer = world.join("", "orders", may_lack_id=True)
    assert answer.member_id is not None
    assert len(answer.member_id) == 22
    assert set(world.group.members) == {answer.member_id}


def test_a_heartbeat_for_a_group_that_does_not_exist(world: ShardWorld) -> None:
    for epoch in (1, -1):
        with pytest.raises(GroupIdNotFound):
            world.heartbeat("m1", epoch)
    assert "g" not in world.shard.groups


def test_a_refused_join_leaves_no_group(world: ShardWorld) -> None:
    with pytest.raises(InvalidRegularExpression):
        world.join("m1", regex="(")
    assert world.shard.groups == {}
    assert len(world.timers) == 0


def test_an_answer_waits_until_everything_before_it_is_in_the_log(world: ShardWorld) -> None:
    join = HeartbeatRequest(group_id="g", member_id="m1", topics=("orders",), rebalance_timeout_ms=9, owned={})
    first = world.send(join)
    repeated = world.send(join)
    assert (first.given, repeated.given) == ([], []), "the assignment is not in the log yet"
    world.settle()
    assert first.only == repeated.only
    unchanged = world.send(join._replace(member_epoch=2, topics=None, rebalance_timeout_ms=-1, owned=None))
    assert unchanged.only.member_epoch == 2, "nothing to wait for"


# Time


def test_a_silent_member_is_removed(world: ShardWorld) -> None:
    world.join("m1", "orders")
    world.join("m2", "orders")
    world.obey("m1")
    world.let_time_pass(44)
    world.obey("m2")
    world.let_time_pass(2)
    assert set(world.group.members) == {"m2"}
    world.obey("m2")
    assert world.assigned("m2") == world.topics.partitions(orders={0, 1, 2, 3})
    check_replay(world)


def test_a_member_that_does_not_give_up_its_partitions_is_removed(world: ShardWorld) -> None:
    world.join("m1", "orders")
    world.join("m2", "orders")
    everything = world.topics.partitions(orders={0, 1, 2, 3})
    world.heartbeat("m1", 2, owned=everything)
    for _ in range(2):
        world.let_time_pass(9)
        world.heartbeat("m1", 2, owned=everything)  # alive, but stubborn
        world.obey("m2")
    world.let_time_pass(3)
    assert set(world.group.members) == {"m2"}
    with pytest.raises(UnknownMemberId):
        world.heartbeat("m1", 2, owned=everything)


def test_a_revocation_in_time_stops_the_timer(world: ShardWorld) -> None:
    world.join("m1", "orders")
    world.join("m2", "orders")
    world.obey("m1")
    world.obey("m1")
    for _ in range(3):
        world.let_time_pass(15)
        world.obey("m1")
        world.obey("m2")
    assert world.state() is GroupState.STABLE


def test_a_static_member_that_does_not_come_back_is_removed(world: ShardWorld) -> None:
    world.join("m1", "orders", instance_id="i1")
    assert world.heartbeat("m1", -2, instance_id="i1").member_epoch == -2
    world.let_time_pass(44)
    assert set(world.group.members) == {"m1"}
    world.let_time_pass(2)
    assert world.state() is GroupState.EMPTY
    assert len(world.timers) == 0


def test_the_session_timeout_of_a_group(world: ShardWorld) -> None:
    resource = ConfigResource(ConfigResourceType.GROUP, "g")
    settings = {"consumer.session.timeout.ms": "55000", "consumer.heartbeat.interval.ms": "7000"}
    world.topics.image = replace(world.topics.image, configs={resource: settings})
    assert world.join("m1", "orders").heartbeat_interval_ms == 7000
    world.let_time_pass(54)
    assert world.group.members
    world.let_time_pass(2)
    assert not world.group.members


def test_members_that_come_within_the_interval_are_assigned_together() -> None:
    world = ShardWorld(group_consumer_assignment_interval_ms=1000)
    for number in range(5):
        world.join(f"m{number}", "orders")
    assert world.state() is GroupState.ASSIGNING
    world.let_time_pass(1)
    assert world.group.target_epoch == world.group.epoch == 6
    assert len(world.timers) == 5, "one session each"
    check_replay(world)


def test_sessions_begin_anew_when_the_group_is_loaded(world: ShardWorld) -> None:
    world.join("m1", "orders")
    world.join("m2", "orders")
    world.obey("m1")  # has to give up partitions now
    before = state_of(world.group)
    world.restart()
    assert state_of(world.group) == before
    world.let_time_pass(19)
    assert set(world.group.members) == {"m1", "m2"}
    world.let_time_pass(2)
    assert set(world.group.members) == {"m2"}, "the revocation took too long"
    world.let_time_pass(30)
    assert world.state() is GroupState.EMPTY


# Regular expressions


def test_an_expression_is_matched_and_takes_effect_with_the_next_heartbeat(world: ShardWorld) -> None:
    joined = world.join("m1", regex="(orders|pay.*)")
    assert (joined.member_epoch, joined.assignment) == (1, {})
    assert world.group.expressions["(orders|pay.*)"].topics == ("orders", "payments")
    assert world.obey("m1").assignment == world.topics.partitions(orders={0, 1, 2, 3}, payments={0, 1})
    check_replay(world)


def test_an_expression_takes_effect_although_others_read_its_topics_by_name(world: ShardWorld) -> None:
    world.join("m1", "orders")
    world.obey("m1")
    world.join("m2", regex="ord.*")
    assert world.assigned("m2") == {}
    for _ in range(2):
        world.obey("m1")
        world.obey("m2")
    assert sorted(len(world.assigned(name)[world.topics.id_of("orders")]) for name in ("m1", "m2")) == [2, 2]
    check_replay(world)


def test_what_a_member_has_to_give_up_is_its_own_until_it_has(world: ShardWorld) -> None:
    world.join("m1", "orders")
    world.obey("m1")
    world.join("m2", "orders")
    world.heartbeat("m1", world.group.members["m1"].epoch)  # it is told, and has not answered
    shown = {member.member_id: member.assigned for member in describe(world.group, "uniform").members}
    assert shown == {"m1": world.topics.partitions(orders={0, 1, 2, 3}), "m2": {}}
    world.obey("m1")
    shown = {member.member_id: member.assigned for member in describe(world.group, "uniform").members}
    assert [len(numbers) for numbers in shown["m1"].values()] == [2]


def test_an_expression_matches_whole_names(world: ShardWorld) -> None:
    world.join("m1", regex="order")
    assert world.group.expressions["order"].topics == ()
    assert world.obey("m1").assignment is None


def test_topics_that_are_created_later_match_too(world: ShardWorld) -> None:
    world.join("m1", regex="orders.*")
    world.obey("m1")
    world.topics.create("orders-2", 1)
    world.obey("m1")
    assert world.group.expressions["orders.*"].topics == ("orders",), "matched ten seconds ago at the earliest"
    world.let_time_pass(11)
    world.obey("m1")
    assert world.obey("m1").assignment == {
        **world.topics.partitions(orders={0, 1, 2, 3}),
        world.topics.id_of("orders-2"): frozenset({0}),
    }


def test_expressions_are_matched_again_from_time_to_time(world: ShardWorld) -> None:
    world.join("m1", regex="orders")
    matched = world.group.expressions["orders"].timestamp_ms
    for _ in range(15):
        world.let_time_pass(42)
        world.obey("m1")
    assert world.group.expressions["orders"].timestamp_ms >= matched + 600_000


def test_an_expression_that_nobody_reads_is_forgotten(world: ShardWorld) -> None:
    world.join("m1", regex="orders")
    world.join("m2", regex="orders")
    world.leave("m1")
    assert set(world.group.expressions) == {"orders"}
    world.heartbeat("m2", world.group.members["m2"].epoch, regex="", topics=("payments",), owned={})
    assert world.group.expressions == {}
    world.obey("m2")
    assert world.assigned("m2") == world.topics.partitions(payments={0, 1})
    check_replay(world)


def test_expressions_that_would_take_for_ever_elsewhere(world: ShardWorld) -> None:
    """Linear time: with back-tracking this would not end."""
    world.topics.create("a" * 200 + "b", 1)
    world.join("m1", regex="(a*)*(a|aa)*c")
    assert world.group.expressions["(a*)*(a|aa)*c"].topics == ()


# A log that refuses


def test_a_decision_that_the_log_refused_is_written_later(world: ShardWorld) -> None:
    world.join("m1", "orders")
    answers = world.send(
        HeartbeatRequest(group_id="g", member_id="m2", topics=("orders",), rebalance_timeout_ms=9, owned={})
    )
    world.settle(accept=False)
    assert isinstance(answers.only.error, CoordinatorNotAvailable)
    assert set(world.group.members) == {"m1", "m2"}
    again = world.replayed().groups["g"]
    assert isinstance(again, ConsumerGroup)
    assert set(again.members) == {"m1"}
    world.let_time_pass(2)
    check_replay(world)
    assert world.join("m2", "orders").error is None, "the client tries again"


def test_a_later_decision_brings_the_refused_one_along(world: ShardWorld) -> None:
    world.join("m1", "orders")
    world.join("m2", "orders")
    world.send(HeartbeatRequest(group_id="g", member_id="m1", member_epoch=-1))
    world.settle(accept=False)
    assert set(world.group.members) == {"m2"}
    world.obey("m2")
    check_replay(world)


def test_a_refusal_that_lasts_is_tried_again_and_again(world: ShardWorld) -> None:
    world.send(HeartbeatRequest(group_id="g", member_id="m1", topics=("orders",), rebalance_timeout_ms=9, owned={}))
    world.settle(accept=False)
    for _ in range(3):
        world.clock.move(1.1)
        world.timers.run_due()
        assert world.log.waiting
        world.settle(accept=False)
    world.let_time_pass(2)
    check_replay(world)


# Deleting


def test_a_group_with_members_is_not_deleted(world: ShardWorld) -> None:
    world.join("m1", "orders")
    with pytest.raises(NonEmptyGroup):
        world.shard.delete_group("g", Answers())


def test_a_deleted_group_leaves_nothing_in_the_log(world: ShardWorld) -> None:
    world.join("m1", regex="orders")
    world.obey("m1")
    world.leave("m1")
    answers = Answers()
    world.shard.delete_group("g", answers)
    world.settle()
    assert answers.only is None
    assert world.shard.groups == {}
    last: dict[bytes, bytes | None] = dict(world.log.records)
    assert set(last.values()) == {None}
    kinds = {key.kind for key in map(read_key, last) if isinstance(key, ConsumerRecordKey)}
    assert kinds == set(ConsumerRecordType)
    assert world.replayed().groups == {}


def test_an_empty_group_expires_with_its_offsets(world: ShardWorld) -> None:
    world.join("m1", "orders")
    take_all(world.shard.expire())
    assert "g" in world.shard.groups
    world.leave("m1")
    take_all(world.shard.expire())
    world.settle()
    assert world.shard.groups == {}


def test_unloading_answers_what_waits_and_stops_the_timers(world: ShardWorld) -> None:
    world.join("m1", "orders")
    world.send(HeartbeatRequest(group_id="g", member_id="m2", topics=("orders",), rebalance_timeout_ms=9, owned={}))
    take_all(world.shard.unloaded(StrandlineError("stopped")))
    assert len(world.timers) == 0
    assert world.shard.groups == {}


def test_nobody_is_told_a_decision_that_may_not_be_in_the_log(world: ShardWorld) -> None:
    """A heartbeat that writes nothing waits for what was decided before it; if that was refused, so is it."""
    world.join("m1", "orders")
    first = world.send(HeartbeatRequest(group_id="g", member_id="m1", member_epoch=2, topics=("orders", "payments")))
    owned = world.assigned("m1")  # so that the epoch before is accepted: the answer may have been lost
    again = world.send(HeartbeatRequest(group_id="g", member_id="m1", member_epoch=2, owned=owned))
    world.log.finish_one(accept=False)
    world.settle()
    assert first.only.error is not None
    assert isinstance(again.only.error, CoordinatorNotAvailable)
    world.let_time_pass(1.1)
    assert world.heartbeat("m1", world.group.members["m1"].epoch).error is None


def test_members_do_not_go_back_to_an_epoch_that_they_had(world: ShardWorld) -> None:
    """The log has refused the target, and has taken what a member was told of it; then the broker ended."""
    world.join("m1", "orders")
    world.obey("m1")
    told = world.group.members["m1"].epoch
    records = dict(world.log.records)
    for raw_key in records:
        key = read_key(raw_key)
        if isinstance(key, ConsumerRecordKey) and key.kind in (
            ConsumerRecordType.GROUP_EPOCH,
            ConsumerRecordType.TARGET_EPOCH,
        ):
            world.log.records = [(k, v) for k, v in world.log.records if k != raw_key]
    world.restart()
    world.settle()
    assert world.group.epoch > told
    world.let_time_pass(5)
    assert world.heartbeat("m1", told).member_epoch > told


def test_a_deletion_that_the_log_refused_leaves_the_group_in_the_log() -> None:
    world = ShardWorld()
    world.join("m1", "orders")
    world.leave("m1")
    deleted: list[StrandlineError | None] = []
    world.shard.delete_group("g", deleted.append)
    world.log.records += world.log.waiting[-1][0]  # the write has failed, and is in the log nevertheless
    world.settle(accept=False)
    assert isinstance(deleted[0], StrandlineError)
    assert "g" not in world.replayed().groups
    world.let_time_pass(2)
    assert world.replayed().consumer.table.existing("g").epoch == world.group.epoch
