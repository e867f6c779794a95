"""Split files that were written and not recorded go when the claims of their run are given up."""

from __future__ import annotations

from strandline.clock import SystemChance
from strandline.controlplane.conversion.values import LATE_SPLITS_MS
from strandline.conversion_api.values import ClaimedFile
from strandline.diskless.upkeep import LeftoverFinder
from strandline.diskless.wal import split_keys
from tests.diskless.batches import TOPIC_A
from tests.diskless.test_split_files import ME, claimed, clean, record, written
from tests.diskless.world import A0, B0, World

HOUR_S = 3_600.0


def finder(world: World) -> LeftoverFinder:
    """Of a broker that has just started."""
    return LeftoverFinder(world.plane.runs, world.store, clock=world.clock, chance=SystemChance(1), broker_id=1)


async def split_keys_of(world: World) -> set[str]:
    return {key for key in await world.keys() if key.startswith("split/")}


async def write_splits(world: World, file: ClaimedFile) -> set[str]:
    return {split.file.object_key for split in await written(world, file)}


async def release(world: World, *files: ClaimedFile) -> None:
    await world.plane.claims.release_wal_file_claims(ME, [file.object_key for file in files])


async def two_claimed(world: World) -> list[ClaimedFile]:
    await world.create_logs(A0, B0)
    for _ in range(2):
        await world.write(A0, B0)
    world.clock.move(1)
    return await claimed(world)


async def test_what_is_not_recorded_goes_when_claims_are_given_back(world: World) -> None:
    first, second = await two_claimed(world)
    splits = await written(world, first)
    await write_splits(world, second)
    assert await finder(world).run_once() == 0
    await record(world, first.object_key, splits)
    assert await finder(world).run_once() == 0
    await release(world, second)
    assert await finder(world).run_once() == 2
    await clean(world)
    assert await split_keys_of(world) == {split.file.object_key for split in splits}


async def test_what_is_not_recorded_goes_when_claims_expire(world: World) -> None:
    """Whichever broker is on duty then: it has nothing in memory."""
    first, second = await two_claimed(world)
    await write_splits(world, first)
    world.clock.move(HOUR_S)  # in another hour than the claim, and the broker was away for a while
    await write_splits(world, second)
    world.clock.move(2 * HOUR_S)
    assert await finder(world).run_once() == 4
    await clean(world)
    assert await split_keys_of(world) == set()


async def test_what_a_cancelled_task_writes_late_goes_with_the_second_look(world: World) -> None:
    first, second = await two_claimed(world)
    await release(world, first, second)
    assert await finder(world).run_once() == 0
    await write_splits(world, first)
    world.clock.move(LATE_SPLITS_MS / 1000)
    assert await finder(world).run_once() == 2
    await clean(world)
    assert await split_keys_of(world) == set()


async def test_what_is_written_under_a_new_claim_while_the_store_is_listed_stays(world: World) -> None:
    first, second = await two_claimed(world)
    await write_splits(world, first)
    await release(world, first, second)
    (run,) = await world.plane.runs.given_up_runs(limit=1)
    (file, _) = await claimed(world)
    kept = await written(world, file)
    assert await world.plane.runs.take_leftovers(run, [split.file.object_key for split in kept], broker_id=1) is None
    assert (await record(world, file.object_key, kept)).refused == {}


async def test_files_of_others_stay(world: World) -> None:
    """Those of another run, those of earlier versions, and whatever somebody else has put there."""
    first, second = await two_claimed(world)
    now_ms = world.clock.now_ms()
    mine = split_keys.make(now_ms, ME, TOPIC_A, 0, 0, world.ids.uuid())
    run, rest = mine.rpartition("/")[2].split("-", 1)
    others = {
        split_keys.make(now_ms, "another", TOPIC_A, 0, 0, world.ids.uuid()),
        mine.replace(f"{run}-", ""),
        f"{split_keys.run_prefix(now_ms, ME)}something",
    }
    assert split_keys.parse(mine.replace(f"{run}-", "")) == split_keys.parse(mine), rest
    for key in (mine, *others):
        await world.put(key, [b"whatever"])
    await release(world, first, second)
    assert await finder(world).run_once() == 1
    await clean(world)
    assert await split_keys_of(world) == others


async def test_many_files_of_a_run_are_taken_page_by_page(world: World) -> None:
    first, second = await two_claimed(world)
    for offset in range(450):
        await world.put(split_keys.make(world.clock.now_ms(), ME, TOPIC_A, 0, offset, world.ids.uuid()), [b"x"])
    await release(world, first, second)
    assert await finder(world).run_once() == 450
    assert await finder(world).run_once() == 0
