"""Messages of list transactions. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_array_length,
    read_compact_nullable_string,
    read_compact_string,
    read_numbers,
    skip_tags,
    truncated,
    write_compact_array_length,
    write_compact_nullable_string,
    write_compact_numbers,
    write_compact_string,
)
from strandline.wire.structure import Structure

_INT32_INT16 = Struct(">ih")
_INT64 = Struct(">q")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ListTransactionsRequest(Structure):
    """Versions 0 to 2."""

    state_filters: list[str] = field(default_factory=list)
    producer_id_filters: list[int] = field(default_factory=list)
    duration_filter: int = -1  # from version 1 on
    transactional_id_pattern: str | None = None  # from version 2 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class TransactionState(Structure):
    """Versions 0 to 2."""

    transactional_id: str = ""
    producer_id: int = 0
    transaction_state: str = ""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class ListTransactionsResponse(Structure):
    """Versions 0 to 2."""

    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_state_filters: list[str] = field(default_factory=list)
    transaction_states: list[TransactionState] = field(default_factory=list)


def _read_list_transactions_request(
    buffer: memoryview, position: int, version: int
) -> tuple[ListTransactionsRequest, int]:
    count, position = read_compact_array_length(buffer, position, 1)
    state_filters: list[str] = []
    for _ in range(count):
        text, position = read_compact_string(buffer, position)
        state_filters.append(text)
    count, position = read_compact_array_length(buffer, position, 8)
    producer_id_filters, position = read_numbers(buffer, position, count, "q")
    duration_filter: int = -1
    if version >= 1:
        (duration_filter,) = _INT64.unpack_from(buffer, position)
        position += 8
    transactional_id_pattern: str | None = None
    if version >= 2:
        transactional_id_pattern, position = read_compact_nullable_string(buffer, position)
    position = skip_tags(buffer, position)
    return ListTransactionsRequest(
        state_filters=state_filters,
        producer_id_filters=producer_id_filters,
        duration_filter=duration_filter,
        transactional_id_pattern=transactional_id_pattern,
    ), position


def _write_list_transactions_request(out: bytearray, message: ListTransactionsRequest, version: int) -> None:
    write_compact_array_length(out, len(message.state_filters))
    for text in message.state_filters:
        write_compact_string(out, text)
    write_compact_numbers(out, message.producer_id_filters, "q")
    if version >= 1:
        out += _INT64.pack(message.duration_filter)
    if version >= 2:
        write_compact_nullable_string(out, message.transactional_id_pattern)
    out += b"\x00"


def read_list_transactions_request(
    buffer: memoryview, position: int, version: int
) -> tuple[ListTransactionsRequest, int]:
    """Read a ListTransactionsRequest. Raises MalformedRequest."""
    try:
        return _read_list_transactions_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ListTransactionsRequest") from error


def write_list_transactions_request(out: bytearray, message: ListTransactionsRequest, version: int) -> None:
    """Append a ListTransactionsRequest to `out`."""
    _write_list_transactions_request(out, message, version)


def _read_transaction_state(buffer: memoryview, position: int, version: int) -> tuple[TransactionState, int]:
    transactional_id, position = read_compact_string(buffer, position)
    (producer_id,) = _INT64.unpack_from(buffer, position)
    position += 8
    transaction_state, position = read_compact_string(buffer, position)
    position = skip_tags(buffer, position)
    return TransactionState(
        transactional_id=transactional_id, producer_id=producer_id, transaction_state=transaction_state
    ), position


def _write_transaction_state(out: bytearray, message: TransactionState, version: int) -> None:
    write_compact_string(out, message.transactional_id)
    out += _INT64.pack(message.producer_id)
    write_compact_string(out, message.transaction_state)
    out += b"\x00"


def _read_list_transactions_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ListTransactionsResponse, int]:
    throttle_time_ms, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    count, position = read_compact_array_length(buffer, position, 1)
    unknown_state_filters: list[str] = []
    for _ in range(count):
        text, position = read_compact_string(buffer, position)
        unknown_state_filters.append(text)
    count, position = read_compact_array_length(buffer, position, 10)
    transaction_states: list[TransactionState] = []
    for _ in range(count):
        transaction_state, position = _read_transaction_state(buffer, position, version)
        transaction_states.append(transaction_state)
    position = skip_tags(buffer, position)
    return ListTransactionsResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        unknown_state_filters=unknown_state_filters,
        transaction_states=transaction_states,
    ), position


def _write_list_transactions_response(out: bytearray, message: ListTransactionsResponse, version: int) -> None:
    out += _INT32_INT16.pack(message.throttle_time_ms, message.error_code)
    write_compact_array_length(out, len(message.unknown_state_filters))
    for text in message.unknown_state_filters:
        write_compact_string(out, text)
    write_compact_array_length(out, len(message.transaction_states))
    for transaction_state in message.transaction_states:
        _write_transaction_state(out, transaction_state, version)
    out += b"\x00"


def read_list_transactions_response(
    buffer: memoryview, position: int, version: int
) -> tuple[ListTransactionsResponse, int]:
    """Read a ListTransactionsResponse. Raises MalformedRequest."""
    try:
        return _read_list_transactions_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("ListTransactionsResponse") from error


def write_list_transactions_response(out: bytearray, message: ListTransactionsResponse, version: int) -> None:
    """Append a ListTransactionsResponse to `out`."""
    _write_list_transactions_response(out, message, version)
