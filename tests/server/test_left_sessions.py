"""Fetch sessions whose clients have left, and news that come while nobody waits."""

from __future__ import annotations

import asyncio

import pytest

from strandline.tasks import next_turn
from tests.server.test_many_consumers import PATIENCE, SMALL, Consumer, World
from tests.server.test_many_consumers import world as world  # a fixture

PLACES = [("classic", number) for number in range(SMALL)]


async def leave(world: World, consumer: Consumer) -> None:
    consumer.client.drop()
    async with asyncio.timeout(PATIENCE):
        while any(connection.waiting for connection in world.broker.network.connections):
            await next_turn()


@pytest.mark.parametrize("waits", [True, False])
async def test_appends_do_not_notify_a_session_that_its_client_left_behind(world: World, waits: bool) -> None:
    consumer = Consumer(world, await world.connect(), PLACES)
    consumer.ask(wait_ms=0)
    await consumer.take()
    if waits:
        consumer.ask()
        await world.all_wait(1)
    await leave(world, consumer)
    assert world.classic("classic", 0).replica.is_watched
    await world.write("classic", 0, b"the first news")
    assert not world.classic("classic", 0).replica.is_watched
    assert world.classic("classic", 1).replica.is_watched, "nothing has happened there"


async def test_a_place_that_had_news_while_nobody_waited_tells_of_the_next_ones(world: World) -> None:
    consumer = Consumer(world, await world.connect(), PLACES)
    consumer.ask(wait_ms=0)
    await consumer.take()
    for number in range(3):
        await world.write("classic", 0, b"%d" % number)
        consumer.ask()
        await consumer.take()
    consumer.ask()
    await world.all_wait(1)
    await world.write("classic", 0, b"while it waits")
    await consumer.take()
    assert consumer.offsets["classic", 0] == 4


async def test_a_place_that_was_woken_for_nothing_watches_again(world: World) -> None:
    consumer = Consumer(world, await world.connect(), PLACES)
    replica = world.classic("classic", 0).replica
    for _ in range(2):
        consumer.ask(wait_ms=1)
        await consumer.take()
    replica.notify_watchers()
    assert not replica.is_watched
    consumer.ask()
    await world.all_wait(1)
    assert replica.is_watched
    await leave(world, consumer)
    assert replica.is_watched, "the place itself, which found nothing new"
