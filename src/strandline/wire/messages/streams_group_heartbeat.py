"""Messages of streams group heartbeat. Written by tools/generate_messages.py: do not edit."""

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
_INT32 = Struct(">i")
_INT32_INT16 = Struct(">ih")
_INT32_INT32 = Struct(">ii")
_INT32_INT32_INT32_INT32 = Struct(">iiii")
_INT32_INT64 = Struct(">iq")


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
class CopartitionGroup(Structure):
    """Versions 0 to 0."""

    source_topics: list[int] = field(default_factory=list)
    source_topic_regex: list[int] = field(default_factory=list)
    repartition_source_topics: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class Subtopology(Structure):
    """Versions 0 to 0."""

    subtopology_id: str = ""
    source_topics: list[str] = field(default_factory=list)
    source_topic_regex: list[str] = field(default_factory=list)
    state_changelog_topics: list[TopicInfo] = field(default_factory=list)
    repartition_sink_topics: list[str] = field(default_factory=list)
    repartition_source_topics: list[TopicInfo] = field(default_factory=list)
    copartition_groups: list[CopartitionGroup] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class Topology(Structure):
    """Versions 0 to 0."""

    epoch: int = 0
    subtopologies: list[Subtopology] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TaskIds(Structure):
    """Versions 0 to 0."""

    subtopology_id: str = ""
    partitions: list[int] = field(default_factory=list)


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
class StreamsGroupHeartbeatRequest(Structure):
    """Versions 0 to 0."""

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    endpoint_information_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: Topology | None = None
    active_tasks: list[TaskIds] | None = field(default_factory=list)
    standby_tasks: list[TaskIds] | None = field(default_factory=list)
    warmup_tasks: list[TaskIds] | None = field(default_factory=list)
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] | None = field(default_factory=list)
    task_offsets: list[TaskOffset] | None = field(default_factory=list)
    task_end_offsets: list[TaskOffset] | None = field(default_factory=list)
    shutdown_application: bool = False


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class Status(Structure):
    """Versions 0 to 0."""

    status_code: int = 0
    status_detail: str = ""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TopicPartition(Structure):
    """Versions 0 to 0."""

    topic: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class EndpointToPartitions(Structure):
    """Versions 0 to 0."""

    user_endpoint: Endpoint = field(default_factory=Endpoint)
    active_partitions: list[TopicPartition] = field(default_factory=list)
    standby_partitions: list[TopicPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class StreamsGroupHeartbeatResponse(Structure):
    """Versions 0 to 0."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    acceptable_recovery_lag: int = 0
    task_offset_interval_ms: int = 0
    status: list[Status] | None = field(default_factory=list)
    active_tasks: list[TaskIds] | None = field(default_factory=list)
    standby_tasks: list[TaskIds] | None = field(default_factory=list)
    warmup_tasks: list[TaskIds] | None = field(default_factory=list)
    endpoint_information_epoch: int = 0
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = field(default_factory=list)


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


def _read_copartition_group(buffer: memoryview, position: int, version: int) -> tuple[CopartitionGroup, int]:
    count, position = read_compact_array_length(buffer, position, 2)
    source_topics, position = read_numbers(buffer, position, count, "h")
    count, position = read_compact_array_length(buffer, position, 2)
    source_topic_regex, position = read_numbers(buffer, position, count, "h")
    count, position = read_compact_array_length(buffer, position, 2)
    repartition_source_topics, position = read_numbers(buffer, position, count, "h")
    position = skip_tags(buffer, position)
    return CopartitionGroup(
        source_topics=source_topics,
        source_topic_regex=source_topic_regex,
        repartition_source_topics=repartition_source_topics,
    ), position


def _write_copartition_group(out: bytearray, message: CopartitionGroup, version: int) -> None:
    write_compact_numbers(out, message.source_topics, "h")
    write_compact_numbers(out, message.source_topic_regex, "h")
    write_compact_numbers(out, message.repartition_source_topics, "h")
    out += b"\x00"


def _read_subtopology(buffer: memoryview, position: int, version: int) -> tuple[Subtopology, int]:
    subtopology_id, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 1)
    source_topics: list[str] = []
    for _ in range(count):
        text, position = read_compact_string(buffer, position)
        source_topics.append(text)
    count, position = read_compact_array_length(buffer, position, 1)
    source_topic_regex: list[str] = []
    for _ in range(count):
        text, position = read_compact_string(buffer, position)
        source_topic_regex.append(text)
    count, position = read_compact_array_length(buffer, position, 8)
    state_changelog_topics: list[TopicInfo] = []
    for _ in range(count):
        topic_info, position = _read_topic_info(buffer, position, version)
        state_changelog_topics.append(topic_info)
    count, position = read_compact_array_length(buffer, position, 1)
    repartition_sink_topics: list[str] = []
    for _ in range(count):
        text, position = read_compact_string(buffer, position)
        repartition_sink_topics.append(text)
    count, position = read_compact_array_length(buffer, position, 8)
    repartition_source_topics: list[TopicInfo] = []
    for _ in range(count):
        topic_info, position = _read_topic_info(buffer, position, version)
        repartition_source_topics.append(topic_info)
    count, position = read_compact_array_length(buffer, position, 3)
    copartition_groups: list[CopartitionGroup] = []
    for _ in range(count):
        copartition_group, position = _read_copartition_group(buffer, position, version)
        copartition_groups.append(copartition_group)
    position = skip_tags(buffer, position)
    return Subtopology(
        subtopology_id=subtopology_id,
        source_topics=source_topics,
        source_topic_regex=source_topic_regex,
        state_changelog_topics=state_changelog_topics,
        repartition_sink_topics=repartition_sink_topics,
        repartition_source_topics=repartition_source_topics,
        copartition_groups=copartition_groups,
    ), position


def _write_subtopology(out: bytearray, message: Subtopology, version: int) -> None:
    write_compact_string(out, message.subtopology_id)
    write_compact_array_length(out, len(message.source_topics))
    for text in message.source_topics:
        write_compact_string(out, text)
    write_compact_array_length(out, len(message.source_topic_regex))
    for text in message.source_topic_regex:
        write_compact_string(out, text)
    write_compact_array_length(out, len(message.state_changelog_topics))
    for topic_info in message.state_changelog_topics:
        _write_topic_info(out, topic_info, version)
    write_compact_array_length(out, len(message.repartition_sink_topics))
    for text in message.repartition_sink_topics:
        write_compact_string(out, text)
    write_compact_array_length(out, len(message.repartition_source_topics))
    for topic_info in message.repartition_source_topics:
        _write_topic_info(out, topic_info, version)
    write_compact_array_length(out, len(message.copartition_groups))
    for copartition_group in message.copartition_groups:
        _write_copartition_group(out, copartition_group, version)
    out += b"\x00"


def _read_topology(buffer: memoryview, position: int, version: int) -> tuple[Topology, int]:
    (epoch,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = read_compact_array_length(buffer, position, 7)
    subtopologies: list[Subtopology] = []
    for _ in range(count):
        subtopology, position = _read_subtopology(buffer, position, version)
        subtopologies.append(subtopology)
    position = skip_tags(buffer, position)
    return Topology(epoch=epoch, subtopologies=subtopologies), position


def _write_topology(out: bytearray, message: Topology, version: int) -> None:
    out += _INT32.pack(message.epoch)
    write_compact_array_length(out, len(message.subtopologies))
    for subtopology in message.subtopologies:
        _write_subtopology(out, subtopology, version)
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


def _read_streams_group_heartbeat_request(
    buffer: memoryview, position: int, version: int
) -> tuple[StreamsGroupHeartbeatRequest, int]:
    group_id, position = read_compact_string(buffer, position)
    member_id, position = read_compact_string(buffer, position)
    member_epoch, endpoint_information_epoch = _INT32_INT32.unpack_from(buffer, position)
    position += 8
    instance_id, position = read_compact_nullable_string(buffer, position)
    rack_id, position = read_compact_nullable_string(buffer, position)
    (rebalance_timeout_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    topology: Topology | None = None
    (marker,) = _INT8.unpack_from(buffer, position)
    position += 1
    if marker >= 0:
        topology, position = _read_topology(buffer, position, version)
    count, position = read_compact_nullable_array_length(buffer, position, 2)
    active_tasks: list[TaskIds] | None = None
    if count >= 0:
        active_tasks = []
        for _ in range(count):
            task_ids, position = _read_task_ids(buffer, position, version)
            active_tasks.append(task_ids)
    count, position = read_compact_nullable_array_length(buffer, position, 2)
    standby_tasks: list[TaskIds] | None = None
    if count >= 0:
        standby_tasks = []
        for _ in range(count):
            task_ids, position = _read_task_ids(buffer, position, version)
            standby_tasks.append(task_ids)
    count, position = read_compact_nullable_array_length(buffer, position, 2)
    warmup_tasks: list[TaskIds] | None = None
    if count >= 0:
        warmup_tasks = []
        for _ in range(count):
            task_ids, position = _read_task_ids(buffer, position, version)
            warmup_tasks.append(task_ids)
    process_id, position = read_compact_nullable_string(buffer, position)
    user_endpoint: Endpoint | None = None
    (marker,) = _INT8.unpack_from(buffer, position)
    position += 1
    if marker >= 0:
        user_endpoint, position = _read_endpoint(buffer, position, version)
    count, position = read_compact_nullable_array_length(buffer, position, 2)
    client_tags: list[KeyValue] | None = None
    if count >= 0:
        client_tags = []
        for _ in range(count):
            key_value, position = _read_key_value(buffer, position, version)
            client_tags.append(key_value)
    count, position = read_compact_nullable_array_length(buffer, position, 13)
    task_offsets: list[TaskOffset] | None = None
    if count >= 0:
        task_offsets = []
        for _ in range(count):
            task_offset, position = _read_task_offset(buffer, position, version)
            task_offsets.append(task_offset)
    count, position = read_compact_nullable_array_length(buffer, position, 13)
    task_end_offsets: list[TaskOffset] | None = None
    if count >= 0:
        task_end_offsets = []
        for _ in range(count):
            task_offset, position = _read_task_offset(buffer, position, version)
            task_end_offsets.append(task_offset)
    (shutdown_application,) = _BOOL.unpack_from(buffer, position)
    position += 1
    position = skip_tags(buffer, position)
    return StreamsGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=member_epoch,
        endpoint_information_epoch=endpoint_information_epoch,
        instance_id=instance_id,
        rack_id=rack_id,
        rebalance_timeout_ms=rebalance_timeout_ms,
        topology=topology,
        active_tasks=active_tasks,
        standby_tasks=standby_tasks,
        warmup_tasks=warmup_tasks,
        process_id=process_id,
        user_endpoint=user_endpoint,
        client_tags=client_tags,
        task_offsets=task_offsets,
        task_end_offsets=task_end_offsets,
        shutdown_application=shutdown_application,
    ), position


def _write_streams_group_heartbeat_request(out: bytearray, message: StreamsGroupHeartbeatRequest, version: int) -> None:
    write_compact_string(out, message.group_id)
    write_compact_string(out, message.member_id)
    out += _INT32_INT32.pack(message.member_epoch, message.endpoint_information_epoch)
    write_compact_nullable_string(out, message.instance_id)
    write_compact_nullable_string(out, message.rack_id)
    out += _INT32.pack(message.rebalance_timeout_ms)
    if message.topology is None:
        out += b"\xff"
    else:
        out += b"\x01"
        _write_topology(out, message.topology, version)
    if message.active_tasks is None:
        write_compact_array_length(out, -1)
    else:
        write_compact_array_length(out, len(message.active_tasks))
        for task_ids in message.active_tasks:
            _write_task_ids(out, task_ids, version)
    if message.standby_tasks is None:
        write_compact_array_length(out, -1)
    else:
        write_compact_array_length(out, len(message.standby_tasks))
        for task_ids in message.standby_tasks:
            _write_task_ids(out, task_ids, version)
    if message.warmup_tasks is None:
        write_compact_array_length(out, -1)
    else:
        write_compact_array_length(out, len(message.warmup_tasks))
        for task_ids in message.warmup_tasks:
            _write_task_ids(out, task_ids, version)
    write_compact_nullable_string(out, message.process_id)
    if message.user_endpoint is None:
        out += b"\xff"
    else:
        out += b"\x01"
        _write_endpoint(out, message.user_endpoint, version)
    if message.client_tags is None:
        write_compact_array_length(out, -1)
    else:
        write_compact_array_length(out, len(message.client_tags))
        for key_value in message.client_tags:
            _write_key_value(out, key_value, version)
    if message.task_offsets is None:
        write_compact_array_length(out, -1)
    else:
        write_compact_array_length(out, len(message.task_offsets))
        for task_offset in message.task_offsets:
            _write_task_offset(out, task_offset, version)
    if message.task_end_offsets is None:
        write_compact_array_length(out, -1)
    else:
        write_compact_array_length(out, len(message.task_end_offsets))
        for task_offset in message.task_end_offsets:
            _write_task_offset(out, task_offset, version)
    out += _BOOL.pack(message.shutdown_application)
    out += b"\x00"


def read_streams_group_heartbeat_request(
    buffer: memoryview, position: int, version: int
) -> tuple[StreamsGroupHeartbeatRequest, int]:
    """Read a StreamsGroupHeartbeatRequest. Raises MalformedRequest."""
    try:
        return _read_streams_group_heartbeat_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("StreamsGroupHeartbeatRequest") from error


def write_streams_group_heartbeat_request(out: bytearray, message: StreamsGroupHeartbeatRequest, version: int) -> None:
    """Append a StreamsGroupHeartbeatRequest to `out`."""
    _write_streams_group_heartbeat_request(out, message, version)


def _read_status(buffer: memoryview, position: int, version: int) -> tuple[Status, int]:
    (status_code,) = _INT8.unpack_from(buffer, position)
    position += 1
    status_detail, position = read_compact_string(buffer, position)
    position = skip_tags(buffer, position)
    return Status(status_code=status_code, status_detail=status_detail), position


def _write_status(out: bytearray, message: Status, version: int) -> None:
    out += _INT8.pack(message.status_code)
    write_compact_string(out, message.status_detail)
    out += b"\x00"


def _read_topic_partition(buffer: memoryview, position: int, version: int) -> tuple[TopicPartition, int]:
    topic, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 4)
    partitions, position = read_numbers(buffer, position, count, "i")
    position = skip_tags(buffer, position)
    return TopicPartition(topic=topic, partitions=partitions), position


def _write_topic_partition(out: bytearray, message: TopicPartition, version: int) -> None:
    write_compact_string(out, message.topic)
    write_compact_numbers(out, message.partitions, "i")
    out += b"\x00"


def _read_endpoint_to_partitions(buffer: memoryview, position: int, version: int) -> tuple[EndpointToPartitions, int]:
    user_endpoint, position = _read_endpoint(buffer, position, version)
    count, position = read_compact_array_length(buffer, position, 2)
    active_partitions: list[TopicPartition] = []
    for _ in range(count):
        topic_partition, position = _read_topic_partition(buffer, position, version)
        active_partitions.append(topic_partition)
    count, position = read_compact_array_length(buffer, position, 2)
    standby_partitions: list[TopicPartition] = []
    for _ in range(count):
        topic_partition, position = _read_topic_partition(buffer, position, version)
        standby_partitions.append(topic_partition)
    position = skip_tags(buffer, position)
    return EndpointToPartitions(
        user_endpoint=user_endpoint, active_partitions=active_partitions, standby_partitions=standby_partitions
    ), position


def _write_endpoint_to_partitions(out: bytearray, message: EndpointToPartitions, version: int) -> None:
    _write_endpoint(out, message.user_endpoint, version)
    write_compact_array_length(out, len(message.active_partitions))
    for topic_partition in message.active_partitions:
        _write_topic_partition(out, topic_partition, version)
    write_compact_array_length(out, len(message.standby_partitions))
    for topic_partition in message.standby_partitions:
        _write_topic_partition(out, topic_partition, version)
    out += b"\x00"


def _read_streams_group_heartbeat_response(
    buffer: memoryview, position: int, version: int
) -> tuple[StreamsGroupHeartbeatResponse, int]:
    throttle_time_ms, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    error_message, position = read_compact_nullable_string(buffer, position)
    member_id, position = read_compact_string(buffer, position)
    member_epoch, heartbeat_interval_ms, acceptable_recovery_lag, task_offset_interval_ms = (
        _INT32_INT32_INT32_INT32.unpack_from(buffer, position)
    )
    position += 16
    count, position = read_compact_nullable_array_length(buffer, position, 2)
    status: list[Status] | None = None
    if count >= 0:
        status = []
        for _ in range(count):
            status_, position = _read_status(buffer, position, version)
            status.append(status_)
    count, position = read_compact_nullable_array_length(buffer, position, 2)
    active_tasks: list[TaskIds] | None = None
    if count >= 0:
        active_tasks = []
        for _ in range(count):
            task_ids, position = _read_task_ids(buffer, position, version)
            active_tasks.append(task_ids)
    count, position = read_compact_nullable_array_length(buffer, position, 2)
    standby_tasks: list[TaskIds] | None = None
    if count >= 0:
        standby_tasks = []
        for _ in range(count):
            task_ids, position = _read_task_ids(buffer, position, version)
            standby_tasks.append(task_ids)
    count, position = read_compact_nullable_array_length(buffer, position, 2)
    warmup_tasks: list[TaskIds] | None = None
    if count >= 0:
        warmup_tasks = []
        for _ in range(count):
            task_ids, position = _read_task_ids(buffer, position, version)
            warmup_tasks.append(task_ids)
    (endpoint_information_epoch,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = read_compact_nullable_array_length(buffer, position, 5)
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None
    if count >= 0:
        partitions_by_user_endpoint = []
        for _ in range(count):
            endpoint_to_partitions, position = _read_endpoint_to_partitions(buffer, position, version)
            partitions_by_user_endpoint.append(endpoint_to_partitions)
    position = skip_tags(buffer, position)
    return StreamsGroupHeartbeatResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        error_message=error_message,
        member_id=member_id,
        member_epoch=member_epoch,
        heartbeat_interval_ms=heartbeat_interval_ms,
        acceptable_recovery_lag=acceptable_recovery_lag,
        task_offset_interval_ms=task_offset_interval_ms,
        status=status,
        active_tasks=active_tasks,
        standby_tasks=standby_tasks,
        warmup_tasks=warmup_tasks,
        endpoint_information_epoch=endpoint_information_epoch,
        partitions_by_user_endpoint=partitions_by_user_endpoint,
    ), position


def _write_streams_group_heartbeat_response(
    out: bytearray, message: StreamsGroupHeartbeatResponse, version: int
) -> None:
    out += _INT32_INT16.pack(message.throttle_time_ms, message.error_code)
    write_compact_nullable_string(out, message.error_message)
    write_compact_string(out, message.member_id)
    out += _INT32_INT32_INT32_INT32.pack(
        message.member_epoch,
        message.heartbeat_interval_ms,
        message.acceptable_recovery_lag,
        message.task_offset_interval_ms,
    )
    if message.status is None:
        write_compact_array_length(out, -1)
    else:
        write_compact_array_length(out, len(message.status))
        for status_ in message.status:
            _write_status(out, status_, version)
    if message.active_tasks is None:
        write_compact_array_length(out, -1)
    else:
        write_compact_array_length(out, len(message.active_tasks))
        for task_ids in message.active_tasks:
            _write_task_ids(out, task_ids, version)
    if message.standby_tasks is None:
        write_compact_array_length(out, -1)
    else:
        write_compact_array_length(out, len(message.standby_tasks))
        for task_ids in message.standby_tasks:
            _write_task_ids(out, task_ids, version)
    if message.warmup_tasks is None:
        write_compact_array_length(out, -1)
    else:
        write_compact_array_length(out, len(message.warmup_tasks))
        for task_ids in message.warmup_tasks:
            _write_task_ids(out, task_ids, version)
    out += _INT32.pack(message.endpoint_information_epoch)
    if message.partitions_by_user_endpoint is None:
        write_compact_array_length(out, -1)
    else:
        write_compact_array_length(out, len(message.partitions_by_user_endpoint))
        for endpoint_to_partitions in message.partitions_by_user_endpoint:
            _write_endpoint_to_partitions(out, endpoint_to_partitions, version)
    out += b"\x00"


def read_streams_group_heartbeat_response(
    buffer: memoryview, position: int, version: int
) -> tuple[StreamsGroupHeartbeatResponse, int]:
    """Read a StreamsGroupHeartbeatResponse. Raises MalformedRequest."""
    try:
        return _read_streams_group_heartbeat_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("StreamsGroupHeartbeatResponse") from error


def write_streams_group_heartbeat_response(
    out: bytearray, message: StreamsGroupHeartbeatResponse, version: int
) -> None:
    """Append a StreamsGroupHeartbeatResponse to `out`."""
    _write_streams_group_heartbeat_response(out, message, version)
