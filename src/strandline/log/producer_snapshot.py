"""The snapshot file of producer state: Kafka's format, down to the order of the entries."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct, error
from typing import Final

from crc32c import crc32c

from strandline.errors import CorruptMessage
from strandline.model import NO_OFFSET, NO_SEQUENCE
from strandline.records import BatchSpan, ProducerEntry

_HEAD: Final = Struct(">hIi")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")
_VERSION: Final = 1
_CRC_START: Final = 6

# Entries that are put in order together, more or less.
_PER_BIN: Final = 512

_pack_entry = _ENTRY.pack
_new_span = tuple.__new__  # skips a Python call for each producer


class SnapshotEncoding:
    """A snapshot that is encoded in steps, of producers that go on meanwhile: `keep` each of them before it changes.

    First the entries are divided into bins of neighbouring buckets, then bin after bin is put in order and packed: no
    step has to do with more than some of them.
    """

    __slots__ = ("_bins", "_buckets", "_count", "_crc", "_divided", "_entries", "_kept", "_packed", "_pieces", "_shift")

    def __init__(self, entries: Iterable[ProducerEntry]) -> None:
        self._entries = list(entries)
        self._count = count = len(self._entries)
        self._buckets = _java_buckets(count)
        self._shift = max((self._buckets * _PER_BIN // max(count, 1)).bit_length() - 1, 0)
        self._bins: list[list[ProducerEntry]] = [[] for _ in range(((self._buckets - 1) >> self._shift) + 1)]
        self._divided = 0
        self._packed = 0
        self._kept: dict[ProducerEntry, bytes] = {}
        self._crc = crc32c(_COUNT.pack(count))
        self._pieces: list[bytes] = []

    @property
    def is_complete(self) -> bool:
        """True if there is nothing left to encode."""
        return self._packed == len(self._bins)

    def keep(self, entry: ProducerEntry) -> None:
        """A producer is about to change: the snapshot has it as it is now, unless it is not in it at all."""
        if entry not in self._kept:
            self._kept[entry] = _packed_entry(entry)

    def encode(self, limit: int) -> None:
        """Take a step: about `limit` entries. Nothing if it is complete."""
        if self._divided < self._count:
            piece = self._entries[self._divided : self._divided + limit]
            self._divide(piece)
            self._divided += len(piece)
            if self._divided == self._count:
                self._entries = []
            return
        done = 0
        while done < limit and self._packed < len(self._bins):
            members, self._bins[self._packed] = self._bins[self._packed], []
            self._packed += 1
            done += len(members) + 1
            if members:
                self._pack(members)

    def _divide(self, entries: list[ProducerEntry]) -> None:
        mask, shift, bins = self._buckets - 1, self._shift, self._bins
        for entry in entries:
            producer_id = entry.producer_id
            value = (producer_id ^ producer_id >> 32) & 0xFFFFFFFF
            bins[((value ^ value >> 16) & mask) >> shift].append(entry)

    def _pack(self, members: list[ProducerEntry]) -> None:
        ordered, kept = _in_java_order(members, self._buckets), self._kept
        if kept:
            data = b"".join([kept.get(entry) or _packed_entry(entry) for entry in ordered])
        else:
            data = b"".join([_packed_entry(entry) for entry in ordered])
        self._crc = crc32c(data, self._crc)
        self._pieces.append(data)

    def encode_all(self) -> None:
        """Take all steps that are left."""
        while not self.is_complete:
            self.encode(self._count + 1)

    def content(self) -> list[bytes]:
        """The content of the snapshot file, in pieces. Only when it is complete."""
        return [_HEAD.pack(_VERSION, self._crc, self._count), *self._pieces]


class PendingSnapshot:
    """A snapshot that is not on disk yet: what is encoded of the state as of `offset`."""

    __slots__ = ("encoding", "offset")

    def __init__(self, offset: int, encoding: SnapshotEncoding) -> None:
        self.offset = offset
        self.encoding = encoding


def format_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """The content of a snapshot file."""
    encoding = SnapshotEncoding(entries)
    encoding.encode_all()
    return b"".join(encoding.content())


def _packed_entry(entry: ProducerEntry) -> bytes:
    batches = entry.batches
    if batches:
        sequence, offset, delta, _ = batches[-1]
    else:
        sequence, offset, delta = NO_SEQUENCE, NO_OFFSET, 0
    return _pack_entry(
        entry.producer_id,
        entry.epoch,
        sequence,
        offset,
        delta,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.txn_first_offset,
    )


def parse_snapshot(data: bytes) -> list[ProducerEntry]:
    """The entries of a snapshot file. Raises CorruptMessage if it is damaged."""
    try:
        version, crc, count = _HEAD.unpack_from(data)
    except error as problem:
        raise CorruptMessage(f"A producer snapshot of {len(data)} bytes has no room for its header.") from problem
    if version != _VERSION:
        raise CorruptMessage(f"A producer snapshot has version {version}; this broker reads version {_VERSION}.")
    if crc32c(memoryview(data)[_CRC_START:]) != crc or len(data) != _HEAD.size + count * _ENTRY.size:
        raise CorruptMessage("A producer snapshot is damaged: its checksum or size does not fit.")
    entries: list[ProducerEntry] = []
    add = entries.append
    for fields in _ENTRY.iter_unpack(memoryview(data)[_HEAD.size :]):
        producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, txn_first_offset = fields
        batches = [_new_span(BatchSpan, (sequence, offset, delta, timestamp))] if offset >= 0 else []
        add(ProducerEntry(producer_id, epoch, batches, timestamp, coordinator_epoch, txn_first_offset))
    return entries


def _java_buckets(count: int) -> int:
    """How many buckets a Java HashMap has that has grown to so many keys."""
    buckets = 16
    while count > buckets * 3 // 4:
        buckets *= 2
    return buckets


def _in_java_order(entries: list[ProducerEntry], buckets: int) -> list[ProducerEntry]:
    """The order in which a Java HashMap of this size walks its keys, so that the files are the same byte for byte."""

    def bucket(entry: ProducerEntry) -> int:
        value = (entry.producer_id ^ entry.producer_id >> 32) & 0xFFFFFFFF
        return (value ^ value >> 16) & (buckets - 1)

    return sorted(entries, key=bucket)
