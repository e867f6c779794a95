"""The log of a segment is read in pieces, and its batches have to cover the offsets in its metadata."""

from __future__ import annotations

import pytest

from strandline.log.producer_snapshot import format_snapshot
from strandline.objects.memory import MemoryStore
from strandline.records import Record
from strandline.records.batch import stamp
from strandline.records.builder import build_batch
from strandline.remote.fsck.segment import SegmentDamaged, check_content
from strandline.testing.clock import VirtualClock
from tests.remote.topic_based.making import FINISHED, segment

MEGABYTE = 1_000_000
SNAPSHOT = format_snapshot([])
EPOCHS = b"0\n1\n0 100\n"


def batch(base_offset: int, records: int = 10, *, size: int = 100) -> bytes:
    made = build_batch([Record(at, 0, None, b"x" * (size // records)) for at in range(records)])
    stamp(made, 0, base_offset, 0)
    return bytes(made)


async def check(log: bytes, *, end: int, index: bytes = b"", size: int | None = None) -> None:
    metadata = segment(1, 100, end, size=len(log) if size is None else size, state=FINISHED)
    store = MemoryStore(VirtualClock())
    contents = {"log": log, "index": index, "timeindex": b"", "snapshot": SNAPSHOT, "leader_epoch_checkpoint": EPOCHS}
    for kind, data in contents.items():
        await store.put(f"some/key.{kind}", [data])
    await check_content(store, "some/key", metadata)


async def test_batches_larger_than_a_piece_and_batches_across_pieces_are_whole() -> None:
    log = batch(100) + batch(110, size=9 * MEGABYTE) + b"".join(batch(120 + 10 * at, size=MEGABYTE) for at in range(9))
    await check(log, end=209)


@pytest.mark.parametrize(
    ("offsets", "end", "why"),
    [
        ([110], 119, "no batch with offsets 100 to 109"),
        ([100, 120], 129, "no batch with offsets 110 to 119"),
        ([100, 110], 129, "no batch with offsets 120 to 129"),
        ([100, 110], 115, "a batch with offsets 110 to 119"),
        ([100, 100], 109, "a batch with offsets 100 to 109"),
        ([90], 99, "a batch with offsets 90 to 99"),
    ],
)
async def test_batches_have_to_cover_the_offsets_of_the_segment(offsets: list[int], end: int, why: str) -> None:
    with pytest.raises(SegmentDamaged, match=why):
        await check(b"".join(map(batch, offsets)), end=max(end, 100))


@pytest.mark.parametrize("cut", [1, 30, 100, 150])
async def test_a_log_that_is_cut_is_damaged_whatever_its_size_says(cut: int) -> None:
    log = batch(100) + batch(110)
    with pytest.raises(SegmentDamaged, match="Its log"):
        await check(log[:-cut], end=119)
    with pytest.raises(SegmentDamaged, match="Its log ends at position"):
        await check(log[:-cut], end=119, size=len(log))


async def test_the_index_has_to_point_to_beginnings_of_batches() -> None:
    log = batch(100) + batch(110)
    position = len(batch(100))
    await check(log, end=119, index=(19).to_bytes(4, "big") + position.to_bytes(4, "big"))
    with pytest.raises(
        SegmentDamaged, match=f"Its index has an entry for position {position - 1}, where no batch begins"
    ):
        await check(log, end=119, index=(19).to_bytes(4, "big") + (position - 1).to_bytes(4, "big"))
