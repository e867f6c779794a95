"""What only PostgreSQL has: connections that break, locks of others, notifications between processes."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import asyncpg  # type: ignore[import-untyped]
import pytest

from strandline.clock import SystemClock
from strandline.sql import (
    SchemaMismatch,
    SqlError,
    SqlStore,
    StoreInUse,
    StoreMisconfigured,
    StoreUnavailable,
    TransactionConflict,
    open_store,
)
from strandline.sql.postgres.address import server_of
from strandline.sql.postgres.errors import translate
from strandline.sql.postgres.store import MIGRATION_LOCK
from strandline.sql.store import Row, Transaction
from tests.postgres import Postgres, postgres, postgres_url

__all__ = ["postgres", "postgres_url"]

LONG_WAIT = """
SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND now() - query_start > interval '0.6 seconds'
"""


async def eventually(sql: SqlStore) -> None:
    """Read until the store answers again."""
    async with asyncio.timeout(20):
        while True:
            try:
                async with sql.transaction() as tx:
                    await tx.fetch("SELECT epoch FROM controller_lease")
                return
            except StoreUnavailable:
                await SystemClock().sleep(0.05)


async def test_a_restart_of_the_server_is_survived(postgres: Postgres, postgres_url: str) -> None:
    async with open_store(postgres_url, deadline=5.0) as sql, sql.hold("broker"):
        heard = asyncio.Event()
        sql.listen("news", heard.set)
        async with sql.transaction() as tx:
            await tx.execute("UPDATE controller_lease SET epoch = 3")
        await asyncio.wait_for(heard.wait(), 10)
        heard.clear()
        await postgres.stop()
        try:
            with pytest.raises(StoreUnavailable):
                async with sql.transaction() as tx:
                    await tx.execute("UPDATE controller_lease SET epoch = 4")
        finally:
            await postgres.start()
        await eventually(sql)
        async with sql.transaction() as tx:
            assert await tx.fetch("SELECT epoch FROM controller_lease") == [(3,)]
        await asyncio.wait_for(heard.wait(), 20)  # something may have been missed
        async with open_store(postgres_url) as other:
            with pytest.raises(StoreInUse):  # the name was taken again
                async with other.hold("broker"):
                    pass


async def test_notifications_reach_other_processes(postgres_url: str) -> None:
    async with open_store(postgres_url) as one, open_store(postgres_url) as other:
        heard = asyncio.Event()
        other.listen("news", heard.set)
        await asyncio.wait_for(heard.wait(), 10)  # listens now
        heard.clear()
        async with one.transaction() as tx:
            tx.notify("news")
            tx.notify("news")
        await asyncio.wait_for(heard.wait(), 10)


async def test_a_channel_can_be_added_to_a_running_session(postgres_url: str) -> None:
    async with open_store(postgres_url) as sql:
        first, second = asyncio.Event(), asyncio.Event()
        sql.listen("first", first.set)
        await asyncio.wait_for(first.wait(), 10)
        sql.listen("second", second.set)
        await asyncio.wait_for(second.wait(), 10)
        second.clear()
        async with sql.transaction() as tx:
            tx.notify("second")
        await asyncio.wait_for(second.wait(), 10)


async def test_a_name_goes_with_the_session_that_held_it(postgres_url: str) -> None:
    async with open_store(postgres_url) as one, open_store(postgres_url) as other:
        async with one.hold("broker"):
            with pytest.raises(StoreInUse, match="Another broker is connected"):
                async with other.hold("broker"):
                    pass
        async with other.hold("broker"):
            pass


async def test_sessions_that_hold_names_are_told_apart(postgres_url: str) -> None:
    names = ["broker 1", "broker 2"]
    async with (
        open_store(postgres_url) as one,
        open_store(postgres_url) as other,
        one.hold("broker 1"),
        other.hold("broker 2"),
    ):
        seen = (await other.holders(names)).sessions
        assert len(set(seen.values())) == 2
        assert (await one.holders(names)).sessions == seen


async def test_a_look_by_a_renewed_session_says_so_and_names_are_taken_again(
    postgres: Postgres, postgres_url: str
) -> None:
    async with open_store(postgres_url) as one, one.hold("process"), one.hold("broker"):
        before = await one.holders(["process", "broker"])
        postgres.run(f"SELECT pg_terminate_backend({before.sessions['broker']});")

        async def is_back() -> bool:
            try:
                seen = await one.holders(["process", "broker"])
            except SqlError:
                return False
            return seen.view > before.view and set(seen.sessions) == {"process", "broker"}

        async with asyncio.timeout(20):
            while not await is_back():
                await SystemClock().sleep(0.02)


async def test_one_that_hangs_in_a_transaction_loses_its_locks(postgres_url: str) -> None:
    """A broker that is stopped (SIGSTOP) while it holds a row must not stop the cluster."""
    async with open_store(postgres_url, deadline=0.5) as sleeper, open_store(postgres_url, deadline=21.0) as other:
        stuck = await asyncpg.connect(postgres_url, server_settings={"idle_in_transaction_session_timeout": "500"})
        assert sleeper.session_id != other.session_id
        await stuck.execute("BEGIN; UPDATE controller_lease SET epoch = 99")
        async with other.transaction() as tx:
            await tx.execute("UPDATE controller_lease SET epoch = 5")
        async with other.transaction() as tx:
            assert await tx.fetch("SELECT epoch FROM controller_lease") == [(5,)]
            settings = await tx.fetch("SHOW idle_in_transaction_session_timeout")
        assert settings == [("7s",)], "before the others give up"
        stuck.terminate()


async def test_one_that_hangs_in_the_middle_of_a_statement_loses_its_locks(postgres_url: str) -> None:
    """The driver has prepared a statement and not run it yet: for the server the session is not idle."""
    async with open_store(postgres_url, deadline=3.0) as other:
        stuck = await asyncpg.connect(
            postgres_url,
            server_settings={"application_name": "strandline", "idle_in_transaction_session_timeout": "1000"},
        )
        await stuck.execute("BEGIN; UPDATE controller_lease SET epoch = 99")
        await stuck.prepare("SELECT epoch FROM controller_lease WHERE epoch > $1")
        other.listen("any", lambda: None)
        async with other.transaction(within=30) as tx:
            await tx.execute("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0")
            await tx.execute("UPDATE controller_lease SET epoch = 5")
        stuck.terminate()


async def test_waiting_for_a_lock_is_bounded(postgres_url: str) -> None:
    async with open_store(postgres_url) as sql, sql.transaction() as holder:
        await holder.execute("UPDATE controller_lease SET epoch = 1")
        with pytest.raises(StoreUnavailable, match="in time"):
            async with sql.transaction(within=0.1) as tx:
                await tx.execute("UPDATE controller_lease SET epoch = 2")


async def test_statements_without_a_caller_end_on_the_server(postgres_url: str) -> None:
    """Else each repetition leaves one more connection behind, until the server has none left for anyone."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    operator, onlooker = await asyncpg.connect(postgres_url), await asyncpg.connect(postgres_url)
    try:
        async with open_store(postgres_url, deadline=0.5) as sql:
            async with operator.transaction():
                await operator.execute("LOCK TABLE controller_lease IN ACCESS EXCLUSIVE MODE")
                with pytest.raises(StoreUnavailable):
                    async with sql.transaction(within=0.1) as tx:
                        await tx.fetch("SELECT epoch FROM controller_lease")
                async with asyncio.timeout(10):
                    while await onlooker.fetchval(waiting):
                        await SystemClock().sleep(0.05)
            await eventually(sql)
    finally:
        await operator.close()
        await onlooker.close()


async def test_commits_without_a_caller_end_on_the_server(postgres: Postgres, postgres_url: str) -> None:
    """Behind one that waits for a synchronous standby, others wait for the lock of notifications."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    onlooker = await asyncpg.connect(postgres_url)
    await onlooker.execute("CREATE TABLE things (number INTEGER)")

    async def write(tx: Transaction) -> None:
        await tx.execute("INSERT INTO things VALUES (1)")
        tx.notify("news")

    async with open_store(postgres_url, deadline=0.5) as sql:
        postgres.run("ALTER SYSTEM SET synchronous_standby_names = 'absent'; SELECT pg_reload_conf();")
        try:
            stuck = 0
            async with asyncio.timeout(20):
                while stuck < 3:  # the first ones may come before the server has read its settings
                    try:
                        await sql.transact(write, within=0.3)
                    except StoreUnavailable:
                        stuck += 1
                while await onlooker.fetchval(waiting):
                    await SystemClock().sleep(0.05)
            assert await onlooker.fetchval("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") == 1
        finally:
            postgres.run("ALTER SYSTEM RESET synchronous_standby_names; SELECT pg_reload_conf();")
            await onlooker.close()
        await eventually(sql)


async def test_a_migration_takes_as_long_as_it_takes(postgres_url: str) -> None:
    """Here it waits for another broker that migrates."""
    operator = await asyncpg.connect(postgres_url)
    try:
        await operator.execute("SELECT pg_advisory_lock($1)", MIGRATION_LOCK)

        async def start() -> None:
            async with open_store(postgres_url, deadline=0.2):
                pass

        starting = asyncio.create_task(start())
        async with asyncio.timeout(10):
            while not starting.done() and not await operator.fetchval(LONG_WAIT):
                await SystemClock().sleep(0.05)
        assert not starting.done()
        await operator.execute("SELECT pg_advisory_unlock($1)", MIGRATION_LOCK)
        await asyncio.wait_for(starting, 10)
    finally:
        await operator.close()


async def test_a_missing_server_is_unavailable_and_wrong_databases_are_misconfigured(postgres_url: str) -> None:
    with pytest.raises(StoreUnavailable, match=r"PostgreSQL at 127\.0\.0\.1:1 cannot be reached: Connection refused\."):
        async with open_store("postgresql://user:secret@127.0.0.1:1/nothing", deadline=2.0):
            pass
    with pytest.raises(StoreUnavailable, match=r"PostgreSQL at no-such-host\.invalid:5432 cannot be reached"):
        async with open_store("postgresql://user:secret@no-such-host.invalid/nothing", deadline=5.0):
            pass
    with pytest.raises(StoreMisconfigured, match="no_such_database"):
        async with open_store(postgres_url.replace("/test_", "/no_such_database_")):
            pass


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (asyncpg.SerializationError("x"), TransactionConflict),
        (asyncpg.DeadlockDetectedError("x"), TransactionConflict),
        (asyncpg.AdminShutdownError("x"), StoreUnavailable),
        (asyncpg.CannotConnectNowError("x"), StoreUnavailable),
        (asyncpg.TooManyConnectionsError("x"), StoreUnavailable),
        (asyncpg.ConnectionDoesNotExistError("x"), StoreUnavailable),
        (asyncpg.InvalidPasswordError("x"), StoreMisconfigured),
        (asyncpg.InsufficientPrivilegeError("x"), StoreMisconfigured),
        (asyncpg.ReadOnlySQLTransactionError("x"), StoreUnavailable),
        (asyncpg.StatementCompletionUnknownError("x"), StoreUnavailable),
        (asyncpg.InvalidCachedStatementError("x"), TransactionConflict),
        (asyncpg.InternalServerError("x"), StoreUnavailable),
        (asyncpg.UndefinedTableError("x"), SqlError),
        (asyncpg.InterfaceError("connection is closed"), StoreUnavailable),
        (asyncpg.DataError("bad argument"), SqlError),
        (ssl.SSLCertVerificationError("wrong name"), StoreUnavailable),
        (TimeoutError(), StoreUnavailable),
        (ConnectionResetError("x"), StoreUnavailable),
    ],
)
def test_driver_errors_are_told_apart(error: Exception, kind: type[SqlError]) -> None:
    translated = translate(error, "db:5432")
    assert type(translated) is kind
    assert "PostgreSQL at db:5432" in str(translated)


async def test_two_transactions_in_a_deadlock_end_with_one_conflict(postgres_url: str) -> None:
    async with open_store(postgres_url) as sql:
        async with sql.transaction() as tx:
            await tx.execute("CREATE TABLE pair (id BIGINT PRIMARY KEY, n BIGINT)")
            await tx.execute("INSERT INTO pair VALUES (1, 0), (2, 0)")
        both_ready = asyncio.Barrier(2)

        async def cross(first: int, second: int) -> None:
            async with sql.transaction() as tx:
                await tx.execute("UPDATE pair SET n = n + 1 WHERE id = $1", first)
                await both_ready.wait()
                await tx.execute("UPDATE pair SET n = n + 1 WHERE id = $1", second)

        results = await asyncio.gather(cross(1, 2), cross(2, 1), return_exceptions=True)
        assert [type(result) for result in results if result is not None] == [TransactionConflict]


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[int]:
    """The port of a server that is not a PostgreSQL and says this to everyone."""

    def serve(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                with client, suppress(OSError):
                    client.recv(1000)
                    client.sendall(answer)
                    client.settimeout(1)
                    client.recv(1000)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(asyncio.to_thread(serve, listener))
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        await serving


_WELCOME = b"R" + struct.pack(">ii", 8, 0)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"R" + struct.pack(">ii", 8, 99),
        b"R" + struct.pack(">i", 5) + b"a",
        _WELCOME + b"Z" + struct.pack(">i", 5) + b"I",
        _WELCOME + b"\xff" * 100,
    ],
)
@pytest.mark.parametrize("ssl_mode", ["disable", "require"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the driver does not close its sockets
async def test_a_server_that_is_no_postgresql_is_unavailable(answer: bytes, ssl_mode: str) -> None:
    async with answering(answer) as port:
        with pytest.raises(StoreUnavailable, match=f"127.0.0.1:{port}") as refused:
            async with open_store(f"postgresql://u:secret@127.0.0.1:{port}/d?sslmode={ssl_mode}", deadline=0.3):
                pass
    assert "secret" not in str(refused.value)
    del refused
    gc.collect()


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("postgresql://user:secret@db.example.com/strandline", "db.example.com:5432"),
        ("postgresql://user:secret@db:6432/strandline?sslmode=require", "db:6432"),
        ("postgres://user:p%40ss@[::1]:6432/strandline", "[::1]:6432"),
        ("postgresql://user@one,two:6000/strandline?target_session_attrs=primary", "one:5432, two:6000"),
        ("postgresql://user:@/strandline?host=/run/postgresql", "/run/postgresql/.s.PGSQL.5432"),
        ("postgresql://user:@/strandline?host=db&port=1&password=a@b", "db:1"),
        ("postgresql://db/strandline?user=me@example.com&password=a@b", "db:5432"),
        ("postgresql:///strandline", "localhost:5432"),
    ],
)
def test_the_server_is_named_without_user_and_password(monkeypatch: pytest.MonkeyPatch, url: str, server: str) -> None:
    monkeypatch.delenv("PGHOST", raising=False)
    monkeypatch.delenv("PGPORT", raising=False)
    assert server_of(url) == server


@pytest.mark.parametrize("password", ["se/cret", "se?cret", "se#cret", "12/34", "12?34", "12#34", "[cret"])
async def test_a_password_with_special_characters_is_explained_and_not_repeated(password: str) -> None:
    with pytest.raises(StoreMisconfigured, match="as %2F %3F %23 %40 %3A") as refused:
        async with open_store(f"postgresql://user:{password}@127.0.0.1:1/strandline"):
            pass
    assert "user:" not in str(refused.value).replace("user:password", "")
    assert not any(part in str(refused.value) for part in ("cret", "12", "34"))


async def test_sessions_that_were_opened_while_the_server_was_read_only_are_not_used_again(
    postgres: Postgres, postgres_url: str
) -> None:
    name = postgres_url.partition("?")[0].rpartition("/")[2]
    postgres.run(f"ALTER DATABASE {name} SET default_transaction_read_only = off;")
    async with open_store(postgres_url) as sql:
        postgres.run(f"ALTER DATABASE {name} SET default_transaction_read_only = on;")
        postgres.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}';")
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                async with sql.transaction() as tx:
                    await tx.execute("UPDATE controller_lease SET epoch = 4")
        postgres.run(f"ALTER DATABASE {name} SET default_transaction_read_only = off;")
        async with sql.transaction() as tx:
            await tx.execute("UPDATE controller_lease SET epoch = 5")


async def test_a_standby_is_not_read_either(postgres: Postgres, postgres_url: str) -> None:
    """It may lag behind: its offsets would look like those of a database that has lost commits."""

    async def read_epoch(tx: Transaction) -> list[Row]:
        return await tx.fetch("SELECT epoch FROM controller_lease")

    async with open_store(postgres_url, deadline=5.0) as sql:
        assert await sql.read(read_epoch) == [(0,)]
        await postgres.become_standby()
        try:
            with suppress(StoreUnavailable):
                await sql.read(read_epoch)  # a connection from before, which is lost
            with pytest.raises(StoreUnavailable, match="is a standby"):
                await sql.read(read_epoch)
        finally:
            await postgres.become_primary()
        await eventually(sql)
        assert await sql.read(read_epoch) == [(0,)]


async def test_a_reader_writes_nothing_and_wants_the_schema_of_its_version(postgres_url: str) -> None:
    with pytest.raises(SqlError, match="schema_migrations"):
        async with open_store(postgres_url, read_only=True):
            pass
    async with open_store(postgres_url) as sql, open_store(postgres_url, read_only=True) as reader:
        async with reader.transaction() as tx:
            assert await tx.fetch("SELECT epoch FROM controller_lease") == [(0,)]
        with pytest.raises(StoreUnavailable, match="25006"):
            async with reader.transaction() as tx:
                await tx.execute("UPDATE controller_lease SET epoch = 4")
        async with sql.transaction() as tx:
            await tx.execute("DELETE FROM schema_migrations WHERE version > 1")
        with pytest.raises(SchemaMismatch, match="does not have the migration V002__control_plane yet"):
            async with open_store(postgres_url, read_only=True):
                pass
