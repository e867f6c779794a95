"""Messages of offset fetch. Written by tools/generate_messages.py: do not edit."""

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
_INT32 = Struct(">i")
_INT32_INT64 = Struct(">iq")
_INT32_INT64_INT32 = Struct(">iqi")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetFetchRequestTopic(Structure):
    """Versions 1 to 7."""

    name: str = ""
    partition_indexes: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetFetchRequestTopics(Structure):
    """Versions 8 to 10."""

    name: str = ""  # up to version 9
    topic_id: UUID = ZERO_UUID  # from version 10 on
    partition_indexes: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetFetchRequestGroup(Structure):
    """Versions 8 to 10."""

    group_id: str = ""
    member_id: str | None = None  # from version 9 on
    member_epoch: int = -1  # from version 9 on
    topics: list[OffsetFetchRequestTopics] | None = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetFetchRequest(Structure):
    """Versions 1 to 10."""

    group_id: str = ""  # up to version 7
    topics: list[OffsetFetchRequestTopic] | None = field(default_factory=list)  # up to version 7
    groups: list[OffsetFetchRequestGroup] = field(default_factory=list)  # from version 8 on
    require_stable: bool = False  # from version 7 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetFetchResponsePartition(Structure):
    """Versions 1 to 7."""

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1  # from version 5 on
    metadata: str | None = ""
    error_code: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetFetchResponseTopic(Structure):
    """Versions 1 to 7."""

    name: str = ""
    partitions: list[OffsetFetchResponsePartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetFetchResponsePartitions(Structure):
    """Versions 8 to 10."""

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetFetchResponseTopics(Structure):
    """Versions 8 to 10."""

    name: str = ""  # up to version 9
    topic_id: UUID = ZERO_UUID  # from version 10 on
    partitions: list[OffsetFetchResponsePartitions] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetFetchResponseGroup(Structure):
    """Versions 8 to 10."""

    group_id: str = ""
    topics: list[OffsetFetchResponseTopics] = field(default_factory=list)
    error_code: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class OffsetFetchResponse(Structure):
    """Versions 1 to 10."""

    throttle_time_ms: int = 0  # from version 3 on
    topics: list[OffsetFetchResponseTopic] = field(default_factory=list)  # up to version 7
    error_code: int = 0  # versions 2 to 7
    groups: list[OffsetFetchResponseGroup] = field(default_factory=list)  # from version 8 on


def _read_offset_fetch_request_topic(
    buffer: memoryview, position: int, version: int
) -> tuple[OffsetFetchRequestTopic, int]:
    flexible = version >= 6
    name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 4) if flexible else read_array_length(buffer, position, 4)
    )
    partition_indexes, position = read_numbers(buffer, position, count, "i")
    if flexible:
        position = skip_tags(buffer, position)
    return OffsetFetchRequestTopic(name=name, partition_indexes=partition_indexes), position


def _write_offset_fetch_request_topic(out: bytearray, message: OffsetFetchRequestTopic, version: int) -> None:
    flexible = version >= 6
    if flexible:
        write_compact_string(out, message.name)
    else:
        write_string(out, message.name)
    if flexible:
        write_compact_numbers(out, message.partition_indexes, "i")
    else:
        write_numbers(out, message.partition_indexes, "i")
    if flexible:
        out += b"\x00"


def _read_offset_fetch_request_topics(
    buffer: memoryview, position: int, version: int
) -> tuple[OffsetFetchRequestTopics, int]:
    name: str = ""
    if version <= 9:
        name, position = read_compact_string(buffer, position)
    topic_id: UUID = ZERO_UUID
    if version >= 10:
        topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 4)
    partition_indexes, position = read_numbers(buffer, position, count, "i")
    position = skip_tags(buffer, position)
    return OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=partition_indexes), position


def _write_offset_fetch_request_topics(out: bytearray, message: OffsetFetchRequestTopics, version: int) -> None:
    if version <= 9:
        write_compact_string(out, message.name)
    if version >= 10:
        out += message.topic_id.bytes
    write_compact_numbers(out, message.partition_indexes, "i")
    out += b"\x00"


def _read_offset_fetch_request_group(
    buffer: memoryview, position: int, version: int
) -> tuple[OffsetFetchRequestGroup, int]:
    group_id, position = read_compact_string(buffer, position)
    member_id: str | None = None
    member_epoch: int = -1
    if version >= 9:
        member_id, position = read_compact_nullable_string(buffer, position)
        (member_epoch,) = _INT32.unpack_from(buffer, position)
        position += 4
    count, position = read_compact_nullable_array_length(buffer, position, 1)
    topics: list[OffsetFetchRequestTopics] | None = None
    if count >= 0:
        topics = []
        for _ in range(count):
            offset_fetch_request_topics, position = _read_offset_fetch_request_topics(buffer, position, version)
            topics.append(offset_fetch_request_topics)
    position = skip_tags(buffer, position)
    return OffsetFetchRequestGroup(
        group_id=group_id, member_id=member_id, member_epoch=member_epoch, topics=topics
    ), position


def _write_offset_fetch_request_group(out: bytearray, message: OffsetFetchRequestGroup, version: int) -> None:
    write_compact_string(out, message.group_id)
    if version >= 9:
        write_compact_nullable_string(out, message.member_id)
        out += _INT32.pack(message.member_epoch)
    if message.topics is None:
        write_compact_array_length(out, -1)
    else:
        write_compact_array_length(out, len(message.topics))
        for offset_fetch_request_topics in message.topics:
            _write_offset_fetch_request_topics(out, offset_fetch_request_topics, version)
    out += b"\x00"


def _read_offset_fetch_request(buffer: memoryview, position: int, version: int) -> tuple[OffsetFetchRequest, int]:
    flexible = version >= 6
    group_id: str = ""
    topics: list[OffsetFetchRequestTopic] | None = []
    if version <= 7:
        group_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
        count, position = (
            read_compact_nullable_array_length(buffer, position, 2)
            if flexible
            else read_nullable_array_length(buffer, position, 2)
        )
        if count >= 0:
            topics = []
            for _ in range(count):
                offset_fetch_request_topic, position = _read_offset_fetch_request_topic(buffer, position, version)
                topics.append(offset_fetch_request_topic)
        else:
            topics = None
        if topics is None and version < 2:
            raise null_error("topics")
    groups: list[OffsetFetchRequestGroup] = []
    if version >= 8:
        count, position = (
            read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
        )
        groups = []
        for _ in range(count):
            offset_fetch_request_group, position = _read_offset_fetch_request_group(buffer, position, version)
            groups.append(offset_fetch_request_group)
    require_stable: bool = False
    if version >= 7:
        (require_stable,) = _BOOL.unpack_from(buffer, position)
        position += 1
    if flexible:
        position = skip_tags(buffer, position)
    return OffsetFetchRequest(group_id=group_id, topics=topics, groups=groups, require_stable=require_stable), position


def _write_offset_fetch_request(out: bytearray, message: OffsetFetchRequest, version: int) -> None:
    flexible = version >= 6
    if version <= 7:
        if flexible:
            write_compact_string(out, message.group_id)
        else:
            write_string(out, message.group_id)
        if message.topics is None and version < 2:
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
            for offset_fetch_request_topic in message.topics:
                _write_offset_fetch_request_topic(out, offset_fetch_request_topic, version)
    if version >= 8:
        if flexible:
            write_compact_array_length(out, len(message.groups))
        else:
            write_array_length(out, len(message.groups))
        for offset_fetch_request_group in message.groups:
            _write_offset_fetch_request_group(out, offset_fetch_request_group, version)
    if version >= 7:
        out += _BOOL.pack(message.require_stable)
    if flexible:
        out += b"\x00"


def read_offset_fetch_request(buffer: memoryview, position: int, version: int) -> tuple[OffsetFetchRequest, int]:
    """Read a OffsetFetchRequest. Raises MalformedRequest."""
    try:
        return _read_offset_fetch_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("OffsetFetchRequest") from error


def write_offset_fetch_request(out: bytearray, message: OffsetFetchRequest, version: int) -> None:
    """Append a OffsetFetchRequest to `out`."""
    _write_offset_fetch_request(out, message, version)


def _read_offset_fetch_response_partition(
    buffer: memoryview, position: int, version: int
) -> tuple[OffsetFetchResponsePartition, int]:
    flexible = version >= 6
    partition_index, committed_offset = _INT32_INT64.unpack_from(buffer, position)
    position += 12
    committed_leader_epoch: int = -1
    if version >= 5:
        (committed_leader_epoch,) = _INT32.unpack_from(buffer, position)
        position += 4
    metadata, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    if flexible:
        position = skip_tags(buffer, position)
    return OffsetFetchResponsePartition(
        partition_index=partition_index,
        committed_offset=committed_offset,
        committed_leader_epoch=committed_leader_epoch,
        metadata=metadata,
        error_code=error_code,
    ), position


def _write_offset_fetch_response_partition(out: bytearray, message: OffsetFetchResponsePartition, version: int) -> None:
    flexible = version >= 6
    out += _INT32_INT64.pack(message.partition_index, message.committed_offset)
    if version >= 5:
        out += _INT32.pack(message.committed_leader_epoch)
    if flexible:
        write_compact_nullable_string(out, message.metadata)
    else:
        write_nullable_string(out, message.metadata)
    out += _INT16.pack(message.error_code)
    if flexible:
        out += b"\x00"


def _read_offset_fetch_response_topic(
    buffer: memoryview, position: int, version: int
) -> tuple[OffsetFetchResponseTopic, int]:
    flexible = version >= 6
    name, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 15) if flexible else read_array_length(buffer, position, 15)
    )
    partitions: list[OffsetFetchResponsePartition] = []
    for _ in range(count):
        offset_fetch_response_partition, position = _read_offset_fetch_response_partition(buffer, position, version)
        partitions.append(offset_fetch_response_partition)
    if flexible:
        position = skip_tags(buffer, position)
    return OffsetFetchResponseTopic(name=name, partitions=partitions), position


def _write_offset_fetch_response_topic(out: bytearray, message: OffsetFetchResponseTopic, version: int) -> None:
    flexible = version >= 6
    if flexible:
        write_compact_string(out, message.name)
    else:
        write_string(out, message.name)
    if flexible:
        write_compact_array_length(out, len(message.partitions))
    else:
        write_array_length(out, len(message.partitions))
    for offset_fetch_response_partition in message.partitions:
        _write_offset_fetch_response_partition(out, offset_fetch_response_partition, version)
    if flexible:
        out += b"\x00"


def _read_offset_fetch_response_partitions(
    buffer: memoryview, position: int, version: int
) -> tuple[OffsetFetchResponsePartitions, int]:
    partition_index, committed_offset, committed_leader_epoch = _INT32_INT64_INT32.unpack_from(buffer, position)
    position += 16
    metadata, position = read_compact_nullable_string(buffer, position)
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    position = skip_tags(buffer, position)
    return OffsetFetchResponsePartitions(
        partition_index=partition_index,
        committed_offset=committed_offset,
        committed_leader_epoch=committed_leader_epoch,
        metadata=metadata,
        error_code=error_code,
    ), position


def _write_offset_fetch_response_partitions(
    out: bytearray, message: OffsetFetchResponsePartitions, version: int
) -> None:
    out += _INT32_INT64_INT32.pack(message.partition_index, message.committed_offset, message.committed_leader_epoch)
    write_compact_nullable_string(out, message.metadata)
    out += _INT16.pack(message.error_code)
    out += b"\x00"


def _read_offset_fetch_response_topics(
    buffer: memoryview, position: int, version: int
) -> tuple[OffsetFetchResponseTopics, int]:
    name: str = ""
    if version <= 9:
        name, position = read_compact_string(buffer, position)
    topic_id: UUID = ZERO_UUID
    if version >= 10:
        topic_id, position = read_uuid(buffer, position)
    count, position = read_compact_array_length(buffer, position, 19)
    partitions: list[OffsetFetchResponsePartitions] = []
    for _ in range(count):
        offset_fetch_response_partitions, position = _read_offset_fetch_response_partitions(buffer, position, version)
        partitions.append(offset_fetch_response_partitions)
    position = skip_tags(buffer, position)
    return OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=partitions), position


def _write_offset_fetch_response_topics(out: bytearray, message: OffsetFetchResponseTopics, version: int) -> None:
    if version <= 9:
        write_compact_string(out, message.name)
    if version >= 10:
        out += message.topic_id.bytes
    write_compact_array_length(out, len(message.partitions))
    for offset_fetch_response_partitions in message.partitions:
        _write_offset_fetch_response_partitions(out, offset_fetch_response_partitions, version)
    out += b"\x00"


def _read_offset_fetch_response_group(
    buffer: memoryview, position: int, version: int
) -> tuple[OffsetFetchResponseGroup, int]:
    group_id, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 1)
    topics: list[OffsetFetchResponseTopics] = []
    for _ in range(count):
        offset_fetch_response_topics, position = _read_offset_fetch_response_topics(buffer, position, version)
        topics.append(offset_fetch_response_topics)
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    position = skip_tags(buffer, position)
    return OffsetFetchResponseGroup(group_id=group_id, topics=topics, error_code=error_code), position


def _write_offset_fetch_response_group(out: bytearray, message: OffsetFetchResponseGroup, version: int) -> None:
    write_compact_string(out, message.group_id)
    write_compact_array_length(out, len(message.topics))
    for offset_fetch_response_topics in message.topics:
        _write_offset_fetch_response_topics(out, offset_fetch_response_topics, version)
    out += _INT16.pack(message.error_code)
    out += b"\x00"


def _read_offset_fetch_response(buffer: memoryview, position: int, version: int) -> tuple[OffsetFetchResponse, int]:
    flexible = version >= 6
    throttle_time_ms: int = 0
    if version >= 3:
        (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
        position += 4
    topics: list[OffsetFetchResponseTopic] = []
    if version <= 7:
        count, position = (
            read_compact_array_length(buffer, position, 2) if flexible else read_array_length(buffer, position, 2)
        )
        topics = []
        for _ in range(count):
            offset_fetch_response_topic, position = _read_offset_fetch_response_topic(buffer, position, version)
            topics.append(offset_fetch_response_topic)
    error_code: int = 0
    if 2 <= version <= 7:
        (error_code,) = _INT16.unpack_from(buffer, position)
        position += 2
    groups: list[OffsetFetchResponseGroup] = []
    if version >= 8:
        count, position = (
            read_compact_array_length(buffer, position, 4) if flexible else read_array_length(buffer, position, 4)
        )
        groups = []
        for _ in range(count):
            offset_fetch_response_group, position = _read_offset_fetch_response_group(buffer, position, version)
            groups.append(offset_fetch_response_group)
    if flexible:
        position = skip_tags(buffer, position)
    return OffsetFetchResponse(
        throttle_time_ms=throttle_time_ms, topics=topics, error_code=error_code, groups=groups
    ), position


def _write_offset_fetch_response(out: bytearray, message: OffsetFetchResponse, version: int) -> None:
    flexible = version >= 6
    if version >= 3:
        out += _INT32.pack(message.throttle_time_ms)
    if version <= 7:
        if flexible:
            write_compact_array_length(out, len(message.topics))
        else:
            write_array_length(out, len(message.topics))
        for offset_fetch_response_topic in message.topics:
            _write_offset_fetch_response_topic(out, offset_fetch_response_topic, version)
    if 2 <= version <= 7:
        out += _INT16.pack(message.error_code)
    if version >= 8:
        if flexible:
            write_compact_array_length(out, len(message.groups))
        else:
            write_array_length(out, len(message.groups))
        for offset_fetch_response_group in message.groups:
            _write_offset_fetch_response_group(out, offset_fetch_response_group, version)
    if flexible:
        out += b"\x00"


def read_offset_fetch_response(buffer: memoryview, position: int, version: int) -> tuple[OffsetFetchResponse, int]:
    """Read a OffsetFetchResponse. Raises MalformedRequest."""
    try:
        return _read_offset_fetch_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("OffsetFetchResponse") from error


def write_offset_fetch_response(out: bytearray, message: OffsetFetchResponse, version: int) -> None:
    """Append a OffsetFetchResponse to `out`."""
    _write_offset_fetch_response(out, message, version)
