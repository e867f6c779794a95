"""Control records: written by brokers among the records of clients, above all to end transactions."""

from __future__ import annotations

from enum import IntEnum
from struct import Struct, error
from typing import Final, NamedTuple

from strandline.errors import InvalidRecord
from strandline.records.batch import CODEC_MASK, CURRENT_MAGIC, HEADER_SIZE, LOG_OVERHEAD, Buffer
from strandline.records.builder import build_batch
from strandline.records.record import Record, read_records

_KEY: Final = Struct(">hh")
_MARKER: Final = Struct(">hi")

# A marker as every Kafka writes it: one record of 16 bytes with no attributes, deltas and headers, a key of 4 bytes and
# a value of 6, none of it compressed.
_USUAL_SIZE: Final = HEADER_SIZE + 17
_USUAL_FRAME: Final = (0x20, 0, 0, 0, 0x08, 0x0C, 0)
_USUAL_START: Final = 8  # where the length of the batch is
_unpack_usual = Struct(">i4xb4xh34xi5BhhBhiB").unpack_from


class ControlType(IntEnum):
    """The type of a control record. Readers skip types they do not know."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6
    UNKNOWN = -1


class EndTransactionMarker(NamedTuple):
    """The end of a producer's transaction on one partition."""

    type: ControlType
    coordinator_epoch: int

    @property
    def is_abort(self) -> bool:
        return self.type is ControlType.ABORT


_ABORT: Final = ControlType.ABORT
_COMMIT: Final = ControlType.COMMIT
_new_marker = tuple.__new__  # skips a Python call for each marker
_TYPES: Final = {int(member): member for member in ControlType if member >= 0}


def control_key(control_type: ControlType) -> bytes:
    """The key of a control record."""
    return _KEY.pack(0, control_type)


def control_type_of(key: bytes | None) -> ControlType:
    """The type a control record's key names. Raises InvalidRecord if it is no such key."""
    if key is None or len(key) < _KEY.size:
        raise InvalidRecord("The key of a control record is too short.")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise InvalidRecord(f"The key of a control record has the impossible version {version}.")
    return _TYPES.get(number, ControlType.UNKNOWN)


def marker_of(record: Record) -> EndTransactionMarker | None:
    """The end of a transaction that a control record marks; None for other types. Raises InvalidRecord."""
    control_type = control_type_of(record.key)
    if control_type not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    try:
        version, coordinator_epoch = _MARKER.unpack_from(record.value or b"")
    except error:
        raise InvalidRecord("The value of an end-transaction marker is too short.") from None
    if version < 0:
        raise InvalidRecord(f"The value of an end-transaction marker has the impossible version {version}.")
    return EndTransactionMarker(control_type, coordinator_epoch)


def read_marker(batch: Buffer) -> EndTransactionMarker | None:
    """The marker in a whole control batch; None if it holds none. Raises InvalidRecord."""
    if len(batch) == _USUAL_SIZE:
        marker = _usual_marker(batch)
        if marker is not None:
            return marker
    for record in read_records(batch):
        return marker_of(record)
    return None


def _usual_marker(batch: Buffer) -> EndTransactionMarker | None:
    """The marker in a batch of the usual size and shape; None for any other, which takes five times as long to read."""
    fields = _unpack_usual(batch, _USUAL_START)
    length, magic, attributes, count, a, b, c, d, e, version, number, f, value_version, coordinator_epoch, g = fields
    if (
        (a, b, c, d, e, f, g) == _USUAL_FRAME
        and length == _USUAL_SIZE - LOG_OVERHEAD
        and magic == CURRENT_MAGIC
        and count == 1
        and not attributes & CODEC_MASK
        and version >= 0
        and value_version >= 0
        and 0 <= number <= 1
    ):
        return _new_marker(EndTransactionMarker, (_COMMIT if number else _ABORT, coordinator_epoch))
    return None


def build_marker(
    marker: EndTransactionMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp_ms: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """The batch that ends a transaction."""
    value = _MARKER.pack(0, marker.coordinator_epoch)
    return build_batch(
        [Record(base_offset, timestamp_ms, control_key(marker.type), value)],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )
