"""Opens the store at an address."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from strandline.clock import Clock, Ids, SystemClock, SystemIds
from strandline.model import uuid_to_text
from strandline.sql.errors import StoreMisconfigured
from strandline.sql.sqlite.store import MEMORY, SqliteStore
from strandline.sql.store import SqlStore

if TYPE_CHECKING:
    from strandline.sql.postgres.store import PostgresStore

DEFAULT_DEADLINE: Final = 10.0


@asynccontextmanager
async def open_store(
    url: str,
    *,
    clock: Clock | None = None,
    ids: Ids | None = None,
    deadline: float = DEFAULT_DEADLINE,
    read_only: bool = False,
) -> AsyncIterator[SqlStore]:
    """The store at `url`, with its schema up to date, closed at the end of the block.

    sqlite:///relative/path, sqlite:////absolute/path and sqlite:///:memory:, or postgresql://user@host/database.
    `deadline` bounds, in seconds, connecting and every transaction that names no time of its own. `read_only` is for
    commands: the database is left as it is, and a SQLite file may be open in its broker meanwhile, which is neither
    kept waiting nor kept from writing. Raises SchemaMismatch then if the schema is not that of this version.
    """
    session_id = uuid_to_text((ids or SystemIds()).uuid())
    store = _make(url, session_id, deadline, clock or SystemClock(), read_only=read_only)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def _make(url: str, session_id: str, deadline: float, clock: Clock, *, read_only: bool) -> SqliteStore | PostgresStore:
    scheme, separator, rest = url.partition("://")
    if separator and scheme == "sqlite":
        path = rest.removeprefix("/") or MEMORY
        return SqliteStore(path, session_id=session_id, deadline=deadline, read_only=read_only)
    if separator and scheme in ("postgresql", "postgres"):
        # Imported here: an embedded broker starts faster without the driver.
        from strandline.sql.postgres.store import PostgresStore

        return PostgresStore(url, session_id=session_id, deadline=deadline, clock=clock, read_only=read_only)
    given = f"{scheme}://…" if separator else "This"  # an address may hold a password
    raise StoreMisconfigured(
        f"{given} is not a database address: use sqlite:///path/to/file or postgresql://user@host/database."
    )
