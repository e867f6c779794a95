"""Messages of ConsumerProtocolSubscription. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_array_length,
    read_nullable_bytes,
    read_nullable_string,
    read_numbers,
    read_string,
    truncated,
    write_array_length,
    write_nullable_bytes,
    write_nullable_string,
    write_numbers,
    write_string,
)
from strandline.wire.structure import Structure

_INT32 = Struct(">i")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TopicPartition(Structure):
    """Versions 1 to 3."""

    topic: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ConsumerProtocolSubscription(Structure):
    """Versions 0 to 3."""

    topics: list[str] = field(default_factory=list)
    user_data: bytes | None = None
    owned_partitions: list[TopicPartition] = field(default_factory=list)  # from version 1 on
    generation_id: int = -1  # from version 2 on
    rack_id: str | None = None  # from version 3 on


def _read_topic_partition(buffer: memoryview, position: int, version: int) -> tuple[TopicPartition, int]:
    topic, position = read_string(buffer, position)
    count, position = read_array_length(buffer, position, 4)
    partitions, position = read_numbers(buffer, position, count, "i")
    return TopicPartition(topic=topic, partitions=partitions), position


def _write_topic_partition(out: bytearray, message: TopicPartition, version: int) -> None:
    write_string(out, message.topic)
    write_numbers(out, message.partitions, "i")


def _read_consumer_protocol_subscription(
    buffer: memoryview, position: int, version: int
) -> tuple[ConsumerProtocolSubscription, int]:
    count, position = read_array_length(buffer, position, 2)
    topics: list[str] = []
    for _ in range(count):
        text, position = read_string(buffer, position)
        topics.append(text)
    user_data, position = read_nullable_bytes(buffer, position)
    owned_partitions: list[TopicPartition] = []
    if version >= 1:
        count, position = read_array_length(buffer, position, 4)
        owned_partitions = []
        for _ in range(count):
            topic_partition, position = _read_topic_partition(buffer, position, version)
            owned_partitions.append(topic_partition)
    generation_id: int = -1
    if version >= 2:
        (generation_id,) = _INT32.unpack_from(buffer, position)
        position += 4
    rack_id: str | None = None
    if version >= 3:
        rack_id, position = read_nullable_string(buffer, position)
    return ConsumerProtocolSubscription(
        topics=topics,
        user_data=user_data,
        owned_partitions=owned_partitions,
        generation_id=generation_id,
        rack_id=rack_id,
    ), position


def _write_consumer_protocol_subscription(out: bytearray, message: ConsumerProtocolSubscription, version: int) -> None:
    write_array_length(out, len(message.topics))
    for text in message.topics:
        write_string(out, text)
    write_nullable_bytes(out, message.user_data)
    if version >= 1:
        write_array_length(out, len(message.owned_partitions))
        for topic_partition in message.owned_partitions:
            _write_topic_partition(out, topic_partition, version)
    if version >= 2:
        out += _INT32.pack(message.generation_id)
    if version >= 3:
        write_nullable_string(out, message.rack_id)


def read_consumer_protocol_subscription(
    buffer: memoryview, position: int, version: int
) -> tuple[ConsumerProtocolSubscription, int]:
    """Read a ConsumerProtocolSubscription. Raises MalformedRequest."""
    try:
        return _read_consumer_protocol_subscription(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ConsumerProtocolSubscription") from error


def write_consumer_protocol_subscription(out: bytearray, message: ConsumerProtocolSubscription, version: int) -> None:
    """Append a ConsumerProtocolSubscription to `out`."""
    _write_consumer_protocol_subscription(out, message, version)
