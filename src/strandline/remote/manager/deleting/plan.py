"""Which remote segments are deleted, why, and where the log begins then. Pure: `expiration` carries it out.

Retention covers all tiers: the size of the log is its remote segments plus its local-only ones, plus what follows them
elsewhere. Failed and unfinished copies do not count, neither in the size of the log nor as bytes that were deleted:
counting them would make a log look too large, and delete records that retention keeps.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from typing import Final, NamedTuple
from uuid import UUID

from strandline.model import BrokerId, Offset, TimestampMs
from strandline.remote.manager.history import EpochEntry, LogHistory, Lookup, boundaries, covers, with_records
from strandline.remote.turns import AT_ONCE
from strandline.remote.values import RemoteLogSegmentMetadata, RemoteLogSegmentState

_S: Final = RemoteLogSegmentState

MOST_DELETIONS: Final = 10_000
"""Of one plan. The next one is made when these are deleted."""


class DeletionReason(Enum):
    """Why a remote segment is deleted."""

    INTERRUPTED = "its deletion had begun"
    LOG_START = "it lies below the log start offset"
    TIME = "its newest record is older than retention.ms"
    SIZE = "the log is larger than retention.bytes"
    ABANDONED = "its copy was never finished"
    REDUNDANT = "another remote segment has all of its records"
    LOST = "the database has lost the commit that made it part of the log"
    UNREFERENCED = "its leader epochs are older than all of the log"
    SWITCHED_OFF = "remote.storage.enable is false and remote.log.delete.on.disable is true"
    TOPIC_DELETED = "the topic was deleted"


class Deletion(NamedTuple):
    """One segment to delete."""

    segment: RemoteLogSegmentMetadata
    reason: DeletionReason


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryQuestion:
    """Everything that decides, as of one moment."""

    segments: Iterable[RemoteLogSegmentMetadata]
    """All known segments, in any state, by start offset."""
    from_oldest: Iterable[RemoteLogSegmentMetadata]
    """The same ones once more: retention looks at no more of them than go, and at the first that stays."""
    lookup: Lookup
    """The segment that readers use for an offset of an epoch."""
    epochs: Sequence[EpochEntry]
    log_start: Offset
    high_watermark: Offset
    log_end: Offset
    local_only_bytes: int
    """Of local segments without a remote copy."""
    suffix_bytes: int = 0
    """Of what follows the end of the log elsewhere."""
    retention_ms: int
    retention_bytes: int
    now_ms: TimestampMs
    broker_id: BrokerId
    being_copied: UUID | None
    abandoned_before_ms: TimestampMs
    """A copy of another broker that began before this is abandoned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryPlan:
    """The segments to delete, in this order, after the log start has moved."""

    is_complete: bool
    """Whether nothing else is to be deleted; if not, make another plan when this one is carried out."""
    log_start: Offset
    """Where the log begins from now on: never below where it begins now."""
    deletions: Sequence[Deletion]
    has_kept: bool
    """Whether a segment of the log stays. If not, the next copied segment may expire at once."""
    next_due_ms: TimestampMs | None
    """When the next segment expires by time; None if never."""
    next_due_bytes: int | None
    """The size of the log at which the next segment expires; None if size does not count, or nothing is left."""


@dataclass(slots=True)
class _Walk:
    """The state of the walk over the segments, oldest first."""

    excess: int
    cleanup_until_ms: TimestampMs | None
    log_start: Offset
    expired: list[Deletion] = field(default_factory=list)
    first_kept: RemoteLogSegmentMetadata | None = None


def planning(question: ExpiryQuestion) -> Generator[None, None, ExpiryPlan]:
    """Makes the plan in small steps: there may be very many segments, and other tasks have to run meanwhile.

    For the same reason neither the segments that stay are kept, nor more than MOST_DELETIONS that go: a million of them
    take a gigabyte, and to free them takes half a second at once.
    """
    found = yield from _sorted_out(question)
    walk = yield from _expire(question, found)
    before, behind = (found.interrupted, found.below_start), (found.abandoned, found.redundant, found.unreferenced)
    deletions = [*chain(*before, walk.expired, *behind)]
    is_complete = len(deletions) < MOST_DELETIONS
    return ExpiryPlan(
        is_complete=is_complete,
        log_start=walk.log_start,
        deletions=deletions,
        has_kept=walk.first_kept is not None or not is_complete,
        next_due_ms=_next_due_ms(walk.first_kept, question),
        next_due_bytes=_next_due_bytes(walk.first_kept, question),
    )


@dataclass(slots=True)
class _SortedOut:
    """What a look at all segments has found."""

    interrupted: list[Deletion] = field(default_factory=list)
    below_start: list[Deletion] = field(default_factory=list)
    abandoned: list[Deletion] = field(default_factory=list)
    redundant: list[Deletion] = field(default_factory=list)
    unreferenced: list[Deletion] = field(default_factory=list)
    log_bytes: int = 0
    """Of all segments of the log that are not redundant and reach up to the log start."""

    room: int = field(default_factory=lambda: MOST_DELETIONS)
    """How many more deletions fit into the plan."""

    def add(self, deletions: list[Deletion], segment: RemoteLogSegmentMetadata, reason: DeletionReason) -> None:
        """Delete a segment, by this plan or by a later one."""
        if self.room:
            self.room -= 1
            deletions.append(Deletion(segment, reason))


def _sorted_out(question: ExpiryQuestion) -> Generator[None, None, _SortedOut]:
    """Everything but retention, which needs the size of the log first."""
    found, spare = _SortedOut(), _RedundantSegments(question.lookup)
    history, epochs = LogHistory(question.epochs, question.log_end), with_records(question.epochs)
    for count, segment in enumerate(question.segments, 1):
        if segment.state is not _S.COPY_SEGMENT_FINISHED:
            if segment.state is _S.DELETE_SEGMENT_STARTED:
                found.add(found.interrupted, segment, DeletionReason.INTERRUPTED)
            elif _is_abandoned(segment, question):
                found.add(found.abandoned, segment, DeletionReason.ABANDONED)
        elif _is_below_log_start(segment, epochs, question.log_start):
            found.add(found.below_start, segment, DeletionReason.LOG_START)
        elif segment in history:
            _count(found, spare.add(segment), question)
        elif _is_unreferenced(segment, question):
            found.add(found.unreferenced, segment, DeletionReason.UNREFERENCED)
        if count % AT_ONCE == 0:
            yield
    _count(found, spare.end(), question)
    return found


def _count(found: _SortedOut, judged: Iterable[_Judged], question: ExpiryQuestion) -> None:
    for segment, is_redundant in judged:
        if is_redundant:
            found.add(found.redundant, segment, DeletionReason.REDUNDANT)
        elif segment.end_offset >= question.log_start:
            found.log_bytes += segment.segment_size_in_bytes


class _Judged(NamedTuple):
    """A copied segment of the log, and whether it is not needed."""

    segment: RemoteLogSegmentMetadata
    is_redundant: bool


class _RedundantSegments:
    """Of the copied segments of a log, by start offset, those that another one covers and no reader uses.

    They come from two leaders that copied the same records one after the other, or from a copy whose confirmation was
    lost. Of two equal segments, readers use one; that one stays.
    """

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._reach: list[RemoteLogSegmentMetadata] = []
        """Earlier segments that may cover later ones."""
        self._beside: list[RemoteLogSegmentMetadata] = []
        """Segments that begin at the same offset, not judged yet."""

    def add(self, segment: RemoteLogSegmentMetadata) -> Sequence[_Judged]:
        """The next segment. Those that it allows to judge."""
        if not self._beside or self._beside[0].start_offset == segment.start_offset:
            self._beside.append(segment)
            return ()
        judged = self.end()
        self._beside.append(segment)
        return judged

    def end(self) -> Sequence[_Judged]:
        """The last ones, when there are no more."""
        judged = [self._judge(segment, self._beside[at + 1 :]) for at, segment in enumerate(self._beside)]
        self._beside.clear()
        return judged

    def _judge(self, segment: RemoteLogSegmentMetadata, beside: Sequence[RemoteLogSegmentMetadata]) -> _Judged:
        self._reach = [other for other in self._reach if other.end_offset >= segment.start_offset]
        is_covered = any(covers(other, segment) for other in (*self._reach, *beside))
        is_redundant = is_covered and not _is_referenced(segment, self._lookup)
        if not is_redundant:
            self._reach.append(segment)
        return _Judged(segment, is_redundant)


def redundant_segments(
    in_lineage: Iterable[RemoteLogSegmentMetadata], lookup: Lookup
) -> Generator[None, None, list[RemoteLogSegmentMetadata]]:
    """Those of the copied segments of a log, by start offset, that another one covers and no reader uses."""
    spare, judged = _RedundantSegments(lookup), list[_Judged]()
    found: list[RemoteLogSegmentMetadata] = []
    for count, segment in enumerate(in_lineage):
        judged.extend(spare.add(segment))
        if count % AT_ONCE == 0:
            found += (one.segment for one in judged if one.is_redundant)
            judged.clear()
            yield
    judged.extend(spare.end())
    return [*found, *(one.segment for one in judged if one.is_redundant)]


def _is_referenced(segment: RemoteLogSegmentMetadata, lookup: Lookup) -> bool:
    """Whether readers use it, at the beginning or the end of one of its epochs."""
    for epoch, offset in boundaries(segment):
        served = lookup(epoch, offset)
        # Without an answer the segment that covers this one cannot be read either: keep this one.
        if served is None or served.segment_id == segment.segment_id:
            return True
    return False


def _is_abandoned(segment: RemoteLogSegmentMetadata, question: ExpiryQuestion) -> bool:
    if segment.state is not _S.COPY_SEGMENT_STARTED or segment.segment_id.id == question.being_copied:
        return False
    # Behind the end of the log: the pipeline uploads it, or the log was longer once. It will be judged when the log has
    # grown behind it, and those of the pipeline by the control plane.
    if segment.start_offset >= question.log_end:
        return False
    return segment.broker_id == question.broker_id or segment.event_timestamp_ms < question.abandoned_before_ms


def _is_unreferenced(segment: RemoteLogSegmentMetadata, question: ExpiryQuestion) -> bool:
    """All of its epochs are older than the first one of the log: left behind by an unclean election.

    Not while the epochs of the log begin above its start: then they are incomplete (the checkpoint file was lost), and
    a segment that looks unreferenced may be the only copy. Nor behind the end of the log: those are of the pipeline,
    and the epochs of a log whose topic became diskless say nothing about them.
    """
    if not question.epochs or segment.start_offset >= question.log_end:
        return False
    first, start = question.epochs[0]
    if start > question.log_start and segment.end_offset >= question.log_start:
        return False
    return all(epoch < first for epoch in segment.segment_leader_epochs)


def _expire(question: ExpiryQuestion, found: _SortedOut) -> Generator[None, None, _Walk]:
    """Retention: from the oldest segment to the first of the log that stays.

    By start offset, which is the order of leader epochs too: these segments belong to one log.
    """
    history, epochs = LogHistory(question.epochs, question.log_end), with_records(question.epochs)
    spare = {deletion.segment.segment_id.id for deletion in found.redundant}
    until = question.now_ms - question.retention_ms
    walk = _Walk(
        excess=_excess(found.log_bytes, question),
        cleanup_until_ms=until if question.retention_ms >= 0 and until >= 0 else None,
        log_start=question.log_start,
    )
    for count, segment in enumerate(question.from_oldest, 1):
        if len(walk.expired) >= found.room:
            break
        if count % AT_ONCE == 0:
            yield
        if segment.state is not _S.COPY_SEGMENT_FINISHED or segment.segment_id.id in spare:
            continue
        if segment in history and not _is_below_log_start(segment, epochs, question.log_start):
            reason = None if segment.end_offset >= question.high_watermark else _breach(segment, walk)
            if reason is None:
                walk.first_kept = segment
                break
            walk.excess = max(walk.excess - segment.segment_size_in_bytes, 0)
            walk.expired.append(Deletion(segment, reason))
            walk.log_start = max(walk.log_start, segment.end_offset + 1)
    return walk


def _excess(log_bytes: int, question: ExpiryQuestion) -> int:
    """By how many bytes the log exceeds retention.bytes, given the size of its remote segments."""
    if question.retention_bytes < 0:
        return 0
    return max(log_bytes + question.local_only_bytes + question.suffix_bytes - question.retention_bytes, 0)


def _is_below_log_start(segment: RemoteLogSegmentMetadata, epochs: Sequence[EpochEntry], log_start: Offset) -> bool:
    """Not a segment without an epoch of the log: it is not known whether that belongs to the log."""
    if segment.end_offset >= log_start or not epochs:
        return False
    # The largest of its epochs is the first of the log.
    return max(segment.segment_leader_epochs) == epochs[0][0]


def _breach(segment: RemoteLogSegmentMetadata, walk: _Walk) -> DeletionReason | None:
    if walk.cleanup_until_ms is not None and segment.max_timestamp_ms <= walk.cleanup_until_ms:
        return DeletionReason.TIME
    if 0 < segment.segment_size_in_bytes <= walk.excess:
        return DeletionReason.SIZE
    return None


def _next_due_ms(kept: RemoteLogSegmentMetadata | None, question: ExpiryQuestion) -> TimestampMs | None:
    if kept is None or question.retention_ms < 0:
        return None
    return kept.max_timestamp_ms + question.retention_ms


def _next_due_bytes(kept: RemoteLogSegmentMetadata | None, question: ExpiryQuestion) -> int | None:
    if kept is None or question.retention_bytes < 0:
        return None
    return question.retention_bytes + kept.segment_size_in_bytes
