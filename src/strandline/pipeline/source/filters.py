"""What filters of a query say about partitions, offsets and times, so that less has to be read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from strandline.model import INT64_MAX, Offset, TimestampMs

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_NEVER_NULL: Final = frozenset({"topic", "partition", "offset", "timestamp", "timestampType"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What records have to be like. Bounds are inclusive."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    min_offset: Offset = 0
    max_offset: Offset = INT64_MAX
    min_timestamp: TimestampMs = -INT64_MAX
    max_timestamp: TimestampMs = INT64_MAX


def narrow(bounds: Bounds, filters: Iterable[Any]) -> tuple[Bounds, list[Any]]:
    """Bounds that also hold for these filters of Spark, and the filters that Spark still has to apply itself.

    Those on times are among them: a record has milliseconds, a column microseconds.
    """
    left: list[Any] = []
    for one in filters:
        narrower = _narrowed(bounds, one)
        if narrower is not None:
            bounds = narrower
        if narrower is None or one.attribute == ("timestamp",):
            left.append(one)
    return bounds, left


def _narrowed(bounds: Bounds, one: Any) -> Bounds | None:
    """None if the filter says nothing that is of use here."""
    kind = type(one).__name__
    attribute: tuple[str, ...] = getattr(one, "attribute", ())
    if len(attribute) != 1:
        return None
    (column,) = attribute
    if kind == "IsNotNull":
        return bounds if column in _NEVER_NULL else None
    value = getattr(one, "value", None)
    match column:
        case "topic" | "partition":
            return _one_of(bounds, column, kind, value)
        case "offset" if type(value) is int:
            return _offsets(bounds, kind, value)
        case "timestamp" if isinstance(value, datetime) and value.tzinfo is not None:
            return _times(bounds, kind, (value - _EPOCH) // _MICROSECOND)
    return None


def _one_of(bounds: Bounds, column: str, kind: str, value: Any) -> Bounds | None:
    if kind not in ("EqualTo", "In"):
        return None
    wanted = frozenset({value} if kind == "EqualTo" else value)
    if column == "topic":
        return replace(bounds, topics=wanted if bounds.topics is None else bounds.topics & wanted)
    return replace(bounds, partitions=wanted if bounds.partitions is None else bounds.partitions & wanted)


def _offsets(bounds: Bounds, kind: str, value: int) -> Bounds | None:
    match kind:
        case "EqualTo":
            low, high = value, value
        case "GreaterThan":
            low, high = value + 1, INT64_MAX
        case "GreaterThanOrEqual":
            low, high = value, INT64_MAX
        case "LessThan":
            low, high = 0, value - 1
        case "LessThanOrEqual":
            low, high = 0, value
        case _:
            return None
    return replace(bounds, min_offset=max(bounds.min_offset, low), max_offset=min(bounds.max_offset, high))


def _times(bounds: Bounds, kind: str, micros: int) -> Bounds | None:
    """Milliseconds that are not on the wrong side of a number of microseconds."""
    floor, ceiling = micros // 1000, -(-micros // 1000)
    match kind:
        case "EqualTo":
            low, high = ceiling, floor
        case "GreaterThan":
            low, high = floor + 1, INT64_MAX
        case "GreaterThanOrEqual":
            low, high = ceiling, INT64_MAX
        case "LessThan":
            low, high = -INT64_MAX, ceiling - 1
        case "LessThanOrEqual":
            low, high = -INT64_MAX, floor
        case _:
            return None
    return replace(bounds, min_timestamp=max(bounds.min_timestamp, low), max_timestamp=min(bounds.max_timestamp, high))
