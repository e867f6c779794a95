"""Rows of batches from the columns of a query: catching up over small objects reads them by the ten thousand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from strandline.controlplane.values import BatchRow
from strandline.records import TimestampType

_TIMESTAMP_TYPES: Final = {kind.value: kind for kind in TimestampType}
# The constructor of a NamedTuple takes its fields as arguments, which costs twice as much.
_new_row: Final = tuple.__new__


def batch_row(columns: Sequence[Any]) -> BatchRow:
    """A row from columns in the order of BatchRow."""
    row = [*columns]
    row[6] = _TIMESTAMP_TYPES[row[6]]
    return _new_row(BatchRow, row)


def batch_rows(rows: Sequence[list[Any]]) -> tuple[BatchRow, ...]:
    """The same for many lists of columns, which are changed."""
    for row in rows:
        row[6] = _TIMESTAMP_TYPES[row[6]]
    return tuple([_new_row(BatchRow, row) for row in rows])
