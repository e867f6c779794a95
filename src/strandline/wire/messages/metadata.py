"""Messages of metadata. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from uuid import UUID

from strandline.model import ZERO_UUID
from strandline.wire.primitives import (
    DECODING_FAILURES,
    null_error,
    read_array_length,
    read_compact_array_length,
    read_compact_nullable_array_length,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_array_length,
    read_nullable_string,
    read_numbers,
    read_string,
    read_uuid,
    skip_tags,
    truncated,
    write_array_length,
    write_compact_array_length,
    write_compact_nullable_string,
    write_compact_numbers,
    write_compact_string,
    write_nullable_string,
    write_numbers,
    write_string,
)
from strandline.wire.structure import Structure

_BOOL = Struct(">?")
_INT16 = Struct(">h")
_INT16_INT32_INT32 = Struct(">hii")
_INT32 = Struct(">i")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class MetadataRequestTopic(Structure):
    """Versions 0 to 13."""

    topic_id: UUID = ZERO_UUID  # from version 10 on
    name: str | None = ""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class MetadataRequest(Structure):
    """Versions 0 to 13."""

    topics: list[MetadataRequestTopic] | None = field(default_factory=list)
    allow_auto_topic_creation: bool = True  # from version 4 on
    include_cluster_authorized_operations: bool = False  # versions 8 to 10
    include_topic_authorized_operations: bool = False  # from version 8 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class MetadataResponseBroker(Structure):
    """Versions 0 to 13."""

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None  # from version 1 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class MetadataResponsePartition(Structure):
    """Versions 0 to 13."""

    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1  # from version 7 on
    replica_nodes: list[int] = field(default_factory=list)
    isr_nodes: list[int] = field(default_factory=list)
    offline_replicas: list[int] = field(default_factory=list)  # from version 5 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class MetadataResponseTopic(Structure):
    """Versions 0 to 13."""

    error_code: int = 0
    name: str | None = ""
    topic_id: UUID = ZERO_UUID  # from version 10 on
    is_internal: bool = False  # from version 1 on
    partitions: list[MetadataResponsePartition] = field(default_factory=list)
    topic_authorized_operations: int = -2147483648  # from version 8 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class MetadataResponse(Structure):
    """Versions 0 to 13."""

    throttle_time_ms: int = 0  # from version 3 on
    brokers: list[MetadataResponseBroker] = field(default_factory=list)
    cluster_id: str | None = None  # from version 2 on
    controller_id: int = -1  # from version 1 on
    topics: list[MetadataResponseTopic] = field(default_factory=list)
    cluster_authorized_operations: int = -2147483648  # versions 8 to 10
    error_code: int = 0  # from version 13 on


def _read_metadata_request_topic(buffer: memoryview, position: int, version: int) -> tuple[MetadataRequestTopic, int]:
    flexible = version >= 9
    topic_id: UUID = ZERO_UUID
    if version >= 10:
        topic_id, position = read_uuid(buffer, position)
    name, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    if name is None and version < 10:
        raise null_error("name")
    if flexible:
        position = skip_tags(buffer, position)
    return MetadataRequestTopic(topic_id=topic_id, name=name), position


def _write_metadata_request_topic(out: bytearray, message: MetadataRequestTopic, version: int) -> None:
    flexible = version >= 9
    if version >= 10:
        out += message.topic_id.bytes
    if message.name is None and version < 10:
        raise null_error("name")
    if flexible:
        write_compact_nullable_string(out, message.name)
    else:
        write_nullable_string(out, message.name)
    if flexible:
        out += b"\x00"


def _read_metadata_request(buffer: memoryview, position: int, version: int) -> tuple[MetadataRequest, int]:
    flexible = version >= 9
    count, position = (
        read_compact_nullable_array_length(buffer, position, 1)
        if flexible
        else read_nullable_array_length(buffer, position, 1)
    )
    topics: list[MetadataRequestTopic] | None = None
    if count >= 0:
        topics = []
        for _ in range(count):
            metadata_request_topic, position = _read_metadata_request_topic(buffer, position, version)
            topics.append(metadata_request_topic)
    if topics is None and version < 1:
        raise null_error("topics")
    allow_auto_topic_creation: bool = True
    if version >= 4:
        (allow_auto_topic_creation,) = _BOOL.unpack_from(buffer, position)
        position += 1
    include_cluster_authorized_operations: bool = False
    if 8 <= version <= 10:
        (include_cluster_authorized_operations,) = _BOOL.unpack_from(buffer, position)
        position += 1
    include_topic_authorized_operations: bool = False
    if version >= 8:
        (include_topic_authorized_operations,) = _BOOL.unpack_from(buffer, position)
        position += 1
    if flexible:
        position = skip_tags(buffer, position)
    return MetadataRequest(
        topics=topics,
        allow_auto_topic_creation=allow_auto_topic_creation,
        include_cluster_authorized_operations=include_cluster_authorized_operations,
        include_topic_authorized_operations=include_topic_authorized_operations,
    ), position


def _write_metadata_request(out: bytearray, message: MetadataRequest, version: int) -> None:
    flexible = version >= 9
    if message.topics is None and version < 1:
        raise null_error("topics")
    if message.topics is None:
        if flexible:
            write_compact_array_length(out, -1)
        else:
            write_array_length(out, -1)
    else:
        if flexible:
            write_compact_array_length(out, len(message.topics))
        else:
            write_array_length(out, len(message.topics))
        for metadata_request_topic in message.topics:
            _write_metadata_request_topic(out, metadata_request_topic, version)
    if version >= 4:
        out += _BOOL.pack(message.allow_auto_topic_creation)
    if 8 <= version <= 10:
        out += _BOOL.pack(message.include_cluster_authorized_operations)
    if version >= 8:
        out += _BOOL.pack(message.include_topic_authorized_operations)
    if flexible:
        out += b"\x00"


def read_metadata_request(buffer: memoryview, position: int, version: int) -> tuple[MetadataRequest, int]:
    """Read a MetadataRequest. Raises MalformedRequest."""
    try:
        return _read_metadata_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("MetadataRequest") from error


def write_metadata_request(out: bytearray, message: MetadataRequest, version: int) -> None:
    """Append a MetadataRequest to `out`."""
    _write_metadata_request(out, message, version)


def _read_metadata_response_broker(
    buffer: memoryview, position: int, version: int
) -> tuple[MetadataResponseBroker, int]:
    flexible = version >= 9
    (node_id,) = _INT32.unpack_from(buffer, position)
    position += 4
    host, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    (port,) = _INT32.unpack_from(buffer, position)
    position += 4
    rack: str | None = None
    if version >= 1:
        rack, position = (
            read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
        )
    if flexible:
        position = skip_tags(buffer, position)
    return MetadataResponseBroker(node_id=node_id, host=host, port=port, rack=rack), position


def _write_metadata_response_broker(out: bytearray, message: MetadataResponseBroker, version: int) -> None:
    flexible = version >= 9
    out += _INT32.pack(message.node_id)
    if flexible:
        write_compact_string(out, message.host)
    else:
        write_string(out, message.host)
    out += _INT32.pack(message.port)
    if version >= 1:
        if flexible:
            write_compact_nullable_string(out, message.rack)
        else:
            write_nullable_string(out, message.rack)
    if flexible:
        out += b"\x00"


def _read_metadata_response_partition(
    buffer: memoryview, position: int, version: int
) -> tuple[MetadataResponsePartition, int]:
    flexible = version >= 9
    error_code, partition_index, leader_id = _INT16_INT32_INT32.unpack_from(buffer, position)
    position += 10
    leader_epoch: int = -1
    if version >= 7:
        (leader_epoch,) = _INT32.unpack_from(buffer, position)
        position += 4
    count, position = (
        read_compact_array_length(buffer, position, 4) if flexible else read_array_length(buffer, position, 4)
    )
    replica_nodes, position = read_numbers(buffer, position, count, "i")
    count, position = (
        read_compact_array_length(buffer, position, 4) if flexible else read_array_length(buffer, position, 4)
    )
    isr_nodes, position = read_numbers(buffer, position, count, "i")
    offline_replicas: list[int] = []
    if version >= 5:
        count, position = (
            read_compact_array_length(buffer, position, 4) if flexible else read_array_length(buffer, position, 4)
        )
        offline_replicas, position = read_numbers(buffer, position, count, "i")
    if flexible:
        position = skip_tags(buffer, position)
    return MetadataResponsePartition(
        error_code=error_code,
        partition_index=partition_index,
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        replica_nodes=replica_nodes,
        isr_nodes=isr_nodes,
        offline_replicas=offline_replicas,
    ), position


def _write_metadata_response_partition(out: bytearray, message: MetadataResponsePartition, version: int) -> None:
    flexible = version >= 9
    out += _INT16_INT32_INT32.pack(message.error_code, message.partition_index, message.leader_id)
    if version >= 7:
        out += _INT32.pack(message.leader_epoch)
    if flexible:
        write_compact_numbers(out, message.replica_nodes, "i")
    else:
        write_numbers(out, message.replica_nodes, "i")
    if flexible:
        write_compact_numbers(out, message.isr_nodes, "i")
    else:
        write_numbers(out, message.isr_nodes, "i")
    if version >= 5:
        if flexible:
            write_compact_numbers(out, message.offline_replicas, "i")
        else:
            write_numbers(out, message.offline_replicas, "i")
    if flexible:
        out += b"\x00"


def _read_metadata_response_topic(buffer: memoryview, position: int, version: int) -> tuple[MetadataResponseTopic, int]:
    flexible = version >= 9
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    name, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    if name is None and version < 12:
        raise null_error("name")
    topic_id: UUID = ZERO_UUID
    if version >= 10:
        topic_id, position = read_uuid(buffer, position)
    is_internal: bool = False
    if version >= 1:
        (is_internal,) = _BOOL.unpack_from(buffer, position)
        position += 1
    count, position = (
        read_compact_array_length(buffer, position, 12) if flexible else read_array_length(buffer, position, 12)
    )
    partitions: list[MetadataResponsePartition] = []
    for _ in range(count):
        metadata_response_partition, position = _read_metadata_response_partition(buffer, position, version)
        partitions.append(metadata_response_partition)
    topic_authorized_operations: int = -2147483648
    if version >= 8:
        (topic_authorized_operations,) = _INT32.unpack_from(buffer, position)
        position += 4
    if flexible:
        position = skip_tags(buffer, position)
    return MetadataResponseTopic(
        error_code=error_code,
        name=name,
        topic_id=topic_id,
        is_internal=is_internal,
        partitions=partitions,
        topic_authorized_operations=topic_authorized_operations,
    ), position


def _write_metadata_response_topic(out: bytearray, message: MetadataResponseTopic, version: int) -> None:
    flexible = version >= 9
    out += _INT16.pack(message.error_code)
    if message.name is None and version < 12:
        raise null_error("name")
    if flexible:
        write_compact_nullable_string(out, message.name)
    else:
        write_nullable_string(out, message.name)
    if version >= 10:
        out += message.topic_id.bytes
    if version >= 1:
        out += _BOOL.pack(message.is_internal)
    if flexible:
        write_compact_array_length(out, len(message.partitions))
    else:
        write_array_length(out, len(message.partitions))
    for metadata_response_partition in message.partitions:
        _write_metadata_response_partition(out, metadata_response_partition, version)
    if version >= 8:
        out += _INT32.pack(message.topic_authorized_operations)
    if flexible:
        out += b"\x00"


def _read_metadata_response(buffer: memoryview, position: int, version: int) -> tuple[MetadataResponse, int]:
    flexible = version >= 9
    throttle_time_ms: int = 0
    if version >= 3:
        (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
        position += 4
    count, position = (
        read_compact_array_length(buffer, position, 9) if flexible else read_array_length(buffer, position, 9)
    )
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count):
        metadata_response_broker, position = _read_metadata_response_broker(buffer, position, version)
        brokers.append(metadata_response_broker)
    cluster_id: str | None = None
    if version >= 2:
        cluster_id, position = (
            read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
        )
    controller_id: int = -1
    if version >= 1:
        (controller_id,) = _INT32.unpack_from(buffer, position)
        position += 4
    count, position = (
        read_compact_array_length(buffer, position, 4) if flexible else read_array_length(buffer, position, 4)
    )
    topics: list[MetadataResponseTopic] = []
    for _ in range(count):
        metadata_response_topic, position = _read_metadata_response_topic(buffer, position, version)
        topics.append(metadata_response_topic)
    cluster_authorized_operations: int = -2147483648
    if 8 <= version <= 10:
        (cluster_authorized_operations,) = _INT32.unpack_from(buffer, position)
        position += 4
    error_code: int = 0
    if version >= 13:
        (error_code,) = _INT16.unpack_from(buffer, position)
        position += 2
    if flexible:
        position = skip_tags(buffer, position)
    return MetadataResponse(
        throttle_time_ms=throttle_time_ms,
        brokers=brokers,
        cluster_id=cluster_id,
        controller_id=controller_id,
        topics=topics,
        cluster_authorized_operations=cluster_authorized_operations,
        error_code=error_code,
    ), position


def _write_metadata_response(out: bytearray, message: MetadataResponse, version: int) -> None:
    flexible = version >= 9
    if version >= 3:
        out += _INT32.pack(message.throttle_time_ms)
    if flexible:
        write_compact_array_length(out, len(message.brokers))
    else:
        write_array_length(out, len(message.brokers))
    for metadata_response_broker in message.brokers:
        _write_metadata_response_broker(out, metadata_response_broker, version)
    if version >= 2:
        if flexible:
            write_compact_nullable_string(out, message.cluster_id)
        else:
            write_nullable_string(out, message.cluster_id)
    if version >= 1:
        out += _INT32.pack(message.controller_id)
    if flexible:
        write_compact_array_length(out, len(message.topics))
    else:
        write_array_length(out, len(message.topics))
    for metadata_response_topic in message.topics:
        _write_metadata_response_topic(out, metadata_response_topic, version)
    if 8 <= version <= 10:
        out += _INT32.pack(message.cluster_authorized_operations)
    if version >= 13:
        out += _INT16.pack(message.error_code)
    if flexible:
        out += b"\x00"


def read_metadata_response(buffer: memoryview, position: int, version: int) -> tuple[MetadataResponse, int]:
    """Read a MetadataResponse. Raises MalformedRequest."""
    try:
        return _read_metadata_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("MetadataResponse") from error


def write_metadata_response(out: bytearray, message: MetadataResponse, version: int) -> None:
    """Append a MetadataResponse to `out`."""
    _write_metadata_response(out, message, version)
