"""A partition's log in a directory of its own, with a clock that tests move."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from strandline.clock import SystemChance
from strandline.config.topic import TopicConfig
from strandline.log import (
    AppendOrigin,
    LoadedOffsets,
    LogAppendInfo,
    LogDirectory,
    LogEnvironment,
    UnifiedLog,
    create_log,
    load_log,
)
from strandline.log.environment import delete_all
from strandline.model import TopicPartition
from strandline.reads import FetchIsolation
from strandline.records.batch import BatchHeader, TimestampType, iter_headers
from strandline.records.builder import build_batch
from strandline.records.codecs import Codec
from strandline.records.control import ControlType, EndTransactionMarker, build_marker
from strandline.records.record import Record
from strandline.testing.clock import VirtualClock

NOW = 1_700_000_000_000
PARTITION = TopicPartition("orders", 0)


def batch(
    count: int = 1,
    *,
    timestamp: int = NOW,
    value: bytes = b"value",
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
    is_transactional: bool = False,
    codec: Codec = Codec.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
) -> memoryview:
    """A batch as a producer sends it, or (with a base offset) as a leader has it."""
    records = [Record(base_offset + i, timestamp, b"key", value) for i in range(count)]
    return memoryview(
        build_batch(
            records,
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            codec=codec,
            timestamp_type=timestamp_type,
            producer_id=producer_id,
            producer_epoch=producer_epoch if producer_id < 0 else max(producer_epoch, 0),
            base_sequence=sequence,
            is_transactional=is_transactional,
        )
    )


def marker(
    producer_id: int, *, commits: bool, epoch: int = 0, coordinator_epoch: int = 0, timestamp: int = NOW
) -> memoryview:
    """The end of a transaction, as a coordinator writes it."""
    kind = ControlType.COMMIT if commits else ControlType.ABORT
    end = EndTransactionMarker(kind, coordinator_epoch)
    return memoryview(build_marker(end, producer_id=producer_id, producer_epoch=epoch, timestamp_ms=timestamp))


@dataclass
class LogHarness:
    """Opens, closes and crashes one log. `recovery_point` and the like are what checkpoints would hold."""

    root: Path
    config: TopicConfig = field(default_factory=TopicConfig)
    clock: VirtualClock = field(default_factory=lambda: VirtualClock(NOW))
    partition: TopicPartition = PARTITION
    remote_enabled: bool = False
    env: LogEnvironment = field(init=False)
    log: UnifiedLog = field(init=False)

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        self.env = self._environment()

    def _environment(self) -> LogEnvironment:
        return LogEnvironment(
            directory=LogDirectory(str(self.root)),
            clock=self.clock,
            chance=SystemChance(1),
            remote_enabled=self.remote_enabled,
        )

    @property
    def directory(self) -> Path:
        return self.root / str(self.partition)

    def create(self) -> UnifiedLog:
        self.log = create_log(self.partition, self.config, self.env, topic_id=None)
        return self.log

    def open(self, offsets: LoadedOffsets | None = None, *, is_clean: bool) -> UnifiedLog:
        self.env = self._environment()
        self.log = load_log(
            self.partition,
            str(self.directory),
            self.config,
            self.env,
            offsets=offsets or LoadedOffsets(),
            is_clean=is_clean,
        )
        return self.log

    def offsets(self) -> LoadedOffsets:
        """What the checkpoints would say now."""
        log = self.log
        return LoadedOffsets(
            recovery_point=log.flusher.recovery_point, log_start=log.log_start_offset, high_watermark=log.high_watermark
        )

    def checkpoint(self) -> LoadedOffsets:
        """Let the checkpoints be written."""
        self.log.start.checkpointed = self.log.log_start_offset
        return self.offsets()

    def reopen(self) -> UnifiedLog:
        """A clean stop and a start."""
        self.log.close()
        return self.open(self.offsets(), is_clean=True)

    def crash(self) -> UnifiedLog:
        """The process dies without a word and starts again: only what was written to files is left."""
        offsets = self.offsets()
        self.log.abandon()
        return self.open(offsets, is_clean=False)

    def append(
        self, records: memoryview, *, epoch: int = 0, origin: AppendOrigin = AppendOrigin.CLIENT
    ) -> LogAppendInfo:
        """Append as leader, and let everything be replicated."""
        info = self.log.append(records, leader_epoch=epoch, origin=origin)
        self.log.update_high_watermark(self.log.log_end_offset)
        return info

    def end_transaction(self, producer_id: int, *, commits: bool, epoch: int = 0) -> LogAppendInfo:
        return self.append(marker(producer_id, commits=commits, epoch=epoch), origin=AppendOrigin.COORDINATOR)

    def files(self, suffix: str = "") -> list[str]:
        return sorted(name for name in os.listdir(self.directory) if name.endswith(suffix))

    def delete_due(self) -> None:
        """Let the deletions happen whose time has come."""
        delete_all(self.env.deletions.take_due(self.clock.monotonic()))


def headers_in(log: UnifiedLog, *, isolation: FetchIsolation = FetchIsolation.LOG_END) -> list[BatchHeader]:
    """Every batch a reader gets who reads the local log from its start on, as a consumer does."""
    found: list[BatchHeader] = []
    offset = log.local_log_start_offset
    while True:
        result = log.read(offset, 1 << 16, isolation=isolation)
        if result.records is None:
            return found
        headers = [header for _, header in iter_headers(result.records.read())]
        assert headers, "a read with records must hold at least one whole batch"
        found += [header for header in headers if header.last_offset >= offset]
        offset = headers[-1].next_offset


def offsets_in(log: UnifiedLog, *, isolation: FetchIsolation = FetchIsolation.LOG_END) -> list[int]:
    """The first offset of every batch a reader gets."""
    return [header.base_offset for header in headers_in(log, isolation=isolation)]
