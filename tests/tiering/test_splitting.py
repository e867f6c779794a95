"""Splitting WAL objects: final bytes, few requests, little memory, and a sentence for what is damaged."""

from __future__ import annotations

import asyncio
import pickle
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.clock import SystemClock, SystemIds
from strandline.controlplane import BatchRow
from strandline.diskless.reader.blocks import Block
from strandline.diskless.wal import split_keys
from strandline.model import TopicIdPartition, TopicPartition, uuid_to_text
from strandline.objects import ObjectStoreUnavailable
from strandline.records import TimestampType, crc_matches, iter_headers
from strandline.testing.objects import FaultyStore
from strandline.tiering.splitting import DamagedWalObject, MissingObject, split_file
from strandline.tiering_api.values import ClaimedFile, NewSplit, PlannedSplit
from tests.diskless.batches import TOPIC_B
from tests.tiering.layouts import NOW, ORDERS, OTHERS, Produced, WalWorld, produced

LATER = NOW + 5000


def gets(world: WalWorld) -> tuple[int, int]:
    """Requests that read, and bytes they have read."""
    operations = world.stores.objects.status().operations  # type: ignore[attr-defined]
    reads = [operations[name] for name in ("get", "get_range") if name in operations]
    return sum(one.calls for one in reads), sum(one.bytes for one in reads)


class TestTheBytes:
    async def test_offsets_epochs_and_append_times_are_put_in(self, wal: WalWorld) -> None:
        batches = [
            Produced(produced(3)),
            Produced(produced(2), leader_epoch=4),
            Produced(produced(1), OTHERS, leader_epoch=4),
        ]
        wal.ends[ORDERS] = 100
        file = await wal.write(batches, log_append_time=LATER)
        split, other = await wal.split(file)
        data = await wal.bytes_of(split)
        found = list(iter_headers(data))
        assert [(h.base_offset, h.last_offset, h.leader_epoch) for _, h in found] == [(100, 102, 0), (103, 104, 4)]
        assert {(h.timestamp_type, h.max_timestamp) for _, h in found} == {(TimestampType.LOG_APPEND_TIME, LATER)}
        assert all(crc_matches(data, position, header) for position, header in found)
        assert split.partition == ORDERS
        assert split.file == replace(
            split.file,
            base_offset=100,
            last_offset=104,
            size_bytes=len(data),
            batch_count=2,
            max_timestamp=LATER,
            leader_epochs=((0, 100), (4, 103)),
        )
        assert (other.partition, other.file.base_offset, other.file.batch_count) == (OTHERS, 0, 1)

    @pytest.mark.parametrize("append_time", [None, LATER])
    async def test_they_are_those_that_consumers_get(self, wal: WalWorld, append_time: int | None) -> None:
        """The reader of diskless topics stamps what it reads; a record must not change when it is converted."""
        batches = [Produced(produced(n), begins_row=n % 2 == 0, leader_epoch=n // 3) for n in range(1, 9)]
        file = await wal.write(batches, log_append_time=append_time)
        (split,) = await wal.split(file)
        blocks = []
        for row in file.splits[0].rows:
            batch_row = BatchRow(
                row.base_offset,
                row.last_offset,
                1,
                file.object_key,
                row.byte_offset,
                row.byte_size,
                TimestampType(row.timestamp_type),
                row.log_append_time_ms,
                row.max_timestamp,
                row.leader_epoch,
            )
            data = await wal.stores.objects.get_range(file.object_key, row.byte_offset, row.byte_size)
            blocks.append(bytes(Block.of_object(batch_row, data).views[0]))
        assert await wal.bytes_of(split) == b"".join(blocks)

    async def test_what_was_refused_is_skipped(self, wal: WalWorld) -> None:
        batches = [Produced(produced(n), is_refused=n == 2) for n in (1, 2, 3)]
        (split,) = await wal.split(await wal.write(batches))
        assert (split.file.last_offset, split.file.batch_count) == (3, 2)
        assert [h.record_count for _, h in iter_headers(await wal.bytes_of(split))] == [1, 3]

    async def test_the_newest_timestamp_is_that_of_the_batches(self, wal: WalWorld) -> None:
        times = (NOW, NOW + 7, -1)
        (split,) = await wal.split(await wal.write([Produced(produced(timestamp=time)) for time in times]))
        assert split.file.max_timestamp == NOW + 7
        (split,) = await wal.split(await wal.write([Produced(produced(timestamp=-1))]))
        assert split.file.max_timestamp == -1

    async def test_every_attempt_has_objects_of_its_own(self, wal: WalWorld) -> None:
        file = await wal.write([Produced(produced())])
        (first,), (second,) = await asyncio.gather(wal.split(file), wal.split(file))
        assert first.file.object_key != second.file.object_key
        assert await wal.bytes_of(first) == await wal.bytes_of(second)
        key = split_keys.parse(first.file.object_key)
        assert key is not None
        assert (key.topic_id, key.partition, key.base_offset) == (ORDERS.topic_id, 0, 0)
        name = f"{uuid_to_text(ORDERS.topic_id)}-0-{0:020d}-{uuid_to_text(key.unique)}"
        assert first.file.object_key == f"{split_keys.hour_prefix(key.hour_ms)}{name}"


class TestHowItReads:
    async def test_one_request_for_an_object_that_is_mostly_wanted(self, wal: WalWorld) -> None:
        size, gap = 100_000, 300_000
        batches = [Produced(produced(1, size=gap if n % 3 == 1 else size), is_refused=n % 3 == 1) for n in range(3)]
        batches += [Produced(produced(1, size=size)) for _ in range(3)]
        file = await wal.write(batches)
        before = gets(wal)
        await wal.split(file, buffer_bytes=4 << 20)
        assert gets(wal)[0] - before[0] == 1

    async def test_ranges_if_little_of_it_is_wanted(self, wal: WalWorld) -> None:
        large = [Produced(produced(1, size=400_000), is_refused=True)] * 2
        small = [Produced(produced(1, size=1000))] * 2
        file = await wal.write([*small, *large, *small, *large])
        before = gets(wal)
        (split,) = await wal.split(file)
        after = gets(wal)
        assert after[0] - before[0] == 2
        assert after[1] - before[1] == split.file.size_bytes

    async def test_memory_is_bounded_however_large_objects_and_splits_are(self, wal: WalWorld) -> None:
        one = produced(1, size=50_000)
        partitions = [TopicIdPartition(TOPIC_B, TopicPartition("large", n)) for n in range(2)]
        file = await wal.write([Produced(one, partitions[n * 2 // 400]) for n in range(400)])
        tracemalloc.start()
        try:
            splits = await wal.split(file, buffer_bytes=1 << 20)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert file.size > 20_000_000
        assert peak < 3 << 20
        whole = await wal.split(file, buffer_bytes=1 << 28)
        for pieces, at_once in zip(splits, whole, strict=True):
            assert await wal.bytes_of(pieces) == await wal.bytes_of(at_once)

    async def test_a_batch_that_is_larger_than_the_buffer(self, wal: WalWorld) -> None:
        file = await wal.write([Produced(produced(1, size=size)) for size in (10, 500_000, 10)])
        (small,) = await wal.split(file, buffer_bytes=1)
        (large,) = await wal.split(file)
        assert await wal.bytes_of(small) == await wal.bytes_of(large)


class TestDamage:
    async def damaged(self, wal: WalWorld, file: ClaimedFile) -> DamagedWalObject:
        with pytest.raises(DamagedWalObject) as raised:
            await wal.split(file)
        return raised.value

    def path(self, wal: WalWorld, file: ClaimedFile) -> Path:
        return wal.objects / file.object_key

    async def test_a_flipped_bit_is_found_and_the_rest_goes_on(self, wal: WalWorld) -> None:
        file = await wal.write([Produced(produced(3)), Produced(produced(2)), Produced(produced(1), OTHERS)])
        data = bytearray(self.path(wal, file).read_bytes())
        second = len(produced(3))
        data[second + 70] ^= 4
        self.path(wal, file).write_bytes(data)
        damage = await self.damaged(wal, file)
        assert str(damage) == (
            f"The WAL object {file.object_key} is damaged at byte {second}, among the offsets 0 to 4 of orders-0: the "
            "checksum of the batch there does not match its bytes. `strandline fsck --deep` finds all damaged objects."
        )
        assert [split.partition for split in damage.written] == [OTHERS]
        assert await wal.bytes_of(damage.written[0])
        copy = pickle.loads(pickle.dumps(damage))
        assert (str(copy), copy.written) == (str(damage), damage.written)

    @pytest.mark.parametrize(
        ("position", "byte", "why"),
        [
            (8, 0x7F, "a batch there claims"),
            (11, 1, "no batch begins there"),
            (16, 1, "no batch of format 2 begins there"),
            (16, 9, "no batch begins there"),
            (23, 0x80, "no batch of format 2 begins there"),
            (60, 7, "the checksum of the batch there does not match its bytes"),
        ],
    )
    async def test_headers(self, wal: WalWorld, position: int, byte: int, why: str) -> None:
        file = await wal.write([Produced(produced(3))])
        data = bytearray(self.path(wal, file).read_bytes())
        if position == 11:
            data[8:12] = bytes(4)
        data[position] = byte
        self.path(wal, file).write_bytes(data)
        damage = await self.damaged(wal, file)
        assert f"damaged at byte 0, among the offsets 0 to 2 of orders-0: {why}" in str(damage)

    async def test_an_object_that_is_cut(self, wal: WalWorld) -> None:
        file = await wal.write([Produced(produced(3, size=100)), Produced(produced(2), OTHERS)])
        self.path(wal, file).write_bytes(self.path(wal, file).read_bytes()[:200])
        damage = await self.damaged(wal, file)
        assert "damaged at byte 0, among the offsets 0 to 2 of orders-0: the object ends at byte 200." in str(damage)
        assert "1 more splits of it fail." in str(damage)
        assert damage.written == ()

    async def test_rows_that_do_not_fit_the_batches(self, wal: WalWorld) -> None:
        file = await wal.write([Produced(produced(3)), Produced(produced(2))])
        (row,) = file.splits[0].rows
        wrong = PlannedSplit(partition=ORDERS, rows=(row._replace(last_offset=9),))
        damage = await self.damaged(wal, replace(file, splits=(wrong,)))
        assert "the batches there end with offset 4 instead of 9" in str(damage)
        wrong = PlannedSplit(partition=ORDERS, rows=(row._replace(byte_size=row.byte_size - 1),))
        damage = await self.damaged(wal, replace(file, splits=(wrong,)))
        assert "a batch there claims" in str(damage)

    async def test_a_missing_object(self, wal: WalWorld) -> None:
        file = await wal.write([Produced(produced())])
        self.path(wal, file).unlink()
        with pytest.raises(MissingObject) as raised:
            await wal.split(file)
        assert f"The WAL object {file.object_key} is not in file://" in str(raised.value)
        assert "`strandline fsck`" in str(raised.value)


async def test_a_store_that_does_not_take_splits_is_no_damage(wal: WalWorld) -> None:
    file = await wal.write(
        [Produced(produced(1), TopicIdPartition(TOPIC_B, TopicPartition("b", n))) for n in range(20)]
    )
    store = FaultyStore(wal.stores.objects, SystemClock())
    store.fail("put", skip=3, error=ObjectStoreUnavailable("The store is full."))
    with pytest.raises(ObjectStoreUnavailable, match="full"):
        await split_file(store, file, buffer_bytes=1 << 20, clock=SystemClock(), ids=SystemIds())
    written: tuple[NewSplit, ...] = await wal.split(file)
    assert len(written) == 20
