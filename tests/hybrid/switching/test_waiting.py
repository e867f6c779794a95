"""A replica is waited for until it says that it has come to a state, or until a deadline."""

from __future__ import annotations

import asyncio

import pytest

from strandline.hybrid.switching.waiting import wait_until
from strandline.replication import Partition
from strandline.tasks import next_turn
from strandline.testing.clock import VirtualClock
from tests.replication.conftest import Fixture, batch, fixture, image
from tests.replication.test_partition import append
from tests.replication.test_sealing import end_transaction, transactional

__all__ = ["fixture"]


def is_quiet(replica: Partition) -> bool:
    return replica.is_quiet


def is_drained(replica: Partition) -> bool:
    return not replica.has_open_transactions


async def begun(replica: Partition, clock: VirtualClock, *, deadline: float = 5.0) -> asyncio.Task[bool]:
    """The replica is waited for."""
    waiting = asyncio.create_task(wait_until(replica, is_quiet, clock, deadline=deadline))
    while not replica.is_watched:
        await next_turn()
    return waiting


async def test_a_replica_that_is_in_the_state_is_not_waited_for(fixture: Fixture) -> None:
    replica, clock = fixture.partition(), VirtualClock()
    replica.follow(image())
    append(replica, batch(b"x"))
    clock.move(10.0)
    assert await wait_until(replica, is_quiet, clock, deadline=5.0), "also if it is late"
    assert not replica.is_watched


async def test_a_log_is_at_rest_as_soon_as_its_last_record_is_replicated(fixture: Fixture) -> None:
    replica, clock = fixture.partition(), VirtualClock()
    replica.follow(image(replicas=(1, 2), isr=(1, 2)))
    append(replica, batch(b"x"), acks=1)
    waiting = await begun(replica, clock)
    append(replica, batch(b"y"), acks=1)
    await clock.settle()
    assert not waiting.done()
    replica.follow(image(replicas=(1, 2), isr=(1,), version=1))
    assert await waiting
    assert not replica.is_watched


async def test_a_transaction_is_over_as_soon_as_its_marker_is_there(fixture: Fixture) -> None:
    replica, clock = fixture.partition(), VirtualClock()
    replica.follow(image())
    for producer_id in (3, 4):
        append(replica, transactional(b"x", producer_id=producer_id, sequence=0))
    waiting = asyncio.create_task(wait_until(replica, is_drained, clock, deadline=5.0))
    for producer_id in (3, 4):
        await clock.settle()
        assert not waiting.done()
        end_transaction(replica, producer_id)
    assert await waiting


async def test_it_is_not_waited_for_behind_the_deadline(fixture: Fixture) -> None:
    replica, clock = fixture.partition(), VirtualClock()
    replica.follow(image(replicas=(1, 2), isr=(1, 2)))
    append(replica, batch(b"x"), acks=1)
    waiting = await begun(replica, clock)
    await clock.advance(4.9)
    assert not waiting.done()
    await clock.advance(0.2)
    assert not await waiting
    assert not replica.is_watched


async def test_who_gives_up_waiting_leaves_nothing_behind(fixture: Fixture) -> None:
    replica, clock = fixture.partition(), VirtualClock()
    replica.follow(image(replicas=(1, 2), isr=(1, 2)))
    append(replica, batch(b"x"), acks=1)
    waiting = await begun(replica, clock)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not replica.is_watched
