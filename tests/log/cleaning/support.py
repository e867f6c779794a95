"""Logs to clean, and a worker that needs no process."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from strandline.clock import SystemChance
from strandline.config.log import LogSettings
from strandline.config.topic import TopicConfig
from strandline.log import AppendOrigin, LoadedOffsets, LogDirectory, LogEnvironment, UnifiedLog, create_log, load_log
from strandline.log.cleaning.cleaner import LogCleaner
from strandline.log.cleaning.requests import GroupRequest, GroupResult, MapRequest, MapResult
from strandline.log.cleaning.worker import build_map, clean_group
from strandline.model import TopicPartition
from strandline.records import (
    BatchHeader,
    Codec,
    ControlType,
    EndTransactionMarker,
    Record,
    build_batch,
    build_marker,
    read_records,
)
from strandline.testing.clock import VirtualClock

PARTITION = TopicPartition("compacted", 0)
DAY_MS = 86_400_000


class InlineWorker:
    """Does the work where it is called."""

    def __init__(self) -> None:
        self.closed = 0

    async def build_map(self, request: MapRequest) -> MapResult:
        return build_map(request)

    async def clean_group(self, request: GroupRequest) -> GroupResult:
        return clean_group(request)

    async def close(self) -> None:
        self.closed += 1


def config(**changes: Any) -> TopicConfig:
    settings: dict[str, Any] = {
        "cleanup_policy": ("compact",),
        "min_cleanable_dirty_ratio": 0.0,
        "internal_segment_bytes": 100_000,
        "index_interval_bytes": 200,
        **changes,
    }
    return TopicConfig(**settings)


class CompactedLog:
    """A log in a directory of its own, with the few things tests do to it."""

    def __init__(self, directory: Path, clock: VirtualClock | None = None, **changes: Any) -> None:
        directory.mkdir(exist_ok=True)
        self.directory = directory
        self.clock = clock or VirtualClock()
        self.config = config(**changes)
        self.log: UnifiedLog = create_log(PARTITION, self.config, self._environment(), topic_id=None)

    def _environment(self) -> LogEnvironment:
        return LogEnvironment(directory=LogDirectory(str(self.directory)), clock=self.clock, chance=SystemChance(0))

    def reload(self, *, is_clean: bool = False) -> None:
        """Open the directory again, as after a crash or after a clean stop."""
        log = self.log
        offsets = LoadedOffsets(
            recovery_point=log.log_end_offset if is_clean else 0,
            log_start=log.log_start_offset,
            high_watermark=log.high_watermark,
        )
        if is_clean:
            log.close()
        self.log = load_log(
            PARTITION, str(log.directory), self.config, self._environment(), offsets=offsets, is_clean=is_clean
        )
        self.log.update_high_watermark(self.log.log_end_offset)

    def produce(self, *entries: tuple[bytes | None, bytes | None], codec: Codec = Codec.NONE, **producer: Any) -> int:
        """Append one batch. Returns its first offset."""
        now = self.clock.now_ms()
        records = [Record(i, now + i, key, value) for i, (key, value) in enumerate(entries)]
        return self.append(build_batch(records, codec=codec, **producer))

    def end_transaction(self, producer_id: int, *, commit: bool, epoch: int = 0) -> int:
        """Append a marker. Returns its offset."""
        marker = EndTransactionMarker(ControlType.COMMIT if commit else ControlType.ABORT, 0)
        batch = build_marker(marker, producer_id=producer_id, producer_epoch=epoch, timestamp_ms=self.clock.now_ms())
        return self.append(batch, AppendOrigin.COORDINATOR)

    def append(self, batch: bytearray, origin: AppendOrigin = AppendOrigin.CLIENT) -> int:
        info = self.log.append(memoryview(batch), leader_epoch=0, origin=origin)
        self.log.update_high_watermark(self.log.log_end_offset)
        return info.first_offset

    def roll(self) -> None:
        self.log.roll()

    def batches(self) -> list[tuple[BatchHeader, list[Record]]]:
        return [
            (header, read_records(bytes(batch)))
            for segment in self.log.segments
            for _, header, batch in segment.batches()
        ]

    def records(self) -> list[Record]:
        """All records of clients."""
        return [record for header, records in self.batches() if not header.is_control for record in records]

    def pairs(self) -> list[tuple[bytes | None, bytes | None]]:
        return [(record.key, record.value) for record in self.records()]

    def offsets(self) -> list[int]:
        return [record.offset for record in self.records()]

    def bases(self) -> list[int]:
        return [segment.base_offset for segment in self.log.segments]

    def first_file(self) -> bytes:
        """The bytes of the first segment."""
        return Path(self.log.segments.first.file.path).read_bytes()

    def files_ending_in(self, suffix: str) -> list[str]:
        return sorted(path.name for path in self.log.directory.iterdir() if path.name.endswith(suffix))

    def cleaner(self, **settings: Any) -> LogCleaner:
        return cleaner_of([self], **settings)

    async def clean(self, **settings: Any) -> None:
        """Clean until nothing is dirty."""
        cleaner = self.cleaner(**settings)
        while report := await cleaner.clean_once():
            assert report.is_complete


def cleaner_of(logs: Iterable[CompactedLog], **settings: Any) -> LogCleaner:
    held = list(logs)
    return LogCleaner(
        LogSettings(**settings), lambda: [held_log.log for held_log in held], held[0].clock, InlineWorker()
    )
