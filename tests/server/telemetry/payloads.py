"""Metrics as clients push them, in the form of OpenTelemetry."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

GAUGE, SUM = 5, 7
DELTA, CUMULATIVE = 1, 2


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def field(number: int, kind: int, body: bytes) -> bytes:
    return varint(number << 3 | kind) + body


def message(number: int, body: bytes) -> bytes:
    return field(number, 2, varint(len(body)) + body)


def attribute(number: int, key: str, value: bytes) -> bytes:
    return message(number, message(1, key.encode()) + message(2, value))


def point(value: float, attributes: Mapping[str, str] | None = None) -> bytes:
    number = field(6, 1, struct.pack("<q", value)) if isinstance(value, int) else field(4, 1, struct.pack("<d", value))
    pairs = (attribute(7, key, message(1, text.encode())) for key, text in (attributes or {}).items())
    return field(2, 1, bytes(8)) + field(3, 1, bytes(8)) + number + b"".join(pairs)


def metric(name: str, *points: bytes, temporality: int | None = None) -> bytes:
    """A gauge, or a sum if it has a temporality."""
    body = b"".join(message(1, one) for one in points)
    if temporality is not None:
        body += field(2, 0, varint(temporality)) + field(3, 0, varint(1))
    head = message(1, name.encode()) + message(2, b"what it means") + message(3, b"1")
    return head + message(GAUGE if temporality is None else SUM, body)


def metrics_data(metrics: Iterable[bytes], resource: Mapping[str, str] | None = None) -> bytes:
    pairs = (attribute(1, key, message(1, text.encode())) for key, text in (resource or {}).items())
    scope = b"".join(message(2, one) for one in metrics)
    return message(1, message(1, b"".join(pairs)) + message(2, scope))
