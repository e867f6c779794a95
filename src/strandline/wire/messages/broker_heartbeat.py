"""Messages of broker heartbeat. Written by tools/generate_messages.py: do not edit."""

# ruff: noqa: C901, RUF100

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from uuid import UUID

from strandline.wire.primitives import (
    DECODING_FAILURES,
    read_compact_array_length,
    read_compact_nullable_array_length,
    read_tag,
    read_uuid,
    read_uvarint,
    skip_tags,
    truncated,
    write_compact_array_length,
    write_tagged_field,
    write_uvarint,
)
from strandline.wire.structure import Structure

_INT32_INT16_BOOL_BOOL_BOOL = Struct(">ih???")
_INT32_INT64_INT64_BOOL_BOOL = Struct(">iqq??")


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class BrokerHeartbeatRequest(Structure):
    """Versions 0 to 2."""

    broker_id: int = 0
    broker_epoch: int = -1
    current_metadata_offset: int = 0
    want_fence: bool = False
    want_shut_down: bool = False
    offline_log_dirs: list[UUID] = field(default_factory=list)  # from version 1 on
    cordoned_log_dirs: list[UUID] | None = None  # from version 2 on


@dataclass(slots=True, kw_only=True, eq=False, repr=False, match_args=False)
class BrokerHeartbeatResponse(Structure):
    """Versions 0 to 2."""

    throttle_time_ms: int = 0
    error_code: int = 0
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False


def _read_broker_heartbeat_request(
    buffer: memoryview, position: int, version: int
) -> tuple[BrokerHeartbeatRequest, int]:
    broker_id, broker_epoch, current_metadata_offset, want_fence, want_shut_down = (
        _INT32_INT64_INT64_BOOL_BOOL.unpack_from(buffer, position)
    )
    position += 22
    offline_log_dirs: list[UUID] = []
    cordoned_log_dirs: list[UUID] | None = None
    count, position = read_uvarint(buffer, position)
    for _ in range(count):
        tag, position, end = read_tag(buffer, position)
        if tag == 0 and version >= 1:
            count, position = read_compact_array_length(buffer, position, 16)
            offline_log_dirs = []
            for _ in range(count):
                element, position = read_uuid(buffer, position)
                offline_log_dirs.append(element)
        elif tag == 1 and version >= 2:
            count, position = read_compact_nullable_array_length(buffer, position, 16)
            if count >= 0:
                cordoned_log_dirs = []
                for _ in range(count):
                    element, position = read_uuid(buffer, position)
                    cordoned_log_dirs.append(element)
        position = end
    return BrokerHeartbeatRequest(
        broker_id=broker_id,
        broker_epoch=broker_epoch,
        current_metadata_offset=current_metadata_offset,
        want_fence=want_fence,
        want_shut_down=want_shut_down,
        offline_log_dirs=offline_log_dirs,
        cordoned_log_dirs=cordoned_log_dirs,
    ), position


def _write_broker_heartbeat_request(out: bytearray, message: BrokerHeartbeatRequest, version: int) -> None:
    out += _INT32_INT64_INT64_BOOL_BOOL.pack(
        message.broker_id,
        message.broker_epoch,
        message.current_metadata_offset,
        message.want_fence,
        message.want_shut_down,
    )
    tagged = bytearray()
    count = 0
    if version >= 1 and message.offline_log_dirs:
        value = bytearray()
        write_compact_array_length(value, len(message.offline_log_dirs))
        for element in message.offline_log_dirs:
            value += element.bytes
        write_tagged_field(tagged, 0, value)
        count += 1
    if version >= 2 and message.cordoned_log_dirs is not None:
        value = bytearray()
        if message.cordoned_log_dirs is None:
            write_compact_array_length(value, -1)
        else:
            write_compact_array_length(value, len(message.cordoned_log_dirs))
            for element in message.cordoned_log_dirs:
                value += element.bytes
        write_tagged_field(tagged, 1, value)
        count += 1
    write_uvarint(out, count)
    out += tagged


def read_broker_heartbeat_request(
    buffer: memoryview, position: int, version: int
) -> tuple[BrokerHeartbeatRequest, int]:
    """Read a BrokerHeartbeatRequest. Raises MalformedRequest."""
    try:
        return _read_broker_heartbeat_request(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("BrokerHeartbeatRequest") from error


def write_broker_heartbeat_request(out: bytearray, message: BrokerHeartbeatRequest, version: int) -> None:
    """Append a BrokerHeartbeatRequest to `out`."""
    _write_broker_heartbeat_request(out, message, version)


def _read_broker_heartbeat_response(
    buffer: memoryview, position: int, version: int
) -> tuple[BrokerHeartbeatResponse, int]:
    throttle_time_ms, error_code, is_caught_up, is_fenced, should_shut_down = _INT32_INT16_BOOL_BOOL_BOOL.unpack_from(
        buffer, position
    )
    position += 9
    position = skip_tags(buffer, position)
    return BrokerHeartbeatResponse(
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        is_caught_up=is_caught_up,
        is_fenced=is_fenced,
        should_shut_down=should_shut_down,
    ), position


def _write_broker_heartbeat_response(out: bytearray, message: BrokerHeartbeatResponse, version: int) -> None:
    out += _INT32_INT16_BOOL_BOOL_BOOL.pack(
        message.throttle_time_ms, message.error_code, message.is_caught_up, message.is_fenced, message.should_shut_down
    )
    out += b"\x00"


def read_broker_heartbeat_response(
    buffer: memoryview, position: int, version: int
) -> tuple[BrokerHeartbeatResponse, int]:
    """Read a BrokerHeartbeatResponse. Raises MalformedRequest."""
    try:
        return _read_broker_heartbeat_response(buffer, position, version)
    except DECODING_FAILURES as error:
        raise truncated("BrokerHeartbeatResponse") from error


def write_broker_heartbeat_response(out: bytearray, message: BrokerHeartbeatResponse, version: int) -> None:
    """Append a BrokerHeartbeatResponse to `out`."""
    _write_broker_heartbeat_response(out, message, version)
