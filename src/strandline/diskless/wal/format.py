"""WAL objects: packing batches into an object, reading its footer, checking its bytes. See docs/wal-format.md.

Here: the layout of an object as a whole. Not here: the bytes of the footer (`footer`), the keys of objects (`keys`),
when an object is full (the writer).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from crc32c import crc32c

from strandline.diskless.values import DisklessAppend
from strandline.diskless.wal.footer import (
    DamagedObject,
    Footer,
    WalExtent,
    encode_footer,
    footer_size,
    parse_footer,
)
from strandline.errors import CorruptMessage
from strandline.model import Offset, TimestampMs, TopicIdPartition
from strandline.objects import ObjectStore
from strandline.objects.store import Buffer
from strandline.records import BatchHeader, crc_matches, read_header
from strandline.records.batch import CRC_START

# Bytes read from the end of an object: the footer of 800 partitions fits.
_TAIL: Final = 64 * 1024


class PackedObject(NamedTuple):
    """An object that is ready to be uploaded. Its parts are the buffers of the batches: do not change them before."""

    parts: list[Buffer]
    size: int
    placed: list[tuple[int, int]]
    """Index and byte position of each given batch, in the order of the bytes."""


def pack(
    batches: Sequence[DisklessAppend], *, broker_id: int, cluster_id: str, created_ms: TimestampMs
) -> PackedObject:
    """Lay out batches as one object: by topic id, then partition, then order of arrival. Copies no records.

    `created_ms` has to increase from one object of a broker to the next: if the database is lost, it is the order in
    which the objects have to be committed again.
    """
    parts: list[Buffer] = []
    placed: list[tuple[int, int]] = []
    extents: list[WalExtent] = []
    position = 0
    for partition, indexes in _by_partition(batches):
        for alike in _alike(batches, indexes):
            inside = [batches[index] for index in alike]
            extents.append(_extent(partition, position, inside))
            for index, batch in zip(alike, inside, strict=True):
                buffer = batch.buffer
                parts.append(buffer)
                placed.append((index, position))
                position += len(buffer)
    footer = encode_footer(extents, created_ms=created_ms, broker_id=broker_id, cluster_id=cluster_id)
    parts.append(footer)
    return PackedObject(parts, position + len(footer), placed)


def _by_partition(batches: Sequence[DisklessAppend]) -> list[tuple[TopicIdPartition, list[int]]]:
    """The indexes of the batches of each partition, in the order of an object."""
    # Callers use the same key object for all batches of a partition: its identity is cheaper to look up than its hash.
    by_identity: dict[int, list[int]] = {}
    for index, batch in enumerate(batches):
        same = by_identity.get(id(batch.partition))
        if same is None:
            by_identity[id(batch.partition)] = [index]
        else:
            same.append(index)
    by_value: dict[TopicIdPartition, list[int]] = {}
    for indexes in by_identity.values():
        by_value.setdefault(batches[indexes[0]].partition, []).extend(indexes)
    return [(partition, sorted(by_value[partition])) for partition in sorted(by_value)]


def _alike(batches: Sequence[DisklessAppend], indexes: list[int]) -> Iterator[list[int]]:
    """Split into groups with one leader epoch and one timestamp type: nearly always a single group."""
    start = 0
    _, _, _, timestamp_type, leader_epoch, *_ = batches[indexes[0]]
    for end, index in enumerate(indexes):
        batch = batches[index]
        if batch.leader_epoch != leader_epoch or batch.timestamp_type is not timestamp_type:
            yield indexes[start:end]
            start, leader_epoch, timestamp_type = end, batch.leader_epoch, batch.timestamp_type
    yield indexes[start:]


def _extent(partition: TopicIdPartition, position: int, batches: list[DisklessAppend]) -> WalExtent:
    buffers = [batch.buffer for batch in batches]
    headers = [batch.header for batch in batches]
    return WalExtent(
        topic_id=partition.topic_id,
        partition=partition.partition,
        byte_offset=position,
        byte_size=sum(map(len, buffers)),
        batch_count=len(batches),
        record_count=sum([header.last_offset_delta for header in headers]) + len(batches),
        min_timestamp=min([header.base_timestamp for header in headers]),
        max_timestamp=max([header.max_timestamp for header in headers]),
        # Not over all bytes: that costs 40 ms and more per GB, and the checksums of the batches cover the rest.
        crc=crc32c(b"".join([buffer[:CRC_START] for buffer in buffers])),
        leader_epoch=batches[0].leader_epoch,
        timestamp_type=batches[0].timestamp_type,
    )


async def read_footer(store: ObjectStore, key: str, size: int) -> Footer:
    """The footer of an object of `size` bytes, nearly always with one ranged read.

    Raises DamagedObject, also if the footer does not describe an object of this size, and ObjectStoreErrors.
    """
    start = max(size - _TAIL, 0)
    tail = await store.get_range(key, start, size - start)
    if len(tail) != size - start:
        raise DamagedObject(f"The object is shorter than {size} bytes.")
    needed = footer_size(tail)
    if len(tail) < needed <= size:
        tail = await store.get_range(key, size - needed, needed)
    footer = parse_footer(tail)
    if footer.data_size + footer.size != size:
        raise DamagedObject(_wrong_size(footer, size))
    return footer


def verify(data: Buffer) -> Footer:
    """Check a whole object: its footer, the checksum of every extent and of every batch. Raises DamagedObject."""
    footer = parse_footer(data)
    if footer.data_size + footer.size != len(data):
        raise DamagedObject(_wrong_size(footer, len(data)))
    view = memoryview(data)
    for extent in footer.extents:
        verify_extent(extent, view[extent.byte_offset : extent.byte_end])
    return footer


def _wrong_size(footer: Footer, size: int) -> str:
    return f"The object has {size} bytes, but its footer describes {footer.data_size + footer.size}."


def verify_extent(extent: WalExtent, data: Buffer) -> None:
    """Check the bytes of one extent: their checksum, and that of every batch in them. Raises DamagedObject."""
    where = f"The extent of partition {extent.partition} of topic id {extent.topic_id} at byte {extent.byte_offset}"
    if len(data) != extent.byte_size:
        raise DamagedObject(f"{where} has {len(data)} bytes instead of {extent.byte_size}.")
    batches = records = crc = 0
    for position, header in iter_batches(extent, data):
        crc = crc32c(data[position : position + CRC_START], crc)
        if not crc_matches(data, position, header):
            raise DamagedObject(f"The batch at byte {extent.byte_offset + position} does not match its checksum.")
        batches += 1
        records += header.last_offset_delta + 1
    if (batches, records) != (extent.batch_count, extent.record_count):
        raise DamagedObject(
            f"{where} holds {batches} batches with {records} records instead of {extent.batch_count} "
            f"with {extent.record_count}."
        )
    if crc != extent.crc:
        raise DamagedObject(f"{where} does not match its checksum.")


def verify_split(data: Buffer, size: int, base_offset: Offset) -> None:
    """Check the bytes of a split file: every batch, and that their offsets are dense. Raises DamagedObject."""
    if len(data) != size:
        raise DamagedObject(f"The object has {len(data)} bytes instead of {size}.")
    position, offset = 0, base_offset
    while position < len(data):
        try:
            header = read_header(data, position)
        except CorruptMessage as error:
            raise DamagedObject(f"There is no batch at byte {position}: {error}") from error
        if position + header.size > len(data) or not crc_matches(data, position, header):
            raise DamagedObject(f"The batch at byte {position} does not match its checksum.")
        if header.base_offset != offset:
            raise DamagedObject(f"The batch at byte {position} has offset {header.base_offset} instead of {offset}.")
        position, offset = position + header.size, header.last_offset + 1


def iter_batches(extent: WalExtent, data: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Position (from the beginning of the extent) and header of every batch. Raises DamagedObject."""
    position = 0
    while position < len(data):
        try:
            header = read_header(data, position)
        except CorruptMessage as error:
            raise DamagedObject(f"There is no batch at byte {extent.byte_offset + position}: {error}") from error
        if position + header.size > len(data):
            raise DamagedObject(
                f"The batch at byte {extent.byte_offset + position} reaches beyond the end of its extent."
            )
        yield position, header
        position += header.size
