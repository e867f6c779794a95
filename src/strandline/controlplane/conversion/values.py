"""Requests and answers of the control plane about the conversion of diskless batches into tiered segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

from strandline.controlplane.values import DisklessLog, Refusal
from strandline.model import LeaderEpoch, Offset, TimestampMs, TopicIdPartition
from strandline.tiering_api.values import SplitFile, UploadState

LATE_MS: Final = 3_600_000
"""How long after a segment was given up its bytes are deleted once more. No task writes for so long unnoticed."""
LATE_SPLITS_MS: Final = 120_000
"""How long after the first look for split files of a run comes the second: a task that was cancelled has ended then."""


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


class PendingSplit(NamedTuple):
    """A split file that waits to be merged."""

    file: SplitFile
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
    splits: tuple[SplitFile, ...] = ()
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
