"""Two implementations, one protocol: what kio writes we read, what we write kio reads, byte for byte the same.

kio's classes are where our generated ones come from, but its readers and writers are its own.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from strandline.model import ZERO_UUID
from strandline.wire.api import KNOWN_APIS, ApiKey
from strandline.wire.registry import codec
from tests.wire.kio_messages import entities, kio_bytes, kio_entity, plain, schema


@pytest.mark.parametrize("api_key", sorted(KNOWN_APIS), ids=lambda key: key.name)
@pytest.mark.parametrize("is_request", [True, False], ids=["request", "response"])
def test_both_read_and_write_the_same(api_key: ApiKey, is_request: bool) -> None:
    versions = KNOWN_APIS[api_key]
    for version in range(versions.min, versions.max + 1):
        check_version(api_key, version, is_request=is_request)


def check_version(api_key: ApiKey, version: int, *, is_request: bool) -> None:
    cls = schema(api_key, version, is_request=is_request)
    functions = codec(api_key)
    read = functions.read_request if is_request else functions.read_response
    write = functions.write_request if is_request else functions.write_response

    @settings(max_examples=5, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(entities(cls))
    def check(entity: Any) -> None:
        theirs = kio_bytes(entity)
        message, position = read(memoryview(theirs), 0, version)
        assert position == len(theirs)
        assert_same(message, entity)
        ours = bytearray()
        write(ours, message, version)
        assert bytes(ours) == theirs
        assert kio_entity(cls, bytes(ours)) == kio_entity(cls, theirs)

    check()


def assert_same(message: Any, entity: Any) -> None:
    for field in dataclasses.fields(entity):
        value = getattr(entity, field.name)
        kind = field.metadata.get("kafka_type", "")
        name = f"{field.name}_ms" if kind.startswith(("timedelta", "datetime")) else field.name
        assert_equal(getattr(message, name), value)


def assert_equal(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, tuple):
        assert len(ours) == len(theirs)
        for our, their in zip(ours, theirs, strict=True):
            assert_equal(our, their)
    elif dataclasses.is_dataclass(theirs):
        assert_same(ours, theirs)
    elif theirs is None:
        assert ours in (None, ZERO_UUID, -1)
    else:
        assert ours == plain(theirs)
