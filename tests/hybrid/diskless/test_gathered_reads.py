"""Many small questions to the control plane become few queries, with the same answers."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path
from uuid import UUID

import pytest

from strandline.controlplane import DisklessLog, FindBatches, Refusal, SqlControlPlane
from strandline.controlplane.database import Database
from strandline.controlplane.reads import SqlBatchReads
from strandline.hybrid.diskless.gathered_reads import GatheredReads
from strandline.model import TopicIdPartition
from strandline.sql import StoreUnavailable, open_store
from tests.partitions import id_partition
from tests.server.test_connection import turn

PARTITIONS = [id_partition(UUID(int=7), number) for number in range(50)]
UNKNOWN = id_partition(UUID(int=8), 0)


class CountingReads(SqlBatchReads):
    """Counts queries, and fails on demand."""

    queries = 0
    failure: Exception | None = None

    async def logs(self, partitions: Collection[TopicIdPartition]) -> Mapping[TopicIdPartition, DisklessLog]:
        self.queries += 1
        if self.failure is not None:
            raise self.failure
        return await super().logs(partitions)


async def test_questions_of_one_turn_are_one_query(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path}/db") as sql:
        await SqlControlPlane(sql).lifecycle.create_logs(PARTITIONS)
        counting = CountingReads(Database(sql))
        reads = GatheredReads(counting)
        answers = await asyncio.gather(*(reads.logs([partition]) for partition in (*PARTITIONS, UNKNOWN, *PARTITIONS)))
        assert [list(answer) for answer in answers] == [
            *([partition] for partition in PARTITIONS),
            [],
            *([partition] for partition in PARTITIONS),
        ]
        assert counting.queries == 1
        assert list(await reads.logs([PARTITIONS[3]])) == [PARTITIONS[3]]
        assert counting.queries == 2


async def test_first_rows_are_asked_for_together_and_others_as_they_are(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path}/db") as sql:
        await SqlControlPlane(sql).lifecycle.create_logs(PARTITIONS)
        counting = CountingReads(Database(sql))
        reads = GatheredReads(counting)
        requests = [FindBatches(partition, 0, 1) for partition in (PARTITIONS[0], UNKNOWN)]
        for max_rows in (1, 10):
            found = await reads.find_batches(requests, max_rows=max_rows)
            assert [answer.refusal for answer in found] == [None, Refusal.UNKNOWN_LOG]


async def test_a_failure_reaches_everybody_who_asked_and_nobody_after(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path}/db") as sql:
        failing = CountingReads(Database(sql))
        failing.failure = StoreUnavailable("away")
        reads = GatheredReads(failing)
        answers = await asyncio.gather(*(reads.logs([UNKNOWN]) for _ in range(3)), return_exceptions=True)
        assert [type(answer) for answer in answers] == [StoreUnavailable] * 3
        failing.failure = None
        assert await reads.logs([UNKNOWN]) == {}


async def test_one_who_leaves_does_not_keep_the_others_from_their_answer(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path}/db") as sql:
        reads = GatheredReads(CountingReads(Database(sql)))
        stays, leaves = (asyncio.create_task(reads.logs([UNKNOWN])) for _ in range(2))
        await turn()
        leaves.cancel()
        assert await stays == {}
        with pytest.raises(asyncio.CancelledError):
            await leaves
