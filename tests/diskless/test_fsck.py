"""fsck finds what is wrong, names it, and takes nothing for wrong that is only in motion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from strandline.clock import SystemChance
from strandline.controlplane import FileToCommit, Refusal
from strandline.diskless.fsck import Finding, FsckOptions, FsckReport, WalFault
from strandline.diskless.upkeep import FileCleaner
from strandline.objects import ObjectStore
from strandline.objects.store import Buffer
from strandline.testing.objects import FaultyStore
from tests.controlplane.making import batch, marker
from tests.diskless.batches import append
from tests.diskless.faults import Interrupted
from tests.diskless.world import A0, A1, B0, World

GRACE_S = 600.0
OVERDUE_S = 2000.0


async def check(
    world: World, store: ObjectStore | None = None, *, deep: bool = False, repair: bool = False
) -> FsckReport:
    options = FsckOptions(
        grace_ms=round(GRACE_S * 1000), overdue_ms=round(OVERDUE_S * 1000), deep=deep, repair=repair, broker_id=1
    )
    return await world.compare(options, store)


def only(report: FsckReport) -> Finding:
    (finding,) = report.findings
    assert not report.is_clean
    return finding


async def test_a_world_in_order_is_clean_at_every_depth(world: World) -> None:
    await world.create_logs(A0, A1, B0)
    for _ in range(3):
        await world.write(A0, A1, B0)
    for deep in (False, True):
        report = await check(world, deep=deep)
        assert report.is_clean
        assert (report.objects, report.files, report.findings) == (3, 3, ())
        assert report.object_bytes > 0


async def test_a_footer_may_name_an_older_epoch_than_the_rows(world: World) -> None:
    """Rows have the epoch of the commit, footers that of the acceptance."""
    await world.create_logs(A0)
    for epochs in ((5,), (3, 3, 5, 4, 6)):
        answers = await world.commit(await world.upload([append(A0, leader_epoch=epoch) for epoch in epochs]))
        assert [answer.refusal for answer in answers] == [None] * len(epochs)
    report = await check(world, deep=True)
    assert (report.is_clean, report.findings) == (True, ())


async def test_an_empty_world_is_clean(world: World) -> None:
    assert (await check(world)).is_clean


async def test_a_missing_object_is_found_with_what_refers_to_it(world: World) -> None:
    await world.create_logs(A0, B0)
    key = await world.write(A0, B0)
    await world.write(A0)
    await world.store.delete([key])
    finding = only(await check(world))
    assert (finding.kind, finding.key, finding.detail) == (WalFault.MISSING, key, "2 rows of batches refer to it.")


@pytest.mark.parametrize(
    ("damage", "needs_deep", "detail"),
    [
        (lambda data: data[:-1], False, "bytes instead of"),
        (lambda data: b"", False, "0 bytes instead of"),
        (lambda data: data[:-1] + b"X", False, "does not end as a WAL object does"),
        (lambda data: data[:-40] + b"X" + data[-39:], False, "footer does not match its checksum"),
        (lambda data: data[:70] + b"X" + data[71:], True, "The batch at byte 0 does not match its checksum"),
        (lambda data: b"X" + data[1:], True, "does not match its checksum"),
        (lambda data: data[:16] + b"X" + data[17:], True, "no batch at byte 0"),
    ],
    ids=["cut", "empty", "no-magic", "footer", "records", "base-offset", "batch-magic"],
)
async def test_damage_is_found(world: World, damage: Callable[[bytes], bytes], needs_deep: bool, detail: str) -> None:
    await world.create_logs(A0)
    key = await world.write(A0)
    path = world.path(key)
    path.write_bytes(damage(path.read_bytes()))
    assert (await check(world)).is_clean == needs_deep
    finding = only(await check(world, deep=True))
    assert (finding.kind, finding.key) == (WalFault.DAMAGED, key)
    assert detail in finding.detail


async def test_a_row_that_refers_to_the_bytes_of_another_partition_is_found(world: World) -> None:
    await world.create_logs(A0, B0)
    file = await world.upload([append(A0), append(B0)])
    first, second = file.batches
    swapped = (
        first._replace(byte_offset=second.byte_offset, byte_size=second.byte_size),
        second._replace(byte_offset=first.byte_offset, byte_size=first.byte_size),
    )
    await world.commit(FileToCommit(object_key=file.object_key, size=file.size, broker_id=1, batches=swapped))
    assert (await check(world)).is_clean
    assert "do not belong to this partition" in only(await check(world, deep=True)).detail


async def test_objects_without_a_row_are_orphans_only_when_they_are_old(world: World) -> None:
    await world.create_logs(A0)
    lost = await world.upload([append(A0)])
    report = await check(world)
    assert report.is_clean
    assert report.young_objects == 1
    world.clock.move(GRACE_S + 1)
    finding = only(await check(world))
    assert (finding.kind, finding.key, finding.size) == (WalFault.ORPHAN, lost.object_key, lost.size)
    assert finding.age_ms >= GRACE_S * 1000
    assert await world.keys() == {lost.object_key}  # looking changes nothing
    assert await world.marked() == set()


async def test_repairing_deletes_old_orphans_and_nothing_else(world: World) -> None:
    await world.create_logs(A0)
    kept, missing = await world.write(A0), await world.write(A0)
    await world.store.delete([missing])
    lost = await world.upload([append(A0)])
    world.clock.move(GRACE_S + 1)
    young = await world.upload([append(A0)])
    report = await check(world, repair=True)
    assert [(finding.kind, finding.is_repaired) for finding in report.findings] == [
        (WalFault.MISSING, False),
        (WalFault.ORPHAN, True),
    ]
    assert not report.is_clean
    assert await world.keys() == {kept, young.object_key}
    (answer,) = await world.commit(lost)
    assert answer.refusal is Refusal.STALE_FILE


async def test_files_that_wait_for_the_cleaner_are_in_order_until_they_wait_too_long(world: World) -> None:
    await world.create_logs(A0)
    key = await world.write(A0)
    await world.drop(A0)
    report = await check(world)
    assert report.is_clean
    assert report.marked_files == 1
    world.clock.move(OVERDUE_S + 1)
    finding = only(await check(world))
    assert (finding.kind, finding.key) == (WalFault.OVERDUE, key)


async def test_a_marked_file_whose_object_is_gone_only_waits_to_be_forgotten(world: World) -> None:
    await world.create_logs(A0)
    key = await world.write(A0)
    await world.drop(A0)
    await world.store.delete([key])
    world.clock.move(OVERDUE_S + 1)
    assert (await check(world)).is_clean


async def test_other_objects_are_counted_and_left_alone(world: World) -> None:
    await world.put("wal/notes", [b"mine"])
    await world.put("strandline-cluster.json", [b"{}"])
    world.clock.move(GRACE_S + 1)
    report = await check(world, repair=True)
    assert report.is_clean
    assert report.foreign_objects == 1
    assert len(await world.keys()) == 2


# Brokers that are at work meanwhile


async def test_what_is_committed_after_the_listing_is_not_missing(world: World) -> None:
    await world.create_logs(A0)
    await world.write(A0)
    report = await check(world, Interrupted(world.store, lambda: world.write(A0)), deep=True)
    assert report.is_clean
    assert (report.objects, report.files) == (1, 3)  # one is written after the listing of each kind


async def test_what_was_uploaded_before_the_listing_and_committed_after_it_is_no_orphan(world: World) -> None:
    await world.create_logs(A0)
    file = await world.upload([append(A0)])
    world.clock.move(GRACE_S + 1)
    report = await check(world, Interrupted(world.store, lambda: world.commit(file)), repair=True)
    assert report.is_clean
    assert file.object_key in await world.keys()


async def test_what_is_deleted_after_the_listing_is_neither_missing_nor_an_orphan(world: World) -> None:
    await world.create_logs(A0, B0)
    await world.write(A0)
    await world.write(B0)
    cleaner = FileCleaner(
        world.plane.files,
        world.store,
        clock=world.clock,
        chance=SystemChance(1),
        interval_ms=1000,
        grace_ms=0,
        max_files_per_round=10,
    )
    world.clock.move(GRACE_S + 1)

    async def clean() -> None:
        await world.drop(A0)
        world.clock.move(1)
        await cleaner.run_once()

    report = await check(world, Interrupted(world.store, clean), deep=True)
    assert report.is_clean
    assert (report.objects, report.files) == (2, 1)


async def test_a_file_that_goes_between_its_row_and_its_check_is_not_missing(world: World) -> None:
    await world.create_logs(A0)
    key = await world.write(A0)

    class Deleting(FaultyStore):
        async def get_range(self, key: str, start: int, length: int) -> Buffer:
            await world.drop(A0)
            await world.store.delete([key])
            return await super().get_range(key, start, length)

    report = await check(world, Deleting(world.store, world.clock))
    assert report.is_clean
    assert report.marked_files == 1
    assert key not in await world.keys()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("UPDATE inkless_log SET first_unstable_offset = 3", "Its first unstable offset is 3, its first open"),
        ("UPDATE inkless_producer_state SET txn_first_offset = 1", "first open transaction begins at 1, and 0 aborted"),
        ("UPDATE inkless_log SET last_aborted_offset = -1", "and 1 aborted transactions are behind its newest"),
    ],
)
async def test_transactions_that_contradict_each_other_are_found(world: World, change: str, sentence: str) -> None:
    await world.create_logs(A0)
    first = batch(A0, producer=(7, 0, 0), is_transactional=True)
    file = await world.upload([append(A0)])
    await world.plane.commits.commit_files([replace(file, batches=(first, marker(A0, (7, 0), is_abort=True)))])
    assert (await check(world)).is_clean
    async with world.plane.store.transaction() as tx:
        await tx.execute(change)
    finding = only(await check(world))
    assert (finding.kind, finding.key) == (WalFault.CONTRADICTION, str(A0.topic_partition))
    assert sentence in finding.detail
