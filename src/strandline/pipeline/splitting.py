"""Splits WAL objects: the batches of each partition go to an object of their own, with their final bytes.

Producers' batches lie in a WAL object as they came. A split file has them as a segment will: with base offset, leader
epoch and LogAppendTime. Only headers are read; nothing is decompressed. Small WAL objects are split together: what
follows each other in one partition becomes one split file, since each costs as much as hundreds of batches.
"""

from __future__ import annotations

import asyncio
import tempfile
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, NamedTuple, Self

from strandline.clock import Clock, Ids
from strandline.conversion_api.values import ClaimedFile, EpochStart, NewSplit, PlannedRow, PlannedSplit, SplitFile
from strandline.crash import crash_point
from strandline.diskless.reader.planning import MAX_GAP
from strandline.diskless.wal import split_keys
from strandline.errors import CorruptMessage
from strandline.model import NO_TIMESTAMP, Offset, TimestampMs, TopicIdPartition
from strandline.objects import ObjectNotFound, ObjectStore, ObjectStoreError
from strandline.pipeline.damage import ConversionFailed, DamagedWalObject, MissingObject
from strandline.records import HEADER_SIZE, TimestampType, crc_matches, read_header, stamp, stamp_log_append_time

__all__ = ["DamagedWalObject", "MissingObject", "SplitBundle", "split_files"]

_SMALLEST_WINDOW: Final = 64 * 1024
_WRITES_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitBundle:
    """What came of some WAL objects that were split together."""

    splits: tuple[NewSplit, ...]
    """By partition and offset. They are written, and count for nothing until they are recorded."""
    troubles: Mapping[str, ConversionFailed]
    """Why not all of a WAL object is split, by its key."""


async def split_files(
    objects: ObjectStore,
    files: Sequence[ClaimedFile],
    *,
    claimant: str,
    buffer_bytes: int,
    joined_bytes: int,
    clock: Clock,
    ids: Ids,
) -> SplitBundle:
    """Write the planned splits of WAL objects, in the order of the files. The objects are new ones in each call, with
    names by which brokers find those that `claimant` does not record.

    Those that follow each other become one, of at most `joined_bytes`: segments are made of whole split files. About
    `buffer_bytes` of records are in memory, more only if a single batch is larger; files that have more are joined as
    far as memory goes. What is damaged or missing is among the troubles, and all else is written. Raises
    ObjectStoreErrors.
    """
    window_size = max(buffer_bytes // 2, _SMALLEST_WINDOW)
    splitting = _Splitting(objects, claimant, window_size, joined_bytes, clock, ids)
    troubles: dict[str, ConversionFailed] = {}
    with splitting:
        for file in files:
            try:
                damages = await splitting.add(file)
            except ObjectNotFound:
                troubles[file.object_key] = MissingObject(
                    f"The WAL object {file.object_key} is not in {objects.url}, but it should hold records of "
                    f"{len(file.splits)} partitions or more. `strandline fsck` finds all missing objects; a directory "
                    "must be the one that the brokers use."
                )
            else:
                if damages:
                    more = f" {len(damages) - 1} more splits of it fail." if len(damages) > 1 else ""
                    troubles[file.object_key] = DamagedWalObject(
                        f"{damages[0]}{more} `strandline fsck --deep` finds all damaged objects."
                    )
        await splitting.write()
    written = sorted(splitting.written, key=lambda split: (split.partition, split.file.base_offset))
    return SplitBundle(splits=tuple(written), troubles=troubles)


class _Damage(Exception):
    """Some bytes are not what they should be: where, and why, without a full stop."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(why)
        self.position, self.why = position, why


class _Stamped(NamedTuple):
    """Whole batches at the beginning of some bytes."""

    size: int
    next_offset: Offset
    batch_count: int
    max_timestamp: TimestampMs
    needed: int
    """How many bytes from here on the next step needs at least."""


def _stamp_batches(data: memoryview, row: PlannedRow, position: int, offset: Offset) -> _Stamped:
    """Check and stamp the whole batches at the beginning of `data`, which is at `position` of the object."""
    append_time = row.log_append_time_ms if row.timestamp_type == TimestampType.LOG_APPEND_TIME else None
    epoch, left = row.leader_epoch, row.byte_offset + row.byte_size - position
    at = batches = 0
    max_timestamp = NO_TIMESTAMP
    end, needed = len(data), 1
    while at < end:
        if end - at < HEADER_SIZE <= left - at:
            needed = HEADER_SIZE
            break
        try:
            header = read_header(data, at)
        except CorruptMessage as error:
            raise _Damage(position + at, f"no batch begins there ({str(error).rstrip('.')})") from error
        size = header.size
        if header.is_legacy or header.last_offset_delta < 0:
            raise _Damage(position + at, "no batch of format 2 begins there")
        if size > left - at:
            raise _Damage(position + at, f"a batch there claims {size} bytes, and {left - at} are left")
        if size > end - at:
            needed = size
            break
        if not crc_matches(data, at, header):
            raise _Damage(position + at, "the checksum of the batch there does not match its bytes")
        stamp(data, at, offset, epoch)
        timestamp = header.max_timestamp
        if append_time is not None:
            stamp_log_append_time(data, at, append_time)
            timestamp = append_time
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        offset += header.last_offset_delta + 1
        batches += 1
        at += size
    return _Stamped(at, offset, batches, max_timestamp, needed)


class _GatheredSplit:
    """The bytes of a split so far: in memory, or in a temporary file if they are many."""

    def __init__(self, partition: TopicIdPartition, spool: IO[bytes] | None = None) -> None:
        self.partition, self.spool = partition, spool
        self.rows: list[PlannedRow] = []
        self.parts: list[memoryview] = []
        self.size = 0
        self.batch_count = 0
        self.max_timestamp = NO_TIMESTAMP

    def add(self, data: memoryview, stamped: _Stamped) -> None:
        self.size += stamped.size
        self.batch_count += stamped.batch_count
        self.max_timestamp = max(self.max_timestamp, stamped.max_timestamp)
        if self.spool is not None:
            self.spool.write(data[: stamped.size])
        else:
            self.parts.append(data[: stamped.size])

    def is_followed_by(self, other: _GatheredSplit) -> bool:
        """Whether both can be one object."""
        return (
            self.spool is other.spool is None
            and self.partition == other.partition
            and self.rows[-1].last_offset + 1 == other.rows[0].base_offset
        )

    def join(self, other: _GatheredSplit) -> None:
        self.rows += other.rows
        self.parts += other.parts
        self.size += other.size
        self.batch_count += other.batch_count
        self.max_timestamp = max(self.max_timestamp, other.max_timestamp)

    def described(self, key: str) -> NewSplit:
        return NewSplit(
            self.partition,
            SplitFile(
                object_key=key,
                base_offset=self.rows[0].base_offset,
                last_offset=self.rows[-1].last_offset,
                size_bytes=self.size,
                batch_count=self.batch_count,
                max_timestamp=self.max_timestamp,
                leader_epochs=_epochs_of(self.rows),
            ),
        )


def _epochs_of(rows: Sequence[PlannedRow]) -> tuple[EpochStart, ...]:
    epochs: list[EpochStart] = []
    for row in rows:
        if not epochs or row.leader_epoch != epochs[-1][0]:
            epochs.append((row.leader_epoch, row.base_offset))
    return tuple(epochs)


class _Splitting:
    """One run over WAL objects, each in the order of its bytes. Splits that are complete wait in memory for others."""

    def __init__(
        self, objects: ObjectStore, claimant: str, window_size: int, joined_bytes: int, clock: Clock, ids: Ids
    ) -> None:
        self._objects, self._claimant, self._clock, self._ids = objects, claimant, clock, ids
        self._window_size, self._joined_bytes = window_size, joined_bytes
        self._window = _Window(objects, window_size, self._make_room)
        self._held = 0
        """Bytes of windows that complete splits lie in, about."""
        self._complete: list[_GatheredSplit] = []
        self._temporary = ExitStack()
        self.written: list[NewSplit] = []

    def __enter__(self) -> Self:
        self._temporary.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._complete.clear()
        self._temporary.close()

    async def add(self, file: ClaimedFile) -> list[str]:
        """Read an object; sentences about what is damaged. Raises ObjectNotFound; what was read before that counts."""
        damages = []
        self._window.open(file)
        for split in sorted(file.splits, key=lambda split: split.rows[0].byte_offset):
            try:
                gathered = await self._gather(split)
            except _Damage as damage:
                first, last = split.rows[0].base_offset, split.rows[-1].last_offset
                damages.append(
                    f"The WAL object {file.object_key} is damaged at byte {damage.position}, among the offsets {first} "
                    f"to {last} of {split.partition.topic_partition}: {damage.why}."
                )
            else:
                self._complete.append(gathered)  # reading may have written those before it
        return damages

    async def _gather(self, split: PlannedSplit) -> _GatheredSplit:
        spool = None
        if sum(row.byte_size for row in split.rows) > self._window_size:
            file = tempfile.NamedTemporaryFile(prefix="strandline-split-")  # noqa: SIM115 - the stack closes it
            spool = self._temporary.enter_context(file)
        gathered = _GatheredSplit(split.partition, spool)
        for row in split.rows:
            position, end, offset = row.byte_offset, row.byte_offset + row.byte_size, row.base_offset
            needed = 1
            while position < end:
                data = await self._window.read(position, needed, end)
                stamped = _stamp_batches(data, row, position, offset)
                gathered.add(data, stamped)
                position, offset, needed = position + stamped.size, stamped.next_offset, stamped.needed
            if offset != row.last_offset + 1:
                raise _Damage(position, f"the batches there end with offset {offset - 1} instead of {row.last_offset}")
            gathered.rows.append(row)
        return gathered

    async def _make_room(self, length: int) -> None:
        """So many bytes are about to be read."""
        if self._held + length > self._window_size:
            await self.write()
        self._held += length

    async def write(self) -> None:
        """Write the splits that are complete, several at a time."""
        complete, self._complete, self._held = _joined(self._complete, self._joined_bytes), [], 0
        turn = asyncio.Semaphore(_WRITES_AT_ONCE)
        try:
            async with asyncio.TaskGroup() as writes:
                for gathered in complete:
                    writes.create_task(self._write(gathered, turn))
        except* ObjectStoreError as errors:
            raise _first(errors) from errors

    async def _write(self, gathered: _GatheredSplit, turn: asyncio.Semaphore) -> None:
        partition = gathered.partition
        key = split_keys.make(
            self._clock.now_ms(),
            self._claimant,
            partition.topic_id,
            partition.partition,
            gathered.rows[0].base_offset,
            self._ids.uuid(),
        )
        async with turn:
            crash_point("tiering.split.before_write")
            if gathered.spool is None:
                await self._objects.put(key, gathered.parts)
            else:
                with gathered.spool as spool:
                    spool.flush()
                    await self._objects.put_file(key, Path(spool.name))
            crash_point("tiering.split.after_write")
        self.written.append(gathered.described(key))


class _Window:
    """A part of a WAL object in memory: the one that is being read, and much of what follows."""

    def __init__(self, objects: ObjectStore, size: int, make_room: Callable[[int], Awaitable[None]]) -> None:
        self._objects, self._size, self._make_room = objects, size, make_room
        self._object_key, self._object_end = "", 0
        self._range_starts: list[int] = []
        self._range_ends: list[int] = []
        self._data, self._start = memoryview(b""), 0

    def open(self, file: ClaimedFile) -> None:
        """From now on bytes of this object are read."""
        self._object_key, self._object_end = file.object_key, file.size
        self._range_starts, self._range_ends = _wanted_ranges(file)
        self._data, self._start = memoryview(b""), 0

    async def read(self, position: int, needed: int, end: int) -> memoryview:
        """The bytes from `position` on, at least `needed`, at most up to `end`."""
        at = position - self._start
        if at < 0 or at + needed > len(self._data):
            await self._move(position, needed)
            at = 0
        return self._data[at : at + end - position]

    async def _move(self, position: int, needed: int) -> None:
        self._data = memoryview(b"")
        range_end = self._range_ends[bisect_right(self._range_starts, position) - 1]
        length = max(needed, min(self._size, range_end - position))
        if position + length > self._object_end:
            raise _Damage(position, f"the object ends at byte {self._object_end}")
        await self._make_room(length)
        data = await self._objects.get_range(self._object_key, position, length)
        if len(data) < length:
            self._object_end = position + len(data)
            raise _Damage(position, f"the object ends at byte {self._object_end}")
        self._data, self._start = memoryview(data if isinstance(data, bytearray) else bytearray(data)), position


def _joined(complete: Iterable[_GatheredSplit], most_bytes: int) -> list[_GatheredSplit]:
    """Splits that follow each other become one, of all files that were read."""
    joined: list[_GatheredSplit] = []
    for gathered in sorted(complete, key=lambda one: (one.partition, one.rows[0].base_offset)):
        if joined and joined[-1].size + gathered.size <= most_bytes and joined[-1].is_followed_by(gathered):
            joined[-1].join(gathered)
        else:
            joined.append(gathered)
    return joined


def _wanted_ranges(file: ClaimedFile) -> tuple[list[int], list[int]]:
    """Starts and ends of the ranges to read: the whole object if most of it is wanted, else without large gaps."""
    extents = sorted((row.byte_offset, row.byte_offset + row.byte_size) for split in file.splits for row in split.rows)
    wanted = sum(end - start for start, end in extents)
    max_gap = file.size if 2 * wanted >= file.size else MAX_GAP
    starts: list[int] = []
    ends: list[int] = []
    for start, end in extents:
        if ends and start - ends[-1] <= max_gap:
            ends[-1] = max(ends[-1], end)
        else:
            starts.append(start)
            ends.append(end)
    return starts, ends


def _first(errors: ExceptionGroup[ObjectStoreError]) -> ObjectStoreError:
    found: BaseException = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    assert isinstance(found, ObjectStoreError)
    return found
