"""Messages of describe transactions. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_array_length,
    read_compact_string,
    read_numbers,
    skip_tags,
    truncated,
    write_compact_array_length,
    write_compact_numbers,
    write_compact_string,
)
from strandline.wire.structure import Structure

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT32_INT64_INT64_INT16 = Struct(">iqqh")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeTransactionsRequest(Structure):
    """Versions 0 to 0."""

    transactional_ids: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TopicData(Structure):
    """Versions 0 to 0."""

    topic: str = ""
    partitions: list[int] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TransactionState(Structure):
    """Versions 0 to 0."""

    error_code: int = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: int = 0
    transaction_start_time_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    topics: list[TopicData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class DescribeTransactionsResponse(Structure):
    """Versions 0 to 0."""

    throttle_time_ms: int = 0
    transaction_states: list[TransactionState] = field(default_factory=list)


def _read_describe_transactions_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeTransactionsRequest, int]:
    count, position = read_compact_array_length(buffer, position, 1)
    transactional_ids: list[str] = []
    for _ in range(count):
        text, position = read_compact_string(buffer, position)
        transactional_ids.append(text)
    position = skip_tags(buffer, position)
    return DescribeTransactionsRequest(transactional_ids=transactional_ids), position


def _write_describe_transactions_request(out: bytearray, message: DescribeTransactionsRequest, version: int) -> None:
    write_compact_array_length(out, len(message.transactional_ids))
    for text in message.transactional_ids:
        write_compact_string(out, text)
    out += b"\x00"


def read_describe_transactions_request(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeTransactionsRequest, int]:
    """Read a DescribeTransactionsRequest. Raises MalformedRequest."""
    try:
        return _read_describe_transactions_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeTransactionsRequest") from error


def write_describe_transactions_request(out: bytearray, message: DescribeTransactionsRequest, version: int) -> None:
    """Append a DescribeTransactionsRequest to `out`."""
    _write_describe_transactions_request(out, message, version)


def _read_topic_data(buffer: memoryview, position: int, version: int) -> tuple[TopicData, int]:
    topic, position = read_compact_string(buffer, position)
    count, position = read_compact_array_length(buffer, position, 4)
    partitions, position = read_numbers(buffer, position, count, "i")
    position = skip_tags(buffer, position)
    return TopicData(topic=topic, partitions=partitions), position


def _write_topic_data(out: bytearray, message: TopicData, version: int) -> None:
    write_compact_string(out, message.topic)
    write_compact_numbers(out, message.partitions, "i")
    out += b"\x00"


def _read_transaction_state(buffer: memoryview, position: int, version: int) -> tuple[TransactionState, int]:
    (error_code,) = _INT16.unpack_from(buffer, position)
    position += 2
    transactional_id, position = read_compact_string(buffer, position)
    transaction_state, position = read_compact_string(buffer, position)
    transaction_timeout_ms, transaction_start_time_ms, producer_id, producer_epoch = (
        _INT32_INT64_INT64_INT16.unpack_from(buffer, position)
    )
    position += 22
    count, position = read_compact_array_length(buffer, position, 2)
    topics: list[TopicData] = []
    for _ in range(count):
        topic_data, position = _read_topic_data(buffer, position, version)
        topics.append(topic_data)
    position = skip_tags(buffer, position)
    return TransactionState(
        error_code=error_code,
        transactional_id=transactional_id,
        transaction_state=transaction_state,
        transaction_timeout_ms=transaction_timeout_ms,
        transaction_start_time_ms=transaction_start_time_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        topics=topics,
    ), position


def _write_transaction_state(out: bytearray, message: TransactionState, version: int) -> None:
    out += _INT16.pack(message.error_code)
    write_compact_string(out, message.transactional_id)
    write_compact_string(out, message.transaction_state)
    out += _INT32_INT64_INT64_INT16.pack(
        message.transaction_timeout_ms, message.transaction_start_time_ms, message.producer_id, message.producer_epoch
    )
    write_compact_array_length(out, len(message.topics))
    for topic_data in message.topics:
        _write_topic_data(out, topic_data, version)
    out += b"\x00"


def _read_describe_transactions_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeTransactionsResponse, int]:
    (throttle_time_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    count, position = read_compact_array_length(buffer, position, 27)
    transaction_states: list[TransactionState] = []
    for _ in range(count):
        transaction_state, position = _read_transaction_state(buffer, position, version)
        transaction_states.append(transaction_state)
    position = skip_tags(buffer, position)
    return DescribeTransactionsResponse(
        throttle_time_ms=throttle_time_ms, transaction_states=transaction_states
    ), position


def _write_describe_transactions_response(out: bytearray, message: DescribeTransactionsResponse, version: int) -> None:
    out += _INT32.pack(message.throttle_time_ms)
    write_compact_array_length(out, len(message.transaction_states))
    for transaction_state in message.transaction_states:
        _write_transaction_state(out, transaction_state, version)
    out += b"\x00"


def read_describe_transactions_response(
    buffer: memoryview, position: int, version: int
) -> tuple[DescribeTransactionsResponse, int]:
    """Read a DescribeTransactionsResponse. Raises MalformedRequest."""
    try:
        return _read_describe_transactions_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("DescribeTransactionsResponse") from error


def write_describe_transactions_response(out: bytearray, message: DescribeTransactionsResponse, version: int) -> None:
    """Append a DescribeTransactionsResponse to `out`."""
    _write_describe_transactions_response(out, message, version)
