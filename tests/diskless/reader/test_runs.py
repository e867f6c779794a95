"""Runs of blocks: where gathering ends."""

from __future__ import annotations

from strandline.diskless.reader.cache import BlockCache, PartitionBlocks
from strandline.diskless.reader.runs import Run
from tests.diskless.reader.test_cache import block


def test_gathering_ends_also_if_its_limit_lies_inside_a_batch() -> None:
    cache, partition = BlockCache(1_000_000), PartitionBlocks()
    for offset in (10, 13):
        cache.add(partition, block(offset, records=3), cache.hot)
    run = Run(10, 1_000_000, until=14)
    run.gather_from(partition)
    assert (run.end, run.available) == (13, partition.blocks[0].size)
