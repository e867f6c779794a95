"""Hypothesis strategies for kio's messages, which ours are compared with."""

from __future__ import annotations

import dataclasses
import datetime
import io
from typing import Any

from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.serial._introspect import EntityField, EntityTupleField, classify_field, get_field_tag, is_optional

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MILLISECOND = datetime.timedelta(milliseconds=1)


def _integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


_PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": _integers(8),
    "int16": _integers(16),
    "int32": _integers(32),
    "int64": _integers(64),
    "uint16": st.integers(0, 65535),
    "float64": st.floats(allow_nan=False),
    "string": st.text(max_size=200),
    "bytes": st.binary(max_size=200),
    "records": st.binary(max_size=200),
    "uuid": st.uuids(),
    "error_code": st.sampled_from(ErrorCode),
    "timedelta_i32": _integers(32).map(lambda ms: ms * _MILLISECOND),
    "timedelta_i64": st.integers(-(1 << 45), 1 << 45).map(lambda ms: ms * _MILLISECOND),
    "datetime_i64": st.integers(0, 1 << 42).map(lambda ms: _EPOCH + ms * _MILLISECOND),
}


def entities(cls: type) -> st.SearchStrategy[Any]:
    """Any legal instance of one of kio's classes."""
    return st.builds(cls, **{field.name: _values(field) for field in dataclasses.fields(cls)})


def _values(field: dataclasses.Field[Any]) -> st.SearchStrategy[Any]:
    kind = classify_field(field)
    if isinstance(kind, EntityField | EntityTupleField):
        element = entities(kind.type_)
    else:
        element = _PRIMITIVES[field.metadata["kafka_type"]]
        if field.metadata["kafka_type"] == "uuid":
            element = st.none() | element
    if kind.is_array:
        element = st.lists(element, max_size=3).map(tuple)
    # kio cannot write a null in a tagged field: there null is what an absent field means.
    nullable = type(None) in getattr(field.type, "__args__", ()) or (not kind.is_array and is_optional(field))
    if nullable and (get_field_tag(field) is None or field.default is None):
        return st.none() | element
    return element


def schema(api_key: int, version: int, *, is_request: bool) -> type:
    return load_request_schema(api_key, version) if is_request else load_response_schema(api_key, version)


def kio_bytes(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def kio_entity(cls: type, data: bytes) -> Any:
    reader: Any = entity_reader(cls)
    value, size = reader(data, 0)
    assert size == len(data)
    return value


def plain(value: Any) -> Any:
    """kio's rich values as our plain ones."""
    if isinstance(value, datetime.timedelta):
        return round(value / _MILLISECOND)
    if isinstance(value, datetime.datetime):
        return round((value - _EPOCH) / _MILLISECOND)
    if isinstance(value, ErrorCode):
        return value.value
    return value
