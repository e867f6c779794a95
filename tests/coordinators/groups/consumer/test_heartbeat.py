"""Heartbeats: joining, fencing, subscriptions, static members. Every refusal leaves the group as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from strandline.config import GroupSettings
from strandline.coordinators.groups.consumer.heartbeat import check_request
from strandline.coordinators.groups.consumer.member import ReconciliationState
from strandline.coordinators.groups.consumer.values import HeartbeatRequest
from strandline.coordinators.groups.states import GroupState
from strandline.coordinators.groups.values import CommitRequest, PartitionCommit
from strandline.errors import (
    FencedInstanceId,
    FencedMemberEpoch,
    GroupMaxSizeReached,
    IllegalGeneration,
    InvalidRegularExpression,
    InvalidRequest,
    StaleMemberEpoch,
    StrandlineError,
    UnknownMemberId,
    UnreleasedInstanceId,
    UnsupportedAssignor,
    UnsupportedVersion,
)
from strandline.model import ProducerAndEpoch
from tests.coordinators.groups.consumer.consumer_world import ConsumerWorld, state_of


@pytest.fixture
def world() -> ConsumerWorld:
    return ConsumerWorld({"orders": 3, "payments": 2})


def refused(world: ConsumerWorld, error: type[StrandlineError], action: Callable[[], Any]) -> None:
    before, written = state_of(world.group), list(world.log)
    with pytest.raises(error):
        action()
    assert state_of(world.group) == before
    assert world.log == written


# Requests that no group accepts

ASSIGNORS = GroupSettings().group_consumer_assignors
VALID = HeartbeatRequest(group_id="g", member_id="m", rebalance_timeout_ms=1000, topics=("orders",), owned={})


@pytest.mark.parametrize(
    "changed",
    [
        {"group_id": " "},
        {"member_id": ""},
        {"member_id": " "},
        {"instance_id": ""},
        {"rack_id": " "},
        {"rebalance_timeout_ms": -1},
        {"topics": None},
        {"owned": None},
        {"owned": {"topic": frozenset({1})}},
        {"member_epoch": -2},
        {"member_epoch": -3},
        {"member_epoch": 1, "member_id": ""},
        {"member_id": "x" * 40_000},
    ],
    ids=str,
)
def test_requests_that_contradict_the_protocol(changed: dict[str, Any]) -> None:
    check_request(VALID, ASSIGNORS)
    with pytest.raises(InvalidRequest):
        check_request(VALID._replace(**changed), ASSIGNORS)


def test_a_client_of_version_0_may_leave_its_id_to_the_broker() -> None:
    check_request(VALID._replace(member_id="", may_lack_id=True), ASSIGNORS)
    with pytest.raises(InvalidRequest, match="MemberId"):
        check_request(VALID._replace(member_id="", member_epoch=3, may_lack_id=True), ASSIGNORS)


def test_an_assignor_that_the_broker_does_not_have() -> None:
    check_request(VALID._replace(assignor="range"), ASSIGNORS)
    with pytest.raises(UnsupportedAssignor, match="uniform, range"):
        check_request(VALID._replace(assignor="sticky"), ASSIGNORS)


# Joining and going on


def test_the_first_member_gets_everything(world: ConsumerWorld) -> None:
    answer = world.join("m1", "orders")
    assert (answer.member_epoch, answer.heartbeat_interval_ms) == (2, 5000)
    assert answer.assignment == world.topics.partitions(orders={0, 1, 2})
    assert world.group.state is GroupState.STABLE
    again = world.obey("m1")
    assert (again.member_epoch, again.assignment) == (2, None)


def test_a_second_member_waits_until_the_first_has_given_up(world: ConsumerWorld) -> None:
    world.join("m1", "orders")
    second = world.join("m2", "orders")
    assert (second.member_epoch, second.assignment) == (3, {})
    assert world.group.members["m2"].state is ReconciliationState.UNRELEASED_PARTITIONS
    assert world.group.state is GroupState.RECONCILING
    told = world.beat("m1", owned=world.topics.partitions(orders={0, 1, 2}))
    assert (told.member_epoch, told.assignment) == (2, world.topics.partitions(orders={0, 1}))
    assert world.beat("m2").assignment is None, "the first has not said that it gave up"
    done = world.beat("m1", owned=world.topics.partitions(orders={0, 1}))
    assert (done.member_epoch, done.assignment) == (3, None)
    assert world.beat("m2").assignment == world.topics.partitions(orders={2})
    assert world.group.state.value == "Stable"


def test_a_full_request_is_told_everything_again(world: ConsumerWorld) -> None:
    world.join("m1", "orders")
    owned = world.assigned("m1")
    again = world.beat("m1", owned=owned, topics=("orders",), rebalance_timeout_ms=60_000)
    assert again.assignment == owned


def test_a_join_that_was_answered_but_not_heard_is_repeated(world: ConsumerWorld) -> None:
    first = world.join("m1", "orders")
    assert world.join("m1", "orders") == first


def test_epochs_fence(world: ConsumerWorld) -> None:
    world.join("m1", "orders")
    world.join("m2", "orders")
    world.settle()
    mine = world.assigned("m1")
    refused(world, FencedMemberEpoch, lambda: world.heartbeat("m1", 4, owned=mine))
    refused(world, FencedMemberEpoch, lambda: world.heartbeat("m1", 1, owned=mine))
    refused(world, FencedMemberEpoch, lambda: world.heartbeat("m1", 2))
    other = world.topics.partitions(orders={0, 1, 2})
    refused(world, FencedMemberEpoch, lambda: world.heartbeat("m1", 2, owned=other))
    assert world.heartbeat("m1", 2, owned=mine).member_epoch == 3, "the answer with the new epoch was lost"
    again = world.join("m1", "orders")
    assert (again.member_epoch, again.assignment) == (3, mine), "who owns nothing may join again at any time"


def test_members_that_the_group_does_not_have(world: ConsumerWorld) -> None:
    world.join("m1", "orders")
    refused(world, UnknownMemberId, lambda: world.heartbeat("nobody", 2))
    refused(world, UnknownMemberId, lambda: world.heartbeat("m1", 2, instance_id="i"))
    refused(world, UnknownMemberId, lambda: world.leave("nobody"))


def test_a_group_that_is_full() -> None:
    world = ConsumerWorld(group_consumer_max_size=1)
    world.join("m1", "orders")
    refused(world, GroupMaxSizeReached, lambda: world.join("m2", "orders"))
    assert world.obey("m1").error is None


def test_a_member_that_leaves_gives_its_partitions_to_the_others(world: ConsumerWorld) -> None:
    world.join("m1", "orders")
    world.join("m2", "orders")
    world.settle()
    world.leave("m1")
    world.settle()
    assert world.assigned("m2") == world.topics.partitions(orders={0, 1, 2})
    world.leave("m2")
    assert world.group.state is GroupState.EMPTY
    assert (world.group.epoch, world.group.target_epoch, world.group.metadata_hash) == (5, 4, 0)


# Subscriptions and topics


def test_a_topic_that_grows_is_assigned_anew(world: ConsumerWorld) -> None:
    world.join("m1", "orders")
    world.topics.enlarge("orders", 5)
    assert world.obey("m1").assignment == world.topics.partitions(orders={0, 1, 2, 3, 4})


def test_a_topic_that_is_created_later(world: ConsumerWorld) -> None:
    assert world.join("m1", "later").assignment == {}
    world.topics.create("later", 2)
    assert world.obey("m1").assignment == world.topics.partitions(later={0, 1})


def test_a_topic_that_is_deleted_is_taken_away(world: ConsumerWorld) -> None:
    world.join("m1", "orders", "payments")
    world.topics.delete("orders")
    world.settle()
    assert world.assigned("m1") == world.topics.partitions(payments={0, 1})


def test_other_topics_of_the_cluster_change_nothing(world: ConsumerWorld) -> None:
    world.join("m1", "orders")
    world.topics.create("other", 7)
    written = len(world.log)
    world.obey("m1")
    assert len(world.log) == written


def test_a_member_subscribes_to_another_topic(world: ConsumerWorld) -> None:
    world.join("m1", "orders")
    owned = world.assigned("m1")
    told = world.beat("m1", owned=owned, topics=("payments",))
    assert told.assignment == {}
    world.settle()
    assert world.assigned("m1") == world.topics.partitions(payments={0, 1})


def test_the_same_subscription_in_another_order_is_the_same(world: ConsumerWorld) -> None:
    world.join("m1", "orders", "payments")
    written = len(world.log)
    world.beat("m1", topics=("payments", "orders", "payments"))
    assert len(world.log) == written


def test_a_regular_expression_of_another_grammar(world: ConsumerWorld) -> None:
    world.join("m1", "orders")
    for expression in ("(", r"(a)\1", "(?=a)", "a**", "[z-a]", "a" * 40_000):
        refused(world, InvalidRegularExpression, partial(world.join, "m2", regex=expression))
        refused(world, InvalidRegularExpression, partial(world.beat, "m1", regex=expression))


def test_the_assignor_that_most_members_want(world: ConsumerWorld) -> None:
    world.join("m1", "orders", "payments", assignor="range")
    world.join("m2", "orders", "payments", assignor="range")
    world.join("m3", "orders", "payments", assignor="uniform")
    world.settle()
    assert world.assigned("m1") == world.topics.partitions(orders={0}, payments={0})
    assert world.group.preferred_assignor("uniform") == "range"


def test_targets_wait_for_their_interval() -> None:
    world = ConsumerWorld(group_consumer_assignment_interval_ms=1000)
    world.join("m1", "orders")
    world.join("m2", "orders")
    assert (world.group.epoch, world.group.target_epoch, world.group.state) == (3, 2, GroupState.ASSIGNING)
    world.now_ms += 999
    world.assign()
    assert world.group.target_epoch == 2
    world.now_ms += 1
    world.assign()
    assert world.group.target_epoch == 3
    world.settle()
    assert world.assigned("m2") == world.topics.partitions(orders={2})


# Static members


def test_a_static_member_comes_back_to_its_partitions(world: ConsumerWorld) -> None:
    world.join("m1", "orders", instance_id="i1")
    world.join("m2", "orders", instance_id="i2")
    world.settle()
    before, other, epoch = world.assigned("m2"), world.assigned("m1"), world.group.epoch
    world.leave("m2", -2, "i2")
    assert world.group.members["m2"].epoch == -2
    world.settle()
    assert world.assigned("m1") == other
    back = world.join("m3", "orders", instance_id="i2")
    assert (back.member_epoch, back.assignment) == (epoch, before)
    assert set(world.group.members) == {"m1", "m3"}
    refused(world, FencedInstanceId, lambda: world.heartbeat("m2", epoch, instance_id="i2"))


def test_an_instance_that_has_not_left(world: ConsumerWorld) -> None:
    world.join("m1", "orders", instance_id="i1")
    refused(world, UnreleasedInstanceId, lambda: world.join("m2", "orders", instance_id="i1"))
    refused(world, FencedInstanceId, lambda: world.leave("m2", -1, "i1"))
    refused(world, FencedInstanceId, lambda: world.leave("m2", -2, "i1"))
    refused(world, UnknownMemberId, lambda: world.leave("m2", -2, "i2"))
    world.leave("m1", -1, "i1")
    assert world.join("m2", "orders", instance_id="i1").assignment == world.topics.partitions(orders={0, 1, 2})


def test_a_static_member_that_comes_back_with_another_subscription(world: ConsumerWorld) -> None:
    world.join("m1", "orders", instance_id="i1")
    world.leave("m1", -2, "i1")
    back = world.join("m2", "payments", instance_id="i1")
    assert back.assignment == world.topics.partitions(payments={0, 1})


# Offsets


def commit(
    world: ConsumerWorld,
    member_id: str,
    epoch: int,
    *partitions: int,
    version_9: bool = True,
    producer: ProducerAndEpoch | None = None,
) -> None:
    topic_id = world.topics.id_of("orders")
    offsets = tuple(PartitionCommit(topic="orders", partition=at, offset=1, topic_id=topic_id) for at in partitions)
    request = CommitRequest(
        group_id="g",
        member_id=member_id,
        generation_id=epoch,
        reports_unknown_group=version_9,
        producer=producer,
        offsets=offsets,
    )
    world.group.check_commit(request)


def test_commits_name_the_epoch_of_the_member(world: ConsumerWorld) -> None:
    commit(world, "", -1, 0)
    world.join("m1", "orders")
    commit(world, "m1", 2, 0, 1, 2)
    refused(world, StaleMemberEpoch, lambda: commit(world, "m1", 3, 0))
    refused(world, StaleMemberEpoch, lambda: commit(world, "m1", 1, 0))
    refused(world, UnknownMemberId, lambda: commit(world, "m2", 2, 0))
    refused(world, UnknownMemberId, lambda: commit(world, "", -1, 0))
    refused(world, UnsupportedVersion, lambda: commit(world, "m1", 2, 0, version_9=False))


def test_commits_in_transactions_know_the_errors_of_classic_groups(world: ConsumerWorld) -> None:
    def commit_in_transaction(member_id: str, epoch: int) -> None:
        commit(world, member_id, epoch, 0, version_9=False, producer=ProducerAndEpoch(7, 0))

    commit_in_transaction("", -1)
    world.join("m1", "orders")
    commit_in_transaction("m1", 2)
    commit_in_transaction("", -1)
    refused(world, IllegalGeneration, lambda: commit_in_transaction("m1", 3))
    refused(world, IllegalGeneration, lambda: commit_in_transaction("m1", 1))
    refused(world, UnknownMemberId, lambda: commit_in_transaction("m2", 2))


def test_a_commit_of_the_epoch_before_counts_for_what_was_owned_then(world: ConsumerWorld) -> None:
    world.join("m1", "orders")
    world.join("m2", "orders")
    world.settle()
    commit(world, "m1", 2, 0, 1)
    refused(world, StaleMemberEpoch, lambda: commit(world, "m1", 2, 0, 2))
    refused(world, StaleMemberEpoch, lambda: commit(world, "m2", 2, 2))


def test_fetches_may_name_the_epoch_of_the_member(world: ConsumerWorld) -> None:
    world.join("m1", "orders")
    world.group.check_fetch(None, -1)
    world.group.check_fetch("m1", 2)
    refused(world, StaleMemberEpoch, lambda: world.group.check_fetch("m1", 1))
    refused(world, UnknownMemberId, lambda: world.group.check_fetch("m2", 2))
    refused(world, UnknownMemberId, lambda: world.group.check_fetch("", 2))


def test_commits_inside_transactions(world: ConsumerWorld) -> None:
    """TxnOffsetCommit may leave out who commits, and has no code for a stale epoch."""
    world.join("m1", "orders")
    topic_id = world.topics.id_of("orders")
    anonymous = CommitRequest(
        group_id="g",
        producer=ProducerAndEpoch(7, 0),
        offsets=(PartitionCommit(topic="orders", partition=0, offset=1, topic_id=topic_id),),
    )
    world.group.check_commit(anonymous)
    world.group.check_commit(replace(anonymous, member_id="m1", generation_id=2))
    stale = replace(anonymous, member_id="m1", generation_id=1)
    refused(world, IllegalGeneration, lambda: world.group.check_commit(stale))
    unknown = replace(anonymous, member_id="m2", generation_id=2)
    refused(world, UnknownMemberId, lambda: world.group.check_commit(unknown))
