"""The cache: exact accounting, two regions, least recently used first."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from strandline.diskless.reader.blocks import Block
from strandline.diskless.reader.cache import BlockCache, CacheRegion, PartitionBlocks
from strandline.diskless.values import CommittedBlock
from strandline.records import Record, build_batch
from tests.diskless.batches import NOON_MS, TOPIC_A
from tests.partitions import id_partition

P0 = id_partition(TOPIC_A, 0)


def block(base_offset: int, records: int = 1, size: int = 100) -> Block:
    buffer = build_batch([Record(i, NOON_MS, None, b"x" * size) for i in range(records)])
    return Block.of_commit(CommittedBlock(P0, base_offset, base_offset + records - 1, (buffer,), NOON_MS))


COST = block(1000).cost


def bases(region: CacheRegion) -> list[int]:
    return [block.base_offset for block in region.blocks]


def test_the_block_used_longest_ago_goes_first() -> None:
    cache, partition = BlockCache(4 * COST), PartitionBlocks()  # three hot, one cold
    for offset in (1000, 1001, 1002):
        cache.add(partition, block(offset), cache.hot)
    cache.hot.touch(partition.blocks[0])
    cache.add(partition, block(1003), cache.hot)
    assert bases(cache.hot) == [1002, 1000, 1003]
    assert partition.last_offsets == [1000, 1002, 1003]
    assert partition.holding(1001) is None
    assert cache.status().hot_evicted == 1


def test_lagging_readers_cannot_evict_the_tail() -> None:
    cache, partition = BlockCache(16 * COST), PartitionBlocks()
    for offset in range(5000, 5012):
        cache.add(partition, block(offset), cache.hot)
    for offset in range(1000, 3000):
        cache.add(partition, block(offset), cache.cold)
    assert bases(cache.hot) == list(range(5000, 5012))
    assert bases(cache.cold) == list(range(2996, 3000))
    status = cache.status()
    assert status.cold_bytes <= status.cold_limit == 4 * COST
    assert status.hot_evicted == 0


def test_the_tail_does_not_evict_what_lagging_readers_are_at() -> None:
    cache, partition = BlockCache(16 * COST), PartitionBlocks()
    cache.add(partition, block(1000), cache.cold)
    for offset in range(5000, 5100):
        cache.add(partition, block(offset), cache.hot)
    assert bases(cache.cold) == [1000]
    assert len(cache.hot.blocks) == 12


def test_a_cache_without_memory_holds_nothing() -> None:
    cache, partition = BlockCache(0), PartitionBlocks()
    cache.add(partition, block(0), cache.hot)
    cache.add(partition, block(1), cache.cold)
    assert not partition.blocks
    assert cache.status().hot_bytes == cache.status().cold_bytes == 0


def test_a_block_larger_than_its_region_is_not_kept_and_evicts_nobody() -> None:
    cache, partition = BlockCache(4 * COST), PartitionBlocks()
    cache.add(partition, block(1000), cache.hot)
    cache.add(partition, block(1001, size=100 * COST), cache.hot)
    assert bases(cache.hot) == [1000]


def test_a_block_comes_once() -> None:
    cache, partition = BlockCache(8 * COST), PartitionBlocks()
    cache.add(partition, block(1000), cache.hot)
    cache.add(partition, block(1000), cache.cold)
    assert cache.status().cold_bytes == 0
    assert cache.status().hot_bytes == COST


def test_downloads_for_a_forgotten_partition_do_not_come_back() -> None:
    cache, partition = BlockCache(8 * COST), PartitionBlocks()
    cache.add(partition, block(1000), cache.hot)
    cache.forget(partition)
    cache.add(partition, block(1001), cache.hot)
    assert not partition.blocks
    assert cache.status().hot_bytes == 0


@given(offsets=st.lists(st.integers(0, 60), unique=True, min_size=1), wanted=st.integers(-1, 61))
def test_blocks_are_found_whatever_the_order_in_which_they_came(offsets: list[int], wanted: int) -> None:
    cache, partition = BlockCache(1 << 20), PartitionBlocks()
    for offset in offsets:
        cache.add(partition, block(offset * 2, records=2), cache.cold if offset % 2 else cache.hot)
    assert partition.last_offsets == sorted(offset * 2 + 1 for offset in offsets)
    found = partition.holding(wanted)
    assert (found.base_offset // 2 if found else None) == (wanted // 2 if wanted // 2 in offsets else None)


class CacheAgainstModel(RuleBasedStateMachine):
    """Any order of calls leaves exact sums, within the limits, and the model's blocks in the model's order."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = BlockCache(20 * COST)
        self.partitions = [PartitionBlocks() for _ in range(3)]
        self.model: dict[bool, list[tuple[int, Block]]] = {False: [], True: []}

    def region(self, is_cold: bool) -> CacheRegion:
        return self.cache.cold if is_cold else self.cache.hot

    @rule(which=st.integers(0, 2), offset=st.integers(0, 30), size=st.integers(0, 3000), is_cold=st.booleans())
    def add(self, which: int, offset: int, size: int, is_cold: bool) -> None:
        new = block(offset, size=size)
        known = any(p == which and b.base_offset == offset for blocks in self.model.values() for p, b in blocks)
        self.cache.add(self.partitions[which], new, self.region(is_cold))
        if known or new.cost > self.region(is_cold).limit:
            return
        blocks = self.model[is_cold]
        blocks.append((which, new))
        while sum(b.cost for _, b in blocks) > self.region(is_cold).limit:
            blocks.pop(0)

    @precondition(lambda self: any(self.model.values()))
    @rule(data=st.data())
    def touch(self, data: st.DataObject) -> None:
        is_cold = data.draw(st.sampled_from([cold for cold, blocks in self.model.items() if blocks]))
        blocks = self.model[is_cold]
        index = data.draw(st.integers(0, len(blocks) - 1))
        self.region(is_cold).touch(blocks[index][1])
        blocks.append(blocks.pop(index))

    @rule(which=st.integers(0, 2), offset=st.integers(0, 31))
    def trim(self, which: int, offset: int) -> None:
        self.cache.trim(self.partitions[which], offset)
        for is_cold, blocks in self.model.items():
            self.model[is_cold] = [(p, b) for p, b in blocks if p != which or b.last_offset >= offset]

    @rule(which=st.integers(0, 2))
    def forget(self, which: int) -> None:
        self.cache.forget(self.partitions[which])
        self.partitions[which] = PartitionBlocks()
        for is_cold, blocks in self.model.items():
            self.model[is_cold] = [(p, b) for p, b in blocks if p != which]

    @invariant()
    def everything_agrees(self) -> None:
        for is_cold, blocks in self.model.items():
            region = self.region(is_cold)
            assert list(region.blocks) == [b for _, b in blocks]
            assert region.used == sum(b.cost for _, b in blocks) <= region.limit
            assert all(b.region is region for _, b in blocks)
        for which, partition in enumerate(self.partitions):
            mine = [b for blocks in self.model.values() for p, b in blocks if p == which]
            assert partition.blocks == sorted(mine, key=lambda b: b.last_offset)
            assert partition.last_offsets == [b.last_offset for b in partition.blocks]


CacheAgainstModel.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestCacheAgainstModel = CacheAgainstModel.TestCase
