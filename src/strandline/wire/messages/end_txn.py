"""Messages of end txn. Written by tools/generate_messages.py: do not edit."""

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
_INT64_INT16_BOOL = Struct(">qh?")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class EndTxnRequest(Structure):
    """Versions 0 to 5."""

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    committed: bool = False


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class EndTxnResponse(Structure):
    """Versions 0 to 5."""

    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1  # from version 5 on
    producer_epoch: int = -1  # from version 5 on


def _read_end_txn_request(buffer: memoryview, position: int, version: int) -> tuple[EndTxnRequest, int]:
    flexible = version >= 3
    transactional_id, position = read_compact_string(buffer, position) if flexible else read_string(buffer, position)
    producer_id, producer_epoch, committed = _INT64_INT16_BOOL.unpack_from(buffer, position)
    position += 11
    if flexible:
        position = skip_tags(buffer, position)
    return EndTxnRequest(
        transactional_id=transactional_id, producer_id=producer_id, producer_epoch=producer_epoch, committed=committed
    ), position


def _write_end_txn_request(out: bytearray, message: EndTxnRequest, version: int) -> None:
    flexible = version >= 3
    if flexible:
        write_compact_string(out, message.transactional_id)
    else:
        write_string(out, message.transactional_id)
    out += _INT64_INT16_BOOL.pack(message.producer_id, message.producer_epoch, message.committed)
    if flexible:
        out += b"\x00"


def read_end_txn_request(buffer: memoryview, position: int, version: int) -> tuple[EndTxnRequest, int]:
    """Read a EndTxnRequest. Raises MalformedRequest."""
    try:
        return _read_end_txn_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("EndTxnRequest") from error


def write_end_txn_request(out: bytearray, message: EndTxnRequest, version: int) -> None:
    """Append a EndTxnRequest to `out`."""
    _write_end_txn_request(out, message, version)


def _read_end_txn_response(buffer: memoryview, position: int, version: int) -> tuple[EndTxnResponse, int]:
    flexible = version >= 3
    throttle_time_ms, error_code = _INT32_INT16.unpack_from(buffer, position)
    position += 6
    producer_id: int = -1
    producer_epoch: int = -1
    if version >= 5:
        producer_id, producer_epoch = _INT64_INT16.unpack_from(buffer, position)
        position += 10
    if flexible:
        position = skip_tags(buffer, position)
    return EndTxnResponse(
        throttle_time_ms=throttle_time_ms, error_code=error_code, producer_id=producer_id, producer_epoch=producer_epoch
    ), position


def _write_end_txn_response(out: bytearray, message: EndTxnResponse, version: int) -> None:
    flexible = version >= 3
    out += _INT32_INT16.pack(message.throttle_time_ms, message.error_code)
    if version >= 5:
        out += _INT64_INT16.pack(message.producer_id, message.producer_epoch)
    if flexible:
        out += b"\x00"


def read_end_txn_response(buffer: memoryview, position: int, version: int) -> tuple[EndTxnResponse, int]:
    """Read a EndTxnResponse. Raises MalformedRequest."""
    try:
        return _read_end_txn_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("EndTxnResponse") from error


def write_end_txn_response(out: bytearray, message: EndTxnResponse, version: int) -> None:
    """Append a EndTxnResponse to `out`."""
    _write_end_txn_response(out, message, version)
