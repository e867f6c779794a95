"""The cleaner's loop, and what happens when a log changes while it is being cleaned."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from strandline.config.log import LogSettings
from strandline.errors import CorruptMessage
from strandline.log.cleaning.cleaner import LogCleaner
from strandline.log.cleaning.requests import CleaningStopped, GroupRequest, GroupResult
from strandline.log.cleaning.worker import clean_group
from tests.log.cleaning.support import CompactedLog, InlineWorker


class ProddedWorker(InlineWorker):
    """Does something else before or after each group."""

    def __init__(self, before: Callable[[], Any] | None = None, after: Callable[[], Any] | None = None) -> None:
        super().__init__()
        self._before = before
        self._after = after

    async def clean_group(self, request: GroupRequest) -> GroupResult:
        if self._before is not None:
            self._before()
        result = await super().clean_group(request)
        if self._after is not None:
            self._after()
        return result


@pytest.fixture
def log(tmp_path: Path) -> CompactedLog:
    return CompactedLog(tmp_path / "data")


def fill(log: CompactedLog) -> None:
    log.produce((b"a", b"1"), (b"a", b"2"))
    log.roll()


def cleaner_of(log: CompactedLog, worker: InlineWorker, **settings: Any) -> LogCleaner:
    return LogCleaner(LogSettings(**settings), lambda: [log.log], log.clock, worker)


@asynccontextmanager
async def running(cleaner: LogCleaner, log: CompactedLog) -> AsyncIterator[None]:
    task = asyncio.create_task(cleaner.run())
    await settled(log)
    yield
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def settled(log: CompactedLog) -> None:
    """Everything that needs no time has happened, as far as this thread can tell."""
    for _ in range(5):
        await log.clock.settle()
        await asyncio.to_thread(lambda: None)


async def until(log: CompactedLog, condition: Callable[[], bool]) -> None:
    """Wait for work in other threads, for as long as the test may take."""
    while not condition():
        await log.clock.settle()
        await asyncio.to_thread(lambda: None)


async def test_the_loop_rests_between_rounds(log: CompactedLog) -> None:
    worker = InlineWorker()
    cleaner = cleaner_of(log, worker, log_cleaner_backoff_ms=15_000)
    async with running(cleaner, log):
        fill(log)
        await log.clock.advance(14)
        assert len(log.records()) == 2
        await log.clock.advance(2)
        await until(log, lambda: len(log.records()) == 1)
        fill(log)
        cleaner.wake()
        await until(log, lambda: len(log.records()) == 1)
        await until(log, lambda: worker.closed >= 2)  # no process stays behind between rounds


async def test_a_cleaner_that_is_switched_off_does_nothing(log: CompactedLog) -> None:
    fill(log)
    cleaner = cleaner_of(log, InlineWorker(), log_cleaner_enable=False)
    async with running(cleaner, log):
        assert len(log.records()) == 2
        cleaner.update_settings(LogSettings())
        cleaner.wake()
        await until(log, lambda: len(log.records()) == 1)


async def test_a_pass_that_fails_is_tried_again_in_the_next_round(log: CompactedLog) -> None:
    fill(log)
    failures = [OSError(28, "No space left on device")]

    def fail_once() -> None:
        if failures:
            raise failures.pop()

    cleaner = cleaner_of(log, ProddedWorker(before=fail_once))
    async with running(cleaner, log):
        assert len(log.records()) == 2
        assert cleaner.status().passes == 0
        await log.clock.advance(16)
        await settled(log)
        assert len(log.records()) == 1


async def test_a_mistake_in_one_log_leaves_that_log_alone_and_the_cleaner_alive(log: CompactedLog) -> None:
    fill(log)

    def stumble() -> None:
        raise ZeroDivisionError

    cleaner = cleaner_of(log, ProddedWorker(before=stumble))
    async with running(cleaner, log):
        assert cleaner.status().is_running
        assert cleaner.status().uncleanable == {log.log.topic_partition}
        assert len(log.records()) == 2


async def test_a_segment_that_retention_deleted_meanwhile_is_not_brought_back(log: CompactedLog) -> None:
    fill(log)
    log.produce((b"b", b"1"))

    def delete() -> None:
        log.log.delete_records(2)
        log.log.retention.delete_old_segments(log.clock.now_ms())

    report = await cleaner_of(log, ProddedWorker(after=delete)).clean_once()
    assert report is not None
    assert not report.is_complete
    assert log.offsets() == [2]
    assert not log.files_ending_in(".cleaned")


async def test_t8_records_that_were_cut_off_meanwhile_do_not_come_back(log: CompactedLog) -> None:
    """The segment is the same one before and after the cut, and is as long again when another leader's records come."""
    log.produce((b"a", b"1"))
    log.produce((b"a", b"2"))
    log.roll()
    log.produce((b"b", b"1"))

    def follow_another_leader() -> None:
        log.log.truncate_to(1)
        log.produce((b"a", b"3"))
        log.roll()

    report = await cleaner_of(log, ProddedWorker(after=follow_another_leader)).clean_once()
    assert report is not None
    assert not report.is_complete
    assert log.pairs() == [(b"a", b"1"), (b"a", b"3")]
    assert not log.files_ending_in(".cleaned")
    assert await cleaner_of(log, InlineWorker()).clean_once() is not None
    assert log.pairs() == [(b"a", b"3")]


async def test_t8_a_log_that_is_cut_while_it_is_read_is_cleaned_later(log: CompactedLog) -> None:
    fill(log)
    log.produce((b"b", b"1"))

    def cut() -> None:
        log.log.truncate_to(0)
        raise CorruptMessage("The end of a batch is missing.")

    cleaner = cleaner_of(log, ProddedWorker(before=cut))
    report = await cleaner.clean_once()
    assert report is not None
    assert not report.is_complete
    assert not cleaner.status().uncleanable


async def test_a_log_that_was_closed_meanwhile_is_left_alone(log: CompactedLog) -> None:
    fill(log)
    before = log.records()
    report = await cleaner_of(log, ProddedWorker(after=lambda: log.log.abandon())).clean_once()
    assert report is not None
    assert not report.is_complete
    assert log.records() == before


async def test_records_written_during_a_pass_are_kept(log: CompactedLog) -> None:
    fill(log)
    cleaner = cleaner_of(log, ProddedWorker(before=lambda: log.produce((b"a", b"3"))))
    assert await cleaner.clean_once() is not None
    assert log.pairs() == [(b"a", b"2"), (b"a", b"3")]


async def test_a_truncated_log_is_dirty_from_there_on(log: CompactedLog) -> None:
    cleaner = cleaner_of(log, InlineWorker())
    fill(log)
    log.produce((b"b", b"1"))
    log.roll()
    assert await cleaner.clean_once() is not None
    log.log.truncate_to(2)
    cleaner.note_truncation(log.log, 2)
    cleaner.note_truncation(log.log, 9)
    fill(log)
    report = await cleaner.clean_once()
    assert report is not None
    assert report.first_dirty == 2
    assert log.offsets() == [3]


def test_a_worker_without_the_map_refuses_to_clean(tmp_path: Path, log: CompactedLog) -> None:
    request = GroupRequest(
        token=-1,
        directory=str(tmp_path),
        sources=(),
        rules=None,  # type: ignore[arg-type]
        index_interval_bytes=1,
        max_bytes_per_second=1.0,
    )
    with pytest.raises(CleaningStopped, match="map"):
        clean_group(request)
