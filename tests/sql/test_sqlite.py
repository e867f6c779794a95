"""What only SQLite has: the file, its lock, its durability settings, its errors."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from pathlib import Path

import pytest

from strandline.sql import (
    SchemaMismatch,
    SqlError,
    StoreCorrupt,
    StoreInUse,
    StoreMisconfigured,
    StoreUnavailable,
    open_store,
)
from strandline.sql.sqlite.errors import translate


def address(path: Path) -> str:
    return f"sqlite:///{path}"


async def test_commits_are_flushed_before_they_are_answered(tmp_path: Path) -> None:
    async with open_store(address(tmp_path / "m.db")) as sql, sql.transaction() as tx:
        assert await tx.fetch("PRAGMA journal_mode") == [("wal",)]
        assert await tx.fetch("PRAGMA synchronous") == [(2,)]  # FULL


async def test_directories_are_made_as_needed(tmp_path: Path) -> None:
    async with open_store(address(tmp_path / "a" / "b" / "m.db")) as sql:
        assert sql.is_exclusive
    assert (tmp_path / "a" / "b" / "m.db").exists()


async def test_a_second_opening_in_the_same_process_is_refused(tmp_path: Path) -> None:
    async with open_store(address(tmp_path / "m.db")):
        with pytest.raises(StoreInUse, match="already open in this process"):
            async with open_store(address(tmp_path / "m.db")):
                pass
    async with open_store(address(tmp_path / "m.db")):
        pass


_HOLDER = """
import asyncio, sys
from strandline.sql import open_store
async def main():
    async with open_store(sys.argv[1]):
        print("open", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
asyncio.run(main())
"""


async def test_a_second_process_is_told_who_has_the_database_and_what_to_do(tmp_path: Path) -> None:
    url = address(tmp_path / "m.db")
    pipe = asyncio.subprocess.PIPE
    holder = await asyncio.create_subprocess_exec(sys.executable, "-c", _HOLDER, url, stdin=pipe, stdout=pipe)
    assert holder.stdout is not None
    assert await holder.stdout.readline() == b"open\n"
    with pytest.raises(StoreInUse, match=f"already open in process {holder.pid}.*use PostgreSQL"):
        async with open_store(url):
            pass
    holder.kill()
    await holder.communicate()
    async with open_store(url):  # a killed process leaves nothing that would have to be cleaned up
        assert (tmp_path / "m.db.lock").read_text() == str(os.getpid())


async def test_a_file_that_is_no_database_is_called_so(tmp_path: Path) -> None:
    (tmp_path / "m.db").write_bytes(b"this is a text file, not a database" * 50)
    with pytest.raises(StoreCorrupt, match=r"m\.db is damaged or is not a SQLite database"):
        async with open_store(address(tmp_path / "m.db")):
            pass
    (tmp_path / "m.db").unlink()
    async with open_store(address(tmp_path / "m.db")):  # the failed opening has let go of the lock
        pass


async def test_a_directory_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.db").mkdir()
    with pytest.raises(StoreMisconfigured, match="cannot be opened"):
        async with open_store(address(tmp_path / "m.db")):
            pass


async def test_a_path_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreMisconfigured, match="is not a directory"):
        async with open_store(address(tmp_path / "file" / "m.db")):
            pass


async def test_memory_is_a_store_too() -> None:
    async with (
        open_store("sqlite:///:memory:") as one,
        open_store("sqlite:///:memory:") as other,
    ):
        async with one.transaction() as tx:
            await tx.execute("UPDATE controller_lease SET epoch = 1")
        async with other.transaction() as tx:
            assert await tx.fetch("SELECT epoch FROM controller_lease") == [(0,)]


@pytest.mark.parametrize("url", ["", "metadata.db", "mysql://localhost/x", "sqlite:metadata.db"])
async def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(StoreMisconfigured, match="is not a database address"):
        async with open_store(url):
            pass


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_BUSY, StoreUnavailable),
        (sqlite3.SQLITE_FULL, StoreUnavailable),
        (sqlite3.SQLITE_IOERR_FSYNC, StoreUnavailable),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, StoreUnavailable),
        (sqlite3.SQLITE_CORRUPT, StoreCorrupt),
        (sqlite3.SQLITE_READONLY, StoreMisconfigured),
        (sqlite3.SQLITE_ERROR, SqlError),
    ],
)
def test_driver_errors_are_told_apart(code: int, kind: type[SqlError]) -> None:
    error = sqlite3.OperationalError("no")
    error.sqlite_errorcode = code
    assert type(translate(error, "m.db")) is kind


async def test_a_reader_neither_disturbs_the_broker_nor_waits_for_it(tmp_path: Path) -> None:
    url = address(tmp_path / "m.db")
    async with open_store(url) as sql, open_store(url, read_only=True) as reader:
        assert not reader.is_exclusive
        async with sql.transaction() as writing, reader.transaction() as reading:
            await writing.execute("UPDATE controller_lease SET epoch = 7")
            assert await reading.fetch("SELECT epoch FROM controller_lease") == [(0,)]
        async with reader.transaction() as reading:
            assert await reading.fetch("SELECT epoch FROM controller_lease") == [(7,)]
            async with sql.transaction() as writing:  # also while a snapshot is being read
                await writing.execute("UPDATE controller_lease SET epoch = 8")
        with pytest.raises(StoreMisconfigured, match="cannot be opened for writing"):
            async with reader.transaction() as reading:
                await reading.execute("UPDATE controller_lease SET epoch = 9")
    async with open_store(url, read_only=True) as reader, reader.transaction() as reading:  # the broker has stopped
        assert await reading.fetch("SELECT epoch FROM controller_lease") == [(8,)]
    async with open_store(url):  # readers leave nothing behind that keeps the next broker out
        pass


async def test_a_reader_makes_no_database_and_migrates_none(tmp_path: Path) -> None:
    with pytest.raises(StoreMisconfigured):
        async with open_store(address(tmp_path / "none.db"), read_only=True):
            pass
    assert os.listdir(tmp_path) == []
    async with open_store(address(tmp_path / "old.db")) as sql, sql.transaction() as tx:
        await tx.execute("DELETE FROM schema_migrations WHERE version > 1")
    with pytest.raises(SchemaMismatch, match=r"V002__control_plane yet: an older version wrote it\."):
        async with open_store(address(tmp_path / "old.db"), read_only=True):
            pass
