"""Produce, parsed and written by hand: the one request whose body we never copy.

Versions 3 to 13. Record sets stay memoryviews into the frame. The generated codec of `wire.messages.produce`
describes the same bytes; tests compare the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from strandline.wire.primitives import (
    DECODING_FAILURES,
    MAX_ELEMENTS,
    MalformedRequest,
    at_most,
    read_array_length,
    read_compact_array_length,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_string,
    read_string,
    read_uvarint,
    skip_tags,
    write_compact_nullable_string,
    write_nullable_string,
)
from strandline.wire.topic_fields import write_count, write_topic

MIN_VERSION: Final = 3
MAX_VERSION: Final = 13
FIRST_WITH_RECORD_ERRORS: Final = 8
FIRST_FLEXIBLE: Final = 9
FIRST_WITH_TOPIC_IDS: Final = 13

# Usual frames are shorter, and too short for more partitions than MAX_ELEMENTS.
_LONG_FRAME: Final = 6 * MAX_ELEMENTS

_I16 = Struct(">h")
_I32 = Struct(">i")
_ACKS_TIMEOUT = Struct(">hi")
_INDEX_LENGTH = Struct(">ii")
_ANSWER = Struct(">ihqq")
_I64 = Struct(">q")
_FRAME_HEAD = Struct(">ii")
_SINGLE = Struct(">ihqqq")
# No record errors, no message, no tags of the partition; no tags of the topic; throttle time; no tags.
_SINGLE_END: Final = b"\x01\x00\x00" + b"\x00" + b"\x00\x00\x00\x00" + b"\x00"
_SINGLE_REST: Final = 4 + _SINGLE.size + len(_SINGLE_END)
_MAX_HEADS: Final = 10_000
_single_heads: dict[str | bytes, bytes] = {}


# What follows behind the only partition of a response without an error, from the first version that can have zstd on.
FIRST_SINGLE: Final = 7
_THROTTLE: Final = b"\x00\x00\x00\x00"
_ENDS: Final = {7: _THROTTLE, 8: b"\x00\x00\x00\x00\xff\xff" + _THROTTLE}


class ProduceEntry(NamedTuple):
    """The records for one partition. `topic` is a name, or the 16 bytes of a topic id from version 13 on."""

    topic: str | bytes
    partition: int
    records: memoryview | None


class ProduceRequest(NamedTuple):
    """A Produce request whose records still lie in the frame."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    entries: list[ProduceEntry]


class ProduceAnswer(NamedTuple):
    """One partition of a Produce response."""

    error_code: int = 0
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    error_message: str | None = None
    record_errors: Sequence[tuple[int, str]] = ()


def read_produce_request(frame: memoryview, position: int, version: int) -> ProduceRequest:
    """Parse the body that starts at `position`. Raises MalformedRequest, and nothing else."""
    try:
        if len(frame) <= _LONG_FRAME:
            return _read(frame, position, version)
        with at_most(MAX_ELEMENTS):
            return _read(frame, position, version)
    except DECODING_FAILURES as error:
        raise MalformedRequest(f"The Produce request of version {version} is malformed: {error}.") from error


def _read(frame: memoryview, position: int, version: int) -> ProduceRequest:
    if version >= FIRST_FLEXIBLE:
        return _read_flexible(frame, position, version)
    return _read_plain(frame, position)


def _read_plain(frame: memoryview, position: int) -> ProduceRequest:
    transactional_id, position = read_nullable_string(frame, position)
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, position)
    topics, position = read_array_length(frame, position + 6, 6)
    entries: list[ProduceEntry] = []
    for _ in range(topics):
        topic, position = read_string(frame, position)
        partitions, position = read_array_length(frame, position, 8)
        for _ in range(partitions):
            partition, length = _INDEX_LENGTH.unpack_from(frame, position)
            position += 8
            records, position = _records(frame, position, length)
            entries.append(ProduceEntry(topic, partition, records))
    return ProduceRequest(transactional_id, acks, timeout_ms, entries)


def _read_flexible(frame: memoryview, position: int, version: int) -> ProduceRequest:
    transactional_id, position = read_compact_nullable_string(frame, position)
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, position)
    topics, position = read_compact_array_length(frame, position + 6, 3)
    entries: list[ProduceEntry] = []
    topic: str | bytes
    for _ in range(topics):
        if version >= FIRST_WITH_TOPIC_IDS:
            topic = bytes(frame[position : position + 16])
            position += 16
        else:
            topic, position = read_compact_string(frame, position)
        partitions, position = read_compact_array_length(frame, position, 6)
        for _ in range(partitions):
            (partition,) = _I32.unpack_from(frame, position)
            length, position = read_uvarint(frame, position + 4)
            records, position = _records(frame, position, length - 1)
            position = skip_tags(frame, position)
            entries.append(ProduceEntry(topic, partition, records))
        position = skip_tags(frame, position)
    skip_tags(frame, position)  # a request without its last byte was cut: none of its records may be written
    return ProduceRequest(transactional_id, acks, timeout_ms, entries)


def _records(frame: memoryview, position: int, length: int) -> tuple[memoryview | None, int]:
    if length < 0:
        return None, position
    end = position + length
    if end > len(frame):
        raise MalformedRequest(f"A record set of {length} bytes does not fit into {len(frame) - position} bytes.")
    return frame[position:end], end


def write_produce_response(
    correlation_id: int, version: int, entries: list[ProduceEntry], answers: list[ProduceAnswer]
) -> bytes:
    """The whole response frame, length prefix included. `answers[i]` is for `entries[i]`."""
    if len(entries) == 1 and version >= FIRST_FLEXIBLE:
        answer = answers[0]
        if answer.error_message is None and not answer.record_errors:
            return _write_single(correlation_id, entries[0], answer)
    out = bytearray(8)
    flexible = version >= FIRST_FLEXIBLE
    if flexible:
        out.append(0)
    groups = _by_topic(entries, answers)
    write_count(out, len(groups), flexible=flexible)
    for topic, rows in groups:
        write_topic(out, topic, flexible=flexible)
        write_count(out, len(rows), flexible=flexible)
        for partition, answer in rows:
            _write_answer(out, partition, answer, version)
        if flexible:
            out.append(0)
    out += b"\x00\x00\x00\x00\x00" if flexible else b"\x00\x00\x00\x00"
    _I32.pack_into(out, 0, len(out) - 4)
    _I32.pack_into(out, 4, correlation_id)
    return bytes(out)


def _write_single(correlation_id: int, entry: ProduceEntry, answer: ProduceAnswer) -> bytes:
    """The most frequent response: one partition that was written. Its head depends on the topic only, and is cached."""
    head = _single_heads.get(entry.topic)
    if head is None:
        start = bytearray(b"\x00\x02")  # header tags, one topic
        write_topic(start, entry.topic, flexible=True)
        start.append(2)  # one partition
        if len(_single_heads) >= _MAX_HEADS:
            _single_heads.clear()
        head = _single_heads[entry.topic] = bytes(start)
    return b"".join(
        (
            _FRAME_HEAD.pack(len(head) + _SINGLE_REST, correlation_id),
            head,
            _SINGLE.pack(
                entry.partition,
                answer.error_code,
                answer.base_offset,
                answer.log_append_time_ms,
                answer.log_start_offset,
            ),
            _SINGLE_END,
        )
    )


def single_frame(version: int, topic: str | bytes) -> tuple[bytes, bytes]:
    """What stands around a `SINGLE` in the response about one partition without an error.

    The first is what lies behind the correlation id. Versions from FIRST_SINGLE on.
    """
    whole = write_produce_response(0, version, [ProduceEntry(topic, 0, None)], [ProduceAnswer()])
    end = _ENDS.get(version, _SINGLE_END)
    return whole[_FRAME_HEAD.size : -len(end) - _SINGLE.size], end


def _by_topic(
    entries: list[ProduceEntry], answers: list[ProduceAnswer]
) -> list[tuple[str | bytes, list[tuple[int, ProduceAnswer]]]]:
    groups: list[tuple[str | bytes, list[tuple[int, ProduceAnswer]]]] = []
    for entry, answer in zip(entries, answers, strict=True):
        if not groups or groups[-1][0] != entry.topic:
            groups.append((entry.topic, []))
        groups[-1][1].append((entry.partition, answer))
    return groups


def _write_answer(out: bytearray, partition: int, answer: ProduceAnswer, version: int) -> None:
    out += _ANSWER.pack(partition, answer.error_code, answer.base_offset, answer.log_append_time_ms)
    if version >= 5:
        out += _I64.pack(answer.log_start_offset)
    if version >= FIRST_WITH_RECORD_ERRORS:
        flexible = version >= FIRST_FLEXIBLE
        write_count(out, len(answer.record_errors), flexible=flexible)
        for index, message in answer.record_errors:
            out += _I32.pack(index)
            _write_message(out, message, flexible=flexible)
            if flexible:
                out.append(0)
        _write_message(out, answer.error_message, flexible=flexible)
        if flexible:
            out.append(0)


def _write_message(out: bytearray, message: str | None, *, flexible: bool) -> None:
    if flexible:
        write_compact_nullable_string(out, message)
    else:
        write_nullable_string(out, message)
