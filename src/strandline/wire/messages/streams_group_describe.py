"""Messages of streams group describe. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_array_length,
    read_compact_nullable_array_length,
    read_compact_nullable_string,
    read_compact_string,
    read_numbers,
    skip_tags,
    truncated,
    write_compact_array_length,
    write_compact_nullable_string,
    write_compact_numbers,
    write_compact_string,
)
from strandline.wire.structure import Structure

_BOOL = Struct(">?")
_UINT16 = Struct(">H")
_INT8 = Struct(">b")
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT32_INT16 = Struct(">ih")
_INT32_INT32 = Struct(">ii")
_INT32_INT64 = Struct(">iq")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class StreamsGroupDescribeRequest(Structure):
    """Versions 0 to 0."""

    group_ids: list[str] = field(default_factory=list)
    include_authorized_operations: bool = False


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class KeyValue(Structure):
    """Versions 0 to 0."""

    key: str = ""
    value: str = ""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TopicInfo(Structure):
    """Versions 0 to 0."""

    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: list[KeyValue] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class Subtopology(Structure):
    """Versions 0 to 0."""

    subtopology_id: str = ""
    source_topics: list[str] = field(default_factory=list)
    repartition_sink_topics: list[str] = field(default_factory=list)
    state_changelog_topics: list[TopicInfo] = field(default_factory=list)
    repartition_source_topics: list[TopicInfo] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class Topology(Structure):
    """Versions 0 to 0."""

    epoch: int = 0
    subtopologies: list[Subtopology] | None = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class Endpoint(Structure):
    """Versions 0 to 0."""

    host: str = ""
    port: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TaskOffset(Structure):
    """Versions 0 to 0."""

    subtopology_id: str = ""
    partition: int = 0
    offset: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TaskIds(Structure):
    """Versions 0 to 0."""

    subtopology_id: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class Assignment(Structure):
    """Versions 0 to 0."""

    active_tasks: list[TaskIds] = field(default_factory=list)
    standby_tasks: list[TaskIds] = field(default_factory=list)
    warmup_tasks: list[TaskIds] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class Member(Structure):
    """Versions 0 to 0."""

    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = field(default_factory=list)
    task_offsets: list[TaskOffset] = field(default_factory=list)
    task_end_offsets: list[TaskOffset] = field(default_factory=list)
    assignment: Assignment = field(default_factory=Assignment)
    target_assignment: Assignment = field(default_factory=Assignment)
    is_classic: bool = False


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribedGroup(Structure):
    """Versions 0 to 0."""

    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    topology: Topology | None = None
    members: list[Member] = field(default_factory=list)
    authorized_operations: int = -2147483648


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class StreamsGroupDescribeResponse(Structure):
    """Versions 0 to 0."""

    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = field(default_factory=list)


def _read_streams_group_describe_request(
    buffer: memoryview, position: int, version: int
) -> tuple[StreamsGroupDescribeRequest, int]:
    count, position = read_compact_array_length(buffer, position, 1)
    group_ids: list[str] = []
    for _ in range(count):
        text, position = read_compact_string(buffer, position)
        group_ids.append(text)
    (include_authorized_operations,) = _BOOL.unpack_from(buffer, position)
    position += 1
    position = skip_tags(buffer, position)
    return StreamsGroupDescribeRequest(
        group_ids=group_ids, include_authorized_operations=include_authorized_operations
    ), position


def _write_streams_group_describe_request(out: bytearray, message: StreamsGroupDescribeRequest, version: int) -> None:
    write_compact_array_length(out, len(message.group_ids))
    for text in message.group_ids:
        write_compact_string(out, text)
    out += _BOOL.pack(message.include_authorized_operations)
    out += b"\x00"


def read_streams_group_describe_request(
    buffer: memoryview, position: int, version: int
) -> tuple[StreamsGroupDescribeRequest, int]:
    """Read a StreamsGroupDescribeRequest. Raises MalformedRequest."""
    try:
        return _read_streams_group_describe_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("StreamsGroupDescribeRequest") from error


def write_streams_group_describe_request(out: bytearray, message: StreamsGroupDescribeRequest, version: int) -> None:
    """Append a StreamsGroupDescribeRequest to `out`."""
    _write_streams_group_describe_request(out, message, version)


def _read_key_value(buffer: memoryview, position: int, version: int) -> tuple[KeyValue, int]:
    key, position = read_compact_string(buffer, position)
    value_, position = read_compact_string(buffer, position)
    position = skip_tags(buffer, position)
    return KeyValue(key=key, value=value_), position


def _write_key_value(out: bytearray, message: KeyValue, version: int) -> None:
    write_compact_string(out, message.key)
    write_compact_string(out, message.value)
    out += b"\x00"


def _read_topic_info(buffer: memoryview, position: int, version: int) -> tuple[TopicInfo, int]:
    name, position = read_compact_string(buffer, position)
    partitions, replication_factor = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    count, position = read_compact_array_length(buffer, position, 2)
    topic_configs: list[KeyValue] = []
    for _ in range(count):
        key_value, position = _read_key_value(buffer, position, version)
        topic_configs.append(key_value)
    position = skip_tags(buffer, position)
    return TopicInfo(
        name=name, partitions=partitions, replication_factor=replication_factor, topic_configs=topic_configs
    ), position


def _write_topic_info(out: bytearray, message: TopicInfo, version: int) -> None:
    write_compact_string(out, message.name)
    out += _INT32_INT16.pack(message.partitions, message.replication_factor)
    write_compact_array_length(out, len(message.topic_configs))
    for key_value in message.topic_configs:
        _write_key_value(out, key_value, version)
    out += b"\x00"


def _read_subtopology(buffer: memoryview, position: int, version: int) -> tuple[Subtopology, int]:
    subtopology_id, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 1)
    source_topics: list[str] = []
    for _ in range(count):
        text, position = read_compact_string(buffer, position)
        source_topics.append(text)
    count, position = read_compact_array_length(buffer, position, 1)
    repartition_sink_topics: list[str] = []
    for _ in range(count):
        text, position = read_compact_string(buffer, position)
        repartition_sink_topics.append(text)
    count, position = read_compact_array_length(buffer, position, 8)
    state_changelog_topics: list[TopicInfo] = []
    for _ in range(count):
        topic_info, position = _read_topic_info(buffer, position, version)
        state_changelog_topics.append(topic_info)
    count, position = read_compact_array_length(buffer, position, 8)
    repartition_source_topics: list[TopicInfo] = []
    for _ in range(count):
        topic_info, position = _read_topic_info(buffer, position, version)
        repartition_source_topics.append(topic_info)
    position = skip_tags(buffer, position)
    return Subtopology(
        subtopology_id=subtopology_id,
        source_topics=source_topics,
        repartition_sink_topics=repartition_sink_topics,
        state_changelog_topics=state_changelog_topics,
        repartition_source_topics=repartition_source_topics,
    ), position


def _write_subtopology(out: bytearray, message: Subtopology, version: int) -> None:
    write_compact_string(out, message.subtopology_id)
    write_compact_array_length(out, len(message.source_topics))
    for text in message.source_topics:
        write_compact_string(out, text)
    write_compact_array_length(out, len(message.repartition_sink_topics))
    for text in message.repartition_sink_topics:
        write_compact_string(out, text)
    write_compact_array_length(out, len(message.state_changelog_topics))
    for topic_info in message.state_changelog_topics:
        _write_topic_info(out, topic_info, version)
    write_compact_array_length(out, len(message.repartition_source_topics))
    for topic_info in message.repartition_source_topics:
        _write_topic_info(out, topic_info, version)
    out += b"\x00"


def _read_topology(buffer: memoryview, position: int, version: int) -> tuple[Topology, int]:
    (epoch,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = read_compact_nullable_array_length(buffer, position, 5)
    subtopologies: list[Subtopology] | None = None
    if count >= 0:
        subtopologies = []
        for _ in range(count):
            subtopology, position = _read_subtopology(buffer, position, version)
            subtopologies.append(subtopology)
    position = skip_tags(buffer, position)
    return Topology(epoch=epoch, subtopologies=subtopologies), position


def _write_topology(out: bytearray, message: Topology, version: int) -> None:
    out += _INT32.pack(message.epoch)
    if message.subtopologies is None:
        write_compact_array_length(out, -1)
    else:
        write_compact_array_length(out, len(message.subtopologies))
        for subtopology in message.subtopologies:
            _write_subtopology(out, subtopology, version)
    out += b"\x00"


def _read_endpoint(buffer: memoryview, position: int, version: int) -> tuple[Endpoint, int]:
    host, position = read_compact_string(buffer, position)
    (port,) = _UINT16.unpack_from(buffer, position)
    position += 2
    position = skip_tags(buffer, position)
    return Endpoint(host=host, port=port), position


def _write_endpoint(out: bytearray, message: Endpoint, version: int) -> None:
    write_compact_string(out, message.host)
    out += _UINT16.pack(message.port)
    out += b"\x00"


def _read_task_offset(buffer: memoryview, position: int, version: int) -> tuple[TaskOffset, int]:
    subtopology_id, position = read_compact_string(buffer, position)
    partition, offset = _INT32_INT64.unpack_from(buffer, position)
    position += 12
    position = skip_tags(buffer, position)
    return TaskOffset(subtopology_id=subtopology_id, partition=partition, offset=offset), position


def _write_task_offset(out: bytearray, message: TaskOffset, version: int) -> None:
    write_compact_string(out, message.subtopology_id)
    out += _INT32_INT64.pack(message.partition, message.offset)
    out += b"\x00"


def _read_task_ids(buffer: memoryview, position: int, version: int) -> tuple[TaskIds, int]:
    subtopology_id, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 4)
    partitions, position = read_numbers(buffer, position, count, "i")
    position = skip_tags(buffer, position)
    return TaskIds(subtopology_id=subtopology_id, partitions=partitions), position


def _write_task_ids(out: bytearray, message: TaskIds, version: int) -> None:
    write_compact_string(out, message.subtopology_id)
    write_compact_numbers(out, message.partitions, "i")
    out += b"\x00"


def _read_assignment(buffer: memoryview, position: int, version: int) -> tuple[Assignment, int]:
    count, position = read_compact_array_length(buffer, position, 2)
    active_tasks: list[TaskIds] = []
    for _ in range(count):
        task_ids, position = _read_task_ids(buffer, position, version)
        active_tasks.append(task_ids)
    count, position = read_compact_array_length(buffer, position, 2)
    standby_tasks: list[TaskIds] = []
    for _ in range(count):
        task_ids, position = _read_task_ids(buffer, position, version)
        standby_tasks.append(task_ids)
    count, position = read_compact_array_length(buffer, position, 2)
    warmup_tasks: list[TaskIds] = []
    for _ in range(count):
        task_ids, position = _read_task_ids(buffer, position, version)
        warmup_tasks.append(task_ids)
    position = skip_tags(buffer, position)
    return Assignment(active_tasks=active_tasks, standby_tasks=standby_tasks, warmup_tasks=warmup_tasks), position


def _write_assignment(out: bytearray, message: Assignment, version: int) -> None:
    write_compact_array_length(out, len(message.active_tasks))
    for task_ids in message.active_tasks:
        _write_task_ids(out, task_ids, version)
    write_compact_array_length(out, len(message.standby_tasks))
    for task_ids in message.standby_tasks:
        _write_task_ids(out, task_ids, version)
    write_compact_array_length(out, len(message.warmup_tasks))
    for task_ids in message.warmup_tasks:
        _write_task_ids(out, task_ids, version)
    out += b"\x00"


def _read_member(buffer: memoryview, position: int, version: int) -> tuple[Member, int]:
    member_id, position = read_compact_string(buffer, position)
    (member_epoch,) = _INT32.unpack_from(buffer, position)
    position += 4
    instance_id, position = read_compact_nullable_string(buffer, position)
    rack_id, position = read_compact_nullable_string(buffer, position)
    client_id, position = read_compact_string(buffer, position)
    client_host, position = read_compact_string(buffer, position)
    (topology_epoch,) = _INT32.unpack_from(buffer, position)
    position += 4
    process_id, position = read_compact_string(buffer, position)
    user_endpoint: Endpoint | None = None
    (marker,) = _INT8.unpack_from(buffer, position)
    position += 1
    if marker >= 0:
        user_endpoint, position = _read_endpoint(buffer, position, version)
    count, position = read_compact_array_length(buffer, position, 2)
    client_tags: list[KeyValue] = []
    for _ in range(count):
        key_value, position = _read_key_value(buffer, position, version)
        client_tags.append(key_value)
    count, position = read_compact_array_length(buffer, position, 13)
    task_offsets: list[TaskOffset] = []
    for _ in range(count):
        task_offset, position = _read_task_offset(buffer, position, version)
        task_offsets.append(task_offset)
    count, position = read_compact_array_length(buffer, position, 13)
    task_end_offsets: list[TaskOffset] = []
    for _ in range(count):
        task_offset, position = _read_task_offset(buffer, position, version)
        task_end_offsets.append(task_offset)
    assignment, position = _read_assignment(buffer, position, version)
    target_assignment, position = _read_assignment(buffer, position, version)
    (is_classic,) = _BOOL.unpack_from(buffer, position)
    position += 1
    position = skip_tags(buffer, position)
    return Member(
        member_id=member_id,
        member_epoch=member_epoch,
        instance_id=instance_id,
        rack_id=rack_id,
        client_id=client_id,
        client_host=client_host,
        topology_epoch=topology_epoch,
        process_id=process_id,
        user_endpoint=user_endpoint,
        client_tags=client_tags,
        task_offsets=task_offsets,
        task_end_offsets=task_end_offsets,
        assignment=assignment,
        target_assignment=target_assignment,
        is_classic=is_classic,
    ), position


def _write_member(out: bytearray, message: Member, version: int) -> None:
    write_compact_string(out, message.member_id)
    out += _INT32.pack(message.member_epoch)
    write_compact_nullable_string(out, message.instance_id)
    write_compact_nullable_string(out, message.rack_id)
    write_compact_string(out, message.client_id)
    write_compact_string(out, message.client_host)
    out += _INT32.pack(message.topology_epoch)
    write_compact_string(out, message.process_id)
    if message.user_endpoint is None:
        out += b"\xff"
    else:
        out += b"\x01"
        _write_endpoint(out, message.user_endpoint, version)
    write_compact_array_length(out, len(message.client_tags))
    for key_value in message.client_tags:
        _write_key_value(out, key_value, version)
    write_compact_array_length(out, len(message.task_offsets))
    for task_offset in message.task_offsets:
        _write_task_offset(out, task_offset, version)
    write_compact_array_length(out, len(message.task_end_offsets))
    for task_offset in message.task_end_offsets:
        _write_task_offset(out, task_offset, version)
    _write_assignment(out, message.assignment, version)
    _write_assignment(out, message.target_assignment, version)
    out += _BOOL.pack(message.is_classic)
    out += b"\x00"


def _read_described_group(buffer: memoryview, position: int, version: int) -> tuple[DescribedGroup, int]:
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    error_message, position = read_compact_nullable_string(buffer, position)
    group_id, position = read_compact_string(buffer, position)
    group_state, position = read_compact_string(buffer, position)
    group_epoch, assignment_epoch = _INT32_INT32.unpack_from(buffer, position)
    position += 8
    topology: Topology | None = None
    (marker,) = _INT8.unpack_from(buffer, position)
    position += 1
    if marker >= 0:
        topology, position = _read_topology(buffer, position, version)
    count, position = read_compact_array_length(buffer, position, 25)
    members: list[Member] = []
    for _ in range(count):
        member, position = _read_member(buffer, position, version)
        members.append(member)
    (authorized_operations,) = _INT32.unpack_from(buffer, position)
    position += 4
    position = skip_tags(buffer, position)
    return DescribedGroup(
        error_code=error_code,
        error_message=error_message,
        group_id=group_id,
        group_state=group_state,
        group_epoch=group_epoch,
        assignment_epoch=assignment_epoch,
        topology=topology,
        members=members,
        authorized_operations=authorized_operations,
    ), position


def _write_described_group(out: bytearray, message: DescribedGroup, version: int) -> None:
    out += _INT16.pack(message.error_code)
    write_compact_nullable_string(out, message.error_message)
    write_compact_string(out, message.group_id)
    write_compact_string(out, message.group_state)
    out += _INT32_INT32.pack(message.group_epoch, message.assignment_epoch)
    if message.topology is None:
        out += b"\xff"
    else:
        out += b"\x01"
        _write_topology(out, message.topology, version)
    write_compact_array_length(out, len(message.members))
    for member in message.members:
        _write_member(out, member, version)
    out += _INT32.pack(message.authorized_operations)
    out += b"\x00"


def _read_streams_group_describe_response(
    buffer: memoryview, position: int, version: int
) -> tuple[StreamsGroupDescribeResponse, int]:
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = read_compact_array_length(buffer, position, 19)
    groups: list[DescribedGroup] = []
    for _ in range(count):
        described_group, position = _read_described_group(buffer, position, version)
        groups.append(described_group)
    position = skip_tags(buffer, position)
    return StreamsGroupDescribeResponse(throttle_time_ms=throttle_time_ms, groups=groups), position


def _write_streams_group_describe_response(out: bytearray, message: StreamsGroupDescribeResponse, version: int) -> None:
    out += _INT32.pack(message.throttle_time_ms)
    write_compact_array_length(out, len(message.groups))
    for described_group in message.groups:
        _write_described_group(out, described_group, version)
    out += b"\x00"


def read_streams_group_describe_response(
    buffer: memoryview, position: int, version: int
) -> tuple[StreamsGroupDescribeResponse, int]:
    """Read a StreamsGroupDescribeResponse. Raises MalformedRequest."""
    try:
        return _read_streams_group_describe_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("StreamsGroupDescribeResponse") from error


def write_streams_group_describe_response(out: bytearray, message: StreamsGroupDescribeResponse, version: int) -> None:
    """Append a StreamsGroupDescribeResponse to `out`."""
    _write_streams_group_describe_response(out, message, version)
