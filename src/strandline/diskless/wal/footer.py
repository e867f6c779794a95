"""The footer of a WAL object, which describes the object's content.

Fixed-size entries, one for each extent, then the origin of the object (cluster, broker, time), then a trailer of 16
bytes that ends the object. docs/wal-format.md describes every field and must agree with this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, Final, NamedTuple
from uuid import UUID

from crc32c import crc32c

from strandline.model import LeaderEpoch, TimestampMs
from strandline.objects.store import Buffer
from strandline.records import TimestampType

MAGIC: Final = b"STRWAL"
VERSION: Final = 1

# Topic id, partition, byte offset, byte size, batches, records, smallest and largest timestamp, CRC32C,
# leader epoch, timestamp type.
_EXTENT: Final = Struct(">16siqqiqqqIib")
# Length of the cluster id, which precedes it, creation time, broker id, number of extents.
_ORIGIN: Final = Struct(">Hqii")
# Length of extents and origin, their CRC32C, version, magic. The CRC also covers length and version.
_TRAILER: Final = Struct(">IIH6s")
_COVERED: Final = Struct(">IH")

TRAILER_SIZE: Final = _TRAILER.size


class DamagedObject(Exception):
    """The bytes are not a WAL object, or not the one that was written. The text does not name the object."""


class WalExtent(NamedTuple):
    """Adjacent batches of one partition, with one leader epoch and one timestamp type."""

    topic_id: UUID
    partition: int
    byte_offset: int
    byte_size: int
    batch_count: int
    record_count: int
    """Offsets that its batches take, together."""
    min_timestamp: TimestampMs
    """The smallest base timestamp of its batches."""
    max_timestamp: TimestampMs
    crc: int
    """CRC32C of the first 21 bytes of each batch as uploaded: the part that the batch's own checksum does not cover,
    and that checksum. Together they cover every byte once."""
    leader_epoch: LeaderEpoch
    timestamp_type: TimestampType

    @property
    def byte_end(self) -> int:
        return self.byte_offset + self.byte_size


class Footer(NamedTuple):
    """The footer, parsed."""

    extents: tuple[WalExtent, ...]
    """In the order of their bytes, without a gap."""
    created_ms: TimestampMs
    broker_id: int
    cluster_id: str
    version: int
    size: int
    """Bytes of the footer itself, trailer included."""

    @property
    def data_size(self) -> int:
        """Bytes of batches, which are the beginning of the object."""
        return self.extents[-1].byte_end if self.extents else 0


def encode_footer(extents: Sequence[WalExtent], *, created_ms: TimestampMs, broker_id: int, cluster_id: str) -> bytes:
    """The bytes that follow the batches."""
    pack = _EXTENT.pack
    cluster = cluster_id.encode()
    content = b"".join(
        [
            *(pack(extent[0].bytes, *extent[1:]) for extent in extents),
            cluster,
            _ORIGIN.pack(len(cluster), created_ms, broker_id, len(extents)),
        ]
    )
    return content + _TRAILER.pack(len(content), _crc(content, VERSION), VERSION, MAGIC)


def footer_size(tail: Buffer) -> int:
    """Bytes of the whole footer, from the last bytes of an object (at least the trailer). Raises DamagedObject."""
    length, _, version, magic = _trailer(tail)
    if magic != MAGIC:
        raise DamagedObject("The object does not end as a WAL object does.")
    if version != VERSION:
        raise DamagedObject(f"The object has version {version} of the format; this program knows version {VERSION}.")
    return length + TRAILER_SIZE


def parse_footer(tail: Buffer) -> Footer:
    """The footer that ends with `tail`; all of it must be there, bytes before it are ignored. Raises DamagedObject."""
    size = footer_size(tail)
    _, crc, version, _ = _trailer(tail)
    if size > len(tail):
        raise DamagedObject(f"The footer has {size} bytes, but only {len(tail)} are there.")
    content = memoryview(tail)[len(tail) - size : len(tail) - TRAILER_SIZE]
    if _crc(content, version) != crc:
        raise DamagedObject("The footer does not match its checksum.")
    return _parse(content, version, size)


def _parse(content: memoryview, version: int, size: int) -> Footer:
    # The checksum was right: any fault found from here on was written so.
    if len(content) < _ORIGIN.size:
        raise DamagedObject(f"The footer has {size} bytes: too few.")
    cluster_size, created_ms, broker_id, count = _ORIGIN.unpack_from(content, len(content) - _ORIGIN.size)
    extents_size = count * _EXTENT.size
    if extents_size + cluster_size + _ORIGIN.size != len(content):
        raise DamagedObject(f"The footer has {size} bytes, which is not what {count} extents need.")
    try:
        extents = tuple(_extent(fields) for fields in _EXTENT.iter_unpack(content[:extents_size]))
        cluster_id = str(content[extents_size : extents_size + cluster_size], "utf-8")
    except ValueError as error:
        raise DamagedObject(f"The footer cannot be read: {error}") from error
    end = 0
    for extent in extents:
        if extent.byte_offset != end or extent.byte_size <= 0:
            raise DamagedObject(f"The extents leave a gap, overlap or are empty at byte {end}.")
        end = extent.byte_end
    return Footer(extents, created_ms, broker_id, cluster_id, version, size)


def _extent(fields: tuple[Any, ...]) -> WalExtent:
    return WalExtent._make((UUID(bytes=fields[0]), *fields[1:-1], TimestampType(fields[-1])))


def _trailer(tail: Buffer) -> tuple[int, int, int, bytes]:
    if len(tail) < TRAILER_SIZE:
        raise DamagedObject(f"The object has only {len(tail)} bytes: too few for a WAL object.")
    length, crc, version, magic = _TRAILER.unpack_from(tail, len(tail) - TRAILER_SIZE)
    return length, crc, version, magic


def _crc(content: Buffer, version: int) -> int:
    return crc32c(_COVERED.pack(len(content), version), crc32c(content))
