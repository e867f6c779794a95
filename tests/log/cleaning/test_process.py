"""The real worker process: it works, it stops when told, and it never outlives its broker."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from strandline.clock import SystemClock
from strandline.config.log import LogSettings
from strandline.log.cleaning.cleaner import LogCleaner
from strandline.log.cleaning.process import ProcessWorker
from strandline.log.cleaning.requests import MapRequest, MapResult
from tests.log.cleaning.support import CompactedLog

PATIENCE_S = 30.0


@pytest.fixture
def log(tmp_path: Path) -> CompactedLog:
    log = CompactedLog(tmp_path / "data")
    for i in range(20):
        log.produce((b"a", b"%d" % i), (b"b", b"%d" % i))
    log.roll()
    return log


class NoticedWorker(ProcessWorker):
    """Tells when it is asked to work."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def build_map(self, request: MapRequest) -> MapResult:
        self.asked.set()
        return await super().build_map(request)

    async def start(self) -> None:
        """Let the process be there before there is work."""
        await super().build_map(
            MapRequest(token=0, sources=(), start_offset=0, aborted=(), budget_bytes=1, max_bytes_per_second=1.0)
        )


@pytest.fixture
async def worker() -> AsyncIterator[NoticedWorker]:
    worker = NoticedWorker()
    yield worker
    await worker.close()
    assert not multiprocessing.active_children()


def cleaner_of(log: CompactedLog, worker: ProcessWorker, **settings: Any) -> LogCleaner:
    return LogCleaner(LogSettings(**settings), lambda: [log.log], SystemClock(), worker)


async def test_a_pass_in_the_worker_process(log: CompactedLog, worker: NoticedWorker) -> None:
    report = await cleaner_of(log, worker).clean_once()
    assert report is not None
    assert report.is_complete
    assert log.pairs() == [(b"a", b"19"), (b"b", b"19")]
    assert len(multiprocessing.active_children()) == 1
    await worker.close()
    assert not multiprocessing.active_children()


async def test_closing_a_worker_that_never_worked(worker: NoticedWorker) -> None:
    await worker.close()


async def test_a_cancelled_cleaner_stops_in_the_middle_of_its_work(log: CompactedLog, worker: NoticedWorker) -> None:
    before = log.records()
    # At one byte per second this pass would take half an hour.
    cleaner = cleaner_of(log, worker, log_cleaner_io_max_bytes_per_second=1.0)
    await worker.start()
    task = asyncio.create_task(cleaner.run())
    async with asyncio.timeout(PATIENCE_S):
        await worker.asked.wait()
        assert cleaner.status().is_running
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not cleaner.status().is_running
    assert not multiprocessing.active_children()
    assert log.records() == before


async def test_a_worker_that_dies_is_replaced(log: CompactedLog, worker: NoticedWorker) -> None:
    slow = cleaner_of(log, worker, log_cleaner_io_max_bytes_per_second=1.0)
    await worker.start()
    task = asyncio.create_task(slow.clean_once())
    async with asyncio.timeout(PATIENCE_S):
        await worker.asked.wait()
        child = multiprocessing.active_children()[0]
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        report = await task
    assert report is not None
    assert not report.is_complete
    assert slow.status().uncleanable == frozenset()
    report = await cleaner_of(log, worker).clean_once()
    assert report is not None
    assert report.is_complete
    assert log.pairs() == [(b"a", b"19"), (b"b", b"19")]


PARENT = """
import asyncio, multiprocessing, signal, sys
from strandline.log.cleaning.process import ProcessWorker
from strandline.log.cleaning.requests import MapRequest

async def main():
    worker = ProcessWorker()
    request = MapRequest(token=1, sources=(), start_offset=0, aborted=(), budget_bytes=1, max_bytes_per_second=1.0)
    await worker.build_map(request)
    print(multiprocessing.active_children()[0].pid, flush=True)
    signal.pause()

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_the_worker_ends_with_a_broker_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as parent:
        assert parent.stdout is not None
        handle = os.pidfd_open(int(parent.stdout.readline()))
        try:
            parent.kill()
            readable, _, _ = select.select([handle], [], [], PATIENCE_S)
            assert readable, "the worker is still there"
        finally:
            os.close(handle)
