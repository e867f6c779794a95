"""Several claimants and leaders, commits, retention and the search for orphans at the same time.

On PostgreSQL each has connections of its own, as brokers have; a SQLite database belongs to one process.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest_asyncio

from strandline.controlplane import Refusal, RetentionRule, SqlControlPlane
from strandline.controlplane.conversion import SegmentCommit
from strandline.sql import open_store
from strandline.testing.clock import VirtualClock
from tests.controlplane.converting import (
    LATER,
    ME,
    RIVAL,
    assert_consistent,
    begin,
    claim,
    fill,
    keys,
    merge,
    record_of,
    split_all,
)
from tests.controlplane.making import TOPIC, A, B, C, HandSetClock, batch, commit, wal

LOGS = [A, B, C]


@pytest_asyncio.fixture
async def planes(database_url: str) -> AsyncIterator[list[SqlControlPlane]]:
    """Two control planes on one database. Their time stands still, after everything that `fill` commits."""
    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(open_store(database_url, deadline=30))]
        if not stores[0].is_exclusive:
            stores.append(await stack.enter_async_context(open_store(database_url, deadline=30)))
        first = SqlControlPlane(stores[0], clock=VirtualClock(), time=HandSetClock())
        await first.lifecycle.create_logs(LOGS)
        await fill(first, *LOGS, files=30)
        planes = [SqlControlPlane(store, clock=VirtualClock(), time=HandSetClock(LATER)) for store in stores]
        yield [planes[0], planes[-1]]


async def test_no_file_is_claimed_by_two(planes: list[SqlControlPlane]) -> None:
    async def take(number: int) -> list[str]:
        found: list[str] = []
        after = 0
        while len(found) < 8:
            claimed = await claim(planes[number % 2], f"claimant {number}", max_files=2, after_file_id=after)
            found += keys(claimed)
            after = claimed.next_file_id
            if after == 0:
                break
        return found

    taken = [key for keys in await asyncio.gather(*map(take, range(6))) for key in keys]
    assert max(Counter(taken).values()) == 1
    assert len(taken) == 30


async def test_split_files_of_two_claimants_count_once(planes: list[SqlControlPlane]) -> None:
    files = (await claim(planes[0])).files
    await planes[0].claims.release_wal_file_claims(ME, [file.object_key for file in files])  # as if they had expired

    async def record(number: int) -> int:
        plane, claimant = planes[number % 2], (ME, RIVAL)[number % 2]
        answers = [await plane.claims.record_splits(record_of(file, claimant)) for file in files]
        return sum(len(file.splits) - len(answer.refused) for file, answer in zip(files, answers, strict=True))

    assert sum(await asyncio.gather(*map(record, range(4)))) == 90
    await assert_consistent(planes[0])


async def test_an_attempt_that_is_repeated_while_it_runs_succeeds_twice(planes: list[SqlControlPlane]) -> None:
    for file in (await claim(planes[0], max_files=10)).files:
        request = record_of(file)
        answers = await asyncio.gather(*(plane.claims.record_splits(request) for plane in planes))
        assert [answer.refused for answer in answers] == [{}, {}]
        assert all(answer.files_done == request.object_keys for answer in answers)
    await assert_consistent(planes[0])


async def test_a_split_file_is_recorded_or_an_orphan(planes: list[SqlControlPlane]) -> None:
    recorded = 0
    for file in (await claim(planes[0])).files:
        request = record_of(file)
        objects = [split.file.object_key for split in request.splits]
        answer, taken = await asyncio.gather(
            planes[0].claims.record_splits(request), planes[1].files.take_orphans(objects, broker_id=1)
        )
        assert set(answer.refused) == set(taken)
        recorded += len(objects) - len(taken)
        await planes[0].claims.release_wal_file_claims(ME, [file.object_key])
    await assert_consistent(planes[0])
    await split_all(planes[1])
    await assert_consistent(planes[0])


async def test_splitting_beside_retention_deletion_and_commits(planes: list[SqlControlPlane]) -> None:
    async def split(plane: SqlControlPlane, claimant: str) -> None:
        for _ in range(3):
            await split_all(plane, claimant)

    async def trim() -> None:
        for offset in range(7, 300, 35):
            await planes[1].trimming.delete_records({A: offset})
            await planes[1].trimming.enforce_retention([RetentionRule(B, -1, 3000 - 10 * offset)], max_rows=10)

    async def write() -> None:
        for number in range(20):
            await commit(planes[0], f"more{number}", *(batch(log, 3) for log in LOGS))

    async def drop() -> None:
        await planes[1].lifecycle.delete_topics([C.topic_id])

    await asyncio.gather(split(planes[0], ME), split(planes[1], RIVAL), trim(), write(), drop())
    await assert_consistent(planes[0])


async def test_a_segment_is_committed_once_beside_commits_and_trimming(planes: list[SqlControlPlane]) -> None:
    await split_all(planes[0])

    async def convert() -> list[SegmentCommit]:
        answers: list[SegmentCommit] = []
        for base in range(0, 300, 50):
            upload = (await begin(planes[0], A, base, base + 49)).upload
            assert upload is not None
            await planes[1].uploads.finish_segment(A, upload.segment_id, leader_epoch=0)
            answers += await asyncio.gather(
                *(plane.uploads.commit_segment(A, upload.segment_id, leader_epoch=0) for plane in planes)
            )
        return answers

    async def write() -> None:
        for number in range(30):
            await planes[1].commits.commit_files([wal(f"more{number}", *(batch(log, 3) for log in LOGS))])

    async def trim() -> None:
        for offset in range(10, 200, 10):
            await planes[0].trimming.delete_records({A: min(offset, 40), B: offset})
            await planes[1].trimming.enforce_retention([RetentionRule(A, -1, -1)], max_rows=10)

    answers, *_ = await asyncio.gather(convert(), write(), trim())
    assert Counter(answer.refusal for answer in answers) == {None: 6, Refusal.UNKNOWN_UPLOAD: 6}
    log = (await planes[0].reads.logs([A]))[A]
    assert (log.log_start_offset, log.diskless_start_offset, log.high_watermark) == (40, 300, 390)
    await assert_consistent(planes[0])


async def test_commits_do_not_wait_for_the_rows_of_a_segment(planes: list[SqlControlPlane]) -> None:
    """A claimant holds rows of the log, as a long deletion does: commits and the boundary go on."""
    await split_all(planes[0])
    if planes[0] is planes[1] or planes[0].store is planes[1].store:
        return  # SQLite has one writer at a time: there the pages are small
    upload = (await begin(planes[0], A, 0, 299)).upload
    assert upload is not None
    await planes[0].uploads.finish_segment(A, upload.segment_id, leader_epoch=0)
    async with planes[1].store.transaction() as tx:
        await tx.execute("SELECT 1 FROM inkless_batch WHERE file_id < 20 FOR UPDATE")
        committing = asyncio.ensure_future(planes[0].uploads.commit_segment(A, upload.segment_id, leader_epoch=0))
        async with asyncio.timeout(10):
            while (await planes[1].reads.logs([A]))[A].diskless_start_offset == 0:
                pass
            await commit(planes[1], "beside", batch(A, 1))
        assert not committing.done()
    assert (await committing).rows_deleted == 30
    await assert_consistent(planes[0])


async def test_two_drivers_convert_everything(planes: list[SqlControlPlane]) -> None:
    async def drive(plane: SqlControlPlane, claimant: str) -> None:
        await split_all(plane, claimant)

    await asyncio.gather(drive(planes[0], ME), drive(planes[1], RIVAL))
    await split_all(planes[0])
    for log in await planes[0].merging.mergeable_splits([TOPIC], max_splits=100):
        assert (log.splits[0].file.base_offset, log.splits[-1].file.last_offset) == (0, 299)
        await merge(planes[0], log.log.partition, 0, 299)
    await assert_consistent(planes[0])
