"""The contract of the control plane: moments that one broker writes and another judges are the database's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest_asyncio

from strandline.clock import SystemClock
from strandline.controlplane import RetentionRule, SqlControlPlane, Trimmed
from strandline.model import TimestampMs
from strandline.records import TimestampType
from strandline.sql import open_store
from tests.controlplane.making import LOGS, A, B, C, HandSetClock, batch, commit, rows_of
from tests.postgres import start_postgres

HOUR_MS = 3_600_000
APPEND_TIME = TimestampType.LOG_APPEND_TIME


class WrongClock(SystemClock):
    """The clock of a machine that is set wrong."""

    def __init__(self, off_by_ms: int) -> None:
        self._off_by_ms = off_by_ms

    def now_ms(self) -> TimestampMs:
        return super().now_ms() + self._off_by_ms


@pytest_asyncio.fixture
async def brokers() -> AsyncIterator[tuple[SqlControlPlane, SqlControlPlane]]:
    """The control planes of a broker whose clock is an hour fast, and of one whose clock is an hour slow."""
    url = start_postgres().new_database()
    async with AsyncExitStack() as stack:
        fast, slow = [
            SqlControlPlane(await stack.enter_async_context(open_store(url)), clock=WrongClock(off_by))
            for off_by in (HOUR_MS, -HOUR_MS)
        ]
        await fast.lifecycle.create_logs(LOGS)
        yield fast, slow


async def test_log_append_time_is_the_databases_on_every_broker(
    brokers: tuple[SqlControlPlane, SqlControlPlane],
) -> None:
    fast, slow = brokers
    times = [await slow.files.now_ms()]
    for number, plane in enumerate((fast, slow, fast)):
        (answer,) = await commit(plane, f"f{number}", batch(A, timestamp_type=APPEND_TIME))
        times.append(answer.log_append_time_ms)
    times.append(await fast.files.now_ms())
    assert times == sorted(times)
    rows = await rows_of(slow, A)
    assert [row.log_append_time_ms for row in rows] == times[1:-1]
    assert [row.max_timestamp for row in rows] == times[1:-1]


async def test_nothing_is_too_old_too_early(brokers: tuple[SqlControlPlane, SqlControlPlane]) -> None:
    """Half an hour is not over, whichever broker wrote, and whichever looks."""
    half = HOUR_MS // 2
    for writer, judge in (brokers, brokers[::-1]):
        name = "fast" if writer is brokers[0] else "slow"
        now = await judge.files.now_ms()
        appended = batch(A, timestamp_type=APPEND_TIME, producer=(7, 0, 0))
        await commit(writer, name, appended, batch(B, timestamp=now), batch(C, timestamp=-1))
        await writer.files.take_orphans([f"orphan-{name}"], broker_id=1)
        rules = [RetentionRule(partition, half, -1) for partition in LOGS]
        assert {answer.rows_deleted for answer in await judge.trimming.enforce_retention(rules, max_rows=10)} == {0}
        assert await judge.producers.expire_producers(silent_ms=half, limit=10) == 0
        await writer.trimming.delete_records(dict.fromkeys(LOGS, -1))
        assert await judge.files.files_to_delete(marked_for_ms=half, limit=10) == []
        marked = await judge.files.files_to_delete(marked_for_ms=0, limit=10)
        assert {file.object_key for file in marked} == {name, f"orphan-{name}"}
        await judge.files.forget_files([file.file_id for file in marked])
        assert await judge.producers.expire_producers(silent_ms=-1, limit=10) == 1


async def test_nothing_is_kept_for_too_long(brokers: tuple[SqlControlPlane, SqlControlPlane]) -> None:
    for writer, judge in (brokers, brokers[::-1]):
        name = "fast" if writer is brokers[0] else "slow"
        await commit(writer, name, batch(A, timestamp_type=APPEND_TIME, producer=(7, 0, 0)), batch(B, timestamp=-1))
        before = await judge.files.now_ms()
        while await judge.files.now_ms() <= before:
            pass
        rules = [RetentionRule(partition, 0, -1) for partition in (A, B)]
        assert [answer.rows_deleted for answer in await judge.trimming.enforce_retention(rules, max_rows=10)] == [1, 1]
        assert await judge.producers.expire_producers(silent_ms=0, limit=10) == 1
        assert [file.object_key for file in await judge.files.files_to_delete(marked_for_ms=0, limit=10)] == [name]
        await judge.files.forget_files(
            [file.file_id for file in await judge.files.files_to_delete(marked_for_ms=0, limit=10)]
        )


async def test_a_database_whose_clock_goes_back_stays_sound(plane: SqlControlPlane, time: HandSetClock) -> None:
    """As after a failover to a machine whose clock is behind."""
    for number, now in enumerate((10_000, 4_000, 11_000)):
        time.now = now
        (answer,) = await commit(plane, f"f{number}", batch(A, timestamp_type=APPEND_TIME, producer=(7, 0, number)))
        assert answer.log_append_time_ms == now
    assert [row.log_append_time_ms for row in await rows_of(plane, A)] == [10_000, 4_000, 11_000]
    newest, later = await plane.reads.row_of_max_timestamp(A), await plane.reads.first_row_at_time(A, 10_001)
    assert newest is not None
    assert later is not None
    assert (newest.base_offset, later.base_offset) == (2, 2)
    rule = [RetentionRule(A, 3_000, -1)]
    time.now = 8_000  # the second row is too old, but no row goes before those in front of it
    assert await plane.trimming.enforce_retention(rule, max_rows=10) == [Trimmed(None, 0)]
    time.now = 13_500
    assert await plane.trimming.enforce_retention(rule, max_rows=10) == [Trimmed(None, 2, 2, 200)]
