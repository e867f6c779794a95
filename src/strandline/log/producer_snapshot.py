"""The snapshot file of producer state: Kafka's format, down to the order of the entries."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct, error
from typing import Final

from crc32c import crc32c

from strandline.errors import CorruptMessage
from strandline.records.producer_entry import BatchSpan, ProducerEntry

_HEAD: Final = Struct(">hIi")
_ENTRY: Final = Struct(">qhiqiqiq")
_VERSION: Final = 1
_CRC_START: Final = 6


def format_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """The content of a snapshot file."""
    ordered = _in_java_order(list(entries))
    body = b"".join(
        _ENTRY.pack(
            entry.producer_id,
            entry.epoch,
            entry.last_sequence,
            entry.last_offset,
            entry.last_offset_delta,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.txn_first_offset,
        )
        for entry in ordered
    )
    data = bytearray(_HEAD.pack(_VERSION, 0, len(ordered)) + body)
    _HEAD.pack_into(data, 0, _VERSION, crc32c(memoryview(data)[_CRC_START:]), len(ordered))
    return bytes(data)


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
    return [_entry(fields) for fields in _ENTRY.iter_unpack(memoryview(data)[_HEAD.size :])]


def _entry(fields: tuple[int, ...]) -> ProducerEntry:
    producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, txn_first_offset = fields
    entry = ProducerEntry(producer_id, epoch)
    entry.last_timestamp = timestamp
    entry.coordinator_epoch = coordinator_epoch
    entry.txn_first_offset = txn_first_offset
    if offset >= 0:
        entry.batches.append(BatchSpan(sequence, offset, delta, timestamp))
    return entry


def _in_java_order(entries: list[ProducerEntry]) -> list[ProducerEntry]:
    """The order in which a Java HashMap of this size walks its keys, so that the files are the same byte for byte."""
    buckets = 16
    while len(entries) > buckets * 3 // 4:
        buckets *= 2

    def bucket(entry: ProducerEntry) -> int:
        value = (entry.producer_id ^ entry.producer_id >> 32) & 0xFFFFFFFF
        return (value ^ value >> 16) & (buckets - 1)

    return sorted(entries, key=bucket)
