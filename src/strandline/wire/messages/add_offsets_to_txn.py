"""Messages of add offsets to txn. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_string,
    read_string,
    skip_tags,
    truncated,
    write_compact_string,
    write_string,
)
from strandline.wire.structure import Structure

_INT32_INT16 = Struct(">ih")
_INT64_INT16 = Struct(">qh")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AddOffsetsToTxnRequest(Structure):
    """Versions 0 to 4."""

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    group_id: str = ""


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AddOffsetsToTxnResponse(Structure):
    """Versions 0 to 4."""

    throttle_time_ms: int = 0
    error_code: int = 0


def _read_add_offsets_to_txn_request(
    buffer: memoryview, position: int, version: int
) -> tuple[AddOffsetsToTxnRequest, int]:
    flexible = version >= 3
    transactional_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    producer_id, producer_epoch = _INT64_INT16.unpack_from(buffer, position)
    position += 10
    group_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    if flexible:
        position = skip_tags(buffer, position)
    return AddOffsetsToTxnRequest(
        transactional_id=transactional_id, producer_id=producer_id, producer_epoch=producer_epoch, group_id=group_id
    ), position


def _write_add_offsets_to_txn_request(out: bytearray, message: AddOffsetsToTxnRequest, version: int) -> None:
    flexible = version >= 3
    if flexible:
        write_compact_string(out, message.transactional_id)
    else:
        write_string(out, message.transactional_id)
    out += _INT64_INT16.pack(message.producer_id, message.producer_epoch)
    if flexible:
        write_compact_string(out, message.group_id)
    else:
        write_string(out, message.group_id)
    if flexible:
        out += b"\x00"


def read_add_offsets_to_txn_request(
    buffer: memoryview, position: int, version: int
) -> tuple[AddOffsetsToTxnRequest, int]:
    """Read a AddOffsetsToTxnRequest. Raises MalformedRequest."""
    try:
        return _read_add_offsets_to_txn_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("AddOffsetsToTxnRequest") from error


def write_add_offsets_to_txn_request(out: bytearray, message: AddOffsetsToTxnRequest, version: int) -> None:
    """Append a AddOffsetsToTxnRequest to `out`."""
    _write_add_offsets_to_txn_request(out, message, version)


def _read_add_offsets_to_txn_response(
    buffer: memoryview, position: int, version: int
) -> tuple[AddOffsetsToTxnResponse, int]:
    flexible = version >= 3
    throttle_time_ms, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    if flexible:
        position = skip_tags(buffer, position)
    return AddOffsetsToTxnResponse(throttle_time_ms=throttle_time_ms, error_code=error_code), position


def _write_add_offsets_to_txn_response(out: bytearray, message: AddOffsetsToTxnResponse, version: int) -> None:
    flexible = version >= 3
    out += _INT32_INT16.pack(message.throttle_time_ms, message.error_code)
    if flexible:
        out += b"\x00"


def read_add_offsets_to_txn_response(
    buffer: memoryview, position: int, version: int
) -> tuple[AddOffsetsToTxnResponse, int]:
    """Read a AddOffsetsToTxnResponse. Raises MalformedRequest."""
    try:
        return _read_add_offsets_to_txn_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("AddOffsetsToTxnResponse") from error


def write_add_offsets_to_txn_response(out: bytearray, message: AddOffsetsToTxnResponse, version: int) -> None:
    """Append a AddOffsetsToTxnResponse to `out`."""
    _write_add_offsets_to_txn_response(out, message, version)
