"""Records of share groups in `__consumer_offsets`, byte for byte as Apache Kafka 4.3 writes them.

Every key starts with its record type and is not compact; every value is version 0 and compact. The time of a target
assignment is a tagged field, which earlier versions leave out. Topics are written in the order of their ids, so that
the same state is always the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar, Final, TypeAlias
from uuid import UUID

from strandline.coordinators.fields import CoordinatorFieldReader, FieldWriter
from strandline.coordinators.groups.modern.partitions import Partitions
from strandline.coordinators.groups.modern.records import (
    GroupEpochValue,
    ModernRecordKey,
    TargetEpochValue,
    TargetValue,
    i64_tag,
    read_i64_tag,
    read_numbers,
    read_partitions,
    read_strings,
    write_numbers,
    write_partitions,
    write_strings,
)
from strandline.errors import CorruptMessage

_VERSION: Final = 0


class ShareRecordType(IntEnum):
    """The record types of share groups."""

    MEMBER = 10
    GROUP_EPOCH = 11
    TARGET_EPOCH = 12
    TARGET = 13
    ASSIGNMENT = 14
    STATES = 15


SHARE_RECORD_TYPES: Final = frozenset(kind.value for kind in ShareRecordType)


@dataclass(frozen=True, slots=True)
class ShareRecordKey(ModernRecordKey):
    """`name` is the member id, and empty for records of the group itself."""

    NAMED: ClassVar = frozenset({ShareRecordType.MEMBER, ShareRecordType.TARGET, ShareRecordType.ASSIGNMENT})

    kind: ShareRecordType


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareMemberValue:
    """A member and what it subscribes to."""

    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareAssignmentValue:
    """What a member was told to read, and in which epoch. Kafka has one state only: 0, stable."""

    member_epoch: int
    previous_epoch: int
    state: int = 0
    partitions: Partitions = field(default_factory=dict)


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
    ShareMemberValue | GroupEpochValue | TargetEpochValue | TargetValue | ShareAssignmentValue | ShareStatesValue
)


def read_share_key(record_type: int, reader: CoordinatorFieldReader) -> ShareRecordKey:
    """The rest of a key whose type was read."""
    kind = ShareRecordType(record_type)
    group_id = reader.string()
    return ShareRecordKey(kind, group_id, reader.string() if kind in ShareRecordKey.NAMED else "")


def write_share_value(value: ShareRecordValue) -> bytes:
    writer = FieldWriter(_VERSION)
    tags: Mapping[int, bytes] = {}
    match value:
        case ShareMemberValue():
            writer.compact_nullable_string(value.rack_id).compact_string(value.client_id)
            write_strings(writer.compact_string(value.client_host), value.topics)
        case GroupEpochValue():
            writer.i32(value.epoch).i64(value.metadata_hash)
        case TargetEpochValue():
            writer.i32(value.epoch)
            tags = i64_tag(value.timestamp_ms)
        case TargetValue():
            write_partitions(writer, value.partitions)
        case ShareAssignmentValue():
            writer.i32(value.member_epoch).i32(value.previous_epoch).i8(value.state)
            write_partitions(writer, value.partitions)
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
    return ShareMemberValue(rack_id=rack_id, client_id=client_id, client_host=client_host, topics=read_strings(reader))


def _read_group_epoch(reader: CoordinatorFieldReader) -> GroupEpochValue:
    return GroupEpochValue(epoch=reader.i32(), metadata_hash=reader.i64())


def _read_target_epoch(reader: CoordinatorFieldReader) -> TargetEpochValue:
    return TargetEpochValue(epoch=reader.i32(), timestamp_ms=read_i64_tag(reader))


def _read_target(reader: CoordinatorFieldReader) -> TargetValue:
    return TargetValue(partitions=read_partitions(reader))


def _read_assignment(reader: CoordinatorFieldReader) -> ShareAssignmentValue:
    return ShareAssignmentValue(
        member_epoch=reader.i32(), previous_epoch=reader.i32(), state=reader.i8(), partitions=read_partitions(reader)
    )


def _read_states(reader: CoordinatorFieldReader) -> ShareStatesValue:
    initializing, initialized = _read_topics(reader), _read_topics(reader)
    deleting = {}
    for _ in range(reader.array_length(compact=True)):
        topic_id = reader.uuid()
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


def _write_topics(writer: FieldWriter, topics: Mapping[UUID, ShareTopicValue]) -> None:
    writer.varint(len(topics) + 1)
    for topic_id in sorted(topics):
        writer.raw(topic_id.bytes).compact_string(topics[topic_id].name)
        write_numbers(writer, sorted(topics[topic_id].partitions)).tags({})


def _read_topics(reader: CoordinatorFieldReader) -> Mapping[UUID, ShareTopicValue]:
    found = {}
    for _ in range(reader.array_length(compact=True)):
        topic_id = reader.uuid()
        name = reader.string(compact=True)
        found[topic_id] = ShareTopicValue(name, frozenset(read_numbers(reader)))
        reader.tags()
    return found
