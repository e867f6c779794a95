"""fsck and the search for orphans know split files and segments of the tiering pipeline."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from strandline.clock import SystemChance, SystemIds
from strandline.controlplane.conversion import TieringRule
from strandline.controlplane.conversion.values import ClaimWish, SplitAnswer, UploadState
from strandline.conversion_api.values import ClaimedFile, NewSplit, RecordSplits
from strandline.diskless.fsck import FsckOptions, FsckReport, WalFault
from strandline.diskless.upkeep import FileCleaner, OrphanFinder
from strandline.diskless.wal import split_keys
from strandline.hybrid.conversion.translating import claimed_files, splits_to_record
from strandline.pipeline.splitting import split_files
from tests.controlplane.converting import begin
from tests.diskless.batches import TOPIC_A, TOPIC_B
from tests.diskless.world import A0, B0, World

GRACE_S = 600.0
OVERDUE_S = 2_000.0
ME = "spark:here:1"


async def check(world: World, *, deep: bool = False, repair: bool = False) -> FsckReport:
    options = FsckOptions(
        grace_ms=round(GRACE_S * 1000), overdue_ms=round(OVERDUE_S * 1000), deep=deep, repair=repair, broker_id=1
    )
    return await world.compare(options)


async def claimed(world: World) -> list[ClaimedFile]:
    wish = ClaimWish(claimant=ME, max_files=100, max_rows=1_000, claim_ms=60_000)
    answer = await world.plane.claims.claim_wal_files_for_splitting(
        wish, [TieringRule(t, 0) for t in (TOPIC_A, TOPIC_B)]
    )
    return [*claimed_files(answer).files]


async def written(world: World, file: ClaimedFile) -> tuple[NewSplit, ...]:
    """The real split files of a WAL object, not recorded yet."""
    size = 1 << 20
    found = await split_files(
        world.store, [file], claimant=ME, buffer_bytes=size, joined_bytes=size, clock=world.clock, ids=SystemIds()
    )
    for split in found.splits:  # with the times of the world's clock
        data = await world.store.get_range(split.file.object_key, 0, split.file.size_bytes)
        await world.put(split.file.object_key, [bytes(data)])
    return found.splits


async def record(world: World, object_key: str, splits: tuple[NewSplit, ...]) -> SplitAnswer:
    """What the pipeline says when a WAL object is split."""
    request = RecordSplits(claimant=ME, object_keys=(object_key,), splits=splits)
    return await world.plane.claims.record_splits(splits_to_record(request))


async def split_all(world: World) -> list[str]:
    """The keys of the split files, which are recorded."""
    keys = []
    world.clock.move(1)
    for file in await claimed(world):
        splits = await written(world, file)
        answer = await record(world, file.object_key, splits)
        assert answer.refused == {}
        keys += [split.file.object_key for split in splits]
    return keys


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


async def test_split_files_that_are_in_order_are_no_finding(world: World) -> None:
    await world.create_logs(A0, B0)
    for _ in range(2):
        await world.write(A0, B0)
    keys = await split_all(world)
    assert all(split_keys.parse(key) for key in keys)
    for deep in (False, True):
        report = await check(world, deep=deep)
        assert (report.findings, report.objects, report.files, report.split_files) == ((), 6, 6, 4)


@pytest.mark.parametrize(
    ("damage", "needs_deep", "detail"),
    [
        (lambda data: data[:-1], False, "bytes instead of"),
        (lambda data: data[:70] + b"X" + data[71:], True, "The batch at byte 0 does not match its checksum"),
        (lambda data: b"\x00" * 7 + b"\x09" + data[8:], True, "has offset 9 instead of 0"),
        (lambda data: data[:16] + b"X" + data[17:], True, "no batch at byte 0"),
    ],
    ids=["cut", "records", "base-offset", "batch-magic"],
)
async def test_damage_is_found_and_repaired_from_the_wal_object(
    world: World, damage: Callable[[bytes], bytes], needs_deep: bool, detail: str
) -> None:
    await world.create_logs(A0)
    await world.write(A0)
    (key,) = await split_all(world)
    path = world.path(key)
    path.write_bytes(damage(path.read_bytes()))
    assert (await check(world)).is_clean == needs_deep
    (finding,) = (await check(world, deep=True)).findings
    assert (finding.kind, finding.key) == (WalFault.DAMAGED, key)
    assert detail in finding.detail
    assert "in the WAL object" in finding.detail
    assert (await check(world, deep=True, repair=True)).is_clean
    (anew,) = await split_all(world)
    assert anew != key
    await clean(world)
    report = await check(world, deep=True)
    assert (report.findings, report.objects) == ((), 2)


async def test_a_missing_split_file_is_made_anew(world: World) -> None:
    await world.create_logs(A0, B0)
    await world.write(A0, B0)
    missing, kept = await split_all(world)
    await world.store.delete([missing])
    (finding,) = (await check(world)).findings
    assert (finding.kind, finding.key) == (WalFault.MISSING, missing)
    assert await claimed(world) == []
    (finding,) = (await check(world, repair=True)).findings
    assert finding.is_repaired
    (anew,) = await split_all(world)
    assert (await check(world, deep=True)).is_clean
    assert await world.plane.claims.undo_splits([missing, "split/of nobody"]) == []
    (log,) = await world.plane.merging.mergeable_splits([TOPIC_A], max_splits=9)
    assert [split.file.object_key for split in log.splits] == [anew]
    assert kept in await world.keys()


async def test_split_files_that_were_never_recorded_are_orphans(world: World) -> None:
    await world.create_logs(A0)
    await world.write(A0)
    (recorded,) = await split_all(world)
    wal_key = await world.write(A0)
    world.clock.move(1)
    (file,) = await claimed(world)
    (lost,) = await written(world, file)
    key = lost.file.object_key
    assert (await check(world)).young_objects == 1
    world.clock.move(GRACE_S + 1)
    (finding,) = (await check(world)).findings
    assert (finding.kind, finding.key) == (WalFault.ORPHAN, key)
    finder = OrphanFinder(
        world.plane.files,
        world.store,
        clock=world.clock,
        chance=SystemChance(1),
        broker_id=1,
        interval_ms=round(GRACE_S * 1000),
        grace_ms=round(GRACE_S * 1000),
    )
    assert (await finder.run_once()).orphans_taken == 1
    assert list((await record(world, wal_key, (lost,))).refused) == [key]
    await clean(world)
    assert key not in await world.keys()
    assert recorded in await world.keys()
    assert list((await record(world, wal_key, (lost,))).refused) == [key]  # also after its deletion
    assert len(await split_all(world)) == 1


async def test_later_rounds_list_only_the_new_hours_of_split_files_too(world: World) -> None:
    finder = OrphanFinder(
        world.plane.files,
        world.store,
        clock=world.clock,
        chance=SystemChance(1),
        broker_id=1,
        interval_ms=round(GRACE_S * 1000),
        grace_ms=round(GRACE_S * 1000),
    )

    async def lose() -> None:
        key = split_keys.make(world.clock.now_ms(), ME, TOPIC_A, 0, 0, world.ids.uuid())
        await world.put(key, [b"whatever"])

    for _ in range(4):
        await lose()
        world.clock.move(3_600.0)
    assert (await finder.run_once()).orphans_taken == 4
    await clean(world)
    for _ in range(2):
        world.clock.move(3_600.0)
        await lose()
    await world.put("split/something else", [b"of somebody"])
    world.clock.move(3_600.0)
    summary = await finder.run_once()
    assert (summary.is_full, summary.orphans_taken) == (False, 2)
    assert "split/something else" in await world.keys()
    assert (await check(world)).foreign_objects == 1


async def test_a_segment_that_nobody_carries_on_is_stuck(world: World) -> None:
    await world.create_logs(A0)
    await world.write(A0)
    await split_all(world)
    begun = (await begin(world.plane, A0, 0, 2)).upload
    assert begun is not None
    report = await check(world)
    assert (report.findings, report.uploads) == ((), 1)
    world.clock.move(begun.expires_at_ms / 1000 + OVERDUE_S)
    (finding,) = (await check(world)).findings
    assert finding.kind is WalFault.STUCK
    assert finding.detail == f"The segment of offsets 0 to 2 is {UploadState.UPLOADING}."
    await world.plane.uploads.abort_segment(A0, begun.segment_id, leader_epoch=0)
    await world.plane.uploads.forget_segment(A0, begun.segment_id)
    assert (await check(world)).is_clean


async def test_merged_and_deleted_splits_leave_no_objects(world: World) -> None:
    await world.create_logs(A0, B0)
    await world.write(A0, B0)
    await split_all(world)
    begun = (await begin(world.plane, A0, 0, 2)).upload
    assert begun is not None
    await world.plane.uploads.finish_segment(A0, begun.segment_id, leader_epoch=0)
    await world.plane.uploads.commit_segment(A0, begun.segment_id, leader_epoch=0)
    await clean(world)
    assert {key.split("/")[0] for key in await world.keys()} == {"wal", "split"}
    await world.plane.lifecycle.delete_topics([TOPIC_B])
    await clean(world)
    assert await world.keys() == set()
    assert (await check(world)).is_clean
