"""Rebuilding producer state from a snapshot and the batches after it."""

from __future__ import annotations

from strandline.log.producer_snapshot import format_snapshot
from strandline.log.producer_state import ProducerState
from strandline.log.segment import LogSegment
from strandline.log.state import LogState
from strandline.log.values import AppendOrigin
from strandline.records.batch import BatchHeader, Buffer
from strandline.records.control import read_marker


def follow_batch(producers: ProducerState, header: BatchHeader, segment: LogSegment, position: int) -> None:
    """Let producer state follow a batch that is in the log. The transaction index is left alone."""
    if header.producer_id < 0:
        return
    if not header.is_control:
        producers.append_data(header, header.base_offset, AppendOrigin.REPLICATION)
        return
    follow_marker(producers, header, segment.file.read(position, header.size))


def follow_marker(producers: ProducerState, header: BatchHeader, batch: Buffer) -> None:
    """Let producer state follow a control batch."""
    marker = read_marker(batch) if header.record_count else None
    if marker is not None:
        completed = producers.append_marker(header, header.base_offset, marker, AppendOrigin.REPLICATION)
        if completed is not None:
            producers.complete(completed)


def rebuild_snapshot(log: LogState, offset: int) -> None:
    """Make the snapshot as of `offset` again, which is lost, without touching the state of the log's end. Blocking."""
    env = log.env
    past = ProducerState(str(log.directory), [taken for taken in log.producers.snapshots if taken < offset])
    start = past.load_newest_snapshot(log.log_start_offset, offset, env.clock.now_ms(), env.producer_expiration_ms)
    _replay(log, past, start, offset)
    log.producers.add_snapshot(offset, format_snapshot(past.entries.values()), log._write_small)


def rebuild_producers(log: LogState, log_start: int, end: int) -> bool:
    """Make the producer state that of `end`: the newest snapshot, then the batches after it. True if any were read.

    Headers are enough, except for markers.
    """
    producers = log.producers
    env = log.env
    offset = producers.load_newest_snapshot(log_start, end, env.clock.now_ms(), env.producer_expiration_ms)
    if offset >= end:
        return False
    _replay(log, producers, offset, end)
    producers.forget_replicated(log.high_watermark)
    return True


def _replay(log: LogState, producers: ProducerState, start: int, end: int) -> None:
    """Let producer state follow the batches that end after `start`. Only a log start lies inside a batch."""
    for segment in log.segments.covering(start):
        if segment.base_offset >= end:
            break
        found = segment.locate(max(start, segment.base_offset), segment.size)
        if found is None:
            continue
        for position, header in segment.headers(found[0]):
            if header.base_offset >= end:
                break
            follow_batch(producers, header, segment, position)
