"""The contract of the control plane, on SQLite and PostgreSQL: commit and find."""

from __future__ import annotations

import asyncio
import inspect
from types import ModuleType

import pytest

from strandline.controlplane import (
    COMMIT_CHANNEL,
    BatchToCommit,
    DisklessLog,
    FindBatches,
    FoundBatches,
    OffsetBoundary,
    Refusal,
    SqlControlPlane,
    ports,
)
from strandline.controlplane.conversion import ports as conversion_ports
from strandline.controlplane.store_records import StoreRecords
from strandline.records import TimestampType
from tests.controlplane.making import ALL_BYTES as ALL
from tests.controlplane.making import (
    LOGS,
    MISSING,
    NOW,
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
from tests.partitions import id_partition


def ports_of(module: ModuleType) -> list[type]:
    return [kind for kind in vars(module).values() if isinstance(kind, type) and kind.__module__ == module.__name__]


def methods_of(port: type) -> set[str]:
    return {name for kind in port.__mro__ for name, value in vars(kind).items() if inspect.iscoroutinefunction(value)}


async def test_it_offers_every_port(plane: SqlControlPlane) -> None:
    """Each by one of its parts. The types of their methods are checked where components get them."""
    for port in (*ports_of(ports), *ports_of(conversion_ports), StoreRecords):
        wanted = methods_of(port)
        assert wanted, port
        assert len([part for part in vars(plane).values() if wanted <= set(dir(part))]) == 1, port


async def test_offsets_are_dense_in_the_order_of_files_and_batches(plane: SqlControlPlane) -> None:
    first, second = await plane.commits.commit_files(
        [wal("one", batch(A, 3), batch(A, 2), batch(B, 4)), wal("two", batch(A, 1), batch(C, 5))]
    )
    assert bases(first) == [0, 3, 0]
    assert bases(second) == [5, 0]
    (third,) = await plane.commits.commit_files([wal("three", batch(A, 1), batch(B, 1))])
    assert bases(third) == [6, 4]
    logs = await plane.reads.logs([A, B, C, MISSING])
    assert {partition: log.high_watermark for partition, log in logs.items()} == {A: 7, B: 5, C: 5}
    assert logs[A] == DisklessLog(partition=A, log_start_offset=0, high_watermark=7, byte_size=400, last_epoch=0)


async def test_found_rows_lead_to_the_bytes(plane: SqlControlPlane, time: HandSetClock) -> None:
    await plane.commits.commit_files([wal("one", batch(A, 3, size=70), batch(B, 4, leader_epoch=6))])
    time.now += 1
    await commit(plane, "two", batch(B, 2, timestamp=2_000))
    (found,) = await find(plane, FindBatches(B, 0, ALL))
    assert (found.refusal, found.log_start_offset, found.high_watermark) == (None, 0, 6)
    one, two = found.rows
    assert one._replace(file_id=0) == (0, 3, 0, "one", 70, 100, TimestampType.CREATE_TIME, NOW, 1_000, 6)
    assert two._replace(file_id=0) == (4, 5, 0, "two", 0, 100, TimestampType.CREATE_TIME, NOW + 1, 2_000, 6)


async def test_a_read_begins_with_the_row_that_holds_its_offset(plane: SqlControlPlane) -> None:
    for number in range(5):
        await plane.commits.commit_files([wal(f"f{number}", batch(A, 10))])
    answers = await find(
        plane, FindBatches(A, 25, ALL), FindBatches(A, 29, ALL), FindBatches(A, 30, ALL), FindBatches(A, 50, ALL)
    )
    assert [[row.base_offset for row in answer.rows] for answer in answers] == [
        [20, 30, 40],
        [20, 30, 40],
        [30, 40],
        [],
    ]
    assert answers[-1] == FoundBatches(None, 0, 50, (), 0)


async def test_a_read_is_limited_by_bytes_and_rows_and_has_one_row_at_least(plane: SqlControlPlane) -> None:
    for number in range(5):
        await plane.commits.commit_files([wal(f"f{number}", batch(A, 1, size=100))])
    answers = await find(plane, *(FindBatches(A, 0, limit) for limit in (0, 1, 100, 101, 200, 1000)), max_rows=3)
    assert [len(answer.rows) for answer in answers] == [1, 1, 1, 2, 2, 3]


async def test_a_long_read_is_given_whole_and_in_order(plane: SqlControlPlane) -> None:
    await plane.commits.commit_files([wal(f"f{number}", batch(A, 2), batch(B)) for number in range(100)])
    requests = [
        FindBatches(A, 21, ALL),
        FindBatches(B, 95, ALL),
        FindBatches(A, 0, 3_950),
        FindBatches(MISSING, 0, ALL),
    ]
    long, short, limited, missing = await find(plane, *requests, max_rows=77)
    assert [row.base_offset for row in long.rows] == list(range(20, 174, 2))
    assert [row.base_offset for row in short.rows] == list(range(95, 100))
    assert [row.base_offset for row in limited.rows] == list(range(0, 80, 2))
    assert (long.high_watermark, missing.refusal) == (200, Refusal.UNKNOWN_LOG)


async def test_offsets_that_do_not_exist_and_unknown_logs_are_refused_alone(plane: SqlControlPlane) -> None:
    await plane.commits.commit_files([wal("one", batch(A, 3))])
    answers = await find(
        plane, FindBatches(A, 4, ALL), FindBatches(MISSING, 0, ALL), FindBatches(A, -1, ALL), FindBatches(A, 1, ALL)
    )
    refusals = [answer.refusal for answer in answers]
    assert refusals == [Refusal.OFFSET_OUT_OF_RANGE, Refusal.UNKNOWN_LOG, Refusal.OFFSET_OUT_OF_RANGE, None]
    assert answers[0] == FoundBatches(Refusal.OFFSET_OUT_OF_RANGE, 0, 3, (), 0)
    assert answers[2].rows == ()
    assert await find(plane) == []


async def test_unknown_logs_fail_only_their_own_batches(plane: SqlControlPlane) -> None:
    (answers,) = await plane.commits.commit_files([wal("one", batch(A, 3), batch(MISSING), batch(A, 2))])
    assert [answer.refusal for answer in answers] == [None, Refusal.UNKNOWN_LOG, None]
    assert bases(answers) == [0, -1, 3]
    assert answers[1].message


async def test_creating_logs_again_changes_nothing(plane: SqlControlPlane) -> None:
    await plane.commits.commit_files([wal("one", batch(A, 3))])
    await plane.lifecycle.create_logs(LOGS)
    await plane.lifecycle.create_logs([])
    assert (await plane.reads.logs([A]))[A].high_watermark == 3


async def test_a_commit_wakes_listeners(plane: SqlControlPlane) -> None:
    heard = asyncio.Event()
    stop = plane.store.listen(COMMIT_CHANNEL, heard.set)
    await plane.commits.commit_files([wal("one", batch(A))])
    async with asyncio.timeout(10):
        await heard.wait()
    stop()


@pytest.mark.parametrize("count", [1, 300])
async def test_many_partitions_in_one_file(plane: SqlControlPlane, count: int) -> None:
    partitions = [id_partition(C.topic_id, number) for number in range(count)]
    await plane.lifecycle.create_logs(partitions)
    producers = [(7, 0, 0), (8, 0, 0)]
    (answers,) = await plane.commits.commit_files(
        [wal("one", *(batch(p, 2, producer=producer) for p in partitions for producer in producers))]
    )
    assert bases(answers) == [0, 2] * count
    found = await find(plane, *(FindBatches(partition, 3, ALL) for partition in partitions))
    assert [(answer.high_watermark, len(answer.rows)) for answer in found] == [(4, 1)] * count


# One row for batches that lie side by side


async def test_batches_side_by_side_in_one_file_are_one_row(plane: SqlControlPlane) -> None:
    batches = [batch(A, n + 1, size=10 + n, timestamp=1_000 - n, producer=(n, 0, 0)) for n in range(20)]
    answers = await commit(plane, "one", *batches, batch(B))
    assert bases(answers)[:4] == [0, 1, 3, 6]
    (row,) = await rows_of(plane, A)
    assert (row.base_offset, row.last_offset, row.byte_offset, row.byte_size) == (0, 209, 0, 390)
    assert row.max_timestamp == 1_000


async def test_a_refused_batch_in_between_divides_the_row(plane: SqlControlPlane) -> None:
    await commit(plane, "zero", batch(A, producer=(7, 0, 0)))
    answers = await commit(plane, "one", batch(A, 2), batch(A, producer=(7, 0, 5)), batch(A, 3), batch(A, 4))
    assert bases(answers) == [1, -1, 3, 6]
    rows = [(row.base_offset, row.last_offset, row.byte_offset, row.byte_size) for row in await rows_of(plane, A)]
    assert rows == [(0, 0, 0, 100), (1, 2, 0, 100), (3, 9, 200, 200)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (batch(A), batch(A, leader_epoch=1)),
        (batch(A), batch(A, timestamp_type=TimestampType.LOG_APPEND_TIME)),
    ],
    ids=["leader epoch", "timestamp type"],
)
async def test_batches_that_readers_must_tell_apart_are_rows_of_their_own(
    plane: SqlControlPlane, one: BatchToCommit, other: BatchToCommit
) -> None:
    await commit(plane, "one", one, one, other, other, one)
    assert [row.last_offset for row in await rows_of(plane, A)] == [1, 3, 4]


async def test_batches_of_two_files_are_two_rows(plane: SqlControlPlane) -> None:
    await plane.commits.commit_files([wal("one", batch(A)), wal("two", batch(A))])
    assert [row.object_key for row in await rows_of(plane, A)] == ["one", "two"]


# Log append time


async def test_the_commit_gives_log_append_time(plane: SqlControlPlane) -> None:
    appended, created = await commit(
        plane, "one", batch(A, timestamp=77, timestamp_type=TimestampType.LOG_APPEND_TIME), batch(B, timestamp=77)
    )
    assert (appended.log_append_time_ms, created.log_append_time_ms) == (NOW, -1)
    (row,) = await rows_of(plane, A)
    assert (row.timestamp_type, row.log_append_time_ms, row.max_timestamp) == (
        TimestampType.LOG_APPEND_TIME,
        NOW,
        NOW,
    )
    assert (await rows_of(plane, B))[0].max_timestamp == 77


# Lost answers


async def test_a_commit_whose_answer_was_lost_gets_it_again(plane: SqlControlPlane, time: HandSetClock) -> None:
    file = wal("one", batch(A, 2, producer=(7, 0, 0)), batch(MISSING), batch(A, 3, producer=(7, 0, 9)), batch(B, 4))
    (first,) = await plane.commits.commit_files([file])
    assert [answer.refusal for answer in first] == [None, Refusal.UNKNOWN_LOG, Refusal.OUT_OF_ORDER_SEQUENCE, None]
    await commit(plane, "two", batch(A, 5), batch(B, 5))
    time.now += 1_000
    (again,) = await plane.commits.commit_files([file])
    assert again == first
    assert [row.object_key for row in await rows_of(plane, A)] == ["one", "two"]
    assert (await plane.reads.logs([A]))[A].high_watermark == 7


async def test_a_commit_of_known_and_new_files_adds_only_the_new(plane: SqlControlPlane) -> None:
    one, two, three = (wal(key, batch(A, 2)) for key in ("one", "two", "three"))
    await plane.commits.commit_files([two])
    answers = await plane.commits.commit_files([one, two, three, one])
    assert [bases(answer) for answer in answers] == [[2], [0], [4], [2]]


async def test_the_answers_of_a_file_whose_rows_are_gone_are_still_known(plane: SqlControlPlane) -> None:
    file = wal("one", batch(A, 2), batch(MISSING))
    (first,) = await plane.commits.commit_files([file])
    await plane.trimming.delete_records({A: -1})
    (again,) = await plane.commits.commit_files([file])
    assert again == first
    assert await rows_of(plane, A) == ()


async def test_a_file_of_which_nothing_was_accepted_is_marked_and_remembers_its_answers(
    plane: SqlControlPlane,
) -> None:
    file = wal("one", batch(MISSING), batch(MISSING))
    (first,) = await plane.commits.commit_files([file])
    (marked,) = await plane.files.files_to_delete(marked_for_ms=0, limit=10)
    assert (marked.object_key, marked.size, marked.marked_for_deletion_at_ms) == ("one", 250, NOW)
    assert await plane.commits.commit_files([file]) == [first]


# Boundaries


async def test_offsets_lie_in_a_tier(plane: SqlControlPlane) -> None:
    await commit(plane, "one", batch(A, 10))
    async with plane.store.transaction() as tx:
        await tx.execute("UPDATE inkless_log SET tiered_high_offset = 3, diskless_start_offset = 4 WHERE log_id = 1")
    await plane.trimming.delete_records({A: 2})
    boundaries = [await plane.reads.offset_boundary(A, offset) for offset in (1, 2, 3, 4, 9, 10, 11)]
    outside, tiered, diskless = OffsetBoundary.OUT_OF_RANGE, OffsetBoundary.TIERED, OffsetBoundary.DISKLESS
    assert boundaries == [outside, tiered, tiered, diskless, diskless, diskless, outside]
    assert await plane.reads.offset_boundary(MISSING, 0) is outside


# Time


async def test_the_first_row_at_a_time(plane: SqlControlPlane) -> None:
    for number, timestamp in enumerate([10, 30, 20, 30, 50, 40]):
        await commit(plane, f"f{number}", batch(A, 3, timestamp=timestamp), batch(B, timestamp=1_000_000))
    found = {time: await plane.reads.first_row_at_time(A, time) for time in (0, 10, 11, 30, 31, 50, 51)}
    offsets = {time: row.base_offset if row else None for time, row in found.items()}
    assert offsets == {0: 0, 10: 0, 11: 3, 30: 3, 31: 12, 50: 12, 51: None}
    assert await plane.reads.first_row_at_time(MISSING, 0) is None
    assert await plane.reads.first_row_at_time(C, 0) is None


async def test_a_search_by_time_forgets_records_that_were_deleted(plane: SqlControlPlane) -> None:
    for number, timestamp in enumerate([10, 9_999, 20, 30, 25]):
        await commit(plane, f"f{number}", batch(A, timestamp=timestamp))
    await plane.trimming.delete_records({A: 2})
    found = [await plane.reads.first_row_at_time(A, time) for time in (5, 21, 30, 31)]
    assert [row.base_offset if row else None for row in found] == [2, 3, 3, None]
    largest = await plane.reads.row_of_max_timestamp(A)
    assert largest is not None
    assert (largest.base_offset, largest.max_timestamp) == (3, 30)


async def test_an_emptied_log_begins_anew_with_its_timestamps(plane: SqlControlPlane) -> None:
    await commit(plane, "one", batch(A, timestamp=9_999))
    await plane.trimming.delete_records({A: -1})
    assert await plane.reads.row_of_max_timestamp(A) is None
    assert await plane.reads.first_row_at_time(A, 0) is None
    await commit(plane, "two", batch(A, timestamp=20))
    row = await plane.reads.row_of_max_timestamp(A)
    assert row is not None
    assert (row.base_offset, row.max_timestamp) == (1, 20)


async def test_the_row_of_the_largest_timestamp_is_the_first_that_has_it(plane: SqlControlPlane) -> None:
    for number, timestamp in enumerate([10, 50, 20, 50, 30]):
        await commit(plane, f"f{number}", batch(A, timestamp=timestamp))
    row = await plane.reads.row_of_max_timestamp(A)
    assert row is not None
    assert row.base_offset == 1
    assert await plane.reads.row_of_max_timestamp(MISSING) is None


async def test_records_without_a_timestamp_are_found_too(plane: SqlControlPlane) -> None:
    await commit(plane, "one", batch(A, timestamp=-1))
    row = await plane.reads.row_of_max_timestamp(A)
    assert row is not None
    assert row.max_timestamp == -1
    assert await plane.reads.first_row_at_time(A, 0) is None
