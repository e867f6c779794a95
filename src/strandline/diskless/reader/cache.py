"""The cache of blocks: a bounded amount of memory, in two regions that never evict each other's blocks.

The hot region holds the blocks that this broker has just written, and those loaded for consumers near the end of a log.
The cold region, a quarter of the whole, holds blocks loaded for lagging consumers: however much they read, the tail
stays in memory. Each region evicts the least recently used block. Lives on the event loop.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from strandline.diskless.reader.blocks import Block
from strandline.model import Offset

_COLD_SHARE: Final = 4  # the cold region is one part in this many


class PartitionBlocks:
    """The blocks of one partition in memory, in the order of their offsets."""

    __slots__ = ("blocks", "is_forgotten", "last_offsets")

    def __init__(self) -> None:
        self.last_offsets: list[Offset] = []
        self.blocks: list[Block] = []
        self.is_forgotten = False
        """True once the log was deleted: a download under way must not add its block."""

    def holding(self, offset: Offset) -> Block | None:
        """The block that holds an offset."""
        index = bisect_left(self.last_offsets, offset)
        if index < len(self.blocks) and self.blocks[index].base_offset <= offset:
            return self.blocks[index]
        return None

    def _insert(self, block: Block) -> bool:
        """False if there is a block with the same last offset."""
        last_offsets = self.last_offsets
        if not last_offsets or block.last_offset > last_offsets[-1]:
            last_offsets.append(block.last_offset)
            self.blocks.append(block)
            return True
        index = bisect_left(last_offsets, block.last_offset)
        if last_offsets[index] == block.last_offset:
            return False
        last_offsets.insert(index, block.last_offset)
        self.blocks.insert(index, block)
        return True

    def _remove(self, block: Block) -> None:
        index = bisect_left(self.last_offsets, block.last_offset)
        del self.last_offsets[index], self.blocks[index]

    def _cut_before(self, offset: Offset) -> list[Block]:
        """Remove and return the blocks that end before `offset`."""
        index = bisect_left(self.last_offsets, offset)
        removed = self.blocks[:index]
        del self.last_offsets[:index], self.blocks[:index]
        return removed


class CacheRegion:
    """Blocks within a memory limit, in the order of their last use."""

    __slots__ = ("blocks", "evicted", "limit", "touch", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self.evicted = 0
        self.blocks: OrderedDict[Block, PartitionBlocks] = OrderedDict()
        self.touch = self.blocks.move_to_end
        """Call it when a block of this region was used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStatus:
    """The content of the cache and its evictions."""

    hot_bytes: int
    hot_limit: int
    hot_blocks: int
    hot_evicted: int
    cold_bytes: int
    cold_limit: int
    cold_blocks: int
    cold_evicted: int


class BlockCache:
    """The blocks in memory. A cache with a limit of 0 holds nothing."""

    def __init__(self, max_bytes: int) -> None:
        cold = max_bytes // _COLD_SHARE
        self.hot = CacheRegion(max_bytes - cold)
        self.cold = CacheRegion(cold)

    def add(self, partition: PartitionBlocks, block: Block, region: CacheRegion) -> None:
        """Keep a block, unless it is larger than its region or is there already."""
        if block.cost > region.limit or partition.is_forgotten or not partition._insert(block):
            return
        block.region = region
        region.blocks[block] = partition
        region.used += block.cost
        while region.used > region.limit:
            oldest, owner = region.blocks.popitem(last=False)
            owner._remove(oldest)
            oldest.region = None
            region.used -= oldest.cost
            region.evicted += 1

    def trim(self, partition: PartitionBlocks, offset: Offset) -> None:
        """Drop the blocks that end before `offset`."""
        self._drop(partition._cut_before(offset))

    def forget(self, partition: PartitionBlocks) -> None:
        """Drop all blocks of a partition, for good."""
        partition.is_forgotten = True
        blocks, partition.blocks = partition.blocks, []
        partition.last_offsets = []
        self._drop(blocks)

    def _drop(self, blocks: list[Block]) -> None:
        for block in blocks:
            region = block.region
            if region is not None:
                del region.blocks[block]
                region.used -= block.cost
                block.region = None

    def status(self) -> CacheStatus:
        """For metrics and tests."""
        hot, cold = self.hot, self.cold
        return CacheStatus(
            hot_bytes=hot.used,
            hot_limit=hot.limit,
            hot_blocks=len(hot.blocks),
            hot_evicted=hot.evicted,
            cold_bytes=cold.used,
            cold_limit=cold.limit,
            cold_blocks=len(cold.blocks),
            cold_evicted=cold.evicted,
        )
