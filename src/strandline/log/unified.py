"""A partition's local log, composed of its parts."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from uuid import UUID

from strandline.config import TopicConfig
from strandline.errors import KafkaStorageError
from strandline.log.appender import LogAppender, PendingAppend
from strandline.log.applied_config import AppliedConfig
from strandline.log.environment import LogEnvironment
from strandline.log.epochs import LeaderEpochs
from strandline.log.flusher import LogFlusher
from strandline.log.following import FollowerAppender, ReplicatedBatches
from strandline.log.log_start import LogStart
from strandline.log.offsets import PartitionOffsets
from strandline.log.partition_directory import PartitionDirectory
from strandline.log.producer_state import PartitionProducers
from strandline.log.reader import LogReader
from strandline.log.remote_copies import RemoteCopies
from strandline.log.retention import LogRetention
from strandline.log.segment import LogSegment
from strandline.log.segments import Segments
from strandline.log.truncation import LogTruncation
from strandline.log.values import AppendOrigin, LogAppendInfo
from strandline.model import TopicPartition
from strandline.reads import ActiveProducer, FetchIsolation, FoundOffset, ReadResult

_IDLE_REFERENCES: Final = 2


class UnifiedLog:
    """One partition's log. Open one with `loading.load_log` or create one with `loading.create_log`.

    The log has methods for what every replica does: append, read, truncate, ask for offsets. The parts behind them:

    - `offsets` (`PartitionOffsets`): log start, local log start, high watermark, log end
    - `segments` (`Segments`): finds, creates, rolls, replaces and deletes segments
    - `epochs` (`LeaderEpochs`), `producers` (`PartitionProducers`): what the batches say about leaders and producers
    - `flusher` (`LogFlusher`): the recovery point
    - `start` (`LogStart`): moves of the log start, and the log start that a crash would bring back
    - `remote` (`RemoteCopies`): how far the log is in remote storage, and what can be copied there
    - `retention` (`LogRetention`): deletes old segments; `appender` (`LogAppender`): the pending appends
    - `AppliedConfig` owns the topic's configuration, `PartitionDirectory` the path, the topic id, whether the log is
      closed; `LogReader` and `LogTruncation` have no state of their own

    Each part changes only what it owns and asks the others for the rest. Everything belongs to the event loop (or,
    while a log is loaded, to one thread), except the blocking halves: `PendingAppend.write`, `FlushPlan.run`.
    """

    __slots__ = (
        "_applied",
        "_directory",
        "_reader",
        "appender",
        "epochs",
        "flusher",
        "offsets",
        "producers",
        "remote",
        "retention",
        "segments",
        "start",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        path: str,
        config: TopicConfig,
        env: LogEnvironment,
        *,
        topic_id: UUID | None = None,
        snapshots: Iterable[int] = (),
    ) -> None:
        self._directory = directory = PartitionDirectory(topic_partition, path, env, topic_id=topic_id)
        self._applied = applied = AppliedConfig(config, is_remote_enabled=env.remote_enabled)
        self.epochs = epochs = LeaderEpochs(path)
        self.producers = producers = PartitionProducers(directory, snapshots)
        self.segments = segments = Segments(directory, applied, producers)
        self.offsets = offsets = PartitionOffsets(env.directory, producers)
        self.flusher = flusher = LogFlusher(directory, offsets, segments, epochs, producers)
        self.start = start = LogStart(directory, applied, offsets, segments, epochs)
        self.remote = remote = RemoteCopies(directory, applied, offsets, segments, epochs, producers, start)
        self.retention = LogRetention(directory, applied, offsets, segments, start, remote)
        self.appender = LogAppender(directory, applied, offsets, segments, epochs, producers, flusher)
        self._reader = LogReader(directory, applied, offsets, segments)

    # Identity and configuration

    @property
    def topic_partition(self) -> TopicPartition:
        return self._directory.topic_partition

    @property
    def directory(self) -> Path:
        """The partition's directory."""
        return Path(self._directory.path)

    @property
    def env(self) -> LogEnvironment:
        """What the log shares with the other logs of its log directory."""
        return self._directory.env

    @property
    def topic_id(self) -> UUID | None:
        """The topic id in `partition.metadata`, None if the file is missing."""
        return self._directory.topic_id

    def assign_topic_id(self, topic_id: UUID) -> None:
        """Write the topic id of a log that has none. Raises KafkaStorageError if it has another one."""
        self._directory.assign_topic_id(topic_id)

    @property
    def config(self) -> TopicConfig:
        """The topic's configuration."""
        return self._applied.config

    @property
    def is_remote(self) -> bool:
        """True if closed segments go to remote storage: both the broker and the topic enable it."""
        return self._applied.is_remote

    def update_config(self, config: TopicConfig) -> None:
        """Follow a change of the topic's configuration."""
        self._applied.apply(config)
        if self._applied.is_remote:
            self.env.directory.has_new_log_starts = True  # the checkpoint names the start of every tiered log
        self.flusher.watch_unflushed()

    @property
    def is_offline(self) -> bool:
        """True if the log cannot be used any more: its log directory has failed, or the log was closed."""
        return self._directory.is_offline

    def check_online(self) -> None:
        """Raises KafkaStorageError if the log cannot be used."""
        self._directory.check_online()

    # Offsets

    @property
    def log_start_offset(self) -> int:
        return self.offsets.start

    @property
    def local_log_start_offset(self) -> int:
        """The first offset on the local disk."""
        return self.offsets.local_start

    @property
    def high_watermark(self) -> int:
        return self.offsets.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """Every transaction below it is decided."""
        return self.offsets.last_stable

    @property
    def log_end_offset(self) -> int:
        return self.offsets.end

    @property
    def reserved_end(self) -> int:
        """The first offset of the next batch: the log end once every pending append is finished."""
        return self.offsets.reserved_end

    @property
    def size(self) -> int:
        """Bytes of all local segments that readers may see."""
        return self.segments.size

    def update_high_watermark(self, offset: int) -> bool:
        """Move the high watermark, within the log. True if it changed."""
        return self.offsets.update_high_watermark(offset)

    def delete_records(self, offset: int) -> int:
        """DeleteRecords: -1 stands for the high watermark. Returns the log start offset. Raises OffsetOutOfRange."""
        return self.start.delete_records(offset)

    # Appending

    @property
    def has_pending_appends(self) -> bool:
        """True while some append has begun and not finished."""
        return bool(self.appender.pending)

    def append(
        self,
        records: memoryview,
        *,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        transaction_version: int = 0,
    ) -> LogAppendInfo:
        """Append one batch as leader, at once. Only while nothing is pending. Raises what `begin_append` raises."""
        return self.appender.append(records, leader_epoch, origin, transaction_version)

    def begin_append(
        self,
        records: memoryview,
        *,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        transaction_version: int = 0,
    ) -> PendingAppend:
        """Check one batch, stamp offsets and epoch into it, and reserve its place.

        A duplicate gets the offsets of the first append, which may still be unwritten: acknowledge it no earlier than
        `log_end_offset` passes them. Raises the errors of `records.validation`, RecordListTooLarge, OutOfOrderSequence,
        InvalidProducerEpoch, InvalidTxnState, TransactionCoordinatorFenced (nothing is changed) or KafkaStorageError
        (the directory is offline).
        """
        return self.appender.begin(records, leader_epoch, origin, transaction_version)

    def finish_append(self, pending: PendingAppend) -> None:
        """Make a written batch visible to readers. On the event loop, in the order of `begin_append`."""
        self.appender.finish(pending)

    def fail_append(self, error: OSError) -> KafkaStorageError:
        """Give up after a failed write: the log directory goes offline. Returns the error for the client."""
        return self.appender.fail(error)

    def append_as_follower(self, records: memoryview, *, leader_epoch: int | None = None) -> LogAppendInfo:
        """Append batches of the leader's log at once. Only while nothing is pending.

        Raises CorruptMessage or InvalidRecord (neither the bad batch nor those after it are appended) or
        KafkaStorageError.
        """
        return FollowerAppender(self, self._directory, self._applied).append(records, leader_epoch)

    def begin_append_as_follower(self, records: memoryview, *, leader_epoch: int | None = None) -> ReplicatedBatches:
        """Reserve the places of batches of the leader's log, which stay as they are and are not copied.

        It stops before a batch of a later epoch than `leader_epoch`, one that is cut at the end of `records`, and one
        that is damaged or out of order: then the result has the error. Raises KafkaStorageError.
        """
        return FollowerAppender(self, self._directory, self._applied).begin(records, leader_epoch)

    # Reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
        min_one_message: bool = True,
    ) -> ReadResult:
        """The bytes from the batch that holds `offset` on, at most `max_bytes` of one segment.

        With `min_one_message` the first batch comes whole even if it is larger; without it there is nothing then.
        Raises OffsetMovedToTieredStorage for what is in remote storage only, OffsetOutOfRange or KafkaStorageError.
        """
        return self._reader.read(offset, max_bytes, isolation, min_one_message)

    def available_bytes(self, offset: int, isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK) -> int:
        """Bytes that a reader at `offset` could have from the local log now. 0 if the offset is not in it."""
        return self._reader.available_bytes(offset, isolation)

    def offset_by_timestamp(self, timestamp: int) -> FoundOffset | None:
        """The first record of the local log not older than `timestamp`. Blocking: reads batches, and unpacks one."""
        return self._reader.offset_by_timestamp(timestamp)

    def offset_of_max_timestamp(self) -> FoundOffset | None:
        """The first record with the largest timestamp of the local log; None if that is empty. Blocking."""
        return self._reader.offset_of_max_timestamp()

    # Epochs and producers

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the largest epoch up to `epoch`; (-1, -1) if the log cannot say."""
        return self.epochs.end_offset_for(epoch, self.offsets.end)

    def epoch_for_offset(self, offset: int) -> int | None:
        """The leader epoch that wrote `offset`."""
        return self.epochs.epoch_of(offset)

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Let a leader epoch begin. The checkpoint follows with the first append of the epoch."""
        self.epochs.assign(epoch, start_offset)

    def active_producers(self) -> list[ActiveProducer]:
        """What DescribeProducers answers for this partition."""
        return self.producers.active_producers()

    # Rolling and truncating

    def roll(self) -> LogSegment:
        """Close the active segment and go on with a new one. An empty one is used again. Raises KafkaStorageError."""
        try:
            return self.segments.roll(self.offsets.reserved_end)
        except OSError as error:
            raise self._directory.fail(error) from error

    def truncate_to(self, offset: int) -> bool:
        """Cut the log so that `offset` is its end, and forget epochs that begin there or above. True if it was cut.

        A batch that reaches over the offset is removed as a whole. Not while appends are pending; the same holds for
        the two below. Raises KafkaStorageError.
        """
        return self._truncation().truncate_to(offset)

    def truncate_above_boundary(self, boundary: int) -> bool:
        """Cut what this log has at `boundary` and above, where another log goes on. True if it was cut.

        Unlike `truncate_to`, it lets nothing be forgotten that is below the end of that other log: neither the log
        start nor what is known to be in remote storage goes back. Raises OffsetOutOfRange if the log starts above the
        boundary, KafkaStorageError also if a batch reaches over it: then nothing has changed.
        """
        return self._truncation().truncate_above_boundary(boundary)

    def truncate_fully_and_start_at(self, offset: int, *, log_start: int | None = None) -> None:
        """Drop everything and go on at `offset`, as a follower does that is behind the leader's log start.

        A tiered log may start below `offset`, where its leader's log does; see also `start_from_remote`.
        """
        self._truncation().truncate_fully_and_start_at(offset, log_start)

    def start_from_remote(
        self, offset: int, *, log_start: int, epoch_history: bytes, producer_snapshot: bytes, source: str
    ) -> None:
        """Go on at `offset`, where the leader's local log starts or above: records below are in remote storage.

        The remote segment that ends before `offset` gives the epochs and the producers up to there; `source` names it
        in errors. Raises KafkaStorageError or CorruptMessage if they are damaged; then nothing has changed.
        """
        self._truncation().start_from_remote(
            offset,
            log_start=log_start,
            epoch_history=epoch_history,
            producer_snapshot=producer_snapshot,
            source=source,
        )

    def _truncation(self) -> LogTruncation:
        return LogTruncation(self, self._directory, self._applied)

    # Closing

    def close_idle_files(self) -> int:
        """Close the descriptors of files that no reader, write or flush uses at the moment. Returns how many."""
        closed = 0
        if self.appender.pending:
            return closed
        for segment in self.segments:
            # Two references: the segment's, and the argument of getrefcount. Slices and flushes hold more.
            if segment.file.is_open and sys.getrefcount(segment.file) <= _IDLE_REFERENCES:
                segment.file.close()
                closed += 1
        return closed

    def close(self) -> None:
        """Close cleanly: everything is on disk, and the next start has nothing to repair. Blocking."""
        self.check_online()
        if self.appender.pending:
            raise RuntimeError(f"{self.topic_partition} cannot be closed while appends are pending.")
        try:
            if self._finish_files():
                self.flusher.flush_for_close()
            for segment in self.segments:
                segment.file.close()
        except OSError as error:
            raise self._directory.fail(error) from error
        self._directory.is_closed = True

    def _finish_files(self) -> bool:
        """Write what is still in memory. True if the disk may lack something."""
        active, end = self.segments.active, self.offsets.end
        active.file.set_length(active.file.size)
        written = [self.producers.finish_snapshots(), active.finish()]
        if end > self.offsets.start or self.producers.snapshots:
            written.append(self.producers.take_snapshot(end))
        return any(written) or self.epochs.needs_sync or self.flusher.has_unflushed

    def abandon(self) -> None:
        """Stop using the log without writing anything, since it is deleted or its directory has failed."""
        self._directory.is_closed = True
        self.appender.abandon()
        for segment in self.segments:
            segment.forget_indexes()

    def move_to(self, path: str) -> None:
        """Rename the partition's directory. Files that are open stay readable."""
        self._directory.move_to(path)
        self.epochs.move_to(path)
        self.segments.move_to(path)

    def __repr__(self) -> str:
        offsets = self.offsets
        return (
            f"UnifiedLog({self.topic_partition}, start={offsets.start}, local_start={offsets.local_start}, "
            f"high_watermark={offsets.high_watermark}, end={offsets.end}, segments={len(self.segments)})"
        )
