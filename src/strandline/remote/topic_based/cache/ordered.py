"""The packed segments of one partition by start offset, in blocks, so that nothing has to be sorted to list them.

There may be a million. A caller that lists them gets the blocks of that moment, and walks through them while segments
come and go: a block that a caller may walk through is never changed, but replaced by a changed copy.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from strandline.model import TimestampMs
from strandline.remote.topic_based.records.packing import newest_timestamp_of

BLOCK: Final = 512
"""Segments of a block, at most. A change moves half of them; a list of all blocks is copied for each walk."""


class _Block:
    """Segments in order. `newest_ms` is not below the largest timestamp of them: it does not fall as segments go."""

    __slots__ = ("keys", "newest_ms", "packed", "walk")

    def __init__(self, packed: list[bytes], keys: list[bytes], newest_ms: TimestampMs, walk: int) -> None:
        self.packed, self.keys, self.newest_ms = packed, keys, newest_ms
        self.walk = walk
        """How many walks had begun when it was made: none of those walks goes through it."""

    def place(self, packed: bytes, key: bytes) -> int:
        """Where a segment is, or belongs."""
        first = bisect_left(self.packed, packed)
        return bisect_left(self.keys, key, first, bisect_right(self.packed, packed, first))


def _last(block: _Block) -> tuple[bytes, bytes]:
    return block.packed[-1], block.keys[-1]


class OrderedSegments:
    """Packed segments with their ids, ordered by both. Packed segments begin with their start offset."""

    __slots__ = ("_blocks", "_walks")

    def __init__(self, segments: Iterable[tuple[bytes, bytes]] = ()) -> None:
        """Of (id, packed segment), in any order; quick if they are in order."""
        self._blocks: list[_Block] = []
        self._walks = 0
        for key, packed in segments:
            self.add(key, packed)

    # Updates

    def add(self, key: bytes, packed: bytes) -> None:
        """Add a segment that is not known yet."""
        newest_ms, blocks = newest_timestamp_of(packed), self._blocks
        at = self._block_of(packed, key)
        if at == len(blocks):
            # Behind all others, as most of them: full blocks stay full.
            if not blocks or len(blocks[-1].keys) >= BLOCK:
                blocks.append(_Block([packed], [key], newest_ms, self._walks))
                return
            at -= 1
        block = self._own(at)
        place = block.place(packed, key)
        block.packed.insert(place, packed)
        block.keys.insert(place, key)
        block.newest_ms = max(block.newest_ms, newest_ms)
        if len(block.keys) > BLOCK:
            blocks[at : at + 1] = [self._part(block, 0, BLOCK // 2), self._part(block, BLOCK // 2, BLOCK + 1)]

    def remove(self, key: bytes, packed: bytes) -> None:
        """Remove a segment that was added with the same bytes."""
        at = self._block_of(packed, key)
        block = self._own(at)
        place = block.place(packed, key)
        assert block.keys[place] == key
        del block.packed[place], block.keys[place]
        if not block.keys:
            del self._blocks[at]

    def _block_of(self, packed: bytes, key: bytes) -> int:
        """The first block that does not end before a segment."""
        blocks = self._blocks
        if not blocks or _last(blocks[-1]) < (packed, key):
            return len(blocks)
        return bisect_left(blocks, (packed, key), key=_last)

    def _own(self, at: int) -> _Block:
        """A block that no walk goes through."""
        block = self._blocks[at]
        if block.walk != self._walks:
            block = self._blocks[at] = _Block(block.packed[:], block.keys[:], block.newest_ms, self._walks)
        return block

    def _part(self, block: _Block, first: int, end: int) -> _Block:
        packed = block.packed[first:end]
        return _Block(packed, block.keys[first:end], max(map(newest_timestamp_of, packed)), self._walks)

    # Walks: each gives (id, packed segment) as of the call

    def walk(self, first: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """All segments, or those whose packed bytes do not sort before `first`."""
        blocks = self._now(first)
        return (pair for block in blocks for pair in _from(block, first))

    def now(self) -> SegmentsNow:
        """All of them, for as long as they are needed. Does not copy each."""
        return SegmentsNow(self._now(b""))

    def walk_from_time(self, timestamp: TimestampMs) -> Iterator[tuple[bytes, bytes]]:
        """Those whose newest record has this timestamp or a later one. Does not look at each of the others."""
        blocks = self._now(b"")
        return (
            (key, packed)
            for block in blocks
            if block.newest_ms >= timestamp
            for key, packed in zip(block.keys, block.packed, strict=True)
            if newest_timestamp_of(packed) >= timestamp
        )

    def last_before(self, first: bytes) -> tuple[bytes, bytes] | None:
        """The last segment whose packed bytes sort before `first`."""
        at = self._block_of(first, b"")
        for block in reversed(self._blocks[max(at - 1, 0) : at + 1]):
            place = bisect_left(block.packed, first)
            if place:
                return block.keys[place - 1], block.packed[place - 1]
        return None

    def _now(self, first: bytes) -> Sequence[_Block]:
        self._walks += 1
        return self._blocks[self._block_of(first, b"") if first else 0 :]


class SegmentsNow:
    """The segments of one moment: what a snapshot needs of a mapping from ids to packed segments."""

    __slots__ = ("_blocks",)

    def __init__(self, blocks: Sequence[_Block]) -> None:
        self._blocks = blocks

    def __len__(self) -> int:
        return sum(len(block.keys) for block in self._blocks)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """(id, packed segment), by start offset."""
        return (pair for block in self._blocks for pair in _from(block, b""))


def _from(block: _Block, first: bytes) -> Iterator[tuple[bytes, bytes]]:
    if not first or block.packed[0] >= first:
        return zip(block.keys, block.packed, strict=True)
    place = bisect_left(block.packed, first)
    return zip(block.keys[place:], block.packed[place:], strict=True)
