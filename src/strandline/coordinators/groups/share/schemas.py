"""Records of share groups in `__consumer_offsets`, byte for byte as Apache Kafka 4.3 writes them.

Every key starts with its record type and is not compact; every value is version 0 and compact. The time of a target
assignment is a tagged field, which earlier versions leave out. Topics are written in the order of their ids, so that
the same state is always the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, TypeAlias
from uuid import UUID

from strandline.coordinators.fields import CoordinatorFieldReader, FieldWriter
from strandline.coordinators.groups.share.partitions import NOTHING_SHARED, SharePartitions
from strandline.errors import CorruptMessage
from strandline.records.fields import I64, FieldReader

_VERSION: Final = 0
_TIMESTAMP_TAG: Final = 0


class ShareRecordType(IntEnum):
    """The record types of share groups."""

    MEMBER = 10
    GROUP_EPOCH = 11
    TARGET_EPOCH = 12
    TARGET = 13
    ASSIGNMENT = 14
    STATES = 15


_OF_MEMBERS: Final = frozenset({ShareRecordType.MEMBER, ShareRecordType.TARGET, ShareRecordType.ASSIGNMENT})
SHARE_RECORD_TYPES: Final = frozenset(kind.value for kind in ShareRecordType)


@dataclass(frozen=True, slots=True)
class ShareRecordKey:
    """`member_id` is empty for records of the group itself."""

    kind: ShareRecordType
    group_id: str
    member_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareMemberValue:
    """A member and what it subscribes to."""

    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupEpochValue:
    """The epoch of a group, and the hash of the topics that it reads; 0 without topics."""

    epoch: int
    metadata_hash: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareTargetEpochValue:
    """The epoch for which the target assignment was computed, and when; 0 if that is not known."""

    epoch: int
    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareTargetValue:
    """What a member is to read."""

    partitions: SharePartitions = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareAssignmentValue:
    """What a member was told to read, and in which epoch. Kafka has one state only: 0, stable."""

    member_epoch: int
    previous_epoch: int
    state: int = 0
    partitions: SharePartitions = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShareTopicValue:
    """Partitions of a topic that have state in the share coordinator, or are about to."""

    name: str
    partitions: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareStatesValue:
    """The state that a group has in the share coordinator, by topic id: being created, there, and being deleted."""

    initializing: Mapping[UUID, ShareTopicValue] = field(default_factory=dict)
    initialized: Mapping[UUID, ShareTopicValue] = field(default_factory=dict)
    deleting: Mapping[UUID, str] = field(default_factory=dict)


ShareRecordValue: TypeAlias = (
    ShareMemberValue
    | ShareGroupEpochValue
    | ShareTargetEpochValue
    | ShareTargetValue
    | ShareAssignmentValue
    | ShareStatesValue
)


def write_share_key(key: ShareRecordKey) -> bytes:
    """Raises InvalidRequest if a name is too long for a record."""
    writer = FieldWriter(key.kind).string(key.group_id)
    return (writer.string(key.member_id) if key.kind in _OF_MEMBERS else writer).done()


def read_share_key(record_type: int, reader: CoordinatorFieldReader) -> ShareRecordKey:
    """The rest of a key whose type was read."""
    kind = ShareRecordType(record_type)
    group_id = reader.string()
    return ShareRecordKey(kind, group_id, reader.string() if kind in _OF_MEMBERS else "")


def write_share_value(value: ShareRecordValue) -> bytes:
    writer, tags = FieldWriter(_VERSION), dict[int, bytes]()
    match value:
        case ShareMemberValue():
            writer.compact_nullable_string(value.rack_id).compact_string(value.client_id)
            writer.compact_string(value.client_host).varint(len(value.topics) + 1)
            for topic in value.topics:
                writer.compact_string(topic)
        case ShareGroupEpochValue():
            writer.i32(value.epoch).i64(value.metadata_hash)
        case ShareTargetEpochValue():
            writer.i32(value.epoch)
            tags = {_TIMESTAMP_TAG: I64.pack(value.timestamp_ms)} if value.timestamp_ms else {}
        case ShareTargetValue():
            _write_partitions(writer, value.partitions)
        case ShareAssignmentValue():
            writer.i32(value.member_epoch).i32(value.previous_epoch).i8(value.state)
            _write_partitions(writer, value.partitions)
        case ShareStatesValue():
            _write_topics(writer, value.initializing)
            _write_topics(writer, value.initialized)
            writer.varint(len(value.deleting) + 1)
            for topic_id in sorted(value.deleting):
                writer.raw(topic_id.bytes).compact_string(value.deleting[topic_id]).tags({})
    return writer.tags(tags).done()


def read_share_value(kind: ShareRecordType, data: bytes | memoryview) -> ShareRecordValue:
    """Raises CorruptMessage."""
    reader = CoordinatorFieldReader(data)
    version = reader.i16()
    if version != _VERSION:
        raise CorruptMessage(f"Records of share groups have version 0; this record of type {kind} has {version}.")
    return _READERS[kind](reader)


def _read_member(reader: CoordinatorFieldReader) -> ShareMemberValue:
    rack_id = reader.nullable_string(compact=True)
    client_id, client_host = reader.string(compact=True), reader.string(compact=True)
    topics = tuple(reader.string(compact=True) for _ in range(reader.array_length(compact=True)))
    return ShareMemberValue(rack_id=rack_id, client_id=client_id, client_host=client_host, topics=topics)


def _read_group_epoch(reader: CoordinatorFieldReader) -> ShareGroupEpochValue:
    return ShareGroupEpochValue(epoch=reader.i32(), metadata_hash=reader.i64())


def _read_target_epoch(reader: CoordinatorFieldReader) -> ShareTargetEpochValue:
    epoch, tags = reader.i32(), reader.tags()
    timestamp = FieldReader(tags[_TIMESTAMP_TAG]).i64() if _TIMESTAMP_TAG in tags else 0
    return ShareTargetEpochValue(epoch=epoch, timestamp_ms=timestamp)


def _read_target(reader: CoordinatorFieldReader) -> ShareTargetValue:
    return ShareTargetValue(partitions=_read_partitions(reader))


def _read_assignment(reader: CoordinatorFieldReader) -> ShareAssignmentValue:
    epoch, previous = reader.i32(), reader.i32()
    state = int.from_bytes(reader.take(1), "big", signed=True)
    partitions = _read_partitions(reader)
    return ShareAssignmentValue(member_epoch=epoch, previous_epoch=previous, state=state, partitions=partitions)


def _read_states(reader: CoordinatorFieldReader) -> ShareStatesValue:
    initializing, initialized = _read_topics(reader), _read_topics(reader)
    deleting = {}
    for _ in range(reader.array_length(compact=True)):
        topic_id = UUID(bytes=bytes(reader.take(16)))
        deleting[topic_id] = reader.string(compact=True)
        reader.tags()
    return ShareStatesValue(initializing=initializing, initialized=initialized, deleting=deleting)


_READERS: Final[Mapping[ShareRecordType, Callable[[CoordinatorFieldReader], ShareRecordValue]]] = {
    ShareRecordType.MEMBER: _read_member,
    ShareRecordType.GROUP_EPOCH: _read_group_epoch,
    ShareRecordType.TARGET_EPOCH: _read_target_epoch,
    ShareRecordType.TARGET: _read_target,
    ShareRecordType.ASSIGNMENT: _read_assignment,
    ShareRecordType.STATES: _read_states,
}


def _write_numbers(writer: FieldWriter, numbers: frozenset[int]) -> None:
    writer.varint(len(numbers) + 1)
    for number in sorted(numbers):
        writer.i32(number)


def _read_numbers(reader: CoordinatorFieldReader) -> frozenset[int]:
    return frozenset(reader.i32() for _ in range(reader.array_length(compact=True)))


def _write_partitions(writer: FieldWriter, partitions: SharePartitions) -> None:
    writer.varint(len(partitions) + 1)
    for topic_id in sorted(partitions):
        _write_numbers(writer.raw(topic_id.bytes), partitions[topic_id])
        writer.tags({})


def _read_partitions(reader: CoordinatorFieldReader) -> SharePartitions:
    found = {}
    for _ in range(reader.array_length(compact=True)):
        topic_id = UUID(bytes=bytes(reader.take(16)))
        numbers = _read_numbers(reader)
        reader.tags()
        if numbers:
            found[topic_id] = numbers
    return found or NOTHING_SHARED


def _write_topics(writer: FieldWriter, topics: Mapping[UUID, ShareTopicValue]) -> None:
    writer.varint(len(topics) + 1)
    for topic_id in sorted(topics):
        _write_numbers(writer.raw(topic_id.bytes).compact_string(topics[topic_id].name), topics[topic_id].partitions)
        writer.tags({})


def _read_topics(reader: CoordinatorFieldReader) -> Mapping[UUID, ShareTopicValue]:
    found = {}
    for _ in range(reader.array_length(compact=True)):
        topic_id = UUID(bytes=bytes(reader.take(16)))
        name = reader.string(compact=True)
        found[topic_id] = ShareTopicValue(name, _read_numbers(reader))
        reader.tags()
    return found
