"""Remote log metadata as values, named as in KIP-405: segments, their states, deletions of partitions. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from strandline.model import BrokerId, LeaderEpoch, Offset, TimestampMs, TopicIdPartition, uuid_to_text


class RemoteLogSegmentId(NamedTuple):
    """One attempt to copy a segment: every attempt has an id of its own."""

    partition: TopicIdPartition
    id: UUID


class RemoteLogSegmentState(IntEnum):
    """Where a remote segment is in its life. Numbers as on the wire."""

    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


class RemotePartitionDeleteState(IntEnum):
    """The state of the deletion of all remote segments of a partition. Numbers as on the wire."""

    DELETE_PARTITION_MARKED = 0
    DELETE_PARTITION_STARTED = 1
    DELETE_PARTITION_FINISHED = 2


_S: Final = RemoteLogSegmentState
_SEGMENT_MOVES: Final[Mapping[RemoteLogSegmentState | None, frozenset[RemoteLogSegmentState]]] = {
    None: frozenset({_S.COPY_SEGMENT_STARTED}),
    _S.COPY_SEGMENT_STARTED: frozenset({_S.COPY_SEGMENT_FINISHED, _S.DELETE_SEGMENT_STARTED}),
    _S.COPY_SEGMENT_FINISHED: frozenset({_S.DELETE_SEGMENT_STARTED}),
    _S.DELETE_SEGMENT_STARTED: frozenset({_S.DELETE_SEGMENT_FINISHED}),
    _S.DELETE_SEGMENT_FINISHED: frozenset(),
}


def is_legal_segment_move(source: RemoteLogSegmentState | None, target: RemoteLogSegmentState) -> bool:
    """Whether a segment may go from one state to the other; None is before its first. Staying is always legal."""
    return source is target or target in _SEGMENT_MOVES[source]


def is_legal_partition_move(source: RemotePartitionDeleteState | None, target: RemotePartitionDeleteState) -> bool:
    """The same for the deletion of a partition: one step at a time, or none."""
    if source is None:
        return target is RemotePartitionDeleteState.DELETE_PARTITION_MARKED
    return target - source in (0, 1)


class IndexType(Enum):
    """The files beside the log of a segment. Values are the suffixes of their names."""

    OFFSET = "index"
    TIMESTAMP = "timeindex"
    TRANSACTION = "txnindex"
    PRODUCER_SNAPSHOT = "snapshot"
    LEADER_EPOCH = "leader_epoch_checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogSegmentMetadata:
    """One segment in remote storage."""

    segment_id: RemoteLogSegmentId
    start_offset: Offset
    end_offset: Offset
    """The last offset of the segment, inclusive."""
    max_timestamp_ms: TimestampMs
    broker_id: BrokerId
    event_timestamp_ms: TimestampMs
    segment_size_in_bytes: int
    """Of the log file alone."""
    segment_leader_epochs: Mapping[LeaderEpoch, Offset]
    """Ascending: the epochs of the segment, and where each begins in it. The first begins at `start_offset`."""
    state: RemoteLogSegmentState = RemoteLogSegmentState.COPY_SEGMENT_STARTED
    custom_metadata: bytes | None = None
    txn_index_empty: bool = False

    @property
    def partition(self) -> TopicIdPartition:
        return self.segment_id.partition

    def end_of_epoch(self, epoch: LeaderEpoch) -> Offset:
        """The last offset of a leader epoch in the segment."""
        later = [start for other, start in self.segment_leader_epochs.items() if other > epoch]
        return min(later) - 1 if later else self.end_offset

    def updated(self, update: RemoteLogSegmentMetadataUpdate) -> RemoteLogSegmentMetadata:
        """The segment after an update of its state, which must be a legal move."""
        if update.segment_id != self.segment_id or not is_legal_segment_move(self.state, update.state):
            name = uuid_to_text(update.segment_id.id)
            raise ValueError(f"Remote segment {name} cannot go from {self.state.name} to {update.state.name}.")
        return replace(
            self,
            broker_id=update.broker_id,
            event_timestamp_ms=update.event_timestamp_ms,
            custom_metadata=update.custom_metadata,
            state=update.state,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogSegmentMetadataUpdate:
    """A segment has reached another state."""

    segment_id: RemoteLogSegmentId
    event_timestamp_ms: TimestampMs
    state: RemoteLogSegmentState
    broker_id: BrokerId
    custom_metadata: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePartitionDeleteMetadata:
    """The deletion of a partition has reached a state."""

    partition: TopicIdPartition
    state: RemotePartitionDeleteState
    event_timestamp_ms: TimestampMs
    broker_id: BrokerId


class RemoteSummary(NamedTuple):
    """Number and size of the remote segments of a partition."""

    segments: int = 0
    """In any state."""
    finished_bytes: int = 0
    deleting_segments: int = 0
    deleting_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSegmentData:
    """The files of a closed local segment, to be copied. They do not change until the copy has ended."""

    log_segment: Path
    offset_index: Path
    time_index: Path
    transaction_index: Path | None
    """None if no transaction was aborted in the segment."""
    producer_snapshot_index: Path
    """The state of all producers at the end of the segment."""
    leader_epoch_index: bytes
    """All epochs of the log from its beginning to the end of the segment, as a leader-epoch-checkpoint file."""
