"""Messages of ConsumerProtocolAssignment. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_array_length,
    read_nullable_bytes,
    read_numbers,
    read_string,
    truncated,
    write_array_length,
    write_nullable_bytes,
    write_numbers,
    write_string,
)
from strandline.wire.structure import Structure


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TopicPartition(Structure):
    """Versions 0 to 3."""

    topic: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ConsumerProtocolAssignment(Structure):
    """Versions 0 to 3."""

    assigned_partitions: list[TopicPartition] = field(default_factory=list)
    user_data: bytes | None = None


def _read_topic_partition(buffer: memoryview, position: int, version: int) -> tuple[TopicPartition, int]:
    topic, position = read_string(buffer, position)
    count, position = read_array_length(buffer, position, 4)
    partitions, position = read_numbers(buffer, position, count, "i")
    return TopicPartition(topic=topic, partitions=partitions), position


def _write_topic_partition(out: bytearray, message: TopicPartition, version: int) -> None:
    write_string(out, message.topic)
    write_numbers(out, message.partitions, "i")


def _read_consumer_protocol_assignment(
    buffer: memoryview, position: int, version: int
) -> tuple[ConsumerProtocolAssignment, int]:
    count, position = read_array_length(buffer, position, 4)
    assigned_partitions: list[TopicPartition] = []
    for _ in range(count):
        topic_partition, position = _read_topic_partition(buffer, position, version)
        assigned_partitions.append(topic_partition)
    user_data, position = read_nullable_bytes(buffer, position)
    return ConsumerProtocolAssignment(assigned_partitions=assigned_partitions, user_data=user_data), position


def _write_consumer_protocol_assignment(out: bytearray, message: ConsumerProtocolAssignment, version: int) -> None:
    write_array_length(out, len(message.assigned_partitions))
    for topic_partition in message.assigned_partitions:
        _write_topic_partition(out, topic_partition, version)
    write_nullable_bytes(out, message.user_data)


def read_consumer_protocol_assignment(
    buffer: memoryview, position: int, version: int
) -> tuple[ConsumerProtocolAssignment, int]:
    """Read a ConsumerProtocolAssignment. Raises MalformedRequest."""
    try:
        return _read_consumer_protocol_assignment(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ConsumerProtocolAssignment") from error


def write_consumer_protocol_assignment(out: bytearray, message: ConsumerProtocolAssignment, version: int) -> None:
    """Append a ConsumerProtocolAssignment to `out`."""
    _write_consumer_protocol_assignment(out, message, version)
