"""Reading numbers out of messages of OpenTelemetry."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.errors import InvalidRecord
from strandline.server.telemetry.otlp import MOST_ATTRIBUTES, MOST_TEXT_BYTES, MetricSample, read_metrics
from tests.server.telemetry.payloads import (
    CUMULATIVE,
    DELTA,
    attribute,
    field,
    message,
    metric,
    metrics_data,
    point,
    varint,
)


def test_gauges_and_sums_with_their_attributes() -> None:
    payload = metrics_data(
        [
            metric("a.rate", point(1.5), point(-2.0, {"topic": "t", "partition": "0"})),
            metric("b.total", point(7), temporality=DELTA),
            metric("c.total", point(8), temporality=CUMULATIVE),
        ],
        {"client_rack": "r1"},
    )
    rack = ("client_rack", "r1")
    assert read_metrics(payload) == [
        MetricSample("a.rate", (rack,), 1.5),
        MetricSample("a.rate", (rack, ("partition", "0"), ("topic", "t")), -2.0),
        MetricSample("b.total", (rack,), 7.0, is_delta=True),
        MetricSample("c.total", (rack,), 8.0),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (message(1, b"word"), "word"),
        (field(2, 0, varint(1)), "true"),
        (field(3, 0, varint(42)), "42"),
        (field(3, 0, varint((1 << 64) - 5)), "-5"),
        (field(4, 1, struct.pack("<d", 0.5)), "0.5"),
        (message(5, b""), ""),
    ],
)
def test_attributes_of_every_type(value: bytes, text: str) -> None:
    one = field(4, 1, struct.pack("<d", 1.0)) + attribute(7, "key", value)
    assert read_metrics(metrics_data([metric("m", one)])) == [MetricSample("m", (("key", text),), 1.0)]


def test_what_is_not_known_is_skipped() -> None:
    histogram = message(1, b"h") + message(9, message(1, b""))
    unnamed = metric("", point(1.0))
    without_value = metric("m", field(3, 1, bytes(8)))
    newer = field(99, 5, bytes(4)) + metric("n", point(2.0)) + field(100, 0, varint(3))
    assert read_metrics(metrics_data([histogram, unnamed, without_value, newer])) == [MetricSample("n", (), 2.0)]


def test_the_work_is_bounded() -> None:
    payload = metrics_data([metric("m", *[point(1.0)] * 1000)])
    assert len(read_metrics(payload, most_fields=2000)) < 1000
    many = metrics_data([metric("m", point(1.0, {str(number): "x" for number in range(100)}))])
    assert len(read_metrics(many)[0].attributes) == MOST_ATTRIBUTES
    long = metrics_data([metric("m" * 2000, point(1.0))])
    assert read_metrics(long)[0].name == "m" * MOST_TEXT_BYTES


@pytest.mark.parametrize(
    "payload",
    [
        b"\x0a",
        b"\x0a\x05ab",
        b"\x0b",
        b"\xff" * 12,
        b"\x09\x00",
        metrics_data([metric("m", point(1.0))])[:-3],
    ],
)
def test_damaged_messages_are_refused(payload: bytes) -> None:
    with pytest.raises(InvalidRecord):
        read_metrics(payload)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(payload: bytes) -> None:
    try:
        read_metrics(payload)
    except InvalidRecord:
        return
