"""The metadata of a remote segment in few bytes, as the cache and its snapshots keep it.

The bytes are those of Kafka's records: everything after the segment id (the "tail"), which is the same in
`RemoteLogSegmentMetadata` and in the `RemoteLogSegmentMetadataSnapshot` of snapshots. A segment takes about 100 bytes
this way, and the object with its parts about 1000; objects are made for queries only.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from strandline.errors import CorruptMessage
from strandline.model import LeaderEpoch, Offset, TimestampMs
from strandline.records.fields import I32, I64, write_uvarint
from strandline.remote.topic_based.records.fields import CompactReader, write_bytes
from strandline.remote.values import RemoteLogSegmentId, RemoteLogSegmentMetadata, RemoteLogSegmentState

_HEAD: Final = Struct(">qqiqq")
_NEWEST: Final = Struct(">q")
_NEWEST_AT: Final = 20  # behind both offsets and the broker
_EPOCH: Final = Struct(">iqB")
_EPOCH_FIELDS: Final = 12
# A segment of one leader epoch without custom metadata, up to its state.
_USUAL: Final = Struct(">qqiqqBiqBiBb")
_ONE_EPOCH: Final = 2
_NULL: Final = 0
_TXN_INDEX_EMPTY_TAG: Final = 0
_NO_TAGS: Final = b"\x00"
_TXN_INDEX_EMPTY: Final = b"\x01\x00\x01\x01"
_STATES: Final = tuple(RemoteLogSegmentState)


def pack(metadata: RemoteLogSegmentMetadata) -> bytes:
    """Everything but the id."""
    out = bytearray()
    write_tail(out, metadata)
    return bytes(out)


def unpack(segment_id: RemoteLogSegmentId, packed: bytes) -> RemoteLogSegmentMetadata:
    """The inverse of `pack`. Raises CorruptMessage."""
    reader = CompactReader(packed)
    metadata = read_tail(reader, segment_id)
    reader.end()
    return metadata


def is_txn_index_empty(packed: bytes) -> bool:
    """Whether a packed segment is known to have no aborted transactions."""
    return packed[-1] == 1  # the last byte is the value of the only tagged field, or the number of fields, 0


def newest_timestamp_of(packed: bytes) -> TimestampMs:
    """The largest timestamp of a packed segment's records."""
    newest_ms: TimestampMs = _NEWEST.unpack_from(packed, _NEWEST_AT)[0]
    return newest_ms


def packed_start(offset: Offset) -> bytes:
    """What packed segments begin with that begin at an offset: it sorts before all of them."""
    return I64.pack(offset)


def size_and_state_of(packed: bytes) -> tuple[int, RemoteLogSegmentState]:
    """The bytes of a packed segment's log, and its state. Raises CorruptMessage."""
    reader = CompactReader(packed, _HEAD.size)
    for _ in range(reader.array_length(_EPOCH.size)):
        reader.take(_EPOCH_FIELDS)
        reader.tags()
    size = reader.i32()
    reader.nullable_bytes()
    return size, _STATES[reader.i8()]


def write_tail(out: bytearray, metadata: RemoteLogSegmentMetadata) -> None:
    """Append everything but the id."""
    out += _HEAD.pack(
        metadata.start_offset,
        metadata.end_offset,
        metadata.broker_id,
        metadata.max_timestamp_ms,
        metadata.event_timestamp_ms,
    )
    epochs = metadata.segment_leader_epochs
    write_uvarint(out, len(epochs) + 1)
    for epoch, offset in epochs.items():
        out += _EPOCH.pack(epoch, offset, 0)
    out += I32.pack(metadata.segment_size_in_bytes)
    write_bytes(out, metadata.custom_metadata)
    out.append(metadata.state)
    out += _TXN_INDEX_EMPTY if metadata.txn_index_empty else _NO_TAGS


def read_tail(reader: CompactReader, segment_id: RemoteLogSegmentId) -> RemoteLogSegmentMetadata:
    """Read what `write_tail` wrote. Raises CorruptMessage."""
    usual = _read_usual(reader, segment_id)
    if usual is not None:
        return usual
    start, end, broker_id, max_timestamp_ms, event_timestamp_ms = reader.unpack(_HEAD)
    epochs = _read_epochs(reader)
    size = reader.i32()
    custom_metadata = reader.nullable_bytes()
    state = reader.i8()
    tags = reader.tags()
    if not 0 <= state < len(_STATES):
        raise CorruptMessage(f"RemoteLogSegmentState has no number {state}.")
    if not 0 <= start <= end or not epochs:
        raise CorruptMessage(f"There is no segment from offset {start} to {end} with {len(epochs)} leader epochs.")
    return RemoteLogSegmentMetadata(
        segment_id=segment_id,
        start_offset=start,
        end_offset=end,
        max_timestamp_ms=max_timestamp_ms,
        broker_id=broker_id,
        event_timestamp_ms=event_timestamp_ms,
        segment_size_in_bytes=size,
        segment_leader_epochs=epochs,
        state=_STATES[state],
        custom_metadata=custom_metadata,
        txn_index_empty=tags.get(_TXN_INDEX_EMPTY_TAG, b"\x00") != b"\x00",
    )


def _read_usual(reader: CompactReader, segment_id: RemoteLogSegmentId) -> RemoteLogSegmentMetadata | None:
    """The fast path: one leader epoch, no custom metadata. None for other segments."""
    data, tags_at = reader.data, reader.position + _USUAL.size
    if tags_at >= len(data):
        return None
    start, end, broker_id, max_timestamp_ms, event_timestamp_ms, count, epoch, offset, tags, size, custom, state = (
        _USUAL.unpack_from(data, reader.position)
    )
    if (count, tags, custom) != (_ONE_EPOCH, 0, _NULL) or not (0 <= start <= end and 0 <= state < len(_STATES)):
        return None
    txn_index_empty = data.startswith(_TXN_INDEX_EMPTY, tags_at)
    if not txn_index_empty and data[tags_at] != 0:
        return None
    reader.position = tags_at + (len(_TXN_INDEX_EMPTY) if txn_index_empty else len(_NO_TAGS))
    return RemoteLogSegmentMetadata(
        segment_id=segment_id,
        start_offset=start,
        end_offset=end,
        max_timestamp_ms=max_timestamp_ms,
        broker_id=broker_id,
        event_timestamp_ms=event_timestamp_ms,
        segment_size_in_bytes=size,
        segment_leader_epochs={epoch: offset},
        state=_STATES[state],
        txn_index_empty=txn_index_empty,
    )


def _read_epochs(reader: CompactReader) -> dict[LeaderEpoch, Offset]:
    entries: list[tuple[LeaderEpoch, Offset]] = []
    for _ in range(reader.array_length(_EPOCH.size)):
        entries.append((reader.i32(), reader.i64()))
        reader.tags()
    return dict(sorted(entries))
