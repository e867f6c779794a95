"""Fetch as a follower speaks it: requests written and answers read by hand, versions 15 to 18.

The records of an answer stay where they were received: each partition has a view of the frame. The generated codec of
`wire.messages.fetch` describes the same bytes, and so does `wire.fetch_codec` from the other side; tests compare them.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from strandline.wire.fetch_codec import FetchEntry
from strandline.wire.primitives import (
    DECODING_FAILURES,
    MAX_ELEMENTS,
    MalformedRequest,
    at_most,
    read_compact_array_length,
    read_compact_nullable_array_length,
    read_tag,
    read_uvarint,
    skip_tags,
    write_compact_array_length,
    write_nullable_string,
)

FIRST_OF_FOLLOWERS: Final = 15
"""The first version that carries the broker epoch of a follower, without which a leader cannot tell it from an earlier
incarnation."""

_FETCH: Final = 1
_LOG_END: Final = 0
_NO_RACK: Final = b"\x01"
_REPLICA_STATE_TAG: Final = 1
_REPLICA_STATE_SIZE: Final = 13
_DIVERGING_TAG: Final = 0
_ABORTED_SIZE: Final = 17

_HEAD = Struct(">ihhi")
_I32 = Struct(">i")
_LIMITS = Struct(">iiibii")
_ENTRY = Struct(">iiqiqiB")
_REPLICA_STATE = Struct(">BBiqB")
_ANSWER_HEAD = Struct(">ihi")
_ROW = Struct(">ihqqq")
_EPOCH_AND_END = Struct(">iq")


class FollowerFetch(NamedTuple):
    """A Fetch request of a follower. Its partitions have the 16 bytes of their topic ids."""

    replica_id: int
    replica_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    session_id: int
    session_epoch: int
    entries: Sequence[FetchEntry]
    forgotten: Sequence[tuple[bytes, int]]


class FetchedPartition(NamedTuple):
    """One partition of an answer."""

    topic_id: bytes
    partition: int
    error_code: int
    high_watermark: int
    log_start_offset: int
    diverging_epoch: tuple[int, int] | None
    """(epoch, end offset) of the newest epoch that the leader has of those up to the one that was asked for; None if
    the follower's log does not differ from the leader's."""
    records: memoryview | None
    """A part of the frame; None if there are none."""


class FetchedPartitions(NamedTuple):
    """A whole answer."""

    error_code: int
    session_id: int
    partitions: list[FetchedPartition]


def write_follower_fetch(request: FollowerFetch, *, correlation_id: int, version: int, client_id: str) -> bytearray:
    """The frame of a request, with its length before it."""
    out = bytearray(_HEAD.pack(0, _FETCH, version, correlation_id))
    write_nullable_string(out, client_id)
    out.append(0)
    out += _LIMITS.pack(
        request.max_wait_ms,
        request.min_bytes,
        request.max_bytes,
        _LOG_END,
        request.session_id,
        request.session_epoch,
    )
    _write_entries(out, request.entries)
    _write_forgotten(out, request.forgotten)
    out += _NO_RACK
    out.append(1)  # one tagged field
    out += _REPLICA_STATE.pack(_REPLICA_STATE_TAG, _REPLICA_STATE_SIZE, request.replica_id, request.replica_epoch, 0)
    _I32.pack_into(out, 0, len(out) - 4)
    return out


def _write_entries(out: bytearray, entries: Sequence[FetchEntry]) -> None:
    topics: dict[str | bytes, list[FetchEntry]] = {}
    for entry in entries:
        topics.setdefault(entry.topic, []).append(entry)
    write_compact_array_length(out, len(topics))
    pack = _ENTRY.pack
    for topic, rows in topics.items():
        out += topic  # type: ignore[arg-type]  # a follower knows the ids of its topics
        write_compact_array_length(out, len(rows))
        for entry in rows:
            out += pack(
                entry.partition,
                entry.current_leader_epoch,
                entry.fetch_offset,
                entry.last_fetched_epoch,
                entry.log_start_offset,
                entry.max_bytes,
                0,
            )
        out.append(0)


def _write_forgotten(out: bytearray, forgotten: Sequence[tuple[bytes, int]]) -> None:
    topics: dict[bytes, list[int]] = {}
    for topic, partition in forgotten:
        topics.setdefault(topic, []).append(partition)
    write_compact_array_length(out, len(topics))
    for topic, partitions in topics.items():
        out += topic
        write_compact_array_length(out, len(partitions))
        for partition in partitions:
            out += _I32.pack(partition)
        out.append(0)


def read_correlation_id(frame: memoryview) -> int:
    """Of an answer, without its length. Raises MalformedRequest."""
    if len(frame) < _I32.size:
        raise MalformedRequest(f"An answer of {len(frame)} bytes has no correlation id.")
    correlation_id: int = _I32.unpack_from(frame)[0]
    return correlation_id


def read_fetched(frame: memoryview) -> FetchedPartitions:
    """An answer, without its length. Raises MalformedRequest, and nothing else."""
    try:
        if len(frame) <= MAX_ELEMENTS:  # a shorter frame cannot hold more elements
            return _read(frame)
        with at_most(MAX_ELEMENTS):
            return _read(frame)
    except DECODING_FAILURES as error:
        raise MalformedRequest(f"The answer to a Fetch request of a follower is malformed: {error}.") from error


def _read(frame: memoryview) -> FetchedPartitions:
    position = skip_tags(frame, 4)
    _, error_code, session_id = _ANSWER_HEAD.unpack_from(frame, position)
    position += _ANSWER_HEAD.size
    rows: list[FetchedPartition] = []
    topics, position = read_compact_array_length(frame, position, 17)
    for _ in range(topics):
        topic_id = bytes(frame[position : position + 16])
        position += 16
        count, position = read_compact_array_length(frame, position, _ROW.size)
        for _ in range(count):
            row, position = _read_partition(topic_id, frame, position)
            rows.append(row)
        position = skip_tags(frame, position)
    skip_tags(frame, position)
    return FetchedPartitions(error_code, session_id, rows)


def _read_partition(topic_id: bytes, frame: memoryview, position: int) -> tuple[FetchedPartition, int]:
    partition, error_code, high_watermark, _, log_start = _ROW.unpack_from(frame, position)
    aborted, position = read_compact_nullable_array_length(frame, position + _ROW.size, _ABORTED_SIZE)
    for _ in range(aborted):  # none is sent to a reader that sees the whole log
        position = skip_tags(frame, position + 16)
    size, position = read_uvarint(frame, position + 4)  # after the preferred read replica
    records = None
    if size > 1:
        end = position + size - 1
        if end > len(frame):
            raise MalformedRequest(f"{size - 1} bytes of records do not fit into {len(frame) - position} bytes.")
        records = frame[position:end]
        position = end
    diverging = None
    if frame[position] == 0:
        position += 1
    else:
        diverging, position = _read_tags(frame, position)
    return FetchedPartition(topic_id, partition, error_code, high_watermark, log_start, diverging, records), position


def _read_tags(frame: memoryview, position: int) -> tuple[tuple[int, int] | None, int]:
    diverging = None
    count, position = read_uvarint(frame, position)
    for _ in range(count):
        tag, start, position = read_tag(frame, position)
        if tag == _DIVERGING_TAG:
            epoch, end_offset = _EPOCH_AND_END.unpack_from(frame, start)
            diverging = (epoch, end_offset) if epoch >= 0 or end_offset >= 0 else None
    return diverging, position
