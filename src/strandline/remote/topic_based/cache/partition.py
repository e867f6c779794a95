"""The remote log metadata of one partition: the sum of its records. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import NamedTuple, Self
from uuid import UUID

from strandline.model import LeaderEpoch, Offset, TimestampMs, TopicIdPartition
from strandline.remote.ports import RemoteResourceNotFound
from strandline.remote.topic_based.cache.epochs import RemoteLogLeaderEpochState
from strandline.remote.topic_based.cache.ordered import OrderedSegments, SegmentsNow
from strandline.remote.topic_based.records import RemoteLogMetadata
from strandline.remote.topic_based.records.packing import (
    is_txn_index_empty,
    pack,
    packed_start,
    size_and_state_of,
    unpack,
)
from strandline.remote.values import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
    RemoteSummary,
    is_legal_partition_move,
    is_legal_segment_move,
)

_FINISHED = RemoteLogSegmentState.COPY_SEGMENT_FINISHED


class CacheImage(NamedTuple):
    """A cache as of one moment, for a snapshot."""

    partition: TopicIdPartition
    segments: SegmentsNow | Mapping[bytes, bytes]
    """Packed segments by the 16 bytes of their id."""
    epochs: Mapping[LeaderEpoch, RemoteLogLeaderEpochState]
    deletion: RemotePartitionDeleteMetadata | None


class RemoteLogMetadataCache:
    """The segments of one partition, and the state of its deletion.

    `apply` takes the records of the metadata topic in their order. It refuses illegal moves, which then change nothing:
    so all brokers that read the topic have the same cache.
    """

    __slots__ = ("_epochs", "_ordered", "_segments", "_summary", "deletion", "partition")

    def __init__(self, partition: TopicIdPartition) -> None:
        self.partition = partition
        self.deletion: RemotePartitionDeleteMetadata | None = None
        self._segments: dict[bytes, bytes] = {}
        self._ordered = OrderedSegments()
        self._epochs: dict[LeaderEpoch, RemoteLogLeaderEpochState] = {}
        self._summary = RemoteSummary()

    def __len__(self) -> int:
        return len(self._segments)

    @property
    def is_deleted(self) -> bool:
        """Whether the deletion of the partition is over and no segment is left."""
        deletion = self.deletion
        return (
            deletion is not None
            and deletion.state is RemotePartitionDeleteState.DELETE_PARTITION_FINISHED
            and not self._segments
        )

    # Snapshots

    def image(self) -> CacheImage:
        """A copy that does not change."""
        epochs = {epoch: state.copy() for epoch, state in self._epochs.items()}
        return CacheImage(self.partition, self._ordered.now(), epochs, self.deletion)

    @classmethod
    def restored(cls, image: CacheImage) -> Self:
        """The cache that an image was made of. Takes over the contents of the image. May take long."""
        cache = cls(image.partition)
        cache.deletion = image.deletion
        cache._segments, cache._epochs = dict(image.segments.items()), dict(image.epochs)
        cache._ordered = OrderedSegments(cache._segments.items())
        for packed in cache._segments.values():
            cache._summary = _counted(cache._summary, *size_and_state_of(packed), 1)
        return cache

    # Updates

    def apply(self, message: RemoteLogMetadata) -> None:
        """Apply a record. Raises ValueError or RemoteResourceNotFound for an illegal move, and changes nothing then."""
        match message:
            case RemoteLogSegmentMetadata():
                self._add(message)
            case RemoteLogSegmentMetadataUpdate():
                self._update(message)
            case RemotePartitionDeleteMetadata():
                self._check_deletion(message)
                self.deletion = message

    def check(self, message: RemoteLogMetadata) -> None:
        """Raise what `apply` would raise."""
        match message:
            case RemoteLogSegmentMetadata():
                self._check_add(message)
            case RemoteLogSegmentMetadataUpdate():
                self._check_update(message)
            case RemotePartitionDeleteMetadata():
                self._check_deletion(message)

    def _check_add(self, metadata: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata | None:
        known = self._find(metadata.segment_id.id.bytes)
        if metadata.state is not RemoteLogSegmentState.COPY_SEGMENT_STARTED:
            raise ValueError(
                f"Segment {metadata.segment_id.id} of {self.partition} must be added in COPY_SEGMENT_STARTED, not in "
                f"{metadata.state.name}."
            )
        if known is not None and not is_legal_segment_move(known.state, metadata.state):
            raise ValueError(f"Segment {known.segment_id.id} of {self.partition} is in {known.state.name} already.")
        state = None if self.deletion is None else self.deletion.state
        if known is None and state is not None and state >= RemotePartitionDeleteState.DELETE_PARTITION_STARTED:
            # The broker that deletes the partition has listed its segments: a later one would stay forever.
            raise ValueError(f"{self.partition} takes no more segments: it is in {state.name}.")
        return known

    def _add(self, metadata: RemoteLogSegmentMetadata) -> None:
        known = self._check_add(metadata)
        key = metadata.segment_id.id.bytes
        self._count(known, -1)
        self._count(metadata, 1)
        if known is not None:
            for epoch in known.segment_leader_epochs:
                self._epochs[epoch].unreferenced.discard(key)
        self._put(key, pack(metadata))
        for epoch in metadata.segment_leader_epochs:
            self._epochs.setdefault(epoch, RemoteLogLeaderEpochState()).unreferenced.add(key)

    def _check_update(self, update: RemoteLogSegmentMetadataUpdate) -> RemoteLogSegmentMetadata:
        known = self._find(update.segment_id.id.bytes)
        if known is None:
            raise RemoteResourceNotFound(f"{self.partition} has no remote segment {update.segment_id.id}.")
        if update.state is RemoteLogSegmentState.COPY_SEGMENT_STARTED:
            raise ValueError(
                f"Segment {update.segment_id.id} of {self.partition} cannot be updated to COPY_SEGMENT_STARTED."
            )
        if not is_legal_segment_move(known.state, update.state):
            raise ValueError(
                f"Segment {update.segment_id.id} of {self.partition} cannot go from {known.state.name} "
                f"to {update.state.name}."
            )
        return known

    def _update(self, update: RemoteLogSegmentMetadataUpdate) -> None:
        known = self._check_update(update)
        key = update.segment_id.id.bytes
        self._count(known, -1)
        if update.state is RemoteLogSegmentState.DELETE_SEGMENT_FINISHED:
            self._ordered.remove(key, self._segments.pop(key))
            for epoch in known.segment_leader_epochs:
                self._epochs[epoch].unreferenced.discard(key)
            return
        updated = known.updated(update)
        self._count(updated, 1)
        self._put(key, pack(updated))
        if known.state is update.state:
            return
        for epoch, start, end in _epoch_ranges(known):
            state = self._epochs[epoch]
            size = known.segment_size_in_bytes if start <= end else 0
            if update.state is _FINISHED:
                state.finished_bytes += size
                state.finished(key, start, end)
            else:
                state.finished_bytes -= size if known.state is _FINISHED else 0
                state.unreference(key, start)

    def _put(self, key: bytes, packed: bytes) -> None:
        before = self._segments.get(key)
        if before is not None:
            self._ordered.remove(key, before)
        self._segments[key] = packed
        self._ordered.add(key, packed)

    def _count(self, segment: RemoteLogSegmentMetadata | None, times: int) -> None:
        if segment is not None:
            self._summary = _counted(self._summary, segment.segment_size_in_bytes, segment.state, times)

    def _check_deletion(self, metadata: RemotePartitionDeleteMetadata) -> None:
        source = None if self.deletion is None else self.deletion.state
        if not is_legal_partition_move(source, metadata.state):
            before = "no deletion" if source is None else source.name
            raise ValueError(f"{self.partition} cannot go from {before} to {metadata.state.name}.")

    # Queries

    def remote_log_segment_metadata(self, epoch: LeaderEpoch, offset: Offset) -> RemoteLogSegmentMetadata | None:
        """The segment in COPY_SEGMENT_FINISHED that holds `offset` as a record of this leader epoch."""
        state = self._epochs.get(epoch)
        key = None if state is None else state.find(offset)
        return None if key is None else self._find(key)

    def next_segment_with_txn_index(self, epoch: LeaderEpoch, offset: Offset) -> RemoteLogSegmentMetadata | None:
        """The first such segment of this epoch from `offset` on whose transaction index is not empty."""
        state = self._epochs.get(epoch)
        if state is None:
            return None
        for key in state.from_offset(offset):
            if not is_txn_index_empty(self._segments[key]):
                return self._find(key)
        return None

    def highest_offset_for_epoch(self, epoch: LeaderEpoch) -> Offset | None:
        """The last offset of this epoch that was ever copied."""
        state = self._epochs.get(epoch)
        return None if state is None else state.highest_offset

    def leader_epochs_from(self, offset: Offset) -> Sequence[tuple[LeaderEpoch, Offset]]:
        """The epochs with records at or above `offset` that lookups find, each with the first of its offsets there."""
        starts = ((epoch, state.first_from(offset)) for epoch, state in sorted(self._epochs.items()))
        return [(epoch, start) for epoch, start in starts if start is not None]

    def list_remote_log_segments(self, epoch: LeaderEpoch | None = None) -> Sequence[RemoteLogSegmentMetadata]:
        """All segments in any state, of one epoch or of all, by start offset."""
        return [*self.iter_remote_log_segments(epoch)]

    def iter_remote_log_segments(self, epoch: LeaderEpoch | None = None) -> Iterator[RemoteLogSegmentMetadata]:
        """The same segments, as of this call, made one at a time. Takes no time for each of them before."""
        if epoch is None:
            return self._made(self._ordered.walk())
        if epoch not in self._epochs:
            return iter(())
        return (one for one in self._made(self._ordered.walk()) if epoch in one.segment_leader_epochs)

    def iter_from_offset(self, offset: Offset) -> Iterator[RemoteLogSegmentMetadata]:
        """Those that begin at an offset or behind it."""
        return self._made(self._ordered.walk(packed_start(offset)))

    def iter_from_time(self, timestamp: TimestampMs) -> Iterator[RemoteLogSegmentMetadata]:
        """Those whose newest record has this timestamp or a later one."""
        return self._made(self._ordered.walk_from_time(timestamp))

    def last_up_to(self, offset: Offset) -> RemoteLogSegmentMetadata | None:
        """The last of those that begin at an offset or before it."""
        found = self._ordered.last_before(packed_start(offset + 1))
        return None if found is None else self._unpack(*found)

    def _made(self, walk: Iterator[tuple[bytes, bytes]]) -> Iterator[RemoteLogSegmentMetadata]:
        return (self._unpack(key, packed) for key, packed in walk)

    def summary(self) -> RemoteSummary:
        """Number and size of the segments."""
        return self._summary

    def find_segment(self, segment_id: UUID) -> RemoteLogSegmentMetadata | None:
        """The segment with this id, in any state."""
        return self._find(segment_id.bytes)

    def overlapping(self, first: Offset, last: Offset) -> Sequence[RemoteLogSegmentMetadata]:
        """The segments with some of these offsets, in any state, by start offset. Does not look at all of them."""
        keys: set[bytes] = set()
        for state in self._epochs.values():
            keys.update(state.overlapping(first, last))
        found = (self._unpack(key, self._segments[key]) for key in keys)
        inside = (segment for segment in found if segment.start_offset <= last and segment.end_offset >= first)
        return sorted(inside, key=lambda segment: segment.start_offset)

    def iter_segments(self) -> Iterator[RemoteLogSegmentMetadata]:
        """All segments in any state, unordered, made one at a time. Nothing may be applied meanwhile."""
        return (self._unpack(key, packed) for key, packed in self._segments.items())

    def epochs(self) -> Collection[LeaderEpoch]:
        """The leader epochs of all segments there ever were."""
        return self._epochs.keys()

    def referenced_ranges(self, epoch: LeaderEpoch) -> Iterator[tuple[Offset, Offset]]:
        """The first and last offset of this epoch in each segment that lookups find, in order."""
        state = self._epochs.get(epoch)
        return iter(()) if state is None else ((start, end) for start, end, _ in state.referenced())

    def remote_log_size(self, epoch: LeaderEpoch) -> int:
        """Bytes of the segments in COPY_SEGMENT_FINISHED that have records of this epoch."""
        state = self._epochs.get(epoch)
        return 0 if state is None else state.finished_bytes

    def _find(self, key: bytes) -> RemoteLogSegmentMetadata | None:
        packed = self._segments.get(key)
        return None if packed is None else self._unpack(key, packed)

    def _unpack(self, key: bytes, packed: bytes) -> RemoteLogSegmentMetadata:
        return unpack(RemoteLogSegmentId(self.partition, UUID(bytes=key)), packed)


def _counted(summary: RemoteSummary, size: int, state: RemoteLogSegmentState, times: int) -> RemoteSummary:
    """With a segment added (1) or removed (-1)."""
    segments, finished_bytes, deleting_segments, deleting_bytes = summary
    if state is _FINISHED:
        finished_bytes += size * times
    elif state is RemoteLogSegmentState.DELETE_SEGMENT_STARTED:
        deleting_segments += times
        deleting_bytes += size * times
    return RemoteSummary(segments + times, finished_bytes, deleting_segments, deleting_bytes)


def _epoch_ranges(metadata: RemoteLogSegmentMetadata) -> Iterator[tuple[LeaderEpoch, Offset, Offset]]:
    """Where each epoch of the segment begins and ends in it."""
    end: tuple[LeaderEpoch, Offset] = (-1, metadata.end_offset + 1)
    for (epoch, start), (_, following) in pairwise(chain(metadata.segment_leader_epochs.items(), (end,))):
        yield epoch, start, following - 1
