"""Requests and answers of the control plane about the conversion of diskless batches into tiered segments."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

from strandline.controlplane.values import DisklessLog, Refusal
from strandline.model import LeaderEpoch, Offset, TimestampMs, TopicIdPartition

LATE_SPLITS_MS: Final = 120_000
"""How long after the first look for split files of a run comes the second: a task that was cancelled has ended then."""


EpochStart = tuple[LeaderEpoch, Offset]
"""A leader epoch, and the first offset of it."""


class TieringRule(NamedTuple):
    """When batches of one topic may be converted: once they are older than its local.retention.ms."""

    topic_id: UUID
    local_retention_ms: int
    """-1: only what was triggered."""


class TopicTiering(NamedTuple):
    """What operators have asked for a topic."""

    is_paused: bool = False
    triggered_at_ms: TimestampMs | None = None
    """Batches that were committed before are converted whatever their age."""


# Splitting


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimWish:
    """Which WAL files a claimant wants: those with rows that may be converted, oldest first."""

    claimant: str
    max_files: int
    max_rows: int
    """Stop before the file with which there would be more rows; the first file always counts."""
    claim_ms: int
    after_file_id: int = 0
    """Look only at files behind this one."""
    topics: tuple[str, ...] = ()
    """Only rows of these topics; empty: of all."""


class RowToSplit(NamedTuple):
    """One or more batches of a partition that lie side by side in a WAL object, with dense offsets."""

    base_offset: Offset
    last_offset: Offset
    byte_offset: int
    byte_size: int
    timestamp_type: int
    """0: CreateTime, 1: LogAppendTime, and then `log_append_time_ms` is the time of all its records."""
    log_append_time_ms: TimestampMs
    max_timestamp: TimestampMs
    leader_epoch: LeaderEpoch


class SplitPlan(NamedTuple):
    """What one split file is to be made of: rows of one partition with dense offsets, in their order."""

    partition: TopicIdPartition
    rows: tuple[RowToSplit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileToSplit:
    """A WAL file that the claimant may split, and what of it."""

    file_id: int
    object_key: str
    size: int
    expires_at_ms: TimestampMs
    splits: tuple[SplitPlan, ...]


class GrantedClaims(NamedTuple):
    """The answer to a ClaimWish."""

    files: tuple[FileToSplit, ...]
    next_file_id: int
    """Where to go on (`after_file_id`); 0 if the last file was looked at."""


class HeldClaims(NamedTuple):
    """How many claims a claimant has."""

    files: int
    segments: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitObject:
    """A split file: batches of one partition, exactly as they will be in a segment. Offsets are dense."""

    object_key: str
    base_offset: Offset
    last_offset: Offset
    size_bytes: int
    batch_count: int
    max_timestamp: TimestampMs
    leader_epochs: tuple[EpochStart, ...]
    """Ascending. The first begins at `base_offset`."""


class WrittenSplit(NamedTuple):
    """A split file that was written, and the partition that it belongs to."""

    partition: TopicIdPartition
    file: SplitObject


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitsToRecord:
    """The split files of some WAL files are written."""

    claimant: str
    object_keys: tuple[str, ...]
    """Of the WAL files."""
    splits: tuple[WrittenSplit, ...]


class SplitAnswer(NamedTuple):
    """The answer to SplitsToRecord. What was recorded before is not refused."""

    refused: Mapping[str, str]
    """Keys of split files that do not count, with a sentence each. Brokers delete them."""
    files_done: tuple[str, ...]
    """The WAL files of which nothing is left to split. Other rows of the others may become eligible later."""


# Merging


class UploadState(enum.StrEnum):
    """How far a segment of the pipeline is. The control plane decides, so that leaders cannot disagree."""

    UPLOADING = "UPLOADING"
    """Its bytes are on their way; the claim may expire."""
    FINISHING = "FINISHING"
    """Its bytes are there: it will be finished, by whichever broker leads the partition."""
    ABORTING = "ABORTING"
    """It will not be finished: its bytes are being deleted."""


class PendingSplit(NamedTuple):
    """A split file that waits to be merged."""

    file: SplitObject
    created_at_ms: TimestampMs
    committed_at_ms: TimestampMs
    """When the newest of its batches was committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSplits:
    """The split files of one log with dense offsets, from where its segments end."""

    log: DisklessLog
    tiering: TopicTiering
    splits: tuple[PendingSplit, ...]
    next_upload_offset: Offset
    """Where the next segment begins: behind the segments, and behind those that are under way."""
    now_ms: TimestampMs


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentUpload:
    """A segment of the pipeline that is not in the log yet: a row of inkless_tiering_segment."""

    partition: TopicIdPartition
    segment_id: UUID
    base_offset: Offset
    last_offset: Offset
    size_bytes: int
    claimant: str
    leader_epoch: LeaderEpoch
    """Of the leader that has last touched it."""
    state: UploadState
    expires_at_ms: TimestampMs
    custom_metadata: bytes | None = None
    """What the storage returned for its bytes."""


class GivenUpSegment(NamedTuple):
    """A segment that is in no log and never will be: a row of inkless_tiering_given_up."""

    partition: TopicIdPartition
    """Its topic may be deleted."""
    segment_id: UUID
    base_offset: Offset
    last_offset: Offset
    due_at_ms: TimestampMs


class GivenUpRun(NamedTuple):
    """A run of the pipeline without claims, which may have left split files: a row of inkless_split_run."""

    claimant: str
    claims: int
    """How often it has claimed."""
    first_claim_at_ms: TimestampMs
    is_seen: bool
    """Whether its split files were looked for before, after its last claim was gone."""
    now_ms: TimestampMs


class UploadAnswer(NamedTuple):
    """The answer to a leader that begins, finishes or aborts a segment."""

    refusal: Refusal | None
    upload: SegmentUpload | None = None
    """As it is now; None if there is none."""
    splits: tuple[SplitObject, ...] = ()
    """Of the segment, when it begins."""
    message: str = ""
    """The reason of a refusal, a sentence."""


class SegmentCommit(NamedTuple):
    """The answer to a leader that moves the read boundary behind a segment."""

    refusal: Refusal | None
    diskless_start_offset: Offset = -1
    rows_deleted: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTieringProgress:
    """How much of one log is converted, split, or neither."""

    log: DisklessLog
    tiering: TopicTiering
    eligible_rows: int
    eligible_bytes: int
    split_rows: int
    """Split, and not in a segment."""
    split_files: int
