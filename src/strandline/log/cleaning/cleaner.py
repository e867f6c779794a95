"""Compaction: keeps the newest record of each key in the logs of compacted topics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from strandline.clock import Clock
from strandline.config import LogSettings
from strandline.errors import KafkaStorageError, StrandlineError
from strandline.log.cleaning.candidates import Candidate, assess, dirtiest
from strandline.log.cleaning.checkpoint import CleanerCheckpoints
from strandline.log.cleaning.passes import CleaningPass, PassReport
from strandline.log.cleaning.process import CleaningWorker, ProcessWorker
from strandline.log.cleaning.requests import CleaningStopped
from strandline.model import TopicPartition

if TYPE_CHECKING:
    from strandline.log.unified import UnifiedLog

logger = logging.getLogger(__name__)

_RETRIED: Final = (CleaningStopped, KafkaStorageError, BrokenExecutor, OSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCleanerStatus:
    """What the cleaner has done so far, and the state of the logs when it looked at them last."""

    is_running: bool
    cleaning: TopicPartition | None
    passes: int
    bytes_read: int
    bytes_written: int
    records_read: int
    records_kept: int
    max_dirty_ratio: float
    max_compaction_delay_ms: int
    last_run_ms: int
    """When the logs were looked at last; -1 if never."""
    uncleanable: frozenset[TopicPartition]
    """Logs that cannot be read: they are left alone until the broker restarts."""

    @property
    def recopy_ratio(self) -> float:
        """How much of what was read had to be written again."""
        return self.bytes_written / self.bytes_read if self.bytes_read else 0.0


class LogCleaner:
    """Cleans one log after the other, the dirtiest first. It decides and swaps; a worker process rewrites.

    Everything belongs to the event loop. A pass that is cancelled, or whose log changes under it, leaves the log as
    it was: only whole segments are swapped, and each swap survives a crash.
    """

    def __init__(
        self,
        settings: LogSettings,
        logs: Callable[[], Iterable[UnifiedLog]],
        clock: Clock,
        worker: CleaningWorker | None = None,
    ) -> None:
        self._settings = settings
        self._logs = logs
        self._clock = clock
        self._worker = worker or ProcessWorker()
        self._checkpoints = CleanerCheckpoints()
        self._uncleanable: set[TopicPartition] = set()
        self._totals = PassReport()
        self._passes = 0
        self._cleaning: TopicPartition | None = None
        self._is_running = False
        self._max_dirty_ratio = 0.0
        self._max_delay_ms = 0
        self._last_run_ms = -1
        self._woken = asyncio.Event()

    def update_settings(self, settings: LogSettings) -> None:
        """Follow a change of the dynamic broker settings."""
        self._settings = settings

    def note_truncation(self, log: UnifiedLog, offset: int) -> None:
        """A log was truncated to `offset`: records that are appended from there on are dirty."""
        checkpoint = self._checkpoints.get(log)
        if checkpoint is not None and checkpoint > offset:
            self._checkpoints.set(log, offset)

    def wake(self) -> None:
        """Look at the logs now instead of after log.cleaner.backoff.ms."""
        self._woken.set()

    async def run(self) -> None:
        """Clean until cancelled."""
        self._is_running = True
        try:
            while True:
                if self._settings.log_cleaner_enable and self._settings.log_cleaner_threads:
                    await self._clean_all()
                # Between rounds there is no process, and none of its memory.
                await self._worker.close()
                await self._clock.wait_set(self._woken, within=self._settings.log_cleaner_backoff_ms / 1000)
                self._woken.clear()
        finally:
            self._is_running = False
            await self._worker.close()

    async def _clean_all(self) -> None:
        while report := await self.clean_once():
            if not report.is_complete:
                return

    async def clean_once(self) -> PassReport | None:
        """Clean the log that needs it most. None if none needs it.

        A report that is not complete says that the pass was given up; the log is tried again later.
        """
        candidate = self._choose(self._clock.now_ms())
        if candidate is None:
            return None
        log = candidate.log
        self._cleaning = log.topic_partition
        try:
            report = await self._clean(candidate)
        except _RETRIED as error:
            logger.warning("cleaning %s was given up: %s", log.topic_partition, _sentence(error))
            await self._worker.close()
            return PassReport(topic_partition=log.topic_partition)
        except StrandlineError as error:
            logger.error("%s cannot be cleaned and is left alone: %s", log.topic_partition, error)
            self._uncleanable.add(log.topic_partition)
            return PassReport(topic_partition=log.topic_partition, is_complete=True)
        except Exception:  # a bug that one log brings out: the others are still cleaned, and the broker goes on
            logger.exception("cleaning %s failed; it is left alone until the broker restarts", log.topic_partition)
            self._uncleanable.add(log.topic_partition)
            await self._worker.close()
            return PassReport(topic_partition=log.topic_partition, is_complete=True)
        finally:
            self._cleaning = None
        self._note(report)
        return report

    async def close(self) -> None:
        """Stop the worker. For callers of `clean_once` that do not use `run`."""
        await self._worker.close()

    def _choose(self, now_ms: int) -> Candidate | None:
        self._last_run_ms = now_ms
        candidates = [
            assess(log, self._checkpoints.get(log), now_ms) for log in self._logs() if self._may_be_dirty(log)
        ]
        for candidate in candidates:
            if candidate.is_checkpoint_invalid:
                self._checkpoints.set(candidate.log, candidate.first_dirty)
        self._max_dirty_ratio = max((candidate.ratio for candidate in candidates), default=0.0)
        self._max_delay_ms = max((candidate.overdue_ms for candidate in candidates), default=0)
        return dirtiest(candidates)

    def _may_be_dirty(self, log: UnifiedLog) -> bool:
        """Asked of every log in every round: most are sorted out here, at almost no cost."""
        return (
            log.config.is_compacted
            and len(log.segments) > 1
            and not log.is_offline
            and log.topic_partition not in self._uncleanable
        )

    async def _clean(self, candidate: Candidate) -> PassReport:
        log = candidate.log
        report = await CleaningPass(candidate, self._worker, self._clock, self._settings).run()
        if report.is_complete:
            self._checkpoints.set(log, report.end_offset)
            await asyncio.to_thread(self._checkpoints.write, log.env.directory.path, list(self._logs()))
        return report

    def _note(self, report: PassReport) -> None:
        logger.info(
            "cleaned %s up to offset %d: %d of %d records and %d of %d bytes stay",
            report.topic_partition,
            report.end_offset,
            report.records_kept,
            report.records_read,
            report.bytes_written,
            report.bytes_read,
        )
        self._passes += 1
        self._totals = self._totals.plus(report)

    def status(self) -> LogCleanerStatus:
        """For metrics and the status page."""
        totals = self._totals
        return LogCleanerStatus(
            is_running=self._is_running,
            cleaning=self._cleaning,
            passes=self._passes,
            bytes_read=totals.bytes_read,
            bytes_written=totals.bytes_written,
            records_read=totals.records_read,
            records_kept=totals.records_kept,
            max_dirty_ratio=self._max_dirty_ratio,
            max_compaction_delay_ms=self._max_delay_ms,
            last_run_ms=self._last_run_ms,
            uncleanable=frozenset(self._uncleanable),
        )


def _sentence(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
