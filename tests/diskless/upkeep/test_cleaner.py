"""The file cleaner deletes what nothing refers to, after its grace, and never loses its place."""

from __future__ import annotations

import asyncio
import logging

import pytest

from strandline.clock import SystemChance
from strandline.diskless.upkeep import FileCleaner
from strandline.objects import ObjectStore, ObjectStoreUnavailable
from strandline.testing.objects import ALWAYS, FaultyStore
from tests.diskless.batches import append
from tests.diskless.faults import Throttling
from tests.diskless.world import A0, A1, B0, World

GRACE_S = 60.0


def cleaner(world: World, store: ObjectStore | None = None, *, most: int = 20_000) -> FileCleaner:
    return FileCleaner(
        world.plane.files,
        store or world.store,
        clock=world.clock,
        chance=SystemChance(1),
        interval_ms=120_000,
        grace_ms=round(GRACE_S * 1000),
        max_files_per_round=most,
    )


async def test_an_object_goes_after_its_last_row_and_its_grace(world: World) -> None:
    await world.create_logs(A0, B0)
    shared = await world.write(A0, B0)
    cleaning = cleaner(world)
    await world.drop(A0)
    world.clock.move(2 * GRACE_S)
    assert (await cleaning.run_once()).files_deleted == 0  # B0 still refers to it

    await world.drop(B0)
    world.clock.move(GRACE_S - 1)
    assert (await cleaning.run_once()).files_deleted == 0
    assert shared in await world.keys()

    world.clock.move(2)
    summary = await cleaning.run_once()
    assert (summary.files_deleted, summary.has_more) == (1, False)
    assert summary.bytes_deleted > 0
    assert await world.keys() == set()
    assert await world.plane.files.files_after(-1, 10) == []
    assert cleaning.status().files_deleted == 1


async def test_the_last_topic_goes_and_leaves_no_object_behind(world: World) -> None:
    await world.create_logs(A0, A1)
    for _ in range(5):
        await world.write(A0, A1)
    await world.plane.lifecycle.delete_topics([A0.topic_id])
    assert await world.plane.lifecycle.topic_ids() == frozenset()
    world.clock.move(GRACE_S + 1)
    assert (await cleaner(world).run_once()).files_deleted == 5
    assert await world.keys() == set()


async def test_an_object_of_which_nothing_was_accepted_goes(world: World) -> None:
    file = await world.upload([append(A0)])  # a topic that was deleted meanwhile
    (answer,) = await world.commit(file)
    assert answer.refusal is not None
    world.clock.move(GRACE_S + 1)
    await cleaner(world).run_once()
    assert await world.keys() == set()


async def test_a_throttled_round_keeps_what_it_has_done(world: World) -> None:
    await world.create_logs(A0)
    for _ in range(40):
        await world.write(A0)
    await world.drop(A0)
    world.clock.move(GRACE_S + 1)
    store = Throttling(world.store, most=3)
    cleaning = cleaner(world, store)
    failures = 0
    while True:
        try:
            await cleaning.run_once()
            break
        except ObjectStoreUnavailable:
            failures += 1
            assert failures < 30, "no progress"
    assert await world.keys() == set()
    assert await world.marked() == set()
    assert cleaning.status().files_deleted == 40
    # Pages shrink until one gets through; from then on each failure costs a few objects a second request.
    assert max(store.deletions.values()) < 12


async def test_a_round_deletes_no_more_than_it_may(world: World) -> None:
    await world.create_logs(A0)
    for _ in range(5):
        await world.write(A0)
    await world.drop(A0)
    world.clock.move(GRACE_S + 1)
    cleaning = cleaner(world, most=2)
    rounds = [await cleaning.run_once() for _ in range(3)]
    assert [(summary.files_deleted, summary.has_more) for summary in rounds] == [(2, True), (2, True), (1, False)]


async def test_an_object_that_is_gone_already_does_not_stop_the_others(world: World) -> None:
    await world.create_logs(A0)
    first = await world.write(A0)
    await world.write(A0)
    await world.drop(A0)
    await world.store.delete([first])  # as if the last round had died before it forgot the row
    world.clock.move(GRACE_S + 1)
    await cleaner(world).run_once()
    assert await world.marked() == set()
    assert await world.keys() == set()


async def test_a_store_that_is_away_is_waited_for_with_one_line_for_each_try(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.create_logs(A0)
    await world.write(A0)
    await world.drop(A0)
    world.clock.move(GRACE_S + 1)
    store = FaultyStore(world.store, world.clock)
    store.fail("delete", times=ALWAYS, error=ObjectStoreUnavailable("The store does not answer."))
    cleaning = cleaner(world, store)
    with caplog.at_level(logging.INFO):
        task = asyncio.create_task(cleaning.run())
        await world.wait_until(lambda: cleaning.status().upkeep.failures_in_a_row == 3)
        assert len(caplog.records) == 3
        assert "Cleaning of WAL objects was interrupted" in caplog.text
        assert cleaning.status().upkeep.last_error == "The store does not answer."
        store.heal()
        await world.wait_until(lambda: cleaning.status().files_deleted == 1)
    await world.wait_until(lambda: cleaning.status().upkeep.failures_in_a_row == 0)
    assert cleaning.status().upkeep.last_completed_ms is not None
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
