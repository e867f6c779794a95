"""Control records: written by brokers among the records of clients, above all to end transactions."""

from __future__ import annotations

from enum import IntEnum
from struct import Struct, error
from typing import Final, NamedTuple

from strandline.errors import InvalidRecord
from strandline.records.batch import Buffer
from strandline.records.builder import build_batch
from strandline.records.record import Record, read_records

_KEY: Final = Struct(">hh")
_MARKER: Final = Struct(">hi")


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
    for record in read_records(batch):
        return marker_of(record)
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
