"""A partition that this broker leads, as its copy and expiration tasks see it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from strandline.log import UnifiedLog
from strandline.model import NO_OFFSET, LeaderEpoch, Offset, TopicIdPartition
from strandline.remote.values import RemoteLogSegmentMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOffsets:
    """The offsets of a log at one moment."""

    log_start: Offset
    local_log_start: Offset
    first_base: Offset
    """Base offset of the first local segment. The log may begin inside it."""
    active_base: Offset
    """Base offset of the active segment."""
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


def no_suffix() -> int:
    """For a partition whose log ends where the local log does."""
    return 0


async def tell_nobody() -> None:
    """For a partition that is read through its leader alone, which knows where its log starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderPartition:
    """A partition that this broker leads, with its log and leader epoch."""

    partition: TopicIdPartition
    log: UnifiedLog
    leader_epoch: LeaderEpoch
    suffix_bytes: Callable[[], int] = field(default=no_suffix, compare=False)
    """The size of what follows the end of the log elsewhere: retention.bytes counts it, and it is never expired here.
    Called often: has to answer from memory."""
    tell_log_start: Callable[[], Awaitable[None]] = field(default=tell_nobody, compare=False)
    """Returns when brokers that may serve the partition without its leader know where its log starts. Raises
    StrandlineError."""

    async def store_log_start(self) -> None:
        """Return when neither a crash nor the loss of this broker brings an older log start back.

        To be awaited before anything below the log start is deleted. Raises StrandlineError.
        """
        await self.log.start.store()
        await self.tell_log_start()


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyInProgress:
    """The segment that is being copied."""

    segment: RemoteLogSegmentMetadata
    since: float


class TieredPartition:
    """The state of copying and deletion of one partition. Belongs to the event loop."""

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
        "starting",
    )

    def __init__(self, partition: TopicIdPartition) -> None:
        self.id = partition
        self.leader: LeaderPartition | None = None
        """None when this broker does not lead it any more; an in-flight copy still completes."""
        self.is_started = False
        """Whether `starting.find_out` has run since this broker leads the partition."""
        self.starting = asyncio.Lock()
        """Held while `find_out` looks at the segments: both tasks need its answer, and one of them gets it."""
        self.copied: Offset = NO_OFFSET
        """The last offset in remote storage."""
        self.copying: CopyInProgress | None = None
        self.quiet = asyncio.Event()
        """Set while no copy is in flight."""
        self.quiet.set()
        self.is_waiting_for_quota = False
        self.is_withdrawing = False
        """All remote segments are being deleted because tiering was switched off. Nothing is copied meanwhile."""
        self.is_withdrawn = False
        """Tiering was switched off, the log has dropped its remote part, and remote segments are left to delete."""
        self.refusal: str | None = None
        """Why copying has stopped until the settings change or another leader is elected."""
        self.has_kept = False
        """Whether the last expiry plan kept a segment, and so knows when the next one expires."""
        self.changes = 0
        """Counts events after which the expiration task has to make a new plan."""

    def lead(self, leader: LeaderPartition) -> None:
        """This broker leads it, maybe again. `starting.find_out` has to run again."""
        self.leader = leader
        self.is_started = False
        self.refusal = None

    def is_led_as(self, leader: LeaderPartition) -> bool:
        """Whether the leadership under which work began still holds."""
        return self.leader is leader

    def begin_copy(self, segment: RemoteLogSegmentMetadata, since: float) -> None:
        self.copying = CopyInProgress(segment=segment, since=since)
        self.quiet.clear()

    def end_copy(self) -> None:
        self.copying = None
        self.quiet.set()
