"""Runs: consecutive blocks of one partition, and the part of them that goes into an answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from strandline.diskless.reader.blocks import Block
from strandline.diskless.reader.cache import PartitionBlocks
from strandline.diskless.values import MemorySlices
from strandline.model import INT64_MAX, Offset
from strandline.records import fair_shares


class Run:
    """Blocks gathered from an offset on, without a gap, and the batches taken from them so far."""

    __slots__ = ("_blocks", "available", "end", "is_loaded", "length", "limit", "next_offset", "parts", "until")

    def __init__(self, offset: Offset, limit: int, *, until: Offset = INT64_MAX) -> None:
        self.limit = limit
        """Most bytes to take."""
        self.until = until
        """No batch is gathered from this offset on, which is where one begins. It may move up."""
        self.end = offset
        """The offset after the gathered blocks."""
        self.available = 0
        """Bytes gathered."""
        self.next_offset = offset
        """The offset after the taken batches."""
        self.parts: list[memoryview] = []
        self.length = 0
        self.is_loaded = False
        """Whether one of its blocks was read from an object."""
        self._blocks: deque[tuple[Block, int, int]] = deque()
        """Each with the numbers of the first batch to take, and of the first one not to take."""

    def gather(self, block: Block) -> bool:
        """Add the block that holds the offset `end`, as far as it may be read. False if that is no batch of it."""
        first = block.find(self.end)
        last = block.batch_count if block.last_offset < self.until else block.find(self.until)
        if last <= first:
            return False
        self._blocks.append((block, first, last))
        self.available += block.size_of(first, last)
        self.end = block.next_offset(last)
        region = block.region
        if region is not None:
            region.touch(block)
        self.is_loaded = self.is_loaded or block.is_loaded
        return True

    def gather_from(self, blocks: PartitionBlocks) -> None:
        """Add blocks in memory, up to the limit."""
        while self.available < self.limit and self.end < self.until and (block := blocks.holding(self.end)) is not None:
            if not self.gather(block):  # a last stable offset inside a batch, from a database that is not right
                return

    def take(self, max_bytes: int) -> None:
        """Take the whole batches that come next and fit into `max_bytes` and into the limit."""
        left = min(max_bytes, self.limit - self.length)
        while self._blocks:
            block, first, last = self._blocks[0]
            end = min(block.end_within(first, left), last)
            if end == first:
                return
            left -= self._take(end)

    def take_first(self) -> None:
        """Take the first batch, however large it is."""
        if self._blocks:
            self._take(self._blocks[0][1] + 1)

    def _take(self, end: int) -> int:
        block, first, last = self._blocks.popleft()
        size = block.size_of(first, end)
        self.parts += block.views_of(first, end)
        self.length += size
        self.next_offset = block.next_offset(end)
        if end < last:
            self._blocks.appendleft((block, end, last))
        return size

    def taken(self) -> MemorySlices | None:
        """The taken batches; None if there are none."""
        return MemorySlices(self.parts, self.length) if self.length else None


def take_fairly(runs: Sequence[Run], max_bytes: int) -> None:
    """Let the runs share `max_bytes`; the first batch of the first run that has one is taken in any case.

    Each run first takes up to an equal share; runs that want less leave the rest of theirs to the others. Batches are
    never cut, so some bytes remain: they go first to the runs that got nothing.
    """
    runs = [run for run in runs if run.available]
    left = max_bytes
    if runs:
        runs[0].take(_shares(runs, max_bytes)[0])
        if not runs[0].length:
            runs[0].take_first()
        left -= runs[0].length
    for run, share in zip(runs[1:], _shares(runs[1:], left), strict=True):
        run.take(share)
        left -= run.length
    for run in sorted(runs, key=lambda run: run.length > 0):
        if left <= 0:
            return
        before = run.length
        run.take(left)
        left -= run.length - before


def _shares(runs: Sequence[Run], budget: int) -> list[int]:
    return fair_shares([min(run.available, run.limit) for run in runs], budget)
