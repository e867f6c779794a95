"""Heartbeats that decide nothing: what they are answered, and what is not one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from strandline.coordinators.groups import HeartbeatRequest, HeartbeatResponse
from strandline.coordinators.groups.consumer.changes import ConsumerChanges
from strandline.coordinators.groups.consumer.heartbeat import heartbeat
from strandline.coordinators.groups.consumer.steady import is_steady
from strandline.errors import CoordinatorNotAvailable
from tests.coordinators.groups.consumer.shard_world import ShardWorld


def steady_world(**joining: Any) -> ShardWorld:
    """A group whose only member has what it is to have, and knows it."""
    world = ShardWorld()
    world.join("m1", "orders", **joining)
    world.obey("m1")
    world.obey("m1")
    return world


def beat(world: ShardWorld, **fields: Any) -> HeartbeatRequest:
    epoch = world.group.members["m1"].epoch
    return HeartbeatRequest(group_id="g", member_id="m1", member_epoch=epoch)._replace(**fields)


def asks(world: ShardWorld, request: HeartbeatRequest) -> bool:
    return is_steady(world.group, world.group.members["m1"], request, world.topics.image)


@pytest.mark.parametrize("fields", [{}, {"owned": {}}, {"instance_id": "i1"}])
def test_a_member_that_says_nothing_new_is_answered_at_once(fields: dict[str, Any]) -> None:
    world = steady_world(instance_id=fields.get("instance_id"))
    request, written = beat(world, **fields), len(world.log.records)
    assert asks(world, request)
    (answer,) = world.send(request).given
    interval = world.shard.consumer.around("g").limits.heartbeat_interval_ms
    epoch = world.group.members["m1"].epoch
    assert answer == HeartbeatResponse(member_id="m1", member_epoch=epoch, heartbeat_interval_ms=interval)
    assert not world.log.waiting
    assert len(world.log.records) == written
    changes = ConsumerChanges(world.group)
    assert heartbeat(changes, request, world.shard.consumer.around("g")) == answer, "what a whole decision gives"
    assert not changes.is_any


def test_it_extends_the_session() -> None:
    world = steady_world()
    timeout = world.settings.group_consumer_session_timeout_ms / 1000
    for _ in range(3):
        world.clock.move(timeout * 0.9)
        world.timers.run_due()
        assert world.send(beat(world)).given
    world.clock.move(timeout * 1.1)
    world.timers.run_due()
    assert not world.group.members


CHANGES: dict[str, dict[str, Any]] = {
    "an older epoch": {"member_epoch": 1},
    "it joins": {"member_epoch": 0},
    "it leaves": {"member_epoch": -1},
    "it leaves for a while": {"member_epoch": -2},
    "its topics": {"topics": ("orders",)},
    "an expression": {"regex": "o.*"},
    "an assignor": {"assignor": "range"},
    "a timeout": {"rebalance_timeout_ms": 1000},
    "an instance id": {"instance_id": "other"},
    "a rack": {"rack_id": "here"},
    "another client": {"client_id": "other"},
    "another host": {"client_host": "/other"},
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_member_that_says_something_is_listened_to(name: str) -> None:
    world = steady_world()
    assert asks(world, beat(world))
    assert not asks(world, beat(world, **CHANGES[name]))


def another_member(world: ShardWorld) -> None:
    world.join("m2", "orders")


def more_partitions(world: ShardWorld) -> None:
    world.topics.enlarge("orders", 8)


def an_expression(world: ShardWorld) -> None:
    world.join("m2", regex="pay.*", topics=())
    for member_id in ("m1", "m2", "m1", "m2"):
        world.obey(member_id)


@pytest.mark.parametrize("change", [another_member, more_partitions, an_expression])
def test_a_group_that_has_something_to_decide_is_not_steady(change: Callable[[ShardWorld], None]) -> None:
    world = steady_world()
    change(world)
    assert not asks(world, beat(world))


def test_nobody_is_answered_before_the_log_has_what_was_decided() -> None:
    world = steady_world()
    other = HeartbeatRequest(group_id="g", member_id="m2", topics=("payments",), rebalance_timeout_ms=9, owned={})
    world.send(other)
    assert world.log.waiting
    epoch = world.group.members["m1"].epoch
    first = world.send(HeartbeatRequest(group_id="g", member_id="m1", member_epoch=epoch))
    assert not first.given
    world.settle(accept=False)
    assert isinstance(first.only.error, CoordinatorNotAvailable)
    assert not world.shard.consumer.table.writer.is_settled("g")
