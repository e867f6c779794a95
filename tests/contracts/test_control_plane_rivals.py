"""The contract of the control plane: several of them at work at the same time.

On PostgreSQL each has connections of its own, as brokers have; a SQLite database belongs to one process.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from strandline.controlplane import FileToCommit, Refusal, RetentionRule, SqlControlPlane
from strandline.model import TopicIdPartition
from strandline.sql import open_store
from tests.controlplane.making import TOPIC, A, B, bases, batch, commit, high_watermark, rows_of, wal
from tests.partitions import id_partition

PARTITIONS = [id_partition(TOPIC, number) for number in range(8)]
EVER = 1 << 60


@pytest_asyncio.fixture
async def planes(database_url: str) -> AsyncIterator[list[SqlControlPlane]]:
    """Two control planes on one database, with eight logs."""
    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(open_store(database_url, deadline=30))]
        if not stores[0].is_exclusive:
            stores.append(await stack.enter_async_context(open_store(database_url, deadline=30)))
        planes = [SqlControlPlane(store) for store in stores]
        await planes[0].lifecycle.create_logs(PARTITIONS)
        yield [planes[0], planes[-1]]


async def assert_dense(plane: SqlControlPlane, partition: TopicIdPartition) -> None:
    expected = (await plane.reads.logs([partition]))[partition].log_start_offset
    for row in await rows_of(plane, partition):
        assert row.base_offset <= expected <= row.last_offset
        expected = row.last_offset + 1
    assert expected == await high_watermark(plane, partition)


async def test_commits_to_the_same_partitions_are_dense_and_never_deadlock(planes: list[SqlControlPlane]) -> None:
    async def writer(number: int) -> list[tuple[TopicIdPartition, int, int]]:
        plane, order = planes[number % 2], PARTITIONS if number % 3 else PARTITIONS[::-1]
        placed = []
        for turn in range(10):
            file = wal(f"w{number}-{turn}", *(batch(p, 1 + (number + turn) % 4) for p in order))
            (answers,) = await plane.commits.commit_files([file])
            placed += [
                (item.partition, answer.base_offset, item.record_count)
                for item, answer in zip(file.batches, answers, strict=True)
            ]
        return placed

    placed = [item for placed in await asyncio.gather(*map(writer, range(6))) for item in placed]
    for partition in PARTITIONS:
        spans = sorted((base, base + count) for p, base, count in placed if p == partition)
        assert spans[0][0] == 0
        assert all(one[1] == other[0] for one, other in itertools.pairwise(spans))
        await assert_dense(planes[0], partition)


async def test_an_idempotent_producer_with_two_brokers_is_written_once(planes: list[SqlControlPlane]) -> None:
    """A client gives up waiting for one broker and sends the same batches to another."""
    for turn in range(15):
        answers = await asyncio.gather(
            *(
                commit(plane, f"{turn}-{number}", batch(A, 2, producer=(7, 0, 2 * turn)))
                for number, plane in enumerate(planes)
            )
        )
        assert [bases(answer) for answer in answers] == [[2 * turn]] * 2
        assert sorted(answer[0].is_duplicate for answer in answers) == [False, True]
    assert await high_watermark(planes[0], A) == 30


async def test_the_same_commit_twice_at_once_happens_once(planes: list[SqlControlPlane]) -> None:
    missing = id_partition(TOPIC, 99)
    for turn in range(10):
        # Without a log to wait for, the key alone keeps the two apart.
        for file in (wal(f"{turn}", batch(A, 3), batch(B, 2)), wal(f"{turn}-unknown", batch(missing))):
            first, second = await asyncio.gather(*(plane.commits.commit_files([file]) for plane in planes))
            assert first == second
    assert await high_watermark(planes[0], A) == 30


async def test_an_orphan_is_either_taken_or_committed(planes: list[SqlControlPlane]) -> None:
    for turn in range(15):
        file = wal(f"f{turn}", batch(A))
        taken, ((answer,),) = await asyncio.gather(
            planes[0].files.take_orphans([file.object_key], broker_id=1),
            planes[1].commits.commit_files([file]),
        )
        assert (answer.refusal is Refusal.STALE_FILE) == (taken == [file.object_key])
    await assert_dense(planes[0], A)


async def test_two_deletions_of_the_last_rows_of_a_file_do_not_both_miss_it(planes: list[SqlControlPlane]) -> None:
    for turn in range(15):
        await commit(planes[0], f"shared{turn}", *(batch(partition) for partition in PARTITIONS))
        await asyncio.gather(
            *(
                planes[number % 2].trimming.delete_records({partition: -1})
                for number, partition in enumerate(PARTITIONS)
            )
        )
    marked = await planes[0].files.files_to_delete(marked_for_ms=-EVER, limit=100)
    assert sorted(file.object_key for file in marked) == sorted(f"shared{turn}" for turn in range(15))
    logs = await planes[0].reads.logs(PARTITIONS)
    assert {log.byte_size for log in logs.values()} == {0}


async def test_everything_at_once_leaves_a_sound_database(planes: list[SqlControlPlane]) -> None:
    async def write(number: int) -> None:
        for turn in range(12):
            producer = (number, 0, turn)
            files = [
                wal(f"e{number}-{turn}-{n}", *(batch(p, 2, producer=producer) for p in PARTITIONS)) for n in (0, 1)
            ]
            await planes[number % 2].commits.commit_files(files)

    async def trim(plane: SqlControlPlane) -> None:
        rules = [RetentionRule(partition, -1, 500) for partition in PARTITIONS]
        for _ in range(6):
            await plane.trimming.enforce_retention(rules, max_rows=3)
            await plane.trimming.delete_records({A: 1, B: 2})
            await plane.producers.expire_producers(silent_ms=3, limit=5)

    async def clean() -> None:
        for _ in range(6):
            marked = await planes[0].files.files_to_delete(marked_for_ms=-EVER, limit=4)
            await planes[0].files.forget_files([file.file_id for file in marked])

    await asyncio.gather(*(write(number) for number in range(3)), *(trim(plane) for plane in planes), clean())
    for file in await planes[0].files.files_after(0, 10_000):
        is_used = bool(await planes[0].files.rows_of_file(file.file_id))
        assert is_used == (file.marked_for_deletion_at_ms is None)
    for partition, log in (await planes[0].reads.logs(PARTITIONS)).items():
        rows = await rows_of(planes[0], partition)
        assert log.byte_size == sum(row.byte_size for row in rows)
        await assert_dense(planes[0], partition)


async def test_a_topic_deleted_under_a_writer_takes_everything_with_it(planes: list[SqlControlPlane]) -> None:
    async def write() -> list[Refusal | None]:
        refusals = []
        for turn in range(20):
            ((answer, *_),) = await planes[0].commits.commit_files([wal(f"d{turn}", batch(A), batch(B))])
            refusals.append(answer.refusal)
        return refusals

    async def delete() -> None:
        while await high_watermark(planes[1], A) < 5:
            pass
        await planes[1].lifecycle.delete_topics([TOPIC])

    refusals, _ = await asyncio.gather(write(), delete())
    count = refusals.index(Refusal.UNKNOWN_LOG) if Refusal.UNKNOWN_LOG in refusals else 20
    assert set(refusals[:count]) <= {None}
    assert set(refusals[count:]) <= {Refusal.UNKNOWN_LOG}
    marked = await planes[0].files.files_to_delete(marked_for_ms=-EVER, limit=100)
    assert len(marked) == 20
    assert await planes[0].lifecycle.topic_ids() == frozenset()


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8, 13, 21])
async def test_a_cancelled_commit_can_be_asked_for_again(planes: list[SqlControlPlane], turns: int) -> None:
    files: list[FileToCommit] = [wal(f"c{number}", batch(A, 2), batch(B, 3)) for number in range(2)]
    task = asyncio.ensure_future(planes[0].commits.commit_files(files))
    for _ in range(turns):
        await asyncio.wait([asyncio.ensure_future(asyncio.Event().wait())], timeout=0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    answers = await planes[1].commits.commit_files(files)
    assert [bases(answer) for answer in answers] == [[0, 0], [2, 3]]
    assert await high_watermark(planes[0], A) == 4
