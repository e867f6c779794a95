"""Decisions that do not fit into one batch of the log: cut where that is safe, refused where it is not."""

from __future__ import annotations

import pytest

from strandline.coordinators.groups import HeartbeatRequest
from strandline.coordinators.groups.consumer.group import ConsumerGroup
from strandline.coordinators.groups.consumer.schemas import ConsumerRecordKey, ConsumerRecordType
from strandline.coordinators.groups.schemas import read_key
from strandline.coordinators.runtime import write_size
from strandline.errors import StrandlineError
from strandline.wire.errors import ErrorCode, error_code_of
from tests.coordinators.groups.consumer.consumer_world import state_of
from tests.coordinators.groups.consumer.shard_world import ShardWorld

LIMIT = 4000


def kinds(world: ShardWorld) -> list[ConsumerRecordType]:
    keys = [read_key(raw_key) for raw_key, _ in world.log.records]
    return [key.kind for key in keys if isinstance(key, ConsumerRecordKey)]


def same_after_replay(world: ShardWorld) -> None:
    again = world.replayed().groups["g"]
    assert isinstance(again, ConsumerGroup)
    assert state_of(again) == state_of(world.group)


def test_a_subscription_that_is_too_large_is_refused_and_the_group_goes_on() -> None:
    world = ShardWorld()
    world.log.limit = LIMIT
    world.join("m1", "orders")
    before = state_of(world.group)
    with pytest.raises(StrandlineError, match=r"max\.message\.bytes") as refused:
        world.join("m2", *(f"{'x' * 200}-{at}" for at in range(30)))
    assert error_code_of(refused.value) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert state_of(world.group) == before
    assert not world.log.waiting
    assert world.join("m3", "orders").error is None
    assert world.leave("m1").error is None
    world.let_time_pass(2)
    assert world.obey("m3").error is None
    assert world.assigned("m3") == world.topics.all_of("orders")
    same_after_replay(world)


def test_a_new_group_whose_first_member_is_refused_is_not_there() -> None:
    world = ShardWorld()
    world.log.limit = LIMIT
    with pytest.raises(StrandlineError, match=r"max\.message\.bytes"):
        world.join("m1", *(f"{'x' * 200}-{at}" for at in range(30)))
    assert not world.shard.groups
    assert len(world.timers) == 0


def test_a_match_that_is_too_large_does_not_hold_up_the_group() -> None:
    """The expression of one member matches more than a record can hold; those of the others count."""
    world = ShardWorld()
    world.log.limit = LIMIT
    for at in range(30):
        world.topics.create(f"{'long' * 40}-{at}", 1)
    world.join("m1", regex="orders")
    world.join("m2", regex="long.*")
    world.let_time_pass(20)
    for member_id in ("m1", "m2", "m1", "m2"):
        world.obey(member_id)
        world.let_time_pass(11)
    assert set(world.group.expressions) == {"orders"}
    assert world.assigned("m1") == world.topics.all_of("orders")
    assert world.join("m3", "payments").error is None
    world.let_time_pass(2)
    assert world.obey("m3").error is None
    same_after_replay(world)


def test_matches_that_fit_one_by_one_are_all_stored() -> None:
    world = ShardWorld()
    for at in range(12):
        world.topics.create(f"{'long' * 40}-{at}", 1)
    world.log.limit = LIMIT
    for at, regex in enumerate(("long.*", ".*-.*", "lo.*")):
        world.join(f"m{at}", regex=regex)
        world.let_time_pass(11)
        world.obey("m0")
    assert set(world.group.expressions) == {"long.*", ".*-.*", "lo.*"}
    same_after_replay(world)


def wide_group() -> ShardWorld:
    """Sixty members, and a topic that is created now: what each of them gets fits, and all of it does not."""
    world = ShardWorld()
    for at in range(60):
        world.join(f"m{at}", "wide")
    world.log.limit = LIMIT
    world.topics.create("wide", 1200)
    return world


def becomes_stable(world: ShardWorld) -> None:
    for _ in range(3):
        for at in range(60):
            assert world.obey(f"m{at}").error is None
    assert world.group.state.value == "Stable"
    assert sum(len(numbers) for at in range(60) for numbers in world.assigned(f"m{at}").values()) == 1200
    same_after_replay(world)


def test_a_target_that_is_too_large_is_written_in_several_batches_its_epoch_last() -> None:
    world = wide_group()
    before = len(world.log.records)
    assert world.obey("m0").error is None
    written = kinds(world)[before:]
    assert written[-1] is ConsumerRecordType.TARGET_EPOCH
    assert written.count(ConsumerRecordType.TARGET) == 60
    assert write_size(world.log.records[before:]) > LIMIT
    becomes_stable(world)


@pytest.mark.parametrize("taken", [0, 1, 2, 3])
def test_a_broker_that_dies_between_two_batches_leaves_a_group_that_assigns_again(taken: int) -> None:
    world = wide_group()
    member, before = world.group.members["m0"], world.group.target_epoch
    answers = world.send(HeartbeatRequest(group_id="g", member_id="m0", member_epoch=member.epoch, owned={}))
    assert len(world.log.waiting) > 3
    for _ in range(taken):
        world.log.finish_one(accept=True)
    assert not answers.given
    world.restart()
    assert world.group.target_epoch == before
    world.let_time_pass(2)
    becomes_stable(world)


def test_many_members_that_leave_at_once_leave_in_several_decisions() -> None:
    world = ShardWorld()
    for at in range(80):
        world.join(f"m{at}", "orders")
    world.log.limit = LIMIT
    done: list[StrandlineError | None] = []
    world.shard.consumer.remove(world.group, list(world.group.members.values())[:70], "they leave", done.append)
    world.settle()
    assert done == [None]
    assert len(world.group.members) == 10
    same_after_replay(world)


def test_what_the_log_refused_for_long_is_written_again_in_several_batches() -> None:
    world = ShardWorld()
    world.log.limit = LIMIT
    for at in range(40):
        request = HeartbeatRequest(
            group_id="g", member_id=f"m{at}", topics=("orders",), rebalance_timeout_ms=1000, owned={}
        )
        world.send(request)
        world.settle(accept=False)
    world.let_time_pass(3)
    assert not world.log.waiting
    same_after_replay(world)
    assert world.join("m99", "orders").error is None
