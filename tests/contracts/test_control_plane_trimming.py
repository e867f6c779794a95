"""The contract of the control plane: DeleteRecords, retention, deleted topics."""

from __future__ import annotations

import pytest

from strandline.controlplane import FindBatches, Refusal, RetentionRule, SqlControlPlane, Trimmed
from strandline.controlplane.pruning import PAGE
from strandline.testing.clock import VirtualClock
from tests.controlplane.making import (
    ALL_BYTES,
    LOGS,
    MISSING,
    NOW,
    OTHER_TOPIC,
    TOPIC,
    A,
    B,
    C,
    HandSetClock,
    bases,
    batch,
    commit,
    find,
    rows_of,
    wal,
)


async def fill(plane: SqlControlPlane, count: int = 10, *, size: int = 100, records: int = 10) -> None:
    """`count` rows of A with times 0, 100, 200, …, each in a file of its own."""
    files = [wal(f"f{number:04}", batch(A, records, size=size, timestamp=100 * number)) for number in range(count)]
    await plane.commits.commit_files(files)


async def marked(plane: SqlControlPlane) -> list[str]:
    return sorted(file.object_key for file in await plane.files.files_to_delete(marked_for_ms=-(1 << 60), limit=10_000))


# DeleteRecords


async def test_the_log_start_moves_and_rows_wholly_below_it_go(plane: SqlControlPlane) -> None:
    await fill(plane)
    trimmed = await plane.trimming.delete_records({A: 25})
    assert trimmed == {A: Trimmed(None, 25, 2, 200)}
    log = (await plane.reads.logs([A]))[A]
    assert (log.log_start_offset, log.high_watermark, log.byte_size) == (25, 100, 800)
    assert (await rows_of(plane, A))[0].base_offset == 20
    assert await marked(plane) == ["f0000", "f0001"]


async def test_the_log_start_never_moves_back(plane: SqlControlPlane) -> None:
    await fill(plane)
    await plane.trimming.delete_records({A: 50})
    assert await plane.trimming.delete_records({A: 30}) == {A: Trimmed(None, 50)}
    assert (await plane.reads.logs([A]))[A].log_start_offset == 50


async def test_minus_one_means_everything(plane: SqlControlPlane) -> None:
    await fill(plane)
    assert await plane.trimming.delete_records({A: -1}) == {A: Trimmed(None, 100, 10, 1000)}
    (found,) = await find(plane, FindBatches(A, 100, ALL_BYTES))
    assert (found.refusal, found.log_start_offset, found.high_watermark, found.rows) == (None, 100, 100, ())
    assert bases(await commit(plane, "later", batch(A))) == [100]
    assert (await plane.reads.logs([A]))[A].byte_size == 100


async def test_one_bad_offset_does_not_stop_the_others(plane: SqlControlPlane) -> None:
    await fill(plane)
    await commit(plane, "b", batch(B, 5))
    trimmed = await plane.trimming.delete_records({A: 101, MISSING: 0, B: 5, C: -2})
    assert trimmed[A] == Trimmed(Refusal.OFFSET_OUT_OF_RANGE, 0)
    assert trimmed[MISSING].refusal is Refusal.UNKNOWN_LOG
    assert trimmed[B] == Trimmed(None, 5, 1, 100)
    assert trimmed[C].refusal is Refusal.OFFSET_OUT_OF_RANGE
    assert await plane.trimming.delete_records({}) == {}


async def test_offsets_below_the_log_start_are_out_of_range(plane: SqlControlPlane) -> None:
    await fill(plane)
    await plane.trimming.delete_records({A: 25})
    below, inside = await find(plane, FindBatches(A, 24, ALL_BYTES), FindBatches(A, 25, 1))
    assert (below.refusal, below.log_start_offset, below.rows) == (Refusal.OFFSET_OUT_OF_RANGE, 25, ())
    assert [row.base_offset for row in inside.rows] == [20]


async def test_more_rows_than_a_page_go(plane: SqlControlPlane) -> None:
    count = 2 * PAGE + 3
    await fill(plane, count, records=1)
    assert await plane.trimming.delete_records({A: count - 1}) == {
        A: Trimmed(None, count - 1, count - 1, 100 * (count - 1))
    }
    assert len(await marked(plane)) == count - 1


async def test_a_file_stays_while_a_row_refers_to_it(plane: SqlControlPlane) -> None:
    await commit(plane, "shared", batch(A, 5), batch(B, 5))
    await plane.trimming.delete_records({A: -1})
    assert await marked(plane) == []
    await plane.trimming.delete_records({B: 4})
    assert await marked(plane) == []
    await plane.trimming.delete_records({B: 5})
    assert await marked(plane) == ["shared"]


# Retention


async def enforce(
    plane: SqlControlPlane, *, ms: int = -1, size: int = -1, now: int = NOW, max_rows: int = 1_000
) -> Trimmed:
    later = SqlControlPlane(plane.store, clock=VirtualClock(), time=HandSetClock(now))
    (answer,) = await later.trimming.enforce_retention([RetentionRule(A, ms, size)], max_rows=max_rows)
    return answer


async def test_rows_that_are_too_old_go(plane: SqlControlPlane) -> None:
    await fill(plane)
    assert await enforce(plane, ms=1_000, now=1_300) == Trimmed(None, 30, 3, 300)  # times 0, 100, 200
    assert await enforce(plane, ms=1_000, now=1_300) == Trimmed(None, 30)
    assert await enforce(plane, ms=0, now=10_000) == Trimmed(None, 100, 7, 700)
    assert (await plane.reads.logs([A]))[A].byte_size == 0


async def test_rows_go_while_the_rest_is_large_enough(plane: SqlControlPlane) -> None:
    await fill(plane)
    assert await enforce(plane, size=450) == Trimmed(None, 50, 5, 500)
    assert await enforce(plane, size=450) == Trimmed(None, 50)
    assert await enforce(plane, size=400) == Trimmed(None, 60, 1, 100)


async def test_a_row_in_time_keeps_what_follows(plane: SqlControlPlane) -> None:
    for number, timestamp in enumerate([10, 5_000, 10]):
        await commit(plane, f"f{number}", batch(A, timestamp=timestamp))
    assert await enforce(plane, ms=100, now=5_050) == Trimmed(None, 1, 1, 100)


async def test_no_limit_means_no_limit(plane: SqlControlPlane) -> None:
    await fill(plane)
    assert await enforce(plane, now=1 << 50) == Trimmed(None, 0)


async def test_records_without_a_timestamp_are_as_old_as_their_commit(plane: SqlControlPlane) -> None:
    await commit(plane, "one", batch(A, timestamp=-1))
    assert await enforce(plane, ms=100, now=NOW + 100) == Trimmed(None, 0)
    assert await enforce(plane, ms=100, now=NOW + 101) == Trimmed(None, 1, 1, 100)


@pytest.mark.parametrize("max_rows", [1, 4, 2_500])
async def test_one_call_deletes_a_bounded_number_of_rows(plane: SqlControlPlane, max_rows: int) -> None:
    count = 10 if max_rows < 10 else 2_600
    await fill(plane, count, records=1)
    assert await enforce(plane, ms=0, now=1 << 50, max_rows=max_rows) == Trimmed(
        None, max_rows, max_rows, 100 * max_rows
    )
    assert (await plane.reads.logs([A]))[A].log_start_offset == max_rows


async def test_rules_are_answered_in_their_order(plane: SqlControlPlane) -> None:
    await fill(plane)
    await commit(plane, "b", batch(B, 5, timestamp=7))
    rules = [RetentionRule(B, 0, -1), RetentionRule(MISSING, 0, 0), RetentionRule(C, 0, 0), RetentionRule(A, -1, 0)]
    answers = await plane.trimming.enforce_retention(rules, max_rows=100)
    assert answers == [
        Trimmed(None, 5, 1, 100),
        Trimmed(Refusal.UNKNOWN_LOG),
        Trimmed(None, 0),
        Trimmed(None, 100, 10, 1000),
    ]
    assert await plane.trimming.enforce_retention([], max_rows=100) == []


async def test_retention_finishes_what_an_interrupted_deletion_has_left(plane: SqlControlPlane) -> None:
    await fill(plane)
    async with plane.store.transaction() as tx:
        await tx.execute("UPDATE inkless_log SET log_start_offset = 35 WHERE log_id = 1")
    assert (await rows_of(plane, A))[0].base_offset == 30
    assert await enforce(plane) == Trimmed(None, 35, 3, 300)
    assert await marked(plane) == ["f0000", "f0001", "f0002"]


# Topics that are deleted


async def test_a_deleted_topic_leaves_nothing_but_files_to_delete(plane: SqlControlPlane) -> None:
    await fill(plane, PAGE + 5, records=1)
    await commit(plane, "shared", batch(B, producer=(7, 0, 0)), batch(C))
    await plane.lifecycle.delete_topics([TOPIC])
    assert await plane.lifecycle.topic_ids() == {OTHER_TOPIC}
    assert set(await plane.reads.logs([A, B, C])) == {C}
    assert len(await marked(plane)) == PAGE + 5
    (answers,) = await plane.commits.commit_files([wal("late", batch(A), batch(C))])
    assert [answer.refusal for answer in answers] == [Refusal.UNKNOWN_LOG, None]
    assert (await find(plane, FindBatches(B, 0, ALL_BYTES)))[0].refusal is Refusal.UNKNOWN_LOG
    async with plane.store.transaction() as tx:
        assert await tx.fetch("SELECT count(*) FROM inkless_batch") == [(2,)]
        assert await tx.fetch("SELECT count(*) FROM inkless_producer_state") == [(0,)]


async def test_objects_are_not_orphaned_when_the_last_topic_goes(plane: SqlControlPlane) -> None:
    await commit(plane, "shared", batch(A), batch(C))
    await plane.lifecycle.delete_topics([TOPIC, OTHER_TOPIC])
    assert await plane.lifecycle.topic_ids() == frozenset()
    assert await marked(plane) == ["shared"]


async def test_a_deletion_that_was_interrupted_is_continued(plane: SqlControlPlane) -> None:
    await fill(plane)
    async with plane.store.transaction() as tx:
        await tx.execute("UPDATE inkless_log SET is_deleted = TRUE WHERE log_id = 1")
    assert set(await plane.reads.logs([A, B])) == {B}
    assert TOPIC in await plane.lifecycle.topic_ids()
    assert await plane.trimming.enforce_retention([RetentionRule(A, 0, 0)], max_rows=10) == [
        Trimmed(Refusal.UNKNOWN_LOG)
    ]
    await plane.lifecycle.create_logs(LOGS)  # too late
    assert A not in await plane.reads.logs([A])
    await plane.lifecycle.delete_topics([TOPIC])
    assert TOPIC not in await plane.lifecycle.topic_ids()
    assert len(await marked(plane)) == 10


async def test_deleting_what_is_not_there_is_fine(plane: SqlControlPlane) -> None:
    await plane.lifecycle.delete_topics([MISSING.topic_id])
    await plane.lifecycle.delete_topics([])
    assert await plane.lifecycle.topic_ids() == {TOPIC, OTHER_TOPIC}
