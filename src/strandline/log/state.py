"""The state of a partition's log, and what its parts have in common."""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path
from uuid import UUID

from strandline.config.topic import TopicConfig
from strandline.crash import crash_point
from strandline.errors import KafkaStorageError
from strandline.log.append import PendingAppend
from strandline.log.checkpoints import read_topic_id, write_topic_id
from strandline.log.environment import LogEnvironment
from strandline.log.epochs import LeaderEpochs
from strandline.log.files import offset_name, write_atomically
from strandline.log.limits import LogLimits
from strandline.log.producer_state import ProducerState
from strandline.log.recent import RecentBatches
from strandline.log.segment import LogSegment
from strandline.log.segments import Segments
from strandline.model import NO_OFFSET, TopicPartition


def is_remote(config: TopicConfig, env: LogEnvironment) -> bool:
    """Whether the finished segments of such a topic go to remote storage."""
    return env.remote_enabled and config.remote_storage_enable


class LogState:
    """Segments, offsets, epochs and producers of one log.

    Everything here belongs to the event loop (or, while a log is loaded, to one thread). Offsets:
    log_start_offset <= local_log_start_offset <= high_watermark <= log_end_offset <= reserved_end. `log_end_offset`
    is what readers know; `reserved_end` is where the next batch goes. What lies between the first two is in remote
    storage only; without tiered storage they are equal.
    """

    __slots__ = (
        "_directory",
        "_directory_changes",
        "_directory_synced",
        "_first_unstable",
        "_is_closed",
        "_limits",
        "_pending",
        "_recent",
        "_topic_id",
        "_written_epoch",
        "checkpointed_log_start",
        "config",
        "env",
        "epochs",
        "high_watermark",
        "highest_offset_in_remote_storage",
        "is_remote",
        "last_flush_ms",
        "local_log_start_offset",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "recovery_point",
        "reserved_end",
        "segments",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        directory: str,
        config: TopicConfig,
        env: LogEnvironment,
        *,
        topic_id: UUID | None = None,
    ) -> None:
        self.topic_partition = topic_partition
        self.config = config
        self.env = env
        self._directory = directory
        self._topic_id = topic_id
        self._limits = LogLimits.of(config)
        self.is_remote = is_remote(config, env)
        """True if finished segments go to remote storage: the topic and the broker say so."""
        self.segments = Segments()
        self.epochs = LeaderEpochs(directory)
        self.producers = ProducerState(directory)
        self.log_start_offset = 0
        self.local_log_start_offset = 0
        """The first offset on this broker's disks."""
        self.highest_offset_in_remote_storage = NO_OFFSET
        """Everything from the log start up to here is in remote storage, as far as this broker knows yet."""
        self.checkpointed_log_start = NO_OFFSET
        """The log start that a restart after a crash finds, if the log is tiered."""
        self.log_end_offset = 0
        self.reserved_end = 0
        self.high_watermark = 0
        self.recovery_point = 0
        self.last_flush_ms = env.clock.now_ms()
        self._first_unstable: int | None = None
        self._pending: deque[PendingAppend] = deque()
        self._recent = RecentBatches()
        self._written_epoch = -1
        # Names in the directory: how often they were changed, and how many of those changes are on disk.
        self._directory_changes = 0
        self._directory_synced = 0
        self._is_closed = False

    # Identity

    @property
    def directory(self) -> Path:
        """The partition's directory."""
        return Path(self._directory)

    @property
    def topic_id(self) -> UUID | None:
        """The topic's id as `partition.metadata` has it, None if the file is missing."""
        if self._topic_id is None:
            self._topic_id = read_topic_id(self._directory)
        return self._topic_id

    def assign_topic_id(self, topic_id: UUID) -> None:
        """Write the id of a log that has none. Raises KafkaStorageError if it has another one."""
        known = self.topic_id
        if known is None:
            write_topic_id(self._directory, topic_id)
            self._topic_id = topic_id
        elif known != topic_id:
            raise KafkaStorageError(f"{self.topic_partition} in {self._directory} belongs to topic id {known}")

    @property
    def is_offline(self) -> bool:
        """True if the log cannot be used any more: its directory has failed, or it was closed."""
        return self.env.directory.error is not None or self._is_closed

    def check_online(self) -> None:
        """Raises KafkaStorageError if the log cannot be used."""
        self.env.directory.check()
        if self._is_closed:
            raise KafkaStorageError(f"The log of {self.topic_partition} is closed")

    # Offsets

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction is decided. Never below the log start, where an open one may have begun."""
        first = self._first_unstable
        watermark = self.high_watermark
        return watermark if first is None or first > watermark else max(first, self.log_start_offset)

    @property
    def size(self) -> int:
        """Bytes of all segments that readers may see."""
        return sum(segment.size for segment in self.segments)

    @property
    def has_pending_appends(self) -> bool:
        """True while some append has begun and not finished."""
        return bool(self._pending)

    def update_high_watermark(self, offset: int) -> bool:
        """Move the high watermark, within the log. True if it changed."""
        offset = max(min(offset, self.log_end_offset), self.log_start_offset)
        if offset == self.high_watermark:
            return False
        self.high_watermark = offset
        self.env.directory.has_new_high_watermarks = True
        if self._first_unstable is not None:
            self.producers.forget_replicated(offset)
            self._first_unstable = self.producers.first_unstable_offset
        return True

    def _set_log_start(self, offset: int) -> None:
        self.log_start_offset = offset
        if offset > self.local_log_start_offset:
            self.local_log_start_offset = offset
        elif not self.is_remote:  # or not any more: what was remote only is not local now
            self.local_log_start_offset = max(offset, self.segments.first.base_offset)
        self.env.directory.has_new_log_starts = True
        if self.high_watermark < offset:
            self.high_watermark = offset
            self.env.directory.has_new_high_watermarks = True

    def _move_log_start(self, offset: int, *, is_tiered: bool) -> None:
        """Start at `offset` from now on, without the epochs below.

        Until this is checkpointed, a crash brings the old start of a tiered log back, and the old epochs with it; if it
        never was, as much as is on the disk. A log that is not tiered needs no old epochs.
        """
        self._set_log_start(offset)
        known = self.checkpointed_log_start
        old = self.segments.first.base_offset if known == NO_OFFSET else known
        self.epochs.truncate_from_start(offset, kept_from=old if is_tiered else None)

    # Segments

    def _create_segment(self, base_offset: int) -> LogSegment:
        config, env = self.config, self.env
        segment = LogSegment.create(
            self._directory,
            base_offset,
            created_ms=env.clock.now_ms(),
            cache=env.cache,
            preallocate=self._limits.roll.segment_bytes if config.preallocate else 0,
        )
        segment.jitter_ms = env.chance.below(min(config.segment_jitter_ms, config.segment_ms))
        self.segments.add(segment)
        self._recent.clear()
        self._directory_changes += 1
        return segment

    def roll(self, base_offset: int | None = None) -> LogSegment:
        """Start a new active segment at the end of the log, or above it. An empty one is used again.

        Raises KafkaStorageError.
        """
        try:
            return self._roll(base_offset)
        except OSError as error:
            raise self.env.directory.fail(error) from error

    def _roll(self, base_offset: int | None) -> LogSegment:
        base = max(self.reserved_end if base_offset is None else base_offset, self.reserved_end)
        active = self.segments.active
        if active.base_offset == base and not active.reserved:
            active.created_ms = self.env.clock.now_ms()
            return active
        crash_point("log.roll.before_indexes")
        active.finish()
        # No preallocated space behind the last batch, and no missing bytes before the next segment: a crash before the
        # writes under way leaves a hole that recovery sees, and drops what comes after it.
        active.file.set_length(active.reserved)
        crash_point("log.roll.before_snapshot")
        self.producers.take_snapshot(base, self._write_small)
        crash_point("log.roll.before_segment")
        segment = self._create_segment(base)
        crash_point("log.roll.done")
        self.env.on_flush_wanted(self.topic_partition)
        return segment

    def _write_small(self, path: str, data: bytes) -> None:
        """Write a small file of the partition; the next flush forces it to disk."""
        write_atomically(path, data, sync=False)
        self._directory_changes += 1

    def _path(self, offset: int, suffix: str) -> str:
        return os.path.join(self._directory, offset_name(offset, suffix))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.topic_partition}, start={self.log_start_offset}, "
            f"local_start={self.local_log_start_offset}, "
            f"high_watermark={self.high_watermark}, end={self.log_end_offset}, segments={len(self.segments)})"
        )
