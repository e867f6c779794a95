"""Producer state from batches: of one batch, or rebuilt from a snapshot and the batches after it."""

from __future__ import annotations

import logging
from functools import partial
from operator import eq

from strandline.errors import CorruptMessage
from strandline.log.partition_directory import PartitionDirectory
from strandline.log.producer_snapshot import format_snapshot
from strandline.log.producer_state import PartitionProducers
from strandline.log.segment import LogSegment
from strandline.log.segments import Segments
from strandline.log.transaction_index import AbortedTxn
from strandline.log.unstable import CompletedTxn
from strandline.records import BatchHeader, Buffer, read_marker
from strandline.records.batch import CONTROL_BIT

logger = logging.getLogger(__name__)

_new_tuple = tuple.__new__  # skips a Python call for each transaction that is aborted


def follow_batch(producers: PartitionProducers, header: BatchHeader, batch: Buffer, segment: LogSegment) -> None:
    """Let producer state and transaction index follow a batch that is in the log already, or will be."""
    if header.producer_id < 0:
        return
    if not header.attributes & CONTROL_BIT:
        producers.follow(header)
        return
    completed = _follow_marker(producers, header, batch)
    if completed is not None:
        complete_transaction(producers, completed, segment)


def complete_transaction(producers: PartitionProducers, completed: CompletedTxn, segment: LogSegment) -> None:
    """End a transaction. An aborted one is noted in the index of the segment that holds its marker."""
    if completed.is_aborted:
        stable = producers.stable_offset_after(completed)
        aborted = (completed.producer_id, completed.first_offset, completed.last_offset, stable)
        segment.txn_index.append(_new_tuple(AbortedTxn, aborted))
    producers.complete(completed)


def _follow_marker(producers: PartitionProducers, header: BatchHeader, batch: Buffer) -> CompletedTxn | None:
    marker = read_marker(batch) if header.record_count else None
    if marker is None:
        return None
    return producers.follow_marker(header, header.base_offset, marker)


def rebuild_snapshot(
    directory: PartitionDirectory, segments: Segments, producers: PartitionProducers, *, log_start: int, offset: int
) -> None:
    """Write a lost snapshot as of `offset` again. The state as of the log's end is left alone. Blocking."""
    past = PartitionProducers(directory, [taken for taken in producers.snapshots if taken < offset])
    start = _load_newest_snapshot(past, log_start, offset)
    _replay(segments, past, start, offset)
    producers.add_snapshot(offset, format_snapshot(past.entries.values()))


def rebuild_producers(
    segments: Segments, producers: PartitionProducers, *, log_start: int, end: int, high_watermark: int
) -> None:
    """Rebuild the producer state as of `end`: the newest snapshot, then the batches after it.

    Only headers are read, and markers.
    """
    offset = _load_newest_snapshot(producers, log_start, end)
    if offset < end:
        _replay(segments, producers, offset, end)
        producers.forget_replicated(high_watermark)


def _load_newest_snapshot(producers: PartitionProducers, log_start: int, end: int) -> int:
    """Start from the newest readable snapshot between log start and end; returns the offset to replay from.

    One at the log start counts: the producers of deleted records go on, and their last batch may come again.
    Snapshots above `end` and damaged ones are removed.
    """
    producers.remove_snapshots(lambda offset: offset > end)
    producers.finish_snapshots()
    producers.clear()
    while (newest := producers.latest_snapshot) is not None and newest >= log_start:
        try:
            producers.load_snapshot(newest)
        except FileNotFoundError:
            pass
        except CorruptMessage as error:
            logger.warning("removing the producer snapshot %s: %s", producers.snapshot_path(newest), error)
        else:
            return newest
        producers.remove_snapshots(partial(eq, newest))
    return log_start


def _replay(segments: Segments, producers: PartitionProducers, start: int, end: int) -> None:
    """Let producer state follow the batches that end after `start`. The transaction indexes are left alone.

    `start` lies inside a batch only if it is the log start.
    """
    for segment in segments.covering(start):
        if segment.base_offset >= end:
            break
        found = segment.locate(max(start, segment.base_offset), segment.size)
        if found is None:
            continue
        for position, header in segment.headers(found[0]):
            if header.base_offset >= end:
                break
            _replay_batch(producers, header, segment, position)


def _replay_batch(producers: PartitionProducers, header: BatchHeader, segment: LogSegment, position: int) -> None:
    if header.producer_id < 0:
        return
    if not header.attributes & CONTROL_BIT:
        producers.follow(header)
        return
    completed = _follow_marker(producers, header, segment.file.read(position, header.size))
    if completed is not None:
        producers.complete(completed)
