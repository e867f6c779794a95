"""Status values and counters of the RemoteLogManager: in all, by topic, and of one partition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from strandline.model import Offset, TopicIdPartition
from strandline.remote.manager.jobs import PoolStatus
from strandline.remote.values import RemoteLogSegmentState


class SegmentTier(Enum):
    """Where the bytes of a segment are."""

    LOCAL = "local"
    REMOTE = "remote"
    BOTH = "both"


class SegmentRow(NamedTuple):
    """One segment of a partition."""

    start_offset: Offset
    end_offset: Offset
    bytes: int
    state: str
    """A `RemoteLogSegmentState`, LOCAL_ACTIVE, or LOCAL_FINISHED for a closed segment."""
    tier: SegmentTier


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTierStatus:
    """The led partitions of one topic, added up."""

    copy_requests: int = 0
    copy_errors: int = 0
    copy_bytes: int = 0
    delete_requests: int = 0
    delete_errors: int = 0
    copy_lag_segments: int = 0
    copy_lag_bytes: int = 0
    delete_lag_segments: int = 0
    delete_lag_bytes: int = 0
    metadata_count: int = 0
    remote_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerStatus:
    """The whole RemoteLogManager."""

    topics: Mapping[str, TopicTierStatus]
    partitions: int
    deletions: int
    """Partitions of deleted topics whose remote segments are being deleted."""
    copier: PoolStatus
    expiration: PoolStatus
    oldest_copy_seconds: float
    """Age of the oldest in-flight copy: a copy that never ends shows here."""
    copier_idle_percent: float
    expiration_idle_percent: float

    @property
    def copies_running(self) -> int:
        return self.copier.running


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTierStatus:
    """One led partition: its segments by tier, what is pending, and why."""

    partition: TopicIdPartition
    log_start_offset: Offset
    local_log_start_offset: Offset
    highest_offset_in_remote_storage: Offset
    log_end_offset: Offset
    segments: tuple[SegmentRow, ...]
    segments_left_out: int
    """Older remote segments that are not listed, but counted."""
    segments_by_state: Mapping[str, int]
    local_bytes: int
    remote_bytes: int
    pending_segments: int
    pending_bytes: int
    deleting_segments: int
    local_because: str
    """Why the oldest local-only segment is not in remote storage."""
    local_from: Offset
    """Base offset of that segment."""
    copying_seconds: float | None
    """Age of the in-flight copy; None if there is none."""
    failures_in_a_row: int
    last_error: str | None

    @property
    def remote_segments(self) -> int:
        """Segments in COPY_SEGMENT_FINISHED: neither failed copies nor segments that are being deleted."""
        return self.segments_by_state.get(RemoteLogSegmentState.COPY_SEGMENT_FINISHED.name, 0)


@dataclass(slots=True)
class TopicCounters:
    """One topic since the broker started."""

    copy_requests: int = 0
    copy_errors: int = 0
    copy_bytes: int = 0
    """Of logs, without their indexes."""
    delete_requests: int = 0
    delete_errors: int = 0


class Counters:
    """All topics. Those of deleted topics stay, as counters must not decrease."""

    def __init__(self) -> None:
        self._topics: defaultdict[str, TopicCounters] = defaultdict(TopicCounters)

    def of(self, topic: str) -> TopicCounters:
        """The counters of a topic, to be incremented."""
        return self._topics[topic]

    def frozen(self) -> Mapping[str, TopicCounters]:
        """A copy of the current values."""
        return {topic: replace(counters) for topic, counters in self._topics.items()}
