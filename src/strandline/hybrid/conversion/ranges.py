"""Which split files become which segment. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from strandline.controlplane.conversion import LogSplits, PendingSplit
from strandline.conversion_api.values import MergeRange
from strandline.hybrid.conversion.translating import split_file
from strandline.model import INT32_MAX, LeaderEpoch

_MOST_EPOCHS: Final = 1000
"""Metadata of a segment lists its leader epochs: keep it small, whatever happened to the brokers."""


class SegmentSizes(NamedTuple):
    """How large segments of a topic are to be."""

    min_bytes: int
    max_bytes: int
    max_wait_ms: int
    """Split files that have waited for longer become a segment, however small."""


def plan_ranges_of(log: LogSplits, sizes: SegmentSizes) -> Iterator[MergeRange]:
    """The next segments of a log, in order: full ones, and a last one that is large enough or has waited enough."""
    full: list[PendingSplit] = []
    size, epochs = 0, set[LeaderEpoch]()
    for split in log.splits:
        file = split.file
        size += file.size_bytes
        epochs.update(epoch for epoch, _ in file.leader_epochs)
        if full and not _fits(full[0], split, sizes.max_bytes, size=size, epochs=len(epochs)):
            yield _range(log, full)
            full, size, epochs = [], file.size_bytes, {epoch for epoch, _ in file.leader_epochs}
        full.append(split)
    if full and _is_ripe(log, full, sizes):
        yield _range(log, full)


def _fits(first: PendingSplit, last: PendingSplit, max_bytes: int, *, size: int, epochs: int) -> bool:
    """Whether these split files and those between them, with so many bytes and leader epochs, can be one segment."""
    span = last.file.last_offset - first.file.base_offset
    return size <= max_bytes and span <= INT32_MAX and epochs <= _MOST_EPOCHS


def _is_ripe(log: LogSplits, splits: Sequence[PendingSplit], sizes: SegmentSizes) -> bool:
    if sum(split.file.size_bytes for split in splits) >= min(sizes.min_bytes, sizes.max_bytes):
        return True
    if log.now_ms - min(split.created_at_ms for split in splits) >= sizes.max_wait_ms:
        return True
    triggered = log.tiering.triggered_at_ms
    return triggered is not None and all(split.committed_at_ms <= triggered for split in splits)


def _range(log: LogSplits, splits: Sequence[PendingSplit]) -> MergeRange:
    files = tuple(split.file for split in splits)
    return MergeRange(
        partition=log.log.partition,
        base_offset=files[0].base_offset,
        last_offset=files[-1].last_offset,
        size_bytes=sum(file.size_bytes for file in files),
        splits=tuple(map(split_file, files)),
    )
