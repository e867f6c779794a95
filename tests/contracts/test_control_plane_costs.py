"""What reads, retention and a start cost, and what they wait for: mistakes that similar systems made."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import TypeVar

import pytest

from strandline.controlplane import FindBatches, RetentionRule, SqlControlPlane
from strandline.controlplane.database import Database
from strandline.model import TopicIdPartition
from strandline.sql import Row, SqlStore, Transaction, Work, open_store
from strandline.sql.passing import PassingStore
from tests.controlplane.making import ALL_BYTES, NOW, A, B, batch, commit, find, marker, wal
from tests.controlplane.switching import P, boundary, producer, request, switch, switched
from tests.partitions import id_partition

T = TypeVar("T")

LOCK_ALL = "UPDATE inkless_log SET byte_size = byte_size"


async def test_retention_looks_without_the_lock_that_commits_need(plane: SqlControlPlane) -> None:
    await commit(plane, "one", batch(A, timestamp=NOW), batch(B, timestamp=NOW))
    rules = [RetentionRule(A, 1_000, 1_000), RetentionRule(B, 1_000, 1_000)]
    async with plane.store.transaction() as tx:
        await tx.execute(LOCK_ALL)  # as a commit in progress has done
        async with asyncio.timeout(5):
            answers = await plane.trimming.enforce_retention(rules, max_rows=100)
            await plane.reads.first_row_at_time(A, NOW)
            await find(plane, FindBatches(A, 0, ALL_BYTES))
    assert [answer.rows_deleted for answer in answers] == [0, 0]


async def test_finding_costs_as_much_as_the_answer_at_any_depth(plane: SqlControlPlane) -> None:
    for some in range(0, 3_000, 300):  # not all at once: a process that says nothing for long loses its transaction
        await plane.commits.commit_files([wal(f"f{number}", batch(A), batch(B)) for number in range(some, some + 300)])
    store = plane.store
    statement = _Statements(store)
    if store.dialect.name == "sqlite":
        plan = await statement.finding("EXPLAIN QUERY PLAN ", A, 2_500)
        assert any("SEARCH inkless_batch USING PRIMARY KEY (log_id=? AND last_offset>?)" in line for line in plan)
        assert not any("SCAN inkless" in line for line in plan)
        return
    async with store.transaction() as tx:
        await tx.execute("ANALYZE inkless_batch")
    for offset in (0, 1_500, 2_500):
        text = "".join(await statement.finding("EXPLAIN (ANALYZE, FORMAT JSON) ", A, offset))
        assert max(_rows_touched(json.loads(text)[0]["Plan"])) <= 10


class _Statements:
    """To look at the plan of a statement with the arguments that it gets."""

    def __init__(self, store: SqlStore) -> None:
        self._db = Database(store)

    async def finding(self, explain: str, partition: TopicIdPartition, offset: int) -> list[str]:
        rows = [(0, partition.topic_id, partition.partition, offset, ALL_BYTES)]
        return await self.explained(explain, "find_batches", 10, *self._db.dialect.bulk(rows, 5))

    async def explained(self, explain: str, name: str, *arguments: object, before: str = "") -> list[str]:
        async def work(tx: Transaction) -> list[str]:
            if before:
                await tx.execute(before)
            rows = await tx.fetch(explain + self._db.sql[name], *arguments)
            return [str(row[-1]) for row in rows]

        return await self._db.store.read(work)


@pytest.mark.parametrize("name", ["files_to_delete", "drop_files"])
async def test_files_that_are_to_go_are_found_without_a_look_at_the_others(plane: SqlControlPlane, name: str) -> None:
    """And in their order: none is sorted."""
    statement = _Statements(plane.store)
    if plane.store.dialect.name == "sqlite":
        plan = await statement.explained("EXPLAIN QUERY PLAN ", name, NOW, 500)
    else:  # which would look at all while there are few
        plan = await statement.explained("EXPLAIN ", name, NOW, 500, before="SET LOCAL enable_seqscan = off")
    assert any("inkless_file_to_delete" in line for line in plan), plan
    assert not any("SCAN inkless_file" in line or "TEMP B-TREE" in line or "Sort" in line for line in plan), plan


def _rows_touched(plan: dict[str, object]) -> list[float]:
    """Of every node that reads batches: rows given and rows thrown away."""
    found: list[float] = []
    nodes = [plan]
    while nodes:
        node = nodes.pop()
        if node.get("Relation Name") == "inkless_batch":
            found.append(_number(node, "Actual Rows") + _number(node, "Rows Removed by Filter"))
        inner = node.get("Plans", [])
        assert isinstance(inner, list)
        nodes += inner
    return found


def _number(node: dict[str, object], name: str) -> float:
    value = node.get(name, 0)
    assert isinstance(value, int | float)
    return value


async def test_a_broker_that_starts_waits_for_no_commit_and_none_for_it(sql: SqlStore, database_url: str) -> None:
    plane = SqlControlPlane(sql)
    if sql.is_exclusive:
        return  # one process: no other one can commit while it migrates
    async with sql.transaction() as tx:
        await tx.execute(LOCK_ALL)
        async with asyncio.timeout(5), open_store(database_url) as other:
            await SqlControlPlane(other).reads.logs([id_partition(uuid.UUID(int=1), 0)])
    assert await plane.lifecycle.topic_ids() == frozenset()


async def test_a_commit_to_a_hybrid_log_asks_as_often_as_to_any_other(plane: SqlControlPlane) -> None:
    """A boundary costs the commit a column, not a query."""
    await switched(plane, 100, producer(7, (0, 1, 99)))
    counted = _CountingStore(plane.store)
    through = SqlControlPlane(counted)
    counts = []
    for number, partition in enumerate((A, P)):
        counted.statements = 0
        await commit(through, f"f{number}", batch(partition, producer=(7, 0, 1)))
        counts.append(counted.statements)
    assert counts[0] == counts[1]
    assert counts[0] == (4 if plane.store.dialect.name == "postgresql" else 7)


async def test_transactions_cost_a_commit_no_statement_until_their_markers(plane: SqlControlPlane) -> None:
    await commit(plane, "zero", batch(A, producer=(9, 0, 0), is_transactional=True))
    counted = _CountingStore(plane.store)
    through = SqlControlPlane(counted)
    counts = []
    for number, items in enumerate(
        (
            [batch(A, producer=(7, 0, 0))],
            [batch(A, producer=(8, 0, 0), is_transactional=True)],
            [batch(A, producer=(7, 0, 1)), batch(A, producer=(8, 0, 1), is_transactional=True)],
            [marker(A, (8, 0))],
            [marker(B, (8, 0)), marker(B, (9, 0))],
            [marker(A, (9, 0), is_abort=True)],
        )
    ):
        counted.statements = 0
        await commit(through, f"f{number}", *items)
        counts.append(counted.statements)
    usual = 4 if plane.store.dialect.name == "postgresql" else 7
    to_keep_aborted = 0 if plane.store.dialect.name == "postgresql" else 1
    assert counts == [usual, usual, usual, usual + 1, usual, usual + 1 + to_keep_aborted]


async def test_boundaries_take_as_many_statements_for_one_partition_as_for_many(plane: SqlControlPlane) -> None:
    counted = _CountingStore(plane.store)
    through = SqlControlPlane(counted)
    counts = []
    for size, topic in ((1, 40), (50, 41)):
        topic_id = uuid.UUID(int=topic)
        position = await request(plane, topic_id, size)
        counted.statements = 0
        await switch(
            through,
            *(
                boundary(id_partition(topic_id, number), 9, *map(producer, range(30)), position=position)
                for number in range(size)
            ),
        )
        counts.append(counted.statements)
    assert counts[0] == counts[1]


class _CountingStore(PassingStore):
    """Counts the statements of transactions."""

    def __init__(self, store: SqlStore) -> None:
        super().__init__(store)
        self.statements = 0

    async def transact(self, work: Work[T], *, within: float | None = None) -> T:
        return await super().transact(lambda tx: work(_CountingTransaction(tx, self)), within=within)


class _CountingTransaction:
    def __init__(self, tx: Transaction, store: _CountingStore) -> None:
        self._tx, self._store = tx, store
        self.notify = tx.notify
        self.limit_silence = tx.limit_silence
        self.execute_many = tx.execute_many

    async def execute(self, statement: str, *args: object) -> int:
        self._store.statements += 1
        return await self._tx.execute(statement, *args)

    async def fetch(self, statement: str, *args: object) -> list[Row]:
        self._store.statements += 1
        return await self._tx.fetch(statement, *args)

    async def fetch_one(self, statement: str, *args: object) -> Row | None:
        self._store.statements += 1
        return await self._tx.fetch_one(statement, *args)
