"""Which callers share which flush of a directory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait

import pytest

from strandline.objects.directory.sync import DirectorySync
from tests.waiting import wait_until


class Flushes:
    """Flushes that a test finishes one by one."""

    def __init__(self) -> None:
        self.running: list[tuple[str, Future[None]]] = []
        self.begun = 0

    def flush(self, directory: str) -> None:
        entry: tuple[str, Future[None]] = (directory, Future())
        self.running.append(entry)
        self.begun += 1
        try:
            entry[1].result()
        finally:
            self.running.remove(entry)

    def finish(self, error: OSError | None = None) -> None:
        future = self.running[0][1]
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)


class World:
    """A DirectorySync whose callers are threads."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self.flushes = Flushes()
        self.sync = DirectorySync(self.flushes.flush)
        self._threads = threads

    def first(self, directory: str) -> Future[None]:
        """A caller whose flush runs when this returns."""
        begun = self.flushes.begun
        waiting = self._threads.submit(self.sync.wait_durable, directory)
        wait_until(lambda: self.flushes.begun > begun)
        return waiting

    def late(self, directory: str, count: int) -> list[Future[None]]:
        """Callers that arrive while a flush runs; all have arrived when this returns."""
        ready = threading.Barrier(count + 1)

        def come() -> None:
            ready.wait()
            self.sync.wait_durable(directory)

        waiting = [self._threads.submit(come) for _ in range(count)]
        ready.wait()
        wait_until(lambda: self.sync.waiting(directory) == count)
        return waiting


@pytest.fixture
def world() -> Iterator[World]:
    with ThreadPoolExecutor(20) as threads:
        yield World(threads)


def test_a_caller_during_a_flush_waits_for_the_next_one(world: World) -> None:
    first = world.first("d")
    late = world.late("d", 5)
    assert world.flushes.begun == 1
    world.flushes.finish()
    first.result(10)
    wait_until(lambda: world.flushes.begun == 2)
    assert not any(caller.done() for caller in late)
    later = world.late("d", 1)
    world.flushes.finish()
    wait(late, 10)
    assert all(caller.done() for caller in late)
    assert not later[0].done()
    wait_until(lambda: world.flushes.begun == 3)
    world.flushes.finish()
    later[0].result(10)


def test_directories_do_not_wait_for_each_other(world: World) -> None:
    waiting = [world.first(name) for name in ("a", "b")]
    assert sorted(name for name, _ in world.flushes.running) == ["a", "b"]
    for _, future in [*world.flushes.running]:
        future.set_result(None)
    for caller in waiting:
        caller.result(10)


def test_an_error_reaches_all_callers_of_that_flush_and_no_others(world: World) -> None:
    first = world.first("d")
    second = world.late("d", 2)
    world.flushes.finish()
    first.result(10)
    wait_until(lambda: world.flushes.begun == 2)
    third = world.late("d", 2)
    world.flushes.finish(OSError("broken"))
    for caller in second:
        with pytest.raises(OSError, match="broken"):
            caller.result(10)
    wait_until(lambda: world.flushes.begun == 3)
    world.flushes.finish()
    for caller in third:
        caller.result(10)
