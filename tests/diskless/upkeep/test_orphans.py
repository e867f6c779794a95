"""Objects that were never committed are found and deleted; uploads in flight are left alone."""

from __future__ import annotations

import asyncio

import pytest

from strandline.clock import SystemChance
from strandline.controlplane import Refusal
from strandline.diskless.upkeep import FileCleaner, OrphanFinder, OrphanSummary, orphans
from strandline.diskless.wal import keys
from strandline.objects import ObjectStore, ObjectStoreUnavailable
from tests.diskless.batches import append
from tests.diskless.faults import Ending
from tests.diskless.world import A0, World

GRACE_S = 600.0
HOUR_S = 3600.0


def finder(world: World, store: ObjectStore | None = None) -> OrphanFinder:
    return OrphanFinder(
        world.plane.files,
        store or world.store,
        clock=world.clock,
        chance=SystemChance(1),
        broker_id=1,
        interval_ms=round(GRACE_S * 1000),
        grace_ms=round(GRACE_S * 1000),
    )


async def clean(world: World) -> None:
    cleaner = FileCleaner(
        world.plane.files,
        world.store,
        clock=world.clock,
        chance=SystemChance(1),
        interval_ms=1000,
        grace_ms=0,
        max_files_per_round=1000,
    )
    world.clock.move(1)
    await cleaner.run_once()


async def test_an_upload_without_a_commit_is_deleted_after_its_grace(world: World) -> None:
    await world.create_logs(A0)
    kept = await world.write(A0)
    lost = (await world.upload([append(A0)])).object_key
    finding = finder(world)
    # The hour of both is younger than the grace, so the listing ends at the first.
    assert await finding.run_once() == OrphanSummary(objects_listed=1, orphans_taken=0, is_full=True)
    await clean(world)
    assert await world.keys() == {kept, lost}

    world.clock.move(GRACE_S + 1)
    assert (await finding.run_once()).orphans_taken == 1
    assert await world.marked() == {lost}
    await clean(world)
    assert await world.keys() == {kept}
    assert finding.status().orphans_taken == 1


async def test_a_commit_that_comes_too_late_is_refused(world: World) -> None:
    await world.create_logs(A0)
    slow = await world.upload([append(A0)])
    world.clock.move(GRACE_S + 1)
    await finder(world).run_once()
    (answer,) = await world.commit(slow)
    assert answer.refusal is Refusal.STALE_FILE
    log = (await world.plane.reads.logs([A0]))[A0]
    assert log.high_watermark == 0


async def test_a_commit_and_the_finder_at_once_never_both_get_the_object(world: World) -> None:
    await world.create_logs(A0)
    for _ in range(10):
        file = await world.upload([append(A0)])
        world.clock.move(GRACE_S + 1)
        (answer,), found = await asyncio.gather(world.commit(file), finder(world).run_once())
        is_taken = file.object_key in await world.marked()
        assert is_taken == (answer.refusal is Refusal.STALE_FILE)
        assert found.orphans_taken == is_taken


async def test_what_is_not_named_as_a_wal_object_is_never_touched(world: World) -> None:
    for key in ("strandline-cluster.json", "wal/README", "wal/2001010100/notes.txt"):
        await world.put(key, [b"mine"])
    world.clock.move(GRACE_S + 1)
    assert (await finder(world).run_once()).orphans_taken == 0
    await clean(world)
    assert len(await world.keys()) == 3


async def test_later_rounds_list_only_the_hours_that_are_new(world: World) -> None:
    await world.create_logs(A0)
    for _ in range(6):
        await world.write(A0)
        world.clock.move(HOUR_S)
    finding = finder(world)
    assert await finding.run_once() == OrphanSummary(objects_listed=6, orphans_taken=0, is_full=True)
    for _ in range(3):
        world.clock.move(HOUR_S)
        await world.upload([append(A0)])
    world.clock.move(HOUR_S)
    summary = await finding.run_once()
    assert (summary.is_full, summary.orphans_taken) == (False, 3)
    assert summary.objects_listed <= 5  # the new ones, and those of the hours around the end of the last round


async def test_an_upload_that_went_on_into_the_next_hour_is_found_without_a_full_round(world: World) -> None:
    start_ms = world.clock.now_ms() // keys.HOUR_MS * keys.HOUR_MS
    key = keys.make(start_ms - 1, 1, world.ids.uuid())  # made at the very end of an hour, written in the next
    finding = finder(world)
    await finding.run_once()
    await world.put(key, [b"whatever"])
    world.clock.move(GRACE_S + 1)
    summary = await finding.run_once()
    assert (summary.is_full, summary.orphans_taken) == (False, 1)


async def test_one_round_each_day_lists_everything(world: World) -> None:
    finding = finder(world)
    await finding.run_once()
    key = keys.make(0, 1, world.ids.uuid())  # by a broker whose clock stood at 1970
    await world.put(key, [b"whatever"])
    world.clock.move(GRACE_S + 1)
    assert (await finding.run_once()).orphans_taken == 0
    world.clock.move(25 * HOUR_S)
    assert await finding.run_once() == OrphanSummary(objects_listed=1, orphans_taken=1, is_full=True)


async def test_an_interrupted_round_goes_on_where_it_stood(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphans, "_PAGE", 2)
    lost = sorted([(await world.upload([append(A0)])).object_key for _ in range(7)])
    world.clock.move(GRACE_S + 1)
    store = Ending(world.store, after=5)
    finding = finder(world, store)
    with pytest.raises(ObjectStoreUnavailable):
        await finding.run_once()
    assert await world.marked() == set(lost[:4])
    assert (await finding.run_once()).orphans_taken == 3
    assert store.starts == ["", lost[3], ""]  # the last one is that of split files
    assert await world.marked() == set(lost)
