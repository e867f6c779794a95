"""The contract of the control plane: leaders, controllers and brokers that concern themselves with a switch at once."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import pytest_asyncio

from strandline.controlplane import MigrationState, Refusal, SqlControlPlane, abort_migration
from strandline.sql import Transaction, open_store
from tests.contracts.test_control_plane_rivals import planes
from tests.controlplane.making import bases, batch, commit
from tests.controlplane.switching import (
    CLASSIC,
    P,
    Q,
    R,
    abort,
    boundary,
    log_of,
    producer,
    progress,
    request,
    switch,
)
from tests.partitions import id_partition
from tests.postgres import start_postgres

__all__ = ["planes"]

TURNS = 12
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


async def wait_for_waiters(plane: SqlControlPlane, expected: int) -> None:
    """Until so many transactions wait for a lock."""

    async def waiting(tx: Transaction) -> int:
        found = await tx.fetch_one(WAITING)
        return found[0] if found else 0

    async with asyncio.timeout(10):
        while await plane.store.read(waiting) < expected:
            pass


@asynccontextmanager
async def switch_locked(plane: SqlControlPlane) -> AsyncIterator[None]:
    """The row of the switch is locked meanwhile."""
    async with plane.store.transaction() as tx:
        await tx.execute("UPDATE inkless_migration SET partitions = partitions")
        yield


@pytest_asyncio.fixture
async def postgres() -> AsyncIterator[list[SqlControlPlane]]:
    """Two control planes whose transactions can be held up in the middle: those on SQLite follow each other."""
    url = start_postgres().new_database()
    async with open_store(url) as one, open_store(url) as other:
        yield [SqlControlPlane(one), SqlControlPlane(other)]


# An order that the test decides


async def test_an_abort_that_comes_first_stops_a_leader_that_has_written_everything(
    postgres: list[SqlControlPlane],
) -> None:
    one, other = postgres
    position = await request(one)
    async with one.store.transaction() as tx:
        assert await abort_migration(tx, CLASSIC) is None
        leader = asyncio.ensure_future(switch(other, boundary(P, 10, producer(7, (0, 1, 9)), position=position)))
        await wait_for_waiters(one, 1)
    assert await leader == [Refusal.MIGRATION_NOT_FOUND]
    assert await one.reads.logs([P]) == {}
    assert CLASSIC not in await one.lifecycle.topic_ids()


async def test_a_leader_that_comes_first_stops_an_abort(postgres: list[SqlControlPlane]) -> None:
    one, other = postgres
    position = await request(one)
    async with switch_locked(one):
        leader = asyncio.ensure_future(switch(other, boundary(P, 10, position=position)))
        await wait_for_waiters(one, 1)
        controller = asyncio.ensure_future(abort(one))
        await wait_for_waiters(one, 2)
    assert await leader == [None]
    assert await controller == 0
    assert (await log_of(one, P)).diskless_log_start_offset == 10
    assert [switch.position for switch in await one.migrations.topic_migrations()] == [position]


async def test_a_topic_deleted_under_a_leader_takes_its_new_log_with_it(postgres: list[SqlControlPlane]) -> None:
    one, other = postgres
    position = await request(one)
    async with switch_locked(one):
        leader = asyncio.ensure_future(switch(other, boundary(P, 10, producer(7, (0, 1, 9)), position=position)))
        await wait_for_waiters(one, 1)
        deletion = asyncio.ensure_future(one.lifecycle.delete_topics([CLASSIC]))
        await wait_for_waiters(one, 2)
    assert await leader == [None]
    await deletion
    assert CLASSIC not in await one.lifecycle.topic_ids()
    assert await one.producers.producers(P) == []


async def test_leaders_of_one_topic_do_not_wait_for_each_others_producers(postgres: list[SqlControlPlane]) -> None:
    """The one that is held up at its end has written everything; the other comes just as far."""
    one, other = postgres
    position = await request(one)
    async with switch_locked(one):
        leaders = [
            asyncio.ensure_future(switch(plane, boundary(key, 10, producer(7, (0, 1, 9)), position=position)))
            for plane, key in ((one, P), (other, Q))
        ]
        await wait_for_waiters(one, 2)
    assert await asyncio.gather(*leaders) == [[None], [None]]
    assert [switch.sealed_at_ms is None for switch in await one.migrations.topic_migrations()] == [False]


# Whichever comes first


async def test_a_leader_and_an_abort_at_once_have_one_winner(planes: list[SqlControlPlane]) -> None:
    for turn in range(TURNS):
        position = await request(planes[0])
        leading = switch(planes[1], boundary(P, 10 + turn, position=position))
        aborting = abort(planes[0])
        if turn % 2:
            (refusal,), partition = await asyncio.gather(leading, aborting)
        else:
            partition, (refusal,) = await asyncio.gather(aborting, leading)
        logs = await planes[0].reads.logs([P])
        if partition is None:
            assert (refusal, logs) == (Refusal.MIGRATION_NOT_FOUND, {})
            assert await planes[0].migrations.topic_migrations() == []
        else:
            assert (refusal, partition) == (None, 0)
            assert logs[P].high_watermark == 10 + turn
            await planes[0].lifecycle.delete_topics([CLASSIC])


async def test_two_leaders_at_once_have_one_boundary(planes: list[SqlControlPlane]) -> None:
    for turn in range(TURNS):
        topic_id = uuid.UUID(int=100 + turn)
        key = id_partition(topic_id, 0)
        position = await request(planes[0], topic_id, 1)
        offers = [
            boundary(key, 10 + epoch, producer(epoch, (0, 1, 9)), position=position, epoch=epoch) for epoch in (4, 5)
        ]
        answers = await asyncio.gather(
            *(
                plane.migrations.initialize_diskless_migration([offer])
                for plane, offer in zip(planes, offers, strict=True)
            )
        )
        log = await log_of(planes[0], key)
        winner = log.diskless_log_start_epoch
        assert log.high_watermark == log.diskless_log_start_offset == 10 + winner
        assert [state.producer_id for state in await planes[0].producers.producers(key)] == [winner]
        late = Refusal.STALE_LEADER_EPOCH if winner == 5 else Refusal.BOUNDARY_IS_SET
        expected = [None, late] if winner == 4 else [late, None]
        assert [answer.refusal for (answer,) in answers] == expected
        assert {(answer.boundary, answer.leader_epoch) for (answer,) in answers} == {(10 + winner, winner)}


async def test_no_log_begins_at_0_while_its_boundary_is_set(planes: list[SqlControlPlane]) -> None:
    for turn in range(TURNS):
        topic_id = uuid.UUID(int=100 + turn)
        keys = [id_partition(topic_id, number) for number in range(4)]
        position = await request(planes[0], topic_id, 3)
        boundaries = [boundary(key, 10, position=position) for key in keys[:3]]
        steps = [
            planes[0].lifecycle.create_logs(keys),
            switch(planes[1], *boundaries),
            planes[0].lifecycle.create_logs(keys[::-1]),
        ]
        await asyncio.gather(*steps)
        logs = await planes[0].reads.logs(keys)
        assert [logs[key].diskless_log_start_offset for key in keys] == [10, 10, 10, 0]


async def test_the_last_of_several_leaders_seals_and_finishes_the_switch(planes: list[SqlControlPlane]) -> None:
    for turn in range(TURNS):
        topic_id = uuid.UUID(int=100 + turn)
        keys = [id_partition(topic_id, number) for number in range(4)]
        position = await request(planes[0], topic_id, 4)
        owners = [(planes[number % 2], keys[number]) for number in range(4)]
        await asyncio.gather(*(switch(plane, boundary(key, 10, position=position)) for plane, key in owners))
        assert [switch.sealed_at_ms is None for switch in await planes[0].migrations.topic_migrations()] == [False]
        await asyncio.gather(
            *(plane.migrations.record_prefix([progress(key, MigrationState.HYBRID)]) for plane, key in owners)
        )
        assert await planes[0].migrations.topic_migrations() == []


async def test_everything_at_once_ends_with_dense_offsets_and_no_deadlock(planes: list[SqlControlPlane]) -> None:
    keys = [P, Q, R]
    position = await request(planes[0], partitions=3)
    seeds = [producer(number, (0, 5, number)) for number in range(20)]
    keys_of_files = count()

    async def lead(plane: SqlControlPlane, order: list[int]) -> None:
        for _ in range(4):
            await switch(plane, *(boundary(keys[number], 10, *seeds, position=position) for number in order))
            await plane.migrations.record_prefix([progress(keys[number], log_start=number) for number in order])

    async def write(plane: SqlControlPlane, number: int) -> list[int]:
        placed: list[int] = []
        sequence = 5
        while len(placed) < 8:
            (answer, *_) = await commit(
                plane, f"f{next(keys_of_files)}", *(batch(key, producer=(number, 0, sequence)) for key in keys)
            )
            if answer.refusal is None:
                placed.append(answer.base_offset)
                sequence += 1
        return placed

    one, other, *_ = await asyncio.gather(
        write(planes[0], 0), write(planes[1], 1), lead(planes[0], [2, 0, 1]), lead(planes[1], [0, 1, 2])
    )
    assert sorted(one + other) == list(range(10, 26))
    assert await abort(planes[0]) == 0
    assert bases(await commit(planes[0], "last", batch(P))) == [26]
