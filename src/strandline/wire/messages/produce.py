"""Messages of produce. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from uuid import UUID

from strandline.model import ZERO_UUID
from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_array_length,
    read_compact_array_length,
    read_compact_nullable_bytes,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_bytes,
    read_nullable_string,
    read_string,
    read_tag,
    read_uuid,
    read_uvarint,
    skip_tags,
    truncated,
    write_array_length,
    write_compact_array_length,
    write_compact_nullable_bytes,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_bytes,
    write_nullable_string,
    write_string,
    write_tagged_field,
    write_uvarint,
)
from strandline.wire.structure import Structure

_INT16_INT32 = Struct(">hi")
_INT32 = Struct(">i")
_INT32_INT16_INT64_INT64 = Struct(">ihqq")
_INT32_INT32 = Struct(">ii")
_INT64 = Struct(">q")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class PartitionProduceData(Structure):
    """Versions 3 to 13."""

    index: int = 0
    records: bytes | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TopicProduceData(Structure):
    """Versions 3 to 13."""

    name: str = ""  # up to version 12
    topic_id: UUID = ZERO_UUID  # from version 13 on
    partition_data: list[PartitionProduceData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ProduceRequest(Structure):
    """Versions 3 to 13."""

    transactional_id: str | None = None
    acks: int = 0
    timeout_ms: int = 0
    topic_data: list[TopicProduceData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class BatchIndexAndErrorMessage(Structure):
    """Versions 8 to 13."""

    batch_index: int = 0
    batch_index_error_message: str | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class LeaderIdAndEpoch(Structure):
    """Versions 10 to 13."""

    leader_id: int = -1
    leader_epoch: int = -1


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class PartitionProduceResponse(Structure):
    """Versions 3 to 13."""

    index: int = 0
    error_code: int = 0
    base_offset: int = 0
    log_append_time_ms: int = -1
    log_start_offset: int = -1  # from version 5 on
    record_errors: list[BatchIndexAndErrorMessage] = field(default_factory=list)  # from version 8 on
    error_message: str | None = None  # from version 8 on
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)  # from version 10 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TopicProduceResponse(Structure):
    """Versions 3 to 13."""

    name: str = ""  # up to version 12
    topic_id: UUID = ZERO_UUID  # from version 13 on
    partition_responses: list[PartitionProduceResponse] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class NodeEndpoint(Structure):
    """Versions 10 to 13."""

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ProduceResponse(Structure):
    """Versions 3 to 13."""

    responses: list[TopicProduceResponse] = field(default_factory=list)
    throttle_time_ms: int = 0
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)  # from version 10 on


def _read_partition_produce_data(buffer: memoryview, position: int, version: int) -> tuple[PartitionProduceData, int]:
    flexible = version >= 9
    (index,) = _INT32.unpack_from(buffer, position)
    position += 4
    records, position = (
        read_compact_nullable_bytes(buffer, position) if flexible else read_nullable_bytes(buffer, position)
    )
    if flexible:
        position = skip_tags(buffer, position)
    return PartitionProduceData(index=index, records=records), position


def _write_partition_produce_data(out: bytearray, message: PartitionProduceData, version: int) -> None:
    flexible = version >= 9
    out += _INT32.pack(message.index)
    if flexible:
        write_compact_nullable_bytes(out, message.records)
    else:
        write_nullable_bytes(out, message.records)
    if flexible:
        out += b"\x00"


def _read_topic_produce_data(buffer: memoryview, position: int, version: int) -> tuple[TopicProduceData, int]:
    flexible = version >= 9
    name: str = ""
    if version <= 12:
        name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    topic_id: UUID = ZERO_UUID
    if version >= 13:
        topic_id, position = read_uuid(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 5) if flexible else read_array_length(buffer, position, 5)
    )
    partition_data: list[PartitionProduceData] = []
    for _ in range(count):
        partition_produce_data, position = _read_partition_produce_data(buffer, position, version)
        partition_data.append(partition_produce_data)
    if flexible:
        position = skip_tags(buffer, position)
    return TopicProduceData(name=name, topic_id=topic_id, partition_data=partition_data), position


def _write_topic_produce_data(out: bytearray, message: TopicProduceData, version: int) -> None:
    flexible = version >= 9
    if version <= 12:
        if flexible:
            write_compact_string(out, message.name)
        else:
            write_string(out, message.name)
    if version >= 13:
        out += message.topic_id.bytes
    if flexible:
        write_compact_array_length(out, len(message.partition_data))
    else:
        write_array_length(out, len(message.partition_data))
    for partition_produce_data in message.partition_data:
        _write_partition_produce_data(out, partition_produce_data, version)
    if flexible:
        out += b"\x00"


def _read_produce_request(buffer: memoryview, position: int, version: int) -> tuple[ProduceRequest, int]:
    flexible = version >= 9
    transactional_id, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    acks, timeout_ms = _INT16_INT32.unpack_from(buffer, position)
    position += 6
    count, position = (
        read_compact_array_length(buffer, position, 1) if flexible else read_array_length(buffer, position, 1)
    )
    topic_data: list[TopicProduceData] = []
    for _ in range(count):
        topic_produce_data, position = _read_topic_produce_data(buffer, position, version)
        topic_data.append(topic_produce_data)
    if flexible:
        position = skip_tags(buffer, position)
    return ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=timeout_ms, topic_data=topic_data
    ), position


def _write_produce_request(out: bytearray, message: ProduceRequest, version: int) -> None:
    flexible = version >= 9
    if flexible:
        write_compact_nullable_string(out, message.transactional_id)
    else:
        write_nullable_string(out, message.transactional_id)
    out += _INT16_INT32.pack(message.acks, message.timeout_ms)
    if flexible:
        write_compact_array_length(out, len(message.topic_data))
    else:
        write_array_length(out, len(message.topic_data))
    for topic_produce_data in message.topic_data:
        _write_topic_produce_data(out, topic_produce_data, version)
    if flexible:
        out += b"\x00"


def read_produce_request(buffer: memoryview, position: int, version: int) -> tuple[ProduceRequest, int]:
    """Read a ProduceRequest. Raises MalformedRequest."""
    try:
        return _read_produce_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ProduceRequest") from error


def write_produce_request(out: bytearray, message: ProduceRequest, version: int) -> None:
    """Append a ProduceRequest to `out`."""
    _write_produce_request(out, message, version)


def _read_batch_index_and_error_message(
    buffer: memoryview, position: int, version: int
) -> tuple[BatchIndexAndErrorMessage, int]:
    flexible = version >= 9
    (batch_index,) = _INT32.unpack_from(buffer, position)
    position += 4
    batch_index_error_message, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    if flexible:
        position = skip_tags(buffer, position)
    return BatchIndexAndErrorMessage(
        batch_index=batch_index, batch_index_error_message=batch_index_error_message
    ), position


def _write_batch_index_and_error_message(out: bytearray, message: BatchIndexAndErrorMessage, version: int) -> None:
    flexible = version >= 9
    out += _INT32.pack(message.batch_index)
    if flexible:
        write_compact_nullable_string(out, message.batch_index_error_message)
    else:
        write_nullable_string(out, message.batch_index_error_message)
    if flexible:
        out += b"\x00"


def _read_leader_id_and_epoch(buffer: memoryview, position: int, version: int) -> tuple[LeaderIdAndEpoch, int]:
    leader_id, leader_epoch = _INT32_INT32.unpack_from(buffer, position)
    position += 8
    position = skip_tags(buffer, position)
    return LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch), position


def _write_leader_id_and_epoch(out: bytearray, message: LeaderIdAndEpoch, version: int) -> None:
    out += _INT32_INT32.pack(message.leader_id, message.leader_epoch)
    out += b"\x00"


def _read_partition_produce_response(
    buffer: memoryview, position: int, version: int
) -> tuple[PartitionProduceResponse, int]:
    flexible = version >= 9
    index, error_code, base_offset, log_append_time_ms = _INT32_INT16_INT64_INT64.unpack_from(buffer, position)
    position += 22
    log_start_offset: int = -1
    if version >= 5:
        (log_start_offset,) = _INT64.unpack_from(buffer, position)
        position += 8
    record_errors: list[BatchIndexAndErrorMessage] = []
    error_message: str | None = None
    if version >= 8:
        count, position = (
            read_compact_array_length(buffer, position, 5) if flexible else read_array_length(buffer, position, 5)
        )
        record_errors = []
        for _ in range(count):
            batch_index_and_error_message, position = _read_batch_index_and_error_message(buffer, position, version)
            record_errors.append(batch_index_and_error_message)
        error_message, position = (
            read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
        )
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    if flexible:
        count, position = read_uvarint(buffer, position)
        for _ in range(count):
            tag, position, end = read_tag(buffer, position)
            if tag == 0 and version >= 10:
                current_leader, position = _read_leader_id_and_epoch(buffer, position, version)
            position = end
    return PartitionProduceResponse(
        index=index,
        error_code=error_code,
        base_offset=base_offset,
        log_append_time_ms=log_append_time_ms,
        log_start_offset=log_start_offset,
        record_errors=record_errors,
        error_message=error_message,
        current_leader=current_leader,
    ), position


def _write_partition_produce_response(out: bytearray, message: PartitionProduceResponse, version: int) -> None:
    flexible = version >= 9
    out += _INT32_INT16_INT64_INT64.pack(
        message.index, message.error_code, message.base_offset, message.log_append_time_ms
    )
    if version >= 5:
        out += _INT64.pack(message.log_start_offset)
    if version >= 8:
        if flexible:
            write_compact_array_length(out, len(message.record_errors))
        else:
            write_array_length(out, len(message.record_errors))
        for batch_index_and_error_message in message.record_errors:
            _write_batch_index_and_error_message(out, batch_index_and_error_message, version)
        if flexible:
            write_compact_nullable_string(out, message.error_message)
        else:
            write_nullable_string(out, message.error_message)
    if flexible:
        tagged = bytearray()
        count = 0
        if version >= 10 and message.current_leader != LeaderIdAndEpoch():
            value = bytearray()
            _write_leader_id_and_epoch(value, message.current_leader, version)
            write_tagged_field(tagged, 0, value)
            count += 1
        write_uvarint(out, count)
        out += tagged


def _read_topic_produce_response(buffer: memoryview, position: int, version: int) -> tuple[TopicProduceResponse, int]:
    flexible = version >= 9
    name: str = ""
    if version <= 12:
        name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    topic_id: UUID = ZERO_UUID
    if version >= 13:
        topic_id, position = read_uuid(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 22) if flexible else read_array_length(buffer, position, 22)
    )
    partition_responses: list[PartitionProduceResponse] = []
    for _ in range(count):
        partition_produce_response, position = _read_partition_produce_response(buffer, position, version)
        partition_responses.append(partition_produce_response)
    if flexible:
        position = skip_tags(buffer, position)
    return TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=partition_responses), position


def _write_topic_produce_response(out: bytearray, message: TopicProduceResponse, version: int) -> None:
    flexible = version >= 9
    if version <= 12:
        if flexible:
            write_compact_string(out, message.name)
        else:
            write_string(out, message.name)
    if version >= 13:
        out += message.topic_id.bytes
    if flexible:
        write_compact_array_length(out, len(message.partition_responses))
    else:
        write_array_length(out, len(message.partition_responses))
    for partition_produce_response in message.partition_responses:
        _write_partition_produce_response(out, partition_produce_response, version)
    if flexible:
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


def _read_produce_response(buffer: memoryview, position: int, version: int) -> tuple[ProduceResponse, int]:
    flexible = version >= 9
    count, position = (
        read_compact_array_length(buffer, position, 1) if flexible else read_array_length(buffer, position, 1)
    )
    responses: list[TopicProduceResponse] = []
    for _ in range(count):
        topic_produce_response, position = _read_topic_produce_response(buffer, position, version)
        responses.append(topic_produce_response)
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    node_endpoints: list[NodeEndpoint] = []
    if flexible:
        count, position = read_uvarint(buffer, position)
        for _ in range(count):
            tag, position, end = read_tag(buffer, position)
            if tag == 0 and version >= 10:
                count, position = (
                    read_compact_array_length(buffer, position, 10)
                    if flexible
                    else read_array_length(buffer, position, 10)
                )
                node_endpoints = []
                for _ in range(count):
                    node_endpoint, position = _read_node_endpoint(buffer, position, version)
                    node_endpoints.append(node_endpoint)
            position = end
    return ProduceResponse(
        responses=responses, throttle_time_ms=throttle_time_ms, node_endpoints=node_endpoints
    ), position


def _write_produce_response(out: bytearray, message: ProduceResponse, version: int) -> None:
    flexible = version >= 9
    if flexible:
        write_compact_array_length(out, len(message.responses))
    else:
        write_array_length(out, len(message.responses))
    for topic_produce_response in message.responses:
        _write_topic_produce_response(out, topic_produce_response, version)
    out += _INT32.pack(message.throttle_time_ms)
    if flexible:
        tagged = bytearray()
        count = 0
        if version >= 10 and message.node_endpoints:
            value = bytearray()
            if flexible:
                write_compact_array_length(value, len(message.node_endpoints))
            else:
                write_array_length(value, len(message.node_endpoints))
            for node_endpoint in message.node_endpoints:
                _write_node_endpoint(value, node_endpoint, version)
            write_tagged_field(tagged, 0, value)
            count += 1
        write_uvarint(out, count)
        out += tagged


def read_produce_response(buffer: memoryview, position: int, version: int) -> tuple[ProduceResponse, int]:
    """Read a ProduceResponse. Raises MalformedRequest."""
    try:
        return _read_produce_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ProduceResponse") from error


def write_produce_response(out: bytearray, message: ProduceResponse, version: int) -> None:
    """Append a ProduceResponse to `out`."""
    _write_produce_response(out, message, version)
