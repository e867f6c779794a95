"""Builds a complete segment from batches that have their offsets, as a leader's log would have written it.

The files come from the same parts as those of a log: `LogSegment` writes the indexes, `PartitionProducers` the
snapshot, `LeaderEpochs` the history, and `ClosedSegment` is what goes to remote storage.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from strandline.clock import SystemChance, SystemClock
from strandline.errors import CorruptMessage
from strandline.log.closed_segment import ClosedSegment
from strandline.log.environment import DEFAULT_EXPIRATION_MS, LogDirectory, LogEnvironment
from strandline.log.epochs import Epochs, LeaderEpochs
from strandline.log.partition_directory import PartitionDirectory
from strandline.log.producer_state import PartitionProducers
from strandline.log.replay import follow_batch
from strandline.log.segment import LogSegment
from strandline.log.transaction_index import AbortedTxn
from strandline.model import INT32_MAX, NO_EPOCH, TopicPartition
from strandline.records import BatchHeader, crc_matches, iter_headers

# The files are named after offsets: nothing in them tells the partition.
_NAMELESS: Final = TopicPartition("segment", 0)


class SegmentBuilder:
    """One new segment in a directory of its own. Blocking; nothing is forced to disk: a crash leaves nothing of use.

    Index entries come out as if each batch had been appended alone. The state of producers and the leader epochs go on
    from those at the beginning of the segment. As when a log writes a lost snapshot again, producers that had expired
    before are left out, and every producer of the segment is in its snapshot.
    """

    def __init__(
        self,
        directory: Path,
        base_offset: int,
        *,
        index_interval_bytes: int,
        producers: bytes | None = None,
        epochs: Epochs = (),
        now_ms: int,
        producer_expiration_ms: int = DEFAULT_EXPIRATION_MS,
        aborted: Sequence[AbortedTxn] | None = None,
    ) -> None:
        """`producers` is a snapshot file as of `base_offset`, `epochs` the history up to there.

        `aborted` is the transaction index; None: it follows from the batches and that snapshot, which does not know
        where a transaction began if the records before the segment are deleted.
        `now_ms` decides which of those producers have expired; for one segment, callers always give the same moment.
        Raises CorruptMessage if the snapshot is damaged, OSError.
        """
        path = str(directory)
        env = LogEnvironment(
            directory=LogDirectory(path),
            clock=SystemClock(),
            chance=SystemChance(),
            producer_expiration_ms=producer_expiration_ms,
        )
        self._producers = PartitionProducers(PartitionDirectory(_NAMELESS, path, env, topic_id=None))
        if producers is not None:
            self._producers.restore(producers, now_ms)
        self._epochs = LeaderEpochs(path, is_new=True)
        self._epochs.replace(epochs)
        self._epoch = epochs[-1][0] if epochs else NO_EPOCH
        self._segment = LogSegment.create(path, base_offset, created_ms=now_ms, cache=env.cache)
        self._interval = index_interval_bytes
        self._aborted = aborted
        self.next_offset = base_offset
        """Where the next batch begins."""
        self.batch_count = 0
        """Batches so far."""

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._segment.reserved

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp so far; -1 if no batch has one."""
        return self._segment.max_timestamp.timestamp

    def epochs_in(self, start: int, end: int) -> tuple[tuple[int, int], ...]:
        """The leader epochs of the offsets from `start` to `end` (not included), and where each begins among them."""
        return tuple(self._epochs.in_range(start, end).items())

    def append(self, data: memoryview) -> int:
        """Append the batches at the beginning of `data`, and return their size: the rest is a batch that is cut.

        Checks each: its format, its checksum, that its offsets follow and its epoch does not go back. Raises
        CorruptMessage, and OSError; then the segment is of no use any more.
        """
        segment, producers, interval = self._segment, self._producers, self._interval
        start, end = segment.reserved, 0
        for position, header in iter_headers(data):
            last_offset = header.last_offset
            if header.base_offset != self.next_offset or header.is_legacy or last_offset < self.next_offset:
                raise self._misplaced(header)
            if not crc_matches(data, position, header):
                raise CorruptMessage(f"The batch of offset {self.next_offset} does not match its checksum.")
            if header.leader_epoch != self._epoch:
                self._begin_epoch(header)
            end = position + header.size
            if header.producer_id >= 0:
                follow_batch(producers, header, data[position:end], segment)
            segment.reserve(end - position, header.max_timestamp, last_offset, interval)
            self.next_offset = last_offset + 1
            self.batch_count += 1
        segment.file.write(data[:end], start)
        segment.file.size = start + end
        if self.next_offset - 1 - segment.base_offset > INT32_MAX:
            raise CorruptMessage(f"Offset {self.next_offset - 1} is too far from {segment.base_offset} for a segment.")
        return end

    def _misplaced(self, header: BatchHeader) -> CorruptMessage:
        if header.is_legacy:
            return CorruptMessage(f"There is no batch of format 2 where offset {self.next_offset} should be.")
        return CorruptMessage(
            f"A batch of the offsets {header.base_offset} to {header.last_offset} is where offset {self.next_offset} "
            "should be."
        )

    def _begin_epoch(self, header: BatchHeader) -> None:
        if header.leader_epoch < max(self._epoch, 0):
            raise CorruptMessage(
                f"The batch of offset {header.base_offset} has leader epoch {header.leader_epoch}, but "
                f"{self._epoch} has been before."
            )
        self._epochs.assign(header.leader_epoch, header.base_offset)
        self._epoch = header.leader_epoch

    def finish(self) -> ClosedSegment:
        """Write indexes and producer snapshot. Raises OSError, and ValueError for a segment without batches."""
        if not self.batch_count:
            raise ValueError("A segment needs at least one batch.")
        if self._aborted is not None:
            self._segment.txn_index.remove()
            for entry in self._aborted:
                self._segment.txn_index.append(entry)
        self._segment.finish()
        self._producers.take_snapshot(self.next_offset)
        self._segment.file.close()
        return ClosedSegment.of(
            self._segment,
            self.next_offset,
            producer_snapshot=self._producers.snapshot_path(self.next_offset),
            epochs=self._epochs,
        )
