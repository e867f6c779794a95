"""The contract of SegmentUploads: split files become segments, and the read boundary moves behind them."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
import pytest_asyncio

from strandline.controlplane import FindBatches, MigrationState, Refusal, RetentionRule, SqlControlPlane
from strandline.controlplane.conversion.values import LogSplits, TieringRule, UploadState
from strandline.controlplane.store_records import REMOTE_STORE, RecordedStore
from strandline.controlplane.values import LATE_MS
from tests.controlplane.converting import (
    CLAIM_MS,
    LATER,
    ME,
    RIVAL,
    begin,
    claim,
    count,
    fill,
    keys,
    merge,
    split_all,
    states,
)
from tests.controlplane.making import ALL_BYTES, NOW, TOPIC, A, B, HandSetClock, batch, commit, find, rows_of
from tests.controlplane.switching import CLASSIC, P, log_of, progress, switched

MIGRATING, HYBRID, DISKLESS_ONLY = MigrationState.MIGRATING, MigrationState.HYBRID, MigrationState.DISKLESS_ONLY


@pytest_asyncio.fixture
async def split(plane: SqlControlPlane, time: HandSetClock) -> SqlControlPlane:
    """Three files with ten records each of A and B, all split."""
    await fill(plane, A, B)
    time.now = LATER
    await split_all(plane)
    return plane


async def mergeable(plane: SqlControlPlane, max_splits: int = 100) -> dict[int, LogSplits]:
    found = await plane.merging.mergeable_splits([TOPIC, CLASSIC], max_splits=max_splits)
    return {log.log.partition.partition: log for log in found}


def ranges(found: LogSplits) -> list[tuple[int, int]]:
    return [(split.file.base_offset, split.file.last_offset) for split in found.splits]


async def test_splits_are_mergeable_from_where_the_segments_end(split: SqlControlPlane) -> None:
    found = (await mergeable(split))[0]
    assert (found.next_upload_offset, ranges(found)) == (0, [(0, 9), (10, 19), (20, 29)])
    assert found.now_ms == LATER
    assert ranges((await mergeable(split, max_splits=2))[0]) == [(0, 9), (10, 19)]
    await merge(split, A, 0, 9)
    found = (await mergeable(split))[0]
    assert (found.next_upload_offset, ranges(found)) == (10, [(10, 19), (20, 29)])
    await begin(split, A, 10, 19)
    found = (await mergeable(split))[0]
    assert (found.next_upload_offset, ranges(found)) == (20, [(20, 29)])
    await merge(split, B, 0, 29)
    assert list(await mergeable(split)) == [0]
    await split.wishes.pause_tiering(TOPIC, is_paused=True)
    assert await mergeable(split) == {}


async def test_a_gap_ends_what_is_mergeable(plane: SqlControlPlane, time: HandSetClock) -> None:
    await fill(plane, A)
    time.now = LATER
    await claim(plane, RIVAL, max_files=1)
    await split_all(plane)
    assert await mergeable(plane) == {}
    assert (await begin(plane, A, 10, 29)).refusal is Refusal.NOT_MERGEABLE


async def test_a_segment_replaces_rows_splits_and_objects(split: SqlControlPlane) -> None:
    answer = await merge(split, A, 0, 19)
    assert answer == (None, 20, 2, "")
    log = await log_of(split, A)
    assert (log.log_start_offset, log.high_watermark, log.byte_size) == (0, 30, 100)
    assert (log.tiered_log_start_offset, log.tiered_high_offset, log.diskless_start_offset) == (0, 19, 20)
    assert (log.diskless_log_start_offset, log.migration_state) == (0, HYBRID)
    (below, at) = await find(split, FindBatches(A, 19, ALL_BYTES), FindBatches(A, 20, ALL_BYTES))
    assert (below.refusal, below.diskless_start_offset) == (Refusal.IN_PREFIX, 20)
    assert [(row.base_offset, row.last_offset) for row in at.rows] == [(20, 29)]
    found = await states(split)
    assert [found[key] for key in ("f0", "f1", "f2")] == ["uploaded"] * 3  # B is in them
    assert await split.uploads.segment_uploads([A, B]) == []
    await merge(split, B, 0, 29)
    found = await states(split)
    assert [found[key] for key in ("f0", "f1", "f2")] == ["deleting", "deleting", "uploaded"]
    splits = [state for key, state in found.items() if key.startswith("split/")]
    assert (splits.count("uploaded"), splits.count("deleting")) == (1, 5)


async def test_commits_go_on_behind_a_segment_of_everything(split: SqlControlPlane) -> None:
    await merge(split, A, 0, 29)
    assert (await log_of(split, A)).byte_size == 0
    await commit(split, "f3", batch(A, 5, timestamp=500))
    (found,) = await find(split, FindBatches(A, 30, ALL_BYTES))
    assert [(row.base_offset, row.last_offset) for row in found.rows] == [(30, 34)]
    row = await split.reads.row_of_max_timestamp(A)
    assert row is not None
    assert row.max_timestamp == 500  # of the rows; remote storage knows the rest
    row = await split.reads.first_row_at_time(A, 0)
    assert row is not None
    assert row.base_offset == 30


async def test_producers_are_remembered_across_a_conversion(plane: SqlControlPlane, time: HandSetClock) -> None:
    await commit(plane, "f0", batch(A, 5, producer=(1, 0, 0)))
    time.now = LATER
    await split_all(plane)
    await merge(plane, A, 0, 4)
    (repeated, next_one) = await commit(plane, "f1", batch(A, 5, producer=(1, 0, 0)), batch(A, 2, producer=(1, 0, 5)))
    assert (repeated.is_duplicate, repeated.base_offset) == (True, 0)
    assert next_one.base_offset == 5


async def test_segments_begin_where_those_of_the_claimant_end(split: SqlControlPlane) -> None:
    first = await begin(split, A, 0, 9)
    assert first.upload is not None
    assert [file.base_offset for file in first.splits] == [0]
    assert first.upload.size_bytes == 100
    for base, last in ((10, 15), (10, 30), (15, 19), (20, 29), (0, 19)):
        answer = await begin(split, A, base, last)
        assert answer.refusal is Refusal.NOT_MERGEABLE, (base, last)
        assert answer.message
    second = await begin(split, A, 10, 29)
    assert [file.base_offset for file in second.splits] == [10, 20]
    again = await begin(split, A, 10, 29)
    assert again == second  # under the first id
    assert (await begin(split, A, 0, 9, claimant=RIVAL)).refusal is Refusal.CLAIMED
    assert (await begin(split, A, 30, 39, claimant=RIVAL)).refusal is Refusal.CLAIMED
    assert (await begin(split, B, 0, 9, claimant=RIVAL)).refusal is None
    missing = A._replace(topic_partition=A.topic_partition._replace(partition=9))
    assert (await begin(split, missing, 0, 9)).refusal is Refusal.UNKNOWN_LOG


async def test_nothing_begins_while_a_topic_is_paused_but_what_is_under_way_ends(split: SqlControlPlane) -> None:
    begun = (await begin(split, A, 0, 9)).upload
    assert begun is not None
    await split.wishes.pause_tiering(TOPIC, is_paused=True)
    assert (await begin(split, A, 10, 19)).refusal is Refusal.NOT_MERGEABLE
    assert (await begin(split, A, 0, 9)).upload == begun
    assert (await split.uploads.finish_segment(A, begun.segment_id, leader_epoch=0)).refusal is None
    assert (await split.uploads.commit_segment(A, begun.segment_id, leader_epoch=0)).refusal is None


async def test_segments_are_finished_and_committed_in_order(split: SqlControlPlane) -> None:
    first, second = (await begin(split, A, 0, 9)).upload, (await begin(split, A, 10, 19)).upload
    assert first is not None
    assert second is not None
    assert (await split.uploads.commit_segment(A, first.segment_id, leader_epoch=0)).refusal is Refusal.UNKNOWN_UPLOAD
    assert (await split.uploads.finish_segment(A, second.segment_id, leader_epoch=0)).refusal is Refusal.NOT_MERGEABLE
    for upload in (first, second, first):
        answer = await split.uploads.finish_segment(A, upload.segment_id, leader_epoch=0, claimant=ME)
        assert answer.refusal is None
        assert answer.upload is not None
        assert answer.upload.state is UploadState.FINISHING
    assert (await split.uploads.commit_segment(A, second.segment_id, leader_epoch=0)).refusal is Refusal.NOT_MERGEABLE
    for upload, boundary in ((first, 10), (second, 20)):
        committed = await split.uploads.commit_segment(A, upload.segment_id, leader_epoch=0)
        assert (committed.refusal, committed.diskless_start_offset) == (None, boundary)
    repeated = await split.uploads.commit_segment(A, first.segment_id, leader_epoch=0)
    assert (repeated.refusal, repeated.diskless_start_offset) == (Refusal.UNKNOWN_UPLOAD, 20)


async def test_only_the_claimant_finishes_or_a_leader_for_it(split: SqlControlPlane) -> None:
    begun = (await begin(split, A, 0, 9)).upload
    assert begun is not None
    rival = await split.uploads.finish_segment(A, begun.segment_id, leader_epoch=0, claimant=RIVAL)
    assert rival.refusal is Refusal.UNKNOWN_UPLOAD
    assert (await split.uploads.finish_segment(A, uuid.UUID(int=99), leader_epoch=0)).refusal is Refusal.UNKNOWN_UPLOAD
    assert (await split.uploads.finish_segment(A, begun.segment_id, leader_epoch=0)).refusal is None


async def test_leaders_that_were_replaced_come_too_late(split: SqlControlPlane) -> None:
    stale = Refusal.STALE_LEADER_EPOCH
    begun = (await begin(split, A, 0, 9, epoch=5)).upload
    assert begun is not None
    assert (await begin(split, A, 0, 9, epoch=4)).refusal is stale
    assert (await begin(split, A, 10, 19, epoch=4)).refusal is stale
    assert (await split.uploads.finish_segment(A, begun.segment_id, leader_epoch=4)).refusal is stale
    assert await split.uploads.abort_segment(A, begun.segment_id, leader_epoch=4) == []
    finished = await split.uploads.finish_segment(A, begun.segment_id, leader_epoch=6)
    assert finished.upload is not None
    assert finished.upload.leader_epoch == 6
    assert (await split.uploads.commit_segment(A, begun.segment_id, leader_epoch=5)).refusal is stale
    assert (await split.uploads.commit_segment(A, begun.segment_id, leader_epoch=6)).refusal is None


async def test_what_is_aborted_is_gone_when_its_bytes_are(split: SqlControlPlane) -> None:
    uploads = [(await begin(split, A, base, base + 9)).upload for base in (0, 10, 20)]
    first, second, third = (upload for upload in uploads if upload is not None)
    await split.uploads.finish_segment(A, first.segment_id, leader_epoch=0)
    assert await split.uploads.abort_segment(A, uuid.UUID(int=99), leader_epoch=0) == []
    aborted = await split.uploads.abort_segment(A, second.segment_id, leader_epoch=1)
    assert [upload.segment_id for upload in aborted] == [second.segment_id, third.segment_id]
    assert {(upload.state, upload.leader_epoch) for upload in aborted} == {(UploadState.ABORTING, 1)}
    assert (await split.uploads.finish_segment(A, third.segment_id, leader_epoch=1)).refusal is Refusal.UNKNOWN_UPLOAD
    # The offsets are free at once, for whoever comes first once the claimant's last segment is committed.
    assert (await begin(split, A, 10, 29, epoch=1, claimant=RIVAL)).refusal is Refusal.CLAIMED
    assert (await split.uploads.commit_segment(A, first.segment_id, leader_epoch=1)).refusal is None
    anew = await begin(split, A, 10, 29, epoch=1, claimant=RIVAL)
    assert anew.refusal is None
    for segment_id in (first.segment_id, second.segment_id, third.segment_id):
        await split.uploads.forget_segment(A, segment_id)
    assert anew.upload is not None
    await split.uploads.forget_segment(A, anew.upload.segment_id)  # not aborted: stays
    assert await split.uploads.segment_uploads([A]) == [anew.upload]


async def test_bytes_of_segments_that_were_given_up_are_deleted_once_more(
    split: SqlControlPlane, time: HandSetClock
) -> None:
    aborted, uploading = (await begin(split, A, 0, 9)).upload, (await begin(split, B, 0, 19)).upload
    assert aborted is not None
    assert uploading is not None
    await split.uploads.forget_segment(A, aborted.segment_id)  # not aborted: stays
    await split.uploads.abort_segment(A, aborted.segment_id, leader_epoch=0)
    await split.uploads.forget_segment(A, aborted.segment_id)
    assert await split.given_up.given_up_segments(limit=10) == []
    time.now += LATE_MS - 1
    assert await split.given_up.given_up_segments(limit=10) == []
    await split.lifecycle.delete_topics([TOPIC])
    time.now += 1
    due_ms = time.now
    assert await split.given_up.given_up_segments(limit=10) == [(A, aborted.segment_id, 0, 9, due_ms)]
    time.now += LATE_MS
    found = await split.given_up.given_up_segments(limit=10)
    assert found == [(A, aborted.segment_id, 0, 9, due_ms), (B, uploading.segment_id, 0, 19, due_ms + LATE_MS - 1)]
    assert await split.given_up.given_up_segments(limit=1) == found[:1]
    assert await split.given_up.given_up_segments(limit=1, after=found[0]) == found[1:]
    assert await split.given_up.given_up_segments(limit=1, after=found[1]) == []
    for one in found:
        await split.given_up.given_up_deleted(one.segment_id)
        await split.given_up.given_up_deleted(one.segment_id)  # by another broker
    assert await split.given_up.given_up_segments(limit=10) == []


async def test_retention_waits_for_rows_that_have_just_become_a_segment(
    plane: SqlControlPlane, time: HandSetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records 10 to 19 have not expired: what lies behind them stays, whoever commits a segment meanwhile."""
    time.now = 20_000
    for number, timestamp in enumerate((1_000, 19_000, 1_000)):
        await commit(plane, f"f{number}", batch(A, 10, timestamp=timestamp))
    time.now = 20_001
    await split_all(plane)
    real, is_merged = plane.trimming._boundary, False

    async def boundary(log_id: int, rows: int, expire_before: int, retention_bytes: int) -> int | None:
        nonlocal is_merged
        if not is_merged:
            is_merged = True
            assert (await merge(plane, A, 0, 19)).refusal is None
        return await real(log_id, rows, expire_before, retention_bytes)

    monkeypatch.setattr(plane.trimming, "_boundary", boundary)
    (trimmed,) = await plane.trimming.enforce_retention([RetentionRule(A, 5_000, -1)], max_rows=1_000)
    assert is_merged
    assert (trimmed.log_start_offset, (await log_of(plane, A)).log_start_offset) == (0, 0)


async def test_a_finishing_segment_is_not_aborted(split: SqlControlPlane) -> None:
    begun = (await begin(split, A, 0, 9)).upload
    assert begun is not None
    await split.uploads.finish_segment(A, begun.segment_id, leader_epoch=0)
    assert await split.uploads.abort_segment(A, begun.segment_id, leader_epoch=0) == []
    assert (await split.uploads.commit_segment(A, begun.segment_id, leader_epoch=0)).refusal is None


async def test_claims_of_segments_are_renewed_too(split: SqlControlPlane, time: HandSetClock) -> None:
    begun = (await begin(split, A, 0, 9)).upload
    assert begun is not None
    assert begun.expires_at_ms == LATER + CLAIM_MS
    time.now += 7
    renewed = await split.claims.renew_claims(ME, claim_ms=CLAIM_MS)
    assert (renewed.files, renewed.segments) == (0, 1)
    (upload,) = await split.uploads.segment_uploads([A])
    assert upload.expires_at_ms == LATER + 7 + CLAIM_MS


# Trimming


@pytest.mark.parametrize("start", [15, 20, 25])
async def test_a_log_start_that_passes_an_upload_does_not_stop_it(split: SqlControlPlane, start: int) -> None:
    begun = (await begin(split, A, 0, 19)).upload
    assert begun is not None
    await split.uploads.finish_segment(A, begun.segment_id, leader_epoch=0)
    await split.trimming.delete_records({A: start})
    answer = await split.uploads.commit_segment(A, begun.segment_id, leader_epoch=0)
    assert (answer.refusal, answer.diskless_start_offset) == (None, 20)
    log = await log_of(split, A)
    assert (log.log_start_offset, log.byte_size, log.migration_state) == (start, 100, HYBRID)
    (found,) = await find(split, FindBatches(A, max(start, 20), ALL_BYTES))
    assert [row.base_offset for row in found.rows] == [20]


async def test_segments_begin_with_the_split_that_holds_the_log_start(split: SqlControlPlane) -> None:
    await merge(split, A, 0, 9)
    await split.trimming.delete_records({A: 25})
    found = (await mergeable(split))[0]
    assert (found.next_upload_offset, ranges(found)) == (20, [(20, 29)])
    assert (await begin(split, A, 10, 29)).refusal is Refusal.NOT_MERGEABLE
    answer = await merge(split, A, 20, 29)
    assert (answer.refusal, answer.diskless_start_offset) == (None, 30)
    log = await log_of(split, A)
    assert (log.log_start_offset, log.tiered_high_offset, log.byte_size) == (25, 29, 0)


async def test_retention_leaves_the_rows_of_a_log_that_begins_in_segments(split: SqlControlPlane) -> None:
    await merge(split, A, 0, 9)
    rule = RetentionRule(A, 0, 0)
    (trimmed,) = await split.trimming.enforce_retention([rule], max_rows=100)
    assert (trimmed.log_start_offset, trimmed.rows_deleted) == (0, 0)
    await split.trimming.delete_records({A: 10})  # the segment has expired
    (trimmed,) = await split.trimming.enforce_retention([rule], max_rows=100)
    assert (trimmed.log_start_offset, trimmed.rows_deleted) == (30, 2)
    assert await count(split, "inkless_split_batch") == 3  # those of B


async def test_rows_that_a_crash_left_below_the_boundary_go_with_retention(split: SqlControlPlane) -> None:
    async with split.store.transaction() as tx:  # as after the first transaction of a commit
        await tx.execute(
            "UPDATE inkless_log SET diskless_start_offset = 20, tiered_high_offset = 19, migration_state = 'HYBRID' "
            "WHERE partition = 0 AND log_id = 1"
        )
    (found,) = await find(split, FindBatches(A, 5, ALL_BYTES))
    assert (found.refusal, found.rows) == (Refusal.IN_PREFIX, ())
    assert ranges((await mergeable(split))[0]) == [(20, 29)]
    (converted,) = await split.uploads.converted_logs()
    sizes = (converted.byte_size, (await log_of(split, A)).byte_size)
    assert sizes == (100, 100), "what is in segments does not count twice: retention.bytes would delete too much"
    (trimmed,) = await split.trimming.enforce_retention([RetentionRule(A, -1, -1)], max_rows=100)
    assert (trimmed.log_start_offset, trimmed.rows_deleted) == (0, 0)
    log = await log_of(split, A)
    assert (log.log_start_offset, log.byte_size) == (0, 100)
    assert await count(split, "inkless_split_batch") == 4
    assert await count(split, "inkless_batch") == 4


# States


async def test_a_log_whose_segments_have_expired_is_diskless_again(split: SqlControlPlane) -> None:
    assert await split.uploads.converted_logs() == []
    begun = (await begin(split, B, 0, 9)).upload
    assert begun is not None
    await merge(split, A, 0, 9)
    assert [log.partition for log in await split.uploads.converted_logs()] == [A, B]
    await split.uploads.conversion_ended(A, leader_epoch=0)
    assert (await log_of(split, A)).migration_state is HYBRID  # offsets 0 to 9 are in the log
    await split.trimming.delete_records({A: 10})
    await split.uploads.conversion_ended(A, leader_epoch=0)
    log = await log_of(split, A)
    assert (log.tiered_log_start_offset, log.tiered_high_offset, log.migration_state) == (-1, -1, DISKLESS_ONLY)
    assert [log.partition for log in await split.uploads.converted_logs()] == [B]
    await split.uploads.abort_segment(B, begun.segment_id, leader_epoch=0)
    assert [log.partition for log in await split.uploads.converted_logs()] == [B]
    await split.uploads.forget_segment(B, begun.segment_id)
    assert await split.uploads.converted_logs() == []
    await merge(split, A, 10, 19)
    assert (await log_of(split, A)).migration_state is HYBRID


async def test_remote_storage_with_segments_of_rows_is_not_left_for_another(
    split: SqlControlPlane,
) -> None:
    first, second = RecordedStore("first", "file:///first"), RecordedStore("second", "file:///second")
    await split.stores.record_store(REMOTE_STORE, first, instead_of=None)
    assert not await split.stores.has_remote_segments()
    assert await split.stores.record_store(REMOTE_STORE, second, instead_of=first.store_id) == second
    assert (await begin(split, B, 0, 9)).upload is not None
    assert await split.stores.has_remote_segments(), "one is under way"
    await merge(split, A, 0, 9)
    assert await split.stores.has_remote_segments()
    assert await split.stores.record_store(REMOTE_STORE, first, instead_of=second.store_id) == second
    await split.lifecycle.delete_topics([TOPIC])
    assert not await split.stores.has_remote_segments()
    assert await split.stores.record_store(REMOTE_STORE, first, instead_of=second.store_id) == first


async def test_a_prefix_is_copied_before_what_follows_is_merged(plane: SqlControlPlane, time: HandSetClock) -> None:
    await switched(plane, 100, partitions=1)
    await commit(plane, "f0", batch(P, 10, timestamp=NOW))
    await plane.wishes.trigger_tiering(CLASSIC)
    time.now = LATER
    rules = [TieringRule(CLASSIC, 0)]
    assert keys(await claim(plane, rules=rules)) == []
    await plane.migrations.record_prefix([progress(P, HYBRID, tiered=(0, 99))])
    await split_all(plane, rules=rules)
    assert (await mergeable(plane))[0].next_upload_offset == 100
    await merge(plane, P, 100, 109)
    converted = await log_of(plane, P)
    assert (converted.tiered_log_start_offset, converted.tiered_high_offset) == (0, 109)
    # What leaders report of the prefix does not undo it, however late.
    await plane.migrations.record_prefix([progress(P, DISKLESS_ONLY, log_start=100, tiered=(0, 99))])
    log = await log_of(plane, P)
    assert (log.log_start_offset, log.diskless_log_start_offset, log.diskless_start_offset) == (100, 100, 110)
    assert (log.tiered_high_offset, log.migration_state) == (109, HYBRID)
    assert await plane.migrations.complete_migration(CLASSIC) is Refusal.MIGRATION_NOT_FOUND
    reset = await plane.migrations.reset_diskless_log_start_offset(P, 9)
    assert reset.refusal is Refusal.BOUNDARY_IS_SET


@pytest.mark.parametrize("left", [{"tiered": (0, 99)}, {"log_start": 100, "tiered": (0, 59)}], ids=["copied", "gone"])
async def test_a_switch_that_was_ended_by_force_lets_nothing_jump_over_its_prefix(
    plane: SqlControlPlane, time: HandSetClock, left: dict[str, Any]
) -> None:
    """The first segment goes on with the producers and epochs of the last one of the prefix, if there is a prefix."""
    await switched(plane, 100, partitions=1)
    await commit(plane, "f0", batch(P, 10, timestamp=NOW))
    await plane.migrations.record_prefix([progress(P, MIGRATING, tiered=(0, 59))])
    assert await plane.migrations.complete_migration(CLASSIC) is None
    await plane.wishes.trigger_tiering(CLASSIC)
    time.now = LATER
    rules = [TieringRule(CLASSIC, 0)]
    assert keys(await claim(plane, rules=rules)) == []
    assert await mergeable(plane) == {}
    begun = await begin(plane, P, 100, 109)
    assert begun.refusal is Refusal.NOT_MERGEABLE
    assert "up to offset 59 only" in begun.message
    await plane.migrations.record_prefix([progress(P, HYBRID, **left)])
    await split_all(plane, rules=rules)
    await merge(plane, P, 100, 109)
    assert (await log_of(plane, P)).tiered_high_offset == 109


async def test_a_deleted_topic_leaves_nothing(split: SqlControlPlane) -> None:
    await merge(split, A, 0, 9)
    begun = (await begin(split, A, 10, 19)).upload
    assert begun is not None
    await split.wishes.trigger_tiering(TOPIC)
    await split.uploads.finish_segment(A, begun.segment_id, leader_epoch=0)
    await split.lifecycle.delete_topics([TOPIC])
    assert (await split.uploads.commit_segment(A, begun.segment_id, leader_epoch=0)).refusal is Refusal.UNKNOWN_LOG
    assert (await begin(split, A, 10, 19)).refusal is Refusal.UNKNOWN_LOG
    for table in ("split_batch", "tiering_segment", "tiering_topic", "batch"):
        assert await count(split, f"inkless_{table}") == 0, table
    assert set((await states(split)).values()) == {"deleting"}
    assert await split.wishes.tiering_wishes() == {}
    assert TOPIC not in await split.lifecycle.topic_ids()
    await split.wishes.pause_tiering(TOPIC, is_paused=True)  # by somebody who did not know
    assert TOPIC in await split.lifecycle.topic_ids()
    await split.lifecycle.delete_topics([TOPIC])
    assert TOPIC not in await split.lifecycle.topic_ids()


async def test_rows_are_read_until_the_boundary_moves(split: SqlControlPlane) -> None:
    begun = (await begin(split, A, 0, 29)).upload
    assert begun is not None
    await split.uploads.finish_segment(A, begun.segment_id, leader_epoch=0)
    assert [row.base_offset for row in await rows_of(split, A)] == [0, 10, 20]
