"""Which split files become which segment. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from strandline.controlplane.tiering_values import LogSplits, PendingSplit
from strandline.model import INT32_MAX
from strandline.tiering_api.values import MergeRange

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
    for split in log.splits:
        if full and not _fits(full, split, sizes.max_bytes):
            yield _range(log, full)
            full = []
        full.append(split)
    if full and _is_ripe(log, full, sizes):
        yield _range(log, full)


def _fits(before: Sequence[PendingSplit], split: PendingSplit, max_bytes: int) -> bool:
    size = sum(one.file.size_bytes for one in before) + split.file.size_bytes
    epochs = sum(len(one.file.leader_epochs) for one in (*before, split))
    span = split.file.last_offset - before[0].file.base_offset
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
        splits=files,
    )
