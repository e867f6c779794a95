"""Messages of write txn markers. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_array_length,
    read_compact_string,
    read_numbers,
    read_tag,
    read_uvarint,
    skip_tags,
    truncated,
    write_compact_array_length,
    write_compact_numbers,
    write_compact_string,
    write_tagged_field,
    write_uvarint,
)
from strandline.wire.structure import Structure

_INT8 = Struct(">b")
_INT32 = Struct(">i")
_INT32_INT16 = Struct(">ih")
_INT64 = Struct(">q")
_INT64_INT16_BOOL = Struct(">qh?")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class WritableTxnMarkerTopic(Structure):
    """Versions 1 to 2."""

    name: str = ""
    partition_indexes: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class WritableTxnMarker(Structure):
    """Versions 1 to 2."""

    producer_id: int = 0
    producer_epoch: int = 0
    transaction_result: bool = False
    topics: list[WritableTxnMarkerTopic] = field(default_factory=list)
    coordinator_epoch: int = 0
    transaction_version: int = 0  # from version 2 on
    transaction_start_ms: int = -1


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class WriteTxnMarkersRequest(Structure):
    """Versions 1 to 2."""

    markers: list[WritableTxnMarker] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class WritableTxnMarkerPartitionResult(Structure):
    """Versions 1 to 2."""

    partition_index: int = 0
    error_code: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class WritableTxnMarkerTopicResult(Structure):
    """Versions 1 to 2."""

    name: str = ""
    partitions: list[WritableTxnMarkerPartitionResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class WritableTxnMarkerResult(Structure):
    """Versions 1 to 2."""

    producer_id: int = 0
    topics: list[WritableTxnMarkerTopicResult] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class WriteTxnMarkersResponse(Structure):
    """Versions 1 to 2."""

    markers: list[WritableTxnMarkerResult] = field(default_factory=list)


def _read_writable_txn_marker_topic(
    buffer: memoryview, position: int, version: int
) -> tuple[WritableTxnMarkerTopic, int]:
    name, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 4)
    partition_indexes, position = read_numbers(buffer, position, count, "i")
    position = skip_tags(buffer, position)
    return WritableTxnMarkerTopic(name=name, partition_indexes=partition_indexes), position


def _write_writable_txn_marker_topic(out: bytearray, message: WritableTxnMarkerTopic, version: int) -> None:
    write_compact_string(out, message.name)
    write_compact_numbers(out, message.partition_indexes, "i")
    out += b"\x00"


def _read_writable_txn_marker(buffer: memoryview, position: int, version: int) -> tuple[WritableTxnMarker, int]:
    producer_id, producer_epoch, transaction_result = _INT64_INT16_BOOL.unpack_from(buffer, position)
    position += 11
    count, position = read_compact_array_length(buffer, position, 2)
    topics: list[WritableTxnMarkerTopic] = []
    for _ in range(count):
        writable_txn_marker_topic, position = _read_writable_txn_marker_topic(buffer, position, version)
        topics.append(writable_txn_marker_topic)
    (coordinator_epoch,) = _INT32.unpack_from(buffer, position)
    position += 4
    transaction_version: int = 0
    if version >= 2:
        (transaction_version,) = _INT8.unpack_from(buffer, position)
        position += 1
    transaction_start_ms: int = -1
    count, position = read_uvarint(buffer, position)
    for _ in range(count):
        tag, position, end = read_tag(buffer, position)
        if tag == 10000:
            (transaction_start_ms,) = _INT64.unpack_from(buffer, position)
            position += 8
        position = end
    return WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_result=transaction_result,
        topics=topics,
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
        transaction_start_ms=transaction_start_ms,
    ), position


def _write_writable_txn_marker(out: bytearray, message: WritableTxnMarker, version: int) -> None:
    out += _INT64_INT16_BOOL.pack(message.producer_id, message.producer_epoch, message.transaction_result)
    write_compact_array_length(out, len(message.topics))
    for writable_txn_marker_topic in message.topics:
        _write_writable_txn_marker_topic(out, writable_txn_marker_topic, version)
    out += _INT32.pack(message.coordinator_epoch)
    if version >= 2:
        out += _INT8.pack(message.transaction_version)
    tagged = bytearray()
    count = 0
    if message.transaction_start_ms != -1:
        value = bytearray()
        value += _INT64.pack(message.transaction_start_ms)
        write_tagged_field(tagged, 10000, value)
        count += 1
    write_uvarint(out, count)
    out += tagged


def _read_write_txn_markers_request(
    buffer: memoryview, position: int, version: int
) -> tuple[WriteTxnMarkersRequest, int]:
    count, position = read_compact_array_length(buffer, position, 16)
    markers: list[WritableTxnMarker] = []
    for _ in range(count):
        writable_txn_marker, position = _read_writable_txn_marker(buffer, position, version)
        markers.append(writable_txn_marker)
    position = skip_tags(buffer, position)
    return WriteTxnMarkersRequest(markers=markers), position


def _write_write_txn_markers_request(out: bytearray, message: WriteTxnMarkersRequest, version: int) -> None:
    write_compact_array_length(out, len(message.markers))
    for writable_txn_marker in message.markers:
        _write_writable_txn_marker(out, writable_txn_marker, version)
    out += b"\x00"


def read_write_txn_markers_request(
    buffer: memoryview, position: int, version: int
) -> tuple[WriteTxnMarkersRequest, int]:
    """Read a WriteTxnMarkersRequest. Raises MalformedRequest."""
    try:
        return _read_write_txn_markers_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("WriteTxnMarkersRequest") from error


def write_write_txn_markers_request(out: bytearray, message: WriteTxnMarkersRequest, version: int) -> None:
    """Append a WriteTxnMarkersRequest to `out`."""
    _write_write_txn_markers_request(out, message, version)


def _read_writable_txn_marker_partition_result(
    buffer: memoryview, position: int, version: int
) -> tuple[WritableTxnMarkerPartitionResult, int]:
    partition_index, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    position = skip_tags(buffer, position)
    return WritableTxnMarkerPartitionResult(partition_index=partition_index, error_code=error_code), position


def _write_writable_txn_marker_partition_result(
    out: bytearray, message: WritableTxnMarkerPartitionResult, version: int
) -> None:
    out += _INT32_INT16.pack(message.partition_index, message.error_code)
    out += b"\x00"


def _read_writable_txn_marker_topic_result(
    buffer: memoryview, position: int, version: int
) -> tuple[WritableTxnMarkerTopicResult, int]:
    name, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 6)
    partitions: list[WritableTxnMarkerPartitionResult] = []
    for _ in range(count):
        writable_txn_marker_partition_result, position = _read_writable_txn_marker_partition_result(
            buffer, position, version
        )
        partitions.append(writable_txn_marker_partition_result)
    position = skip_tags(buffer, position)
    return WritableTxnMarkerTopicResult(name=name, partitions=partitions), position


def _write_writable_txn_marker_topic_result(
    out: bytearray, message: WritableTxnMarkerTopicResult, version: int
) -> None:
    write_compact_string(out, message.name)
    write_compact_array_length(out, len(message.partitions))
    for writable_txn_marker_partition_result in message.partitions:
        _write_writable_txn_marker_partition_result(out, writable_txn_marker_partition_result, version)
    out += b"\x00"


def _read_writable_txn_marker_result(
    buffer: memoryview, position: int, version: int
) -> tuple[WritableTxnMarkerResult, int]:
    (producer_id,) = _INT64.unpack_from(buffer, position)
    position += 8
    count, position = read_compact_array_length(buffer, position, 2)
    topics: list[WritableTxnMarkerTopicResult] = []
    for _ in range(count):
        writable_txn_marker_topic_result, position = _read_writable_txn_marker_topic_result(buffer, position, version)
        topics.append(writable_txn_marker_topic_result)
    position = skip_tags(buffer, position)
    return WritableTxnMarkerResult(producer_id=producer_id, topics=topics), position


def _write_writable_txn_marker_result(out: bytearray, message: WritableTxnMarkerResult, version: int) -> None:
    out += _INT64.pack(message.producer_id)
    write_compact_array_length(out, len(message.topics))
    for writable_txn_marker_topic_result in message.topics:
        _write_writable_txn_marker_topic_result(out, writable_txn_marker_topic_result, version)
    out += b"\x00"


def _read_write_txn_markers_response(
    buffer: memoryview, position: int, version: int
) -> tuple[WriteTxnMarkersResponse, int]:
    count, position = read_compact_array_length(buffer, position, 9)
    markers: list[WritableTxnMarkerResult] = []
    for _ in range(count):
        writable_txn_marker_result, position = _read_writable_txn_marker_result(buffer, position, version)
        markers.append(writable_txn_marker_result)
    position = skip_tags(buffer, position)
    return WriteTxnMarkersResponse(markers=markers), position


def _write_write_txn_markers_response(out: bytearray, message: WriteTxnMarkersResponse, version: int) -> None:
    write_compact_array_length(out, len(message.markers))
    for writable_txn_marker_result in message.markers:
        _write_writable_txn_marker_result(out, writable_txn_marker_result, version)
    out += b"\x00"


def read_write_txn_markers_response(
    buffer: memoryview, position: int, version: int
) -> tuple[WriteTxnMarkersResponse, int]:
    """Read a WriteTxnMarkersResponse. Raises MalformedRequest."""
    try:
        return _read_write_txn_markers_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("WriteTxnMarkersResponse") from error


def write_write_txn_markers_response(out: bytearray, message: WriteTxnMarkersResponse, version: int) -> None:
    """Append a WriteTxnMarkersResponse to `out`."""
    _write_write_txn_markers_response(out, message, version)
