"""What the RemoteLogManager tells about itself, about topics and about one partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

from strandline.log import UnifiedLog
from strandline.log.segment import LogSegment
from strandline.model import Offset, TopicIdPartition
from strandline.remote.manager.jobs import PoolStatus
from strandline.remote.values import RemoteLogSegmentMetadata, RemoteLogSegmentState


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
    """A `RemoteLogSegmentState`, or LOCAL_ACTIVE or LOCAL_FINISHED."""
    tier: SegmentTier


class CopyLag(NamedTuple):
    """What is finished and not copied yet."""

    segments: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTierStatus:
    """The led partitions of one topic together."""

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
    """All of it."""

    topics: Mapping[str, TopicTierStatus]
    partitions: int
    deletions: int
    """Partitions of deleted topics whose remote segments are being deleted."""
    copier: PoolStatus
    expiration: PoolStatus
    oldest_copy_seconds: float
    """How long the oldest copy that is under way takes already: one that never ends shows here."""
    copier_idle_percent: float
    expiration_idle_percent: float

    @property
    def copies_running(self) -> int:
        return self.copier.running

    @property
    def copies_waiting(self) -> int:
        return self.copier.ready


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTierStatus:
    """One led partition: what is where, what is pending, and why."""

    partition: TopicIdPartition
    log_start_offset: Offset
    local_log_start_offset: Offset
    highest_offset_in_remote_storage: Offset
    log_end_offset: Offset
    segments: tuple[SegmentRow, ...]
    segments_by_state: Mapping[str, int]
    local_bytes: int
    remote_bytes: int
    pending_segments: int
    pending_bytes: int
    deleting_segments: int
    local_because: str
    """Why the oldest segment that is not in remote storage is not."""
    local_from: Offset
    """Where that segment begins."""
    copying_seconds: float | None
    """How long the segment that is being copied takes already; None if none is."""
    failures_in_a_row: int
    last_error: str | None

    @property
    def remote_segments(self) -> int:
        """Those that were copied to the end: neither copies that failed, nor segments that are being deleted."""
        return self.segments_by_state.get(RemoteLogSegmentState.COPY_SEGMENT_FINISHED.name, 0)


def only_local(log: UnifiedLog, copied: Offset) -> Iterator[tuple[LogSegment, Offset | None]]:
    """The segments that are not in remote storage, each with where the next one begins; None for the active one.

    Not those below the log start: they only wait to be deleted.
    """
    for segment, following in pairwise((*log.segments, None)):
        assert segment is not None
        if following is None:
            yield segment, None
        elif following.base_offset > max(copied + 1, log.log_start_offset):
            yield segment, following.base_offset


def copy_lag(log: UnifiedLog, copied: Offset) -> CopyLag:
    """Of the finished local segments, those that are not in remote storage."""
    waiting = [segment.size for segment, end in only_local(log, copied) if end is not None]
    return CopyLag(len(waiting), sum(waiting))


def segment_rows(log: UnifiedLog, remote: Sequence[RemoteLogSegmentMetadata], copied: Offset) -> list[SegmentRow]:
    """All segments of a partition: the remote ones, then those that are only local."""
    bases = set(log.segments.bases)
    rows = [
        SegmentRow(
            segment.start_offset,
            segment.end_offset,
            segment.segment_size_in_bytes,
            segment.state.name,
            SegmentTier.BOTH if segment.start_offset in bases else SegmentTier.REMOTE,
        )
        for segment in remote
    ]
    for local, end in only_local(log, copied):
        state = "LOCAL_ACTIVE" if end is None else "LOCAL_FINISHED"
        last = (log.log_end_offset if end is None else end) - 1
        rows.append(SegmentRow(local.base_offset, last, local.size, state, SegmentTier.LOCAL))
    return rows


def count_states(rows: Iterable[SegmentRow]) -> Mapping[str, int]:
    return Counter(row.state for row in rows)
