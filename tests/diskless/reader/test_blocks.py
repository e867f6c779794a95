"""Blocks: injection, checks, slices, and what they say they cost."""

from __future__ import annotations

import gc
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.controlplane import BatchRow
from strandline.diskless.reader.blocks import Block
from strandline.diskless.reader.cache import BlockCache, PartitionBlocks
from strandline.diskless.values import CommittedBlock
from strandline.errors import CorruptMessage
from strandline.records import Record, TimestampType, build_batch, crc_matches, iter_headers, read_header, read_records
from tests.diskless.batches import NOON_MS, TOPIC_A
from tests.partitions import id_partition

P0 = id_partition(TOPIC_A, 0)


def batch_of(records: int, value: bytes = b"value") -> bytearray:
    return build_batch([Record(i, NOON_MS + i, None, value) for i in range(records)])


def row_of(
    data: bytes,
    *,
    base_offset: int = 100,
    records: int,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    append_time: int = -1,
) -> BatchRow:
    return BatchRow(
        base_offset=base_offset,
        last_offset=base_offset + records - 1,
        file_id=1,
        object_key="wal/2023111512/7-abc",
        byte_offset=1000,
        byte_size=len(data),
        timestamp_type=timestamp_type,
        log_append_time_ms=append_time,
        max_timestamp=NOON_MS,
        leader_epoch=5,
    )


def joined(counts: list[int]) -> bytes:
    return b"".join(batch_of(count) for count in counts)


def block_of(counts: list[int], base_offset: int = 100) -> Block:
    data = joined(counts)
    return Block.of_object(row_of(data, base_offset=base_offset, records=sum(counts)), data)


def test_bytes_of_an_object_get_offsets_and_leader_epoch() -> None:
    block = block_of([3, 1, 2])
    whole = b"".join(block.views)
    headers = [header for _, header in iter_headers(whole)]
    assert [(header.base_offset, header.last_offset) for header in headers] == [(100, 102), (103, 103), (104, 105)]
    assert {header.leader_epoch for header in headers} == {5}
    assert all(crc_matches(whole, position, header) for position, header in iter_headers(whole))
    assert [record.offset for record in read_records(block.batch(2))] == [104, 105]


def test_log_append_time_is_injected_with_a_new_checksum() -> None:
    data = joined([2, 2])
    row = row_of(data, records=4, timestamp_type=TimestampType.LOG_APPEND_TIME, append_time=NOON_MS + 777)
    block = Block.of_object(row, data)
    for position, header in iter_headers(whole := b"".join(block.views)):
        assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
        assert header.max_timestamp == NOON_MS + 777
        assert crc_matches(whole, position, header)


def test_the_bytes_given_are_not_changed_unless_they_are_given_away() -> None:
    data = joined([2])
    before = bytes(data)
    Block.of_object(row_of(data, records=2), memoryview(data))
    assert data == before
    given_away = bytearray(data)
    block = Block.of_object(row_of(data, records=2), given_away)
    assert block.views[0].obj is given_away


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda data: data[:-1], "bytes are there"),
        (lambda data: data[:70] + bytes([data[70] ^ 1]) + data[71:], "checksum"),
        (lambda data: data[:16] + b"\x09" + data[17:], "unknown magic"),
        (lambda data: data[:16] + b"\x00" + data[17:], "format 2"),
        (lambda data: data[:8] + b"\x00\x0f\x00\x00" + data[12:], "beyond the end"),
        (lambda data: data[:8] + b"\x00\x00\x00\x01" + data[12:], "less than a header"),
    ],
)
def test_damaged_bytes_are_refused_with_the_object_and_the_range(damage: object, why: str) -> None:
    data = joined([3, 2])
    row = row_of(data, records=5)
    with pytest.raises(CorruptMessage, match=why) as caught:
        Block.of_object(row, damage(data))  # type: ignore[operator]
    assert "wal/2023111512/7-abc" in str(caught.value)
    assert f"1000 to {1000 + len(data)}" in str(caught.value)


def test_batches_that_do_not_cover_the_offsets_of_their_row_are_refused() -> None:
    data = joined([3, 2])
    with pytest.raises(CorruptMessage, match="end with offset 104"):
        Block.of_object(row_of(data, records=6), data)


def test_every_changed_bit_behind_the_stamped_fields_is_noticed() -> None:
    data = joined([1, 1])
    row = row_of(data, records=2)
    stamped = {*range(8), *range(12, 16)}  # offset and epoch are not covered by the checksum, and overwritten
    second = len(batch_of(1))
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        if position in stamped or position - second in stamped:
            assert Block.of_object(row, damaged).batch_count == 2
        else:
            with pytest.raises(CorruptMessage):
                Block.of_object(row, damaged)


def test_what_the_writer_committed_is_not_copied() -> None:
    batches = (batch_of(2), batch_of(3))
    block = Block.of_commit(CommittedBlock(P0, 10, 14, batches, NOON_MS))
    assert (block.base_offset, block.last_offset, block.size) == (10, 14, sum(map(len, batches)))
    assert [view.obj for view in block.views] == list(batches)
    assert block.batch(1).obj is batches[1]


@given(
    counts=st.lists(st.integers(1, 4), min_size=1, max_size=12),
    offset=st.integers(0, 47),
    max_bytes=st.integers(-10, 2000),
    from_writer=st.booleans(),
)
def test_slices_are_the_whole_batches_that_fit(
    counts: list[int], offset: int, max_bytes: int, from_writer: bool
) -> None:
    records = sum(counts)
    offset = 100 + offset % records
    if from_writer:
        block = Block.of_commit(
            CommittedBlock(P0, 100, 100 + records - 1, tuple(batch_of(count) for count in counts), NOON_MS)
        )
    else:
        block = block_of(counts)
    first = block.find(offset)
    starts = [100 + sum(counts[:number]) for number in range(len(counts))]
    assert starts[first] <= offset < starts[first] + counts[first]

    end = block.end_within(first, max_bytes)
    sizes = [len(batch_of(count)) for count in counts]
    expected = first
    while expected < len(counts) and sum(sizes[first : expected + 1]) <= max_bytes:
        expected += 1
    assert end == expected
    views = block.views_of(first, end)
    assert sum(map(len, views)) == block.size_of(first, end) == sum(sizes[first:end])
    assert block.next_offset(end) == 100 + sum(counts[:end])
    if end > first and not from_writer:
        assert len(views) == 1, "one buffer needs one part"
    if end > first:
        assert read_header(views[0]).record_count == counts[first]


@pytest.mark.parametrize("batches", [1, 5, 40])
@pytest.mark.parametrize("from_writer", [True, False])
def test_a_block_costs_what_it_says(batches: int, from_writer: bool) -> None:
    """The limit of the cache is about real memory: the sum of the costs is what the interpreter took."""
    number = 400
    data = joined([1] * batches)
    cache, partition = BlockCache(1 << 30), PartitionBlocks()

    def fill() -> None:
        for index in range(number):
            base = 100_000 + index * batches
            if from_writer:
                buffers = tuple(batch_of(1) for _ in range(batches))
                block = Block.of_commit(CommittedBlock(P0, base, base + batches - 1, buffers, NOON_MS))
            else:
                block = Block.of_object(row_of(data, base_offset=base, records=batches), data)
            cache.add(partition, block, cache.hot)

    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        fill()
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    said = cache.status().hot_bytes
    assert 0.92 * taken <= said <= 1.12 * taken, f"said {said}, took {taken}: {(taken - said) / number} per block"
