"""What `RemoteLogManager` and the reader ask of a remote storage and of its description: the interfaces of KIP-405.

Implementations are chosen by class name (`remote.log.storage.manager.class.name`,
`remote.log.metadata.manager.class.name`) and get the settings behind their prefix.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from strandline.model import LeaderEpoch, Offset, TopicIdPartition
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
    """The remote storage, or its description, cannot do at the moment what it was asked for. Trying again may help."""


class RemoteResourceNotFound(RemoteStorageError):
    """There is no such segment or index. Trying again does not help."""


class RemoteStorageManager(Protocol):
    """Keeps segments. Every call ends within a deadline, in an answer or in a RemoteStorageError; calls may run at
    the same time. Copying and deleting may be repeated: what is there is written over, what is gone stays gone.
    """

    @property
    def url(self) -> str:
        """Where the segments are, without credentials, for people."""

    async def copy_log_segment_data(self, metadata: RemoteLogSegmentMetadata, data: LogSegmentData) -> bytes | None:
        """Copy a segment with its indexes. All of it is durable when this returns.

        What is returned is kept with the segment's metadata (`custom_metadata`) and given back with it.
        """

    async def fetch_log_segment(self, metadata: RemoteLogSegmentMetadata, start: int, length: int) -> Buffer:
        """`length` bytes of the log from position `start` on; fewer only at its end. Raises RemoteResourceNotFound."""

    async def fetch_index(self, metadata: RemoteLogSegmentMetadata, index_type: IndexType) -> bytes:
        """One whole index. Raises RemoteResourceNotFound, also for a transaction index that the segment lacks."""

    async def delete_log_segment_data(self, metadata: RemoteLogSegmentMetadata) -> None:
        """Delete a segment with its indexes. Harmless if it is gone, or was never copied to the end."""

    async def close(self) -> None:
        """Let go of connections."""


@runtime_checkable
class LocalSegmentFiles(Protocol):
    """What a RemoteStorageManager may offer besides: segments that are files which this machine can open.

    Readers then send them without reading them first. Whoever has opened such a file can read it to its end, also
    when the segment is deleted meanwhile: deleting takes the name away, and nothing ever changes the content.
    """

    def log_segment_path(self, metadata: RemoteLogSegmentMetadata) -> Path | None:
        """Where the log of a segment should be, which nobody has looked at; None if it is no file here."""


class RemoteLogMetadataManager(Protocol):
    """Describes the segments in remote storage, consistently: what was added or updated is seen by the next question.

    Questions are answered from memory. They raise RemoteStorageError while the description of a partition has not been
    read to its end (`is_ready`).
    """

    async def add_remote_log_segment_metadata(self, metadata: RemoteLogSegmentMetadata) -> None:
        """A new segment, in COPY_SEGMENT_STARTED. Durable and visible when this returns. Raises RemoteStorageError."""

    async def update_remote_log_segment_metadata(self, update: RemoteLogSegmentMetadataUpdate) -> None:
        """Another state of a known segment. Durable and visible when this returns.

        Raises RemoteResourceNotFound for an unknown segment, ValueError for an illegal move, RemoteStorageError.
        """

    async def put_remote_partition_delete_metadata(self, metadata: RemotePartitionDeleteMetadata) -> None:
        """How far the deletion of a partition is. Raises ValueError for an illegal move, RemoteStorageError."""

    def remote_log_segment_metadata(
        self, partition: TopicIdPartition, epoch: LeaderEpoch, offset: Offset
    ) -> RemoteLogSegmentMetadata | None:
        """The finished segment that has `offset` as a record of this leader epoch."""

    def next_segment_with_txn_index(
        self, partition: TopicIdPartition, epoch: LeaderEpoch, offset: Offset
    ) -> RemoteLogSegmentMetadata | None:
        """The first finished segment of this epoch from `offset` on whose transaction index is not empty."""

    def highest_offset_for_epoch(self, partition: TopicIdPartition, epoch: LeaderEpoch) -> Offset | None:
        """The last offset of this epoch that was copied."""

    def list_remote_log_segments(
        self, partition: TopicIdPartition, epoch: LeaderEpoch | None = None
    ) -> Sequence[RemoteLogSegmentMetadata]:
        """All segments in whatever state, of one epoch or of all, by start offset. Those deleted are not among them."""

    def iter_remote_log_segments(
        self, partition: TopicIdPartition, epoch: LeaderEpoch | None = None
    ) -> Iterator[RemoteLogSegmentMetadata]:
        """The same segments, as they are when this is called, made one at a time: there may be very many of them."""

    def remote_log_summary(self, partition: TopicIdPartition) -> RemoteSummary:
        """How many segments there are, and how large. Asked often: must not look at each of them."""

    def remote_log_size(self, partition: TopicIdPartition, epoch: LeaderEpoch) -> int:
        """Bytes of the finished segments that have records of this epoch."""

    def is_ready(self, partition: TopicIdPartition) -> bool:
        """Whether everything that is known of the partition has been read."""

    def partition_delete_state(self, partition: TopicIdPartition) -> RemotePartitionDeleteState | None:
        """How far the deletion of a partition is; None if nobody asked for it, or it is over and forgotten."""

    def partitions(self) -> Collection[TopicIdPartition]:
        """All partitions of which anything is known, those of deleted topics included until their deletion is over."""

    def on_partition_leadership_changes(
        self, leaders: Collection[TopicIdPartition], followers: Collection[TopicIdPartition]
    ) -> None:
        """This broker leads or follows these partitions from now on: their description is wanted."""

    def on_stop_partitions(self, partitions: Collection[TopicIdPartition]) -> None:
        """This broker has nothing to do with these partitions any more."""

    async def close(self) -> None:
        """Keep what saves time at the next start, and stop."""
