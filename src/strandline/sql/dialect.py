"""How SQLite and PostgreSQL differ, and how a statement is rendered for one of the two.

Statements are written once, with $1-style arguments and these words in braces:

- {now_ms}: the database's own time in milliseconds since 1970;
- {for_update}: lock the selected rows until the transaction ends.

Where one text does not serve both, a statement has a file for each database. Many rows go into one statement, and come
out of one, in the fastest way of each database: see `Dialect.bulk` and `Dialect.unpacked`.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from uuid import UUID

from strandline.model import uuid_from_text, uuid_to_text
from strandline.sql.store import Row

_ARGUMENT: Final = re.compile(r"\$(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dialect(ABC):
    """The SQL dialect of one database."""

    name: str
    argument: str
    words: Mapping[str, str]

    def render(self, statement: str) -> str:
        """The statement in this dialect."""
        return _render(self, statement)

    @abstractmethod
    def bulk(self, rows: Sequence[Sequence[object]], width: int) -> tuple[object, ...]:
        """Many rows of `width` columns as the last arguments of one statement.

        PostgreSQL gets an array per column, for unnest($1::int[], $2::bigint[], …); SQLite one JSON array of arrays,
        for json_each($1), because its driver releases and takes the interpreter lock for each row.
        """

    @abstractmethod
    def unpacked(self, fetched: list[Row]) -> list[Row]:
        """The rows of a query that on SQLite packs them into one value: json_group_array(json_array(…))."""

    @abstractmethod
    def uuid(self, value: Any) -> UUID:
        """An id as it came out of a column or of JSON. Arguments may be UUIDs."""


@cache
def _render(dialect: Dialect, statement: str) -> str:
    for word, spelling in dialect.words.items():
        statement = statement.replace("{" + word + "}", spelling)
    return _ARGUMENT.sub(dialect.argument, statement)


class _Sqlite(Dialect):
    def bulk(self, rows: Sequence[Sequence[object]], width: int) -> tuple[object, ...]:
        return (json.dumps(rows, default=_plain, separators=(",", ":")),)

    def unpacked(self, fetched: list[Row]) -> list[Row]:
        return [tuple(row) for row in json.loads(fetched[0][0])]

    def uuid(self, value: Any) -> UUID:
        return uuid_from_text(value)


def _plain(value: object) -> str:
    if isinstance(value, UUID):
        return uuid_to_text(value)
    raise TypeError(f"{type(value).__name__} cannot be a value in `Dialect.bulk`.")


class _Postgresql(Dialect):
    def bulk(self, rows: Sequence[Sequence[object]], width: int) -> tuple[object, ...]:
        return tuple(zip(*rows, strict=True)) if rows else ((),) * width

    def unpacked(self, fetched: list[Row]) -> list[Row]:
        return fetched

    def uuid(self, value: Any) -> UUID:
        return UUID(int=value.int)


SQLITE: Final[Dialect] = _Sqlite(
    name="sqlite",
    argument=r"?\1",
    words={
        "now_ms": "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
        "for_update": "",  # BEGIN IMMEDIATE already holds the only write lock
    },
)

POSTGRESQL: Final[Dialect] = _Postgresql(
    name="postgresql",
    argument=r"$\1",
    words={
        "now_ms": "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)",
        "for_update": "FOR UPDATE",
    },
)
