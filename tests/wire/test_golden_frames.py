"""Every frame that real clients and Kafka 4.3.1 exchanged: read, compared with Kafka's reading, written again."""

from __future__ import annotations

import base64
import dataclasses
from typing import Any
from uuid import UUID

import pytest

from strandline.model import uuid_to_text
from strandline.wire.api import ApiKey, is_flexible, response_header_version
from strandline.wire.registry import decode_request, decode_response, encode_request, encode_response
from tests.wire.frames import Frame, frames_by_api, golden_frames, offered_by_kafka, snake


def decoded(frame: Frame) -> Any:
    if frame.is_request:
        return decode_request(memoryview(frame.data))[1]
    return decode_response(ApiKey(frame.api_key), frame.api_version, memoryview(frame.data))[1]


@pytest.mark.parametrize("api_name", frames_by_api())
def test_frames_are_written_as_they_were_read(api_name: str) -> None:
    for frame in frames_by_api()[api_name]:
        assert_round_trip(frame)


def assert_round_trip(frame: Frame) -> None:
    api_key, data = ApiKey(frame.api_key), memoryview(frame.data)
    if frame.is_request:
        header, message = decode_request(data)
        assert header.api_key == frame.api_key
        assert header.client_id == frame.header["clientId"]
        written = encode_request(api_key, header.api_version, header.correlation_id, header.client_id, message)
    else:
        correlation_id, message = decode_response(api_key, frame.api_version, data)
        written = encode_response(api_key, frame.api_version, correlation_id, message)
    assert written == frame.data[: len(frame.data) - frame.unread_bytes], str(frame)


@pytest.mark.parametrize("api_name", frames_by_api())
def test_frames_mean_what_kafka_says(api_name: str) -> None:
    for frame in frames_by_api()[api_name]:
        if frame.decoded is not None:
            assert_means(decoded(frame), frame.decoded, str(frame))


def test_no_frame_was_forgotten() -> None:
    assert len(golden_frames()) == sum(map(len, frames_by_api().values())) > 1100
    assert {frame.client for frame in golden_frames()} == {"aiokafka", "confluent", "java", "kafka-python", "raw"}


def assert_means(value: Any, expected: Any, where: str) -> None:
    """`expected` is Kafka's JSON: camel case, bytes in base64, record sets as their size."""
    if dataclasses.is_dataclass(value):
        assert_struct_means(value, expected, where)
    elif isinstance(value, list):
        assert len(value) == len(expected), where
        for index, (item, expected_item) in enumerate(zip(value, expected, strict=True)):
            assert_means(item, expected_item, f"{where}[{index}]")
    elif isinstance(value, UUID):
        assert uuid_to_text(value) == expected, where
    elif isinstance(value, bytes):
        assert base64.b64encode(value).decode() == expected, where
    else:
        assert value == expected, where


def assert_struct_means(value: Any, expected: dict[str, Any], where: str) -> None:
    names = {snake(key) for key in expected}
    for key, expected_value in expected.items():
        if key.endswith("SizeInBytes"):
            records = getattr(value, snake(key.removesuffix("SizeInBytes")))
            assert len(records or b"") == expected_value, f"{where}.{key}"
        elif key != "records":  # the recorder left the records of ShareFetch out of the JSON
            assert_means(getattr(value, snake(key)), expected_value, f"{where}.{key}")
    untouched = type(value)()
    for field in dataclasses.fields(value):
        if field.name not in names and f"{field.name}_size_in_bytes" not in names:
            assert getattr(value, field.name) == getattr(untouched, field.name), f"{where}.{field.name}"


def test_headers_have_the_versions_kafka_uses() -> None:
    checked = 0
    for key, row in offered_by_kafka().items():
        if key not in ApiKey.__members__.values():
            continue
        for i, version in enumerate(range(row["min"], row["max"] + 1)):
            assert is_flexible(ApiKey(key), version) + 1 == row["request_header_versions"][i], (key, version)
            assert response_header_version(ApiKey(key), version) == row["response_header_versions"][i], (key, version)
            checked += 1
    assert checked > 200
