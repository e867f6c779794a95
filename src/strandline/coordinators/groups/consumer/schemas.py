"""Records of the consumer protocol in `__consumer_offsets`, byte for byte as Apache Kafka 4.3 writes them.

Every key starts with its record type and is not compact; every value is version 0 and compact. Newer fields are tagged:
the hash of the topics of a group, the time of its target assignment, and the epochs in which a member was assigned its
partitions. Values of earlier versions leave them out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final
from uuid import UUID

from strandline.coordinators.fields import CoordinatorFieldReader, FieldWriter
from strandline.coordinators.groups.values import MemberProtocol
from strandline.errors import CorruptMessage
from strandline.records.fields import I64, FieldReader

_FIRST_TAG: Final = 0
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


_WITH_NAME: Final = frozenset(
    {
        ConsumerRecordType.MEMBER,
        ConsumerRecordType.TARGET,
        ConsumerRecordType.CURRENT_ASSIGNMENT,
        ConsumerRecordType.REGULAR_EXPRESSION,
    }
)
CONSUMER_RECORD_TYPES: Final = frozenset(kind.value for kind in ConsumerRecordType)


@dataclass(frozen=True, slots=True)
class ConsumerRecordKey:
    """`name` is the member id or the regular expression, and empty for records of the group itself."""

    kind: ConsumerRecordType
    group_id: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEpochValue:
    """The epoch of a group, and the hash of the topics that it reads; 0 without topics."""

    epoch: int
    metadata_hash: int = 0


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetEpochValue:
    """The epoch for which the target assignment was computed, and when; 0 if that is not known."""

    epoch: int
    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True)
class TopicPartitionsValue:
    """Partitions of a topic; with the epochs in which they were assigned, if these are known."""

    topic_id: UUID
    partitions: tuple[int, ...]
    epochs: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetValue:
    """What a member is to own in the end."""

    partitions: tuple[TopicPartitionsValue, ...] = ()


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


def write_consumer_key(key: ConsumerRecordKey) -> bytes:
    """Raises InvalidRequest if a name is too long for the record."""
    writer = FieldWriter(key.kind).string(key.group_id)
    return (writer.string(key.name) if key.kind in _WITH_NAME else writer).done()


def read_consumer_key(record_type: int, reader: CoordinatorFieldReader) -> ConsumerRecordKey:
    """The key behind its record type. Raises CorruptMessage."""
    kind = ConsumerRecordType(record_type)
    return ConsumerRecordKey(kind, reader.string(), reader.string() if kind in _WITH_NAME else "")


def write_consumer_value(value: ConsumerRecordValue) -> bytes:
    writer = FieldWriter(0)
    match value:
        case GroupEpochValue():
            writer.i32(value.epoch).tags(_tag(value.metadata_hash))
        case SubscriptionValue():
            _write_subscription(writer, value)
        case TargetEpochValue():
            writer.i32(value.epoch).tags(_tag(value.timestamp_ms))
        case TargetValue():
            _write_partitions(writer, value.partitions)
            writer.tags({})
        case CurrentAssignmentValue():
            writer.i32(value.member_epoch).i32(value.previous_epoch).i8(value.state)
            _write_partitions(writer, value.assigned)
            _write_partitions(writer, value.pending_revocation)
            writer.tags({})
        case RegularExpressionValue():
            _write_strings(writer, value.topics)
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
            return GroupEpochValue(epoch=reader.i32(), metadata_hash=_read_tag(reader.tags()))
        case ConsumerRecordType.MEMBER:
            return _read_subscription(reader)
        case ConsumerRecordType.TARGET_EPOCH:
            return TargetEpochValue(epoch=reader.i32(), timestamp_ms=_read_tag(reader.tags()))
        case ConsumerRecordType.TARGET:
            return TargetValue(partitions=_read_partitions(reader))
        case ConsumerRecordType.CURRENT_ASSIGNMENT:
            return CurrentAssignmentValue(
                member_epoch=reader.i32(),
                previous_epoch=reader.i32(),
                state=reader.i8(),
                assigned=_read_partitions(reader),
                pending_revocation=_read_partitions(reader),
            )
        case ConsumerRecordType.REGULAR_EXPRESSION:
            return RegularExpressionValue(topics=_read_strings(reader), version=reader.i64(), timestamp_ms=reader.i64())


def _tag(value: int) -> Mapping[int, bytes]:
    return {_FIRST_TAG: I64.pack(value)} if value else {}


def _read_tag(tags: Mapping[int, bytes]) -> int:
    return FieldReader(tags[_FIRST_TAG]).i64() if _FIRST_TAG in tags else 0


def _write_strings(writer: FieldWriter, values: Sequence[str]) -> None:
    writer.array_length(len(values), compact=True)
    for value in values:
        writer.compact_string(value)


def _read_strings(reader: CoordinatorFieldReader) -> tuple[str, ...]:
    return tuple(reader.string(compact=True) for _ in range(reader.array_length(compact=True)))


def _write_numbers(writer: FieldWriter, values: Sequence[int]) -> FieldWriter:
    writer.array_length(len(values), compact=True)
    for value in values:
        writer.i32(value)
    return writer


def _read_numbers(reader: CoordinatorFieldReader) -> tuple[int, ...]:
    return tuple(reader.i32() for _ in range(reader.array_length(compact=True)))


def _write_partitions(writer: FieldWriter, topics: Sequence[TopicPartitionsValue]) -> None:
    writer.array_length(len(topics), compact=True)
    for topic in topics:
        _write_numbers(writer.raw(topic.topic_id.bytes), topic.partitions)
        tags = {} if topic.epochs is None else {_FIRST_TAG: _write_numbers(FieldWriter(None), topic.epochs).done()}
        writer.tags(tags)


def _read_partitions(reader: CoordinatorFieldReader) -> tuple[TopicPartitionsValue, ...]:
    topics = []
    for _ in range(reader.array_length(compact=True)):
        topic_id, partitions = reader.uuid(), _read_numbers(reader)
        tags = reader.tags()
        epochs = _read_numbers(CoordinatorFieldReader(tags[_FIRST_TAG])) if _FIRST_TAG in tags else None
        if epochs is not None and len(epochs) != len(partitions):
            raise CorruptMessage(f"A record has {len(epochs)} epochs for {len(partitions)} partitions.")
        topics.append(TopicPartitionsValue(topic_id, partitions, epochs))
    return tuple(topics)


def _write_subscription(writer: FieldWriter, value: SubscriptionValue) -> None:
    writer.compact_nullable_string(value.instance_id).compact_nullable_string(value.rack_id)
    writer.compact_string(value.client_id).compact_string(value.client_host)
    _write_strings(writer, value.topics)
    writer.compact_nullable_string(value.regex).i32(value.rebalance_timeout_ms).compact_nullable_string(value.assignor)
    writer.tags({_FIRST_TAG: _ABSENT if value.classic is None else _PRESENT + _write_classic(value.classic)})


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
        topics=_read_strings(reader),
        regex=reader.nullable_string(compact=True),
        rebalance_timeout_ms=reader.i32(),
        assignor=reader.nullable_string(compact=True),
        classic=_read_classic(reader.tags().get(_FIRST_TAG, _ABSENT)),
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
