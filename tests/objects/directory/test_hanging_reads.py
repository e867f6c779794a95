"""Files that hang: they hold up their own readers, and not those of other files."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.clock import SystemIds
from strandline.objects.directory import DirectoryStore, files
from strandline.objects.store import ObjectRange, ObjectStoreUnavailable
from strandline.testing.clock import VirtualClock

THREADS = 2
HANGING = "wal/1/hanging"
OTHER = "wal/1/other"


class Disk:
    """Reads of one file do not return before `goes_on` is set."""

    def __init__(self) -> None:
        self.is_reading = threading.Semaphore(0)
        self.goes_on = threading.Event()
        self._read = files.read_range

    def read_range(self, path: str, start: int, length: int | None) -> bytes:
        if path.endswith(HANGING):
            self.is_reading.release()
            self.goes_on.wait()
        return self._read(path, start, length)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest_asyncio.fixture
async def store(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[DirectoryStore]:
    store = DirectoryStore(str(tmp_path), clock=clock, ids=SystemIds(), threads=THREADS)
    await store.open()
    for key in (HANGING, OTHER):
        await store.put(key, [b"some bytes"])
    yield store
    await store.close()


@pytest.fixture
def disk(store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(files, "read_range", disk.read_range)
    return disk


@pytest.mark.parametrize("is_list", [True, False])
async def test_a_file_that_hangs_takes_one_thread_however_often_it_is_read(
    store: DirectoryStore, disk: Disk, clock: VirtualClock, is_list: bool
) -> None:
    ranges = [ObjectRange(OTHER, 0, 4), ObjectRange(HANGING, 0, 4)]
    first = asyncio.ensure_future(store.get_ranges(ranges) if is_list else store.get_range(HANGING, 0, 4))
    await asyncio.to_thread(disk.is_reading.acquire)
    clock.move(2)
    first.cancel()
    await asyncio.wait([first])
    try:
        async with asyncio.timeout(20):
            for _ in range(THREADS):
                with pytest.raises(ObjectStoreUnavailable, match="earlier read"):
                    await store.get_range(HANGING, 0, 4)
                data, error = await store.get_ranges(ranges)
                assert data == b"some"
                assert isinstance(error, ObjectStoreUnavailable)
            assert await store.get(OTHER) == b"some bytes"
    finally:
        disk.goes_on.set()


async def test_a_file_that_goes_on_is_read_again(store: DirectoryStore, disk: Disk, clock: VirtualClock) -> None:
    first = asyncio.ensure_future(store.get(HANGING))
    await asyncio.to_thread(disk.is_reading.acquire)
    clock.move(2)
    first.cancel()
    await asyncio.wait([first])
    disk.goes_on.set()
    async with asyncio.timeout(20):
        while True:
            try:
                assert await store.get(HANGING) == b"some bytes"
                return
            except ObjectStoreUnavailable:
                await asyncio.to_thread(lambda: None)  # its thread has not returned yet


async def test_a_read_that_was_given_up_soon_holds_up_nobody(store: DirectoryStore, disk: Disk) -> None:
    first = asyncio.ensure_future(store.get(HANGING))
    await asyncio.to_thread(disk.is_reading.acquire)
    first.cancel()
    await asyncio.wait([first])
    second = asyncio.ensure_future(store.get(HANGING))
    await asyncio.to_thread(disk.is_reading.acquire)
    disk.goes_on.set()
    assert await second == b"some bytes"


async def test_the_store_closes_although_a_read_hangs(
    store: DirectoryStore, disk: Disk, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    reading = asyncio.ensure_future(store.get(HANGING))
    await asyncio.to_thread(disk.is_reading.acquire)
    try:
        closing = asyncio.ensure_future(store.close())
        await clock.advance(60)
        async with asyncio.timeout(20):
            await closing
    finally:
        disk.goes_on.set()
    assert "does not wait for them" in caplog.text
    assert await reading == b"some bytes"
