"""A control plane on SQLite with so many rows of batches, in 256 logs and files of 64 rows. CPU of this process."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import uvloop

from bench.controlplane_load import FIRST_TIMESTAMP, PARTITIONS, RECORDS_PER_ROW, ROW_BYTES, TOPIC_ID, loaded_plane
from bench.growing.counting_store import CountingStore
from bench.growing.measuring import Growth, Measured
from strandline.controlplane import BatchToCommit, FileToCommit, FindBatches, RetentionRule, SqlControlPlane
from strandline.controlplane.conversion.values import ClaimWish, TieringRule
from strandline.records import TimestampType

_ONE: Final = PARTITIONS[0]
_TIMES: Final = 50
_PAGE: Final = 500
_KEEP: Final = 1 << 60

_COMMIT = Growth("commit a file with a batch of one log", "CPU ms", 0)
_STATEMENTS = Growth("the same", "statements", 0)
_FIND_OLD = Growth("find the oldest batch of a log", "CPU ms", 0)
_FIND_NEW = Growth("find the newest batch of a log", "CPU ms", 0)
_BY_TIME = Growth("search a log by time", "CPU ms", 0)
_NOTHING = Growth("retention over all logs, nothing expires", "CPU ms", 0)
_STATUS = Growth("status of the tiering pipeline", "CPU ms")
_CLAIM = Growth("claim 10 files to split, all are old enough", "CPU ms", 0)
_EXPIRE = Growth("retention deletes half of all rows", "CPU ms")
_DELETE = Growth("delete the topic with the other half", "CPU ms")
_FILES = Growth("forget the files of all rows", "CPU ms")


def measure(root: Path, size: int) -> Measured:
    """With `size` rows."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_measure(root / f"rows-{size}.db", size))


async def _measure(path: Path, size: int) -> Measured:
    async with loaded_plane(f"sqlite:///{path}", size) as loaded:
        store = CountingStore(loaded.store)
        plane = SqlControlPlane(store)
        found = await _small(plane, store, size)
        return {**found, **await _large(plane, size)}


async def _small(plane: SqlControlPlane, store: CountingStore, size: int) -> Measured:
    numbers = itertools.count()
    end = size // len(PARTITIONS) * RECORDS_PER_ROW
    keep = [RetentionRule(partition, _KEEP, _KEEP) for partition in PARTITIONS]
    wish = ClaimWish(claimant="growth", max_files=10, max_rows=10_000, claim_ms=60_000)

    async def commit() -> None:
        file = _file(next(numbers))
        await plane.commits.commit_files([file])

    async def claim() -> None:
        claimed = await plane.claims.claim_wal_files_for_splitting(wish, [TieringRule(TOPIC_ID, 0)])
        await plane.claims.release_wal_file_claims("growth", [one.object_key for one in claimed.files])

    async def find(offset: int) -> None:
        found = await plane.reads.find_batches([FindBatches(_ONE, offset, ROW_BYTES)], max_rows=10)
        assert found[0].rows

    await commit()
    before = store.statements
    await commit()
    statements = store.statements - before
    return {
        _COMMIT: await _each(commit),
        _STATEMENTS: statements,
        _FIND_OLD: await _each(lambda: find(0)),
        _FIND_NEW: await _each(lambda: find(end - 1)),
        _BY_TIME: await _each(lambda: plane.reads.first_row_at_time(_ONE, FIRST_TIMESTAMP + size // 2)),
        _NOTHING: await _each(lambda: plane.trimming.enforce_retention(keep, max_rows=_PAGE), 5),
        _STATUS: await _each(lambda: plane.wishes.tiering_progress([TieringRule(TOPIC_ID, 0)]), 5),
        _CLAIM: await _each(claim, 5),
    }


async def _large(plane: SqlControlPlane, size: int) -> Measured:
    half = [RetentionRule(partition, -1, size // len(PARTITIONS) * ROW_BYTES // 2) for partition in PARTITIONS]

    async def expire() -> None:
        rules = half
        while rules:  # as the enforcer does: logs with nothing left are not asked about again
            answers = await plane.trimming.enforce_retention(rules, max_rows=_PAGE)
            rules = [rule for rule, trimmed in zip(rules, answers, strict=True) if trimmed.rows_deleted]

    async def forget() -> None:
        while files := await plane.files.files_to_delete(marked_for_ms=0, limit=_PAGE):
            await plane.files.forget_files([file.file_id for file in files])

    return {
        _EXPIRE: await _each(expire, 1),
        _DELETE: await _each(lambda: plane.lifecycle.delete_topics([TOPIC_ID]), 1),
        _FILES: await _each(forget, 1),
    }


def _file(number: int) -> FileToCommit:
    batch = BatchToCommit(
        _ONE, 0, ROW_BYTES, RECORDS_PER_ROW, FIRST_TIMESTAMP, TimestampType.CREATE_TIME, 0, -1, -1, -1
    )
    return FileToCommit(object_key=f"wal/growth/{number}", size=ROW_BYTES, broker_id=1, batches=(batch,))


async def _each(call: Callable[[], Awaitable[object]], times: int = _TIMES) -> float:
    """CPU ms of one call."""
    before = time.process_time()
    for _ in range(times):
        await call()
    return (time.process_time() - before) / times * 1e3
