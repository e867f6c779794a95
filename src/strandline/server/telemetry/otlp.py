"""Reads numbers out of the metrics of OpenTelemetry (OTLP), as far as Kafka's clients send them.

Protocol buffers are a sequence of fields, each with a number and a length that can be skipped. Only the way to the
numbers is followed: MetricsData, ResourceMetrics, ScopeMetrics, Metric, Gauge or Sum, NumberDataPoint. Histograms and
summaries, which no client of Kafka sends, are skipped. The work is bounded: after a number of fields the rest is not
read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from strandline.errors import InvalidRecord

MOST_ATTRIBUTES: Final = 32
MOST_TEXT_BYTES: Final = 512

MOST_FIELDS: Final = 100_000

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED: Final = {_FIXED64: 8, _FIXED32: 4}
_GAUGE, _SUM = 5, 7
_MOST_VARINT_BYTES: Final = 10
_DOUBLE: Final = struct.Struct("<d")
_INT64: Final = struct.Struct("<q")
_VALUES: Final = {4: _DOUBLE, 6: _INT64}
_DELTA: Final = 1  # AggregationTemporality

Attributes: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class MetricSample:
    """One number of a client. `is_delta`: it counts from the previous push on, and not from the client's start."""

    name: str
    attributes: Attributes
    value: float
    is_delta: bool = False


class _Field(NamedTuple):
    number: int
    kind: int
    value: int
    """Of a varint."""
    data: memoryview
    """Of any other kind."""


def read_metrics(payload: bytes, most_fields: int = MOST_FIELDS) -> list[MetricSample]:
    """The numbers of a MetricsData. Raises InvalidRecord if it is none."""
    reader = _Reader(most_fields)
    try:
        for resource_metrics in reader.messages(memoryview(payload), 1):
            reader.read_resource(resource_metrics)
    except (IndexError, struct.error) as error:
        raise InvalidRecord(f"The pushed metrics are not in the form of OpenTelemetry: {error}.") from error
    return reader.samples


class _Reader:
    """Gathers samples until the message ends, or until it has looked at as many fields as it may."""

    def __init__(self, most_fields: int) -> None:
        self._left = most_fields
        self.samples: list[MetricSample] = []

    def read_resource(self, data: memoryview) -> None:
        resource: Attributes = ()
        for part in self.messages(data, 1):
            resource = self._attributes(part, 1)
        for scope_metrics in self.messages(data, 2):
            for metric in self.messages(scope_metrics, 2):
                self._read_metric(metric, resource)

    def _read_metric(self, data: memoryview, resource: Attributes) -> None:
        name, points, is_sum = "", None, False
        for field in self._fields(data):
            if field.number == 1 and field.kind == _BYTES:
                name = _text(field.data)
            elif field.number in (_GAUGE, _SUM) and field.kind == _BYTES:
                points, is_sum = field.data, field.number == _SUM
        if not name or points is None:
            return
        found: list[memoryview] = []
        is_delta = False
        for field in self._fields(points):
            if field.number == 1 and field.kind == _BYTES:
                found.append(field.data)
            elif field.number == 2 and is_sum:
                is_delta = field.value == _DELTA
        for point in found:
            self._read_point(name, point, resource, is_delta=is_delta)

    def _read_point(self, name: str, point: memoryview, resource: Attributes, *, is_delta: bool) -> None:
        for field in self._fields(point):
            if field.kind == _FIXED64 and field.number in _VALUES:
                value = float(_VALUES[field.number].unpack_from(field.data)[0])
                attributes = (*resource, *self._attributes(point, 7))
                self.samples.append(MetricSample(name, attributes, value, is_delta))
                return

    def _attributes(self, data: memoryview, number: int) -> Attributes:
        """The attributes of a point or a resource, by name. Only the first of very many are kept."""
        found: dict[str, str] = {}
        for pair in self.messages(data, number):
            key, value = "", ""
            for field in self._fields(pair):
                if field.number == 1 and field.kind == _BYTES:
                    key = _text(field.data)
                elif field.number == 2 and field.kind == _BYTES:
                    value = self._any_value(field.data)
            found[key] = value
            if len(found) == MOST_ATTRIBUTES:
                break
        return tuple(sorted(found.items()))

    def _any_value(self, data: memoryview) -> str:
        for field in self._fields(data):
            match field.number, field.kind:
                case (1, 2):
                    return _text(field.data)
                case (2, 0):
                    return "true" if field.value else "false"
                case (3, 0):
                    return str(field.value - (1 << 64) if field.value >> 63 else field.value)
                case (4, 1):
                    return repr(float(_DOUBLE.unpack_from(field.data)[0]))
        return ""

    def messages(self, data: memoryview, number: int) -> Iterator[memoryview]:
        """The messages in the fields of this number."""
        for field in self._fields(data):
            if field.number == number and field.kind == _BYTES:
                yield field.data

    def _fields(self, data: memoryview) -> Iterator[_Field]:
        """Every field of a message. Raises InvalidRecord or IndexError for bytes that are none."""
        position, end = 0, len(data)
        while position < end and self._left > 0:
            self._left -= 1
            tag, position = _varint(data, position)
            number, kind = tag >> 3, tag & 7
            value, start, length = 0, position, 0
            if kind == _VARINT:
                value, position = _varint(data, position)
            elif kind == _BYTES:
                length, start = _varint(data, position)
            elif kind in _FIXED:
                length = _FIXED[kind]
            else:
                raise InvalidRecord(f"The pushed metrics have a field of the unknown type {kind}.")
            position = max(position, start + length)
            if position > end:
                raise InvalidRecord("The pushed metrics end inside a field.")
            yield _Field(number, kind, value, data[start : start + length])


def _text(data: memoryview) -> str:
    return str(data[:MOST_TEXT_BYTES], "utf-8", "replace")


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 7 * _MOST_VARINT_BYTES, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
    raise InvalidRecord("The pushed metrics have a number of more than ten bytes.")
