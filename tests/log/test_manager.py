"""All logs of a broker: start, stop, creation, deletion, strangers in the directory."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from strandline.clock import SystemChance
from strandline.config.log import LogSettings
from strandline.config.topic import TopicConfig
from strandline.errors import InconsistentClusterId, InvalidConfig, KafkaStorageError
from strandline.log import LogManager
from strandline.model import INT64_MAX, TopicPartition
from strandline.testing.clock import VirtualClock
from tests.log.harness import NOW, batch, offsets_in

SIZE = len(batch())
T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
TOPIC_ID = UUID(int=77)


def manager_of(
    *directories: Path, clock: VirtualClock | None = None, cluster: str | None = "c", node: int = 1
) -> LogManager:
    return LogManager(
        LogSettings(log_dirs=tuple(map(str, directories))),
        node_id=node,
        clock=clock or VirtualClock(NOW),
        chance=SystemChance(1),
        cluster_id=cluster,
    )


def loaded(*directories: Path, clock: VirtualClock | None = None, config: TopicConfig | None = None) -> LogManager:
    manager = manager_of(*directories, clock=clock)
    manager.load(lambda topic: config or TopicConfig())
    return manager


def doomed(directory: Path) -> list[str]:
    """Partition directories that wait for their removal."""
    return [path.name for path in directory.glob("*-delete")]


async def until(clock: VirtualClock, is_so: Callable[[], bool], seconds: int) -> None:
    """Let time pass second by second; work in threads is given as long as it needs."""
    for _ in range(seconds):
        if is_so():
            return
        await clock.advance(1)
    for _ in range(100_000):
        if is_so():
            return
        await asyncio.to_thread(os.stat, "/")
    raise AssertionError("it did not happen")


class TestLife:
    def test_logs_are_there_after_a_restart(self, tmp_path: Path) -> None:
        manager = loaded(tmp_path)
        log = manager.get_or_create(T0, TOPIC_ID, TopicConfig())
        log.append(batch(3), leader_epoch=2)
        log.update_high_watermark(2)
        log.delete_records(1)
        manager.shutdown(broker_epoch=9)
        assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nt 0 3\n"
        assert (tmp_path / "replication-offset-checkpoint").read_text() == "0\n1\nt 0 2\n"
        assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\nt 0 1\n"
        again = loaded(tmp_path)
        assert not (tmp_path / ".kafka_cleanshutdown").exists()
        assert again.storages[0].last_broker_epoch == 9
        log = again.get(T0)  # type: ignore[assignment]
        assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (1, 2, 3)
        assert log.topic_id == TOPIC_ID
        assert log.epochs.latest == 2
        again.shutdown()
        again.shutdown()

    def test_without_a_clean_stop_logs_are_repaired(self, tmp_path: Path) -> None:
        manager = loaded(tmp_path)
        for partition in (T0, T1):
            manager.get_or_create(partition, TOPIC_ID, TopicConfig()).append(batch(3), leader_epoch=0)
        with (tmp_path / "t-0" / "00000000000000000000.log").open("ab") as file:
            file.write(b"torn")
        for storage in manager.storages:
            storage._lock.release()  # type: ignore[union-attr]
        again = loaded(tmp_path)
        assert [offsets_in(log) for log in again.all_logs()] == [[0], [0]]
        assert (tmp_path / "t-0" / "00000000000000000000.log").stat().st_size == len(batch(3))
        again.shutdown()

    def test_meta_properties(self, tmp_path: Path) -> None:
        loaded(tmp_path).shutdown()
        lines = (tmp_path / "meta.properties").read_text().splitlines()
        assert lines[0] == "node.id=1"
        assert {"version=1", "cluster.id=c"} <= set(lines)
        identity = next(line for line in lines if line.startswith("directory.id="))
        loaded(tmp_path).shutdown()
        assert identity in (tmp_path / "meta.properties").read_text()

    def test_another_brokers_directory_is_refused(self, tmp_path: Path) -> None:
        loaded(tmp_path).shutdown()
        with pytest.raises(InvalidConfig, match=r"node\.id 1"):
            manager_of(tmp_path, node=2).load(lambda topic: TopicConfig())

    def test_another_clusters_directory_is_refused(self, tmp_path: Path) -> None:
        loaded(tmp_path).shutdown()
        with pytest.raises(InconsistentClusterId):
            manager_of(tmp_path, cluster="other").load(lambda topic: TopicConfig())

    def test_two_brokers_cannot_share_a_directory(self, tmp_path: Path) -> None:
        first = loaded(tmp_path)
        with pytest.raises(KafkaStorageError, match="Another broker"):
            manager_of(tmp_path).load(lambda topic: TopicConfig())
        first.shutdown()
        loaded(tmp_path).shutdown()

    def test_a_damaged_checkpoint_costs_nothing_but_time(self, tmp_path: Path) -> None:
        manager = loaded(tmp_path)
        manager.get_or_create(T0, TOPIC_ID, TopicConfig()).append(batch(3), leader_epoch=0)
        manager.shutdown()
        (tmp_path / "recovery-point-offset-checkpoint").write_text("rubbish")
        again = loaded(tmp_path)
        assert [log.log_end_offset for log in again.all_logs()] == [3]
        again.shutdown()

    def test_loading_empty_partitions_opens_no_files(self, tmp_path: Path) -> None:
        manager = loaded(tmp_path)
        for number in range(50):
            manager.get_or_create(TopicPartition("t", number), TOPIC_ID, TopicConfig())
        manager.shutdown()
        before = len(os.listdir("/proc/self/fd"))
        again = loaded(tmp_path)
        assert len(again) == 50
        assert len(os.listdir("/proc/self/fd")) <= before + 1  # the lock
        again.shutdown()


class TestDirectories:
    def test_new_logs_go_where_there_are_fewest(self, tmp_path: Path) -> None:
        manager = loaded(tmp_path / "a", tmp_path / "b")
        parents = [
            manager.get_or_create(TopicPartition("t", number), None, TopicConfig()).directory.parent.name
            for number in range(6)
        ]
        assert sorted(parents) == ["a", "a", "a", "b", "b", "b"]
        manager.shutdown()
        again = loaded(tmp_path / "a", tmp_path / "b")
        assert len(again) == 6
        again.shutdown()

    def test_a_partition_in_two_places_is_refused(self, tmp_path: Path) -> None:
        for name in ("a", "b"):
            manager = loaded(tmp_path / name)
            manager.get_or_create(T0, TOPIC_ID, TopicConfig())
            manager.shutdown()
        manager = manager_of(tmp_path / "a", tmp_path / "b")
        with pytest.raises(KafkaStorageError, match="two log directories"):
            manager.load(lambda topic: TopicConfig())
        manager.shutdown()

    @pytest.mark.parametrize("place", ["a", "b"])
    def test_the_log_that_is_in_its_place_is_kept_and_the_other_one_set_aside(self, tmp_path: Path, place: str) -> None:
        ids = {}
        for name in ("a", "b"):
            manager = loaded(tmp_path / name)
            manager.get_or_create(T0, TOPIC_ID, TopicConfig()).append(batch(), leader_epoch=0)
            manager.shutdown()
            (ids[name],) = manager.directory_ids
        manager = manager_of(tmp_path / "a", tmp_path / "b")
        manager.load(lambda topic: TopicConfig(), place_of=lambda partition: ids[place])
        log = manager.get(T0)
        assert log is not None
        assert (log.directory.parent.name, log.is_offline, len(manager)) == (place, False, 1)
        (stray,) = tmp_path.glob("*/*-stray")
        assert stray.parent.name != place
        assert [path.name for path in stray.glob("*.log")] == ["00000000000000000000.log"]
        manager.shutdown()
        again = loaded(tmp_path / "a", tmp_path / "b")
        assert again.get(T0) is not None
        again.shutdown()

    def test_strangers_do_not_disturb(self, tmp_path: Path) -> None:
        manager = loaded(tmp_path)
        manager.get_or_create(T0, TOPIC_ID, TopicConfig())
        manager.shutdown()
        for name in ("__cluster_metadata-0", "remote-log-index-cache", "lost+found", "x-0.0123-future"):
            (tmp_path / name).mkdir()
        (tmp_path / "bootstrap.checkpoint").write_bytes(b"\0")
        again = loaded(tmp_path)
        assert [log.topic_partition for log in again.all_logs()] == [T0]
        again.shutdown()
        assert (tmp_path / "__cluster_metadata-0").is_dir()

    def test_stray_partitions_are_set_aside(self, tmp_path: Path) -> None:
        manager = loaded(tmp_path)
        for partition in (T0, T1):
            manager.get_or_create(partition, TOPIC_ID, TopicConfig()).append(batch(), leader_epoch=0)
        manager.shutdown()
        again = manager_of(tmp_path)
        seen = {}

        def is_stray(partition: TopicPartition, topic_id: UUID | None) -> bool:
            seen[partition] = topic_id
            return partition == T1

        again.load(lambda topic: TopicConfig(), is_stray=is_stray)
        assert seen == {T0: TOPIC_ID, T1: TOPIC_ID}
        assert [log.topic_partition for log in again.all_logs()] == [T0]
        [stray] = tmp_path.glob("t-1.*-stray")
        assert (stray / "00000000000000000000.log").stat().st_size == SIZE
        again.mark_stray(T0)
        assert len(again) == 0
        assert len(list(tmp_path.glob("t-0.*-stray"))) == 1
        again.shutdown()


class TestDeletion:
    async def test_a_deleted_log_stays_on_disk_for_a_while(self, tmp_path: Path) -> None:
        clock = VirtualClock(NOW)
        manager = loaded(tmp_path, clock=clock)
        log = manager.get_or_create(T0, TOPIC_ID, TopicConfig())
        log.append(batch(), leader_epoch=0)
        log.update_high_watermark(1)
        records = log.read(0, 100).records
        manager.delete(T0)
        assert manager.get(T0) is None
        assert log.is_offline
        assert [name[:4] for name in doomed(tmp_path)] == ["t-0."]
        assert records is not None
        assert len(records.read()) == SIZE
        # A new one of the same name can come at once.
        manager.get_or_create(T0, UUID(int=78), TopicConfig())
        clock.move(59)
        await manager.housekeeping.delete_due()
        assert doomed(tmp_path)
        clock.move(1)
        await manager.housekeeping.delete_due()
        assert not doomed(tmp_path)
        manager.delete(TopicPartition("unknown", 3))
        manager.shutdown()

    def test_a_start_finishes_deletions(self, tmp_path: Path) -> None:
        manager = loaded(tmp_path)
        manager.get_or_create(T0, TOPIC_ID, TopicConfig())
        manager.delete(T0)
        manager.shutdown()
        again = loaded(tmp_path)
        assert len(again) == 0
        assert not doomed(tmp_path)
        again.shutdown()

    def test_another_topic_of_the_same_name_is_noticed(self, tmp_path: Path) -> None:
        manager = loaded(tmp_path)
        manager.get_or_create(T0, TOPIC_ID, TopicConfig())
        with pytest.raises(KafkaStorageError, match="topic id"):
            manager.get_or_create(T0, UUID(int=78), TopicConfig())
        manager.shutdown()


class TestHousekeeping:
    async def test_retention(self, tmp_path: Path) -> None:
        clock = VirtualClock(NOW)
        config = TopicConfig(retention_ms=1000, internal_segment_bytes=2 * SIZE)
        manager = loaded(tmp_path, clock=clock)
        logs = [manager.get_or_create(TopicPartition("t", n), None, config) for n in range(3)]
        for log in logs:
            for _ in range(5):
                log.append(batch(), leader_epoch=0)
            log.update_high_watermark(5)
        clock.move(2)
        await manager.housekeeping.delete_old_segments()
        assert [log.log_start_offset for log in logs] == [5, 5, 5]
        manager.shutdown()

    async def test_others_have_a_turn_while_many_segments_go(self, tmp_path: Path) -> None:
        clock = VirtualClock(NOW)
        manager = loaded(tmp_path, clock=clock)
        log = manager.get_or_create(T0, None, TopicConfig(retention_ms=1000, internal_segment_bytes=SIZE))
        for _ in range(70):
            log.append(batch(), leader_epoch=0)
        log.update_high_watermark(70)
        clock.move(2)
        task = asyncio.create_task(manager.housekeeping.delete_old_segments())
        left = [len(log.segments)]
        while not task.done():
            await clock.sleep(0)
            left.append(len(log.segments))
        assert (log.log_start_offset, len(log.segments)) == (70, 1)
        assert max(before - after for before, after in itertools.pairwise(left)) <= 20
        manager.shutdown()

    async def test_the_start_of_a_tiered_log_is_always_checkpointed(self, tmp_path: Path) -> None:
        """Also where it is the first local offset: tomorrow it may not be."""
        settings = LogSettings(log_dirs=(str(tmp_path),))
        tiered = TopicConfig(remote_storage_enable=True, internal_segment_bytes=SIZE, local_retention_bytes=0)
        clock, chance = VirtualClock(NOW), SystemChance(1)
        manager = LogManager(settings, node_id=1, clock=clock, chance=chance, remote_enabled=True)
        manager.load(lambda topic: tiered)
        logs = [manager.get_or_create(T0, None, tiered), manager.get_or_create(T1, None, TopicConfig())]
        for log in logs:
            for _ in range(5):
                log.append(batch(), leader_epoch=0)
            log.update_high_watermark(5)
        logs[0].remote.update_highest_offset(3)
        await manager.housekeeping.delete_old_segments()
        await manager.housekeeping.checkpoint()
        assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\nt 0 0\n"
        manager.shutdown()
        again = LogManager(settings, node_id=1, clock=clock, chance=chance, remote_enabled=True)
        again.load(lambda topic: tiered)
        loaded_again = again.get(T0)
        assert loaded_again is not None
        assert (loaded_again.log_start_offset, loaded_again.local_log_start_offset) == (0, 4)
        again.shutdown()

    async def test_checkpoints_are_written_when_something_moved(self, tmp_path: Path) -> None:
        manager = loaded(tmp_path)
        log = manager.get_or_create(T0, None, TopicConfig())
        path = tmp_path / "replication-offset-checkpoint"
        log.append(batch(2), leader_epoch=0)
        await manager.housekeeping.checkpoint()
        assert not path.exists()
        log.update_high_watermark(2)
        log.delete_records(1)
        await manager.housekeeping.checkpoint()
        assert path.read_text() == "0\n1\nt 0 2\n"
        assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\nt 0 1\n"
        path.unlink()
        await manager.housekeeping.checkpoint()
        assert not path.exists()
        manager.shutdown()

    async def test_a_rolled_log_is_flushed(self, tmp_path: Path) -> None:
        manager = loaded(tmp_path)
        log = manager.get_or_create(T0, None, TopicConfig(internal_segment_bytes=2 * SIZE))
        for _ in range(5):
            log.append(batch(), leader_epoch=0)
        assert log.flusher.recovery_point == 0
        await manager.housekeeping.flush_rolled()
        assert log.flusher.recovery_point == 4
        manager.shutdown()

    async def test_flush_ms(self, tmp_path: Path) -> None:
        clock = VirtualClock(NOW)
        manager = loaded(tmp_path, clock=clock)
        timed = manager.get_or_create(T0, None, TopicConfig(flush_ms=1000))
        never = manager.get_or_create(T1, None, TopicConfig(flush_ms=INT64_MAX))
        for log in (timed, never):
            log.append(batch(2), leader_epoch=0)
        clock.move(0.999)
        await manager.housekeeping.flush_due()
        assert timed.flusher.recovery_point == 0
        clock.move(0.001)
        await manager.housekeeping.flush_due()
        assert (timed.flusher.recovery_point, never.flusher.recovery_point) == (2, 0)
        timed.append(batch(2), leader_epoch=0)
        clock.move(1)
        await manager.housekeeping.flush_due()
        assert timed.flusher.recovery_point == 4
        manager.shutdown()

    async def test_everything_happens_in_its_time(self, tmp_path: Path) -> None:
        """The background task itself, on a clock that we move."""
        clock = VirtualClock(NOW)
        config = TopicConfig(retention_ms=100_000, internal_segment_bytes=2 * SIZE, flush_ms=10_000)
        manager = loaded(tmp_path, clock=clock)
        log = manager.get_or_create(T0, None, config)
        task = asyncio.create_task(manager.run())
        await clock.settle()
        for _ in range(3):
            log.append(batch(), leader_epoch=0)
        log.update_high_watermark(3)
        await until(clock, lambda: log.flusher.recovery_point == 2, 0)  # a closed segment is flushed at once
        await until(clock, lambda: (tmp_path / "replication-offset-checkpoint").exists(), 5)
        await until(clock, lambda: log.flusher.recovery_point == 3, 5)
        await until(clock, lambda: log.log_start_offset == 3, 400)
        await until(clock, lambda: not list((tmp_path / "t-0").glob("*.deleted")), 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        manager.shutdown()

    async def test_a_log_that_is_deleted_during_its_flush_harms_nobody(self, tmp_path: Path) -> None:
        manager = loaded(tmp_path)
        log = manager.get_or_create(T0, None, TopicConfig())
        log.append(batch(), leader_epoch=0)
        plan = log.flusher.begin()
        pending = log.begin_append(batch(), leader_epoch=0)
        manager.delete(T0)
        assert plan is not None
        assert not await manager.housekeeping._on_disk(log, plan.run)
        pending.write()
        assert isinstance(log.fail_append(OSError("too late")), KafkaStorageError)
        assert not manager.offline_directories
        manager.shutdown()

    async def test_silent_producers_are_forgotten(self, tmp_path: Path) -> None:
        clock = VirtualClock(NOW)
        manager = loaded(tmp_path, clock=clock)
        log = manager.get_or_create(T0, None, TopicConfig())
        log.append(batch(producer_id=4, sequence=0), leader_epoch=0)
        clock.move(86_400)
        await manager.housekeeping.expire_producers()
        assert log.active_producers() == []
        manager.shutdown()

    async def test_a_failing_directory_does_not_stop_the_others(self, tmp_path: Path) -> None:
        manager = loaded(tmp_path / "a", tmp_path / "b")
        first = manager.get_or_create(T0, None, TopicConfig(internal_segment_bytes=2 * SIZE))
        second = manager.get_or_create(T1, None, TopicConfig(internal_segment_bytes=2 * SIZE))
        for log in (first, second):
            for _ in range(5):
                log.append(batch(), leader_epoch=0)
            log.update_high_watermark(5)
        os.close(first.segments.first.file.fileno())
        first.segments.first.file._fd = 10**6
        await manager.housekeeping.flush_rolled()
        first.segments.first.file._fd = -1
        assert first.is_offline
        assert second.flusher.recovery_point == 4
        await manager.housekeeping.checkpoint()
        await manager.housekeeping.delete_old_segments()
        assert (second.directory.parent / "replication-offset-checkpoint").exists()
        assert not (first.directory.parent / "replication-offset-checkpoint").exists()
        manager.shutdown()
