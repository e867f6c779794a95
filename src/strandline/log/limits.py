"""Limits of a log, worked out once for each configuration so that an append only compares numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from strandline.config.topic import TopicConfig
from strandline.log.offset_index import OffsetIndex
from strandline.log.segment import RollLimits
from strandline.log.time_index import TimeIndex
from strandline.records.batch import TimestampType
from strandline.records.validation import BatchLimits


@dataclass(frozen=True, slots=True)
class LogLimits:
    """What an append needs of the topic's configuration."""

    batch: BatchLimits
    roll: RollLimits
    index_interval: int
    flush_messages: int
    is_log_append_time: bool

    @staticmethod
    def of(config: TopicConfig) -> LogLimits:
        """The limits of a configuration. Topics with equal settings share one value."""
        return _limits_of(config)


@lru_cache(maxsize=256)
def _limits_of(config: TopicConfig) -> LogLimits:
    batch = BatchLimits.of(config)
    return LogLimits(
        batch=batch,
        roll=RollLimits(
            segment_bytes=config.effective_segment_bytes,
            segment_ms=config.segment_ms,
            offset_entries=config.segment_index_bytes // OffsetIndex.ENTRY_SIZE,
            # One slot of the time index stays free for the entry that ends the segment.
            time_entries=config.segment_index_bytes // TimeIndex.ENTRY_SIZE - 1,
        ),
        index_interval=config.index_interval_bytes,
        flush_messages=config.flush_messages,
        is_log_append_time=batch.timestamp_type is TimestampType.LOG_APPEND_TIME,
    )
