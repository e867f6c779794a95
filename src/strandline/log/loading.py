"""Opening a partition's directory, and creating a new one."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from strandline.config import TopicConfig
from strandline.log.checkpoints import write_topic_id
from strandline.log.environment import LogEnvironment
from strandline.log.files import (
    CLEANED,
    LOG,
    OFFSET_INDEX,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    SWAP,
    TEMPORARY,
    TIME_INDEX,
    TXN_INDEX,
    offset_name,
    parse_numbered,
    remove_if_there,
)
from strandline.log.index_file import LoadedIndexes
from strandline.log.recovery import rebuild_epochs, rebuild_producers_of, recover_log, recover_segment
from strandline.log.segment import LogSegment
from strandline.log.unified import UnifiedLog
from strandline.model import TopicPartition

logger = logging.getLogger(__name__)

_LIVE: Final = ""


@dataclass(slots=True)
class _Listing:
    """The files of a partition's directory, by state suffix and kind."""

    sizes: dict[int, int] = field(default_factory=dict)
    """Size of each live `.log` by its base offset."""
    others: dict[str, set[int]] = field(default_factory=dict)
    """Base offsets that have a live file of a kind, by suffix."""
    swaps: set[int] = field(default_factory=set)
    cleaned: set[int] = field(default_factory=set)
    leftovers: list[str] = field(default_factory=list)
    """Files to delete at start: `.deleted`, `.cleaned`, half-written ones."""

    def has(self, suffix: str, base_offset: int) -> bool:
        return base_offset in self.others.get(suffix, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedOffsets:
    """What the checkpoints of the log directory say about a partition. Defaults: nothing."""

    recovery_point: int = 0
    log_start: int | None = None
    high_watermark: int = 0


def create_log(
    partition: TopicPartition, config: TopicConfig, env: LogEnvironment, *, topic_id: UUID | None
) -> UnifiedLog:
    """Create the directory of a new partition, with an empty segment at offset 0. Raises OSError."""
    directory = env.path_of(str(partition))
    os.mkdir(directory)
    log = UnifiedLog(partition, directory, config, env, topic_id=topic_id)
    log.segments.create(0)
    if topic_id is not None:
        write_topic_id(directory, topic_id)
    return log


def load_log(
    partition: TopicPartition,
    directory: str,
    config: TopicConfig,
    env: LogEnvironment,
    *,
    offsets: LoadedOffsets,
    is_clean: bool,
) -> UnifiedLog:
    """Open a partition's directory. Blocking. After a clean stop an empty partition costs one listing.

    Raises OSError, or KafkaStorageError if a checkpoint is damaged.
    """
    listing = _list(directory)
    if listing.swaps or listing.cleaned:
        _finish_swaps(directory, listing, env.cache)
        listing = _list(directory)
    for path in listing.leftovers:
        remove_if_there(path)
    log = UnifiedLog(partition, directory, config, env, snapshots=listing.others.get(SNAPSHOT, ()))
    _add_segments(log, directory, listing)
    log.start.load(offsets.log_start)
    _remove_stray_snapshots(log)
    log.producers.note_dropped(log.segments.bases)
    _repair_indexes(log, listing, before=None if is_clean else offsets.recovery_point)
    if not is_clean:
        recover_log(log, offsets.recovery_point)
    end = _find_end(log)
    if offsets.log_start is not None and end < offsets.log_start:
        logger.warning("%s ends at %d, below its log start %d: it starts again there", log, end, offsets.log_start)
        log.truncate_fully_and_start_at(offsets.log_start)
        return log
    _set_offsets(log, end, offsets, is_clean=is_clean)
    return log


def _list(directory: str) -> _Listing:
    listing = _Listing()
    with os.scandir(directory) as entries:
        for entry in entries:
            parsed = parse_numbered(entry.name)
            if parsed is None:
                if entry.name.endswith(TEMPORARY):
                    listing.leftovers.append(entry.path)
                continue
            offset, suffix, state = parsed
            if state == _LIVE:
                if suffix == LOG:
                    listing.sizes[offset] = entry.stat().st_size
                else:
                    listing.others.setdefault(suffix, set()).add(offset)
            elif state == SWAP:
                listing.swaps.add(offset)
            else:
                listing.leftovers.append(entry.path)
                if state == CLEANED:
                    listing.cleaned.add(offset)
    return listing


def _finish_swaps(directory: str, listing: _Listing, cache: LoadedIndexes) -> None:
    """Carry a replacement of segments through, or undo it, after a crash in its middle.

    While a `.cleaned` file is left, not all new segments were ready: swaps at or above it are thrown away. Otherwise
    a swap takes the place of every segment that its offsets cover.
    """
    limit = min(listing.cleaned, default=None)
    for base in sorted(listing.swaps):
        paths = {suffix: os.path.join(directory, offset_name(base, suffix)) for suffix in SEGMENT_SUFFIXES}
        has_log = os.path.exists(paths[LOG] + SWAP)
        if limit is not None and base >= limit:
            _remove_all(path + SWAP for path in paths.values())
            continue
        if has_log:
            size = os.stat(paths[LOG] + SWAP).st_size
            swap = LogSegment(directory, base, size=size, created_ms=0, cache=cache, state=SWAP)
            _remove_covered(directory, listing, base, swap.read_next_offset())
            swap.file.close()
        # The .log file is renamed first: indexes without one belong to a segment that is live already.
        for path in paths.values():
            if os.path.exists(path + SWAP):
                os.replace(path + SWAP, path)


def _remove_covered(directory: str, listing: _Listing, base: int, next_offset: int) -> None:
    for other in sorted(listing.sizes):
        if base <= other < next_offset:
            _remove_all(os.path.join(directory, offset_name(other, suffix)) for suffix in SEGMENT_SUFFIXES)
            del listing.sizes[other]


def _remove_all(paths: Iterable[str]) -> None:
    for path in paths:
        remove_if_there(path)


def _add_segments(log: UnifiedLog, directory: str, listing: _Listing) -> None:
    now_ms = log.env.clock.now_ms()
    for base in sorted(listing.sizes):
        log.segments.add(
            LogSegment(
                directory,
                base,
                size=listing.sizes[base],
                created_ms=now_ms,
                cache=log.env.cache,
                has_txn_index=listing.has(TXN_INDEX, base),
            )
        )
    for suffix in (OFFSET_INDEX, TIME_INDEX, TXN_INDEX):
        for base in listing.others.get(suffix, ()):
            if base not in listing.sizes:
                remove_if_there(os.path.join(directory, offset_name(base, suffix)))
    if not listing.sizes:
        log.segments.create(0)


def _remove_stray_snapshots(log: UnifiedLog) -> None:
    """Keep the producer snapshots that belong to a segment, and the newest if it is above all segments."""
    bases, newest = set(log.segments.bases), log.producers.latest_snapshot
    top = log.segments.active.base_offset
    log.producers.remove_snapshots(lambda offset: offset not in bases and not (offset == newest and offset > top))


def _repair_indexes(log: UnifiedLog, listing: _Listing, *, before: int | None) -> None:
    """Rebuild missing or damaged indexes of the segments that recovery will not look at."""
    trusted = len(log.segments) - (0 if before is None else len(log.segments.covering(before)))
    for segment in log.segments.as_list()[:trusted]:
        base = segment.base_offset
        has_indexes = listing.has(OFFSET_INDEX, base) and listing.has(TIME_INDEX, base)
        if segment.size and not (has_indexes and segment.txn_index.is_sane()):
            logger.warning("rebuilding the indexes of %s", segment.file.path)
            rebuild_producers_of(log, base)
            recover_segment(log, segment)


def _find_end(log: UnifiedLog) -> int:
    active = log.segments.active
    return active.read_next_offset() if active.size else active.base_offset


def _set_offsets(log: UnifiedLog, end: int, offsets: LoadedOffsets, *, is_clean: bool) -> None:
    log.offsets.load_end(end, high_watermark=offsets.high_watermark)
    log.flusher.recovery_point = end if is_clean else min(offsets.recovery_point, end)
    log.epochs.clamp(log.log_start_offset, end)
    if log.is_remote and end > log.segments.first.base_offset and not log.epochs.entries:
        # Without epochs nothing can be copied. The epochs of records that are in remote storage only are lost.
        rebuild_epochs(log, end)
    if not is_clean:
        # Recovery has followed every batch up to the end, and knows more of each producer than a snapshot can hold:
        # a producer that had several batches in flight when the broker died sends all of them again.
        log.producers.forget_replicated(log.high_watermark)
        log.producers.take_snapshot(end)
        log.epochs.write()
    elif log.producers.snapshots:  # after a clean stop a log without one never had a producer
        rebuild_producers_of(log, end)
