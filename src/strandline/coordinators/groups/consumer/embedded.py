"""What classic members embed in JoinGroup and SyncGroup: subscriptions and assignments as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from strandline.coordinators.fields import CoordinatorFieldReader, FieldWriter
from strandline.coordinators.groups.modern.partitions import Partitions
from strandline.errors import CorruptMessage
from strandline.metadata import MetadataImage

_FIRST_WITH_OWNED = 1
_FIRST_WITH_GENERATION = 2
_FIRST_WITH_RACK = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedSubscription:
    """What a classic member reads and owns, by topic name."""

    version: int
    topics: tuple[str, ...]
    owned: Mapping[str, frozenset[int]] = field(default_factory=dict)
    rack_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedAssignment:
    """`user_data` is what an assignor of the client's own needs."""

    partitions: Mapping[str, frozenset[int]]
    user_data: bytes = b""


def read_embedded_subscription(data: bytes) -> EmbeddedSubscription:
    """Raises CorruptMessage."""
    reader = CoordinatorFieldReader(data)
    version = _version(reader)
    topics = tuple(reader.string() for _ in range(reader.array_length(compact=False)))
    reader.nullable_bytes(compact=False)
    owned = _read_topics(reader) if version >= _FIRST_WITH_OWNED else {}
    if version >= _FIRST_WITH_GENERATION:
        reader.i32()
    rack_id = reader.nullable_string() if version >= _FIRST_WITH_RACK else None
    return EmbeddedSubscription(version=version, topics=topics, owned=owned, rack_id=rack_id or None)


def read_embedded_assignment(data: bytes) -> EmbeddedAssignment:
    """Raises CorruptMessage. No bytes: nothing is assigned."""
    if not data:
        return EmbeddedAssignment(partitions={})
    reader = CoordinatorFieldReader(data)
    _version(reader)
    return EmbeddedAssignment(partitions=_read_topics(reader), user_data=reader.blob(compact=False))


def write_embedded_assignment(version: int, partitions: Mapping[str, frozenset[int]]) -> bytes:
    writer = FieldWriter(version).array_length(len(partitions), compact=False)
    for topic in sorted(partitions):
        writer.string(topic).array_length(len(partitions[topic]), compact=False)
        for number in sorted(partitions[topic]):
            writer.i32(number)
    return writer.i32(-1).done()


def _version(reader: CoordinatorFieldReader) -> int:
    version = reader.i16()
    if version < 0:
        raise CorruptMessage(f"The embedded consumer protocol has no version {version}.")
    return version


def _read_topics(reader: CoordinatorFieldReader) -> dict[str, frozenset[int]]:
    topics: dict[str, frozenset[int]] = {}
    for _ in range(reader.array_length(compact=False)):
        topic = reader.string()
        topics[topic] = frozenset(reader.i32() for _ in range(reader.array_length(compact=False)))
    return topics


def by_topic_id(partitions: Mapping[str, frozenset[int]], image: MetadataImage) -> Partitions:
    """Topics that do not exist are left out."""
    return {
        image.topics[topic].topic_id: numbers
        for topic, numbers in partitions.items()
        if numbers and topic in image.topics
    }


def by_topic_name(partitions: Partitions, image: MetadataImage) -> Mapping[str, frozenset[int]]:
    """Topics that do not exist any more are left out."""
    return {
        image.topics_by_id[topic_id].name: numbers
        for topic_id, numbers in partitions.items()
        if topic_id in image.topics_by_id
    }
