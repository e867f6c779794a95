"""Translates errors of sqlite3."""

from __future__ import annotations

import sqlite3

from strandline.sql.errors import (
    IntegrityViolation,
    SqlError,
    StoreCorrupt,
    StoreMisconfigured,
    StoreUnavailable,
)

_RETRIABLE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,  # also raised for a disk that is full or unavailable for a while
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_SCHEMA,
    }
)
_CORRUPT = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_MISCONFIGURED = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM})


def translate(error: sqlite3.Error, path: str) -> SqlError:
    """Our error for an error of the driver."""
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF  # the low byte is the primary code
    if code == sqlite3.SQLITE_FULL:
        return StoreUnavailable(
            f"The disk with the database {path} is full ({error}). Free some space there; nothing needs a restart."
        )
    if code in _RETRIABLE:
        return StoreUnavailable(f"The database {path} cannot take the transaction now: {error}.")
    if code in _CORRUPT:
        return StoreCorrupt(f"The database {path} is damaged or is not a SQLite database: {error}.")
    if code in _MISCONFIGURED:
        return StoreMisconfigured(f"The database {path} cannot be opened for writing: {error}.")
    if isinstance(error, sqlite3.IntegrityError):
        return IntegrityViolation(f"The database {path} refused a row: {error}.")
    return SqlError(f"The database {path} refused a statement: {error}.")
