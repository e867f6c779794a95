"""Pieces: rows that follow each other become one block, and nothing else does."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from strandline.controlplane import BatchRow
from strandline.diskless.reader.blocks import Block
from strandline.diskless.reader.cache import PartitionBlocks
from strandline.diskless.reader.pieces import cut, pieces_of
from strandline.diskless.reader.planning import plan_lists, plan_ranges
from strandline.diskless.values import WalObjectGone
from strandline.errors import CorruptMessage
from strandline.objects import ObjectNotFound, ObjectStoreError
from strandline.objects.store import Buffer
from strandline.records import Record, TimestampType, build_batch, stamp

PARTITIONS = (PartitionBlocks(), PartitionBlocks())
EPOCH = 7


def batch(records: int) -> bytes:
    return bytes(build_batch([Record(i, 1000, None, b"x" * 20) for i in range(records)]))


class Written:
    """Objects with rows of two partitions, some of which are not wanted."""

    def __init__(self, drawn: list[list[tuple[int, int, bool]]]) -> None:
        self.objects: dict[str, bytes] = {}
        self.wanted: list[tuple[BatchRow, PartitionBlocks]] = []
        self.stamped: dict[BatchRow, bytes] = {}
        ends = [0, 0]
        for file_id, rows in enumerate(drawn):
            data, key = b"", f"object-{file_id}"
            for number, records, is_wanted in rows:
                one = bytearray(batch(records))
                first, ends[number] = ends[number], ends[number] + records
                row = BatchRow(
                    first, ends[number] - 1, file_id, key, len(data), len(one), TimestampType.CREATE_TIME, -1, 0, EPOCH
                )
                data += one
                stamp(one, 0, first, EPOCH)
                self.stamped[row] = bytes(one)
                if is_wanted:
                    self.wanted.append((row, PARTITIONS[number]))
            self.objects[key] = data


written = st.builds(
    Written,
    st.lists(
        st.lists(st.tuples(st.integers(0, 1), st.integers(1, 3), st.booleans()), max_size=5), min_size=1, max_size=8
    ),
)


@given(
    written=written,
    missing=st.sets(st.integers(0, 7)),
    damaged=st.sets(st.integers(0, 7)),
    largest=st.integers(0, 1000),
    most=st.integers(1, 4),
)
def test_each_row_gets_its_own_batches_or_its_own_error(
    written: Written, missing: set[int], damaged: set[int], largest: int, most: int
) -> None:
    asyncio.run(_check(written, missing, damaged, largest, most))  # pieces have futures, which belong to a loop


async def _check(written: Written, missing: set[int], damaged: set[int], largest: int, most: int) -> None:
    seen: list[BatchRow] = []
    for ranges in plan_lists(plan_ranges(written.wanted), most=most, max_bytes=2000):
        answers: list[Buffer | ObjectStoreError] = []
        for ranged in ranges:
            data = bytearray(written.objects[ranged.object_key])
            if ranged.rows[0][0].file_id in damaged:
                data[-1] ^= 1  # the last batch of the object
            is_missing = ranged.rows[0][0].file_id in missing
            answers.append(ObjectNotFound("gone") if is_missing else data[ranged.start : ranged.start + ranged.length])
        pieces = pieces_of(ranges, max_bytes=largest)
        for piece, loaded in zip(pieces, cut(ranges, answers, pieces), strict=True):
            rows = piece.rows
            assert all(before.last_offset + 1 == after.base_offset for before, after in pairwise(rows))
            assert len(rows) == 1 or sum(row.byte_size for row in rows) <= largest
            seen += rows
            for row in rows:
                outcome = loaded.of(row)
                is_last = row.byte_offset + row.byte_size == len(written.objects[row.object_key])
                if row.file_id in missing:
                    assert isinstance(outcome, WalObjectGone)
                elif row.file_id in damaged and is_last:
                    assert isinstance(outcome, CorruptMessage)
                else:
                    assert isinstance(outcome, Block)
                    assert outcome.base_offset <= row.base_offset <= row.last_offset <= outcome.last_offset
                    assert bytes(outcome.batch(outcome.find(row.base_offset))) == written.stamped[row]
    assert sorted(seen) == sorted(row for row, _ in written.wanted)
