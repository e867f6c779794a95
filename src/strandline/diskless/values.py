"""Requests and results of the writer and the reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from strandline.controlplane import AbortedRange, MarkerToCommit
from strandline.errors import InvalidRecord, KafkaStorageError, NotLeaderOrFollower, StrandlineError
from strandline.model import NO_OFFSET, LeaderEpoch, Offset, TimestampMs, TopicIdPartition
from strandline.reads import FetchIsolation
from strandline.records import NOT_VERIFIED, BatchHeader, TimestampType, TransactionVerification, read_marker
from strandline.records.slices import MemorySlices as MemorySlices


class DisklessAppend(NamedTuple):
    """One valid batch of a producer, to be written to the next WAL object.

    The buffer belongs to the writer from here on: it is uploaded as it is, and gets its offsets after the commit.
    """

    partition: TopicIdPartition
    buffer: bytearray | memoryview
    header: BatchHeader
    timestamp_type: TimestampType
    leader_epoch: LeaderEpoch
    marker: MarkerToCommit | None = None
    """Of a control batch: what it ends."""
    verification: TransactionVerification = NOT_VERIFIED
    """Of a transactional batch: what the transaction's coordinator has said."""


class DisklessAppended(NamedTuple):
    """The offsets of a committed batch. A duplicate gets those of the first commit."""

    base_offset: Offset
    log_append_time_ms: TimestampMs
    log_start_offset: Offset


# Called on the event loop, once.
AppendDone: TypeAlias = Callable[[DisklessAppended | StrandlineError], None]


class DisklessRead(NamedTuple):
    """Read one partition from `offset` on."""

    partition: TopicIdPartition
    offset: Offset
    max_bytes: int
    isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK


class BelowReadBoundary(NotLeaderOrFollower):
    """The offset is in the log, but not in rows: in remote segments, or on the disk of a broker.

    Not OffsetOutOfRange, upon which consumers would skip records that exist.
    """


class WalObjectUnreadable(KafkaStorageError):
    """The object store did not give the bytes of a row, however often it was asked. It may do so later."""


class WalObjectGone(KafkaStorageError):
    """An object that a row refers to is not there: the row may be gone too, or the object is lost."""


class CommittedBlock(NamedTuple):
    """The batches of one committed row, still in memory, with their offsets: from the writer to the reader."""

    partition: TopicIdPartition
    base_offset: Offset
    last_offset: Offset
    batches: tuple[bytearray | memoryview, ...]
    max_timestamp: TimestampMs
    first_unstable_offset: Offset = NO_OFFSET
    """Where the first open transaction of the log begins, right behind the row; -1 if none is open."""
    last_aborted_offset: Offset = NO_OFFSET
    """The newest abort marker of the log, right behind the row; -1 if there was none."""
    aborted: tuple[AbortedRange, ...] = ()
    """The transactions that markers in the row have aborted."""


class CommitListener(Protocol):
    """Gets the batches that this broker has just committed."""

    def committed(
        self, blocks: Sequence[CommittedBlock], *, log_start_offsets: Sequence[Offset], object_key: str
    ) -> None:
        """New rows, in the order of their offsets for each partition; and the last object of the commit.

        Called on the event loop, before producers are answered: a producer that has its answer can read its record.
        """


def marker_to_commit(control_batch: memoryview, transaction_version: int, start_ms: TimestampMs) -> MarkerToCommit:
    """What a control batch ends. Raises InvalidRecord: a diskless log takes no other control records."""
    marker = read_marker(control_batch)
    if marker is None:
        raise InvalidRecord("A diskless topic takes no control records but the markers of transactions.")
    return MarkerToCommit(marker.is_abort, marker.coordinator_epoch, transaction_version, start_ms)
