"""Schema migrations on both databases."""

from __future__ import annotations

import asyncio
import re
from importlib import resources
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]
import pytest

from strandline.sql import SchemaMismatch, StoreUnavailable, Transaction, open_store
from strandline.sql.migrations import Migration, load_migrations, pending
from tests.postgres import start_postgres

DIALECTS = ["sqlite", "postgresql"]


@pytest.fixture(params=DIALECTS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'm.db'}" if request.param == "sqlite" else start_postgres().new_database()


def steps(*names: str) -> tuple[Migration, ...]:
    return tuple(Migration(version=i, name=name, script=f"-- {name}") for i, name in enumerate(names, 1))


def history(*done: Migration) -> list[tuple[object, ...]]:
    return [(step.version, step.name, step.checksum) for step in done]


def test_both_databases_have_the_same_steps() -> None:
    names = [[(step.version, step.name) for step in load_migrations(dialect)] for dialect in DIALECTS]
    assert names[0] == names[1] != []
    assert [version for version, _ in names[0]] == list(range(1, len(names[0]) + 1))


def test_every_file_opens_with_the_locks_it_takes() -> None:
    for dialect in DIALECTS:
        for step in load_migrations(dialect):
            assert re.match(r"-- .*locks", step.script), step


def test_both_databases_get_the_same_tables_and_columns() -> None:
    def shape(dialect: str) -> list[tuple[str, list[str]]]:
        text = "\n".join(step.script for step in load_migrations(dialect))
        tables = re.findall(r"CREATE TABLE (\w+) \((.*?)\n\)[^;]*;", text, re.DOTALL)
        return [(name, re.findall(r'^\s+"?(\w+)"? ', body, re.MULTILINE)) for name, body in tables]

    assert shape("sqlite") == shape("postgresql") != []


def test_the_files_are_part_of_the_package() -> None:
    assert resources.files("strandline.sql.migrations").joinpath("sqlite/V001__metadata_log.sql").is_file()


def test_only_what_is_missing_is_pending() -> None:
    known = steps("one", "two", "three")
    assert pending(known, []) == known
    assert pending(known, history(*known[:2])) == known[2:]
    assert pending(known, history(*known)) == ()


def test_a_newer_database_is_refused() -> None:
    known = steps("one", "two")
    with pytest.raises(SchemaMismatch, match=r"V002__two.*newer"):
        pending(known[:1], history(*known))


def test_a_changed_step_is_refused() -> None:
    (one,) = steps("one")
    changed = Migration(version=1, name="one", script="-- something else")
    with pytest.raises(SchemaMismatch, match="V001__one was changed"):
        pending((changed,), history(one))


def test_another_step_in_its_place_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match="V001__other where V001__one"):
        pending(steps("one"), history(*steps("other")))


def test_line_endings_do_not_change_a_checksum() -> None:
    unix = Migration(version=1, name="x", script="a\nb\n")
    windows = Migration(version=1, name="x", script="a\r\nb\r\n")
    assert unix.checksum == windows.checksum


async def test_opening_again_changes_nothing(url: str) -> None:
    async with open_store(url) as sql, sql.transaction() as tx:
        before = await tx.fetch("SELECT * FROM schema_migrations")
        assert len(before) == len(load_migrations("sqlite"))
    async with open_store(url) as sql, sql.transaction() as tx:
        assert await tx.fetch("SELECT * FROM schema_migrations") == before


async def test_a_database_with_a_strange_history_is_not_touched(url: str) -> None:
    async with open_store(url) as sql, sql.transaction() as tx:
        await tx.execute("UPDATE schema_migrations SET checksum = 1 WHERE version = 1")
    for _ in range(2):
        with pytest.raises(SchemaMismatch):
            async with open_store(url):
                pass


async def test_several_brokers_may_start_at_once() -> None:
    url = start_postgres().new_database()

    async def start() -> int:
        async with open_store(url) as sql, sql.transaction() as tx:
            return len(await tx.fetch("SELECT * FROM schema_migrations"))

    counts = await asyncio.gather(*(start() for _ in range(5)))
    assert set(counts) == {len(load_migrations("postgresql"))}


# V003: the last epoch of each log

_LOG = (
    "INSERT INTO inkless_log (topic_id, partition, topic_name, high_watermark) "
    "VALUES ('00000000-0000-0000-0000-00000000000{number}', 0, 'topic', 10)"
)
_ROW = (
    "INSERT INTO inkless_batch (log_id, last_offset, base_offset, file_id, byte_offset, byte_size, timestamp_type, "
    "log_append_timestamp, max_timestamp, running_max_timestamp, leader_epoch) "
    "VALUES ($1, $2, $2, 1, 0, 1, 0, 0, 0, 0, $3)"
)


_TIERING = ("inkless_tiering_segment", "inkless_tiering_topic", "inkless_tiering_given_up")


async def without_transactions(tx: Transaction) -> None:
    """Undo V007, and what came after it."""
    await tx.execute("DROP TABLE inkless_split_run")
    await tx.execute("DROP TABLE strandline_store")
    await tx.execute("DROP TABLE inkless_aborted_txn")
    await tx.execute("DROP INDEX inkless_producer_state_open")
    for table, columns in (
        ("inkless_log", ("first_unstable_offset", "last_aborted_offset")),
        ("inkless_producer_state", ("txn_first_offset", "coordinator_epoch", "txn_ended_ms")),
    ):
        for column in columns:
            await tx.execute(f"ALTER TABLE {table} DROP COLUMN {column}")


def know_only(monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    """Brokers on PostgreSQL are of the version that brought this migration."""
    steps = tuple(step for step in load_migrations("postgresql") if step.version <= version)
    monkeypatch.setattr("strandline.sql.postgres.store.load_migrations", lambda _: steps)


async def before_last_epoch(url: str, epochs: dict[int, list[int]]) -> None:
    """A database as the version before left it: logs by their ids, each with rows of these epochs."""
    async with open_store(url) as sql, sql.transaction() as tx:
        await without_transactions(tx)
        for table in ("inkless_migration", *_TIERING):
            await tx.execute(f"DROP TABLE {table}")
        await tx.execute("ALTER TABLE inkless_log DROP COLUMN last_epoch")
        await tx.execute("DELETE FROM schema_migrations WHERE version >= 3")
        for log_id, of_log in epochs.items():
            await tx.execute(_LOG.format(number=log_id))
            await tx.execute_many(_ROW, [(log_id, offset, epoch) for offset, epoch in enumerate(of_log)])


async def test_epochs_that_went_back_are_mended_once(url: str) -> None:
    await before_last_epoch(url, {1: [0, 5, 3, 4, 6, 2], 2: [1, 1], 3: [], 4: [7, 0]})
    async with open_store(url) as sql, sql.transaction() as tx:
        rows = await tx.fetch("SELECT log_id, leader_epoch FROM inkless_batch ORDER BY log_id, last_offset")
        logs = await tx.fetch("SELECT log_id, last_epoch FROM inkless_log ORDER BY log_id")
    assert rows == [(1, 0), (1, 5), (1, 5), (1, 5), (1, 6), (1, 6), (2, 1), (2, 1), (4, 7), (4, 7)]
    assert logs == [(1, 6), (2, 1), (3, -1), (4, 7)]


async def test_commits_do_not_queue_behind_a_migration_that_waits() -> None:
    """A backup holds a lock on the table of logs: the migration gives up soon, and can be repeated."""
    url = start_postgres().new_database()
    await before_last_epoch(url, {1: [3, 1]})
    backup = await asyncpg.connect(url)
    try:
        async with backup.transaction():
            await backup.execute("SELECT count(*) FROM inkless_log")
            with pytest.raises(StoreUnavailable, match=r"55P03 .*V003__last_epoch: .* Start the broker again"):
                async with open_store(url):
                    pass
            assert await backup.fetchval("SELECT count(*) FROM schema_migrations WHERE version = 3") == 0
    finally:
        await backup.close()
    async with open_store(url) as sql, sql.transaction() as tx:
        assert await tx.fetch("SELECT last_epoch FROM inkless_log") == [(3,)]


# V004: switches of topics to diskless


async def before_switches(url: str, epochs: dict[int, list[int]]) -> None:
    """A database as the version before left it: logs by their ids, each with rows of these epochs."""
    async with open_store(url) as sql, sql.transaction() as tx:
        await without_transactions(tx)
        for table in ("inkless_migration", *_TIERING):
            await tx.execute(f"DROP TABLE {table}")
        await tx.execute("DELETE FROM schema_migrations WHERE version >= 4")
        for log_id, of_log in epochs.items():
            await tx.execute(_LOG.format(number=log_id))
            await tx.execute_many(_ROW, [(log_id, offset, epoch) for offset, epoch in enumerate(of_log)])


async def test_logs_that_were_born_diskless_stay_so(url: str) -> None:
    await before_switches(url, {1: [0, 5], 2: []})
    boundaries = "SELECT log_id, diskless_log_start_offset, high_watermark, migration_state FROM inkless_log ORDER BY 1"
    async with open_store(url) as sql, sql.transaction() as tx:
        assert await tx.fetch("SELECT count(*) FROM inkless_migration") == [(0,)]
        assert await tx.fetch("SELECT count(*) FROM inkless_batch") == [(2,)]
        # A broker of the version before that still runs names no B0 when it creates a log.
        await tx.execute(_LOG.format(number=3))
        assert await tx.fetch(boundaries) == [(number, 0, 10, "DISKLESS_ONLY") for number in (1, 2, 3)]


async def test_the_table_of_switches_is_made_while_others_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    url = start_postgres().new_database()
    await before_switches(url, {1: [3, 1]})
    know_only(monkeypatch, 4)
    commit = await asyncpg.connect(url)
    try:
        async with commit.transaction():
            await commit.execute("UPDATE inkless_log SET byte_size = 1")
            async with asyncio.timeout(10), open_store(url) as sql, sql.transaction() as tx:
                assert await tx.fetch("SELECT count(*) FROM inkless_migration") == [(0,)]
    finally:
        await commit.close()


# V005: tiering


async def before_tiering(url: str, epochs: dict[int, list[int]]) -> None:
    """A database as the version before left it, with its two tables for claims and splits, which nobody used."""
    (first,) = (step.script for step in load_migrations("postgresql") if step.version == 2)
    old = re.findall(r"CREATE TABLE inkless_(?:wal_file_claim|split_batch) \(.*?\n\);", first, re.DOTALL)
    assert len(old) == 2
    async with open_store(url) as sql, sql.transaction() as tx:
        await without_transactions(tx)
        for table in ("inkless_wal_file_claim", "inkless_split_batch", *_TIERING):
            await tx.execute(f"DROP TABLE {table}")
        for statement in old:
            await tx.execute(statement)
        await tx.execute("DELETE FROM schema_migrations WHERE version >= 5")
        for log_id, of_log in epochs.items():
            await tx.execute(_LOG.format(number=log_id))
            await tx.execute_many(_ROW, [(log_id, offset, epoch) for offset, epoch in enumerate(of_log)])


async def test_the_tables_of_tiering_are_made_while_others_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    url = start_postgres().new_database()
    await before_tiering(url, {1: [3, 3]})
    know_only(monkeypatch, 6)
    commit = await asyncpg.connect(url)
    try:
        async with commit.transaction():
            await commit.execute("UPDATE inkless_log SET byte_size = 1")
            await commit.execute("UPDATE inkless_batch SET byte_size = 2")
            async with asyncio.timeout(10), open_store(url) as sql, sql.transaction() as tx:
                assert await tx.fetch("SELECT count(claimed_by) FROM inkless_wal_file_claim") == [(0,)]
                assert await tx.fetch("SELECT count(file_id) FROM inkless_split_batch") == [(0,)]
                assert await tx.fetch("SELECT count(*) FROM inkless_batch WHERE tiering_state = 'DISKLESS'") == [(2,)]
    finally:
        await commit.close()


# V007: transactions on diskless logs


async def before_transactions(url: str) -> None:
    """A database as the version before left it: a log with a producer."""
    async with open_store(url) as sql, sql.transaction() as tx:
        await without_transactions(tx)
        await tx.execute("DELETE FROM schema_migrations WHERE version >= 7")
        await tx.execute(_LOG.format(number=1))
        await tx.execute("INSERT INTO inkless_producer_state VALUES (1, 7, 0, 5, 5, '')")


async def test_logs_and_producers_from_before_have_no_open_transaction(url: str) -> None:
    await before_transactions(url)
    async with open_store(url) as sql, sql.transaction() as tx:
        assert await tx.fetch("SELECT first_unstable_offset, last_aborted_offset FROM inkless_log") == [(-1, -1)]
        found = await tx.fetch("SELECT txn_first_offset, coordinator_epoch FROM inkless_producer_state")
        assert found == [(-1, -1)]
        # A broker of the version before that still runs names none of the new columns.
        await tx.execute(_LOG.format(number=2))


async def test_commits_do_not_queue_behind_the_new_columns() -> None:
    url = start_postgres().new_database()
    await before_transactions(url)
    commit = await asyncpg.connect(url)
    try:
        async with commit.transaction():
            await commit.execute("UPDATE inkless_log SET byte_size = 1")
            with pytest.raises(
                StoreUnavailable, match=r"55P03 .*V007__diskless_transactions: .* Start the broker again"
            ):
                async with open_store(url):
                    pass
    finally:
        await commit.close()
    async with open_store(url) as sql, sql.transaction() as tx:
        assert await tx.fetch("SELECT first_unstable_offset FROM inkless_log") == [(-1,)]
