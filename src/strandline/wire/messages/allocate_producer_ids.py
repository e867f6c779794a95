"""Messages of allocate producer ids. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from strandline.wire.primitives import (
    DECODING_FAILURES,
    skip_tags,
    truncated,
)
from strandline.wire.structure import Structure

_INT32_INT16_INT64_INT32 = Struct(">ihqi")
_INT32_INT64 = Struct(">iq")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AllocateProducerIdsRequest(Structure):
    """Versions 0 to 0."""

    broker_id: int = 0
    broker_epoch: int = -1


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class AllocateProducerIdsResponse(Structure):
    """Versions 0 to 0."""

    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id_start: int = 0
    producer_id_len: int = 0


def _read_allocate_producer_ids_request(
    buffer: memoryview, position: int, version: int
) -> tuple[AllocateProducerIdsRequest, int]:
    broker_id, broker_epoch = _INT32_INT64.unpack_from(buffer, position)
    position += 12
    position = skip_tags(buffer, position)
    return AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=broker_epoch), position


def _write_allocate_producer_ids_request(out: bytearray, message: AllocateProducerIdsRequest, version: int) -> None:
    out += _INT32_INT64.pack(message.broker_id, message.broker_epoch)
    out += b"\x00"


def read_allocate_producer_ids_request(
    buffer: memoryview, position: int, version: int
) -> tuple[AllocateProducerIdsRequest, int]:
    """Read a AllocateProducerIdsRequest. Raises MalformedRequest."""
    try:
        return _read_allocate_producer_ids_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("AllocateProducerIdsRequest") from error


def write_allocate_producer_ids_request(out: bytearray, message: AllocateProducerIdsRequest, version: int) -> None:
    """Append a AllocateProducerIdsRequest to `out`."""
    _write_allocate_producer_ids_request(out, message, version)


def _read_allocate_producer_ids_response(
    buffer: memoryview, position: int, version: int
) -> tuple[AllocateProducerIdsResponse, int]:
    throttle_time_ms, error_code, producer_id_start, producer_id_len = _INT32_INT16_INT64_INT32.unpack_from(
        buffer, position
    )
    position += 18
    position = skip_tags(buffer, position)
    return AllocateProducerIdsResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        producer_id_start=producer_id_start,
        producer_id_len=producer_id_len,
    ), position


def _write_allocate_producer_ids_response(out: bytearray, message: AllocateProducerIdsResponse, version: int) -> None:
    out += _INT32_INT16_INT64_INT32.pack(
        message.throttle_time_ms, message.error_code, message.producer_id_start, message.producer_id_len
    )
    out += b"\x00"


def read_allocate_producer_ids_response(
    buffer: memoryview, position: int, version: int
) -> tuple[AllocateProducerIdsResponse, int]:
    """Read a AllocateProducerIdsResponse. Raises MalformedRequest."""
    try:
        return _read_allocate_producer_ids_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("AllocateProducerIdsResponse") from error


def write_allocate_producer_ids_response(out: bytearray, message: AllocateProducerIdsResponse, version: int) -> None:
    """Append a AllocateProducerIdsResponse to `out`."""
    _write_allocate_producer_ids_response(out, message, version)
