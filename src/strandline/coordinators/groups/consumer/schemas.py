"""Records of the consumer protocol in `__consumer_offsets`, byte for byte as Apache Kafka 4.3 writes them.

Every key starts with its record type and is not compact; every value is version 0 and compact. Newer fields are tagged:
the hash of the topics of a group, the time of its target assignment, and the epochs in which a member was assigned its
partitions. Values of earlier versions leave them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Final
from uuid import UUID

from strandline.coordinators.fields import CoordinatorFieldReader, FieldWriter
from strandline.coordinators.groups.modern.records import (
    FIRST_TAG,
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
from strandline.coordinators.groups.values import MemberProtocol
from strandline.errors import CorruptMessage

_PRESENT: Final = b"\x01"
_ABSENT: Final = b"\x00"


class ConsumerRecordType(IntEnum):
    """The record types of the consumer protocol."""

    GROUP_EPOCH = 3
    PARTITION_METADATA = 4
    """Not used any more: Kafka writes only tombstones of it."""
    MEMBER = 5
    TARGET_EPOCH = 6
    TARGET = 7
    CURRENT_ASSIGNMENT = 8
    REGULAR_EXPRESSION = 16


CONSUMER_RECORD_TYPES: Final = frozenset(kind.value for kind in ConsumerRecordType)


@dataclass(frozen=True, slots=True)
class ConsumerRecordKey(ModernRecordKey):
    """`name` is the member id or the regular expression, and empty for records of the group itself."""

    NAMED: ClassVar = frozenset(
        {
            ConsumerRecordType.MEMBER,
            ConsumerRecordType.TARGET,
            ConsumerRecordType.CURRENT_ASSIGNMENT,
            ConsumerRecordType.REGULAR_EXPRESSION,
        }
    )

    kind: ConsumerRecordType


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicMetadata:
    """What a member that speaks the classic protocol said in JoinGroup."""

    session_timeout_ms: int
    protocols: tuple[MemberProtocol, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionValue:
    """A member and what it subscribes to. No regular expression is an empty one."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    regex: str | None = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicMetadata | None = None


@dataclass(frozen=True, slots=True)
class TopicPartitionsValue:
    """Partitions of a topic; with the epochs in which they were assigned, if these are known."""

    topic_id: UUID
    partitions: tuple[int, ...]
    epochs: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentAssignmentValue:
    """What a member owns and what it has to give up."""

    member_epoch: int
    previous_epoch: int
    state: int
    assigned: tuple[TopicPartitionsValue, ...] = ()
    pending_revocation: tuple[TopicPartitionsValue, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RegularExpressionValue:
    """The topics that an expression matched in the metadata image of this version, at this time."""

    topics: tuple[str, ...]
    version: int
    timestamp_ms: int


ConsumerRecordValue = (
    GroupEpochValue
    | SubscriptionValue
    | TargetEpochValue
    | TargetValue
    | CurrentAssignmentValue
    | RegularExpressionValue
)


def read_consumer_key(record_type: int, reader: CoordinatorFieldReader) -> ConsumerRecordKey:
    """The key behind its record type. Raises CorruptMessage."""
    kind = ConsumerRecordType(record_type)
    return ConsumerRecordKey(kind, reader.string(), reader.string() if kind in ConsumerRecordKey.NAMED else "")


def write_consumer_value(value: ConsumerRecordValue) -> bytes:
    writer = FieldWriter(0)
    match value:
        case GroupEpochValue():
            writer.i32(value.epoch).tags(i64_tag(value.metadata_hash))
        case SubscriptionValue():
            _write_subscription(writer, value)
        case TargetEpochValue():
            writer.i32(value.epoch).tags(i64_tag(value.timestamp_ms))
        case TargetValue():
            write_partitions(writer, value.partitions)
            writer.tags({})
        case CurrentAssignmentValue():
            writer.i32(value.member_epoch).i32(value.previous_epoch).i8(value.state)
            _write_owned(writer, value.assigned)
            _write_owned(writer, value.pending_revocation)
            writer.tags({})
        case RegularExpressionValue():
            write_strings(writer, value.topics)
            writer.i64(value.version).i64(value.timestamp_ms).tags({})
    return writer.done()


def read_consumer_value(kind: ConsumerRecordType, data: bytes | memoryview) -> ConsumerRecordValue | None:
    """None for the kind that is not used any more. Raises CorruptMessage."""
    reader = CoordinatorFieldReader(data)
    version = reader.i16()
    if kind is ConsumerRecordType.PARTITION_METADATA:
        return None
    if version != 0:
        raise CorruptMessage(f"Records of type {kind.name} have version 0; this record has version {version}.")
    match kind:
        case ConsumerRecordType.GROUP_EPOCH:
            return GroupEpochValue(epoch=reader.i32(), metadata_hash=read_i64_tag(reader))
        case ConsumerRecordType.MEMBER:
            return _read_subscription(reader)
        case ConsumerRecordType.TARGET_EPOCH:
            return TargetEpochValue(epoch=reader.i32(), timestamp_ms=read_i64_tag(reader))
        case ConsumerRecordType.TARGET:
            return TargetValue(partitions=read_partitions(reader))
        case ConsumerRecordType.CURRENT_ASSIGNMENT:
            return CurrentAssignmentValue(
                member_epoch=reader.i32(),
                previous_epoch=reader.i32(),
                state=reader.i8(),
                assigned=_read_owned(reader),
                pending_revocation=_read_owned(reader),
            )
        case ConsumerRecordType.REGULAR_EXPRESSION:
            return RegularExpressionValue(topics=read_strings(reader), version=reader.i64(), timestamp_ms=reader.i64())


def _write_owned(writer: FieldWriter, topics: Sequence[TopicPartitionsValue]) -> None:
    writer.array_length(len(topics), compact=True)
    for topic in topics:
        write_numbers(writer.raw(topic.topic_id.bytes), topic.partitions)
        tags = {} if topic.epochs is None else {FIRST_TAG: write_numbers(FieldWriter(None), topic.epochs).done()}
        writer.tags(tags)


def _read_owned(reader: CoordinatorFieldReader) -> tuple[TopicPartitionsValue, ...]:
    topics = []
    for _ in range(reader.array_length(compact=True)):
        topic_id, partitions = reader.uuid(), read_numbers(reader)
        tags = reader.tags()
        epochs = read_numbers(CoordinatorFieldReader(tags[FIRST_TAG])) if FIRST_TAG in tags else None
        if epochs is not None and len(epochs) != len(partitions):
            raise CorruptMessage(f"A record has {len(epochs)} epochs for {len(partitions)} partitions.")
        topics.append(TopicPartitionsValue(topic_id, partitions, epochs))
    return tuple(topics)


def _write_subscription(writer: FieldWriter, value: SubscriptionValue) -> None:
    writer.compact_nullable_string(value.instance_id).compact_nullable_string(value.rack_id)
    writer.compact_string(value.client_id).compact_string(value.client_host)
    write_strings(writer, value.topics)
    writer.compact_nullable_string(value.regex).i32(value.rebalance_timeout_ms).compact_nullable_string(value.assignor)
    writer.tags({FIRST_TAG: _ABSENT if value.classic is None else _PRESENT + _write_classic(value.classic)})


def _write_classic(value: ClassicMetadata) -> bytes:
    writer = FieldWriter(None).i32(value.session_timeout_ms).array_length(len(value.protocols), compact=True)
    for protocol in value.protocols:
        writer.compact_string(protocol.name).compact_blob(protocol.metadata).tags({})
    return writer.tags({}).done()


def _read_subscription(reader: CoordinatorFieldReader) -> SubscriptionValue:
    return SubscriptionValue(
        instance_id=reader.nullable_string(compact=True),
        rack_id=reader.nullable_string(compact=True),
        client_id=reader.string(compact=True),
        client_host=reader.string(compact=True),
        topics=read_strings(reader),
        regex=reader.nullable_string(compact=True),
        rebalance_timeout_ms=reader.i32(),
        assignor=reader.nullable_string(compact=True),
        classic=_read_classic(reader.tags().get(FIRST_TAG, _ABSENT)),
    )


def _read_classic(data: bytes) -> ClassicMetadata | None:
    reader = CoordinatorFieldReader(data)
    if reader.i8() <= 0:
        return None
    session_timeout_ms = reader.i32()
    protocols = []
    for _ in range(reader.array_length(compact=True)):
        protocols.append(MemberProtocol(name=reader.string(compact=True), metadata=reader.blob(compact=True)))
        reader.tags()
    return ClassicMetadata(session_timeout_ms=session_timeout_ms, protocols=tuple(protocols))
