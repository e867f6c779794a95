"""Messages of create topics. Written by tools/generate_messages.py: do not edit."""

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
    read_compact_nullable_array_length,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_array_length,
    read_nullable_string,
    read_numbers,
    read_string,
    read_tag,
    read_uuid,
    read_uvarint,
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
    write_tagged_field,
    write_uvarint,
)
from strandline.wire.structure import Structure

_BOOL_INT8_BOOL = Struct(">?b?")
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT32_BOOL = Struct(">i?")
_INT32_INT16 = Struct(">ih")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class CreatableReplicaAssignment(Structure):
    """Versions 2 to 7."""

    partition_index: int = 0
    broker_ids: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class CreatableTopicConfig(Structure):
    """Versions 2 to 7."""

    name: str = ""
    value: str | None = ""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class CreatableTopic(Structure):
    """Versions 2 to 7."""

    name: str = ""
    num_partitions: int = 0
    replication_factor: int = 0
    assignments: list[CreatableReplicaAssignment] = field(default_factory=list)
    configs: list[CreatableTopicConfig] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class CreateTopicsRequest(Structure):
    """Versions 2 to 7."""

    topics: list[CreatableTopic] = field(default_factory=list)
    timeout_ms: int = 60000
    validate_only: bool = False


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class CreatableTopicConfigs(Structure):
    """Versions 5 to 7."""

    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class CreatableTopicResult(Structure):
    """Versions 2 to 7."""

    name: str = ""
    topic_id: UUID = ZERO_UUID  # from version 7 on
    error_code: int = 0
    error_message: str | None = None
    topic_config_error_code: int = 0  # from version 5 on
    num_partitions: int = -1  # from version 5 on
    replication_factor: int = -1  # from version 5 on
    configs: list[CreatableTopicConfigs] | None = field(default_factory=list)  # from version 5 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class CreateTopicsResponse(Structure):
    """Versions 2 to 7."""

    throttle_time_ms: int = 0
    topics: list[CreatableTopicResult] = field(default_factory=list)


def _read_creatable_replica_assignment(
    buffer: memoryview, position: int, version: int
) -> tuple[CreatableReplicaAssignment, int]:
    flexible = version >= 5
    (partition_index,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = (
        read_compact_array_length(buffer, position, 4) if flexible else read_array_length(buffer, position, 4)
    )
    broker_ids, position = read_numbers(buffer, position, count, "i")
    if flexible:
        position = skip_tags(buffer, position)
    return CreatableReplicaAssignment(partition_index=partition_index, broker_ids=broker_ids), position


def _write_creatable_replica_assignment(out: bytearray, message: CreatableReplicaAssignment, version: int) -> None:
    flexible = version >= 5
    out += _INT32.pack(message.partition_index)
    if flexible:
        write_compact_numbers(out, message.broker_ids, "i")
    else:
        write_numbers(out, message.broker_ids, "i")
    if flexible:
        out += b"\x00"


def _read_creatable_topic_config(buffer: memoryview, position: int, version: int) -> tuple[CreatableTopicConfig, int]:
    flexible = version >= 5
    name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    value_, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    if flexible:
        position = skip_tags(buffer, position)
    return CreatableTopicConfig(name=name, value=value_), position


def _write_creatable_topic_config(out: bytearray, message: CreatableTopicConfig, version: int) -> None:
    flexible = version >= 5
    if flexible:
        write_compact_string(out, message.name)
    else:
        write_string(out, message.name)
    if flexible:
        write_compact_nullable_string(out, message.value)
    else:
        write_nullable_string(out, message.value)
    if flexible:
        out += b"\x00"


def _read_creatable_topic(buffer: memoryview, position: int, version: int) -> tuple[CreatableTopic, int]:
    flexible = version >= 5
    name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    num_partitions, replication_factor = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    count, position = (
        read_compact_array_length(buffer, position, 5) if flexible else read_array_length(buffer, position, 5)
    )
    assignments: list[CreatableReplicaAssignment] = []
    for _ in range(count):
        creatable_replica_assignment, position = _read_creatable_replica_assignment(buffer, position, version)
        assignments.append(creatable_replica_assignment)
    count, position = (
        read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
    )
    configs: list[CreatableTopicConfig] = []
    for _ in range(count):
        creatable_topic_config, position = _read_creatable_topic_config(buffer, position, version)
        configs.append(creatable_topic_config)
    if flexible:
        position = skip_tags(buffer, position)
    return CreatableTopic(
        name=name,
        num_partitions=num_partitions,
        replication_factor=replication_factor,
        assignments=assignments,
        configs=configs,
    ), position


def _write_creatable_topic(out: bytearray, message: CreatableTopic, version: int) -> None:
    flexible = version >= 5
    if flexible:
        write_compact_string(out, message.name)
    else:
        write_string(out, message.name)
    out += _INT32_INT16.pack(message.num_partitions, message.replication_factor)
    if flexible:
        write_compact_array_length(out, len(message.assignments))
    else:
        write_array_length(out, len(message.assignments))
    for creatable_replica_assignment in message.assignments:
        _write_creatable_replica_assignment(out, creatable_replica_assignment, version)
    if flexible:
        write_compact_array_length(out, len(message.configs))
    else:
        write_array_length(out, len(message.configs))
    for creatable_topic_config in message.configs:
        _write_creatable_topic_config(out, creatable_topic_config, version)
    if flexible:
        out += b"\x00"


def _read_create_topics_request(buffer: memoryview, position: int, version: int) -> tuple[CreateTopicsRequest, int]:
    flexible = version >= 5
    count, position = (
        read_compact_array_length(buffer, position, 9) if flexible else read_array_length(buffer, position, 9)
    )
    topics: list[CreatableTopic] = []
    for _ in range(count):
        creatable_topic, position = _read_creatable_topic(buffer, position, version)
        topics.append(creatable_topic)
    timeout_ms, validate_only = _INT32_BOOL.unpack_from(buffer, position)
    position += 5
    if flexible:
        position = skip_tags(buffer, position)
    return CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms, validate_only=validate_only), position


def _write_create_topics_request(out: bytearray, message: CreateTopicsRequest, version: int) -> None:
    flexible = version >= 5
    if flexible:
        write_compact_array_length(out, len(message.topics))
    else:
        write_array_length(out, len(message.topics))
    for creatable_topic in message.topics:
        _write_creatable_topic(out, creatable_topic, version)
    out += _INT32_BOOL.pack(message.timeout_ms, message.validate_only)
    if flexible:
        out += b"\x00"


def read_create_topics_request(buffer: memoryview, position: int, version: int) -> tuple[CreateTopicsRequest, int]:
    """Read a CreateTopicsRequest. Raises MalformedRequest."""
    try:
        return _read_create_topics_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("CreateTopicsRequest") from error


def write_create_topics_request(out: bytearray, message: CreateTopicsRequest, version: int) -> None:
    """Append a CreateTopicsRequest to `out`."""
    _write_create_topics_request(out, message, version)


def _read_creatable_topic_configs(buffer: memoryview, position: int, version: int) -> tuple[CreatableTopicConfigs, int]:
    name, position = read_compact_string(buffer, position)
    value_, position = read_compact_nullable_string(buffer, position)
    read_only, config_source, is_sensitive = _BOOL_INT8_BOOL.unpack_from(buffer, position)
    position += 3
    position = skip_tags(buffer, position)
    return CreatableTopicConfigs(
        name=name, value=value_, read_only=read_only, config_source=config_source, is_sensitive=is_sensitive
    ), position


def _write_creatable_topic_configs(out: bytearray, message: CreatableTopicConfigs, version: int) -> None:
    write_compact_string(out, message.name)
    write_compact_nullable_string(out, message.value)
    out += _BOOL_INT8_BOOL.pack(message.read_only, message.config_source, message.is_sensitive)
    out += b"\x00"


def _read_creatable_topic_result(buffer: memoryview, position: int, version: int) -> tuple[CreatableTopicResult, int]:
    flexible = version >= 5
    name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    topic_id: UUID = ZERO_UUID
    if version >= 7:
        topic_id, position = read_uuid(buffer, position)
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    error_message, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    num_partitions: int = -1
    replication_factor: int = -1
    configs: list[CreatableTopicConfigs] | None = []
    if version >= 5:
        num_partitions, replication_factor = _INT32_INT16.unpack_from(buffer, position)
        position += 6
        count, position = (
            read_compact_nullable_array_length(buffer, position, 5)
            if flexible
            else read_nullable_array_length(buffer, position, 5)
        )
        if count >= 0:
            configs = []
            for _ in range(count):
                creatable_topic_configs, position = _read_creatable_topic_configs(buffer, position, version)
                configs.append(creatable_topic_configs)
        else:
            configs = None
    topic_config_error_code: int = 0
    if flexible:
        count, position = read_uvarint(buffer, position)
        for _ in range(count):
            tag, position, end = read_tag(buffer, position)
            if tag == 0:
                (topic_config_error_code,) = _INT16.unpack_from(buffer, position)
                position += 2
            position = end
    return CreatableTopicResult(
        name=name,
        topic_id=topic_id,
        error_code=error_code,
        error_message=error_message,
        topic_config_error_code=topic_config_error_code,
        num_partitions=num_partitions,
        replication_factor=replication_factor,
        configs=configs,
    ), position


def _write_creatable_topic_result(out: bytearray, message: CreatableTopicResult, version: int) -> None:
    flexible = version >= 5
    if flexible:
        write_compact_string(out, message.name)
    else:
        write_string(out, message.name)
    if version >= 7:
        out += message.topic_id.bytes
    out += _INT16.pack(message.error_code)
    if flexible:
        write_compact_nullable_string(out, message.error_message)
    else:
        write_nullable_string(out, message.error_message)
    if version >= 5:
        out += _INT32_INT16.pack(message.num_partitions, message.replication_factor)
        if message.configs is None:
            if flexible:
                write_compact_array_length(out, -1)
            else:
                write_array_length(out, -1)
        else:
            if flexible:
                write_compact_array_length(out, len(message.configs))
            else:
                write_array_length(out, len(message.configs))
            for creatable_topic_configs in message.configs:
                _write_creatable_topic_configs(out, creatable_topic_configs, version)
    if flexible:
        tagged = bytearray()
        count = 0
        if message.topic_config_error_code != 0:
            value = bytearray()
            value += _INT16.pack(message.topic_config_error_code)
            write_tagged_field(tagged, 0, value)
            count += 1
        write_uvarint(out, count)
        out += tagged


def _read_create_topics_response(buffer: memoryview, position: int, version: int) -> tuple[CreateTopicsResponse, int]:
    flexible = version >= 5
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = (
        read_compact_array_length(buffer, position, 4) if flexible else read_array_length(buffer, position, 4)
    )
    topics: list[CreatableTopicResult] = []
    for _ in range(count):
        creatable_topic_result, position = _read_creatable_topic_result(buffer, position, version)
        topics.append(creatable_topic_result)
    if flexible:
        position = skip_tags(buffer, position)
    return CreateTopicsResponse(throttle_time_ms=throttle_time_ms, topics=topics), position


def _write_create_topics_response(out: bytearray, message: CreateTopicsResponse, version: int) -> None:
    flexible = version >= 5
    out += _INT32.pack(message.throttle_time_ms)
    if flexible:
        write_compact_array_length(out, len(message.topics))
    else:
        write_array_length(out, len(message.topics))
    for creatable_topic_result in message.topics:
        _write_creatable_topic_result(out, creatable_topic_result, version)
    if flexible:
        out += b"\x00"


def read_create_topics_response(buffer: memoryview, position: int, version: int) -> tuple[CreateTopicsResponse, int]:
    """Read a CreateTopicsResponse. Raises MalformedRequest."""
    try:
        return _read_create_topics_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("CreateTopicsResponse") from error


def write_create_topics_response(out: bytearray, message: CreateTopicsResponse, version: int) -> None:
    """Append a CreateTopicsResponse to `out`."""
    _write_create_topics_response(out, message, version)
