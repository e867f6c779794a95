"""Messages of txn offset commit. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_array_length,
    read_compact_array_length,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_string,
    read_string,
    skip_tags,
    truncated,
    write_array_length,
    write_compact_array_length,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_string,
    write_string,
)
from strandline.wire.structure import Structure

_INT32 = Struct(">i")
_INT32_INT16 = Struct(">ih")
_INT32_INT64 = Struct(">iq")
_INT64_INT16 = Struct(">qh")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TxnOffsetCommitRequestPartition(Structure):
    """Versions 0 to 5."""

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1  # from version 2 on
    committed_metadata: str | None = ""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TxnOffsetCommitRequestTopic(Structure):
    """Versions 0 to 5."""

    name: str = ""
    partitions: list[TxnOffsetCommitRequestPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TxnOffsetCommitRequest(Structure):
    """Versions 0 to 5."""

    transactional_id: str = ""
    group_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    generation_id: int = -1  # from version 3 on
    member_id: str = ""  # from version 3 on
    group_instance_id: str | None = None  # from version 3 on
    topics: list[TxnOffsetCommitRequestTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TxnOffsetCommitResponsePartition(Structure):
    """Versions 0 to 5."""

    partition_index: int = 0
    error_code: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TxnOffsetCommitResponseTopic(Structure):
    """Versions 0 to 5."""

    name: str = ""
    partitions: list[TxnOffsetCommitResponsePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TxnOffsetCommitResponse(Structure):
    """Versions 0 to 5."""

    throttle_time_ms: int = 0
    topics: list[TxnOffsetCommitResponseTopic] = field(default_factory=list)


def _read_txn_offset_commit_request_partition(
    buffer: memoryview, position: int, version: int
) -> tuple[TxnOffsetCommitRequestPartition, int]:
    flexible = version >= 3
    partition_index, committed_offset = _INT32_INT64.unpack_from(buffer, position)
    position += 12
    committed_leader_epoch: int = -1
    if version >= 2:
        (committed_leader_epoch,) = _INT32.unpack_from(buffer, position)
        position += 4
    committed_metadata, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    if flexible:
        position = skip_tags(buffer, position)
    return TxnOffsetCommitRequestPartition(
        partition_index=partition_index,
        committed_offset=committed_offset,
        committed_leader_epoch=committed_leader_epoch,
        committed_metadata=committed_metadata,
    ), position


def _write_txn_offset_commit_request_partition(
    out: bytearray, message: TxnOffsetCommitRequestPartition, version: int
) -> None:
    flexible = version >= 3
    out += _INT32_INT64.pack(message.partition_index, message.committed_offset)
    if version >= 2:
        out += _INT32.pack(message.committed_leader_epoch)
    if flexible:
        write_compact_nullable_string(out, message.committed_metadata)
    else:
        write_nullable_string(out, message.committed_metadata)
    if flexible:
        out += b"\x00"


def _read_txn_offset_commit_request_topic(
    buffer: memoryview, position: int, version: int
) -> tuple[TxnOffsetCommitRequestTopic, int]:
    flexible = version >= 3
    name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 13) if flexible else read_array_length(buffer, position, 13)
    )
    partitions: list[TxnOffsetCommitRequestPartition] = []
    for _ in range(count):
        txn_offset_commit_request_partition, position = _read_txn_offset_commit_request_partition(
            buffer, position, version
        )
        partitions.append(txn_offset_commit_request_partition)
    if flexible:
        position = skip_tags(buffer, position)
    return TxnOffsetCommitRequestTopic(name=name, partitions=partitions), position


def _write_txn_offset_commit_request_topic(out: bytearray, message: TxnOffsetCommitRequestTopic, version: int) -> None:
    flexible = version >= 3
    if flexible:
        write_compact_string(out, message.name)
    else:
        write_string(out, message.name)
    if flexible:
        write_compact_array_length(out, len(message.partitions))
    else:
        write_array_length(out, len(message.partitions))
    for txn_offset_commit_request_partition in message.partitions:
        _write_txn_offset_commit_request_partition(out, txn_offset_commit_request_partition, version)
    if flexible:
        out += b"\x00"


def _read_txn_offset_commit_request(
    buffer: memoryview, position: int, version: int
) -> tuple[TxnOffsetCommitRequest, int]:
    flexible = version >= 3
    transactional_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    group_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    producer_id, producer_epoch = _INT64_INT16.unpack_from(buffer, position)
    position += 10
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    if version >= 3:
        (generation_id,) = _INT32.unpack_from(buffer, position)
        position += 4
        member_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
        group_instance_id, position = (
            read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
        )
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    topics: list[TxnOffsetCommitRequestTopic] = []
    for _ in range(count):
        txn_offset_commit_request_topic, position = _read_txn_offset_commit_request_topic(buffer, position, version)
        topics.append(txn_offset_commit_request_topic)
    if flexible:
        position = skip_tags(buffer, position)
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        generation_id=generation_id,
        member_id=member_id,
        group_instance_id=group_instance_id,
        topics=topics,
    ), position


def _write_txn_offset_commit_request(out: bytearray, message: TxnOffsetCommitRequest, version: int) -> None:
    flexible = version >= 3
    if flexible:
        write_compact_string(out, message.transactional_id)
    else:
        write_string(out, message.transactional_id)
    if flexible:
        write_compact_string(out, message.group_id)
    else:
        write_string(out, message.group_id)
    out += _INT64_INT16.pack(message.producer_id, message.producer_epoch)
    if version >= 3:
        out += _INT32.pack(message.generation_id)
        if flexible:
            write_compact_string(out, message.member_id)
        else:
            write_string(out, message.member_id)
        if flexible:
            write_compact_nullable_string(out, message.group_instance_id)
        else:
            write_nullable_string(out, message.group_instance_id)
    if flexible:
        write_compact_array_length(out, len(message.topics))
    else:
        write_array_length(out, len(message.topics))
    for txn_offset_commit_request_topic in message.topics:
        _write_txn_offset_commit_request_topic(out, txn_offset_commit_request_topic, version)
    if flexible:
        out += b"\x00"


def read_txn_offset_commit_request(
    buffer: memoryview, position: int, version: int
) -> tuple[TxnOffsetCommitRequest, int]:
    """Read a TxnOffsetCommitRequest. Raises MalformedRequest."""
    try:
        return _read_txn_offset_commit_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("TxnOffsetCommitRequest") from error


def write_txn_offset_commit_request(out: bytearray, message: TxnOffsetCommitRequest, version: int) -> None:
    """Append a TxnOffsetCommitRequest to `out`."""
    _write_txn_offset_commit_request(out, message, version)


def _read_txn_offset_commit_response_partition(
    buffer: memoryview, position: int, version: int
) -> tuple[TxnOffsetCommitResponsePartition, int]:
    flexible = version >= 3
    partition_index, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    if flexible:
        position = skip_tags(buffer, position)
    return TxnOffsetCommitResponsePartition(partition_index=partition_index, error_code=error_code), position


def _write_txn_offset_commit_response_partition(
    out: bytearray, message: TxnOffsetCommitResponsePartition, version: int
) -> None:
    flexible = version >= 3
    out += _INT32_INT16.pack(message.partition_index, message.error_code)
    if flexible:
        out += b"\x00"


def _read_txn_offset_commit_response_topic(
    buffer: memoryview, position: int, version: int
) -> tuple[TxnOffsetCommitResponseTopic, int]:
    flexible = version >= 3
    name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 6) if flexible else read_array_length(buffer, position, 6)
    )
    partitions: list[TxnOffsetCommitResponsePartition] = []
    for _ in range(count):
        txn_offset_commit_response_partition, position = _read_txn_offset_commit_response_partition(
            buffer, position, version
        )
        partitions.append(txn_offset_commit_response_partition)
    if flexible:
        position = skip_tags(buffer, position)
    return TxnOffsetCommitResponseTopic(name=name, partitions=partitions), position


def _write_txn_offset_commit_response_topic(
    out: bytearray, message: TxnOffsetCommitResponseTopic, version: int
) -> None:
    flexible = version >= 3
    if flexible:
        write_compact_string(out, message.name)
    else:
        write_string(out, message.name)
    if flexible:
        write_compact_array_length(out, len(message.partitions))
    else:
        write_array_length(out, len(message.partitions))
    for txn_offset_commit_response_partition in message.partitions:
        _write_txn_offset_commit_response_partition(out, txn_offset_commit_response_partition, version)
    if flexible:
        out += b"\x00"


def _read_txn_offset_commit_response(
    buffer: memoryview, position: int, version: int
) -> tuple[TxnOffsetCommitResponse, int]:
    flexible = version >= 3
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    topics: list[TxnOffsetCommitResponseTopic] = []
    for _ in range(count):
        txn_offset_commit_response_topic, position = _read_txn_offset_commit_response_topic(buffer, position, version)
        topics.append(txn_offset_commit_response_topic)
    if flexible:
        position = skip_tags(buffer, position)
    return TxnOffsetCommitResponse(throttle_time_ms=throttle_time_ms, topics=topics), position


def _write_txn_offset_commit_response(out: bytearray, message: TxnOffsetCommitResponse, version: int) -> None:
    flexible = version >= 3
    out += _INT32.pack(message.throttle_time_ms)
    if flexible:
        write_compact_array_length(out, len(message.topics))
    else:
        write_array_length(out, len(message.topics))
    for txn_offset_commit_response_topic in message.topics:
        _write_txn_offset_commit_response_topic(out, txn_offset_commit_response_topic, version)
    if flexible:
        out += b"\x00"


def read_txn_offset_commit_response(
    buffer: memoryview, position: int, version: int
) -> tuple[TxnOffsetCommitResponse, int]:
    """Read a TxnOffsetCommitResponse. Raises MalformedRequest."""
    try:
        return _read_txn_offset_commit_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("TxnOffsetCommitResponse") from error


def write_txn_offset_commit_response(out: bytearray, message: TxnOffsetCommitResponse, version: int) -> None:
    """Append a TxnOffsetCommitResponse to `out`."""
    _write_txn_offset_commit_response(out, message, version)
