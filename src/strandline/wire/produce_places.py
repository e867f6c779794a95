"""Where the records of an ordinary Produce request lie, and the response when all of them were written.

For requests that need nothing else of `wire.produce_codec`: every array and every batch has something in it, no tag
says anything, and nothing follows. Tests compare the two. Versions from FIRST_SINGLE on.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, TypeAlias

from strandline.wire.primitives import (
    DECODING_FAILURES,
    MAX_ELEMENTS,
    MalformedRequest,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_string,
    read_string,
    read_uvarint,
)
from strandline.wire.produce_codec import FIRST_FLEXIBLE, FIRST_WITH_RECORD_ERRORS, FIRST_WITH_TOPIC_IDS
from strandline.wire.topic_fields import write_count, write_topic

Place: TypeAlias = tuple[int, int, int]
"""A partition, and where its records begin and end."""
TopicPlaces: TypeAlias = tuple[bytes, list[Place]]
"""A topic as it lies in the request, which is how it lies in the response, and its partitions."""

_TOPIC_ID_BYTES: Final = 16
_ACKS_TIMEOUT_BYTES: Final = 6
_LEAST_RECORDS: Final = 61  # the header of a batch
# Shorter bodies cannot have too many elements: at most two, a topic and a partition, for each batch.
_LONGEST: Final = MAX_ELEMENTS // 2 * _LEAST_RECORDS

_I16: Final = Struct(">h")
_I32: Final = Struct(">i")
_INDEX_LENGTH: Final = Struct(">ii")
_FRAME_HEAD: Final = Struct(">ii")
_ROW: Final = Struct(">ihqqq")
_NO_ERROR: Final = 0
_NO_TIMESTAMP: Final = -1

_THROTTLE: Final = b"\x00\x00\x00\x00"
_NO_RECORD_ERRORS: Final = b"\x00\x00\x00\x00\xff\xff"
_COMPACT_NO_RECORD_ERRORS: Final = b"\x01\x00\x00"
_NO_TAGS: Final = b"\x00"


def find_places(view: memoryview, position: int, end: int, version: int) -> list[TopicPlaces]:
    """The topics of the body whose topics begin at `position` and that ends at `end`.

    Nothing if it is not ordinary, or is no request at all: `read_produce_request` finds out.
    """
    if end - position > _LONGEST:
        return []
    try:
        if version >= FIRST_FLEXIBLE:
            return _find_flexible(view, position, end, has_ids=version >= FIRST_WITH_TOPIC_IDS)
        return _find_plain(view, position, end)
    except (*DECODING_FAILURES, MalformedRequest):
        return []


def _find_flexible(view: memoryview, position: int, end: int, *, has_ids: bool) -> list[TopicPlaces]:
    topics: list[TopicPlaces] = []
    topic = b""
    count, position = read_uvarint(view, position)
    for _ in range(count - 1):
        before, topic_at = topic, position
        if has_ids:
            position += _TOPIC_ID_BYTES
        else:
            length, position = read_uvarint(view, position)
            position += length - 1
        topic = bytes(view[topic_at:position])
        partitions, position = read_uvarint(view, position)
        places: list[Place] = []
        for _ in range(partitions - 1):
            (index,) = _I32.unpack_from(view, position)
            length, start = read_uvarint(view, position + 4)
            position = start + length - 1
            if length <= _LEAST_RECORDS or position >= end or view[position]:
                return []
            places.append((index, start, position))
            position += 1
        if not places or topic == before or view[position]:
            return []
        topics.append((topic, places))
        position += 1
    return topics if position + 1 == end and not view[position] else []


def _find_plain(view: memoryview, position: int, end: int) -> list[TopicPlaces]:
    topics: list[TopicPlaces] = []
    topic = b""
    (count,) = _I32.unpack_from(view, position)
    position += 4
    for _ in range(count):
        before, topic_at = topic, position
        (length,) = _I16.unpack_from(view, position)
        if length < 0:
            return []
        position += 2 + length
        topic = bytes(view[topic_at:position])
        (partitions,) = _I32.unpack_from(view, position)
        position += 4
        places: list[Place] = []
        for _ in range(partitions):
            index, length = _INDEX_LENGTH.unpack_from(view, position)
            start = position + 8
            position = start + length
            if length < _LEAST_RECORDS or position > end:
                return []
            places.append((index, start, position))
        if not places or topic == before:
            return []
        topics.append((topic, places))
    return topics if position == end else []


def read_topic(raw: bytes, version: int) -> str | bytes | None:
    """The topic that lies so in requests: its name, or its id. None if responses would not have it so."""
    if version >= FIRST_WITH_TOPIC_IDS:
        return raw if len(raw) == _TOPIC_ID_BYTES else None
    flexible = version >= FIRST_FLEXIBLE
    try:
        name, _ = (read_compact_string if flexible else read_string)(memoryview(raw), 0)
    except (*DECODING_FAILURES, MalformedRequest):
        return None
    written = bytearray()
    write_topic(written, name, flexible=flexible)
    return name if written == raw else None


def find_topics(frame: memoryview, position: int, version: int) -> int:
    """Where the topics of the request with this body begin, which was read before: behind acks and timeout."""
    read = read_compact_nullable_string if version >= FIRST_FLEXIBLE else read_nullable_string
    return read(frame, position)[1] + _ACKS_TIMEOUT_BYTES


def write_successes(
    correlation_id: int, version: int, topics: list[TopicPlaces], offsets: list[tuple[int, int]]
) -> bytes:
    """The whole response frame, length prefix included. `offsets[i]` is first offset and log start of place i."""
    flexible = version >= FIRST_FLEXIBLE
    if flexible:
        out, row_end = bytearray(9), _COMPACT_NO_RECORD_ERRORS
    else:
        out, row_end = bytearray(8), _NO_RECORD_ERRORS if version >= FIRST_WITH_RECORD_ERRORS else b""
    write_count(out, len(topics), flexible=flexible)
    at = 0
    for topic, places in topics:
        out += topic
        write_count(out, len(places), flexible=flexible)
        for index, _, _ in places:
            first_offset, log_start = offsets[at]
            out += _ROW.pack(index, _NO_ERROR, first_offset, _NO_TIMESTAMP, log_start)
            out += row_end
            at += 1
        if flexible:
            out += _NO_TAGS
    out += _THROTTLE
    if flexible:
        out += _NO_TAGS
    _FRAME_HEAD.pack_into(out, 0, len(out) - 4, correlation_id)
    return bytes(out)
