"""Every kind of trouble, made by hand in Kafka's own directories, is found; nothing is found in healthy ones."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from strandline.objects.comparing import Finding
from strandline.remote.fsck import RemoteFindingKind, RemoteFsckOptions, TieredLogBounds
from strandline.remote.values import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentState,
    RemotePartitionDeleteState,
)
from tests.golden import copy_of
from tests.remote.fsck.world import DAY_MS, NOW, OPTIONS, World

DEEP = replace(OPTIONS, deep=True)
REPAIR = replace(OPTIONS, repair=True)
SEGMENTS = 59
STARTED = RemoteLogSegmentState.COPY_SEGMENT_STARTED
FINISHED = RemoteLogSegmentState.COPY_SEGMENT_FINISHED
DELETING = RemoteLogSegmentState.DELETE_SEGMENT_STARTED
DELETED = RemoteLogSegmentState.DELETE_SEGMENT_FINISHED


def files(world: World) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in world.remote.rglob("*") if path.is_file()}


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, findings
    return findings[0]


# Healthy


@pytest.mark.parametrize("options", [OPTIONS, DEEP, REPAIR])
async def test_what_kafka_left_is_clean_and_stays_as_it_is(world: World, options: RemoteFsckOptions) -> None:
    before = files(world)
    report = await world.compare(options)
    assert report.findings == ()
    assert report.is_clean
    assert (report.segments, report.young_objects, report.foreign_objects) == (SEGMENTS, 0, 0)
    assert report.objects == len(before)
    assert report.object_bytes == sum(map(len, before.values()))
    assert files(world) == before


# Missing


@pytest.mark.parametrize("kind", ["log", "index", "timeindex", "snapshot", "leader_epoch_checkpoint", "txnindex"])
async def test_an_object_that_is_gone_is_missing(world: World, kind: str) -> None:
    path = world.object("fx-tiered-txn", 22, kind)
    path.unlink()
    found = only(await world.findings())
    assert (found.kind, found.detail) == (RemoteFindingKind.MISSING, f"offsets 22 to 41: There is no {kind}.")
    assert found.key == str(path.relative_to(world.remote)).removesuffix(f".{kind}")


async def test_a_transaction_index_is_only_missed_where_transactions_were_aborted(world: World) -> None:
    assert not list(world.objects("fx-tiered").glob("*.txnindex"))
    assert await world.findings() == []


async def test_a_partition_whose_objects_are_all_gone_misses_all_segments(world: World) -> None:
    segments = world.segments("fx-tiered", 1)
    shutil.rmtree(world.objects("fx-tiered", 1))
    findings = await world.findings()
    assert [finding.kind for finding in findings] == [RemoteFindingKind.MISSING] * len(segments)
    assert "no log, no index, no timeindex, no snapshot, no leader_epoch_checkpoint" in findings[0].detail


async def test_what_is_deleted_while_it_is_compared_is_not_missing(world: World) -> None:
    gone, going = world.segments("fx-tiered-txn")[:2]
    world.later = [world.update(gone, DELETING), world.update(gone, DELETED), world.update(going, DELETING)]
    world.adjust = lambda bounds: bounds._replace(log_start=bounds.local_log_start)
    world.object("fx-tiered-txn", gone.start_offset, "log").unlink()
    world.object("fx-tiered-txn", going.start_offset, "index").unlink()
    findings = await world.findings()
    assert [finding for finding in findings if finding.kind is not RemoteFindingKind.ORPHAN] == []


# Damaged


async def test_sizes_are_compared_without_reading_anything(world: World) -> None:
    log, index = world.object("fx-tiered", 0, "log"), world.object("fx-tiered", 42, "index")
    size = log.stat().st_size
    log.write_bytes(log.read_bytes()[:-10])
    index.write_bytes(index.read_bytes() + b"12345")
    world.object("fx-tiered", 84, "snapshot").write_bytes(b"")
    assert {(finding.kind, finding.detail) for finding in await world.findings()} == {
        (RemoteFindingKind.DAMAGED, f"offsets 0 to 41: Its log has {size - 10} bytes instead of {size}."),
        (
            RemoteFindingKind.DAMAGED,
            f"offsets 42 to 83: Its index of {index.stat().st_size} bytes is not a whole number of entries.",
        ),
        (RemoteFindingKind.DAMAGED, "offsets 84 to 125: Its snapshot is empty."),
    }


@pytest.mark.parametrize(
    ("kind", "at", "xor", "why"),
    [
        ("log", 200, 1, "that does not match its checksum"),
        ("log", 16, 0x70, "not a batch"),
        ("log", 7, 0x40, "a batch with offsets 64 to"),
        ("log", 8, 0x10, "an incomplete batch"),
        ("index", 7, 1, "where no batch begins"),
        ("index", 0, 0x40, "not in ascending order"),
        ("timeindex", 0, 0x40, "not in ascending order"),
        ("txnindex", 1, 7, "it has an impossible entry"),
        ("snapshot", 12, 1, "Its snapshot is damaged"),
        ("leader_epoch_checkpoint", 0, 1, "Its leader_epoch_checkpoint"),
    ],
)
async def test_wrong_bytes_are_found_by_reading_them(world: World, kind: str, at: int, xor: int, why: str) -> None:
    world.spoil(world.object("fx-tiered-txn", 0, kind), at, xor)
    assert await world.findings() == []
    found = only(await world.findings(DEEP))
    assert found.kind is RemoteFindingKind.DAMAGED
    assert why in found.detail


async def test_a_metadata_record_that_cannot_be_read_is_damage_and_keeps_orphans_alive(world: World) -> None:
    world.damaged = 1
    orphan = world.add_orphan("fx-tiered", age_ms=2 * DAY_MS)
    damage, kept = await world.findings(REPAIR)
    assert (damage.kind, damage.detail) == (RemoteFindingKind.DAMAGED, "cannot be read: It is damaged.")
    assert damage.key.startswith("__remote_log_metadata-1 offset ")
    assert kept.kind is RemoteFindingKind.ORPHAN
    assert "not deleted: some remote log metadata cannot be read" in kept.detail
    assert all(path.exists() for path in orphan)


# Orphans


async def test_orphans_are_told_when_they_are_old_and_deleted_on_request(world: World) -> None:
    healthy = files(world)
    old = world.add_orphan("fx-tiered", age_ms=2 * DAY_MS)
    young = world.add_orphan("fx-tiered", age_ms=DAY_MS // 2, number=1)
    report = await world.compare()
    found = only(list(report.findings))
    assert (found.kind, found.age_ms, found.is_repaired) == (RemoteFindingKind.ORPHAN, 2 * DAY_MS, False)
    assert found.size == sum(path.stat().st_size for path in old)
    assert (
        found.detail == "no remote log metadata refers to its index, leader_epoch_checkpoint, log, snapshot, timeindex"
    )
    assert report.young_objects == len(young)

    report = await world.compare(REPAIR)
    assert only(list(report.findings)).is_repaired
    assert report.is_clean
    assert files(world) == healthy | {path: path.read_bytes() for path in young}
    assert await world.findings() == []


async def test_objects_whose_metadata_is_written_meanwhile_are_no_orphans(world: World) -> None:
    made = world.add_orphan("fx-tiered", age_ms=2 * DAY_MS)
    original = world.segments("fx-tiered")[1]
    segment_id = RemoteLogSegmentId(original.partition, UUID(int=0))
    world.later = [replace(original, segment_id=segment_id, state=STARTED, event_timestamp_ms=NOW)]
    assert await world.findings(REPAIR) == []
    assert all(path.exists() for path in made)


async def test_leftovers_of_a_deleted_segment_are_orphans(world: World) -> None:
    first = world.segments("fx-tiered")[0]
    world.said = [world.update(first, DELETING), world.update(first, DELETED)]
    world.adjust = lambda bounds: bounds._replace(log_start=bounds.local_log_start)
    paths = list(world.objects("fx-tiered").glob(f"{0:020d}-*"))
    world.age(paths, 2 * DAY_MS)
    assert only(await world.findings()).kind is RemoteFindingKind.ORPHAN
    assert only(await world.findings(REPAIR)).is_repaired
    assert not any(path.exists() for path in paths)


async def test_an_orphan_stays_while_its_log_misses_offsets_or_cannot_be_asked(world: World, tmp_path: Path) -> None:
    first = world.segments("fx-tiered")[0]
    world.said = [world.update(first, DELETING), world.update(first, DELETED)]
    paths = list(world.objects("fx-tiered").glob(f"{0:020d}-*"))
    world.age(paths, 2 * DAY_MS)
    hole, orphan = await world.findings(REPAIR)
    assert (hole.kind, orphan.kind) == (RemoteFindingKind.HOLE, RemoteFindingKind.ORPHAN)
    assert orphan.detail.endswith("; not deleted: fx-tiered-0 may miss offsets and need it")
    world.local = copy_of(world.local, tmp_path / "local")
    shutil.rmtree(world.local / "fx-tiered-0")
    report = await world.compare(REPAIR)
    assert report.unbounded_partitions == 1
    assert "the log of fx-tiered-0 is not available" in only(list(report.findings)).detail
    assert all(path.exists() for path in paths)


async def test_objects_of_a_partition_without_metadata_are_reported_once_and_never_deleted(world: World) -> None:
    stranger = world.remote / "orders-7-AAAAAAAAAAAAAAAAAAAAAA"
    shutil.copytree(world.objects("fx-tiered"), stranger)
    world.age(list(stranger.iterdir()), 2 * DAY_MS)
    found = only(await world.findings(REPAIR))
    assert (found.kind, found.key) == (RemoteFindingKind.UNKNOWN, stranger.name)
    assert found.detail.startswith(f"{len(list(stranger.iterdir()))} objects")
    world.age(list(stranger.iterdir()), 0)
    assert await world.findings(REPAIR) == []


async def test_what_is_not_named_as_ours_is_counted_and_left_alone(world: World) -> None:
    for name in ("readme.txt", "fx-tiered-0-AAAAAAAAAAAAAAAAAAAAAA/notes", "wal/2026010112/1-x"):
        path = world.remote / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text("mine")
        world.age([path], 2 * DAY_MS)
    report = await world.compare(REPAIR)
    assert (report.findings, report.foreign_objects) == ((), 3)


# Stuck


def copy_begun(world: World, *, age_ms: int) -> RemoteLogSegmentMetadata:
    last = world.segments("fx-tiered")[-1]
    segment_id = RemoteLogSegmentId(last.partition, UUID(int=0))
    return replace(last, segment_id=segment_id, state=STARTED, event_timestamp_ms=NOW - age_ms)


async def test_copies_and_deletions_that_do_not_end_are_stuck(world: World) -> None:
    deleted = world.segments("fx-tiered")[0]
    world.adjust = lambda bounds: bounds._replace(log_start=bounds.local_log_start)
    world.said = [copy_begun(world, age_ms=2 * DAY_MS), world.update(deleted, DELETING, age_ms=2 * DAY_MS)]
    found = await world.findings(REPAIR)
    assert [(finding.kind, finding.age_ms) for finding in found] == [(RemoteFindingKind.STUCK, 2 * DAY_MS)] * 2
    assert [state in found[at].detail for at, state in enumerate(("DELETE_SEGMENT_STARTED", "COPY_SEGMENT_STARTED"))]
    world.said = [copy_begun(world, age_ms=1000), world.update(deleted, DELETING, age_ms=1000)]
    assert await world.findings() == []


async def test_the_segments_of_a_topic_that_is_gone_should_go(world: World) -> None:
    partition = world.partition("fx-tiered-keep")
    del world.topics[partition.topic_id]
    found = only(await world.findings(REPAIR))
    assert found.kind is RemoteFindingKind.STUCK
    assert found.detail == "its topic was deleted: no deletion has begun, with 8 segments left"
    assert found.key.startswith("fx-tiered-keep-0-")
    states = list(RemotePartitionDeleteState)
    world.said = [world.deletion(partition, state, age_ms=2 * DAY_MS) for state in states[:2]]
    assert "DELETE_PARTITION_STARTED, with 8 segments" in only(await world.findings()).detail
    world.said = [world.deletion(partition, state, age_ms=1000) for state in states[:2]]
    assert await world.findings() == []


async def test_what_a_deleted_topic_left_behind_are_orphans(world: World) -> None:
    partition, segments = world.partition("fx-tiered-keep"), world.segments("fx-tiered-keep")
    del world.topics[partition.topic_id]
    states = list(RemotePartitionDeleteState)
    world.said = [
        *(world.deletion(partition, state) for state in states[:2]),
        *(world.update(each, state) for each in segments for state in (DELETING, DELETED)),
        world.deletion(partition, states[2]),
    ]
    directory = world.objects("fx-tiered-keep")
    world.age(list(directory.iterdir()), 2 * DAY_MS)
    assert [finding.kind for finding in await world.findings()] == [RemoteFindingKind.ORPHAN] * len(segments)
    assert all(finding.is_repaired for finding in await world.findings(REPAIR))
    assert not directory.exists()


# Holes


async def test_offsets_that_neither_tier_has_are_a_hole(world: World) -> None:
    second = world.segments("fx-tiered")[1]
    world.said = [world.update(second, DELETING)]
    assert [(found.kind, found.key, found.detail) for found in await world.findings()] == [
        (RemoteFindingKind.HOLE, "fx-tiered-0", "offsets 42 to 83 are neither local nor in a remote segment")
    ]


async def test_a_hole_is_found_without_knowing_the_epochs_of_the_log(world: World) -> None:
    def without_epochs(bounds: TieredLogBounds) -> TieredLogBounds:
        return bounds._replace(epochs=None)

    world.adjust = without_epochs
    assert await world.findings() == []
    *_, last_only_remote, _ = world.segments("fx-tiered")
    world.said = [world.update(last_only_remote, DELETING)]
    assert "offsets 252 to 293" in only(await world.findings()).detail


async def test_where_a_killed_brokers_log_began_is_not_known_so_that_no_hole_is_told_there_and_no_orphan_deleted(
    world: World,
) -> None:
    first, second, third, *_ = world.segments("fx-tiered")
    world.adjust = lambda bounds: bounds._replace(is_exact=False)
    world.said = [world.update(first, DELETING), world.update(first, DELETED), world.update(third, DELETING)]
    paths = list(world.objects("fx-tiered").glob(f"{0:020d}-*"))
    world.age(paths, 2 * DAY_MS)
    hole, orphan = await world.findings(REPAIR)
    assert (hole.kind, hole.detail.split(" are ")[0]) == (RemoteFindingKind.HOLE, "offsets 84 to 125")
    assert (orphan.kind, orphan.is_repaired) == (RemoteFindingKind.ORPHAN, False)
    world.said = world.said[:2]
    (orphan,) = await world.findings(REPAIR)
    assert (orphan.kind, orphan.is_repaired) == (RemoteFindingKind.ORPHAN, False)
    assert second.start_offset == first.end_offset + 1


async def test_a_log_without_metadata_misses_all_offsets_that_are_not_local(world: World) -> None:
    world.metadata_partitions = 0
    found = await world.findings()
    holes = {finding.key for finding in found if finding.kind is RemoteFindingKind.HOLE}
    assert holes >= {"fx-tiered-0", "fx-tiered-1", "fx-tiered-codecs-0"}
    assert "fx-tiered-keep-0" not in holes
    assert {finding.kind for finding in await world.findings(replace(REPAIR, grace_ms=0))} == {
        RemoteFindingKind.HOLE,
        RemoteFindingKind.UNKNOWN,
    }
