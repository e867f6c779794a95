"""A log with a gap: it refused a write and took one behind it, and the broker ended before the first was written again.

Whoever reads a partition then is the only one who does.
"""

from __future__ import annotations

import pytest

from strandline.coordinators.groups import GroupState, HeartbeatRequest
from strandline.coordinators.groups.modern.partitions import pairs
from strandline.errors import CoordinatorNotAvailable
from tests.coordinators.groups.consumer.shard_world import Answers, ShardWorld, check_replay


@pytest.mark.parametrize("is_alive", [True, False])
def test_a_gap_in_the_log_gives_no_partition_two_owners(is_alive: bool) -> None:
    """A removal is refused, what it made free is given away in a write behind it, and the broker dies."""
    world = ShardWorld()
    for member_id in ("a", "b", "a", "b"):
        if "g" in world.shard.groups and member_id in world.group.members:
            world.obey(member_id)
        else:
            world.join(member_id, "orders")
    held = world.assigned("a")
    assert held
    world.shard.consumer.remove(world.group, [world.group.members["a"]], "its session has ended", lambda _: None)
    epoch = world.group.members["b"].epoch
    told = world.send(HeartbeatRequest(group_id="g", member_id="b", member_epoch=epoch, owned=world.assigned("b")))
    world.log.finish_one(accept=False)
    world.log.finish_one(accept=True)
    assert isinstance(told.only.error, CoordinatorNotAvailable)
    world.restart()
    world.settle()
    assert world.assigned("a") == held
    assert not set(pairs(world.assigned("b"))) & set(pairs(held))
    for _ in range(4):
        assert not set(pairs(world.obey("b").assignment or {})) & set(pairs(world.assigned("a")))
        if is_alive:
            world.obey("a")
        world.let_time_pass(1)
    if not is_alive:
        world.let_time_pass(40)
        world.keep_alive("b")
        world.let_time_pass(6)
        world.obey("b")
    owned = [world.assigned(member_id) for member_id in world.group.members]
    assert sorted(pair for one in owned for pair in pairs(one)) == sorted(pairs(world.topics.all_of("orders")))
    assert world.state() is GroupState.STABLE
    check_replay(world)


def one_who_does_not_let_go() -> ShardWorld:
    """A group whose first member still reads everything, and has been told to leave half of it to the second."""
    world = ShardWorld()
    world.join("a", "orders")
    world.obey("a")
    world.join("b", "orders")
    everything = world.topics.all_of("orders")
    world.heartbeat("a", world.group.members["a"].epoch, owned=everything)
    assert world.group.members["a"].pending_revocation
    assert world.assigned("b") == {}
    return world


def taken_from_the_first(world: ShardWorld) -> Answers:
    """The first member is removed, and the second gets its partitions: two writes that wait."""
    world.shard.consumer.remove(world.group, [world.group.members["a"]], "it did not let go", lambda _: None)
    told = world.send(HeartbeatRequest(group_id="g", member_id="b", member_epoch=world.group.members["b"].epoch))
    assert world.assigned("b") == world.topics.all_of("orders")
    assert len(world.log.waiting) == 2
    return told


def test_a_partition_that_was_taken_from_its_later_owner_is_not_free() -> None:
    world = one_who_does_not_let_go()
    told = taken_from_the_first(world)
    world.log.finish_one(accept=False)
    world.log.finish_one(accept=True)
    assert isinstance(told.only.error, CoordinatorNotAvailable)
    world.restart()
    world.settle()
    everything = world.topics.all_of("orders")
    assert set(pairs(world.group.members["a"].owned)) == set(pairs(everything))
    for _ in range(3):
        world.obey("b")
        world.let_time_pass(1)
        assert world.assigned("b") == {}, "the first member may still read all of it"
    world.obey("a")
    world.obey("b")
    assert {*pairs(world.assigned("a")), *pairs(world.assigned("b"))} == set(pairs(everything))
    assert world.state() is GroupState.STABLE
    check_replay(world)


def test_nobody_is_told_what_was_decided_on_a_decision_that_is_being_written_again() -> None:
    """A third member's decision takes the refused removal with it, and both are still on their way."""
    world = one_who_does_not_let_go()
    told = taken_from_the_first(world)
    world.log.finish_one(accept=False)
    third = HeartbeatRequest(group_id="g", member_id="c", topics=("orders",), rebalance_timeout_ms=9, owned={})
    joined = world.send(third)
    world.log.finish_one(accept=True)
    assert isinstance(told.only.error, CoordinatorNotAvailable), "a successor may find that the first has them all"
    assert not world.shard.consumer.table.writer.is_settled("g")
    world.settle()
    assert joined.only.error is None
    assert world.shard.consumer.table.writer.is_settled("g")
    check_replay(world)
