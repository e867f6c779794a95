"""Translates errors of asyncpg."""

from __future__ import annotations

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

_BY_CLASS: Final[dict[str, type[SqlError]]] = {
    "08": StoreUnavailable,  # connection
    "53": StoreUnavailable,  # resources: too many connections, disk full
    "57": StoreUnavailable,  # shutdown, starting up, cancelled
    "40": TransactionConflict,
    "23": IntegrityViolation,
    "28": StoreMisconfigured,  # credentials
    "3D": StoreMisconfigured,  # no such database
}
_BY_STATE: Final[dict[str, type[SqlError]]] = {
    "55P03": StoreUnavailable,  # lock timeout
    "25P03": StoreUnavailable,  # ended because it was idle in a transaction
    "42501": StoreMisconfigured,  # no right to use the table
}


def translate(error: BaseException) -> SqlError:
    """Our error for an error of the driver."""
    text = (str(error) or type(error).__name__).rstrip(".")
    state = getattr(error, "sqlstate", None)
    if state is not None:
        kind = _BY_STATE.get(state) or _BY_CLASS.get(state[:2]) or SqlError
        return kind(f"PostgreSQL answers {state}: {text}.")
    if isinstance(error, asyncpg.ClientConfigurationError):
        return StoreMisconfigured(f"The PostgreSQL address cannot be used: {text}.")
    if isinstance(error, ValueError):
        return SqlError(f"PostgreSQL cannot take an argument: {text}.")
    return StoreUnavailable(f"PostgreSQL cannot be reached: {text}.")


DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)


@contextmanager
def translated() -> Iterator[None]:
    """Translates errors of the driver inside the block; all others pass unchanged."""
    try:
        yield
    except DRIVER_ERRORS as error:
        raise translate(error) from error
