"""Translates errors of asyncpg."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import asyncpg  # type: ignore[import-untyped]

from strandline.sql.errors import (
    IntegrityViolation,
    SqlError,
    StoreMisconfigured,
    StoreUnavailable,
    TransactionConflict,
)

# A state that is not listed, also an unknown one, is trouble of the server that passes: connections (08), sessions and
# read-only servers (25), resources (53), operators (57), the system (58), internal errors (XX). That is the careful
# answer as well: StoreUnavailable leaves open whether the transaction has committed.
_BY_CLASS: Final[dict[str, type[SqlError]]] = {
    "20": SqlError,  # from here on: the statement or its arguments are at fault
    "21": SqlError,
    "22": SqlError,
    "42": SqlError,  # also a table that is not there
    "44": SqlError,
    "54": SqlError,
    "23": IntegrityViolation,
    "28": StoreMisconfigured,  # credentials
    "3D": StoreMisconfigured,  # no such database
    "3F": StoreMisconfigured,  # no such schema
    "40": TransactionConflict,
}
_BY_STATE: Final[dict[str, type[SqlError]]] = {
    "0A000": TransactionConflict,  # a prepared statement does not fit a changed table: it is prepared again
    "40003": StoreUnavailable,  # it is not known whether the statement was completed
    "42501": StoreMisconfigured,  # no right to use the table
    "42P05": StoreUnavailable,  # a pool between us and the server confuses prepared statements
}


def translate(error: BaseException, server: str) -> SqlError:
    """Our error for an error of the driver. `server` is the host and port for the sentence."""
    text = _reason(error).partition("\n")[0].rstrip(".")  # the driver adds paragraphs of advice to some errors
    state = getattr(error, "sqlstate", None)
    if state is not None:
        kind = _BY_STATE.get(state) or _BY_CLASS.get(state[:2]) or StoreUnavailable
        return kind(f"PostgreSQL at {server} answers {state}: {text}.")
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return StoreUnavailable(f"PostgreSQL at {server} is a standby, or takes no writes for another reason.")
    if isinstance(error, asyncpg.ClientConfigurationError):
        return StoreMisconfigured(f"The address of PostgreSQL at {server} cannot be used: {text}.")
    if isinstance(error, ValueError) and not isinstance(error, OSError):
        return SqlError(f"PostgreSQL at {server} cannot take an argument: {text}.")
    if isinstance(error, OSError):
        return StoreUnavailable(f"PostgreSQL at {server} cannot be reached: {text}.")
    return StoreUnavailable(f"A connection to PostgreSQL at {server} cannot be used: {text}.")


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)  # the driver's own text repeats the address
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return str(error) or type(error).__name__


DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)


@contextmanager
def translated(server: str) -> Iterator[None]:
    """Translates errors of the driver inside the block; all others pass unchanged."""
    try:
        yield
    except DRIVER_ERRORS as error:
        raise translate(error, server) from error


@contextmanager
def connecting(server: str) -> Iterator[None]:
    """As `translated`, for a block that only connects: whatever the driver raises there is about the server."""
    try:
        yield
    except SqlError:
        raise
    except DRIVER_ERRORS as error:
        raise translate(error, server) from error
    except Exception as error:
        # The driver trips over a server that is not a PostgreSQL, in ways that it has no classes for.
        raise StoreUnavailable(
            f"What answers at {server} does not speak as PostgreSQL does ({type(error).__name__}: {error})."
        ) from error
