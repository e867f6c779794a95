"""Schema migrations: numbered files per database, applied once, forward only, each checked by its checksum.

A file is named `V<number>__<what>.sql` and begins with a comment that says which locks it takes. Released files never
change. Several brokers may start at once: a lock lets one of them migrate while the others wait.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Final

from strandline.sql.errors import SchemaMismatch
from strandline.sql.store import Row

_NAME: Final = re.compile(r"V(\d{3,})__([a-z0-9_]+)\.sql")

CREATE_HISTORY: Final = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    version BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    checksum BIGINT NOT NULL,
    applied_at_ms BIGINT NOT NULL
)
"""
READ_HISTORY: Final = "SELECT version, name, checksum FROM schema_migrations ORDER BY version"
ADD_TO_HISTORY: Final = (
    "INSERT INTO schema_migrations (version, name, checksum, applied_at_ms) VALUES ($1, $2, $3, {now_ms})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step of the schema."""

    version: int
    name: str
    script: str

    @property
    def checksum(self) -> int:
        """The checksum of the text, whatever the line endings of the checkout are."""
        return zlib.crc32("\n".join(self.script.splitlines()).encode())


def load_migrations(dialect: str) -> tuple[Migration, ...]:
    """All steps for a database, oldest first."""
    found = []
    for entry in resources.files(__name__).joinpath(dialect).iterdir():
        match = _NAME.fullmatch(entry.name)
        if match:
            script = entry.read_text(encoding="utf-8")
            found.append(Migration(version=int(match[1]), name=match[2], script=script))
    return tuple(sorted(found, key=lambda migration: migration.version))


def pending(known: Sequence[Migration], history: Sequence[Row]) -> tuple[Migration, ...]:
    """The steps that the database still needs. Raises SchemaMismatch if its history is not a prefix of ours."""
    for position, (version, name, checksum) in enumerate(history):
        if position >= len(known):
            raise SchemaMismatch(
                f"The database has migration V{version:03}__{name}, which this version of Strandline does not know. "
                "It was written by a newer version; start that one."
            )
        step = known[position]
        if (step.version, step.name) != (version, name):
            raise SchemaMismatch(
                f"The database has migration V{version:03}__{name} where V{step.version:03}__{step.name} is expected."
            )
        if step.checksum != checksum:
            raise SchemaMismatch(
                f"Migration V{version:03}__{name} was changed after it had been applied to this database "
                f"(checksum {checksum}, now {step.checksum})."
            )
    return tuple(known[len(history) :])


def check_current(known: Sequence[Migration], history: Sequence[Row]) -> None:
    """Raise SchemaMismatch if the database needs any step: for readers, which must not bring it up to date."""
    for step in pending(known, history):
        raise SchemaMismatch(
            f"The database does not have the migration V{step.version:03}__{step.name} yet: an older version wrote it. "
            "A broker of this version brings it up to date when it starts."
        )
