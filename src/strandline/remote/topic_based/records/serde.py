"""Records of `__remote_log_metadata`, byte for byte as Apache Kafka writes them.

A value is a frame version (1), the kind of record and its version (0) as varints, then the fields. Only the kinds that
Kafka writes to the topic are read here; `packing` has the one of snapshots.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final, TypeAlias, TypeVar

from strandline.errors import CorruptMessage
from strandline.model import TopicIdPartition, TopicPartition
from strandline.records.fields import I32, write_uvarint
from strandline.remote.topic_based.records.fields import CompactReader, write_bytes, write_string
from strandline.remote.topic_based.records.packing import read_tail, write_tail
from strandline.remote.values import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
)

RemoteLogMetadata: TypeAlias = RemoteLogSegmentMetadata | RemoteLogSegmentMetadataUpdate | RemotePartitionDeleteMetadata

FRAME_VERSION: Final = 1
_VERSION: Final = 0
_BROKER_AND_TIME: Final = Struct(">iq")

_State = TypeVar("_State", RemoteLogSegmentState, RemotePartitionDeleteState)


class ApiKey(IntEnum):
    """The kinds of records."""

    REMOTE_LOG_SEGMENT_METADATA = 0
    REMOTE_LOG_SEGMENT_METADATA_UPDATE = 1
    REMOTE_PARTITION_DELETE_METADATA = 2


def partition_of(message: RemoteLogMetadata) -> TopicIdPartition:
    """The partition that a record is about."""
    if isinstance(message, RemotePartitionDeleteMetadata):
        return message.partition
    return message.segment_id.partition


def serialize(message: RemoteLogMetadata) -> bytes:
    """The value of a record."""
    out = bytearray()
    match message:
        case RemoteLogSegmentMetadata():
            _write_frame(out, ApiKey.REMOTE_LOG_SEGMENT_METADATA)
            _write_segment_id(out, message.segment_id)
            write_tail(out, message)
        case RemoteLogSegmentMetadataUpdate():
            _write_frame(out, ApiKey.REMOTE_LOG_SEGMENT_METADATA_UPDATE)
            _write_segment_id(out, message.segment_id)
            out += _BROKER_AND_TIME.pack(message.broker_id, message.event_timestamp_ms)
            write_bytes(out, message.custom_metadata)
            out += bytes((message.state, 0))
        case RemotePartitionDeleteMetadata():
            _write_frame(out, ApiKey.REMOTE_PARTITION_DELETE_METADATA)
            _write_partition(out, message.partition)
            out += _BROKER_AND_TIME.pack(message.broker_id, message.event_timestamp_ms)
            out += bytes((message.state, 0))
    return bytes(out)


def deserialize(value: bytes) -> RemoteLogMetadata:
    """The message of a record. Raises CorruptMessage for other bytes, and for unknown kinds and versions."""
    reader = CompactReader(value)
    frame, kind, version = reader.uvarint(), reader.uvarint(), reader.uvarint()
    if frame != FRAME_VERSION:
        raise CorruptMessage(f"The frame has version {frame}; only {FRAME_VERSION} is known.")
    if version != _VERSION:
        raise CorruptMessage(f"The record of kind {kind} has version {version}; only {_VERSION} is known.")
    message: RemoteLogMetadata
    match kind:
        case ApiKey.REMOTE_LOG_SEGMENT_METADATA:
            message = read_tail(reader, _read_segment_id(reader))
        case ApiKey.REMOTE_LOG_SEGMENT_METADATA_UPDATE:
            message = _read_update(reader)
        case ApiKey.REMOTE_PARTITION_DELETE_METADATA:
            message = _read_partition_delete(reader)
        case _:
            raise CorruptMessage(f"Records of kind {kind} are not known.")
    reader.end()
    return message


def _write_frame(out: bytearray, kind: ApiKey) -> None:
    for number in (FRAME_VERSION, kind, _VERSION):
        write_uvarint(out, number)


def _write_partition(out: bytearray, partition: TopicIdPartition) -> None:
    write_string(out, partition.topic)
    out += partition.topic_id.bytes
    out += I32.pack(partition.partition)
    out.append(0)


def _read_partition(reader: CompactReader) -> TopicIdPartition:
    name, topic_id, number = reader.string(), reader.uuid(), reader.i32()
    reader.tags()
    return TopicIdPartition(topic_id, TopicPartition(name, number))


def _write_segment_id(out: bytearray, segment_id: RemoteLogSegmentId) -> None:
    _write_partition(out, segment_id.partition)
    out += segment_id.id.bytes
    out.append(0)


def _read_segment_id(reader: CompactReader) -> RemoteLogSegmentId:
    segment_id = RemoteLogSegmentId(_read_partition(reader), reader.uuid())
    reader.tags()
    return segment_id


def _read_update(reader: CompactReader) -> RemoteLogSegmentMetadataUpdate:
    segment_id = _read_segment_id(reader)
    broker_id, event_timestamp_ms = reader.i32(), reader.i64()
    custom_metadata = reader.nullable_bytes()
    state = _read_state(reader, RemoteLogSegmentState)
    reader.tags()
    return RemoteLogSegmentMetadataUpdate(
        segment_id=segment_id,
        event_timestamp_ms=event_timestamp_ms,
        state=state,
        broker_id=broker_id,
        custom_metadata=custom_metadata,
    )


def _read_partition_delete(reader: CompactReader) -> RemotePartitionDeleteMetadata:
    partition = _read_partition(reader)
    broker_id, event_timestamp_ms = reader.i32(), reader.i64()
    state = _read_state(reader, RemotePartitionDeleteState)
    reader.tags()
    return RemotePartitionDeleteMetadata(
        partition=partition, state=state, event_timestamp_ms=event_timestamp_ms, broker_id=broker_id
    )


def _read_state(reader: CompactReader, states: type[_State]) -> _State:
    number = reader.i8()
    try:
        return states(number)
    except ValueError:
        raise CorruptMessage(f"{states.__name__} has no number {number}.") from None
