"""Keys and values that the records of all modern groups have in common, and the fields that they are made of.

Every key starts with its record type and is not compact; every value is compact. Topics are written in the order that
they have: Kafka's is that of a hash table, ours that of the ids (`in_order`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar, Final
from uuid import UUID

from strandline.coordinators.fields import CoordinatorFieldReader, FieldWriter
from strandline.coordinators.groups.modern.partitions import Partitions
from strandline.records.fields import I64, FieldReader

FIRST_TAG: Final = 0


@dataclass(frozen=True, slots=True)
class ModernRecordKey:
    """`name` is the id of a member or whatever else the record type names, and empty for records of the group."""

    NAMED: ClassVar[frozenset[int]] = frozenset()
    """The record types whose key has a name."""

    kind: IntEnum
    group_id: str
    name: str = ""


def write_record_key(key: ModernRecordKey) -> bytes:
    """Raises InvalidRequest if a name is too long for the record."""
    writer = FieldWriter(key.kind).string(key.group_id)
    return (writer.string(key.name) if key.kind in key.NAMED else writer).done()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEpochValue:
    """The epoch of a group, and the hash of the topics that it reads; 0 without topics."""

    epoch: int
    metadata_hash: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetEpochValue:
    """The epoch for which the target assignment was computed, and when; 0 if that is not known."""

    epoch: int
    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetValue:
    """What a member is to have in the end."""

    partitions: Partitions = field(default_factory=dict)


# Fields -------------------------------------------------------------------------------------------------------------


def i64_tag(value: int) -> Mapping[int, bytes]:
    """The first tagged field, if it is not 0."""
    return {FIRST_TAG: I64.pack(value)} if value else {}


def read_i64_tag(reader: CoordinatorFieldReader) -> int:
    tags = reader.tags()
    return FieldReader(tags[FIRST_TAG]).i64() if FIRST_TAG in tags else 0


def write_strings(writer: FieldWriter, values: Sequence[str]) -> None:
    writer.array_length(len(values), compact=True)
    for value in values:
        writer.compact_string(value)


def read_strings(reader: CoordinatorFieldReader) -> tuple[str, ...]:
    return tuple(reader.string(compact=True) for _ in range(reader.array_length(compact=True)))


def write_numbers(writer: FieldWriter, values: Collection[int]) -> FieldWriter:
    writer.array_length(len(values), compact=True)
    for value in values:
        writer.i32(value)
    return writer


def read_numbers(reader: CoordinatorFieldReader) -> tuple[int, ...]:
    return tuple(reader.i32() for _ in range(reader.array_length(compact=True)))


def write_partitions(writer: FieldWriter, partitions: Partitions) -> None:
    writer.array_length(len(partitions), compact=True)
    for topic_id, numbers in partitions.items():
        write_numbers(writer.raw(topic_id.bytes), sorted(numbers)).tags({})


def read_partitions(reader: CoordinatorFieldReader) -> Partitions:
    found: dict[UUID, frozenset[int]] = {}
    for _ in range(reader.array_length(compact=True)):
        topic_id, numbers = reader.uuid(), frozenset(read_numbers(reader))
        reader.tags()
        if numbers:
            found[topic_id] = numbers
    return found
