"""Which remote segments are deleted, why, and where the log begins then. Pure: `expiration` carries it out.

Retention covers all tiers: the size of the log is its remote segments plus its local-only ones, plus what follows them
elsewhere. Failed and unfinished
copies do not count, neither in the size of the log nor as bytes that were deleted: counting them would make a log look
too large, and delete records that retention keeps.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from typing import Final, NamedTuple
from uuid import UUID

from strandline.model import BrokerId, LeaderEpoch, Offset, TimestampMs
from strandline.remote.manager.history import EpochEntry, Lookup, boundaries, covers, finished_in_lineage, with_records
from strandline.remote.turns import AT_ONCE
from strandline.remote.values import RemoteLogSegmentMetadata, RemoteLogSegmentState

_S: Final = RemoteLogSegmentState


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

    segments: Sequence[RemoteLogSegmentMetadata]
    """All known segments, in any state, by start offset."""
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
    """Makes the plan in small steps: there may be very many segments, and other tasks have to run meanwhile."""
    interrupted, abandoned, finished, in_lineage = yield from _sorted_out(question)
    redundant = yield from redundant_segments(in_lineage, question.lookup)
    spare = {segment.segment_id.id for segment in redundant}
    counted = [s for s in finished if s.segment_id.id not in spare] if spare else finished
    walk = yield from _expire(counted, {s.segment_id.id for s in in_lineage}, question)
    gone = {deletion.segment.segment_id.id for deletion in walk.expired}
    unreferenced: list[Deletion] = []
    for piece in _pieces(counted):
        unreferenced += [
            Deletion(s, DeletionReason.UNREFERENCED)
            for s in piece
            if s.segment_id.id not in gone and _is_unreferenced(s, question)
        ]
        yield
    return ExpiryPlan(
        log_start=walk.log_start,
        deletions=(
            *(Deletion(segment, DeletionReason.INTERRUPTED) for segment in interrupted),
            *walk.expired,
            *(Deletion(segment, DeletionReason.ABANDONED) for segment in abandoned),
            *(Deletion(segment, DeletionReason.REDUNDANT) for segment in redundant),
            *unreferenced,
        ),
        has_kept=walk.first_kept is not None,
        next_due_ms=_next_due_ms(walk.first_kept, question),
        next_due_bytes=_next_due_bytes(walk.first_kept, question),
    )


class _SortedOut(NamedTuple):
    """The segments of a question by what is to be done with them. Those being copied are in no list."""

    interrupted: list[RemoteLogSegmentMetadata]
    abandoned: list[RemoteLogSegmentMetadata]
    finished: list[RemoteLogSegmentMetadata]
    in_lineage: list[RemoteLogSegmentMetadata]
    """Those of the finished ones that belong to the log."""


def _sorted_out(question: ExpiryQuestion) -> Generator[None, None, _SortedOut]:
    found = _SortedOut([], [], [], [])
    for piece in _pieces(question.segments):
        found.interrupted.extend(s for s in piece if s.state is _S.DELETE_SEGMENT_STARTED)
        found.abandoned.extend(s for s in piece if _is_abandoned(s, question))
        finished = [s for s in piece if s.state is _S.COPY_SEGMENT_FINISHED]
        found.finished.extend(finished)
        found.in_lineage.extend(finished_in_lineage(finished, question.epochs, question.log_end))
        yield
    return found


def _pieces(segments: Sequence[RemoteLogSegmentMetadata]) -> Iterator[Sequence[RemoteLogSegmentMetadata]]:
    return (segments[at : at + AT_ONCE] for at in range(0, len(segments), AT_ONCE))


def redundant_segments(
    in_lineage: Sequence[RemoteLogSegmentMetadata], lookup: Lookup
) -> Generator[None, None, list[RemoteLogSegmentMetadata]]:
    """Of the copied segments of a log, by start offset, those that another one covers and no reader uses.

    They come from two leaders that copied the same records one after the other, or from a copy whose confirmation was
    lost. Of two equal segments, readers use one; that one stays.
    """
    found: list[RemoteLogSegmentMetadata] = []
    reach: list[RemoteLogSegmentMetadata] = []  # earlier segments that may cover later ones
    for index, segment in enumerate(in_lineage):
        reach = [other for other in reach if other.end_offset >= segment.start_offset]
        beside = (*reach, *_beginning_with(in_lineage, index))
        if any(covers(other, segment) for other in beside) and not _is_referenced(segment, lookup):
            found.append(segment)
        else:
            reach.append(segment)
        if index % AT_ONCE == 0:
            yield
    return found


def _beginning_with(segments: Sequence[RemoteLogSegmentMetadata], index: int) -> Iterator[RemoteLogSegmentMetadata]:
    """The later segments that begin at the same offset."""
    start = segments[index].start_offset
    while (index := index + 1) < len(segments) and segments[index].start_offset == start:
        yield segments[index]


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


def _expire(
    segments: Sequence[RemoteLogSegmentMetadata], in_lineage: Set[UUID], question: ExpiryQuestion
) -> Generator[None, None, _Walk]:
    """Retention: from the oldest segment to the first of the log that stays."""
    epochs = with_records(question.epochs)
    until = question.now_ms - question.retention_ms
    walk = _Walk(
        excess=_excess((s for s in segments if s.segment_id.id in in_lineage), question),
        cleanup_until_ms=until if question.retention_ms >= 0 and until >= 0 else None,
        log_start=question.log_start,
    )
    for count, segment in enumerate((yield from _by_epoch(segments, epochs)), 1):
        if count % AT_ONCE == 0:
            yield
        if _is_below_log_start(segment, epochs, question.log_start):
            walk.expired.append(Deletion(segment, DeletionReason.LOG_START))
        elif segment.segment_id.id in in_lineage:
            reason = None if segment.end_offset >= question.high_watermark else _breach(segment, walk)
            if reason is None:
                walk.first_kept = segment
                break
            walk.excess = max(walk.excess - segment.segment_size_in_bytes, 0)
            walk.expired.append(Deletion(segment, reason))
            walk.log_start = max(walk.log_start, segment.end_offset + 1)
    return walk


def _by_epoch(
    segments: Sequence[RemoteLogSegmentMetadata], epochs: Sequence[EpochEntry]
) -> Generator[None, None, Iterator[RemoteLogSegmentMetadata]]:
    """All segments, each once, by epoch and start offset."""
    grouped: dict[LeaderEpoch, list[RemoteLogSegmentMetadata]] = {epoch: [] for epoch, _ in epochs}
    for piece in _pieces(segments):
        for segment in piece:
            first = next((epoch for epoch in segment.segment_leader_epochs if epoch in grouped), None)
            if first is not None:
                grouped[first].append(segment)
        yield
    return chain.from_iterable(grouped.values())


def _excess(segments: Iterable[RemoteLogSegmentMetadata], question: ExpiryQuestion) -> int:
    """By how many bytes the log exceeds retention.bytes, given all of its remote segments."""
    if question.retention_bytes < 0:
        return 0
    remote = sum(segment.segment_size_in_bytes for segment in segments if segment.end_offset >= question.log_start)
    return max(remote + question.local_only_bytes + question.suffix_bytes - question.retention_bytes, 0)


def _is_below_log_start(segment: RemoteLogSegmentMetadata, epochs: Sequence[EpochEntry], log_start: Offset) -> bool:
    return segment.end_offset < log_start and all(epoch <= epochs[0][0] for epoch in segment.segment_leader_epochs)


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
