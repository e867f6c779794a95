"""The loops of a broker's metadata go on after every error that a database can answer with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

import pytest

from strandline.clock import SystemClock
from strandline.errors import KafkaStorageError, RequestTimedOut, StrandlineError
from strandline.sql import SqlStore, StoreCorrupt, open_store
from strandline.testing.clock import VirtualClock
from tests.metadata.cluster import Cluster, member, registration
from tests.postgres import start_postgres
from tests.waiting import until_in

# What passes by itself, and what an operator or a newer version has to change; states that no server knows included.
PASSING = (
    *("08000", "08006", "08P01", "0A000", "25006", "25P02", "25P03", "26000", "40001", "40003", "40P01", "42P05"),
    *("53100", "53200", "53300", "55000", "55006", "55P03", "57014", "57P01", "57P02", "57P03", "58030"),
    *("72000", "F0000", "HV000", "P0001", "XX000", "XX001", "ZZ999"),
)
LASTING = ("21000", "22P02", "23505", "28000", "28P01", "3D000", "3F000", "42501", "42601", "42703", "42P01", "54000")

BREAK = """
CREATE FUNCTION fail() RETURNS boolean LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'a test asked for it' USING ERRCODE = '{state}'; END $$;
CREATE FUNCTION no_records() RETURNS SETOF metadata_records LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'a test asked for it' USING ERRCODE = '{state}'; END $$;
ALTER TABLE controller_lease RENAME TO lease_away;
ALTER TABLE metadata_records RENAME TO records_away;
CREATE VIEW controller_lease AS SELECT * FROM lease_away WHERE fail();
CREATE VIEW metadata_records AS SELECT * FROM no_records();
"""
MEND = """
DROP VIEW controller_lease, metadata_records;
DROP FUNCTION fail, no_records;
ALTER TABLE lease_away RENAME TO controller_lease;
ALTER TABLE records_away RENAME TO metadata_records;
"""
COPY_OF_THE_FIRST = """
INSERT INTO metadata_records
SELECT 900, controller_epoch, type, payload FROM metadata_records WHERE "offset" = 1
"""
NEWER_RECORD = """
INSERT INTO metadata_records
SELECT next_offset, l.epoch, type, '{"v": 7}' FROM controller_lease l, metadata_records WHERE "offset" = 1;
UPDATE controller_lease SET next_offset = next_offset + 1
"""


@cache
def _database() -> str:
    """One for all states: each test leaves it as it was."""
    return start_postgres().new_database()


@asynccontextmanager
async def running(url: str) -> AsyncIterator[tuple[Cluster, VirtualClock, SqlStore]]:
    """A broker's metadata with its loops, on virtual time, and the operator's own connection."""
    clock = VirtualClock()
    async with open_store(url) as sql, open_store(url) as operator:
        cluster = member(sql, clock)
        await cluster.loader.load()
        async with cluster.loader.running(), cluster.controller.running():
            yield cluster, clock, operator


async def run(operator: SqlStore, statements: str) -> None:
    async with operator.transaction() as tx:
        await tx.execute(statements)


@pytest.mark.parametrize("state", PASSING + LASTING)
async def test_the_loops_go_on_after_every_sqlstate(state: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    def told(what: str) -> int:
        return sum(what in message for message in caplog.messages)

    async with running(_database()) as (cluster, clock, operator):
        epoch = await cluster.controller.register_broker(registration(1))
        await run(operator, BREAK.format(state=state))
        try:
            with pytest.raises(StrandlineError) as refused:
                await cluster.controller.allocate_producer_ids(1, epoch)
            assert type(refused.value) is (RequestTimedOut if state in PASSING else KafkaStorageError)
            await until_in(
                clock, lambda: bool(told("periodic work failed") and told("reading the metadata log failed"))
            )
            await clock.advance(10.0)
            await SystemClock().sleep(0.02)
        finally:
            await run(operator, MEND)
        await until_in(clock, lambda: told("periodic work succeeds") == told("the metadata log succeeds") == 1)
        failed = [message.split(" failed, trying again: ") for message in caplog.messages if "trying again" in message]
        assert all(f"answers {state}: a test asked for it" in why for _, why in failed)
        # Each loop once. Beside the two, snapshots may have been due: that depends on the time that has passed here.
        assert len(failed) == len({loop for loop, _ in failed}) >= 2
        await until_in(clock, lambda: cluster.controller.is_active)  # by the time that has passed here, it may be over
        assert len(await cluster.controller.allocate_producer_ids(1, epoch)) > 0


async def test_a_database_that_was_emptied_or_damaged_ends_no_loop(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with running(start_postgres().new_database()) as (cluster, clock, operator):
        before = cluster.image
        for damage, sentence in (
            ("DELETE FROM controller_lease", "The table controller_lease of the metadata database is empty"),
            (COPY_OF_THE_FIRST, "The metadata log has no records between the offsets"),
            ("UPDATE metadata_records SET payload = 'what' WHERE \"offset\" = 900", "at offset 900 cannot be read"),
            ('UPDATE metadata_records SET payload = \'{"v": 7}\' WHERE "offset" = 900', "It was written by a newer"),
        ):
            await run(operator, damage)
            await until_in(clock, lambda sentence=sentence: any(sentence in line for line in caplog.messages))  # type: ignore[misc]
        assert cluster.image is before
        with pytest.raises(StoreCorrupt):
            await cluster.store.lease()


async def test_a_broker_that_cannot_read_the_metadata_leaves_the_lease_to_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running(start_postgres().new_database()) as (cluster, clock, operator):
        # A newer version was the controller, wrote what this one does not know, and is away.
        await run(operator, NEWER_RECORD)
        await until_in(clock, lambda: any("It was written by a newer" in line for line in caplog.messages))
        await run(operator, "UPDATE controller_lease SET epoch = epoch + 1, node_id = 7, expires_at_ms = 0")

        async def epoch() -> int:
            return (await cluster.store.lease()).epoch

        taken = await epoch()
        async with asyncio.timeout(20):
            while await epoch() == taken or cluster.controller.is_active:
                await clock.advance(1.0)
                await SystemClock().sleep(0.005)
        taken = await epoch()
        for _ in range(20):
            await clock.advance(1.0)
            await SystemClock().sleep(0.005)
        assert await epoch() == taken
