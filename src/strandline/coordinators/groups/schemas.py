"""Keys and values of `__consumer_offsets`, byte for byte as Apache Kafka writes them.

A key starts with its record type, a value with its version; no value is a tombstone. Every version is
read. Offset commits are written as v4, classic groups as v3. Kafka writes a commit for which the client chose its own
retention as v1, which has no room for a topic id. With an id it is a v4 here, and the time at which it expires is a
tagged field of ours, which Kafka skips. The records of consumer groups (KIP-848) are in `consumer.schemas`, those of
share groups in `share.schemas`. Record types that this broker does not keep are read as `UnknownKey`, which callers
skip.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import lru_cache
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple, TypeAlias

from strandline.coordinators.fields import LONGEST_STRING, CoordinatorFieldReader, FieldWriter
from strandline.coordinators.groups.consumer.schemas import (
    CONSUMER_RECORD_TYPES,
    ConsumerRecordKey,
    read_consumer_key,
)
from strandline.coordinators.groups.share.schemas import SHARE_RECORD_TYPES, ShareRecordKey, read_share_key
from strandline.errors import CorruptMessage
from strandline.model import NO_EPOCH, NO_TIMESTAMP, ZERO_UUID
from strandline.records.fields import I16, I32, I64, FieldReader

LEGACY_OFFSET_COMMIT: Final = 0
OFFSET_COMMIT: Final = 1
GROUP_METADATA: Final = 2

_TOPIC_ID_TAG: Final = 0
_EXPIRE_TIMESTAMP_TAG: Final = 10_000  # ours; far from the numbers that Kafka gives out
_FIRST_FLEXIBLE: Final = 4
_NEWEST: Final = 4
_KEY_HEAD: Final = Struct(">hh")
_PLAIN_VALUE: Final = Struct(">hqibqbbb")
"""Version, offset, leader epoch, empty metadata, time, one tag: its number and size."""
_PLAIN_VALUE_WITH_ID: Final = Struct(_PLAIN_VALUE.format + "16s")
_TOPICS_KNOWN: Final = 4_096
"""So many names and ids of topics are one object for all offsets that are read one after the other."""

_new_tuple = tuple.__new__  # skips a Python call for each offset


class OffsetKey(NamedTuple):
    """The committed offset of a group in a partition."""

    group_id: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class GroupKey:
    """A classic group."""

    group_id: str


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A record type that this broker does not keep."""

    record_type: int


RecordKey: TypeAlias = OffsetKey | GroupKey | ConsumerRecordKey | ShareRecordKey | UnknownKey


class OffsetValue(NamedTuple):
    """A committed offset. `expire_timestamp` is set only when the client chose its own retention."""

    offset: int
    commit_timestamp: int
    leader_epoch: int = NO_EPOCH
    metadata: str = ""
    expire_timestamp: int = NO_TIMESTAMP
    topic_id: uuid.UUID = ZERO_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberValue:
    """A member of a stable classic group."""

    member_id: str
    group_instance_id: str | None = None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupValue:
    """A classic group as of one generation."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_timestamp: int = NO_TIMESTAMP
    members: tuple[MemberValue, ...] = ()


def write_offset_key(key: OffsetKey) -> bytes:
    group_id, topic, partition = key
    group, name = group_id.encode(), topic.encode()
    if len(group) > LONGEST_STRING or len(name) > LONGEST_STRING:
        return FieldWriter(OFFSET_COMMIT).string(group_id).string(topic).i32(partition).done()  # refuses it
    return b"".join((_KEY_HEAD.pack(OFFSET_COMMIT, len(group)), group, I16.pack(len(name)), name, I32.pack(partition)))


def write_group_key(group_id: str) -> bytes:
    return FieldWriter(GROUP_METADATA).string(group_id).done()


def read_key(data: bytes | memoryview) -> RecordKey:
    """Raises CorruptMessage if a known record type is cut short."""
    return _read_offset_key(bytes(data)) or _read_any_key(data)


def _read_offset_key(data: bytes) -> OffsetKey | None:
    """The key of an offset, as nearly all are, without an object for its fields. None if it is another key or broken:
    `_read_any_key` says what is wrong with it."""
    try:
        record_type, group_size = _KEY_HEAD.unpack_from(data)
        if record_type not in (OFFSET_COMMIT, LEGACY_OFFSET_COMMIT) or group_size < 0:
            return None
        group_end = _KEY_HEAD.size + group_size
        topic_size: int = I16.unpack_from(data, group_end)[0]
        if topic_size < 0:
            return None
        topic_end = group_end + I16.size + topic_size
        partition = I32.unpack_from(data, topic_end)[0]
        group_id = data[_KEY_HEAD.size : group_end].decode()
        return _new_tuple(OffsetKey, (group_id, _topic_name(data[group_end + I16.size : topic_end]), partition))
    except (StructError, UnicodeDecodeError):
        return None


@lru_cache(_TOPICS_KNOWN)
def _topic_name(raw: bytes) -> str:
    return raw.decode()


@lru_cache(_TOPICS_KNOWN)
def _topic_id(raw: bytes) -> uuid.UUID:
    return uuid.UUID(bytes=raw)


def _read_any_key(data: bytes | memoryview) -> RecordKey:
    reader = CoordinatorFieldReader(data)
    record_type = reader.i16()
    if record_type in (LEGACY_OFFSET_COMMIT, OFFSET_COMMIT):
        return OffsetKey(reader.string(), reader.string(), reader.i32())
    if record_type == GROUP_METADATA:
        return GroupKey(reader.string())
    if record_type in CONSUMER_RECORD_TYPES:
        return read_consumer_key(record_type, reader)
    if record_type in SHARE_RECORD_TYPES:
        return read_share_key(record_type, reader)
    return UnknownKey(record_type)


def write_offset_value(value: OffsetValue) -> bytes:
    expires = value.expire_timestamp != NO_TIMESTAMP
    topic_id = value.topic_id
    if not expires and not value.metadata and topic_id.int:
        # As nearly all of them are. The tagged field is the topic's id.
        head = _PLAIN_VALUE.pack(
            _NEWEST, value.offset, value.leader_epoch, 1, value.commit_timestamp, 1, _TOPIC_ID_TAG, 16
        )
        return head + topic_id.bytes
    if expires and value.topic_id == ZERO_UUID:
        writer = FieldWriter(1).i64(value.offset).string(value.metadata)
        return writer.i64(value.commit_timestamp).i64(value.expire_timestamp).done()
    writer = FieldWriter(_NEWEST).i64(value.offset).i32(value.leader_epoch).compact_string(value.metadata)
    writer.i64(value.commit_timestamp)
    tags = {} if value.topic_id == ZERO_UUID else {_TOPIC_ID_TAG: value.topic_id.bytes}
    if expires:
        tags[_EXPIRE_TIMESTAMP_TAG] = I64.pack(value.expire_timestamp)
    return writer.tags(tags).done()


def read_offset_value(data: bytes | memoryview) -> OffsetValue:
    """Raises CorruptMessage."""
    if len(data) == _PLAIN_VALUE_WITH_ID.size:
        version, offset, leader_epoch, metadata, time, tags, tag, size, raw_id = _PLAIN_VALUE_WITH_ID.unpack(data)
        if (version, metadata, tags, tag, size) == (_NEWEST, 1, 1, _TOPIC_ID_TAG, 16):
            return _new_tuple(OffsetValue, (offset, time, leader_epoch, "", NO_TIMESTAMP, _topic_id(raw_id)))
    return _read_any_offset_value(data)


def _read_any_offset_value(data: bytes | memoryview) -> OffsetValue:
    reader = CoordinatorFieldReader(data)
    version = _known_version(reader, "offset commit")
    compact = version >= _FIRST_FLEXIBLE
    offset = reader.i64()
    leader_epoch = reader.i32() if version >= 3 else NO_EPOCH
    metadata = reader.string(compact=compact)
    commit_timestamp = reader.i64()
    expire_timestamp = reader.i64() if version == 1 else NO_TIMESTAMP
    tags = reader.tags() if compact else {}
    topic_id = tags.get(_TOPIC_ID_TAG)
    if _EXPIRE_TIMESTAMP_TAG in tags:
        expire_timestamp = FieldReader(tags[_EXPIRE_TIMESTAMP_TAG]).i64()
    return OffsetValue(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp=commit_timestamp,
        expire_timestamp=expire_timestamp,
        topic_id=ZERO_UUID if topic_id is None else uuid.UUID(bytes=topic_id),
    )


def write_group_value(value: GroupValue) -> bytes:
    writer = FieldWriter(3).string(value.protocol_type).i32(value.generation).string(value.protocol)
    writer.string(value.leader).i64(value.state_timestamp).i32(len(value.members))
    for member in value.members:
        writer.string(member.member_id).string(member.group_instance_id)
        writer.string(member.client_id).string(member.client_host)
        writer.i32(member.rebalance_timeout_ms).i32(member.session_timeout_ms)
        writer.blob(member.subscription).blob(member.assignment)
    return writer.done()


def read_group_value(data: bytes | memoryview) -> GroupValue:
    reader = CoordinatorFieldReader(data)
    version = _known_version(reader, "group metadata")
    compact = version >= _FIRST_FLEXIBLE
    protocol_type = reader.string(compact=compact)
    generation = reader.i32()
    protocol = reader.nullable_string(compact=compact)
    leader = reader.nullable_string(compact=compact)
    state_timestamp = reader.i64() if version >= 2 else NO_TIMESTAMP
    members = tuple(_read_member(reader, version) for _ in range(reader.array_length(compact=compact)))
    return GroupValue(
        protocol_type=protocol_type,
        generation=generation,
        protocol=protocol,
        leader=leader,
        state_timestamp=state_timestamp,
        members=members,
    )


def _read_member(reader: CoordinatorFieldReader, version: int) -> MemberValue:
    compact = version >= _FIRST_FLEXIBLE
    member_id = reader.string(compact=compact)
    instance_id = reader.nullable_string(compact=compact) if version >= 3 else None
    client_id = reader.string(compact=compact)
    client_host = reader.string(compact=compact)
    rebalance_timeout = reader.i32() if version >= 1 else -1
    session_timeout = reader.i32()
    subscription = reader.blob(compact=compact)
    assignment = reader.blob(compact=compact)
    if compact:
        reader.tags()
    return MemberValue(
        member_id=member_id,
        group_instance_id=instance_id,
        client_id=client_id,
        client_host=client_host,
        rebalance_timeout_ms=session_timeout if rebalance_timeout == -1 else rebalance_timeout,
        session_timeout_ms=session_timeout,
        subscription=subscription,
        assignment=assignment,
    )


def _known_version(reader: CoordinatorFieldReader, what: str) -> int:
    version = reader.i16()
    if not 0 <= version <= 4:
        raise CorruptMessage(f"Records of type {what} have versions 0 to 4; this record has version {version}.")
    return version
