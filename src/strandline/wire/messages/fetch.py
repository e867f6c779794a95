"""Messages of fetch. Written by tools/generate_messages.py: do not edit."""

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
    read_compact_nullable_bytes,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_array_length,
    read_nullable_bytes,
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
    write_compact_nullable_bytes,
    write_compact_nullable_string,
    write_compact_numbers,
    write_compact_string,
    write_nullable_bytes,
    write_nullable_string,
    write_numbers,
    write_string,
    write_tagged_field,
    write_uvarint,
)
from strandline.wire.structure import Structure

_INT16_INT32 = Struct(">hi")
_INT32 = Struct(">i")
_INT32_INT16_INT64_INT64 = Struct(">ihqq")
_INT32_INT32 = Struct(">ii")
_INT32_INT32_INT32_INT8 = Struct(">iiib")
_INT32_INT64 = Struct(">iq")
_INT64 = Struct(">q")
_INT64_INT32 = Struct(">qi")
_INT64_INT64 = Struct(">qq")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ReplicaState(Structure):
    """Versions 15 to 18."""

    replica_id: int = -1
    replica_epoch: int = -1


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class FetchPartition(Structure):
    """Versions 4 to 18."""

    partition: int = 0
    current_leader_epoch: int = -1  # from version 9 on
    fetch_offset: int = 0
    last_fetched_epoch: int = -1  # from version 12 on
    log_start_offset: int = -1  # from version 5 on
    partition_max_bytes: int = 0
    replica_directory_id: UUID = ZERO_UUID  # from version 17 on
    high_watermark: int = 9223372036854775807  # from version 18 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class FetchTopic(Structure):
    """Versions 4 to 18."""

    topic: str = ""  # up to version 12
    topic_id: UUID = ZERO_UUID  # from version 13 on
    partitions: list[FetchPartition] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ForgottenTopic(Structure):
    """Versions 7 to 18."""

    topic: str = ""  # up to version 12
    topic_id: UUID = ZERO_UUID  # from version 13 on
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class FetchRequest(Structure):
    """Versions 4 to 18."""

    cluster_id: str | None = None  # from version 12 on
    replica_id: int = -1  # up to version 14
    replica_state: ReplicaState = field(default_factory=ReplicaState)  # from version 15 on
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    isolation_level: int = 0
    session_id: int = 0  # from version 7 on
    session_epoch: int = -1  # from version 7 on
    topics: list[FetchTopic] = field(default_factory=list)
    forgotten_topics_data: list[ForgottenTopic] = field(default_factory=list)  # from version 7 on
    rack_id: str = ""  # from version 11 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class EpochEndOffset(Structure):
    """Versions 12 to 18."""

    epoch: int = -1
    end_offset: int = -1


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class LeaderIdAndEpoch(Structure):
    """Versions 12 to 18."""

    leader_id: int = -1
    leader_epoch: int = -1


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class SnapshotId(Structure):
    """Versions 12 to 18."""

    end_offset: int = -1
    epoch: int = -1


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AbortedTransaction(Structure):
    """Versions 4 to 18."""

    producer_id: int = 0
    first_offset: int = 0


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class PartitionData(Structure):
    """Versions 4 to 18."""

    partition_index: int = 0
    error_code: int = 0
    high_watermark: int = 0
    last_stable_offset: int = -1
    log_start_offset: int = -1  # from version 5 on
    diverging_epoch: EpochEndOffset = field(default_factory=EpochEndOffset)  # from version 12 on
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)  # from version 12 on
    snapshot_id: SnapshotId = field(default_factory=SnapshotId)  # from version 12 on
    aborted_transactions: list[AbortedTransaction] | None = field(default_factory=list)
    preferred_read_replica: int = -1  # from version 11 on
    records: bytes | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class FetchableTopicResponse(Structure):
    """Versions 4 to 18."""

    topic: str = ""  # up to version 12
    topic_id: UUID = ZERO_UUID  # from version 13 on
    partitions: list[PartitionData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class NodeEndpoint(Structure):
    """Versions 16 to 18."""

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class FetchResponse(Structure):
    """Versions 4 to 18."""

    throttle_time_ms: int = 0
    error_code: int = 0  # from version 7 on
    session_id: int = 0  # from version 7 on
    responses: list[FetchableTopicResponse] = field(default_factory=list)
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)  # from version 16 on


def _read_replica_state(buffer: memoryview, position: int, version: int) -> tuple[ReplicaState, int]:
    replica_id, replica_epoch = _INT32_INT64.unpack_from(buffer, position)
    position += 12
    position = skip_tags(buffer, position)
    return ReplicaState(replica_id=replica_id, replica_epoch=replica_epoch), position


def _write_replica_state(out: bytearray, message: ReplicaState, version: int) -> None:
    out += _INT32_INT64.pack(message.replica_id, message.replica_epoch)
    out += b"\x00"


def _read_fetch_partition(buffer: memoryview, position: int, version: int) -> tuple[FetchPartition, int]:
    flexible = version >= 12
    (partition,) = _INT32.unpack_from(buffer, position)
    position += 4
    current_leader_epoch: int = -1
    if version >= 9:
        (current_leader_epoch,) = _INT32.unpack_from(buffer, position)
        position += 4
    (fetch_offset,) = _INT64.unpack_from(buffer, position)
    position += 8
    last_fetched_epoch: int = -1
    if version >= 12:
        (last_fetched_epoch,) = _INT32.unpack_from(buffer, position)
        position += 4
    log_start_offset: int = -1
    if version >= 5:
        (log_start_offset,) = _INT64.unpack_from(buffer, position)
        position += 8
    (partition_max_bytes,) = _INT32.unpack_from(buffer, position)
    position += 4
    replica_directory_id: UUID = ZERO_UUID
    high_watermark: int = 9223372036854775807
    if flexible:
        count, position = read_uvarint(buffer, position)
        for _ in range(count):
            tag, position, end = read_tag(buffer, position)
            if tag == 0 and version >= 17:
                replica_directory_id, position = read_uuid(buffer, position)
            elif tag == 1 and version >= 18:
                (high_watermark,) = _INT64.unpack_from(buffer, position)
                position += 8
            position = end
    return FetchPartition(
        partition=partition,
        current_leader_epoch=current_leader_epoch,
        fetch_offset=fetch_offset,
        last_fetched_epoch=last_fetched_epoch,
        log_start_offset=log_start_offset,
        partition_max_bytes=partition_max_bytes,
        replica_directory_id=replica_directory_id,
        high_watermark=high_watermark,
    ), position


def _write_fetch_partition(out: bytearray, message: FetchPartition, version: int) -> None:
    flexible = version >= 12
    out += _INT32.pack(message.partition)
    if version >= 9:
        out += _INT32.pack(message.current_leader_epoch)
    out += _INT64.pack(message.fetch_offset)
    if version >= 12:
        out += _INT32.pack(message.last_fetched_epoch)
    if version >= 5:
        out += _INT64.pack(message.log_start_offset)
    out += _INT32.pack(message.partition_max_bytes)
    if flexible:
        tagged = bytearray()
        count = 0
        if version >= 17 and message.replica_directory_id != ZERO_UUID:
            value = bytearray()
            value += message.replica_directory_id.bytes
            write_tagged_field(tagged, 0, value)
            count += 1
        if version >= 18 and message.high_watermark != 9223372036854775807:
            value = bytearray()
            value += _INT64.pack(message.high_watermark)
            write_tagged_field(tagged, 1, value)
            count += 1
        write_uvarint(out, count)
        out += tagged


def _read_fetch_topic(buffer: memoryview, position: int, version: int) -> tuple[FetchTopic, int]:
    flexible = version >= 12
    topic: str = ""
    if version <= 12:
        topic, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    topic_id: UUID = ZERO_UUID
    if version >= 13:
        topic_id, position = read_uuid(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 16) if flexible else read_array_length(buffer, position, 16)
    )
    partitions: list[FetchPartition] = []
    for _ in range(count):
        fetch_partition, position = _read_fetch_partition(buffer, position, version)
        partitions.append(fetch_partition)
    if flexible:
        position = skip_tags(buffer, position)
    return FetchTopic(topic=topic, topic_id=topic_id, partitions=partitions), position


def _write_fetch_topic(out: bytearray, message: FetchTopic, version: int) -> None:
    flexible = version >= 12
    if version <= 12:
        if flexible:
            write_compact_string(out, message.topic)
        else:
            write_string(out, message.topic)
    if version >= 13:
        out += message.topic_id.bytes
    if flexible:
        write_compact_array_length(out, len(message.partitions))
    else:
        write_array_length(out, len(message.partitions))
    for fetch_partition in message.partitions:
        _write_fetch_partition(out, fetch_partition, version)
    if flexible:
        out += b"\x00"


def _read_forgotten_topic(buffer: memoryview, position: int, version: int) -> tuple[ForgottenTopic, int]:
    flexible = version >= 12
    topic: str = ""
    if version <= 12:
        topic, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    topic_id: UUID = ZERO_UUID
    if version >= 13:
        topic_id, position = read_uuid(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 4) if flexible else read_array_length(buffer, position, 4)
    )
    partitions, position = read_numbers(buffer, position, count, "i")
    if flexible:
        position = skip_tags(buffer, position)
    return ForgottenTopic(topic=topic, topic_id=topic_id, partitions=partitions), position


def _write_forgotten_topic(out: bytearray, message: ForgottenTopic, version: int) -> None:
    flexible = version >= 12
    if version <= 12:
        if flexible:
            write_compact_string(out, message.topic)
        else:
            write_string(out, message.topic)
    if version >= 13:
        out += message.topic_id.bytes
    if flexible:
        write_compact_numbers(out, message.partitions, "i")
    else:
        write_numbers(out, message.partitions, "i")
    if flexible:
        out += b"\x00"


def _read_fetch_request(buffer: memoryview, position: int, version: int) -> tuple[FetchRequest, int]:
    flexible = version >= 12
    replica_id: int = -1
    if version <= 14:
        (replica_id,) = _INT32.unpack_from(buffer, position)
        position += 4
    max_wait_ms, min_bytes, max_bytes, isolation_level = _INT32_INT32_INT32_INT8.unpack_from(buffer, position)
    position += 13
    session_id: int = 0
    session_epoch: int = -1
    if version >= 7:
        session_id, session_epoch = _INT32_INT32.unpack_from(buffer, position)
        position += 8
    count, position = (
        read_compact_array_length(buffer, position, 1) if flexible else read_array_length(buffer, position, 1)
    )
    topics: list[FetchTopic] = []
    for _ in range(count):
        fetch_topic, position = _read_fetch_topic(buffer, position, version)
        topics.append(fetch_topic)
    forgotten_topics_data: list[ForgottenTopic] = []
    if version >= 7:
        count, position = (
            read_compact_array_length(buffer, position, 1) if flexible else read_array_length(buffer, position, 1)
        )
        forgotten_topics_data = []
        for _ in range(count):
            forgotten_topic, position = _read_forgotten_topic(buffer, position, version)
            forgotten_topics_data.append(forgotten_topic)
    rack_id: str = ""
    if version >= 11:
        rack_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    cluster_id: str | None = None
    replica_state: ReplicaState = ReplicaState()
    if flexible:
        count, position = read_uvarint(buffer, position)
        for _ in range(count):
            tag, position, end = read_tag(buffer, position)
            if tag == 0:
                cluster_id, position = (
                    read_compact_nullable_string(buffer, position)
                    if flexible
                    else read_nullable_string(buffer, position)
                )
            elif tag == 1 and version >= 15:
                replica_state, position = _read_replica_state(buffer, position, version)
            position = end
    return FetchRequest(
        cluster_id=cluster_id,
        replica_id=replica_id,
        replica_state=replica_state,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=topics,
        forgotten_topics_data=forgotten_topics_data,
        rack_id=rack_id,
    ), position


def _write_fetch_request(out: bytearray, message: FetchRequest, version: int) -> None:
    flexible = version >= 12
    if version <= 14:
        out += _INT32.pack(message.replica_id)
    out += _INT32_INT32_INT32_INT8.pack(
        message.max_wait_ms, message.min_bytes, message.max_bytes, message.isolation_level
    )
    if version >= 7:
        out += _INT32_INT32.pack(message.session_id, message.session_epoch)
    if flexible:
        write_compact_array_length(out, len(message.topics))
    else:
        write_array_length(out, len(message.topics))
    for fetch_topic in message.topics:
        _write_fetch_topic(out, fetch_topic, version)
    if version >= 7:
        if flexible:
            write_compact_array_length(out, len(message.forgotten_topics_data))
        else:
            write_array_length(out, len(message.forgotten_topics_data))
        for forgotten_topic in message.forgotten_topics_data:
            _write_forgotten_topic(out, forgotten_topic, version)
    if version >= 11:
        if flexible:
            write_compact_string(out, message.rack_id)
        else:
            write_string(out, message.rack_id)
    if flexible:
        tagged = bytearray()
        count = 0
        if message.cluster_id is not None:
            value = bytearray()
            if flexible:
                write_compact_nullable_string(value, message.cluster_id)
            else:
                write_nullable_string(value, message.cluster_id)
            write_tagged_field(tagged, 0, value)
            count += 1
        if version >= 15 and message.replica_state != ReplicaState():
            value = bytearray()
            _write_replica_state(value, message.replica_state, version)
            write_tagged_field(tagged, 1, value)
            count += 1
        write_uvarint(out, count)
        out += tagged


def read_fetch_request(buffer: memoryview, position: int, version: int) -> tuple[FetchRequest, int]:
    """Read a FetchRequest. Raises MalformedRequest."""
    try:
        return _read_fetch_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("FetchRequest") from error


def write_fetch_request(out: bytearray, message: FetchRequest, version: int) -> None:
    """Append a FetchRequest to `out`."""
    _write_fetch_request(out, message, version)


def _read_epoch_end_offset(buffer: memoryview, position: int, version: int) -> tuple[EpochEndOffset, int]:
    epoch, end_offset = _INT32_INT64.unpack_from(buffer, position)
    position += 12
    position = skip_tags(buffer, position)
    return EpochEndOffset(epoch=epoch, end_offset=end_offset), position


def _write_epoch_end_offset(out: bytearray, message: EpochEndOffset, version: int) -> None:
    out += _INT32_INT64.pack(message.epoch, message.end_offset)
    out += b"\x00"


def _read_leader_id_and_epoch(buffer: memoryview, position: int, version: int) -> tuple[LeaderIdAndEpoch, int]:
    leader_id, leader_epoch = _INT32_INT32.unpack_from(buffer, position)
    position += 8
    position = skip_tags(buffer, position)
    return LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch), position


def _write_leader_id_and_epoch(out: bytearray, message: LeaderIdAndEpoch, version: int) -> None:
    out += _INT32_INT32.pack(message.leader_id, message.leader_epoch)
    out += b"\x00"


def _read_snapshot_id(buffer: memoryview, position: int, version: int) -> tuple[SnapshotId, int]:
    end_offset, epoch = _INT64_INT32.unpack_from(buffer, position)
    position += 12
    position = skip_tags(buffer, position)
    return SnapshotId(end_offset=end_offset, epoch=epoch), position


def _write_snapshot_id(out: bytearray, message: SnapshotId, version: int) -> None:
    out += _INT64_INT32.pack(message.end_offset, message.epoch)
    out += b"\x00"


def _read_aborted_transaction(buffer: memoryview, position: int, version: int) -> tuple[AbortedTransaction, int]:
    flexible = version >= 12
    producer_id, first_offset = _INT64_INT64.unpack_from(buffer, position)
    position += 16
    if flexible:
        position = skip_tags(buffer, position)
    return AbortedTransaction(producer_id=producer_id, first_offset=first_offset), position


def _write_aborted_transaction(out: bytearray, message: AbortedTransaction, version: int) -> None:
    flexible = version >= 12
    out += _INT64_INT64.pack(message.producer_id, message.first_offset)
    if flexible:
        out += b"\x00"


def _read_partition_data(buffer: memoryview, position: int, version: int) -> tuple[PartitionData, int]:
    flexible = version >= 12
    partition_index, error_code, high_watermark, last_stable_offset = _INT32_INT16_INT64_INT64.unpack_from(
        buffer, position
    )
    position += 22
    log_start_offset: int = -1
    if version >= 5:
        (log_start_offset,) = _INT64.unpack_from(buffer, position)
        position += 8
    count, position = (
        read_compact_nullable_array_length(buffer, position, 16)
        if flexible
        else read_nullable_array_length(buffer, position, 16)
    )
    aborted_transactions: list[AbortedTransaction] | None = None
    if count >= 0:
        aborted_transactions = []
        for _ in range(count):
            aborted_transaction, position = _read_aborted_transaction(buffer, position, version)
            aborted_transactions.append(aborted_transaction)
    preferred_read_replica: int = -1
    if version >= 11:
        (preferred_read_replica,) = _INT32.unpack_from(buffer, position)
        position += 4
    records, position = (
        read_compact_nullable_bytes(buffer, position) if flexible else read_nullable_bytes(buffer, position)
    )
    diverging_epoch: EpochEndOffset = EpochEndOffset()
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    snapshot_id: SnapshotId = SnapshotId()
    if flexible:
        count, position = read_uvarint(buffer, position)
        for _ in range(count):
            tag, position, end = read_tag(buffer, position)
            if tag == 0:
                diverging_epoch, position = _read_epoch_end_offset(buffer, position, version)
            elif tag == 1:
                current_leader, position = _read_leader_id_and_epoch(buffer, position, version)
            elif tag == 2:
                snapshot_id, position = _read_snapshot_id(buffer, position, version)
            position = end
    return PartitionData(
        partition_index=partition_index,
        error_code=error_code,
        high_watermark=high_watermark,
        last_stable_offset=last_stable_offset,
        log_start_offset=log_start_offset,
        diverging_epoch=diverging_epoch,
        current_leader=current_leader,
        snapshot_id=snapshot_id,
        aborted_transactions=aborted_transactions,
        preferred_read_replica=preferred_read_replica,
        records=records,
    ), position


def _write_partition_data(out: bytearray, message: PartitionData, version: int) -> None:
    flexible = version >= 12
    out += _INT32_INT16_INT64_INT64.pack(
        message.partition_index, message.error_code, message.high_watermark, message.last_stable_offset
    )
    if version >= 5:
        out += _INT64.pack(message.log_start_offset)
    if message.aborted_transactions is None:
        if flexible:
            write_compact_array_length(out, -1)
        else:
            write_array_length(out, -1)
    else:
        if flexible:
            write_compact_array_length(out, len(message.aborted_transactions))
        else:
            write_array_length(out, len(message.aborted_transactions))
        for aborted_transaction in message.aborted_transactions:
            _write_aborted_transaction(out, aborted_transaction, version)
    if version >= 11:
        out += _INT32.pack(message.preferred_read_replica)
    if flexible:
        write_compact_nullable_bytes(out, message.records)
    else:
        write_nullable_bytes(out, message.records)
    if flexible:
        tagged = bytearray()
        count = 0
        if message.diverging_epoch != EpochEndOffset():
            value = bytearray()
            _write_epoch_end_offset(value, message.diverging_epoch, version)
            write_tagged_field(tagged, 0, value)
            count += 1
        if message.current_leader != LeaderIdAndEpoch():
            value = bytearray()
            _write_leader_id_and_epoch(value, message.current_leader, version)
            write_tagged_field(tagged, 1, value)
            count += 1
        if message.snapshot_id != SnapshotId():
            value = bytearray()
            _write_snapshot_id(value, message.snapshot_id, version)
            write_tagged_field(tagged, 2, value)
            count += 1
        write_uvarint(out, count)
        out += tagged


def _read_fetchable_topic_response(
    buffer: memoryview, position: int, version: int
) -> tuple[FetchableTopicResponse, int]:
    flexible = version >= 12
    topic: str = ""
    if version <= 12:
        topic, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    topic_id: UUID = ZERO_UUID
    if version >= 13:
        topic_id, position = read_uuid(buffer, position)
    count, position = (
        read_compact_array_length(buffer, position, 24) if flexible else read_array_length(buffer, position, 24)
    )
    partitions: list[PartitionData] = []
    for _ in range(count):
        partition_data, position = _read_partition_data(buffer, position, version)
        partitions.append(partition_data)
    if flexible:
        position = skip_tags(buffer, position)
    return FetchableTopicResponse(topic=topic, topic_id=topic_id, partitions=partitions), position


def _write_fetchable_topic_response(out: bytearray, message: FetchableTopicResponse, version: int) -> None:
    flexible = version >= 12
    if version <= 12:
        if flexible:
            write_compact_string(out, message.topic)
        else:
            write_string(out, message.topic)
    if version >= 13:
        out += message.topic_id.bytes
    if flexible:
        write_compact_array_length(out, len(message.partitions))
    else:
        write_array_length(out, len(message.partitions))
    for partition_data in message.partitions:
        _write_partition_data(out, partition_data, version)
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


def _read_fetch_response(buffer: memoryview, position: int, version: int) -> tuple[FetchResponse, int]:
    flexible = version >= 12
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    error_code: int = 0
    session_id: int = 0
    if version >= 7:
        error_code, session_id = _INT16_INT32.unpack_from(buffer, position)
        position += 6
    count, position = (
        read_compact_array_length(buffer, position, 1) if flexible else read_array_length(buffer, position, 1)
    )
    responses: list[FetchableTopicResponse] = []
    for _ in range(count):
        fetchable_topic_response, position = _read_fetchable_topic_response(buffer, position, version)
        responses.append(fetchable_topic_response)
    node_endpoints: list[NodeEndpoint] = []
    if flexible:
        count, position = read_uvarint(buffer, position)
        for _ in range(count):
            tag, position, end = read_tag(buffer, position)
            if tag == 0 and version >= 16:
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
    return FetchResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        session_id=session_id,
        responses=responses,
        node_endpoints=node_endpoints,
    ), position


def _write_fetch_response(out: bytearray, message: FetchResponse, version: int) -> None:
    flexible = version >= 12
    out += _INT32.pack(message.throttle_time_ms)
    if version >= 7:
        out += _INT16_INT32.pack(message.error_code, message.session_id)
    if flexible:
        write_compact_array_length(out, len(message.responses))
    else:
        write_array_length(out, len(message.responses))
    for fetchable_topic_response in message.responses:
        _write_fetchable_topic_response(out, fetchable_topic_response, version)
    if flexible:
        tagged = bytearray()
        count = 0
        if version >= 16 and message.node_endpoints:
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


def read_fetch_response(buffer: memoryview, position: int, version: int) -> tuple[FetchResponse, int]:
    """Read a FetchResponse. Raises MalformedRequest."""
    try:
        return _read_fetch_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("FetchResponse") from error


def write_fetch_response(out: bytearray, message: FetchResponse, version: int) -> None:
    """Append a FetchResponse to `out`."""
    _write_fetch_response(out, message, version)
