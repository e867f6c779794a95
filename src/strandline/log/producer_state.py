"""Producers of a partition: duplicates, sequences, open transactions, and their snapshots on disk."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from strandline.log.files import SNAPSHOT, read_whole, remove_if_there, rename_if_there
from strandline.log.partition_directory import PartitionDirectory
from strandline.log.producer_snapshot import PendingSnapshot, SnapshotEncoding, format_snapshot, parse_snapshot
from strandline.log.unstable import CompletedTxn, UnstableTransactions
from strandline.log.values import AppendOrigin
from strandline.model import NO_OFFSET, NO_SEQUENCE, ProducerAndEpoch
from strandline.reads import ActiveProducer
from strandline.records import BatchHeader, BatchSpan, EndTransactionMarker, ProducerEntry, increment_sequence
from strandline.records.batch import TRANSACTIONAL_BIT

# The snapshot of more producers than these is encoded in steps.
_ENCODED_AT_ONCE: Final = 5_000

_new_tuple = tuple.__new__  # skips a Python call for each batch


class PartitionProducers:
    """All producers of one partition, as of the end of its log.

    Batches are checked and taken over when their place in the log is reserved, before they are written: the next
    batch of the same producer may arrive meanwhile. Should the write fail, the whole log goes offline.

    The snapshot of very many producers is pending for a while after `begin_snapshot`: `snapshot_writing` encodes it in
    steps and writes it in a thread. A crash before its end costs a start the replay from the snapshot before it. So
    retention leaves the batches alone that this replay needs (`allows_start_at`), the copy of a segment to remote
    storage waits, and a caller that needs the file at once calls `finish_snapshots`.
    """

    __slots__ = (
        "_directory",
        "_dropped",
        "_entries",
        "_pending",
        "_snapshots",
        "_transactions",
        "first_unstable_offset",
    )

    def __init__(self, directory: PartitionDirectory, snapshots: Iterable[int] = ()) -> None:
        self._directory = directory
        self._entries: dict[int, ProducerEntry] = {}
        self._transactions: UnstableTransactions | None = None  # most partitions never have one
        self._snapshots = sorted(snapshots)
        self._pending: list[PendingSnapshot] = []  # of ascending offsets
        self._dropped: tuple[int, ...] = ()  # of segments whose snapshot was not written
        self.first_unstable_offset: int | None = None
        """The first offset of a transaction that is open, or whose marker is not replicated yet."""

    # Appending

    def append_data(self, header: BatchHeader, first_offset: int, origin: AppendOrigin) -> BatchSpan | None:
        """Check a batch and take it over; a batch seen before is returned and changes nothing.

        Raises InvalidProducerEpoch, OutOfOrderSequence or InvalidTxnState, which change nothing either.
        """
        entry = self._entries.get(header.producer_id)
        if entry is None:
            entry = ProducerEntry(header.producer_id)
            self._check(entry, header, origin)
            self._entries[header.producer_id] = entry
        else:
            if not entry.is_next(header):
                if origin is AppendOrigin.CLIENT:
                    duplicate = entry.duplicate_of(header)
                    if duplicate is not None:
                        return duplicate
                self._check(entry, header, origin)
            if self._pending:
                self._keep(entry)
        entry.add_batch(header, first_offset + header.last_offset_delta)
        if header.is_transactional and entry.txn_first_offset < 0:
            self._begin_transaction(entry, first_offset)
        return None

    def follow(self, header: BatchHeader) -> None:
        """Take over a batch as it is in the log, or in that of the leader, without checks."""
        base_offset, delta, base_sequence = header.base_offset, header.last_offset_delta, header.base_sequence
        producer_id = header.producer_id
        entry = self._entries.get(producer_id)
        if entry is None:
            self._entries[producer_id] = entry = ProducerEntry(producer_id)
        elif self._pending:
            self._keep(entry)
        last_sequence = NO_SEQUENCE if base_sequence == NO_SEQUENCE else increment_sequence(base_sequence, delta)
        span = (last_sequence, base_offset + delta, delta, header.max_timestamp)
        entry.add_span(header.producer_epoch, _new_tuple(BatchSpan, span))
        if header.attributes & TRANSACTIONAL_BIT and entry.txn_first_offset < 0:
            self._begin_transaction(entry, base_offset)

    def _begin_transaction(self, entry: ProducerEntry, first_offset: int) -> None:
        entry.txn_first_offset = first_offset
        if self._transactions is None:
            self._transactions = UnstableTransactions()
        self._transactions.begin(first_offset, entry.producer_id)
        if self.first_unstable_offset is None:
            self.first_unstable_offset = first_offset

    def append_next(self, header: BatchHeader, last_offset: int) -> bool:
        """Take over the next batch of a known producer. False, and no change, for any other one."""
        entry = self._entries.get(header.producer_id)
        if (
            entry is None
            or not entry.is_next(header)
            or (entry.txn_first_offset < 0 and header.attributes & TRANSACTIONAL_BIT)
        ):
            return False
        if self._pending:
            self._keep(entry)
        entry.add_batch(header, last_offset)
        return True

    def _keep(self, entry: ProducerEntry) -> None:
        """A producer is about to change: snapshots that are pending have it as it is."""
        for pending in self._pending:
            pending.encoding.keep(entry)

    @staticmethod
    def _check(entry: ProducerEntry, header: BatchHeader, origin: AppendOrigin) -> None:
        entry.check_epoch(header.producer_epoch)
        if origin is AppendOrigin.CLIENT:
            entry.check_sequence(header)
        entry.check_transaction(header)

    def append_marker(
        self, header: BatchHeader, offset: int, marker: EndTransactionMarker, transaction_version: int
    ) -> CompletedTxn | None:
        """Check the end of a transaction and take it over. None if none was open: it is appended all the same.

        Raises InvalidProducerEpoch or TransactionCoordinatorFenced, which change nothing.
        """
        entry = self._entries.get(header.producer_id) or ProducerEntry(header.producer_id)
        entry.check_marker(header.producer_epoch, marker.coordinator_epoch, transaction_version)
        return self.follow_marker(header, offset, marker)

    def follow_marker(self, header: BatchHeader, offset: int, marker: EndTransactionMarker) -> CompletedTxn | None:
        """Take over the end of a transaction as it is in the log, or in that of the leader, without checks."""
        entry = self._entries.get(header.producer_id)
        if entry is None:
            self._entries[header.producer_id] = entry = ProducerEntry(header.producer_id)
        elif self._pending:
            self._keep(entry)
        entry.move_to_epoch(header.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = header.max_timestamp
        first_offset, entry.txn_first_offset = entry.txn_first_offset, NO_OFFSET
        if first_offset < 0:
            return None
        return _new_tuple(CompletedTxn, (header.producer_id, first_offset, offset, marker.is_abort))

    def stable_offset_after(self, completed: CompletedTxn) -> int:
        """Where the next open transaction of another producer starts, else the offset after the marker."""
        others = self._transactions
        first_offset = NO_OFFSET if others is None else others.first_open_except(completed)
        return completed.last_offset + 1 if first_offset < 0 else first_offset

    def complete(self, completed: CompletedTxn) -> None:
        """Close a transaction. It holds the last stable offset back until its marker is replicated."""
        if self._transactions is not None:
            self._transactions.complete(completed)

    def _find_first_unstable(self) -> None:
        first = NO_OFFSET if self._transactions is None else self._transactions.first_unstable()
        self.first_unstable_offset = None if first < 0 else first

    # Asking

    def forget_replicated(self, high_watermark: int) -> None:
        """Let go of ended transactions whose marker is below the high watermark."""
        if self._transactions is not None:
            self._transactions.forget_replicated(high_watermark)
            self._find_first_unstable()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def has_open_transactions(self) -> bool:
        """True if a transaction has begun whose marker is not here."""
        return self._transactions is not None and len(self._transactions.open_ones) > 0

    @property
    def open_transactions(self) -> Mapping[int, int]:
        """The producers of these transactions, by first offset. For reading only."""
        return {} if self._transactions is None else self._transactions.open_ones

    def check_epoch(self, producer: ProducerAndEpoch) -> None:
        """Refuse a producer that is known with a later epoch. Raises InvalidProducerEpoch."""
        entry = self._entries.get(producer.producer_id)
        if entry is not None:
            entry.check_epoch(producer.epoch)

    def is_in_transaction(self, producer: ProducerAndEpoch) -> bool:
        """True if the producer has a transaction open here, in this epoch."""
        entry = self._entries.get(producer.producer_id)
        return entry is not None and entry.txn_first_offset >= 0 and entry.epoch == producer.epoch

    @property
    def entries(self) -> dict[int, ProducerEntry]:
        """State by producer id. For reading only."""
        return self._entries

    def active_producers(self) -> list[ActiveProducer]:
        """What DescribeProducers answers."""
        return [
            ActiveProducer(
                entry.producer_id,
                entry.epoch,
                entry.last_sequence,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.txn_first_offset,
            )
            for entry in self._entries.values()
        ]

    def remove_expired(self, now_ms: int, among: Iterable[ProducerEntry] | None = None) -> int:
        """Forget producers that have been silent for producer.id.expiration.ms: all, or those of some that were known
        a moment ago. Returns how many."""
        entries, expiration_ms = self._entries, self._directory.env.producer_expiration_ms
        expired = [
            entry.producer_id
            for entry in (entries.values() if among is None else among)
            if entry.txn_first_offset < 0
            and now_ms - entry.last_timestamp >= expiration_ms
            and entries.get(entry.producer_id) is entry
        ]
        for producer_id in expired:
            del entries[producer_id]
        return len(expired)

    # Snapshots

    def snapshot_path(self, offset: int) -> str:
        """The snapshot file of the state up to `offset`, exclusive."""
        return self._directory.file_path(offset, SNAPSHOT)

    @property
    def snapshots(self) -> list[int]:
        """Offsets of the snapshots on disk, ascending. For reading only."""
        return self._snapshots

    @property
    def latest_snapshot(self) -> int | None:
        return self._snapshots[-1] if self._snapshots else None

    def take_snapshot(self, offset: int) -> bool:
        """Write the state as of `offset` unless there is such a snapshot. True if it was written. Raises OSError."""
        if self._snapshots and self._snapshots[-1] >= offset:
            return False
        self._directory.write_small(self.snapshot_path(offset), format_snapshot(self._entries.values()))
        insort(self._snapshots, offset)
        return True

    def begin_snapshot(self, offset: int) -> None:
        """Take the state as of `offset`, unless there is such a snapshot. That of very many producers is written soon.

        Raises OSError.
        """
        if len(self._entries) <= _ENCODED_AT_ONCE:
            self.take_snapshot(offset)
        elif not (self._snapshots and self._snapshots[-1] >= offset) and self.pending_up_to < offset:
            self._pending.append(PendingSnapshot(offset, SnapshotEncoding(self._entries.values())))

    @property
    def pending_snapshot(self) -> PendingSnapshot | None:
        """The oldest snapshot that is not on disk yet."""
        return self._pending[0] if self._pending else None

    @property
    def pending_up_to(self) -> int:
        """The offset of the newest snapshot that is not on disk yet; NO_OFFSET if there is none."""
        return self._pending[-1].offset if self._pending else NO_OFFSET

    def make_room(self, limit: int) -> None:
        """Before a snapshot is begun: finish the oldest pending ones, so that at most `limit` are left. Blocking.

        Raises OSError.
        """
        while len(self._pending) > limit:
            self._finish_oldest()

    def drop_waiting(self, limit: int) -> None:
        """Before a snapshot is begun: give the newest pending ones up, so that at most `limit` are left."""
        self._dropped += tuple(pending.offset for pending in self._pending[limit:])
        del self._pending[limit:]

    def note_dropped(self, segment_bases: Iterable[int]) -> None:
        """After a start: segments between two snapshots that have none themselves. It was dropped before the stop."""
        known = self._snapshots
        if len(known) > 1:
            self._dropped = tuple({base for base in segment_bases if known[0] < base < known[-1]}.difference(known))

    def allows_start_at(self, offset: int) -> bool:
        """True if the log may start with the segment of this offset, and a crash then would not cost it any producer.

        Not before its snapshot is on disk. A segment from elsewhere may have none: then only pending ones matter.
        """
        index = bisect_left(self._snapshots, offset)
        is_on_disk = index < len(self._snapshots) and self._snapshots[index] == offset
        return is_on_disk or not (self._pending or offset in self._dropped)

    def is_pending(self, offset: int) -> bool:
        """True if the snapshot of this offset is not on disk yet, but will be soon."""
        return any(pending.offset == offset for pending in self._pending)

    def put_in_place(self, pending: PendingSnapshot, temporary: str) -> None:
        """A pending snapshot was written to `temporary`. It counts unless it has been dropped or finished meanwhile.

        Raises OSError.
        """
        if pending in self._pending:
            os.replace(temporary, self.snapshot_path(pending.offset))
            self._is_written(pending)
            self._directory.changes += 1
        else:
            remove_if_there(temporary)

    def finish_snapshots(self) -> bool:
        """Write the snapshots that are pending now. True if there were any. Blocking. Raises OSError."""
        are_pending = bool(self._pending)
        while self._pending:
            self._finish_oldest()
        return are_pending

    def _finish_oldest(self) -> None:
        pending = self._pending[0]
        pending.encoding.encode_all()
        self._directory.write_small(self.snapshot_path(pending.offset), b"".join(pending.encoding.content()))
        self._is_written(pending)

    def _is_written(self, pending: PendingSnapshot) -> None:
        self._pending.remove(pending)
        if pending.offset not in self._snapshots:
            insort(self._snapshots, pending.offset)

    def add_snapshot(self, offset: int, data: bytes) -> None:
        """Write a snapshot that comes from elsewhere: the state as of `offset`."""
        self._directory.write_small(self.snapshot_path(offset), data)
        if offset not in self._snapshots:
            insort(self._snapshots, offset)

    def load_snapshot(self, offset: int) -> None:
        """Start from a snapshot on disk, without producers that have expired. Raises OSError or CorruptMessage."""
        self.restore(read_whole(self.snapshot_path(offset)), self._directory.env.clock.now_ms())

    def restore(self, snapshot: bytes, now_ms: int) -> None:
        """Start from the content of a snapshot file, without producers that have expired. Raises CorruptMessage."""
        self._entries = {entry.producer_id: entry for entry in parse_snapshot(snapshot)}
        self.remove_expired(now_ms)
        self._rebuild_transactions()

    def _rebuild_transactions(self) -> None:
        open_ones = [(e.txn_first_offset, e.producer_id) for e in self._entries.values() if e.txn_first_offset >= 0]
        self._transactions = UnstableTransactions(open_ones) if open_ones else None
        self._find_first_unstable()

    def clear(self) -> None:
        """Forget all producers. Snapshots stay."""
        self._entries = {}
        self._transactions = None
        self.first_unstable_offset = None

    def remove_snapshots(self, is_removed: Callable[[int], bool]) -> None:
        """Delete the snapshots of offsets for which `is_removed` is true."""
        self._pending = [pending for pending in self._pending if not is_removed(pending.offset)]
        self._dropped = tuple(offset for offset in self._dropped if not is_removed(offset))
        for offset in [offset for offset in self._snapshots if is_removed(offset)]:
            remove_if_there(self.snapshot_path(offset))
            self._snapshots.remove(offset)

    def rename_snapshot(self, offset: int, state: str) -> str | None:
        """Give a snapshot a state suffix before it is deleted later. Returns its new path, None if there is none.

        One that is pending is not written any more.
        """
        self._pending = [pending for pending in self._pending if pending.offset != offset]
        self._dropped = tuple(dropped for dropped in self._dropped if dropped != offset)
        index = bisect_right(self._snapshots, offset) - 1
        if index < 0 or self._snapshots[index] != offset:
            return None
        del self._snapshots[index]
        path = self.snapshot_path(offset)
        return path + state if rename_if_there(path, path + state) else None
