"""Pieces: rows of one partition that follow each other, loaded together, and what became of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from strandline.controlplane import BatchRow
from strandline.diskless.reader.blocks import Block
from strandline.diskless.reader.cache import PartitionBlocks
from strandline.diskless.reader.planning import RangedRead
from strandline.diskless.values import WalObjectGone, WalObjectUnreadable
from strandline.errors import CorruptMessage
from strandline.model import NO_OFFSET
from strandline.objects import ObjectNotFound, ObjectStoreError
from strandline.objects.store import Buffer


class WantedRow(NamedTuple):
    """A row to load, and the blocks of its partition."""

    row: BatchRow
    blocks: PartitionBlocks


RowPlace: TypeAlias = tuple[str, int]
"""The object of a row, and where in it the row begins."""


def place_of(row: BatchRow) -> RowPlace:
    return row.object_key, row.byte_offset


class LoadedPiece:
    """One block for all rows of a piece; or, if one of them cannot be read, an outcome for each."""

    __slots__ = ("_outcomes", "blocks", "has_failures")

    def __init__(self, block: Block | None, outcomes: Mapping[RowPlace, Block | Exception] | None = None) -> None:
        self._outcomes = outcomes or {}
        self.blocks = [block] if block is not None else [one for one in self._outcomes.values() if type(one) is Block]
        """All that could be read."""
        self.has_failures = len(self.blocks) < len(self._outcomes)

    @property
    def first(self) -> Block | Exception:
        """What became of the first row."""
        return next(iter(self._outcomes.values())) if self._outcomes else self.blocks[0]

    def of(self, row: BatchRow) -> Block | Exception:
        """The block that holds a row of the piece, or why there is none."""
        return self._outcomes[place_of(row)] if self._outcomes else self.blocks[0]

    @classmethod
    def failed(cls, rows: Iterable[BatchRow], error: Exception) -> LoadedPiece:
        """None of the rows could be read, for the same reason."""
        return cls(None, {place_of(row): error for row in rows})


class Piece:
    """Rows of one partition without a gap between them, and the future that tells what became of them."""

    __slots__ = ("blocks", "loaded", "ranges", "rows")

    def __init__(self, blocks: PartitionBlocks) -> None:
        self.blocks = blocks
        self.rows: list[BatchRow] = []
        self.ranges: list[int] = []
        """For each row, the number of the range that holds it."""
        self.loaded: asyncio.Future[LoadedPiece] = asyncio.get_running_loop().create_future()


def pieces_of(ranges: Iterable[RangedRead[PartitionBlocks]], *, max_bytes: int) -> list[Piece]:
    """The rows of some ranges, by partition, as few pieces of at most so many bytes: a longer row is one by itself."""
    by_partition: dict[PartitionBlocks, list[tuple[BatchRow, int]]] = {}
    for number, ranged in enumerate(ranges):
        for row, blocks in ranged.rows:
            by_partition.setdefault(blocks, []).append((row, number))
    pieces: list[Piece] = []
    for blocks, rows in by_partition.items():
        rows.sort()
        next_offset, room = NO_OFFSET, 0
        for row, number in rows:
            if row.base_offset != next_offset or row.byte_size > room:
                pieces.append(Piece(blocks))
                room = max_bytes
            pieces[-1].rows.append(row)
            pieces[-1].ranges.append(number)
            next_offset, room = row.last_offset + 1, room - row.byte_size
    return pieces


def cut(
    ranges: Sequence[RangedRead[PartitionBlocks]],
    answers: Sequence[Buffer | ObjectStoreError],
    pieces: Sequence[Piece],
) -> list[LoadedPiece]:
    """The blocks of pieces, from the ranges that hold their rows. A damaged or missing row does not harm the others."""
    found = [
        (answer if isinstance(answer, ObjectStoreError) else memoryview(answer), ranged.start)
        for ranged, answer in zip(ranges, answers, strict=True)
    ]
    return [
        _cut_piece(
            piece.rows, [_part(row, *found[number]) for row, number in zip(piece.rows, piece.ranges, strict=True)]
        )
        for piece in pieces
    ]


def _part(row: BatchRow, data: memoryview | ObjectStoreError, start: int) -> Buffer | ObjectStoreError:
    at = row.byte_offset - start
    return data[at : at + row.byte_size] if isinstance(data, memoryview) else data


def _cut_piece(rows: Sequence[BatchRow], parts: Sequence[Buffer | ObjectStoreError]) -> LoadedPiece:
    there = [part for part in parts if not isinstance(part, ObjectStoreError)]
    if len(there) == len(parts):
        try:
            return LoadedPiece(Block.of_rows(rows, there))
        except CorruptMessage:
            pass  # found again below, row by row
    return LoadedPiece(None, {place_of(row): _outcome(row, part) for row, part in zip(rows, parts, strict=True)})


def _outcome(row: BatchRow, part: Buffer | ObjectStoreError) -> Block | Exception:
    if isinstance(part, ObjectNotFound):
        return WalObjectGone(
            f"The object {row.object_key}, which should hold the offsets {row.base_offset} to {row.last_offset}, is "
            "not in the object store. `strandline fsck` finds all missing objects."
        )
    if isinstance(part, ObjectStoreError):
        return _unreadable(row, part)
    try:
        return Block.of_object(row, part)
    except CorruptMessage as error:
        return error


def _unreadable(row: BatchRow, error: ObjectStoreError) -> WalObjectUnreadable:
    return WalObjectUnreadable(
        f"The object {row.object_key}, which holds the offsets {row.base_offset} to {row.last_offset}, cannot be read: "
        f"{error}"
    )
