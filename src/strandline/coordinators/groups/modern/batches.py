"""Cutting the records of a decision into batches that the log takes.

The log takes a batch whole or not at all, and none above max.message.bytes. What a decision says about members has to
be in one batch: between two of them the broker may die, and its successor must not find a partition with two owners, or
a member without the epoch that its joining has raised. The targets of members can stand apart: the epoch of the target
comes behind them, and a target that is older than the group is computed again. So a group may have more members and
partitions than fit into one batch. A decision whose other records do not fit is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum

from strandline.coordinators.runtime import KeyValue, write_size
from strandline.errors import StrandlineError
from strandline.records.fields import I16


class BatchCutter:
    """Knows which records of one kind of group stand apart: those of `independent` types, and `last` behind them."""

    def __init__(self, independent: Sequence[IntEnum], last: IntEnum) -> None:
        self._independent = frozenset(I16.pack(kind) for kind in independent)
        self._last = I16.pack(last)

    def check(self, group_id: str, records: Sequence[KeyValue], limit: int) -> None:
        """Raises StrandlineError if the records cannot be written: clients get UNKNOWN_SERVER_ERROR, as from Kafka."""
        if write_size(records) <= limit:
            return
        together, apart, _ = self._sorted(records)
        largest = max([write_size(together), *(write_size([record]) for record in apart)])
        if largest > limit:
            raise StrandlineError(
                f"The change of group {group_id} takes {largest} bytes in one batch, and the log of groups takes "
                f"{limit} (max.message.bytes). Subscribe to fewer topics, or raise the limit."
            )

    def cut(self, records: Sequence[KeyValue], limit: int) -> list[Sequence[KeyValue]]:
        """The batches, in the order in which they have to be written.

        Records that belong together are cut only if they do not fit, which happens when many decisions that the log
        refused are written again.
        """
        if write_size(records) <= limit:
            return [records]
        together, apart, last = self._sorted(records)
        return [*_packed(together, limit), *_packed([*apart, *last], limit)]

    def _sorted(self, records: Sequence[KeyValue]) -> tuple[list[KeyValue], list[KeyValue], list[KeyValue]]:
        together: list[KeyValue] = []
        apart: list[KeyValue] = []
        last: list[KeyValue] = []
        for record in records:
            kind = record[0][: I16.size]
            (apart if kind in self._independent else last if kind == self._last else together).append(record)
        return together, apart, last


def _packed(records: Sequence[KeyValue], limit: int) -> Iterator[list[KeyValue]]:
    """As many in each batch as fit; a record that does not fit alone is left to the log to refuse."""
    batch: list[KeyValue] = []
    size = 0
    for record in records:
        added = write_size([record])
        if batch and size + added > limit:
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += added
    if batch:
        yield batch
