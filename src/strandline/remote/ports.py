"""What `RemoteLogManager` and the reader ask of remote storage and of remote log metadata: the interfaces of KIP-405.

Implementations are chosen by class name (`remote.log.storage.manager.class.name`,
`remote.log.metadata.manager.class.name`) and get the settings behind their prefix.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable
from uuid import UUID

from strandline.model import LeaderEpoch, Offset, TimestampMs, TopicIdPartition
from strandline.objects.store import Buffer
from strandline.remote.values import (
    IndexType,
    LogSegmentData,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
    RemoteSummary,
)


class RemoteStorageError(Exception):
    """A request to remote storage, or to remote log metadata, failed. Trying again may help."""


class RemoteResourceNotFound(RemoteStorageError):
    """There is no such segment or index. Trying again does not help."""


class RemoteStorageManager(Protocol):
    """Keeps segments. Every call ends within a deadline, in an answer or in a RemoteStorageError; calls may run at
    the same time. Copying and deleting may be repeated: a copy overwrites an earlier one, a deleted segment stays
    deleted.
    """

    @property
    def url(self) -> str:
        """Where the segments are, for messages; without credentials."""

    async def copy_log_segment_data(self, metadata: RemoteLogSegmentMetadata, data: LogSegmentData) -> bytes | None:
        """Copy a segment with its indexes. All of it is durable when this returns.

        The returned bytes are kept in the segment's metadata (`custom_metadata`), for later calls.
        """

    async def fetch_log_segment(self, metadata: RemoteLogSegmentMetadata, start: int, length: int) -> Buffer:
        """`length` bytes of the log from position `start` on; fewer only at its end. Raises RemoteResourceNotFound."""

    async def fetch_index(self, metadata: RemoteLogSegmentMetadata, index_type: IndexType) -> bytes:
        """One whole index. Raises RemoteResourceNotFound, also for a transaction index that the segment lacks."""

    async def delete_log_segment_data(self, metadata: RemoteLogSegmentMetadata) -> None:
        """Delete a segment with its indexes. No error if it is deleted already, or was never copied completely."""

    async def close(self) -> None:
        """Close connections."""


@runtime_checkable
class LocalSegmentFiles(Protocol):
    """Optional for a RemoteStorageManager: its segments are files that this machine can open.

    The reader then sends them without reading them first. An opened file can be read to its end even if the segment is
    deleted meanwhile: deleting removes the name, and nothing ever changes the content.
    """

    def log_segment_path(self, metadata: RemoteLogSegmentMetadata) -> Path | None:
        """Where the log of a segment should be, without looking; None if it is not a file of this machine."""


@runtime_checkable
class CheckedStorage(Protocol):
    """Optional for a RemoteStorageManager: it can be asked whether it can be used.

    The broker asks at its start and from then on every few seconds, and shows what it hears. Of a storage without this
    method it knows only how copies and reads end.
    """

    async def check(self, *, writes: bool) -> None:
        """Return if segments can be read, or with `writes` if they can be written and deleted.

        Raises RemoteStorageError with a sentence that names the settings to look at. Leaves nothing behind.
        """


@runtime_checkable
class LateWrites(Protocol):
    """Optional for a RemoteStorageManager: what a failed copy has sent may still arrive.

    The objects of such a copy are then deleted a second time, after this long. Without it they are deleted once.
    """

    @property
    def late_seconds(self) -> float:
        """How long a write may be under way after it was given up; 0 if none can be."""


class RemoteLogMetadataManager(Protocol):
    """Remote log metadata: which segments are in remote storage, and in which state. A query sees every earlier write.

    Queries are answered from memory. They raise RemoteStorageError while the metadata of a partition has not been
    read to its end (`is_ready`).
    """

    async def add_remote_log_segment_metadata(self, metadata: RemoteLogSegmentMetadata) -> None:
        """A new segment, in COPY_SEGMENT_STARTED. Durable and visible when this returns. Raises RemoteStorageError."""

    async def update_remote_log_segment_metadata(self, update: RemoteLogSegmentMetadataUpdate) -> None:
        """Another state of a known segment. Durable and visible when this returns.

        Raises RemoteResourceNotFound for an unknown segment, ValueError for an illegal move, RemoteStorageError.
        """

    async def put_remote_partition_delete_metadata(self, metadata: RemotePartitionDeleteMetadata) -> None:
        """The deletion of a partition has reached a state. Raises ValueError if illegal, RemoteStorageError."""

    def remote_log_segment_metadata(
        self, partition: TopicIdPartition, epoch: LeaderEpoch, offset: Offset
    ) -> RemoteLogSegmentMetadata | None:
        """The segment in COPY_SEGMENT_FINISHED that holds `offset` as a record of this leader epoch."""

    def next_segment_with_txn_index(
        self, partition: TopicIdPartition, epoch: LeaderEpoch, offset: Offset
    ) -> RemoteLogSegmentMetadata | None:
        """The first such segment of this epoch from `offset` on whose transaction index is not empty."""

    def highest_offset_for_epoch(self, partition: TopicIdPartition, epoch: LeaderEpoch) -> Offset | None:
        """The last offset of this epoch that was copied."""

    def leader_epochs_from(self, partition: TopicIdPartition, offset: Offset) -> Sequence[tuple[LeaderEpoch, Offset]]:
        """The leader epochs with records at or above `offset` in segments in COPY_SEGMENT_FINISHED, in their order.

        Each with the first offset of it in such a segment that reaches up to `offset` or beyond. Called often: must not
        look at each segment.
        """

    def list_remote_log_segments(
        self, partition: TopicIdPartition, epoch: LeaderEpoch | None = None
    ) -> Sequence[RemoteLogSegmentMetadata]:
        """All segments in any state but DELETE_SEGMENT_FINISHED, of one epoch or of all, by start offset."""

    def iter_remote_log_segments(
        self, partition: TopicIdPartition, epoch: LeaderEpoch | None = None
    ) -> Iterator[RemoteLogSegmentMetadata]:
        """The same segments, as of this call, made one at a time: there may be very many of them."""

    def remote_log_summary(self, partition: TopicIdPartition) -> RemoteSummary:
        """Number and size of the segments. Called often: must not look at each segment."""

    def remote_log_size(self, partition: TopicIdPartition, epoch: LeaderEpoch) -> int:
        """Bytes of the segments in COPY_SEGMENT_FINISHED that have records of this epoch."""

    def is_ready(self, partition: TopicIdPartition) -> bool:
        """Whether all metadata of the partition has been read."""

    def partition_delete_state(self, partition: TopicIdPartition) -> RemotePartitionDeleteState | None:
        """The state of the deletion of a partition; None if it is not being deleted, or the deletion is over."""

    def partitions(self) -> Collection[TopicIdPartition]:
        """All partitions with metadata, including those of deleted topics until their deletion is over."""

    def on_partition_leadership_changes(
        self, leaders: Collection[TopicIdPartition], followers: Collection[TopicIdPartition]
    ) -> None:
        """This broker leads or follows these partitions from now on: it needs their metadata."""

    def on_stop_partitions(self, partitions: Collection[TopicIdPartition]) -> None:
        """This broker has no replica of these partitions any more."""

    async def close(self) -> None:
        """Save state that shortens the next start, and stop."""


@runtime_checkable
class IndexedMetadata(Protocol):
    """Optional for a RemoteLogMetadataManager: it finds segments without looking at all of them.

    Without it, the tiering pipeline looks at every segment of a partition several times for each one that it adds.
    """

    def find_remote_log_segment(self, partition: TopicIdPartition, segment_id: UUID) -> RemoteLogSegmentMetadata | None:
        """The segment with this id, in any state but DELETE_SEGMENT_FINISHED."""

    def overlapping_remote_log_segments(
        self, partition: TopicIdPartition, first: Offset, last: Offset
    ) -> Sequence[RemoteLogSegmentMetadata]:
        """The segments with some of these offsets, in any state but DELETE_SEGMENT_FINISHED, by start offset."""


@runtime_checkable
class OrderedMetadata(Protocol):
    """Optional for a RemoteLogMetadataManager: it begins to list segments where it is asked to.

    All are in any state but DELETE_SEGMENT_FINISHED, by start offset, as of the call, and made one at a time. Without
    it, a search looks at every segment of a partition, and the error for an offset that no segment has names no others.
    """

    def remote_log_segments_from_offset(
        self, partition: TopicIdPartition, offset: Offset
    ) -> Iterator[RemoteLogSegmentMetadata]:
        """The segments that begin at `offset` or behind it."""

    def remote_log_segments_from_time(
        self, partition: TopicIdPartition, timestamp: TimestampMs
    ) -> Iterator[RemoteLogSegmentMetadata]:
        """The segments whose newest record has this timestamp or a later one. Must not look at each of the others."""

    def last_remote_log_segment_up_to(
        self, partition: TopicIdPartition, offset: Offset
    ) -> RemoteLogSegmentMetadata | None:
        """The last segment that begins at `offset` or before it."""
