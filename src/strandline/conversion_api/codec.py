"""Values of the tiering API to JSON and back, by the types of their fields.

A dataclass is an object, a named tuple a list in the order of its fields, bytes are base64, a topic id is Kafka's text
form of it. Names that a value does not have are refused: the other side speaks another version.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from strandline.errors import InvalidRequest
from strandline.model import INT64_MAX, TopicIdPartition, TopicPartition, uuid_from_text, uuid_to_text

T = TypeVar("T")
Decoder = Callable[[Any], Any]


def encode(value: Any) -> Any:
    """The JSON of a value."""
    match value:
        case None | bool() | int() | float():
            return value
        case enum.Enum():
            return value.value
        case str():
            return value
        case bytes():
            return base64.b64encode(value).decode()
        case UUID():
            return uuid_to_text(value)
        case TopicIdPartition():
            return [uuid_to_text(value.topic_id), value.topic, value.partition]
        case Mapping():
            return {str(key): encode(one) for key, one in value.items()}
        case tuple() | list():
            return [encode(one) for one in value]
    if dataclasses.is_dataclass(value):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    raise TypeError(f"The tiering API has no JSON for {type(value).__name__}.")


def decode(kind: type[T], document: Any) -> T:
    """A value of this type. Raises InvalidRequest with a sentence."""
    wanted: Any = kind
    try:
        found: T = _decoder(wanted)(document)
    except (ValueError, TypeError, KeyError) as error:
        reason = str(error).rstrip(".")
        raise InvalidRequest(f"This is no {kind.__name__} of the tiering API: {reason}.") from error
    return found


@cache
def _decoder(kind: Any) -> Decoder:
    if kind in (int, bool, str):
        return _scalar(kind)
    if kind is bytes:
        return lambda document: base64.b64decode(document, validate=True)
    if kind is UUID:
        return uuid_from_text
    if kind is TopicIdPartition:
        return _partition
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return _named_tuple(kind)
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind)
    return _generic(kind)


def _generic(kind: Any) -> Decoder:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        (inner,) = (_decoder(one) for one in arguments if one is not types.NoneType)
        return lambda document: None if document is None else inner(document)
    if origin is tuple and arguments[-1:] == (Ellipsis,):
        inner = _decoder(arguments[0])
        return lambda document: tuple(inner(one) for one in _list(document))
    if origin is tuple:
        parts = tuple(_decoder(one) for one in arguments)
        return lambda document: tuple(part(one) for part, one in zip(parts, _list(document), strict=True))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        key, inner = _decoder(arguments[0]), _decoder(arguments[1])
        return lambda document: {key(name): inner(one) for name, one in _object(document).items()}
    raise TypeError(f"The tiering API has no JSON for {kind}.")


def _scalar(kind: type) -> Decoder:
    def scalar(document: Any) -> Any:
        if type(document) is not kind:
            raise ValueError(f"{document!r} is not of type {kind.__name__}.")
        if isinstance(document, int) and not -INT64_MAX - 1 <= document <= INT64_MAX:
            raise ValueError(f"{document} has more than 64 bits.")
        return document

    return scalar


def _list(document: Any) -> list[Any]:
    if not isinstance(document, list):
        raise ValueError(f"{document!r} is no list.")
    return document


def _object(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise ValueError(f"{document!r} is no object.")
    return document


def _partition(document: Any) -> TopicIdPartition:
    topic_id, topic, partition = _list(document)
    return TopicIdPartition(uuid_from_text(topic_id), TopicPartition(_scalar(str)(topic), _scalar(int)(partition)))


def _named_tuple(kind: Any) -> Decoder:
    hints = get_type_hints(kind)
    parts = tuple(_decoder(hints[name]) for name in kind._fields)
    return lambda document: kind._make(part(one) for part, one in zip(parts, _list(document), strict=True))


def _dataclass(kind: Any) -> Decoder:
    hints = get_type_hints(kind)
    parts = {field.name: _decoder(hints[field.name]) for field in dataclasses.fields(kind)}
    needed = {field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING}

    def dataclass(document: Any) -> Any:
        given = _object(document).keys()
        if missing := needed - given:
            raise ValueError(f"The field {', '.join(sorted(missing))} is missing.")
        if unknown := given - parts.keys():
            raise ValueError(f"There is no field {', '.join(sorted(unknown))}.")
        return kind(**{name: parts[name](one) for name, one in document.items()})

    return dataclass
