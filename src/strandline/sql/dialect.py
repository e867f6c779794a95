"""The few words in which SQLite and PostgreSQL differ, and how a statement is put into one of the two dialects.

Statements are written once, with $1-style arguments and these words in braces:

- {now_ms}: the database's own time in milliseconds since 1970;
- {for_update}: lock the selected rows until the transaction ends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

_ARGUMENT: Final = re.compile(r"\$(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dialect:
    """How one database spells what the standard leaves open."""

    name: str
    argument: str
    words: Mapping[str, str]

    def render(self, statement: str) -> str:
        """The statement as this database wants it."""
        return _render(self, statement)


@cache
def _render(dialect: Dialect, statement: str) -> str:
    for word, spelling in dialect.words.items():
        statement = statement.replace("{" + word + "}", spelling)
    return _ARGUMENT.sub(dialect.argument, statement)


SQLITE: Final = Dialect(
    name="sqlite",
    argument=r"?\1",
    words={
        "now_ms": "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
        "for_update": "",  # BEGIN IMMEDIATE already holds the only write lock
    },
)

POSTGRESQL: Final = Dialect(
    name="postgresql",
    argument=r"$\1",
    words={
        "now_ms": "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)",
        "for_update": "FOR UPDATE",
    },
)
