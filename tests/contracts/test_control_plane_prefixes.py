"""The contract of the control plane: logs whose first records lie elsewhere, in the prefix below B0."""

from __future__ import annotations

import asyncio

from strandline.controlplane import (
    MIGRATION_CHANNEL,
    TRIM_CHANNEL,
    FindBatches,
    FoundBatches,
    MigrationState,
    OffsetBoundary,
    Refusal,
    RetentionRule,
    SqlControlPlane,
    Trimmed,
)
from tests.controlplane.making import ALL_BYTES, TOPIC, A, batch, commit, find
from tests.controlplane.switching import (
    CLASSIC,
    P,
    Q,
    boundary,
    log_of,
    producer,
    progress,
    request,
    switch,
    switched,
)

MIGRATING, HYBRID, DISKLESS_ONLY = MigrationState.MIGRATING, MigrationState.HYBRID, MigrationState.DISKLESS_ONLY


async def fill(plane: SqlControlPlane, *timestamps: int) -> None:
    """B0 = 100 and log start 20, then a row of ten records for each time."""
    await switched(plane, 100, log_start=20)
    for number, timestamp in enumerate(timestamps):
        await commit(plane, f"f{number}", batch(P, 10, timestamp=timestamp))


async def rows_of_suffix(plane: SqlControlPlane) -> list[int]:
    (found,) = await find(plane, FindBatches(P, 100, ALL_BYTES))
    return [row.base_offset for row in found.rows]


# Reading


async def test_offsets_of_the_prefix_are_never_answered_with_rows_of_the_suffix(plane: SqlControlPlane) -> None:
    await fill(plane, 1_000, 2_000)
    requests = [FindBatches(P, offset, ALL_BYTES) for offset in (19, 20, 99, 100, 115, 120, 121)]
    answers = await find(plane, *requests)
    outside, prefix = Refusal.OFFSET_OUT_OF_RANGE, Refusal.IN_PREFIX
    assert [answer.refusal for answer in answers] == [outside, prefix, prefix, None, None, None, outside]
    assert answers[1] == FoundBatches(prefix, 20, 120, (), 100)
    assert [[row.base_offset for row in answer.rows] for answer in answers] == [[], [], [], [100, 110], [110], [], []]


async def test_an_empty_suffix_has_no_rows_and_a_prefix(plane: SqlControlPlane) -> None:
    await fill(plane)
    below, at_end = await find(plane, FindBatches(P, 99, ALL_BYTES), FindBatches(P, 100, ALL_BYTES))
    assert below == FoundBatches(Refusal.IN_PREFIX, 20, 100, (), 100)
    assert at_end == FoundBatches(None, 20, 100, (), 100)
    assert await plane.reads.first_row_at_time(P, 0) is None
    assert await plane.reads.row_of_max_timestamp(P) is None


async def test_a_log_without_boundary_is_not_read_or_trimmed(plane: SqlControlPlane) -> None:
    await fill(plane)
    await plane.migrations.reset_diskless_log_start_offset(P, 4)
    (found,) = await find(plane, FindBatches(P, 100, ALL_BYTES))
    assert found == FoundBatches(Refusal.UNKNOWN_LOG)
    assert (await plane.trimming.delete_records({P: 50}))[P].refusal is Refusal.UNKNOWN_LOG
    assert await plane.reads.first_row_at_time(P, 0) is None
    assert await plane.reads.row_of_max_timestamp(P) is None
    assert await plane.reads.offset_boundary(P, 50) is OffsetBoundary.OUT_OF_RANGE
    assert await plane.trimming.enforce_retention([RetentionRule(P, 0, 0)], max_rows=10) == [Trimmed(None, 20)]


async def test_offsets_of_the_prefix_lie_in_the_other_tier(plane: SqlControlPlane) -> None:
    await fill(plane, 1_000)
    found = [await plane.reads.offset_boundary(P, offset) for offset in (19, 20, 99, 100, 110, 111)]
    outside, tiered, diskless = OffsetBoundary.OUT_OF_RANGE, OffsetBoundary.TIERED, OffsetBoundary.DISKLESS
    assert found == [outside, tiered, tiered, diskless, diskless, outside]


async def test_a_search_by_time_finds_records_from_the_boundary_on(plane: SqlControlPlane) -> None:
    await fill(plane, 10, 50, 30)
    found = {time: await plane.reads.first_row_at_time(P, time) for time in (0, 10, 11, 50, 51)}
    assert {time: row.base_offset if row else None for time, row in found.items()} == {
        0: 100,
        10: 100,
        11: 110,
        50: 110,
        51: None,
    }
    largest = await plane.reads.row_of_max_timestamp(P)
    assert largest is not None
    assert (largest.base_offset, largest.max_timestamp) == (110, 50)
    later = await plane.reads.row_of_max_timestamp(P, from_offset=120)
    assert later is not None
    assert later.base_offset == 120


# DeleteRecords


async def test_deleting_records_of_the_prefix_moves_the_start_and_keeps_every_row(plane: SqlControlPlane) -> None:
    await fill(plane, 1_000, 2_000)
    assert await plane.trimming.delete_records({P: 60}) == {P: Trimmed(None, 60)}
    log = await log_of(plane, P)
    assert (log.log_start_offset, log.high_watermark, log.byte_size) == (60, 120, 200)
    assert await plane.trimming.delete_records({P: 100}) == {P: Trimmed(None, 100)}
    assert await rows_of_suffix(plane) == [100, 110]
    assert await plane.trimming.delete_records({P: 60}) == {P: Trimmed(None, 100)}


async def test_deleting_records_of_the_suffix_takes_the_prefix_with_it(plane: SqlControlPlane) -> None:
    await fill(plane, 1_000, 2_000, 3_000)
    assert await plane.trimming.delete_records({P: 115}) == {P: Trimmed(None, 115, 1, 100)}
    (found,) = await find(plane, FindBatches(P, 115, ALL_BYTES))
    assert [row.base_offset for row in found.rows] == [110, 120]
    assert await plane.trimming.delete_records({P: -1}) == {P: Trimmed(None, 130, 2, 200)}
    assert (await log_of(plane, P)).diskless_log_start_offset == 100


async def test_deleting_everything_before_the_first_diskless_record(plane: SqlControlPlane) -> None:
    await fill(plane)
    assert await plane.trimming.delete_records({P: -1}) == {P: Trimmed(None, 100)}
    assert (await plane.trimming.delete_records({P: 101}))[P].refusal is Refusal.OFFSET_OUT_OF_RANGE
    await commit(plane, "one", batch(P, timestamp=7))
    row = await plane.reads.row_of_max_timestamp(P)
    assert row is not None
    assert row.base_offset == 100


# Retention has one owner


async def test_retention_leaves_the_suffix_alone_while_there_is_a_prefix(plane: SqlControlPlane) -> None:
    await fill(plane, 0, 100, 200)
    everything = [RetentionRule(P, 0, 0), RetentionRule(A, 0, 0)]
    assert await plane.trimming.enforce_retention(everything, max_rows=10) == [Trimmed(None, 20), Trimmed(None, 0)]
    await plane.migrations.record_prefix([progress(P, log_start=99)])
    assert await plane.trimming.enforce_retention(everything, max_rows=10) == [Trimmed(None, 99), Trimmed(None, 0)]
    assert await rows_of_suffix(plane) == [100, 110, 120]
    await plane.migrations.record_prefix([progress(P, log_start=100)])
    assert await plane.trimming.enforce_retention(everything[:1], max_rows=2) == [Trimmed(None, 120, 2, 200)]
    assert await plane.trimming.enforce_retention(everything[:1], max_rows=2) == [Trimmed(None, 130, 1, 100)]


# What leaders report


async def test_a_report_moves_forward_and_never_beyond_the_boundary(plane: SqlControlPlane) -> None:
    await fill(plane, 1_000)

    async def seen() -> tuple[int, int, int, MigrationState]:
        log = await log_of(plane, P)
        assert (log.high_watermark, log.diskless_start_offset, log.diskless_log_start_epoch) == (110, 100, 3)
        return log.log_start_offset, log.tiered_log_start_offset, log.tiered_high_offset, log.migration_state

    await plane.migrations.record_prefix([progress(P, log_start=20, tiered=(20, 49))])
    assert await seen() == (20, 20, 49, MIGRATING)
    await plane.migrations.record_prefix([progress(P, HYBRID, log_start=30, tiered=(30, 99))])
    assert await seen() == (30, 30, 99, HYBRID)
    for late in (progress(P, tiered=(0, 10)), progress(P, MigrationState.TIERED_ONLY, log_start=25)):
        await plane.migrations.record_prefix([late])
        assert await seen() == (30, 30, 99, HYBRID)
    await plane.migrations.record_prefix([progress(P, DISKLESS_ONLY, log_start=107, tiered=(-1, 200))])
    assert await seen() == (100, -1, -1, DISKLESS_ONLY)  # remote storage has nothing of it any more
    await plane.migrations.record_prefix([progress(P, HYBRID, tiered=(30, 99))])
    assert await seen() == (100, -1, -1, DISKLESS_ONLY)
    await plane.migrations.record_prefix([])


async def test_reports_of_old_leaders_and_about_unknown_logs_are_ignored(plane: SqlControlPlane) -> None:
    await fill(plane)
    before = await log_of(plane, P)
    await plane.migrations.record_prefix(
        [progress(P, HYBRID, log_start=50, epoch=2), progress(Q, HYBRID, log_start=50)]
    )
    assert await log_of(plane, P) == before
    assert await plane.reads.logs([Q]) == {}
    await plane.migrations.reset_diskless_log_start_offset(P, 4)
    await plane.migrations.record_prefix([progress(P, HYBRID, log_start=50, epoch=9)])
    assert (await log_of(plane, P)).migration_state is MIGRATING


async def test_a_log_start_that_moves_wakes_readers_and_a_state_wakes_leaders(plane: SqlControlPlane) -> None:
    await fill(plane)
    trimmed, changed = asyncio.Event(), asyncio.Event()
    stops = [plane.store.listen(TRIM_CHANNEL, trimmed.set), plane.store.listen(MIGRATION_CHANNEL, changed.set)]
    trimmed.clear()
    changed.clear()
    await plane.migrations.record_prefix([progress(P, HYBRID, log_start=30)])
    async with asyncio.timeout(10):
        await trimmed.wait()
        await changed.wait()
    for stop in stops:
        stop()


async def test_a_report_that_says_nothing_new_locks_nothing(plane: SqlControlPlane) -> None:
    await fill(plane)
    async with plane.store.transaction() as tx:
        await tx.execute("UPDATE inkless_log SET byte_size = byte_size")  # as a commit in progress has done
        async with asyncio.timeout(5):
            await plane.migrations.record_prefix([progress(P, log_start=20)])


async def test_a_switch_is_finished_when_no_partition_is_migrating(plane: SqlControlPlane) -> None:
    position = await request(plane, partitions=2)
    other = await request(plane, TOPIC, 3)
    await switch(plane, boundary(P, 10, position=position))
    await plane.migrations.record_prefix([progress(P, HYBRID)])
    assert len(await plane.migrations.topic_migrations()) == 2  # Q has no boundary yet
    await switch(plane, boundary(Q, 10, position=position))
    assert len(await plane.migrations.topic_migrations()) == 2
    await plane.migrations.record_prefix([progress(P, DISKLESS_ONLY, log_start=10), progress(Q, HYBRID)])
    assert [switch.position for switch in await plane.migrations.topic_migrations()] == [other]
    assert [log.migration_state for log in (await plane.migrations.migration_states([CLASSIC]))[CLASSIC]] == [
        DISKLESS_ONLY,
        HYBRID,
    ]


async def test_an_empty_last_partition_finishes_the_switch(plane: SqlControlPlane) -> None:
    position = await switched(plane, 10)
    await plane.migrations.record_prefix([progress(P, HYBRID)])
    await switch(plane, boundary(Q, 0, position=position))
    assert await plane.migrations.topic_migrations() == []


async def test_a_switch_can_be_declared_complete_once_every_boundary_is_set(plane: SqlControlPlane) -> None:
    assert await plane.migrations.complete_migration(CLASSIC) is Refusal.MIGRATION_NOT_FOUND
    position = await switched(plane, 10)
    assert await plane.migrations.complete_migration(CLASSIC) is Refusal.BOUNDARY_IS_UNSET
    assert (await log_of(plane, P)).migration_state is MIGRATING
    await switch(plane, boundary(Q, 0, position=position))
    assert await plane.migrations.complete_migration(CLASSIC) is None
    logs = (await plane.migrations.migration_states([CLASSIC, TOPIC]))[CLASSIC]
    assert [(log.partition, log.migration_state) for log in logs] == [(P, HYBRID), (Q, DISKLESS_ONLY)]
    assert await plane.migrations.topic_migrations() == []
    assert await plane.migrations.complete_migration(CLASSIC) is Refusal.MIGRATION_NOT_FOUND


async def test_states_are_those_of_the_topics_asked_for(plane: SqlControlPlane) -> None:
    await fill(plane)
    states = await plane.migrations.migration_states([TOPIC, CLASSIC])
    assert [log.partition.partition for log in states[TOPIC]] == [0, 1]
    assert states[CLASSIC] == [await log_of(plane, P)]
    assert await plane.migrations.migration_states([]) == {}


async def test_a_deleted_hybrid_topic_leaves_nothing(plane: SqlControlPlane) -> None:
    await switched(plane, 100, producer(7, (0, 1, 99)))
    await commit(plane, "one", batch(P, producer=(7, 0, 1)))
    await plane.lifecycle.delete_topics([CLASSIC])
    assert CLASSIC not in await plane.lifecycle.topic_ids()
    async with plane.store.transaction() as tx:
        for table in ("inkless_batch", "inkless_producer_state", "inkless_migration"):
            assert await tx.fetch(f"SELECT count(*) FROM {table}") == [(0,)]
    assert [file.object_key for file in await plane.files.files_to_delete(marked_for_ms=0, limit=9)] == ["one"]
