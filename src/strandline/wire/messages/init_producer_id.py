"""Messages of init producer id. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_nullable_string,
    read_nullable_string,
    skip_tags,
    truncated,
    write_compact_nullable_string,
    write_nullable_string,
)
from strandline.wire.structure import Structure

_BOOL_BOOL = Struct(">??")
_INT32 = Struct(">i")
_INT32_INT16_INT64_INT16 = Struct(">ihqh")
_INT64_INT16 = Struct(">qh")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class InitProducerIdRequest(Structure):
    """Versions 0 to 6."""

    transactional_id: str | None = ""
    transaction_timeout_ms: int = 0
    producer_id: int = -1  # from version 3 on
    producer_epoch: int = -1  # from version 3 on
    enable2_pc: bool = False  # from version 6 on
    keep_prepared_txn: bool = False  # from version 6 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class InitProducerIdResponse(Structure):
    """Versions 0 to 6."""

    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = 0
    ongoing_txn_producer_id: int = -1  # from version 6 on
    ongoing_txn_producer_epoch: int = -1  # from version 6 on


def _read_init_producer_id_request(
    buffer: memoryview, position: int, version: int
) -> tuple[InitProducerIdRequest, int]:
    flexible = version >= 2
    transactional_id, position = (
        read_compact_nullable_string(buffer, position) if flexible else read_nullable_string(buffer, position)
    )
    (transaction_timeout_ms,) = _INT32.unpack_from(buffer, position)
    position += 4
    producer_id: int = -1
    producer_epoch: int = -1
    if version >= 3:
        producer_id, producer_epoch = _INT64_INT16.unpack_from(buffer, position)
        position += 10
    enable2_pc: bool = False
    keep_prepared_txn: bool = False
    if version >= 6:
        enable2_pc, keep_prepared_txn = _BOOL_BOOL.unpack_from(buffer, position)
        position += 2
    if flexible:
        position = skip_tags(buffer, position)
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=transaction_timeout_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        enable2_pc=enable2_pc,
        keep_prepared_txn=keep_prepared_txn,
    ), position


def _write_init_producer_id_request(out: bytearray, message: InitProducerIdRequest, version: int) -> None:
    flexible = version >= 2
    if flexible:
        write_compact_nullable_string(out, message.transactional_id)
    else:
        write_nullable_string(out, message.transactional_id)
    out += _INT32.pack(message.transaction_timeout_ms)
    if version >= 3:
        out += _INT64_INT16.pack(message.producer_id, message.producer_epoch)
    if version >= 6:
        out += _BOOL_BOOL.pack(message.enable2_pc, message.keep_prepared_txn)
    if flexible:
        out += b"\x00"


def read_init_producer_id_request(buffer: memoryview, position: int, version: int) -> tuple[InitProducerIdRequest, int]:
    """Read a InitProducerIdRequest. Raises MalformedRequest."""
    try:
        return _read_init_producer_id_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("InitProducerIdRequest") from error


def write_init_producer_id_request(out: bytearray, message: InitProducerIdRequest, version: int) -> None:
    """Append a InitProducerIdRequest to `out`."""
    _write_init_producer_id_request(out, message, version)


def _read_init_producer_id_response(
    buffer: memoryview, position: int, version: int
) -> tuple[InitProducerIdResponse, int]:
    flexible = version >= 2
    throttle_time_ms, error_code, producer_id, producer_epoch = _INT32_INT16_INT64_INT16.unpack_from(buffer, position)
    position += 16
    ongoing_txn_producer_id: int = -1
    ongoing_txn_producer_epoch: int = -1
    if version >= 6:
        ongoing_txn_producer_id, ongoing_txn_producer_epoch = _INT64_INT16.unpack_from(buffer, position)
        position += 10
    if flexible:
        position = skip_tags(buffer, position)
    return InitProducerIdResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        ongoing_txn_producer_id=ongoing_txn_producer_id,
        ongoing_txn_producer_epoch=ongoing_txn_producer_epoch,
    ), position


def _write_init_producer_id_response(out: bytearray, message: InitProducerIdResponse, version: int) -> None:
    flexible = version >= 2
    out += _INT32_INT16_INT64_INT16.pack(
        message.throttle_time_ms, message.error_code, message.producer_id, message.producer_epoch
    )
    if version >= 6:
        out += _INT64_INT16.pack(message.ongoing_txn_producer_id, message.ongoing_txn_producer_epoch)
    if flexible:
        out += b"\x00"


def read_init_producer_id_response(
    buffer: memoryview, position: int, version: int
) -> tuple[InitProducerIdResponse, int]:
    """Read a InitProducerIdResponse. Raises MalformedRequest."""
    try:
        return _read_init_producer_id_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("InitProducerIdResponse") from error


def write_init_producer_id_response(out: bytearray, message: InitProducerIdResponse, version: int) -> None:
    """Append a InitProducerIdResponse to `out`."""
    _write_init_producer_id_response(out, message, version)
