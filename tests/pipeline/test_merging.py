"""Merging split files into segments: what is uploaded is what the plan says, or nothing is; memory is bounded."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.conversion_api.values import SplitFile
from strandline.log.producer_snapshot import parse_snapshot
from strandline.objects import ObjectStoreUnavailable
from strandline.pipeline.damage import ConversionFailed
from strandline.pipeline.merging import DamagedSegment, DamagedSplit, MissingObject
from strandline.records import iter_headers
from strandline.remote.ports import RemoteStorageError
from tests.pipeline.layouts import NOW, ORDERS, Produced, WalWorld, produced


async def splits_of(wal: WalWorld, *files: Sequence[Produced]) -> list[SplitFile]:
    """Split files of one partition, one for each WAL object."""
    found: list[SplitFile] = []
    for batches in files:
        found += [split.file for split in await wal.split(await wal.write(batches))]
    return found


def numbered(producer: int, first: int, count: int = 2, *, epoch: int = 0, timestamp: int = NOW) -> Produced:
    data = produced(count, producer_id=producer, sequence=first, timestamp=timestamp)
    return Produced(data, leader_epoch=epoch)


def left_in(wal: WalWorld) -> list[Path]:
    return list(wal.workdir.iterdir())


class TestChains:
    async def test_producers_and_epochs_go_on_from_segment_to_segment(self, wal: WalWorld) -> None:
        splits = await splits_of(
            wal, [numbered(1, 0)], [numbered(2, 0, epoch=1)], [numbered(1, 2, epoch=1)], [numbered(3, 0, epoch=2)]
        )
        first, second = wal.begun(splits[:1]), wal.begun(splits[1:3])
        await wal.merge(first, second)
        third = wal.begun(splits[3:], previous=second.segment)
        (built,) = await wal.merge(third)
        assert (built.segment_id, built.end_offset) == (third.segment.segment_id, 7)
        assert built.bytes == splits[3].size_bytes
        files = [await wal.files(begun) for begun in (first, second, third)]
        assert [one["leader_epoch_checkpoint"] for one in files] == [
            b"0\n1\n0 0\n",
            b"0\n2\n0 0\n1 2\n",
            b"0\n3\n0 0\n1 2\n2 6\n",
        ]
        states = [{e.producer_id: e.last_offset for e in parse_snapshot(one["snapshot"])} for one in files]
        assert states == [{1: 1}, {1: 5, 2: 3}, {1: 5, 2: 3, 3: 7}]
        assert left_in(wal) == []

    async def test_a_repeated_merge_writes_the_same_bytes_also_at_the_same_time(self, wal: WalWorld) -> None:
        splits = await splits_of(wal, [numbered(1, 0)], [numbered(1, 2)])
        chain = [wal.begun(splits[:1]), wal.begun(splits[1:])]
        await wal.merge(*chain)
        before = {path: path.read_bytes() for path in wal.uploaded()}
        await asyncio.gather(wal.merge(*chain), wal.merge(*chain))
        assert {path: path.read_bytes() for path in wal.uploaded()} == before
        assert len(before) == 10

    async def test_a_later_segment_does_not_depend_on_how_chains_are_cut(self, wal: WalWorld) -> None:
        """A run that goes on after a crash takes the state from remote storage, where the first one had it at hand."""
        splits = await splits_of(wal, [numbered(1, 0, timestamp=NOW - 86_400_000)], [numbered(2, 0)])
        first, second = wal.begun(splits[:1]), wal.begun(splits[1:])
        await wal.merge(first, second)
        found = await wal.files(second)
        await wal.merge(replace(second, previous=first.segment))
        assert await wal.files(second) == found
        assert [entry.producer_id for entry in parse_snapshot(found["snapshot"])] == [2]

    async def test_a_segment_that_does_not_follow_is_refused(self, wal: WalWorld) -> None:
        splits = await splits_of(wal, [numbered(1, 0)], [numbered(1, 2)], [numbered(1, 4)])
        first = wal.begun(splits[:1])
        with pytest.raises(ConversionFailed, match="the one before it ends with offset 1"):
            await wal.merge(first, wal.begun(splits[2:]))
        with pytest.raises(ConversionFailed, match="the one before it ends with offset 1"):
            await wal.merge(wal.begun(splits[2:], previous=first.segment))


class TestDamage:
    """Nothing of a segment is uploaded that is not what was announced, and no file is left behind."""

    async def refused(self, wal: WalWorld, splits: Sequence[SplitFile]) -> str:
        with pytest.raises(ConversionFailed) as raised:
            await wal.merge(wal.begun(splits))
        assert wal.uploaded() == []
        assert left_in(wal) == []
        assert isinstance(raised.value, DamagedSplit | MissingObject)
        assert splits[-1].object_key in str(raised.value)
        assert "fsck" in str(raised.value)
        return str(raised.value)

    async def two(self, wal: WalWorld) -> list[SplitFile]:
        return await splits_of(wal, [Produced(produced(2))], [Produced(produced(2)), Produced(produced(3))])

    async def test_a_missing_split_file(self, wal: WalWorld) -> None:
        splits = await self.two(wal)
        (wal.objects / splits[1].object_key).unlink()
        sentence = await self.refused(wal, splits)
        assert f"{splits[1].object_key}, which should hold the offsets 2 to 6, is not in file://" in sentence

    async def test_one_that_is_cut(self, wal: WalWorld) -> None:
        splits = await self.two(wal)
        path = wal.objects / splits[1].object_key
        path.write_bytes(path.read_bytes()[:-1])
        sentence = await self.refused(wal, splits)
        assert f"ends at byte {splits[1].size_bytes - 1}, but should have {splits[1].size_bytes} bytes" in sentence

    @pytest.mark.parametrize("position", [*range(24), 57, 61, -1])
    async def test_any_flipped_bit_is_found(self, wal: WalWorld, position: int) -> None:
        splits = await self.two(wal)
        path = wal.objects / splits[1].object_key
        data = bytearray(path.read_bytes())
        last = [at for at, _ in iter_headers(data)][-1]
        data[position if position < 0 else last + position] ^= 2
        path.write_bytes(data)
        await self.refused(wal, splits)

    async def test_an_object_with_other_batches(self, wal: WalWorld) -> None:
        splits = await self.two(wal)
        other = (await splits_of(wal, [Produced(produced(2)), Produced(produced(3))]))[0]
        (wal.objects / splits[1].object_key).write_bytes((wal.objects / other.object_key).read_bytes())
        assert "A batch of the offsets 7 to 8 is where offset 2 should be" in await self.refused(wal, splits)

    @pytest.mark.parametrize(
        ("changed", "sentence"),
        [
            ({"last_offset": 7}, "it ends with offset 6 instead of 7"),
            ({"batch_count": 3}, "it has 2 batches instead of 3"),
            ({"leader_epochs": ((1, 2),)}, "its leader epochs and their first offsets are ((0, 2),), not ((1, 2),)"),
            ({"max_timestamp": NOW + 1}, f"its newest timestamp is {NOW} instead of {NOW + 1}"),
            ({"base_offset": 3}, "it begins with offset 3 instead of 2"),
        ],
    )
    async def test_a_plan_that_does_not_fit(self, wal: WalWorld, changed: dict[str, int], sentence: str) -> None:
        splits = await self.two(wal)
        splits[1] = replace(splits[1], **changed)  # type: ignore[arg-type]
        assert f"is damaged: {sentence}." in await self.refused(wal, splits)

    async def test_a_plan_that_ends_inside_a_batch(self, wal: WalWorld) -> None:
        splits = await self.two(wal)
        splits[1] = replace(splits[1], size_bytes=splits[1].size_bytes - 1)
        assert "the batch of offset 4 reaches beyond its end" in await self.refused(wal, splits)
        splits[1] = replace(splits[1], size_bytes=splits[1].size_bytes - len(produced(3)) + 10)
        assert "it ends inside a batch" in await self.refused(wal, splits)

    async def test_an_announcement_that_does_not_fit(self, wal: WalWorld) -> None:
        begun = wal.begun(await self.two(wal))
        for wrong in (
            replace(begun.segment, end_offset=9),
            replace(begun.segment, segment_size_in_bytes=1),
            replace(begun.segment, leader_epochs=((3, 0),)),
        ):
            with pytest.raises(ConversionFailed, match="does not come out as announced"):
                await wal.merge(replace(begun, segment=wrong))
        assert wal.uploaded() == []


class TestTheSegmentBefore:
    async def chain(self, wal: WalWorld) -> tuple[dict[str, Path], list[SplitFile]]:
        splits = await splits_of(wal, [numbered(1, 0)], [numbered(1, 2)])
        self.first = wal.begun(splits[:1])
        await wal.merge(self.first)
        return {path.suffix: path for path in wal.uploaded()}, splits

    @pytest.mark.parametrize("suffix", [".snapshot", ".leader_epoch_checkpoint"])
    async def test_a_missing_state(self, wal: WalWorld, suffix: str) -> None:
        files, splits = await self.chain(wal)
        files[suffix].unlink()
        with pytest.raises(MissingObject, match="of the offsets 0 to 1 of orders-0 are missing"):
            await wal.merge(wal.begun(splits[1:], previous=self.first.segment))

    @pytest.mark.parametrize("suffix", [".snapshot", ".leader_epoch_checkpoint"])
    async def test_a_damaged_state(self, wal: WalWorld, suffix: str) -> None:
        files, splits = await self.chain(wal)
        files[suffix].write_bytes(b"0\n7\n" + files[suffix].read_bytes()[4:])
        with pytest.raises(DamagedSegment, match=r"Restore the file .*from a copy\."):
            await wal.merge(wal.begun(splits[1:], previous=self.first.segment))
        assert left_in(wal) == []


async def test_memory_is_bounded_however_large_a_segment_is(wal: WalWorld) -> None:
    one = Produced(produced(1, size=60_000))
    splits = await splits_of(wal, *([one] * 80 for _ in range(5)))
    begun = wal.begun(splits)
    assert begun.segment.segment_size_in_bytes > 20_000_000
    tracemalloc.start()
    try:
        await wal.merge(begun, buffer_bytes=1 << 20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 << 20


async def test_nothing_is_left_in_the_work_directory_when_the_upload_fails(wal: WalWorld) -> None:
    (begun,) = [wal.begun(await splits_of(wal, [numbered(1, 0)]))]
    remote = wal.root / "remote"
    remote.rename(wal.root / "away")
    remote.write_bytes(b"no directory")
    with pytest.raises((RemoteStorageError, ObjectStoreUnavailable)):
        await wal.merge(begun)
    assert left_in(wal) == []
    remote.unlink()
    (wal.root / "away").rename(remote)
    assert len(await wal.merge(begun)) == 1
    assert begun.partition == ORDERS
