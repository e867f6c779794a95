"""Messages of share fetch. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from uuid import UUID

from strandline.model import ZERO_UUID
from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_array_length,
    read_compact_nullable_bytes,
    read_compact_nullable_string,
    read_compact_string,
    read_numbers,
    read_uuid,
    skip_tags,
    truncated,
    write_compact_array_length,
    write_compact_nullable_bytes,
    write_compact_nullable_string,
    write_compact_numbers,
    write_compact_string,
)
from strandline.wire.structure import Structure

_INT8_BOOL = Struct(">b?")
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT32_INT16 = Struct(">ih")
_INT32_INT32 = Struct(">ii")
_INT32_INT32_INT32_INT32_INT32_INT32 = Struct(">iiiiii")
_INT64_INT64 = Struct(">qq")
_INT64_INT64_INT16 = Struct(">qqh")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AcknowledgementBatch(Structure):
    """Versions 1 to 2."""

    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class FetchPartition(Structure):
    """Versions 1 to 2."""

    partition_index: int = 0
    acknowledgement_batches: list[AcknowledgementBatch] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class FetchTopic(Structure):
    """Versions 1 to 2."""

    topic_id: UUID = ZERO_UUID
    partitions: list[FetchPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ForgottenTopic(Structure):
    """Versions 1 to 2."""

    topic_id: UUID = ZERO_UUID
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ShareFetchRequest(Structure):
    """Versions 1 to 2."""

    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    max_records: int = 0
    batch_size: int = 0
    share_acquire_mode: int = 0  # from version 2 on
    is_renew_ack: bool = False  # from version 2 on
    topics: list[FetchTopic] = field(default_factory=list)
    forgotten_topics_data: list[ForgottenTopic] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class LeaderIdAndEpoch(Structure):
    """Versions 1 to 2."""

    leader_id: int = 0
    leader_epoch: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AcquiredRecords(Structure):
    """Versions 1 to 2."""

    first_offset: int = 0
    last_offset: int = 0
    delivery_count: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class PartitionData(Structure):
    """Versions 1 to 2."""

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    acknowledge_error_code: int = 0
    acknowledge_error_message: str | None = None
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)
    records: bytes | None = None
    acquired_records: list[AcquiredRecords] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ShareFetchableTopicResponse(Structure):
    """Versions 1 to 2."""

    topic_id: UUID = ZERO_UUID
    partitions: list[PartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class NodeEndpoint(Structure):
    """Versions 1 to 2."""

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ShareFetchResponse(Structure):
    """Versions 1 to 2."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareFetchableTopicResponse] = field(default_factory=list)
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)


def _read_acknowledgement_batch(buffer: memoryview, position: int, version: int) -> tuple[AcknowledgementBatch, int]:
    first_offset, last_offset = _INT64_INT64.unpack_from(buffer, position)
    position += 16
    count, position = read_compact_array_length(buffer, position, 1)
    acknowledge_types, position = read_numbers(buffer, position, count, "b")
    position = skip_tags(buffer, position)
    return AcknowledgementBatch(
        first_offset=first_offset, last_offset=last_offset, acknowledge_types=acknowledge_types
    ), position


def _write_acknowledgement_batch(out: bytearray, message: AcknowledgementBatch, version: int) -> None:
    out += _INT64_INT64.pack(message.first_offset, message.last_offset)
    write_compact_numbers(out, message.acknowledge_types, "b")
    out += b"\x00"


def _read_fetch_partition(buffer: memoryview, position: int, version: int) -> tuple[FetchPartition, int]:
    (partition_index,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = read_compact_array_length(buffer, position, 17)
    acknowledgement_batches: list[AcknowledgementBatch] = []
    for _ in range(count):
        acknowledgement_batch, position = _read_acknowledgement_batch(buffer, position, version)
        acknowledgement_batches.append(acknowledgement_batch)
    position = skip_tags(buffer, position)
    return FetchPartition(partition_index=partition_index, acknowledgement_batches=acknowledgement_batches), position


def _write_fetch_partition(out: bytearray, message: FetchPartition, version: int) -> None:
    out += _INT32.pack(message.partition_index)
    write_compact_array_length(out, len(message.acknowledgement_batches))
    for acknowledgement_batch in message.acknowledgement_batches:
        _write_acknowledgement_batch(out, acknowledgement_batch, version)
    out += b"\x00"


def _read_fetch_topic(buffer: memoryview, position: int, version: int) -> tuple[FetchTopic, int]:
    topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 5)
    partitions: list[FetchPartition] = []
    for _ in range(count):
        fetch_partition, position = _read_fetch_partition(buffer, position, version)
        partitions.append(fetch_partition)
    position = skip_tags(buffer, position)
    return FetchTopic(topic_id=topic_id, partitions=partitions), position


def _write_fetch_topic(out: bytearray, message: FetchTopic, version: int) -> None:
    out += message.topic_id.bytes
    write_compact_array_length(out, len(message.partitions))
    for fetch_partition in message.partitions:
        _write_fetch_partition(out, fetch_partition, version)
    out += b"\x00"


def _read_forgotten_topic(buffer: memoryview, position: int, version: int) -> tuple[ForgottenTopic, int]:
    topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 4)
    partitions, position = read_numbers(buffer, position, count, "i")
    position = skip_tags(buffer, position)
    return ForgottenTopic(topic_id=topic_id, partitions=partitions), position


def _write_forgotten_topic(out: bytearray, message: ForgottenTopic, version: int) -> None:
    out += message.topic_id.bytes
    write_compact_numbers(out, message.partitions, "i")
    out += b"\x00"


def _read_share_fetch_request(buffer: memoryview, position: int, version: int) -> tuple[ShareFetchRequest, int]:
    group_id, position = read_compact_nullable_string(buffer, position)
    member_id, position = read_compact_nullable_string(buffer, position)
    share_session_epoch, max_wait_ms, min_bytes, max_bytes, max_records, batch_size = (
        _INT32_INT32_INT32_INT32_INT32_INT32.unpack_from(buffer, position)
    )
    position += 24
    share_acquire_mode: int = 0
    is_renew_ack: bool = False
    if version >= 2:
        share_acquire_mode, is_renew_ack = _INT8_BOOL.unpack_from(buffer, position)
        position += 2
    count, position = read_compact_array_length(buffer, position, 17)
    topics: list[FetchTopic] = []
    for _ in range(count):
        fetch_topic, position = _read_fetch_topic(buffer, position, version)
        topics.append(fetch_topic)
    count, position = read_compact_array_length(buffer, position, 17)
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(count):
        forgotten_topic, position = _read_forgotten_topic(buffer, position, version)
        forgotten_topics_data.append(forgotten_topic)
    position = skip_tags(buffer, position)
    return ShareFetchRequest(
        group_id=group_id,
        member_id=member_id,
        share_session_epoch=share_session_epoch,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        max_records=max_records,
        batch_size=batch_size,
        share_acquire_mode=share_acquire_mode,
        is_renew_ack=is_renew_ack,
        topics=topics,
        forgotten_topics_data=forgotten_topics_data,
    ), position


def _write_share_fetch_request(out: bytearray, message: ShareFetchRequest, version: int) -> None:
    write_compact_nullable_string(out, message.group_id)
    write_compact_nullable_string(out, message.member_id)
    out += _INT32_INT32_INT32_INT32_INT32_INT32.pack(
        message.share_session_epoch,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.max_records,
        message.batch_size,
    )
    if version >= 2:
        out += _INT8_BOOL.pack(message.share_acquire_mode, message.is_renew_ack)
    write_compact_array_length(out, len(message.topics))
    for fetch_topic in message.topics:
        _write_fetch_topic(out, fetch_topic, version)
    write_compact_array_length(out, len(message.forgotten_topics_data))
    for forgotten_topic in message.forgotten_topics_data:
        _write_forgotten_topic(out, forgotten_topic, version)
    out += b"\x00"


def read_share_fetch_request(buffer: memoryview, position: int, version: int) -> tuple[ShareFetchRequest, int]:
    """Read a ShareFetchRequest. Raises MalformedRequest."""
    try:
        return _read_share_fetch_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ShareFetchRequest") from error


def write_share_fetch_request(out: bytearray, message: ShareFetchRequest, version: int) -> None:
    """Append a ShareFetchRequest to `out`."""
    _write_share_fetch_request(out, message, version)


def _read_leader_id_and_epoch(buffer: memoryview, position: int, version: int) -> tuple[LeaderIdAndEpoch, int]:
    leader_id, leader_epoch = _INT32_INT32.unpack_from(buffer, position)
    position += 8
    position = skip_tags(buffer, position)
    return LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch), position


def _write_leader_id_and_epoch(out: bytearray, message: LeaderIdAndEpoch, version: int) -> None:
    out += _INT32_INT32.pack(message.leader_id, message.leader_epoch)
    out += b"\x00"


def _read_acquired_records(buffer: memoryview, position: int, version: int) -> tuple[AcquiredRecords, int]:
    first_offset, last_offset, delivery_count = _INT64_INT64_INT16.unpack_from(buffer, position)
    position += 18
    position = skip_tags(buffer, position)
    return AcquiredRecords(first_offset=first_offset, last_offset=last_offset, delivery_count=delivery_count), position


def _write_acquired_records(out: bytearray, message: AcquiredRecords, version: int) -> None:
    out += _INT64_INT64_INT16.pack(message.first_offset, message.last_offset, message.delivery_count)
    out += b"\x00"


def _read_partition_data(buffer: memoryview, position: int, version: int) -> tuple[PartitionData, int]:
    partition_index, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = read_compact_nullable_string(buffer, position)
    (acknowledge_error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    acknowledge_error_message, position = read_compact_nullable_string(buffer, position)
    current_leader, position = _read_leader_id_and_epoch(buffer, position, version)
    records, position = read_compact_nullable_bytes(buffer, position)
    count, position = read_compact_array_length(buffer, position, 18)
    acquired_records: list[AcquiredRecords] = []
    for _ in range(count):
        acquired_records_, position = _read_acquired_records(buffer, position, version)
        acquired_records.append(acquired_records_)
    position = skip_tags(buffer, position)
    return PartitionData(
        partition_index=partition_index,
        error_code=error_code,
        error_message=error_message,
        acknowledge_error_code=acknowledge_error_code,
        acknowledge_error_message=acknowledge_error_message,
        current_leader=current_leader,
        records=records,
        acquired_records=acquired_records,
    ), position


def _write_partition_data(out: bytearray, message: PartitionData, version: int) -> None:
    out += _INT32_INT16.pack(message.partition_index, message.error_code)
    write_compact_nullable_string(out, message.error_message)
    out += _INT16.pack(message.acknowledge_error_code)
    write_compact_nullable_string(out, message.acknowledge_error_message)
    _write_leader_id_and_epoch(out, message.current_leader, version)
    write_compact_nullable_bytes(out, message.records)
    write_compact_array_length(out, len(message.acquired_records))
    for acquired_records_ in message.acquired_records:
        _write_acquired_records(out, acquired_records_, version)
    out += b"\x00"


def _read_share_fetchable_topic_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ShareFetchableTopicResponse, int]:
    topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 20)
    partitions: list[PartitionData] = []
    for _ in range(count):
        partition_data, position = _read_partition_data(buffer, position, version)
        partitions.append(partition_data)
    position = skip_tags(buffer, position)
    return ShareFetchableTopicResponse(topic_id=topic_id, partitions=partitions), position


def _write_share_fetchable_topic_response(out: bytearray, message: ShareFetchableTopicResponse, version: int) -> None:
    out += message.topic_id.bytes
    write_compact_array_length(out, len(message.partitions))
    for partition_data in message.partitions:
        _write_partition_data(out, partition_data, version)
    out += b"\x00"


def _read_node_endpoint(buffer: memoryview, position: int, version: int) -> tuple[NodeEndpoint, int]:
    (node_id,) = _INT32.unpack_from(buffer, position)
    position += 4
    host, position = read_compact_string(buffer, position)
    (port,) = _INT32.unpack_from(buffer, position)
    position += 4
    rack, position = read_compact_nullable_string(buffer, position)
    position = skip_tags(buffer, position)
    return NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack), position


def _write_node_endpoint(out: bytearray, message: NodeEndpoint, version: int) -> None:
    out += _INT32.pack(message.node_id)
    write_compact_string(out, message.host)
    out += _INT32.pack(message.port)
    write_compact_nullable_string(out, message.rack)
    out += b"\x00"


def _read_share_fetch_response(buffer: memoryview, position: int, version: int) -> tuple[ShareFetchResponse, int]:
    throttle_time_ms, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = read_compact_nullable_string(buffer, position)
    (acquisition_lock_timeout_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = read_compact_array_length(buffer, position, 17)
    responses: list[ShareFetchableTopicResponse] = []
    for _ in range(count):
        share_fetchable_topic_response, position = _read_share_fetchable_topic_response(buffer, position, version)
        responses.append(share_fetchable_topic_response)
    count, position = read_compact_array_length(buffer, position, 10)
    node_endpoints: list[NodeEndpoint] = []
    for _ in range(count):
        node_endpoint, position = _read_node_endpoint(buffer, position, version)
        node_endpoints.append(node_endpoint)
    position = skip_tags(buffer, position)
    return ShareFetchResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        acquisition_lock_timeout_ms=acquisition_lock_timeout_ms,
        responses=responses,
        node_endpoints=node_endpoints,
    ), position


def _write_share_fetch_response(out: bytearray, message: ShareFetchResponse, version: int) -> None:
    out += _INT32_INT16.pack(message.throttle_time_ms, message.error_code)
    write_compact_nullable_string(out, message.error_message)
    out += _INT32.pack(message.acquisition_lock_timeout_ms)
    write_compact_array_length(out, len(message.responses))
    for share_fetchable_topic_response in message.responses:
        _write_share_fetchable_topic_response(out, share_fetchable_topic_response, version)
    write_compact_array_length(out, len(message.node_endpoints))
    for node_endpoint in message.node_endpoints:
        _write_node_endpoint(out, node_endpoint, version)
    out += b"\x00"


def read_share_fetch_response(buffer: memoryview, position: int, version: int) -> tuple[ShareFetchResponse, int]:
    """Read a ShareFetchResponse. Raises MalformedRequest."""
    try:
        return _read_share_fetch_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ShareFetchResponse") from error


def write_share_fetch_response(out: bytearray, message: ShareFetchResponse, version: int) -> None:
    """Append a ShareFetchResponse to `out`."""
    _write_share_fetch_response(out, message, version)
