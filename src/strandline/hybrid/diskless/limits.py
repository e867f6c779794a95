"""What a diskless topic accepts and keeps, worked out once for each configuration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from strandline.config import TopicConfig
from strandline.model import INT64_MAX
from strandline.records import BatchLimits, TimestampType


@dataclass(frozen=True, slots=True)
class TopicLimits:
    """What an append needs of the topic's configuration."""

    batch: BatchLimits
    timestamp_type: TimestampType
    allows_deletion: bool

    @staticmethod
    def of(config: TopicConfig) -> TopicLimits:
        """The limits of a configuration. Topics with equal settings share one value."""
        return _limits_of(config)


@lru_cache(maxsize=256)
def _limits_of(config: TopicConfig) -> TopicLimits:
    batch = BatchLimits.of(config)
    timestamp_type = batch.timestamp_type
    if timestamp_type is TimestampType.LOG_APPEND_TIME:
        # The commit gives the batch its time; the producer's does not matter.
        batch = replace(
            batch, timestamp_type=TimestampType.CREATE_TIME, before_max_ms=INT64_MAX, after_max_ms=INT64_MAX
        )
    return TopicLimits(batch, timestamp_type, config.is_deleted_by_retention)
