"""Splits a WAL object: the batches of each partition go to an object of their own, with their final bytes.

Producers' batches lie in a WAL object as they came. A split file has them as a segment will: with base offset, leader
epoch and LogAppendTime. Only headers are read; nothing is decompressed.
"""

from __future__ import annotations

import asyncio
import tempfile
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final, NamedTuple

from strandline.clock import Clock, Ids
from strandline.crash import crash_point
from strandline.diskless.reader.planning import MAX_GAP
from strandline.diskless.wal import split_keys
from strandline.errors import CorruptMessage
from strandline.model import NO_TIMESTAMP, Offset, TimestampMs
from strandline.objects import ObjectNotFound, ObjectStore, ObjectStoreError
from strandline.records import HEADER_SIZE, TimestampType, crc_matches, read_header, stamp, stamp_log_append_time
from strandline.tiering.damage import DamagedWalObject, MissingObject
from strandline.tiering_api.values import ClaimedFile, EpochStart, NewSplit, PlannedRow, PlannedSplit, SplitFile

__all__ = ["DamagedWalObject", "MissingObject", "split_file"]

_SMALLEST_WINDOW: Final = 64 * 1024
_WRITES_AT_ONCE: Final = 8


async def split_file(
    objects: ObjectStore, file: ClaimedFile, *, buffer_bytes: int, clock: Clock, ids: Ids
) -> tuple[NewSplit, ...]:
    """Write the planned splits of a WAL object; what was written, in the order of the plan.

    About `buffer_bytes` of records are in memory, more only if a single batch is larger. The objects are new ones in
    each call, and count for nothing until they are recorded. Raises MissingObject; DamagedWalObject, after the other
    splits are written, with them; ObjectStoreErrors.
    """
    splitting = _Splitting(objects, file, max(buffer_bytes // 2, _SMALLEST_WINDOW), clock, ids)
    try:
        await splitting.run()
    except ObjectNotFound as error:
        raise MissingObject(
            f"The WAL object {file.object_key} is not in {objects.url}, but it should hold records of "
            f"{len(file.splits)} partitions or more. `strandline fsck` finds all missing objects; a directory must be "
            "the one that the brokers use."
        ) from error
    written = tuple(splitting.written[split] for split in range(len(file.splits)) if split in splitting.written)
    if splitting.damages:
        more = f" {len(splitting.damages) - 1} more splits of it fail." if len(splitting.damages) > 1 else ""
        raise DamagedWalObject(
            f"{splitting.damages[0]}{more} `strandline fsck --deep` finds all damaged objects.", written
        )
    return written


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

    def __init__(self, split: PlannedSplit) -> None:
        self.split = split
        self.parts: list[memoryview] = []
        self.spool: IO[bytes] | None = None
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

    def described(self, key: str) -> NewSplit:
        rows = self.split.rows
        return NewSplit(
            self.split.partition,
            SplitFile(
                object_key=key,
                base_offset=rows[0].base_offset,
                last_offset=rows[-1].last_offset,
                size_bytes=self.size,
                batch_count=self.batch_count,
                max_timestamp=self.max_timestamp,
                leader_epochs=_epochs_of(rows),
            ),
        )


def _epochs_of(rows: Sequence[PlannedRow]) -> tuple[EpochStart, ...]:
    epochs: list[EpochStart] = []
    for row in rows:
        if not epochs or row.leader_epoch != epochs[-1][0]:
            epochs.append((row.leader_epoch, row.base_offset))
    return tuple(epochs)


class _Splitting:
    """One run over a WAL object, in the order of its bytes, a window of it in memory at a time.

    Splits that are complete wait until the window moves on, and are then written together.
    """

    def __init__(self, objects: ObjectStore, file: ClaimedFile, window_size: int, clock: Clock, ids: Ids) -> None:
        self._objects, self._file, self._clock, self._ids = objects, file, clock, ids
        self._window_size = window_size
        self._range_starts, self._range_ends = _wanted_ranges(file)
        self._window, self._window_start = memoryview(b""), 0
        self._object_end = file.size
        self._complete: list[tuple[int, _GatheredSplit]] = []
        self._temporary = ExitStack()
        self.written: dict[int, NewSplit] = {}
        """By the place of the split in the plan."""
        self.damages: list[str] = []

    async def run(self) -> None:
        order = sorted(range(len(self._file.splits)), key=lambda number: self._file.splits[number].rows[0].byte_offset)
        with self._temporary:
            for number in order:
                split = self._file.splits[number]
                try:
                    gathered = await self._gather(split)
                except _Damage as damage:
                    first, last = split.rows[0].base_offset, split.rows[-1].last_offset
                    self.damages.append(
                        f"The WAL object {self._file.object_key} is damaged at byte {damage.position}, among the "
                        f"offsets {first} to {last} of {split.partition.topic_partition}: {damage.why}."
                    )
                    continue
                self._complete.append((number, gathered))
            await self._write_complete()

    async def _gather(self, split: PlannedSplit) -> _GatheredSplit:
        gathered = _GatheredSplit(split)
        if sum(row.byte_size for row in split.rows) > self._window_size:
            spool = tempfile.NamedTemporaryFile(prefix="strandline-split-")  # noqa: SIM115 - the stack closes it
            gathered.spool = self._temporary.enter_context(spool)
        for row in split.rows:
            position, end, offset = row.byte_offset, row.byte_offset + row.byte_size, row.base_offset
            needed = 1
            while position < end:
                data = await self._read(position, needed, end)
                stamped = _stamp_batches(data, row, position, offset)
                gathered.add(data, stamped)
                position, offset, needed = position + stamped.size, stamped.next_offset, stamped.needed
            if offset != row.last_offset + 1:
                raise _Damage(position, f"the batches there end with offset {offset - 1} instead of {row.last_offset}")
        return gathered

    async def _read(self, position: int, needed: int, end: int) -> memoryview:
        """The bytes from `position` on, at least `needed`, at most up to `end`."""
        at = position - self._window_start
        if at < 0 or at + needed > len(self._window):
            await self._move_window(position, needed)
            at = 0
        return self._window[at : at + end - position]

    async def _move_window(self, position: int, needed: int) -> None:
        await self._write_complete()
        self._window = memoryview(b"")
        range_end = self._range_ends[bisect_right(self._range_starts, position) - 1]
        length = max(needed, min(self._window_size, range_end - position))
        if position + length > self._object_end:
            raise _Damage(position, f"the object ends at byte {self._object_end}")
        data = await self._objects.get_range(self._file.object_key, position, length)
        if len(data) < length:
            self._object_end = position + len(data)
            raise _Damage(position, f"the object ends at byte {self._object_end}")
        self._window = memoryview(data if isinstance(data, bytearray) else bytearray(data))
        self._window_start = position

    async def _write_complete(self) -> None:
        """Write the splits that are complete, several at a time."""
        complete, self._complete = self._complete, []
        turn = asyncio.Semaphore(_WRITES_AT_ONCE)
        try:
            async with asyncio.TaskGroup() as writes:
                for number, gathered in complete:
                    writes.create_task(self._write(number, gathered, turn))
        except* ObjectStoreError as errors:
            raise _first(errors) from errors

    async def _write(self, number: int, gathered: _GatheredSplit, turn: asyncio.Semaphore) -> None:
        split = gathered.split
        partition = split.partition
        key = split_keys.make(
            self._clock.now_ms(),
            partition.topic_id,
            partition.partition,
            split.rows[0].base_offset,
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
        self.written[number] = gathered.described(key)


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
