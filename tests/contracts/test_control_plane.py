"""The contract of the control plane, on SQLite and PostgreSQL: commit and find."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from strandline.controlplane import COMMIT_CHANNEL, SqlControlPlane
from strandline.controlplane.values import (
    CommittedBatch,
    DisklessLog,
    FindBatches,
    FoundBatches,
    Refusal,
)
from strandline.records import TimestampType
from strandline.sql import SqlStore
from tests.controlplane.making import LOGS, MISSING, A, B, C, batch, wal

NOW = 5_000
ALL = 1 << 40


@pytest_asyncio.fixture
async def plane(sql: SqlStore) -> AsyncIterator[SqlControlPlane]:
    """With the logs A, B and C."""
    control = SqlControlPlane(sql)
    await control.create_logs(LOGS)
    yield control


def bases(answers: list[CommittedBatch] | tuple[CommittedBatch, ...]) -> list[int]:
    return [answer.base_offset for answer in answers]


async def find(plane: SqlControlPlane, *requests: FindBatches, max_rows: int = 100) -> list[FoundBatches]:
    return list(await plane.find_batches(requests, max_rows=max_rows))


async def test_offsets_are_dense_in_the_order_of_files_and_batches(plane: SqlControlPlane) -> None:
    first, second = await plane.commit_files(
        [wal("one", batch(A, 3), batch(A, 2), batch(B, 4)), wal("two", batch(A, 1), batch(C, 5))], now_ms=NOW
    )
    assert bases(list(first)) == [0, 3, 0]
    assert bases(list(second)) == [5, 0]
    (third,) = await plane.commit_files([wal("three", batch(A, 1), batch(B, 1))], now_ms=NOW)
    assert bases(list(third)) == [6, 4]
    logs = await plane.logs([A, B, C, MISSING])
    assert {partition: log.high_watermark for partition, log in logs.items()} == {A: 7, B: 5, C: 5}
    assert logs[A] == DisklessLog(partition=A, topic_name="topic", log_start_offset=0, high_watermark=7, byte_size=400)


async def test_found_rows_lead_to_the_bytes(plane: SqlControlPlane) -> None:
    await plane.commit_files([wal("one", batch(A, 3, size=70), batch(B, 4, leader_epoch=6))], now_ms=NOW)
    await plane.commit_files([wal("two", batch(B, 2, timestamp=2_000))], now_ms=NOW + 1)
    (found,) = await find(plane, FindBatches(B, 0, ALL))
    assert (found.refusal, found.log_start_offset, found.high_watermark) == (None, 0, 6)
    one, two = found.rows
    assert one._replace(file_id=0) == (0, 3, 0, "one", 70, 100, TimestampType.CREATE_TIME, NOW, 1_000, 6)
    assert two._replace(file_id=0) == (4, 5, 0, "two", 0, 100, TimestampType.CREATE_TIME, NOW + 1, 2_000, 0)


async def test_a_read_begins_with_the_row_that_holds_its_offset(plane: SqlControlPlane) -> None:
    for number in range(5):
        await plane.commit_files([wal(f"f{number}", batch(A, 10))], now_ms=NOW)
    answers = await find(
        plane, FindBatches(A, 25, ALL), FindBatches(A, 29, ALL), FindBatches(A, 30, ALL), FindBatches(A, 50, ALL)
    )
    assert [[row.base_offset for row in answer.rows] for answer in answers] == [
        [20, 30, 40],
        [20, 30, 40],
        [30, 40],
        [],
    ]
    assert answers[-1] == FoundBatches(None, 0, 50)


async def test_a_read_is_limited_by_bytes_and_rows_and_has_one_row_at_least(plane: SqlControlPlane) -> None:
    for number in range(5):
        await plane.commit_files([wal(f"f{number}", batch(A, 1, size=100))], now_ms=NOW)
    answers = await find(plane, *(FindBatches(A, 0, limit) for limit in (0, 1, 100, 101, 200, 1000)), max_rows=3)
    assert [len(answer.rows) for answer in answers] == [1, 1, 1, 2, 2, 3]


async def test_offsets_that_do_not_exist_and_unknown_logs_are_refused_alone(plane: SqlControlPlane) -> None:
    await plane.commit_files([wal("one", batch(A, 3))], now_ms=NOW)
    answers = await find(
        plane, FindBatches(A, 4, ALL), FindBatches(MISSING, 0, ALL), FindBatches(A, -1, ALL), FindBatches(A, 1, ALL)
    )
    refusals = [answer.refusal for answer in answers]
    assert refusals == [Refusal.OFFSET_OUT_OF_RANGE, Refusal.UNKNOWN_LOG, Refusal.OFFSET_OUT_OF_RANGE, None]
    assert answers[0] == FoundBatches(Refusal.OFFSET_OUT_OF_RANGE, 0, 3)
    assert answers[2].rows == ()
    assert await find(plane) == []


async def test_unknown_logs_fail_only_their_own_batches(plane: SqlControlPlane) -> None:
    (answers,) = await plane.commit_files([wal("one", batch(A, 3), batch(MISSING), batch(A, 2))], now_ms=NOW)
    assert [answer.refusal for answer in answers] == [None, Refusal.UNKNOWN_LOG, None]
    assert bases(list(answers)) == [0, -1, 3]
    assert answers[1].message


async def test_creating_logs_again_changes_nothing(plane: SqlControlPlane) -> None:
    await plane.commit_files([wal("one", batch(A, 3))], now_ms=NOW)
    await plane.create_logs(LOGS)
    await plane.create_logs([])
    assert (await plane.logs([A]))[A].high_watermark == 3


async def test_a_commit_wakes_listeners(plane: SqlControlPlane) -> None:
    heard = asyncio.Event()
    stop = plane.store.listen(COMMIT_CHANNEL, heard.set)
    await plane.commit_files([wal("one", batch(A))], now_ms=NOW)
    async with asyncio.timeout(10):
        await heard.wait()
    stop()


@pytest.mark.parametrize("count", [1, 300])
async def test_many_partitions_in_one_file(plane: SqlControlPlane, count: int) -> None:
    from strandline.controlplane.values import NewLog, TopicIdPartition

    partitions = [TopicIdPartition(C.topic_id, number) for number in range(count)]
    await plane.create_logs([NewLog(partition, "other") for partition in partitions])
    producers = [(7, 0, 0), (8, 0, 0)]
    (answers,) = await plane.commit_files(
        [wal("one", *(batch(p, 2, producer=producer) for p in partitions for producer in producers))], now_ms=NOW
    )
    assert bases(list(answers)) == [0, 2] * count
    found = await find(plane, *(FindBatches(partition, 3, ALL) for partition in partitions))
    assert [(answer.high_watermark, len(answer.rows)) for answer in found] == [(4, 1)] * count
