"""The columns of the data source: those of Spark's own Kafka source, in their order."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

HEADERS: Final[Any] = pa.list_(
    pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
)

_COLUMNS: Final = (
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", pa.timestamp("us", tz="UTC")),
    pa.field("timestampType", pa.int32()),
)
_SPARK_COLUMNS: Final = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
)
_SPARK_HEADERS: Final = "headers array<struct<key: string, value: binary>>"


def arrow_schema(*, include_headers: bool) -> pa.Schema:
    """As Arrow has it."""
    return pa.schema([*_COLUMNS, pa.field("headers", HEADERS)] if include_headers else _COLUMNS)


def spark_schema(*, include_headers: bool) -> str:
    """As Spark has it, in its own words."""
    return f"{_SPARK_COLUMNS}, {_SPARK_HEADERS}" if include_headers else _SPARK_COLUMNS
