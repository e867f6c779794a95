"""Retention follows the settings of topics, in bounded steps, until nothing is left to do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest

from strandline.clock import SystemChance
from strandline.controlplane import RetentionRule, pruning
from strandline.diskless.upkeep.retention import RetentionEnforcer, TopicRetention, retention_rules
from strandline.diskless.values import DisklessAppend
from strandline.model import TopicIdPartition
from strandline.records import Record, TimestampType, build_batch, read_header
from tests.diskless.batches import TOPIC_A, TOPIC_B
from tests.diskless.world import A0, A1, B0, World, open_world
from tests.partitions import id_partition
from tests.postgres import start_postgres

DAY_MS = 86_400_000


def topic(
    partition: TopicIdPartition, *, ms: int = -1, size: int = -1, policy: tuple[str, ...] = ("delete",)
) -> TopicRetention:
    return TopicRetention(partition.topic_id, partition.topic, [partition.partition], policy, ms, size)


def enforcer(world: World, topics: Iterable[TopicRetention], *, max_rows: int = 2000) -> RetentionEnforcer:
    listed = list(topics)
    return RetentionEnforcer(
        lambda: listed,
        world.plane.trimming,
        world.plane.producers,
        clock=world.clock,
        chance=SystemChance(1),
        interval_ms=60_000,
        max_rows=max_rows,
        producer_expiration_ms=DAY_MS,
    )


async def start_of(world: World, partition: TopicIdPartition) -> int:
    return (await world.plane.reads.logs([partition]))[partition].log_start_offset


def test_rules_are_made_for_partitions_from_which_something_may_go() -> None:
    topics = [
        TopicRetention(TOPIC_A, A0.topic, [0, 1], ("delete",), 1000, -1),
        TopicRetention(TOPIC_B, B0.topic, [0], ("compact",), 1000, 1000),
        TopicRetention(TOPIC_B, B0.topic, [1], (), 1000, 1000),
        TopicRetention(TOPIC_B, B0.topic, [2], ("delete",), -1, -1),
        TopicRetention(TOPIC_B, B0.topic, [3], ("compact", "delete"), -1, 5),
    ]
    assert list(retention_rules(topics)) == [
        RetentionRule(A0, 1000, -1),
        RetentionRule(A1, 1000, -1),
        RetentionRule(id_partition(TOPIC_B, 2), -1, -1),
        RetentionRule(id_partition(TOPIC_B, 3), -1, 5),
    ]


async def test_records_go_when_they_are_too_old(world: World) -> None:
    await world.create_logs(A0, B0)
    await world.write(A0, B0)
    world.clock.move(100)
    await world.write(A0, B0)
    summary = await enforcer(world, [topic(A0, ms=50_000), topic(B0)]).run_once()
    assert (summary.partitions, summary.rows_deleted) == (2, 1)
    assert (await start_of(world, A0), await start_of(world, B0)) == (3, 0)


async def test_records_go_when_there_are_too_many(world: World) -> None:
    await world.create_logs(A0)
    for _ in range(10):
        await world.write(A0)
    size = (await world.plane.reads.logs([A0]))[A0].byte_size
    summary = await enforcer(world, [topic(A0, size=size // 2)]).run_once()
    assert summary.rows_deleted == 5
    assert await start_of(world, A0) == 15


async def test_one_round_goes_on_until_everything_is_gone_in_bounded_steps(world: World) -> None:
    await world.create_logs(A0, B0)
    for _ in range(7):
        await world.write(A0)
    await world.write(B0)
    world.clock.move(100)
    enforcing = enforcer(world, [topic(A0, ms=1), topic(B0, ms=1)], max_rows=2)
    assert (await enforcing.run_once()).rows_deleted == 8
    assert await start_of(world, A0) == 21
    status = enforcing.status()
    assert status.rows_deleted == 8
    assert status.bytes_deleted > 0


async def test_no_limit_on_rows_is_no_limit(world: World) -> None:
    await world.create_logs(A0)
    for _ in range(3):
        await world.write(A0)
    world.clock.move(100)
    assert (await enforcer(world, [topic(A0, ms=1)], max_rows=0).run_once()).rows_deleted == 3


async def test_a_topic_that_was_deleted_meanwhile_does_not_disturb_the_others(world: World) -> None:
    await world.create_logs(A0)
    await world.write(A0)
    world.clock.move(100)
    assert (await enforcer(world, [topic(B0, ms=1), topic(A0, ms=1)]).run_once()).rows_deleted == 1


async def test_what_an_interrupted_delete_records_left_goes_also_from_topics_without_limits(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.create_logs(A0)
    written = {await world.write(A0) for _ in range(3)}

    def die(where: str) -> None:
        raise RuntimeError(where)

    with monkeypatch.context() as patch:
        patch.setattr(pruning, "PAGE", 1)
        patch.setattr(pruning, "crash_point", die)
        with pytest.raises(RuntimeError, match=r"prune\.after_page"):
            await world.drop(A0)
    assert len(await world.marked()) == 1, "the rows of two objects are still there"
    assert (await enforcer(world, [topic(A0)]).run_once()).rows_deleted == 2
    assert await world.marked() == written


async def test_producers_that_have_gone_are_forgotten(world: World) -> None:
    await world.create_logs(A0)
    buffer = build_batch([Record(0, 0, None, b"v")], producer_id=9, producer_epoch=0, base_sequence=0)
    batch = DisklessAppend(A0, buffer, read_header(buffer), TimestampType.CREATE_TIME, 0)
    await world.commit(await world.upload([batch]))
    enforcing = enforcer(world, [])
    world.clock.move(DAY_MS / 1000 - 1)
    assert (await enforcing.run_once()).producers_expired == 0
    assert len(await world.plane.producers.producers(A0)) == 1
    world.clock.move(2)
    assert (await enforcing.run_once()).producers_expired == 1
    assert list(await world.plane.producers.producers(A0)) == []


async def test_it_runs_by_itself_but_only_on_duty(world: World) -> None:
    await world.create_logs(A0)
    await world.write(A0)
    on_duty, asked = False, 0

    def topics() -> list[TopicRetention]:
        nonlocal asked
        asked += 1
        return [topic(A0, ms=1)]

    enforcing = RetentionEnforcer(
        topics,
        world.plane.trimming,
        world.plane.producers,
        clock=world.clock,
        chance=SystemChance(1),
        interval_ms=1000,
        max_rows=10,
        producer_expiration_ms=DAY_MS,
        is_on_duty=lambda: on_duty,
    )
    task = asyncio.create_task(enforcing.run())
    await world.clock.advance(10)
    assert asked == 0
    on_duty = True
    await world.wait_until(lambda: enforcing.status().upkeep.rounds > 0)
    assert enforcing.status().rows_deleted == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_database_that_restarts_is_waited_for(tmp_path: Path) -> None:
    postgres = start_postgres()
    async with open_world(postgres.new_database(), tmp_path / "objects") as world:
        await world.create_logs(A0)
        await world.write(A0)
        enforcing = enforcer(world, [topic(A0, ms=1)])
        await postgres.stop()
        task = asyncio.create_task(enforcing.run())
        try:
            await world.wait_until(lambda: enforcing.status().upkeep.failures_in_a_row > 0)
            assert enforcing.status().upkeep.last_error
        finally:
            await postgres.start()
        await world.wait_until(lambda: enforcing.status().upkeep.rounds > 0)
        assert enforcing.status().rows_deleted == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
