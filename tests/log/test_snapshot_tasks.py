"""The snapshots of very many producers are written in the background, by a task for each log."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from strandline.clock import SystemChance
from strandline.config.log import LogSettings
from strandline.config.topic import TopicConfig
from strandline.log import LogManager, UnifiedLog, snapshot_writing
from strandline.log.files import write_pieces
from strandline.log.producer_snapshot import SnapshotEncoding, parse_snapshot
from strandline.model import TopicPartition
from strandline.tasks import next_turn
from strandline.testing.clock import VirtualClock
from tests.log.crowds import give_producers, path_of, pending_in
from tests.log.harness import NOW, batch
from tests.log.test_manager import until

SIZE = len(batch())
CROWDED, OTHER = TopicPartition("crowded", 0), TopicPartition("other", 0)


class World:
    """A log with very many producers, and another one without any."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = VirtualClock(NOW)
        settings = LogSettings(log_dirs=(str(root / "a"), str(root / "b")))
        self.manager = LogManager(
            settings, node_id=1, clock=self.clock, chance=SystemChance(1), checkpoint_interval_ms=60_000
        )
        self.manager.load(lambda _: TopicConfig())
        self.housekeeping = self.manager.housekeeping
        self.crowded = self.crowd(CROWDED)
        config = TopicConfig(internal_segment_bytes=2 * SIZE, flush_ms=10_000, retention_ms=100_000)
        self.other = self.manager.get_or_create(OTHER, None, config)

    def crowd(self, partition: TopicPartition) -> UnifiedLog:
        log = self.manager.get_or_create(partition, None, TopicConfig(retention_ms=1000))
        give_producers(log)
        self.append(log, producer_id=1000, sequence=5)
        return log

    def append(self, log: UnifiedLog, *, producer_id: int = -1, sequence: int = -1) -> None:
        log.append(batch(producer_id=producer_id, sequence=sequence), leader_epoch=0)
        log.update_high_watermark(log.log_end_offset)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.Task[None]]:
        task = asyncio.create_task(self.manager.run())
        await self.clock.settle()
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.wait([task])


def snapshot_tasks() -> list[asyncio.Task[object]]:
    return [task for task in asyncio.all_tasks() if task.get_name().startswith("producer snapshots of ")]


async def all_written() -> None:
    while tasks := snapshot_tasks():
        await asyncio.gather(*tasks)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.manager.shutdown()


@pytest.fixture
def slow_disk(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A disk that writes no snapshot before the event is set."""
    goes_on = threading.Event()

    def write(path: str, pieces: Iterable[bytes], *, sync: bool = False) -> None:
        goes_on.wait()
        write_pieces(path, pieces, sync=sync)

    monkeypatch.setattr(snapshot_writing, "write_pieces", write)
    yield goes_on
    goes_on.set()


class TestOneLog:
    async def test_a_roll_is_followed_by_the_snapshot_and_the_next_flush_forces_it(self, world: World) -> None:
        log = world.crowded
        log.roll()
        await world.housekeeping.flush_rolled()
        await all_written()
        assert (log.producers.snapshots, log.flusher.recovery_point) == ([0, 1], 1)
        plan = log.flusher.plan(2)
        assert str(path_of(log, 1)) in plan._paths

    async def test_segments_are_flushed_up_to_the_oldest_snapshot_that_is_pending(
        self, world: World, slow_disk: threading.Event
    ) -> None:
        """A flush from there on forces the snapshot too. Then the next one is due."""
        log = world.crowded
        log.roll()
        world.append(log, producer_id=1000, sequence=6)
        log.roll()
        await world.housekeeping.flush_rolled()
        assert pending_in(log) == [1, 2]
        assert log.flusher.recovery_point == 1
        slow_disk.set()
        await all_written()
        assert log.flusher.recovery_point == 2

    async def test_flush_ms_goes_on_while_its_snapshots_are_written(
        self, world: World, slow_disk: threading.Event
    ) -> None:
        log = world.crowded
        log.update_config(TopicConfig(flush_ms=10_000))
        log.roll()
        await world.housekeeping.flush_rolled()
        for seconds in (6, 4):
            world.clock.move(seconds)
            world.append(log)
            log.roll()
            await world.housekeeping.flush_rolled()
            await world.housekeeping.flush_due()
        assert log.flusher.recovery_point == log.log_end_offset

    async def test_retention_rolls_and_deletes_when_the_snapshot_is_written(self, world: World) -> None:
        log = world.crowded
        world.clock.move(2)
        await world.housekeeping.delete_old_segments()
        await all_written()
        assert (log.log_start_offset, log.segments.bases, log.producers.snapshots) == (1, [1], [1])
        assert parse_snapshot(path_of(log, 1).read_bytes())

    async def test_a_log_that_is_deleted_meanwhile_harms_nobody(self, world: World) -> None:
        world.crowded.roll()
        await world.housekeeping.flush_rolled()
        await next_turn()
        world.manager.delete(CROWDED)
        await all_written()
        assert not world.manager.offline_directories

    async def test_a_disk_that_fails_takes_its_directory_offline(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(snapshot_writing, "write_pieces", full)
        async with world.running() as task:
            world.crowded.roll()
            await until(world.clock, lambda: world.crowded.is_offline, 0)
            assert not world.other.is_offline
            assert not task.done()


class TestOthers:
    async def test_a_log_whose_snapshot_takes_long_holds_up_no_other(
        self, world: World, slow_disk: threading.Event
    ) -> None:
        other, crowded = world.other, world.crowded
        async with world.running():
            crowded.roll()
            await until(world.clock, lambda: crowded.flusher.recovery_point == 1, 0)
            for _ in range(3):
                world.append(other)
            await until(world.clock, lambda: other.flusher.recovery_point == 2, 0)
            await until(world.clock, lambda: other.flusher.recovery_point == 3, 10)
            await until(world.clock, (world.root / "b" / "replication-offset-checkpoint").exists, 60)
            await until(world.clock, lambda: other.log_start_offset == 3, 400)
            assert pending_in(crowded)[0] == 1
            assert crowded.log_start_offset == 0
            slow_disk.set()
            await until(world.clock, lambda: crowded.log_start_offset == 1, 0)

    async def test_only_one_of_many_takes_a_step_in_a_turn(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        turn, steps = 0, list[int]()
        encode = SnapshotEncoding.encode

        def counted(encoding: SnapshotEncoding, limit: int) -> None:
            steps.append(turn)
            encode(encoding, limit)

        async def count_turns() -> None:
            nonlocal turn
            while True:
                turn += 1
                await next_turn()

        monkeypatch.setattr(SnapshotEncoding, "encode", counted)
        logs = [world.crowded, *(world.crowd(TopicPartition("crowded", number)) for number in range(1, 5))]
        for log in logs:
            log.roll()
        counting = asyncio.create_task(count_turns())
        steps.clear()
        await world.housekeeping.flush_rolled()
        await all_written()
        counting.cancel()
        assert all(log.producers.snapshots == [0, 1] for log in logs)
        assert len(steps) > 20
        assert len(set(steps)) == len(steps)


class TestLife:
    async def test_there_is_one_task_for_a_log_and_it_ends_with_housekeeping(
        self, world: World, slow_disk: threading.Event
    ) -> None:
        log = world.crowded
        async with world.running():
            for number in range(6, 10):
                log.roll()
                await world.clock.settle()
                world.append(log, producer_id=1000, sequence=number)
                assert len(snapshot_tasks()) == 1
            slow_disk.set()
            await until(world.clock, lambda: not snapshot_tasks(), 0)
            log.roll()
            await until(world.clock, lambda: len(snapshot_tasks()) == 1, 0)
        assert snapshot_tasks() == []

    async def test_an_error_that_is_not_the_disks_ends_housekeeping(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: object) -> None:
            raise RuntimeError("a bug")

        monkeypatch.setattr(SnapshotEncoding, "encode", broken)
        async with world.running() as task:
            world.crowded.roll()
            with pytest.raises(RuntimeError, match="a bug"):
                await task
        monkeypatch.undo()
