"""Which ranges of which objects to read for a set of rows. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from strandline.controlplane import BatchRow

T = TypeVar("T")

# A request to an object store costs about as much as reading this many bytes.
MAX_GAP: Final = 256 * 1024
# Larger reads gain nothing, and every reader of a range waits for its last byte.
MAX_RANGE: Final = 8 * 1024 * 1024


class RangedRead(NamedTuple, Generic[T]):
    """One request to the object store, and the rows in its range, in the order of their bytes."""

    object_key: str
    start: int
    length: int
    rows: tuple[tuple[BatchRow, T], ...]


def plan_ranges(
    wanted: Sequence[tuple[BatchRow, T]], *, max_gap: int = MAX_GAP, max_range: int = MAX_RANGE
) -> list[RangedRead[T]]:
    """Few requests for many rows: rows that are close in one object are read together, whatever their partitions.

    At most `max_gap` unneeded bytes are read between two rows. A range is longer than `max_range` only if a single
    row is.
    """
    plan: list[RangedRead[T]] = []
    by_object: dict[str, list[tuple[BatchRow, T]]] = {}
    for pair in wanted:
        by_object.setdefault(pair[0].object_key, []).append(pair)
    # In the order of their commits, in which consumers will ask for them. Keys have another order.
    for object_key, rows in sorted(by_object.items(), key=_file_id):
        rows.sort(key=_byte_offset)
        together: list[tuple[BatchRow, T]] = []
        start = end = 0
        for pair in rows:
            row = pair[0]
            row_end = row.byte_offset + row.byte_size
            if together and (row.byte_offset - end > max_gap or max(row_end, end) - start > max_range):
                plan.append(RangedRead(object_key, start, end - start, tuple(together)))
                together = []
            if not together:
                start, end = row.byte_offset, row_end
            together.append(pair)
            end = max(end, row_end)
        plan.append(RangedRead(object_key, start, end - start, tuple(together)))
    return plan


def plan_lists(plan: Sequence[RangedRead[T]], *, most: int, max_bytes: int) -> list[list[RangedRead[T]]]:
    """Ranges to be read by one call, in their order: at most so many, and small ones only, unless it is just one."""
    lists: list[list[RangedRead[T]]] = []
    left = 0
    for ranged in plan:
        if not lists or len(lists[-1]) >= most or ranged.length > left:
            lists.append([])
            left = max_bytes
        lists[-1].append(ranged)
        left -= ranged.length
    return lists


def _file_id(item: tuple[str, list[tuple[BatchRow, T]]]) -> int:
    return item[1][0][0].file_id


def _byte_offset(pair: tuple[BatchRow, object]) -> int:
    return pair[0].byte_offset
