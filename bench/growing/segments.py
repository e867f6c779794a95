"""The remote log metadata of one partition with so many segments: reading it, leading, expiring, searching, listing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, cast
from uuid import UUID

import uvloop

from bench.growing.measuring import Growth, Measured, watched
from strandline.clock import Clock, SystemChance, SystemClock
from strandline.config.topic import TopicConfig
from strandline.log import LogDirectory, LogEnvironment, UnifiedLog, create_log
from strandline.model import TopicIdPartition, TopicPartition
from strandline.records.builder import build_batch
from strandline.records.record import Record
from strandline.remote.manager import LeaderPartition
from strandline.remote.manager.deleting.plan import MOST_DELETIONS, ExpiryQuestion, planning
from strandline.remote.manager.jobs import PoolStatus
from strandline.remote.manager.partition import TieredPartition
from strandline.remote.manager.report import TierReport
from strandline.remote.manager.starting import find_out
from strandline.remote.reader.by_time import SearchByTime
from strandline.remote.topic_based.limits import MetadataLimits
from strandline.remote.topic_based.manager import TopicBasedRemoteLogMetadataManager
from strandline.remote.topic_based.records import serialize
from strandline.remote.turns import in_turns
from strandline.remote.values import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
)
from strandline.testing.metadata_topic import MemoryMetadataTopic

PARTITION: Final = TopicIdPartition(UUID(int=1), TopicPartition("tiered", 0))
_RECORDS: Final = 10
_BATCH: Final = 1_000
_AFTER_ALL: Final = 1 << 60
_POOL: Final = PoolStatus(size=1, jobs=0, running=0, ready=0, failing=0, busy_seconds=0.0, oldest_running_seconds=0.0)

_READ = Growth("read the metadata of all segments", "CPU ms")
_SAVE = Growth("write a snapshot of it", "CPU ms")
_RESTORE = Growth("start from the snapshot", "CPU ms")
_FIND = Growth("find the segment of an offset", "CPU µs", 0)
_TURN: Final = "longest turn of the loop"
_STEPS: Final = ("begin to lead", "plan what expires", "search by time", "list the segments")


def measure(root: Path, size: int) -> Measured:
    """With `size` segments of ten records."""
    directory = root / f"segments-{size}"
    directory.mkdir(parents=True)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_measure(directory, size))


async def _measure(root: Path, size: int) -> Measured:
    clock, topic = SystemClock(), topic_with(size)
    found: dict[Growth, float] = {}
    before = time.process_time()
    async with metadata_of(topic, root, clock) as manager:
        found[_READ] = (time.process_time() - before) * 1e3
        found |= await _questions(manager, log_with(root, size, clock), size, clock)
        before = time.process_time()
    found[_SAVE] = (time.process_time() - before) * 1e3
    before = time.process_time()
    async with metadata_of(topic, root, clock):
        found[_RESTORE] = (time.process_time() - before) * 1e3
    return found


def topic_with(size: int) -> MemoryMetadataTopic:
    """A metadata topic with the records of so many segments."""
    topic = MemoryMetadataTopic(1)
    topic.values[0].extend(_records(size))
    return topic


@asynccontextmanager
async def metadata_of(
    topic: MemoryMetadataTopic, root: Path, clock: Clock
) -> AsyncIterator[TopicBasedRemoteLogMetadataManager]:
    """What a broker knows of the topic when it has read it."""
    manager = TopicBasedRemoteLogMetadataManager(topic, directory=root, limits=MetadataLimits(), clock=clock)
    async with manager.running():
        manager.on_partition_leadership_changes([PARTITION], [])
        while not manager.is_ready(PARTITION):
            await clock.sleep(0.001)
        yield manager


def _records(size: int) -> Iterator[bytes]:
    for number in range(size):
        segment_id = RemoteLogSegmentId(PARTITION, UUID(int=number + 1))
        yield serialize(
            RemoteLogSegmentMetadata(
                segment_id=segment_id,
                start_offset=number * _RECORDS,
                end_offset=(number + 1) * _RECORDS - 1,
                max_timestamp_ms=number,
                broker_id=1,
                event_timestamp_ms=number,
                segment_size_in_bytes=1 << 20,
                segment_leader_epochs={0: number * _RECORDS},
            )
        )
        yield serialize(
            RemoteLogSegmentMetadataUpdate(
                segment_id=segment_id,
                event_timestamp_ms=number,
                broker_id=1,
                state=RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
            )
        )


def log_with(root: Path, size: int, clock: Clock) -> UnifiedLog:
    """A log with all of these records in few local segments: each remote one has to be looked up."""
    env = LogEnvironment(directory=LogDirectory(str(root)), clock=clock, chance=SystemChance(1), remote_enabled=True)
    log = create_log(PARTITION.topic_partition, TopicConfig(remote_storage_enable=True), env, topic_id=None)
    records = memoryview(build_batch([Record(at, 1, None, b"") for at in range(_BATCH)]))
    for _ in range(size * _RECORDS // _BATCH + 1):
        log.append(memoryview(bytearray(records)), leader_epoch=0)
    log.update_high_watermark(log.log_end_offset)
    return log


async def _questions(
    manager: TopicBasedRemoteLogMetadataManager, log: UnifiedLog, size: int, clock: SystemClock
) -> Measured:
    leader = LeaderPartition(partition=PARTITION, log=log, leader_epoch=0)
    partition = TieredPartition(PARTITION)
    partition.lead(leader)

    async def expire() -> None:
        question = ExpiryQuestion(
            segments=manager.iter_remote_log_segments(PARTITION),
            from_oldest=manager.iter_remote_log_segments(PARTITION),
            lookup=lambda epoch, at: manager.remote_log_segment_metadata(PARTITION, epoch, at),
            epochs=tuple(log.epochs.entries),
            log_start=0,
            high_watermark=log.high_watermark,
            log_end=log.log_end_offset,
            local_only_bytes=0,
            retention_ms=0,
            retention_bytes=-1,
            now_ms=_AFTER_ALL,
            broker_id=1,
            being_copied=None,
            abandoned_before_ms=0,
        )
        plan = await in_turns(clock, planning(question))
        assert len(plan.deletions) == min(size, MOST_DELETIONS)

    async def search() -> None:
        # Nothing is that new: the metadata says so, and no segment has to be opened.
        searching = SearchByTime(manager, cast("Any", None), cast("Any", None), clock)
        assert await searching.find(PARTITION, log, _AFTER_ALL) is None

    async def list_all() -> None:
        report = TierReport(manager, clock)
        status = await report.partition(partition, leader, copying=None, expiring=None, pool=_POOL)
        assert len(status.segments) + status.segments_left_out > size

    found: dict[Growth, float] = {}
    steps = (lambda: find_out(partition, leader, manager, clock), expire, search, list_all)
    for what, step in zip(_STEPS, steps, strict=True):
        cpu, turn = await watched(step)
        found[Growth(what, "CPU ms")] = cpu
        found[Growth(f"{what}: {_TURN}", "ms", 0)] = turn
    assert partition.is_started
    times, before = 1_000, time.process_time()
    for _ in range(times):
        manager.remote_log_segment_metadata(PARTITION, 0, size * _RECORDS // 2)
    found[_FIND] = (time.process_time() - before) / times * 1e6
    return found
