"""What a broker does with its logs in the background: one task for all of them, which skips logs without work.

Only the snapshots of very many producers are written by tasks of their own, since each takes seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from typing import Final, Protocol

from strandline.clock import Clock
from strandline.config import LogSettings
from strandline.errors import KafkaStorageError
from strandline.log.environment import DeletionQueue, LogDirectory, delete_all
from strandline.log.snapshot_writing import SnapshotTasks
from strandline.log.storage import Storage
from strandline.log.unified import UnifiedLog
from strandline.model import INT64_MAX, TopicPartition

logger = logging.getLogger(__name__)

_PRODUCER_CHECK_MS: Final = 600_000
_LONGEST_WAIT_S: Final = 3_600.0
_LOGS_PER_TURN: Final = 100
_SEGMENTS_PER_TURN: Final = 20
_PRODUCERS_PER_TURN: Final = 10_000


def _flush_due(log: UnifiedLog) -> float:
    """When the flush.ms of a log is over, by the monotonic clock: one that is set back must not put flushes off."""
    return log.flusher.flushed_at + log.config.flush_ms / 1000


class Logs(Protocol):
    """The logs of a broker."""

    def all_logs(self) -> Iterator[UnifiedLog]:
        """Every log."""

    def get(self, partition: TopicPartition) -> UnifiedLog | None:
        """One log."""

    @property
    def storages(self) -> list[Storage]:
        """Every log directory."""

    @property
    def deletions(self) -> DeletionQueue:
        """Files that wait to be deleted."""


class Housekeeping:
    """Retention, flushes, checkpoints, deletions: each a step that can be taken by itself.

    Steps decide on the event loop and leave blocking calls to the executor. A step that meets a failing disk takes
    that directory offline and goes on with the others.
    """

    def __init__(
        self, logs: Logs, settings: LogSettings, clock: Clock, executor: Executor, *, checkpoint_interval_ms: int
    ) -> None:
        self._logs = logs
        self._settings = settings
        self._clock = clock
        self._executor = executor
        self._checkpoint_interval_ms = checkpoint_interval_ms
        self._wake = asyncio.Event()
        self._rolled: set[TopicPartition] = set()
        self._timed: set[TopicPartition] = set()
        self._storing: dict[str, asyncio.Lock] = {}
        self._held_up: set[UnifiedLog] = set()  # their retention waits for a producer snapshot
        self._snapshots = SnapshotTasks(self._on_disk, on_written=self._snapshot_written, on_failure=self._wake.set)

    def flush_soon(self, partition: TopicPartition) -> None:
        """A log has rolled: force its closed segments to disk, so that recovery need not repair them after a crash."""
        self._rolled.add(partition)
        self._wake.set()

    def watch_flush_time(self, log: UnifiedLog) -> None:
        """A log has records that are not on disk: watch its flush.ms."""
        if log.config.flush_ms < INT64_MAX and log.topic_partition not in self._timed:
            self._timed.add(log.topic_partition)
            self._wake.set()

    async def run(self) -> None:
        """Take every step when it is due, until cancelled. What this has started ends with it."""
        try:
            await self._run()
        finally:
            await self._snapshots.close()

    async def _run(self) -> None:
        settings, start = self._settings, self._clock.monotonic()
        due = {
            self.delete_old_segments: start + settings.log_initial_task_delay_ms / 1000,
            self.expire_producers: start + _PRODUCER_CHECK_MS / 1000,
            self.checkpoint: start + self._checkpoint_interval_ms / 1000,
        }
        every = {
            self.delete_old_segments: settings.log_retention_check_interval_ms / 1000,
            self.expire_producers: _PRODUCER_CHECK_MS / 1000,
            self.checkpoint: self._checkpoint_interval_ms / 1000,
        }
        while True:
            now = self._clock.monotonic()
            for step, moment in due.items():
                if moment <= now:
                    await step()
                    due[step] = now + every[step]
            await self.flush_rolled()
            await self.flush_due()
            await self.delete_due()
            seconds = self._time_until(min(due.values()))
            if seconds > 0:
                await self._clock.wait_set(self._wake, within=seconds)
            else:
                await self._clock.sleep(0)
            self._wake.clear()
            self._snapshots.check()

    def _time_until(self, moment: float) -> float:
        """Seconds to the next thing to do."""
        now = self._clock.monotonic()
        moments = [moment, now + _LONGEST_WAIT_S]
        next_deletion = self._logs.deletions.next_due
        if next_deletion is not None:
            moments.append(next_deletion)
        for partition in self._timed:
            log = self._logs.get(partition)
            if log is not None:
                moments.append(_flush_due(log))
        return max(min(moments) - now, 0.0)

    # Steps

    async def delete_old_segments(self) -> None:
        """Let retention work on every log, and close the descriptors of idle files.

        Where a producer snapshot is pending, it does so again when that is written.
        """
        self._held_up.clear()
        for number, log in enumerate(self._logs.all_logs()):
            if number % _LOGS_PER_TURN == _LOGS_PER_TURN - 1:
                await self._clock.sleep(0)
            await self._delete_old_segments(log)
            if not log.is_offline:
                if log.segments.has_pending_snapshot:
                    self._held_up.add(log)
                    self._snapshots.start(log)
                log.close_idle_files()

    async def _delete_old_segments(self, log: UnifiedLog) -> None:
        while not log.is_offline:
            try:
                deleted = log.retention.delete_old_segments(self._clock.now_ms(), limit=_SEGMENTS_PER_TURN)
            except KafkaStorageError as error:
                logger.error("retention failed on %s: %s", log.topic_partition, error)
                return
            if deleted < _SEGMENTS_PER_TURN:
                return
            await self._clock.sleep(0)

    async def expire_producers(self) -> None:
        """Forget producers that have been silent for long."""
        now_ms = self._clock.now_ms()
        looked_at = 0
        for log in self._logs.all_logs():
            if not len(log.producers):
                continue
            known = list(log.producers.entries.values())
            for at in range(0, len(known), _PRODUCERS_PER_TURN):
                piece = known[at : at + _PRODUCERS_PER_TURN]
                log.producers.remove_expired(now_ms, piece)
                looked_at += len(piece)
                if looked_at >= _PRODUCERS_PER_TURN:
                    looked_at = 0
                    await self._clock.sleep(0)

    async def checkpoint(self) -> None:
        """Write the checkpoints of directories in which something moved."""
        logs = list(self._logs.all_logs())
        for storage in self._logs.storages:
            if storage.directory.is_offline:
                continue
            for write in storage.plan_checkpoints(logs):
                await self._on_disk(storage, write)

    async def store_log_starts(self, directory: LogDirectory, is_stored: Callable[[], bool]) -> None:
        """Write where the logs of a directory start. Raises KafkaStorageError if that fails.

        One write at a time, of all logs. An earlier write may have had the log of a caller that waits (`is_stored`).
        """
        storage = next(storage for storage in self._logs.storages if storage.directory is directory)
        async with self._storing.setdefault(directory.path, asyncio.Lock()):
            if not is_stored():
                directory.check()
                await self._on_disk(storage, storage.plan_log_starts(self._logs.all_logs()))
                directory.check()

    async def flush_rolled(self) -> None:
        """Force the closed segments of logs that have rolled to disk, with their producer snapshots.

        If a snapshot is pending, the segments from there on are forced to disk when it is written.
        """
        rolled, self._rolled = self._rolled, set()
        for partition in rolled:
            log = self._logs.get(partition)
            if log is not None:
                if log.segments.has_pending_snapshot:
                    self._snapshots.start(log)
                await self._flush(log, log.segments.closed_end)

    async def _snapshot_written(self, log: UnifiedLog) -> None:
        """Go on with what had to wait for it."""
        await self._flush(log, log.segments.closed_end)
        if log in self._held_up:
            self._held_up.discard(log)
            await self._delete_old_segments(log)

    async def flush_due(self) -> None:
        """Force logs to disk whose flush.ms is over."""
        now = self._clock.monotonic()
        for partition in list(self._timed):
            log = self._logs.get(partition)
            if log is None or log.is_offline or not log.flusher.has_unflushed:
                self._timed.discard(partition)
            elif now >= _flush_due(log):
                await self._flush(log, None)
                if not log.flusher.has_unflushed:
                    self._timed.discard(partition)

    async def _flush(self, log: UnifiedLog, up_to: int | None) -> None:
        if log.is_offline:
            return
        try:
            plan = log.flusher.begin(up_to)
        except KafkaStorageError as error:
            logger.error("could not flush %s: %s", log.topic_partition, error)
            return
        if plan is None:
            if up_to is None:
                log.flusher.postpone()  # what there is to flush is still being written
        elif await self._on_disk(log, plan.run):
            log.flusher.finish(plan)

    async def delete_due(self) -> None:
        """Delete the files whose delay is over."""
        due = self._logs.deletions.take_due(self._clock.monotonic())
        if due:
            await asyncio.get_running_loop().run_in_executor(self._executor, delete_all, due)

    async def _on_disk(self, owner: Storage | UnifiedLog, work: Callable[[], None]) -> bool:
        """Run blocking work in the executor. False, and the directory offline, if it failed."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._executor, work)
        except OSError as error:
            if not (isinstance(owner, UnifiedLog) and owner.is_offline):  # else it was deleted meanwhile
                owner.env.directory.fail(error)
            return False
        return True
