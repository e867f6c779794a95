"""Recovery after a crash: cut a torn tail, rebuild indexes, epochs and producer state from the batches."""

from __future__ import annotations

import logging

from crc32c import crc32c

from strandline.errors import CorruptMessage, InvalidRecord
from strandline.log.epochs import LeaderEpochs
from strandline.log.replay import follow_batch, rebuild_producers
from strandline.log.segment import LogSegment
from strandline.log.unified import UnifiedLog
from strandline.model import NO_EPOCH, NO_TIMESTAMP
from strandline.records import LOG_OVERHEAD, BatchHeader, crc_matches
from strandline.records.batch import CRC_START, CURRENT_MAGIC

logger = logging.getLogger(__name__)


def recover_log(log: UnifiedLog, recovery_point: int) -> None:
    """Repair every segment from the one that holds `recovery_point` on; drop all after a torn one.

    Everything below the recovery point was forced to disk, indexes included, and is trusted.
    """
    segments = log.segments.covering(recovery_point)
    rebuild_producers_of(log, segments[0].base_offset)
    if len(log.producers):
        log.producers.take_snapshot(segments[0].base_offset)  # retention deletes what this was rebuilt from
    if not log.epochs.entries and log.segments.first is not segments[0]:
        rebuild_epochs(log, segments[0].base_offset)
    for segment in segments:
        log.producers.remove_expired(log.env.clock.now_ms())
        cut = recover_segment(log, segment)
        log.producers.take_snapshot(segment.read_next_offset())
        if cut:
            logger.warning("cut %d bytes that are not whole batches off %s", cut, segment.file.path)
            _drop_after(log, segment)
            break
    log.producers.remove_expired(log.env.clock.now_ms())


def rebuild_producers_of(log: UnifiedLog, end: int) -> None:
    """Rebuild the producer state of a log as of `end`."""
    rebuild_producers(
        log.segments,
        log.producers,
        log_start=log.log_start_offset,
        end=end,
        high_watermark=log.high_watermark,
    )


def recover_segment(log: UnifiedLog, segment: LogSegment) -> int:
    """Rebuild the indexes of a segment, and cut it behind its last valid batch. Returns the bytes cut off.

    Producer state and epochs follow the batches.
    """
    indexer = _Indexer(segment, log.config.index_interval_bytes)
    size = segment.size
    epochs, producers = log.epochs, log.producers
    latest = epochs.latest
    newest_epoch = NO_EPOCH if latest is None else latest
    try:
        for position, header, batch in segment.batches():
            if header.base_offset < indexer.next_offset or not _is_whole(batch, header):
                break
            indexer.add(header, position)
            if header.leader_epoch > newest_epoch:
                newest_epoch = header.leader_epoch
                epochs.assign(newest_epoch, header.base_offset)
            if header.producer_id >= 0:
                follow_batch(producers, header, batch, segment)
    except (CorruptMessage, InvalidRecord) as error:
        logger.warning("%s is damaged after %d bytes: %s", segment.file.path, indexer.valid_bytes, error)
    indexer.finish()
    segment.file.truncate(indexer.valid_bytes)
    segment.reserved = indexer.valid_bytes
    return size - indexer.valid_bytes


def _is_whole(batch: memoryview, header: BatchHeader) -> bool:
    """Whether the checksum fits the bytes of one batch, and no other."""
    if header.magic != CURRENT_MAGIC:
        return crc_matches(batch, 0, header)
    return crc32c(batch[CRC_START:]) == header.crc


class _Indexer:
    """Builds the indexes anew, by the rule that Kafka's recovery uses."""

    def __init__(self, segment: LogSegment, interval: int) -> None:
        self._segment = segment
        self._interval = interval
        self._last_entry = 0
        self._newest_timestamp, self._newest_offset = NO_TIMESTAMP, segment.base_offset
        self.valid_bytes = 0
        self.next_offset = segment.base_offset
        segment.offset_index.clear()
        segment.time_index.clear()
        segment.txn_index.begin_rebuild()

    def add(self, header: BatchHeader, position: int) -> None:
        last_offset, timestamp = header.base_offset + header.last_offset_delta, header.max_timestamp
        if timestamp > self._newest_timestamp:
            self._newest_timestamp, self._newest_offset = timestamp, last_offset
        if position - self._last_entry > self._interval:
            self._segment.offset_index.append(last_offset, position)
            self._segment.time_index.maybe_append(self._newest_timestamp, self._newest_offset)
            self._last_entry = position
        self.valid_bytes = position + header.batch_length + LOG_OVERHEAD
        self.next_offset = last_offset + 1

    def finish(self) -> None:
        if self._newest_timestamp >= 0:
            self._segment.time_index.maybe_append(self._newest_timestamp, self._newest_offset)
        self._segment.write_indexes()
        self._segment.txn_index.finish_rebuild()


def _follow_epoch(epochs: LeaderEpochs, header: BatchHeader) -> None:
    latest = epochs.latest
    if header.leader_epoch > (NO_EPOCH if latest is None else latest):
        epochs.assign(header.leader_epoch, header.base_offset)


def rebuild_epochs(log: UnifiedLog, end: int) -> None:
    """The checkpoint is gone or empty although there are older segments: read the epochs off their batches."""
    for segment in log.segments:
        if segment.base_offset >= end:
            break
        for _, header in segment.headers():
            _follow_epoch(log.epochs, header)


def _drop_after(log: UnifiedLog, segment: LogSegment) -> None:
    for later in log.segments.as_list():
        if later.base_offset > segment.base_offset:
            log.segments.remove(later)
            later.remove_files()
