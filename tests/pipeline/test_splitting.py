"""Splitting WAL objects: final bytes, few requests, little memory, and a sentence for what is damaged."""

from __future__ import annotations

import asyncio
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.clock import SystemClock, SystemIds
from strandline.controlplane import BatchRow
from strandline.conversion_api.values import ClaimedFile, NewSplit, PlannedSplit
from strandline.diskless.reader.blocks import Block
from strandline.diskless.wal import split_keys
from strandline.model import TopicIdPartition, TopicPartition, uuid_to_text
from strandline.objects import ObjectStoreUnavailable
from strandline.pipeline.splitting import DamagedWalObject, MissingObject, split_files
from strandline.records import TimestampType, crc_matches, iter_headers
from strandline.testing.objects import FaultyStore
from tests.diskless.batches import TOPIC_B
from tests.pipeline.layouts import CLAIMANT, NOW, ORDERS, OTHERS, Produced, WalWorld, produced

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
        assert first.file.object_key == f"{split_keys.run_prefix(key.hour_ms, CLAIMANT)}{name}"


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


class TestTogether:
    async def written(self, wal: WalWorld, files: int = 4) -> list[ClaimedFile]:
        return [
            await wal.write([Produced(produced(n + 1), leader_epoch=n // 2), Produced(produced(2), OTHERS)])
            for n in range(files)
        ]

    async def test_what_follows_each_other_is_one_split_file(self, wal: WalWorld) -> None:
        files = await self.written(wal)
        found = await wal.split_together(files)
        assert found.troubles == {}
        orders, others = sorted(found.splits, key=lambda split: split.partition.partition)
        assert (orders.file.base_offset, orders.file.last_offset, orders.file.batch_count) == (0, 9, 4)
        assert orders.file.leader_epochs == ((0, 0), (1, 3))
        assert (others.file.base_offset, others.file.last_offset, others.file.batch_count) == (0, 7, 4)
        alone = [split for file in files for split in await wal.split(file)]
        for together in (orders, others):
            parts = [await wal.bytes_of(one) for one in alone if one.partition == together.partition]
            assert await wal.bytes_of(together) == b"".join(parts)
            assert together.file.size_bytes == sum(map(len, parts))

    async def test_a_gap_makes_two_of_them(self, wal: WalWorld) -> None:
        first, _, third = await self.written(wal, 3)
        found = await wal.split_together([first, third])
        assert [(split.partition.partition, split.file.base_offset) for split in found.splits] == [
            (ORDERS.partition, 0),
            (ORDERS.partition, 3),
            (OTHERS.partition, 0),
            (OTHERS.partition, 4),
        ]

    async def test_they_do_not_grow_beyond_a_size(self, wal: WalWorld) -> None:
        files = [await wal.write([Produced(produced(1, size=10_000))]) for _ in range(10)]
        found = await wal.split_together(files, joined_bytes=31_000)
        assert [split.file.batch_count for split in found.splits] == [3, 3, 3, 1]
        assert len((await wal.split_together(files, joined_bytes=1)).splits) == 10

    async def test_what_is_damaged_or_missing_does_not_stop_the_others(self, wal: WalWorld) -> None:
        files = await self.written(wal, 5)
        path = wal.objects / files[1].object_key
        data = bytearray(path.read_bytes())
        data[70] ^= 4  # in the batch of orders
        path.write_bytes(data)
        (wal.objects / files[3].object_key).unlink()
        found = await wal.split_together(files)
        assert {key: type(trouble) for key, trouble in found.troubles.items()} == {
            files[1].object_key: DamagedWalObject,
            files[3].object_key: MissingObject,
        }
        ranges = {(one.partition, one.file.base_offset, one.file.last_offset) for one in found.splits}
        assert ranges == {(ORDERS, 0, 0), (ORDERS, 3, 5), (ORDERS, 10, 14), (OTHERS, 0, 5), (OTHERS, 8, 9)}

    async def test_memory_is_bounded_however_many_there_are(self, wal: WalWorld) -> None:
        files = [await wal.write([Produced(produced(1, size=100_000)) for _ in range(2)]) for _ in range(100)]
        tracemalloc.start()
        try:
            found = await wal.split_together(files, buffer_bytes=2 << 20, joined_bytes=1 << 30)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 3 << 20
        assert 15 < len(found.splits) < 40  # as many as memory makes necessary
        assert found.splits[-1].file.last_offset == 199


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
        (written,) = (await wal.split_together([file])).splits
        assert written.partition == OTHERS
        assert await wal.bytes_of(written)

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
        assert (await wal.split_together([file])).splits == ()

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
        await split_files(
            store,
            [file],
            claimant=CLAIMANT,
            buffer_bytes=1 << 20,
            joined_bytes=1,
            clock=SystemClock(),
            ids=SystemIds(),
        )
    written: tuple[NewSplit, ...] = await wal.split(file)
    assert len(written) == 20
