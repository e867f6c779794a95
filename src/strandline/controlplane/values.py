"""Requests and answers of the control plane."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

from strandline.model import (
    NO_EPOCH,
    NO_OFFSET,
    NO_TIMESTAMP,
    LeaderEpoch,
    Offset,
    ProducerId,
    TimestampMs,
    TopicIdPartition,
)
from strandline.records import (
    NOT_VERIFIED,
    ProducerEntry,
    TimestampType,
    TransactionVerification,
    increment_sequence,
)


class Refusal(enum.Enum):
    """Why a request about one partition was refused. A refused request changed nothing."""

    UNKNOWN_LOG = enum.auto()
    """The topic was deleted, or is not diskless, or its log has not been created yet."""
    OFFSET_OUT_OF_RANGE = enum.auto()
    IN_PREFIX = enum.auto()
    """The offset lies in the log, but below the read boundary. Remote storage has it, or, below B0, the leader."""
    OUT_OF_ORDER_SEQUENCE = enum.auto()
    INVALID_PRODUCER_EPOCH = enum.auto()
    INVALID_TXN_STATE = enum.auto()
    """A batch outside of the transaction that its producer has open, or of one that has ended."""
    COORDINATOR_FENCED = enum.auto()
    """The marker of a transaction coordinator that was replaced."""
    STALE_FILE = enum.auto()
    """The object was marked as an orphan before it was committed: its batches must be written under another key."""
    MIGRATION_NOT_FOUND = enum.auto()
    """The switch of the topic was not requested, or was aborted, or is finished, or was requested anew since."""
    STALE_LEADER_EPOCH = enum.auto()
    """A leader of a later epoch has changed the log already."""
    BOUNDARY_IS_SET = enum.auto()
    """The partition has a B0: another one, or one that may not be reset because there are records behind it."""
    BOUNDARY_IS_UNSET = enum.auto()
    """A partition of the topic has no B0 yet."""
    NOT_MERGEABLE = enum.auto()
    """The offsets are not those of the next segment of the log."""
    CLAIMED = enum.auto()
    """Another claimant is at work on it."""
    UNKNOWN_UPLOAD = enum.auto()
    """There is no such segment under way: it was aborted, or is committed, or is another claimant's."""


class MigrationState(enum.StrEnum):
    """Which tiers hold data of a partition."""

    TIERED_ONLY = "TIERED_ONLY"
    MIGRATING = "MIGRATING"
    HYBRID = "HYBRID"
    DISKLESS_ONLY = "DISKLESS_ONLY"


class OffsetBoundary(enum.Enum):
    """Which tier holds an offset."""

    TIERED = enum.auto()
    DISKLESS = enum.auto()
    OUT_OF_RANGE = enum.auto()


# Committing


class MarkerToCommit(NamedTuple):
    """What a control batch ends: the open transaction of its producer."""

    is_abort: bool
    coordinator_epoch: int
    transaction_version: int = 0
    """That of the client whose transaction ends: epochs are judged by it."""
    start_ms: TimestampMs = NO_TIMESTAMP
    """When that transaction began; -1 if it is not known."""


class BatchToCommit(NamedTuple):
    """One record batch in a WAL object that is uploaded and has no offsets yet."""

    partition: TopicIdPartition
    byte_offset: int
    byte_size: int
    record_count: int
    """Offsets that the batch takes: last offset delta + 1."""
    max_timestamp: TimestampMs
    timestamp_type: TimestampType
    """LOG_APPEND_TIME if the topic is configured so: the commit then gives the batch its time."""
    leader_epoch: LeaderEpoch
    """The epoch in which the batch was accepted. The commit keeps it, or the log's last one if that is larger."""
    producer_id: ProducerId = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    is_transactional: bool = False
    marker: MarkerToCommit | None = None
    """Of a control batch, which is transactional too."""
    verification: TransactionVerification = NOT_VERIFIED
    """Of a transactional batch: what the transaction's coordinator said when it was taken."""

    @property
    def last_offset_delta(self) -> int:
        return self.record_count - 1

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record; -1 if the batch has no producer id."""
        return -1 if self.base_sequence < 0 else increment_sequence(self.base_sequence, self.record_count - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileToCommit:
    """An uploaded WAL object. Batches of one partition are adjacent, in the order of their arrival."""

    object_key: str
    size: int
    broker_id: int
    batches: tuple[BatchToCommit, ...]


class CommittedBatch(NamedTuple):
    """The answer to one batch. A duplicate gets the offsets of the first commit."""

    refusal: Refusal | None
    base_offset: Offset = -1
    log_append_time_ms: TimestampMs = -1
    """-1 under CreateTime; for a duplicate the largest timestamp of the first commit, as in Kafka."""
    log_start_offset: Offset = -1
    is_duplicate: bool = False
    message: str = ""
    """The reason of a refusal, for the client."""
    leader_epoch: LeaderEpoch = NO_EPOCH
    """The epoch that was kept with the batch, which readers get; -1 for a duplicate or a refused batch."""
    first_unstable_offset: Offset = NO_OFFSET
    """Where the first open transaction of the log begins, right behind this batch; -1 if none is open."""
    aborted_from: Offset = NO_OFFSET
    """Of an abort marker: where the transaction began that it ends; -1 if none was open."""
    last_aborted_offset: Offset = NO_OFFSET
    """The newest abort marker of the log, this batch included; -1 if there was none."""


# Reading


class FindBatches(NamedTuple):
    """Find the rows that hold the offsets from `offset` on."""

    partition: TopicIdPartition
    offset: Offset
    max_bytes: int
    """Rows are returned until they hold this many bytes; the first row always."""


class BatchRow(NamedTuple):
    """One or more batches of a partition that are adjacent in one object, with dense offsets.

    Their headers tell where one batch ends and the next begins.
    """

    base_offset: Offset
    last_offset: Offset
    file_id: int
    object_key: str
    byte_offset: int
    byte_size: int
    timestamp_type: TimestampType
    log_append_time_ms: TimestampMs
    max_timestamp: TimestampMs
    leader_epoch: LeaderEpoch


class FoundBatches(NamedTuple):
    """The answer to one FindBatches. A request at the high watermark gets neither rows nor a refusal."""

    refusal: Refusal | None
    log_start_offset: Offset = -1
    high_watermark: Offset = -1
    rows: tuple[BatchRow, ...] = ()
    diskless_start_offset: Offset = -1
    """The read boundary: offsets of the log below it are not in rows."""
    first_unstable_offset: Offset = NO_OFFSET
    last_aborted_offset: Offset = NO_OFFSET
    """Both as in DisklessLog."""


class AbortedRange(NamedTuple):
    """One aborted transaction: from its first record to its marker."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    last_stable_offset: Offset
    """That of the log right behind the marker: transactions that end later begin there or later."""


class FoundAborted(NamedTuple):
    """Aborted transactions in the order of their markers, and from which marker on they are all."""

    ranges: tuple[AbortedRange, ...]
    known_from: Offset
    """The start of the log or of its rows: with rows below it, aborted ranges may be gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DisklessLog:
    """The offsets of one partition across its tiers: the unified offset model.

    `diskless_log_start_offset` is B0, where the partition became diskless; it never moves (0 for a topic born
    diskless). `diskless_start_offset` is the read boundary: behind what was ever converted, and never below B0.
    While B0 is unset (-1) the log takes no batches, and only its epoch means something. What is tiered is -1 if nothing
    is in remote storage, as in DISKLESS_ONLY.
    """

    partition: TopicIdPartition
    log_start_offset: Offset
    high_watermark: Offset
    tiered_log_start_offset: Offset = -1
    tiered_high_offset: Offset = -1
    diskless_start_offset: Offset = 0
    diskless_log_start_offset: Offset = 0
    diskless_log_start_epoch: LeaderEpoch = 0
    migration_state: MigrationState = MigrationState.DISKLESS_ONLY
    byte_size: int = 0
    last_epoch: LeaderEpoch = NO_EPOCH
    """The largest that a batch ever had, which is that of the newest; before the first batch that of the leader that
    set B0, or -1 for a topic born diskless."""
    first_unstable_offset: Offset = NO_OFFSET
    """Where the first transaction begins that is open at the high watermark; -1 if none is. May be before the start."""
    last_aborted_offset: Offset = NO_OFFSET
    """The newest abort marker that there ever was; -1 if there was none."""

    @property
    def last_stable_offset(self) -> Offset:
        """Everything below it is decided: readers of committed records may see it."""
        if self.first_unstable_offset < 0:
            return self.high_watermark
        return max(self.first_unstable_offset, self.log_start_offset)

    @property
    def is_prefix_tiered(self) -> bool:
        """Whether remote storage has everything from the log start to B0, or nothing is left there."""
        boundary = self.diskless_log_start_offset
        return boundary >= 0 and (self.log_start_offset >= boundary or self.tiered_high_offset >= boundary - 1)

    def boundary_of(self, offset: Offset) -> OffsetBoundary:
        """Which tier holds an offset. The high watermark counts as diskless: the next record will be there."""
        if self.diskless_log_start_offset < 0 or not self.log_start_offset <= offset <= self.high_watermark:
            return OffsetBoundary.OUT_OF_RANGE
        return OffsetBoundary.TIERED if offset < self.diskless_start_offset else OffsetBoundary.DISKLESS


# Switching a topic from classic to diskless


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMigration:
    """A switch that was requested, and is neither finished nor aborted: a row of inkless_migration."""

    position: int
    """The order of the requests. A topic whose switch is aborted and requested again gets another one."""
    topic_id: UUID
    topic: str
    partitions: int
    """How many the topic had at the request: those from this number on are born diskless."""
    requested_at_ms: TimestampMs
    sealed_at_ms: TimestampMs | None
    """When the last partition got its B0."""
    now_ms: TimestampMs
    """The database's time of the query, by which the other moments are to be judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBoundary:
    """B0 of one partition, from the leader that has sealed its log: records from here on are diskless."""

    partition: TopicIdPartition
    position: int
    """That of the TopicMigration that the leader acts upon."""
    boundary: Offset
    leader_epoch: LeaderEpoch
    log_start_offset: Offset
    tiered_log_start_offset: Offset = -1
    tiered_high_offset: Offset = -1
    producers: Sequence[ProducerEntry]
    """Every producer of the prefix, so that its sequences continue."""


class BoundaryClaim(NamedTuple):
    """A leader that is to set B0 of a partition, sooner or later."""

    partition: TopicIdPartition
    position: int
    """Of the request, as the leader has seen it."""
    leader_epoch: LeaderEpoch


class BoundarySet(NamedTuple):
    """The answer to a NewBoundary or a reset, with what is stored: also after a refusal, if there is a log."""

    refusal: Refusal | None
    boundary: Offset = -1
    leader_epoch: LeaderEpoch = NO_EPOCH
    message: str = ""
    """The reason of a refusal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixProgress:
    """What a leader knows of the prefix of one partition."""

    partition: TopicIdPartition
    leader_epoch: LeaderEpoch
    log_start_offset: Offset
    tiered_log_start_offset: Offset
    tiered_high_offset: Offset
    state: MigrationState


# Expiring and cleaning

LATE_MS: Final = 3_600_000
"""How long after a segment was given up its bytes are deleted once more. No task writes for so long unnoticed."""


class RetentionRule(NamedTuple):
    """How long and how much of one log is kept; -1 means no limit."""

    partition: TopicIdPartition
    retention_ms: int
    retention_bytes: int


class Trimmed(NamedTuple):
    """What was deleted from the beginning of one log."""

    refusal: Refusal | None
    log_start_offset: Offset = -1
    rows_deleted: int = 0
    bytes_deleted: int = 0


class WalFile(NamedTuple):
    """A row of inkless_file."""

    file_id: int
    object_key: str
    size: int
    broker_id: int
    committed_at_ms: TimestampMs
    marked_for_deletion_at_ms: TimestampMs | None
    """None while batches refer to it."""


class ProducerBatches(NamedTuple):
    """The state of one idempotent or transactional producer in one partition."""

    producer_id: ProducerId
    producer_epoch: int
    last_sequence: int
    last_timestamp: TimestampMs
    coordinator_epoch: int = NO_EPOCH
    """Of the last transaction coordinator that ended a transaction of it; -1 if there was none."""
    txn_first_offset: Offset = NO_OFFSET
    """Where its open transaction begins; -1 if it has none."""
