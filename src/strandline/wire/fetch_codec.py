"""Fetch, parsed and written by hand: records go from file to socket without passing through Python.

Versions 4 to 18. A response is a list of parts: bytes, and record sets that know their length but not
their content. The generated codec of `wire.messages.fetch` describes the same bytes; tests compare the
two.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from strandline.reads import RecordSet
from strandline.wire.primitives import (
    DECODING_FAILURES,
    MAX_ELEMENTS,
    MalformedRequest,
    at_most,
    read_array_length,
    read_compact_array_length,
    read_compact_string,
    read_string,
    read_uvarint,
    skip_tags,
)
from strandline.wire.topic_fields import write_count, write_topic

MIN_VERSION: Final = 4
MAX_VERSION: Final = 18
FIRST_WITH_SESSIONS: Final = 7
FIRST_FLEXIBLE: Final = 12
FIRST_WITH_TOPIC_IDS: Final = 13

NO_SESSION: Final = 0

_I16 = Struct(">h")
_I32 = Struct(">i")
_I64 = Struct(">q")
_REQUEST_V4 = Struct(">iiiib")
_REQUEST_V7 = Struct(">iiiibii")
_REQUEST_V15 = Struct(">iiibii")
_PARTITION_V4 = Struct(">iqi")
_PARTITION_V5 = Struct(">iqqi")
_PARTITION_V9 = Struct(">iiqqi")
_PARTITION_V12 = Struct(">iiqiqi")
_FRAME_HEAD = Struct(">ii")
_SESSION = Struct(">hi")
_HEAD_V4 = Struct(">iii")
_HEAD_V7 = Struct(">iiihi")
_HEAD_V12 = Struct(">iiBihi")
_ANSWER_V4 = Struct(">ihqq")
_ANSWER_V5 = Struct(">ihqqq")
_ABORTED = Struct(">qq")
_REPLICA = Struct(">iq")
_DIVERGING = Struct(">BBiqB")


Part: TypeAlias = bytearray | bytes | RecordSet


class FetchEntry(NamedTuple):
    """One partition of a fetch. `topic` is a name, or the 16 bytes of a topic id from version 13 on."""

    topic: str | bytes
    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int


class FetchRequest(NamedTuple):
    """A Fetch request, whatever its version."""

    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    entries: list[FetchEntry]
    forgotten: list[tuple[str | bytes, int]]
    rack_id: str
    replica_epoch: int = -1
    """The broker epoch of a follower, from version 15 on."""


class FetchAnswer(NamedTuple):
    """One partition of a Fetch response."""

    topic: str | bytes
    partition: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted: Sequence[tuple[int, int]] | None = None
    records: RecordSet | None = None
    diverging_epoch: tuple[int, int] | None = None


def read_fetch_request(frame: memoryview, position: int, version: int) -> FetchRequest:
    """Parse the body that starts at `position`. Raises MalformedRequest, and nothing else."""
    try:
        if len(frame) <= MAX_ELEMENTS:  # a shorter frame cannot hold more elements
            return _read(frame, position, version)
        with at_most(MAX_ELEMENTS):
            return _read(frame, position, version)
    except DECODING_FAILURES as error:
        raise MalformedRequest(f"The Fetch request of version {version} is malformed: {error}.") from error


def _read(frame: memoryview, position: int, version: int) -> FetchRequest:
    if version >= FIRST_FLEXIBLE:
        return _read_flexible(frame, position, version)
    return _read_plain(frame, position, version)


def _read_plain(frame: memoryview, position: int, version: int) -> FetchRequest:
    session_id, session_epoch = NO_SESSION, -1
    if version >= FIRST_WITH_SESSIONS:
        replica, wait, low, high, isolation, session_id, session_epoch = _REQUEST_V7.unpack_from(frame, position)
        position += _REQUEST_V7.size
    else:
        replica, wait, low, high, isolation = _REQUEST_V4.unpack_from(frame, position)
        position += _REQUEST_V4.size
    entries: list[FetchEntry] = []
    count, position = read_array_length(frame, position, 4)
    for _ in range(count):
        topic, position = read_string(frame, position)
        partitions, position = read_array_length(frame, position, 4)
        for _ in range(partitions):
            entry, position = _plain_entry(topic, frame, position, version)
            entries.append(entry)
    forgotten: list[tuple[str | bytes, int]] = []
    if version >= FIRST_WITH_SESSIONS:
        count, position = read_array_length(frame, position, 4)
        for _ in range(count):
            topic, position = read_string(frame, position)
            partitions, position = read_array_length(frame, position, 4)
            for _ in range(partitions):
                forgotten.append((topic, _I32.unpack_from(frame, position)[0]))
                position += 4
    rack = read_string(frame, position)[0] if version >= 11 else ""
    return FetchRequest(replica, wait, low, high, isolation, session_id, session_epoch, entries, forgotten, rack)


def _plain_entry(topic: str, frame: memoryview, position: int, version: int) -> tuple[FetchEntry, int]:
    if version >= 9:
        partition, epoch, offset, start, size = _PARTITION_V9.unpack_from(frame, position)
        return FetchEntry(topic, partition, epoch, offset, -1, start, size), position + _PARTITION_V9.size
    if version >= 5:
        partition, offset, start, size = _PARTITION_V5.unpack_from(frame, position)
        return FetchEntry(topic, partition, -1, offset, -1, start, size), position + _PARTITION_V5.size
    partition, offset, size = _PARTITION_V4.unpack_from(frame, position)
    return FetchEntry(topic, partition, -1, offset, -1, -1, size), position + _PARTITION_V4.size


def _read_flexible(frame: memoryview, position: int, version: int) -> FetchRequest:
    replica = -1
    if version < 15:
        (replica,) = _I32.unpack_from(frame, position)
        position += 4
    wait, low, high, isolation, session_id, session_epoch = _REQUEST_V15.unpack_from(frame, position)
    position += _REQUEST_V15.size
    entries: list[FetchEntry] = []
    unpack, size = _PARTITION_V12.unpack_from, _PARTITION_V12.size
    count, position = read_compact_array_length(frame, position, 4)
    for _ in range(count):
        topic, position = _topic(frame, position, version)
        partitions, position = read_compact_array_length(frame, position, 4)
        for _ in range(partitions):
            partition, epoch, offset, fetched_epoch, start, limit = unpack(frame, position)
            position += size
            position = position + 1 if frame[position] == 0 else skip_tags(frame, position)
            entries.append(FetchEntry(topic, partition, epoch, offset, fetched_epoch, start, limit))
        position = skip_tags(frame, position)
    forgotten, position = _flexible_forgotten(frame, position, version)
    rack, position = read_compact_string(frame, position)
    replica, replica_epoch = _replica_from_tags(frame, position, replica)
    return FetchRequest(
        replica, wait, low, high, isolation, session_id, session_epoch, entries, forgotten, rack, replica_epoch
    )


def _flexible_forgotten(frame: memoryview, position: int, version: int) -> tuple[list[tuple[str | bytes, int]], int]:
    forgotten: list[tuple[str | bytes, int]] = []
    count, position = read_compact_array_length(frame, position, 4)
    for _ in range(count):
        topic, position = _topic(frame, position, version)
        partitions, position = read_compact_array_length(frame, position, 4)
        for _ in range(partitions):
            forgotten.append((topic, _I32.unpack_from(frame, position)[0]))
            position += 4
        position = skip_tags(frame, position)
    return forgotten, position


def _replica_from_tags(frame: memoryview, position: int, replica: int) -> tuple[int, int]:
    """From version 15 on, the replica id and its broker epoch are in tag 1 (and absent for consumers)."""
    replica_epoch = -1
    count, position = read_uvarint(frame, position)
    for _ in range(count):
        tag, position = read_uvarint(frame, position)
        size, position = read_uvarint(frame, position)
        if tag == 1:
            replica, replica_epoch = _REPLICA.unpack_from(frame, position)
        position += size
    return replica, replica_epoch


def _topic(frame: memoryview, position: int, version: int) -> tuple[str | bytes, int]:
    if version >= FIRST_WITH_TOPIC_IDS:
        end = position + 16
        if end > len(frame):
            raise MalformedRequest("The Fetch request ends inside a topic id.")
        return bytes(frame[position:end]), end
    return read_compact_string(frame, position)


def write_fetch_response(
    correlation_id: int,
    version: int,
    answers: Sequence[FetchAnswer],
    *,
    error_code: int = 0,
    session_id: int = NO_SESSION,
) -> list[Part]:
    """The whole response frame as parts to send one after the other, length prefix included."""
    head = out = bytearray(8)
    parts: list[Part] = [head]
    flexible = version >= FIRST_FLEXIBLE
    out += b"\x00\x00\x00\x00\x00" if flexible else b"\x00\x00\x00\x00"
    if version >= FIRST_WITH_SESSIONS:
        out += _SESSION.pack(error_code, session_id)
    size = -4
    groups = _by_topic(answers)
    write_count(out, len(groups), flexible=flexible)
    for topic, rows in groups:
        write_topic(out, topic, flexible=flexible)
        write_count(out, len(rows), flexible=flexible)
        for answer in rows:
            _write_answer(out, answer, version)
            records = answer.records
            if records is not None and records.length:
                size += len(out) + records.length
                out = bytearray()
                parts.append(records)
                parts.append(out)
            if flexible:
                _write_answer_tags(out, answer)
        if flexible:
            out.append(0)
    if flexible:
        out.append(0)
    _FRAME_HEAD.pack_into(head, 0, size + len(out), correlation_id)
    return parts


def write_fetch_body(answer: FetchAnswer, records: bytes | bytearray, version: int) -> bytes:
    """What follows the head of a response with this partition alone, whose records are `records`."""
    flexible = version >= FIRST_FLEXIBLE
    out = bytearray()
    write_count(out, 1, flexible=flexible)
    write_topic(out, answer.topic, flexible=flexible)
    write_count(out, 1, flexible=flexible)
    _write_answer(out, answer, version)
    out += records
    if flexible:
        _write_answer_tags(out, answer)
        out += b"\x00\x00"
    return bytes(out)


def write_fetch_head(correlation_id: int, version: int, session_id: int, body_size: int) -> bytes:
    """The beginning of a response without an error of its own, up to its partitions; with its length prefix."""
    if version >= FIRST_FLEXIBLE:
        return _HEAD_V12.pack(_HEAD_V12.size - 4 + body_size, correlation_id, 0, 0, 0, session_id)
    if version >= FIRST_WITH_SESSIONS:
        return _HEAD_V7.pack(_HEAD_V7.size - 4 + body_size, correlation_id, 0, 0, session_id)
    return _HEAD_V4.pack(_HEAD_V4.size - 4 + body_size, correlation_id, 0)


def _by_topic(answers: Sequence[FetchAnswer]) -> list[tuple[str | bytes, list[FetchAnswer]]]:
    groups: list[tuple[str | bytes, list[FetchAnswer]]] = []
    last: str | bytes | None = None
    for answer in answers:
        if answer.topic != last:
            last = answer.topic
            groups.append((last, []))
        groups[-1][1].append(answer)
    return groups


def _write_answer(out: bytearray, answer: FetchAnswer, version: int) -> None:
    """Everything of a partition up to and including the length of its records."""
    flexible = version >= FIRST_FLEXIBLE
    fixed = (answer.partition, answer.error_code, answer.high_watermark, answer.last_stable_offset)
    if version >= 5:
        out += _ANSWER_V5.pack(*fixed, answer.log_start_offset)
    else:
        out += _ANSWER_V4.pack(*fixed)
    aborted = answer.aborted
    if aborted is None:
        out += b"\x00" if flexible else b"\xff\xff\xff\xff"
    else:
        write_count(out, len(aborted), flexible=flexible)
        for row in aborted:
            out += _ABORTED.pack(*row)
            if flexible:
                out.append(0)
    if version >= 11:
        out += b"\xff\xff\xff\xff"  # no preferred read replica
    write_count(out, answer.records.length if answer.records is not None else 0, flexible=flexible)


def _write_answer_tags(out: bytearray, answer: FetchAnswer) -> None:
    if answer.diverging_epoch is None:
        out.append(0)
    else:
        epoch, end_offset = answer.diverging_epoch
        out.append(1)
        out += _DIVERGING.pack(0, 13, epoch, end_offset, 0)
