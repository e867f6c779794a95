"""Merges split files into segments, and copies those to remote storage.

Bytes stream: from the object store through a bounded buffer into the files of a segment, from there to remote storage.
Nothing is uploaded before all of a segment is checked against its plan.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID

from strandline.clock import Clock, SystemClock
from strandline.conversion_api.values import BegunSegment, SegmentDescription, SplitFile
from strandline.crash import crash_point
from strandline.errors import CorruptMessage, KafkaStorageError
from strandline.log import ClosedSegment, SegmentBuilder
from strandline.log.checkpoints import parse_epochs
from strandline.log.epochs import Epochs
from strandline.log.transaction_index import AbortedTxn
from strandline.model import Offset, TopicIdPartition, uuid_to_text
from strandline.objects import ObjectNotFound, ObjectStore
from strandline.objects.store import Buffer
from strandline.pipeline.damage import ConversionFailed, DamagedSegment, DamagedSplit, MissingObject
from strandline.pipeline.segments import metadata_of
from strandline.pipeline.stores import Stores
from strandline.records import LOG_OVERHEAD
from strandline.remote.manager import segment_files
from strandline.remote.ports import RemoteResourceNotFound
from strandline.remote.values import IndexType

__all__ = ["BuiltSegment", "DamagedSegment", "DamagedSplit", "MissingObject", "merge_chain"]

# Larger reads gain nothing.
_LARGEST_READ: Final = 4 * 1024 * 1024
_SMALLEST_READ: Final = 64 * 1024
_READS_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltSegment:
    """A segment whose bytes are in remote storage."""

    segment_id: UUID
    end_offset: Offset
    custom_metadata: bytes | None
    seconds: float
    bytes: int
    """Of the log file."""


class _StateBefore(NamedTuple):
    """What a segment goes on from: the state at its beginning."""

    offset: Offset
    producers: bytes | None = None
    epochs: Epochs = ()


async def merge_chain(
    stores: Stores,
    chain: Sequence[BegunSegment],
    workdir: Path,
    *,
    buffer_bytes: int,
    clock: Clock | None = None,
) -> AsyncGenerator[BuiltSegment, None]:
    """Build and upload segments of one partition that follow each other; each is yielded when its bytes are there.

    Only the first takes its state from the segment before it in remote storage (`previous`). While one is uploaded, the
    next one is built. About `buffer_bytes` of records are in memory. `workdir` needs room for two segments; nothing is
    left there, whatever happens. May be repeated, also at the same time: the same segment gets the same bytes. Raises
    MissingObject, DamagedSplit, DamagedSegment, ConversionFailed (a retry helps with none of them), ObjectStoreErrors,
    RemoteStorageError, OSError.
    """
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        builder = _ChainBuilder(stores, stack.enter_context(_temporary(workdir)), buffer_bytes, clock)
        uploading: asyncio.Task[BuiltSegment] | None = None
        stack.push_async_callback(lambda: _ended(uploading))
        for begun in chain:
            building = asyncio.create_task(builder.build(begun))
            stack.push_async_callback(_ended, building)
            if uploading is not None:
                # What is uploaded counts, also if the next one cannot be built.
                yield await uploading
            uploading = asyncio.create_task(builder.upload(await building))
        if uploading is not None:
            yield await uploading


def _temporary(workdir: Path) -> AbstractContextManager[str]:
    return tempfile.TemporaryDirectory(prefix="strandline-segment-", dir=workdir)


async def _ended(task: asyncio.Task[Any] | None) -> None:
    """A task is over, whatever came of it: its files can go."""
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class _Built(NamedTuple):
    """A segment in a directory of its own."""

    begun: BegunSegment
    closed: ClosedSegment
    directory: Path
    started: float


class _ChainBuilder:
    """Builds segments one after the other: each goes on from the state at the end of the one before."""

    def __init__(self, stores: Stores, workdir: str, buffer_bytes: int, clock: Clock) -> None:
        self._stores, self._workdir, self._buffer_bytes, self._clock = stores, Path(workdir), buffer_bytes, clock
        self._state: _StateBefore | None = None

    async def build(self, begun: BegunSegment) -> _Built:
        """The files of the next segment."""
        started = self._clock.monotonic()
        if self._state is None:
            self._state = await _state_after(self._stores, begun)
        if begun.segment.start_offset != self._state.offset:
            raise ConversionFailed(
                f"The segment {_named(begun.partition, begun.segment)} cannot be built: the one before it ends "
                f"with offset {self._state.offset - 1}."
            )
        directory = self._workdir / str(begun.segment.segment_id)
        directory.mkdir()
        closed = await _build(self._stores.objects, begun, self._state, directory, self._buffer_bytes)
        self._state = _StateBefore(
            closed.next_base_offset,
            closed.producer_snapshot.read_bytes(),
            parse_epochs(closed.epoch_history, str(directory)),
        )
        return _Built(begun, closed, directory, started)

    async def upload(self, built: _Built) -> BuiltSegment:
        """Copy its files to remote storage, and remove them."""
        begun, closed, directory, started = built
        crash_point("tiering.merge.before_upload")
        metadata = metadata_of(begun.partition, begun.segment)
        custom = await self._stores.remote.copy_log_segment_data(metadata, segment_files(closed))
        crash_point("tiering.merge.after_upload")
        shutil.rmtree(directory)
        return BuiltSegment(
            segment_id=begun.segment.segment_id,
            end_offset=closed.end_offset,
            custom_metadata=custom,
            seconds=self._clock.monotonic() - started,
            bytes=closed.size,
        )


# The state at the beginning


async def _state_after(stores: Stores, begun: BegunSegment) -> _StateBefore:
    previous = begun.previous
    if previous is None:
        return _StateBefore(begun.segment.start_offset)
    metadata = metadata_of(begun.partition, previous)
    name = f"the segment {_named(begun.partition, previous)}"
    try:
        producers = await stores.remote.fetch_index(metadata, IndexType.PRODUCER_SNAPSHOT)
        epochs = await stores.remote.fetch_index(metadata, IndexType.LEADER_EPOCH)
    except RemoteResourceNotFound as error:
        raise MissingObject(
            f"The producer snapshot or the leader epochs of {name} are missing: {error} "
            "`strandline fsck --tier remote` finds all missing files of segments."
        ) from error
    try:
        history = parse_epochs(epochs, f"The leader-epoch-checkpoint of {name}")
    except KafkaStorageError as error:
        raise DamagedSegment(f"{error} Restore the file in {stores.remote.url} from a copy.") from error
    return _StateBefore(previous.end_offset + 1, producers, history)


# Building


async def _build(
    objects: ObjectStore, begun: BegunSegment, state: _StateBefore, directory: Path, buffer_bytes: int
) -> ClosedSegment:
    """The files of a segment, checked."""
    segment = begun.segment
    try:
        builder = SegmentBuilder(
            directory,
            segment.start_offset,
            index_interval_bytes=begun.index_interval_bytes,
            producers=state.producers,
            epochs=state.epochs,
            now_ms=segment.event_timestamp_ms,
            producer_expiration_ms=begun.producer_id_expiration_ms,
            aborted=[AbortedTxn._make(one) for one in begun.aborted],
        )
    except CorruptMessage as error:
        raise DamagedSegment(
            f"The segment before offset {segment.start_offset} of {begun.partition.topic_partition} has a damaged "
            f"producer snapshot: {error} Restore the file from a copy."
        ) from error
    async with aclosing(_pieces(objects, begun.splits, buffer_bytes)) as pieces:
        filling: _Filling | None = None
        async for split, data in pieces:
            if filling is None or filling.split is not split:
                filling = _Filling(begun.partition, split, builder)
            filling.add(data)
    closed = builder.finish()
    _check_segment(begun, closed)
    return closed


def _check_segment(begun: BegunSegment, closed: ClosedSegment) -> None:
    segment = begun.segment
    planned = (segment.start_offset, segment.end_offset, segment.segment_size_in_bytes, segment.leader_epochs)
    built = (closed.base_offset, closed.end_offset, closed.size, tuple(closed.leader_epochs.items()))
    if planned != built:
        raise ConversionFailed(
            f"The segment {_named(begun.partition, segment)} does not come out as announced: first and last "
            f"offset, size and leader epochs are {built} instead of {planned}."
        )


class _Filling:
    """One split file on its way into a segment."""

    def __init__(self, partition: TopicIdPartition, split: SplitFile, builder: SegmentBuilder) -> None:
        self._partition, self.split, self._builder = partition, split, builder
        self._left = split.size_bytes
        self._rest = bytearray()
        """The beginning of a batch whose end is in the next piece."""
        self._first_batch = builder.batch_count
        self._newest = max(builder.max_timestamp, split.max_timestamp)
        if builder.next_offset != split.base_offset:
            raise self._damaged(f"it begins with offset {split.base_offset} instead of {builder.next_offset}")

    def add(self, data: Buffer) -> None:
        """The next piece of the file."""
        self._left -= len(data)
        if self._rest:
            self._rest += data
            data = self._rest
        with memoryview(data) as view:
            try:
                done = self._builder.append(view)
            except CorruptMessage as error:
                raise self._damaged(str(error).rstrip(".")) from error
            rest = bytearray(view[done:])
        self._rest = rest
        if len(rest) >= LOG_OVERHEAD:
            size = int.from_bytes(rest[8:LOG_OVERHEAD], signed=True) + LOG_OVERHEAD
            if size > len(rest) + self._left:
                raise self._damaged(f"the batch of offset {self._builder.next_offset} reaches beyond its end")
        if not self._left:
            self._check_end()

    def _check_end(self) -> None:
        split, builder = self.split, self._builder
        if self._rest:
            raise self._damaged("it ends inside a batch")
        if builder.next_offset != split.last_offset + 1:
            raise self._damaged(f"it ends with offset {builder.next_offset - 1} instead of {split.last_offset}")
        batches = builder.batch_count - self._first_batch
        if batches != split.batch_count:
            raise self._damaged(f"it has {batches} batches instead of {split.batch_count}")
        epochs = builder.epochs_in(split.base_offset, builder.next_offset)
        if epochs != split.leader_epochs:
            raise self._damaged(f"its leader epochs and their first offsets are {epochs}, not {split.leader_epochs}")
        if builder.max_timestamp != self._newest:
            raise self._damaged(f"its newest timestamp is {builder.max_timestamp} instead of {self._newest}")

    def _damaged(self, why: str) -> DamagedSplit:
        split = self.split
        return DamagedSplit(
            f"The split file {split.object_key}, which should hold the offsets {split.base_offset} to "
            f"{split.last_offset} of {self._partition.topic_partition}, is damaged: {why}. Restore it from a copy; "
            "`strandline fsck --deep` finds all damaged objects."
        )


# Reading


class _SplitRange(NamedTuple):
    """A range of a split file."""

    split: SplitFile
    start: int
    length: int


def _cut(splits: Sequence[SplitFile], length: int) -> Iterator[_SplitRange]:
    for split in splits:
        for start in range(0, split.size_bytes, length):
            yield _SplitRange(split, start, min(length, split.size_bytes - start))


async def _pieces(
    objects: ObjectStore, splits: Sequence[SplitFile], buffer_bytes: int
) -> AsyncGenerator[tuple[SplitFile, Buffer], None]:
    """The bytes of the files in their order. Several are read at once, as far as `buffer_bytes` allows."""
    wanted = _cut(splits, max(min(buffer_bytes // 4, _LARGEST_READ), _SMALLEST_READ))
    following = next(wanted, None)
    reads: deque[tuple[_SplitRange, asyncio.Task[Buffer]]] = deque()
    held = 0
    try:
        while reads or following is not None:
            while following is not None and (
                not reads or (held + following.length <= buffer_bytes and len(reads) < _READS_AT_ONCE)
            ):
                reads.append((following, asyncio.create_task(_read(objects, following))))
                held += following.length
                following = next(wanted, None)
            piece, read = reads[0]
            data = await read
            reads.popleft()
            yield piece.split, data
            held -= piece.length
    finally:
        for _, read in reads:
            read.cancel()
        await asyncio.gather(*(read for _, read in reads), return_exceptions=True)


async def _read(objects: ObjectStore, piece: _SplitRange) -> Buffer:
    split = piece.split
    try:
        data = await objects.get_range(split.object_key, piece.start, piece.length)
    except ObjectNotFound as error:
        raise MissingObject(
            f"The split file {split.object_key}, which should hold the offsets {split.base_offset} to "
            f"{split.last_offset}, is not in {objects.url}. Unless these records were deleted meanwhile, `strandline "
            "fsck` finds all missing objects; a directory must be the one that the brokers use."
        ) from error
    if len(data) < piece.length:
        raise DamagedSplit(
            f"The split file {split.object_key} ends at byte {piece.start + len(data)}, but should have "
            f"{split.size_bytes} bytes. Restore it from a copy; `strandline fsck --deep` finds all damaged objects."
        )
    return data


def _named(partition: TopicIdPartition, segment: SegmentDescription) -> str:
    return (
        f"{uuid_to_text(segment.segment_id)} of the offsets {segment.start_offset} to "
        f"{segment.end_offset} of {partition.topic_partition}"
    )
