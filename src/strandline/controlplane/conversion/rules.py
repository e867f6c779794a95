"""What may be split and merged, and what a segment changes in its log: rules, without a database.

The caller has locked what it asks about, and stores the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final, NamedTuple
from uuid import UUID

from strandline.controlplane.conversion.values import (
    PendingSplit,
    RowToSplit,
    SegmentUpload,
    SplitPlan,
    TieringRule,
    TopicTiering,
    UploadState,
    WrittenSplit,
)
from strandline.controlplane.values import DisklessLog, MigrationState, Refusal
from strandline.model import LeaderEpoch, Offset, TimestampMs, TopicIdPartition

NEVER: Final = -(1 << 62)


# Splitting


class Cutoff(NamedTuple):
    """A rule at one moment: which rows of a topic are old enough."""

    topic_id: UUID
    older_than_ms: TimestampMs
    """Its newest record, or its commit, is older than this."""
    committed_until_ms: TimestampMs
    """Or it was committed until then."""


def cutoffs_of(
    rules: Iterable[TieringRule], wishes: Mapping[UUID, TopicTiering], *, now_ms: TimestampMs, with_paused: bool = False
) -> list[Cutoff]:
    """The rules as of now, without those by which nothing is eligible."""
    cutoffs = []
    for rule in rules:
        wish = wishes.get(rule.topic_id, TopicTiering())
        if wish.is_paused and not with_paused:
            continue
        older_than = now_ms - rule.local_retention_ms if rule.local_retention_ms >= 0 else NEVER
        until = NEVER if wish.triggered_at_ms is None else wish.triggered_at_ms
        if max(older_than, until) != NEVER:
            cutoffs.append(Cutoff(rule.topic_id, older_than, until))
    return cutoffs


def planned_splits(rows: Sequence[tuple[TopicIdPartition, RowToSplit]]) -> tuple[SplitPlan, ...]:
    """The eligible rows of one file, which come in the order of partition and offset: a split for each dense run."""
    splits = []
    for partition, of_partition in groupby(rows, key=lambda item: item[0]):
        run: list[RowToSplit] = []
        for _, row in of_partition:
            if run and row.base_offset != run[-1].last_offset + 1:
                splits.append(SplitPlan(partition, tuple(run)))
                run = []
            run.append(row)
        splits.append(SplitPlan(partition, tuple(run)))
    return tuple(splits)


class UnsplitRow(NamedTuple):
    """A DISKLESS row of a file whose splits are recorded."""

    file_id: int
    log_id: int
    base_offset: Offset
    last_offset: Offset
    byte_size: int
    committed_at_ms: TimestampMs


def rows_of_split(
    split: WrittenSplit, unsplit: Mapping[tuple[UUID, int], Mapping[Offset, UnsplitRow]]
) -> list[UnsplitRow] | str:
    """The rows that a split file is made of; or the reason why it does not count. `unsplit`: by first offsets."""
    partition, file = split
    rows = unsplit.get((partition.topic_id, partition.partition), {})
    found: list[UnsplitRow] = []
    offset = file.base_offset
    while offset <= file.last_offset and offset in rows:
        found.append(rows[offset])
        offset = found[-1].last_offset + 1
    if offset != file.last_offset + 1 or not found:
        return (
            f"Offsets {file.base_offset} to {file.last_offset} of {partition.topic_partition} are not batches of these "
            f"WAL objects that wait to be split: they were deleted, or split before."
        )
    size = sum(row.byte_size for row in found)
    if size != file.size_bytes:
        return (
            f"The split file of offsets {file.base_offset} to {file.last_offset} of {partition.topic_partition} has "
            f"{file.size_bytes} bytes, but its batches have {size}."
        )
    return found


# Merging


def next_segment_offset(log: DisklessLog, uploads: Iterable[SegmentUpload]) -> Offset:
    """The first offset that the next segment of a log has to hold: behind its segments and those under way.

    Not below the log start: if that has passed them, offsets in between are gone.
    """
    ends = (upload.last_offset + 1 for upload in uploads if upload.state is not UploadState.ABORTING)
    return max(log.log_start_offset, log.diskless_start_offset, *ends)


def dense_splits(splits: Iterable[PendingSplit], start: Offset) -> tuple[PendingSplit, ...]:
    """Split files from the one that holds `start` up to the first gap. `splits` come in the order of their offsets."""
    dense: list[PendingSplit] = []
    for split in splits:
        expected = dense[-1].file.last_offset + 1 if dense else start
        if split.file.last_offset < expected:
            continue
        if split.file.base_offset > expected or (dense and split.file.base_offset != expected):
            break
        dense.append(split)
    return tuple(dense)


def is_mergeable(log: DisklessLog) -> bool:
    """Whether the prefix of a log is copied or gone, which has to be so first, also if its switch was ended by force.

    The first segment behind it goes on with the producers and leader epochs of the last one of the prefix, and
    `tiered_high_offset` must not jump over what is not copied.
    """
    return log.migration_state is not MigrationState.MIGRATING and log.is_prefix_tiered


def is_paused(log: DisklessLog, wishes: Mapping[UUID, TopicTiering]) -> bool:
    """Whether operators have paused the conversion of the log's topic."""
    return wishes.get(log.partition.topic_id, TopicTiering()).is_paused


def stale_leader(upload: SegmentUpload, leader_epoch: LeaderEpoch) -> str:
    """The reason why a leader is too old for an upload; empty if it is not."""
    if leader_epoch >= upload.leader_epoch:
        return ""
    return (
        f"Leader epoch {leader_epoch} of {upload.partition.topic_partition} is older than {upload.leader_epoch}, "
        f"which is known."
    )


def is_next_to_finish(upload: SegmentUpload, uploads: Iterable[SegmentUpload]) -> bool:
    """Segments are finished in the order of their offsets: those before it have to be FINISHING, or committed."""
    before = (other for other in uploads if other.base_offset < upload.base_offset)
    return all(other.state is not UploadState.UPLOADING for other in before)


def judge_commit(log: DisklessLog, upload: SegmentUpload | None, uploads: Iterable[SegmentUpload]) -> Refusal | None:
    """Whether a segment becomes part of the log now."""
    if upload is None or upload.state is not UploadState.FINISHING:
        return Refusal.UNKNOWN_UPLOAD
    is_first = all(
        other.base_offset >= upload.base_offset for other in uploads if other.state is not UploadState.ABORTING
    )
    reached = max(log.diskless_start_offset, log.log_start_offset)
    if not is_first or not log.diskless_start_offset <= upload.base_offset <= reached:
        return Refusal.NOT_MERGEABLE
    return None


def with_segment(log: DisklessLog, upload: SegmentUpload) -> DisklessLog:
    """The log once a segment is part of it. Its log start stays."""
    return replace(
        log,
        tiered_log_start_offset=upload.base_offset if log.tiered_log_start_offset < 0 else log.tiered_log_start_offset,
        tiered_high_offset=upload.last_offset,
        diskless_start_offset=upload.last_offset + 1,
        migration_state=MigrationState.HYBRID,
    )
