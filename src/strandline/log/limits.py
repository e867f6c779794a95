"""Limits of a log, worked out once for each configuration so that an append only compares numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from strandline.config.topic import TopicConfig
from strandline.log.offset_index import OffsetIndex
from strandline.log.segment import RollLimits
from strandline.log.time_index import TimeIndex
from strandline.records.batch import TimestampType
from strandline.records.codecs import Codec
from strandline.records.validation import BatchLimits

_TIMESTAMP_TYPES = {"CreateTime": TimestampType.CREATE_TIME, "LogAppendTime": TimestampType.LOG_APPEND_TIME}


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
    timestamp_type = _TIMESTAMP_TYPES[config.message_timestamp_type]
    codec, level = _codec_of(config)
    return LogLimits(
        batch=BatchLimits(
            max_message_bytes=config.max_message_bytes,
            codec=codec,
            level=level,
            timestamp_type=timestamp_type,
            before_max_ms=config.message_timestamp_before_max_ms,
            after_max_ms=config.message_timestamp_after_max_ms,
            is_compacted=config.is_compacted,
        ),
        roll=RollLimits(
            segment_bytes=config.effective_segment_bytes,
            segment_ms=config.segment_ms,
            offset_entries=config.segment_index_bytes // OffsetIndex.ENTRY_SIZE,
            # One slot of the time index stays free for the entry that ends the segment.
            time_entries=config.segment_index_bytes // TimeIndex.ENTRY_SIZE - 1,
        ),
        index_interval=config.index_interval_bytes,
        flush_messages=config.flush_messages,
        is_log_append_time=timestamp_type is TimestampType.LOG_APPEND_TIME,
    )


def _codec_of(config: TopicConfig) -> tuple[Codec | None, int | None]:
    match config.compression_type:
        case "producer":
            return None, None
        case "uncompressed":
            return Codec.NONE, None
        case "gzip":
            level = config.compression_gzip_level
            return Codec.GZIP, None if level == -1 else level
        case "lz4":
            return Codec.LZ4, config.compression_lz4_level
        case "zstd":
            return Codec.ZSTD, config.compression_zstd_level
        case _:
            return Codec.SNAPPY, None
