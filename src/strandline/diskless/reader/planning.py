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
    together: list[tuple[BatchRow, T]] = []
    start = end = 0
    for row, what in sorted(wanted, key=lambda pair: (pair[0].object_key, pair[0].byte_offset)):
        row_end = row.byte_offset + row.byte_size
        if together and (
            row.object_key != together[0][0].object_key
            or row.byte_offset - end > max_gap
            or max(row_end, end) - start > max_range
        ):
            plan.append(RangedRead(together[0][0].object_key, start, end - start, tuple(together)))
            together = []
        if not together:
            start, end = row.byte_offset, row_end
        together.append((row, what))
        end = max(end, row_end)
    if together:
        plan.append(RangedRead(together[0][0].object_key, start, end - start, tuple(together)))
    return plan
