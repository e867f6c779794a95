"""Producers of a partition: duplicates, sequences, open transactions, and their snapshots on disk."""

from __future__ import annotations

import logging
from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Mapping

from strandline.errors import CorruptMessage
from strandline.log.files import SNAPSHOT, read_whole, remove_if_there, rename_if_there
from strandline.log.partition_directory import PartitionDirectory
from strandline.log.producer_snapshot import format_snapshot, parse_snapshot
from strandline.log.unstable import CompletedTxn, UnstableTransactions
from strandline.log.values import AppendOrigin
from strandline.model import NO_OFFSET, ProducerAndEpoch
from strandline.reads import ActiveProducer
from strandline.records.batch import TRANSACTIONAL_BIT, BatchHeader
from strandline.records.control import EndTransactionMarker
from strandline.records.producer_entry import BatchSpan, ProducerEntry

logger = logging.getLogger(__name__)


class PartitionProducers:
    """All producers of one partition, as of the end of its log.

    Batches are checked and taken over when their place in the log is reserved, before they are written: the next
    batch of the same producer may arrive meanwhile. Should the write fail, the whole log goes offline.
    """

    __slots__ = ("_directory", "_entries", "_snapshots", "_transactions", "first_unstable_offset")

    def __init__(self, directory: PartitionDirectory, snapshots: Iterable[int] = ()) -> None:
        self._directory = directory
        self._entries: dict[int, ProducerEntry] = {}
        self._transactions: UnstableTransactions | None = None  # most partitions never have one
        self._snapshots = sorted(snapshots)
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
        elif not entry.is_next(header):
            if origin is AppendOrigin.CLIENT:
                duplicate = entry.duplicate_of(header)
                if duplicate is not None:
                    return duplicate
            self._check(entry, header, origin)
        entry.add_batch(header, first_offset + header.last_offset_delta)
        if header.is_transactional and entry.txn_first_offset < 0:
            entry.txn_first_offset = first_offset
            if self._transactions is None:
                self._transactions = UnstableTransactions()
            self._transactions.begin(first_offset, header.producer_id)
            if self.first_unstable_offset is None:
                self.first_unstable_offset = first_offset
        return None

    def append_next(self, header: BatchHeader, last_offset: int) -> bool:
        """Take over the next batch of a known producer. False, and no change, for any other one."""
        entry = self._entries.get(header.producer_id)
        if (
            entry is None
            or not entry.is_next(header)
            or (entry.txn_first_offset < 0 and header.attributes & TRANSACTIONAL_BIT)
        ):
            return False
        entry.add_batch(header, last_offset)
        return True

    @staticmethod
    def _check(entry: ProducerEntry, header: BatchHeader, origin: AppendOrigin) -> None:
        if origin is AppendOrigin.REPLICATION:
            return
        entry.check_epoch(header.producer_epoch)
        if origin is AppendOrigin.CLIENT:
            entry.check_sequence(header)
        entry.check_transaction(header)

    def append_marker(
        self,
        header: BatchHeader,
        offset: int,
        marker: EndTransactionMarker,
        origin: AppendOrigin,
        transaction_version: int = 0,
    ) -> CompletedTxn | None:
        """Take the end of a transaction over. None if none was open: the marker is appended all the same."""
        entry = self._entries.get(header.producer_id)
        known = entry or ProducerEntry(header.producer_id)
        if origin is not AppendOrigin.REPLICATION:
            known.check_marker(header.producer_epoch, marker.coordinator_epoch, transaction_version)
        if entry is None:
            self._entries[header.producer_id] = known
        known.move_to_epoch(header.producer_epoch)
        known.coordinator_epoch = marker.coordinator_epoch
        known.last_timestamp = header.max_timestamp
        first_offset, known.txn_first_offset = known.txn_first_offset, NO_OFFSET
        if first_offset < 0:
            return None
        return CompletedTxn(header.producer_id, first_offset, offset, marker.is_abort)

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
        """Write the state as of `offset` unless there is such a snapshot. True if it was written."""
        if self._snapshots and self._snapshots[-1] >= offset:
            return False
        self._directory.write_small(self.snapshot_path(offset), format_snapshot(self._entries.values()))
        insort(self._snapshots, offset)
        return True

    def add_snapshot(self, offset: int, data: bytes) -> None:
        """Write a snapshot that comes from elsewhere: the state as of `offset`."""
        self._directory.write_small(self.snapshot_path(offset), data)
        if offset not in self._snapshots:
            insort(self._snapshots, offset)

    def load_newest_snapshot(self, log_start: int, end: int) -> int:
        """Start from the newest readable snapshot between log start and end; returns the offset to replay from.

        One at the log start counts: the producers of deleted records go on, and their last batch may come again.
        Snapshots above `end` and damaged ones are removed. Expired producers are dropped.
        """
        self.clear()
        self.remove_snapshots(lambda offset: offset > end)
        while self._snapshots and self._snapshots[-1] >= log_start:
            offset = self._snapshots[-1]
            try:
                self.restore(read_whole(self.snapshot_path(offset)), self._directory.env.clock.now_ms())
            except FileNotFoundError:
                self._snapshots.pop()
            except CorruptMessage as error:
                logger.warning("removing the producer snapshot %s: %s", self.snapshot_path(offset), error)
                remove_if_there(self.snapshot_path(offset))
                self._snapshots.pop()
            else:
                return offset
        return log_start

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
        for offset in [offset for offset in self._snapshots if is_removed(offset)]:
            remove_if_there(self.snapshot_path(offset))
            self._snapshots.remove(offset)

    def remove_stray_snapshots(self, segment_bases: Iterable[int]) -> None:
        """Keep the snapshots that belong to a segment, and the newest if it is above all segments."""
        bases = set(segment_bases)
        newest = self.latest_snapshot
        top = max(bases, default=-1)
        self.remove_snapshots(lambda offset: offset not in bases and not (offset == newest and offset > top))

    def rename_snapshot(self, offset: int, state: str) -> str | None:
        """Give a snapshot a state suffix before it is deleted later. Returns its new path, None if there is none."""
        index = bisect_right(self._snapshots, offset) - 1
        if index < 0 or self._snapshots[index] != offset:
            return None
        del self._snapshots[index]
        path = self.snapshot_path(offset)
        return path + state if rename_if_there(path, path + state) else None
