"""Requests and answers of the tiering API.

Offsets and sizes are those of the control plane; every moment is the database's time. A claimant is a string that the
pipeline makes up once for each run: requests with the same string come from the same claimant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

from strandline.model import BrokerId, LeaderEpoch, Offset, ProducerId, TimestampMs, TopicIdPartition

API_VERSION: Final = 2
EpochStart = tuple[LeaderEpoch, Offset]
"""A leader epoch, and the first offset of it."""


# The cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettings:
    """The settings inkless.tiering.* of the broker that was asked."""

    splitter_interval_ms: int
    splitter_max_files_per_run: int
    splitter_claim_duration_ms: int
    merger_interval_ms: int
    merger_initial_delay_ms: int
    min_segment_bytes: int
    max_segment_bytes: int
    max_batches_per_run: int
    merger_max_wait_ms: int
    task_buffer_bytes: int
    alert_after_failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    """Which cluster this is, and how to reach its stores."""

    api_version: int
    broker_id: BrokerId
    cluster_id: str
    store_settings: Mapping[str, str]
    """The settings that open the object store and remote storage, as in a broker's properties file. No passwords."""
    pipeline: PipelineSettings


# Splitting


class PlannedRow(NamedTuple):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSplit:
    """What one split file is made of: rows of one partition with dense offsets, in their order."""

    partition: TopicIdPartition
    rows: tuple[PlannedRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedFile:
    """A WAL object that the claimant may split, and what of it."""

    file_id: int
    object_key: str
    size: int
    expires_at_ms: TimestampMs
    splits: tuple[PlannedSplit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFiles:
    """Claim WAL objects with rows that may be converted, oldest first."""

    claimant: str
    max_files: int
    max_rows: int
    """Stop before the file with which there would be more rows; the first file always counts."""
    claim_ms: int
    after_file_id: int = 0
    """Look only at files behind this one."""
    topics: tuple[str, ...] = ()
    """Only rows of these topics; empty: of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedFiles:
    """The answer to `ClaimFiles`."""

    files: tuple[ClaimedFile, ...]
    next_file_id: int
    """Where to go on (`after_file_id`); 0 if the last file was looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitFile:
    """An object with batches of one partition, exactly as they will be in a segment. Offsets are dense."""

    object_key: str
    base_offset: Offset
    last_offset: Offset
    size_bytes: int
    batch_count: int
    max_timestamp: TimestampMs
    leader_epochs: tuple[EpochStart, ...]
    """Ascending. The first begins at `base_offset`."""


class NewSplit(NamedTuple):
    """A split file that was written, and the partition that it belongs to."""

    partition: TopicIdPartition
    file: SplitFile


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSplits:
    """The split files of some WAL objects are written."""

    claimant: str
    object_keys: tuple[str, ...]
    """Of the WAL objects."""
    splits: tuple[NewSplit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSplits:
    """The answer to `RecordSplits`. What was recorded before is not refused."""

    refused: Mapping[str, str]
    """Keys of split files that do not count, with a sentence each. Brokers delete them."""
    files_done: tuple[str, ...]
    """The WAL objects of which nothing is left to split. Other rows of the others may become eligible later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseFiles:
    """Give up claims, so that another claimant can take the files at once."""

    claimant: str
    object_keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewClaims:
    """The claimant is at work: its claims last for another `claim_ms`. `failing`: how many things need an operator."""

    claimant: str
    claim_ms: int
    failing: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewedClaims:
    """The answer to `RenewClaims`: how many claims there are."""

    files: int
    segments: int


# Merging


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTriggers:
    """Which topics are to be converted whatever the age of their records."""

    topics: tuple[str, ...] = ()
    """Only these; empty: all diskless ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Triggers:
    """The answer to `ListTriggers`."""

    triggered_at_ms: Mapping[str, TimestampMs]
    """By topic: what was committed until then. Topics that are paused are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListMerges:
    """Which split files can be merged into segments now?"""

    topics: tuple[str, ...] = ()
    """Of these topics; empty: of all."""
    max_ranges: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRange:
    """Split files that are to become one segment. The first of a partition begins where its segments end."""

    partition: TopicIdPartition
    base_offset: Offset
    last_offset: Offset
    size_bytes: int
    splits: tuple[SplitFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRanges:
    """The answer to `ListMerges`: ranges of one partition follow each other."""

    ranges: tuple[MergeRange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginSegment:
    """Announce a segment, to the leader of its partition. Repeated, it gives the same answer.

    It begins where the segments of the partition end, or the last one that the same claimant has begun.
    """

    claimant: str
    partition: TopicIdPartition
    base_offset: Offset
    last_offset: Offset
    claim_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentDescription:
    """A segment in remote storage, or on its way there: what its metadata says."""

    segment_id: UUID
    start_offset: Offset
    end_offset: Offset
    max_timestamp_ms: TimestampMs
    broker_id: BrokerId
    event_timestamp_ms: TimestampMs
    segment_size_in_bytes: int
    leader_epochs: tuple[EpochStart, ...]
    custom_metadata: bytes | None = None
    txn_index_empty: bool = True


class SegmentAbort(NamedTuple):
    """A transaction whose abort marker is in a segment: an entry of its transaction index, which has them in order."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    last_stable_offset: Offset


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunSegment:
    """The answer to `BeginSegment`: what to build, and from what."""

    partition: TopicIdPartition
    leader_epoch: LeaderEpoch
    segment: SegmentDescription
    splits: tuple[SplitFile, ...]
    previous: SegmentDescription | None
    """The segment that ends where this one begins: its producers and leader epochs go on; None: they begin empty."""
    index_interval_bytes: int
    producer_id_expiration_ms: int
    aborted: tuple[SegmentAbort, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitSegment:
    """All bytes of a segment are in remote storage. To the leader. Repeated, it gives the same answer."""

    claimant: str
    partition: TopicIdPartition
    segment_id: UUID
    end_offset: Offset
    custom_metadata: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedSegment:
    """The answer to `CommitSegment`."""

    diskless_start_offset: Offset
    """Offsets below it are read from segments from now on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortSegment:
    """A segment, and those that the claimant began behind it, will not be finished. To the leader."""

    claimant: str
    partition: TopicIdPartition
    segment_id: UUID


# Topics


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTieringStatus:
    """How far one partition is converted."""

    partition: int
    tiered_high_offset: Offset
    diskless_start_offset: Offset
    high_watermark: Offset
    pending_batches_count: int
    """Rows that are eligible and not split."""
    pending_split_files_count: int
    """Split files that are not merged."""
    eligible_bytes: int
    """Of the rows that are eligible and not split."""
    lag_bytes: int
    """Of all rows: what is not converted, eligible or not."""
    pending_merge_batches_count: int = 0
    """Rows that are split and not merged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TieringStatus:
    """How far a topic is converted. Counts are sums over its partitions; offsets are of the one that is least far."""

    topic_name: str
    tiered_high_offset: Offset
    diskless_start_offset: Offset
    high_watermark: Offset
    pending_batches_count: int
    pending_split_files_count: int
    eligible_bytes: int
    is_paused: bool
    lag_bytes: int = 0
    pending_merge_batches_count: int = 0
    triggered_at_ms: TimestampMs | None = None
    """Records that were written before are converted whatever their age; None if the topic was not triggered."""
    partitions: tuple[PartitionTieringStatus, ...] = ()


# Reading topics without brokers in the way


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRead:
    """Where are the records of a partition, from an offset on? To the leader of the partition."""

    topic: str
    partition: int
    from_offset: Offset = 0
    max_rows: int = 10_000


class PlacedRow(NamedTuple):
    """Batches in a WAL object."""

    object_key: str
    row: PlannedRow


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """The answer to `PlanRead`, as of one moment. Its parts do not overlap and leave no offset out, up to `end_offset`.

    Extents in this order: what is only on the broker's disk (`local_ranges`, to be fetched from the broker) and remote
    segments lie below `diskless_start_offset`, rows from there on.
    """

    partition: TopicIdPartition
    log_start_offset: Offset
    high_watermark: Offset
    diskless_start_offset: Offset
    segments: tuple[SegmentDescription, ...]
    """Ascending; of a segment, the offsets count that the one before it does not have."""
    local_ranges: tuple[tuple[Offset, Offset], ...]
    """First and last offset of what the broker has to be asked for."""
    rows: tuple[PlacedRow, ...]
    end_offset: Offset
    """Where the plan ends, exclusive. Below `high_watermark` if there were more rows: ask again from here."""
