"""A partition that this broker leads, as its copy and expiration tasks see it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from strandline.log import UnifiedLog
from strandline.model import NO_OFFSET, LeaderEpoch, Offset, TopicIdPartition
from strandline.remote.values import RemoteLogSegmentMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOffsets:
    """What the copy task asks of a log, at one moment."""

    log_start: Offset
    local_log_start: Offset
    first_base: Offset
    """Of the first local segment. The log may begin inside it."""
    active_base: Offset
    """Of the segment that is being written."""
    last_stable_offset: Offset


def offsets_of(log: UnifiedLog) -> LogOffsets:
    """The offsets of a log now."""
    return LogOffsets(
        log_start=log.log_start_offset,
        local_log_start=log.local_log_start_offset,
        first_base=log.segments.first.base_offset,
        active_base=log.segments.active.base_offset,
        last_stable_offset=log.last_stable_offset,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderPartition:
    """A partition, its log, and since which epoch this broker leads it."""

    partition: TopicIdPartition
    log: UnifiedLog
    leader_epoch: LeaderEpoch


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyInProgress:
    """The segment that is being copied."""

    segment: RemoteLogSegmentMetadata
    since: float


class TieredPartition:
    """What is known of a partition beside its log and its description. Belongs to the event loop."""

    __slots__ = (
        "changes",
        "copied",
        "copying",
        "has_kept",
        "id",
        "is_started",
        "is_waiting_for_quota",
        "is_withdrawing",
        "is_withdrawn",
        "leader",
        "quiet",
        "refusal",
    )

    def __init__(self, partition: TopicIdPartition) -> None:
        self.id = partition
        self.leader: LeaderPartition | None = None
        """None when this broker does not lead it any more; a copy under way then still goes on to its end."""
        self.is_started = False
        """Whether it is known what is in remote storage already."""
        self.copied: Offset = NO_OFFSET
        """The last offset in remote storage."""
        self.copying: CopyInProgress | None = None
        self.quiet = asyncio.Event()
        """Set while nothing is being copied."""
        self.quiet.set()
        self.is_waiting_for_quota = False
        self.is_withdrawing = False
        """Everything remote is being deleted: what the description still has may be gone in a moment."""
        self.is_withdrawn = False
        """The log has forgotten what it has in remote storage, and not all of that is gone yet."""
        self.refusal: str | None = None
        """Why nothing is copied until the settings change or another leader is elected."""
        self.has_kept = False
        """Whether the last plan of the expiration task has kept a segment, and so knows when the next one goes."""
        self.changes = 0
        """Grows with everything that may give the expiration task something to do."""

    def lead(self, leader: LeaderPartition) -> None:
        """This broker leads it, maybe again. What is in remote storage has to be found out."""
        self.leader = leader
        self.is_started = False
        self.refusal = None

    def is_led_as(self, leader: LeaderPartition) -> bool:
        """Whether the leadership under which some work was begun still holds."""
        return self.leader is leader

    def begin_copy(self, segment: RemoteLogSegmentMetadata, since: float) -> None:
        self.copying = CopyInProgress(segment=segment, since=since)
        self.quiet.clear()

    def end_copy(self) -> None:
        self.copying = None
        self.quiet.set()
