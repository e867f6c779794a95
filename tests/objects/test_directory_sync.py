"""Who may ride on which flush of a directory."""

from __future__ import annotations

import asyncio

import pytest

from strandline.objects.directory_sync import DirectorySync


class Flushes:
    """Flushes that a test finishes one by one."""

    def __init__(self) -> None:
        self.running: list[tuple[str, asyncio.Future[None]]] = []
        self.begun = 0

    async def flush(self, directory: str) -> None:
        self.begun += 1
        entry = (directory, asyncio.get_running_loop().create_future())
        self.running.append(entry)
        try:
            await entry[1]
        finally:
            self.running.remove(entry)

    def finish(self, error: OSError | None = None) -> None:
        future = self.running[0][1]
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)  # noqa: TID251 (turns of the loop, no time)


async def test_who_comes_during_a_flush_waits_for_the_next_one() -> None:
    flushes = Flushes()
    sync = DirectorySync(flushes.flush)
    first = asyncio.create_task(sync.wait_durable("d"))
    await turns()
    late = [asyncio.create_task(sync.wait_durable("d")) for _ in range(5)]
    await turns()
    assert flushes.begun == 1
    flushes.finish()
    await turns()
    assert first.done()
    assert not any(task.done() for task in late)
    assert flushes.begun == 2
    later = asyncio.create_task(sync.wait_durable("d"))
    await turns()
    flushes.finish()
    await turns()
    assert all(task.done() for task in late)
    assert not later.done()
    flushes.finish()
    await later
    assert flushes.begun == 3


async def test_directories_do_not_wait_for_each_other() -> None:
    flushes = Flushes()
    sync = DirectorySync(flushes.flush)
    waiting = [asyncio.create_task(sync.wait_durable(name)) for name in ("a", "b")]
    await turns()
    assert sorted(name for name, _ in flushes.running) == ["a", "b"]
    for _, future in flushes.running:
        future.set_result(None)
    await asyncio.gather(*waiting)


async def test_an_error_reaches_everyone_who_waits_for_that_flush_and_nobody_else() -> None:
    flushes = Flushes()
    sync = DirectorySync(flushes.flush)
    first = asyncio.create_task(sync.wait_durable("d"))
    await turns()
    late = [asyncio.create_task(sync.wait_durable("d")) for _ in range(2)]
    await turns()
    flushes.finish(OSError("broken"))
    await turns()
    with pytest.raises(OSError, match="broken"):
        await first
    flushes.finish()
    await asyncio.gather(*late)
