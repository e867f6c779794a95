"""The contract of SqlStore, on SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from strandline.clock import SystemClock
from strandline.sql import (
    IntegrityViolation,
    Row,
    SqlError,
    SqlStore,
    StoreInUse,
    StoreUnavailable,
    Transaction,
    open_store,
)

ADD = "INSERT INTO things (id, name) VALUES ($1, $2)"
CLOCK = SystemClock()
ALL = "SELECT id, name FROM things ORDER BY id"


class Refused(Exception):
    """Raised by a test inside a transaction."""


async def things(sql: SqlStore) -> list[Row]:
    async with sql.transaction() as tx:
        return await tx.fetch(ALL)


async def test_a_block_that_ends_commits_everything(sql: SqlStore) -> None:
    async with sql.transaction() as tx:
        assert await tx.execute(ADD, 1, "one") == 1
        await tx.execute_many(ADD, [(2, "two"), (3, "three")])
        assert await tx.fetch(ALL) == [(1, "one"), (2, "two"), (3, "three")]
    assert await things(sql) == [(1, "one"), (2, "two"), (3, "three")]


async def test_a_block_that_raises_commits_nothing(sql: SqlStore) -> None:
    async def add_and_raise() -> None:
        async with sql.transaction() as tx:
            await tx.execute(ADD, 1, "one")
            raise Refused

    with pytest.raises(Refused):
        await add_and_raise()
    assert await things(sql) == []


async def test_what_callers_raise_comes_out_unchanged(sql: SqlStore) -> None:
    with pytest.raises(FileNotFoundError):
        async with sql.transaction():
            raise FileNotFoundError("not the database's fault")
    with pytest.raises(TimeoutError):
        async with sql.transaction():
            raise TimeoutError("somebody else's time")


async def test_fetch_one_gives_the_first_row_or_none(sql: SqlStore) -> None:
    async with sql.transaction() as tx:
        assert await tx.fetch_one(ALL) is None
        await tx.execute_many(ADD, [(1, "one"), (2, "two")])
        assert await tx.fetch_one(ALL) == (1, "one")


async def test_execute_counts_the_rows_it_changed(sql: SqlStore) -> None:
    async with sql.transaction() as tx:
        await tx.execute_many(ADD, [(1, "a"), (2, "a"), (3, "b")])
        assert await tx.execute("UPDATE things SET name = $1 WHERE name = $2", "c", "a") == 2
        assert await tx.execute("DELETE FROM things WHERE name = $1", "nothing") == 0


async def test_an_argument_can_be_used_twice_and_in_any_order(sql: SqlStore) -> None:
    async with sql.transaction() as tx:
        await tx.execute_many(ADD, [(1, "a"), (2, "b")])
        found = await tx.fetch("SELECT id FROM things WHERE name = $2 OR (id = $1 AND name <> $2)", 1, "b")
    assert sorted(found) == [(1,), (2,)]


async def test_a_broken_rule_is_an_integrity_violation_and_rolls_back(sql: SqlStore) -> None:
    async def add_twice() -> None:
        async with sql.transaction() as tx:
            await tx.execute(ADD, 1, "one")
            await tx.execute(ADD, 1, "again")

    with pytest.raises(IntegrityViolation) as caught:
        await add_twice()
    assert not caught.value.retriable
    assert await things(sql) == []


async def test_a_bad_statement_is_an_error_that_retrying_does_not_cure(sql: SqlStore) -> None:
    with pytest.raises(SqlError) as caught:
        async with sql.transaction() as tx:
            await tx.execute("SELECT FROM WHERE nonsense")
    assert not caught.value.retriable
    assert await things(sql) == []  # the store is as usable as before


async def test_a_transaction_that_takes_too_long_is_given_up(sql: SqlStore) -> None:
    async def add_and_wait() -> None:
        async with sql.transaction(within=0.05) as tx:
            await tx.execute(ADD, 1, "one")
            await asyncio.Event().wait()

    with pytest.raises(StoreUnavailable) as caught:
        await add_and_wait()
    assert caught.value.retriable
    assert await things(sql) == []


@pytest.mark.parametrize("turns", range(12))
async def test_a_cancelled_transaction_leaves_the_store_usable(sql: SqlStore, turns: int) -> None:
    async def add() -> None:
        async with sql.transaction() as tx:
            await tx.execute(ADD, 1, "one")
            await tx.execute(ADD, 2, "two")

    task = asyncio.create_task(add())
    for _ in range(turns):
        await CLOCK.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await things(sql) in ([], [(1, "one"), (2, "two")])
    async with sql.transaction() as tx:
        await tx.execute(ADD, 9, "later")


async def test_transactions_that_lock_the_same_row_happen_one_after_the_other(sql: SqlStore) -> None:
    async with sql.transaction() as tx:
        await tx.execute(ADD, 1, "0")

    async def increment() -> None:
        async with sql.transaction() as tx:
            row = await tx.fetch_one("SELECT name FROM things WHERE id = 1 {for_update}")
            assert row is not None
            await CLOCK.sleep(0)
            await tx.execute("UPDATE things SET name = $1 WHERE id = 1", str(int(row[0]) + 1))

    await asyncio.gather(*(increment() for _ in range(20)))
    assert await things(sql) == [(1, "20")]


async def test_the_database_has_its_own_time(sql: SqlStore) -> None:
    async with sql.transaction() as tx:
        first = await tx.fetch_one("SELECT {now_ms}")
        second = await tx.fetch_one("SELECT {now_ms}")
    assert first is not None
    assert second is not None
    assert 1_600_000_000_000 < first[0] <= second[0]


async def test_bytes_and_unicode_come_back_as_they_were(sql: SqlStore) -> None:
    async with sql.transaction() as tx:
        await tx.execute(ADD, 1, "ünïcödé \U0001f30a 'quoted' $1 {now_ms}")
        await tx.execute(
            'INSERT INTO metadata_snapshots ("offset", controller_epoch, record_count, created_at_ms, payload) '
            "VALUES (0, 0, 0, 0, $1)",
            b"\x00\xff\x80 bytes",
        )
        assert await tx.fetch("SELECT payload FROM metadata_snapshots") == [(b"\x00\xff\x80 bytes",)]
    assert (await things(sql))[0][1] == "ünïcödé \U0001f30a 'quoted' $1 {now_ms}"


async def test_listeners_hear_of_commits_and_not_of_rollbacks(sql: SqlStore) -> None:
    async def notify_and_raise() -> None:
        async with sql.transaction() as tx:
            tx.notify("news")
            raise Refused

    heard = asyncio.Event()
    stop = sql.listen("news", heard.set)
    async with sql.transaction() as tx:
        tx.notify("news")
    await asyncio.wait_for(heard.wait(), 10)
    async with asyncio.timeout(10):  # PostgreSQL also wakes listeners when it begins to listen
        while True:
            heard.clear()
            with pytest.raises(Refused):
                await notify_and_raise()
            await things(sql)
            if not heard.is_set():
                break
    stop()
    async with sql.transaction() as tx:
        tx.notify("news")
    await things(sql)
    assert not heard.is_set()


async def test_a_name_is_held_by_one_at_a_time(sql: SqlStore) -> None:
    async with sql.hold("broker"):
        with pytest.raises(StoreInUse, match="broker"):
            async with sql.hold("broker"):
                pass
        async with sql.hold("another"):
            pass
    async with sql.hold("broker"):
        pass


async def test_it_is_known_which_names_are_held(sql: SqlStore) -> None:
    names = ["broker", "process", "another"]
    before = await sql.holders(names)
    assert before.sessions == {}
    async with sql.hold("broker"), sql.hold("process"):
        held = await sql.holders(names)
        assert set(held.sessions) == {"broker", "process"}
        assert held.sessions["broker"] == held.sessions["process"], "they are held by one session"
        assert held.view == before.view
        assert await sql.holders([]) == (held.view, {})
    assert (await sql.holders(names)).sessions == {}


async def test_what_was_committed_is_there_after_reopening(database_url: str) -> None:
    async with open_store(database_url) as sql:
        first_session = sql.session_id
        async with sql.transaction() as tx:
            await tx.execute("UPDATE controller_lease SET epoch = 7 WHERE id = 1")
    async with open_store(database_url) as sql:
        assert sql.session_id != first_session
        async with sql.transaction() as tx:
            assert await tx.fetch("SELECT epoch FROM controller_lease") == [(7,)]


async def test_a_closed_store_says_so(database_url: str) -> None:
    async with open_store(database_url) as sql:
        pass
    with pytest.raises(StoreUnavailable, match="closed"):
        async with sql.transaction():
            pass


# Whole transactions


async def test_work_is_done_as_a_whole_and_its_result_comes_back(sql: SqlStore) -> None:
    async def work(tx: Transaction) -> list[Row]:
        assert await tx.execute(ADD, 1, "one") == 1
        await tx.execute_many(ADD, [(2, "two"), (3, "three")])
        assert await tx.fetch_one("SELECT name FROM things WHERE id = 2") == ("two",)
        return await tx.fetch(ALL)

    rows = [(1, "one"), (2, "two"), (3, "three")]
    assert await sql.transact(work) == rows
    assert await things(sql) == rows


async def test_work_that_raises_leaves_nothing_and_the_error_comes_out_unchanged(sql: SqlStore) -> None:
    async def work(tx: Transaction) -> None:
        await tx.execute(ADD, 1, "one")
        raise Refused

    with pytest.raises(Refused):
        await sql.transact(work)
    assert await things(sql) == []


async def test_work_sees_database_errors_in_our_words(sql: SqlStore) -> None:
    async def work(tx: Transaction) -> None:
        await tx.execute(ADD, 1, "one")
        await tx.execute(ADD, 1, "again")

    with pytest.raises(IntegrityViolation):
        await sql.transact(work)
    assert await things(sql) == []


async def test_work_that_locks_the_same_row_happens_one_after_the_other(sql: SqlStore) -> None:
    async with sql.transaction() as tx:
        await tx.execute(ADD, 1, "0")

    async def increment(tx: Transaction) -> None:
        row = await tx.fetch_one("SELECT name FROM things WHERE id = 1 {for_update}")
        assert row is not None
        await tx.execute("UPDATE things SET name = $1 WHERE id = 1", str(int(row[0]) + 1))

    await asyncio.gather(*(sql.transact(increment) for _ in range(20)))
    assert await things(sql) == [(1, "20")]


async def test_a_read_does_not_wait_for_a_writer_and_sees_nothing_of_it(sql: SqlStore) -> None:
    async def read(tx: Transaction) -> list[Row]:
        return await tx.fetch(ALL)

    async with sql.transaction() as tx:
        await tx.execute(ADD, 1, "one")
        assert await sql.read(read, within=5) == []
    assert await sql.read(read) == [(1, "one")]


async def test_notifications_of_work_are_heard(sql: SqlStore) -> None:
    async def work(tx: Transaction) -> None:
        tx.notify("news")

    heard = asyncio.Event()
    sql.listen("news", heard.set)
    async with asyncio.timeout(10):
        await sql.transact(work)
        await heard.wait()


@pytest.mark.parametrize("turns", range(8))
async def test_cancelled_work_has_happened_as_a_whole_or_not_at_all(sql: SqlStore, turns: int) -> None:
    async def work(tx: Transaction) -> None:
        await tx.execute(ADD, 1, "one")
        await tx.execute(ADD, 2, "two")

    task = asyncio.create_task(sql.transact(work))
    for _ in range(turns):
        await CLOCK.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await things(sql) in ([], [(1, "one"), (2, "two")])
    async with sql.transaction() as tx:
        await tx.execute(ADD, 9, "later")


SLOW = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) SELECT max(i) FROM n"


async def test_work_and_reads_that_take_too_long_are_given_up(sql: SqlStore) -> None:
    async def work(tx: Transaction) -> list[Row]:
        return await tx.fetch(SLOW)

    with pytest.raises(StoreUnavailable):
        await sql.transact(work, within=0.1)
    with pytest.raises(StoreUnavailable):
        await sql.read(work, within=0.1)
    assert await things(sql) == []


async def test_many_rows_go_in_and_ids_come_back(sql: SqlStore) -> None:
    dialect, topic_id = sql.dialect, uuid.UUID(int=0xFEED)
    insert = (
        "INSERT INTO inkless_log (topic_id, partition, topic_name) "
        + {
            "sqlite": "SELECT value->>0, value->>1, value->>2 FROM json_each($1)",
            "postgresql": "SELECT * FROM unnest($1::uuid[], $2::int[], $3::text[])",
        }[dialect.name]
    )
    async with sql.transaction() as tx:
        assert await tx.execute(insert, *dialect.bulk([(topic_id, n, f"t{n}") for n in range(3)], 3)) == 3
        assert await tx.execute(insert, *dialect.bulk([], 3)) == 0
        rows = await tx.fetch("SELECT topic_id, partition FROM inkless_log WHERE topic_id = $1", topic_id)
    assert sorted((dialect.uuid(row[0]), row[1]) for row in rows) == [(topic_id, 0), (topic_id, 1), (topic_id, 2)]
