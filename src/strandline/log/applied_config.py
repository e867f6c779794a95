"""A topic's configuration as its logs apply it, worked out once so that an append only compares numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from strandline.config import TopicConfig
from strandline.log.offset_index import OffsetIndex
from strandline.log.segment import RollLimits
from strandline.log.time_index import TimeIndex
from strandline.records import BatchLimits, TimestampType


@dataclass(frozen=True, slots=True)
class AppendLimits:
    """What an append needs of the topic's configuration."""

    batch: BatchLimits
    roll: RollLimits
    index_interval: int
    flush_messages: int
    is_log_append_time: bool


class AppliedConfig:
    """The present configuration of one log."""

    __slots__ = ("_is_remote_enabled", "config", "is_remote", "limits")

    def __init__(self, config: TopicConfig, *, is_remote_enabled: bool) -> None:
        self._is_remote_enabled = is_remote_enabled
        self.apply(config)

    def apply(self, config: TopicConfig) -> None:
        """Follow a change of the topic's configuration."""
        self.config = config
        self.limits = _limits_of(config)
        self.is_remote = self._is_remote_enabled and config.remote_storage_enable
        """True if closed segments go to remote storage: both the broker and the topic enable it."""

    @property
    def is_copied(self) -> bool:
        """True if closed segments are being copied: only what is copied may leave the local disk."""
        return self.is_remote and not self.config.remote_log_copy_disable


@lru_cache(maxsize=256)
def _limits_of(config: TopicConfig) -> AppendLimits:
    batch = BatchLimits.of(config)
    return AppendLimits(
        batch=batch,
        roll=RollLimits(
            segment_bytes=config.effective_segment_bytes,
            segment_ms=config.segment_ms,
            offset_entries=config.segment_index_bytes // OffsetIndex.ENTRY_SIZE,
            # One slot of the time index stays free for the entry that closes the segment.
            time_entries=config.segment_index_bytes // TimeIndex.ENTRY_SIZE - 1,
        ),
        index_interval=config.index_interval_bytes,
        flush_messages=config.flush_messages,
        is_log_append_time=batch.timestamp_type is TimestampType.LOG_APPEND_TIME,
    )
