"""Shards with many offsets, groups or transactional ids: loading is linear, and sweeps go over them in short steps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast
from uuid import UUID
from weakref import ref

import pytest
from bench.growing.coordinated import (
    GROUP_SHAPES,
    MEMBER_SHAPES,
    InstantSink,
    KeptMarkers,
    committed,
    group_shard,
    offsets_of_many_groups,
    offsets_of_one_group,
    replay,
    transaction_shard,
    transactional_ids,
)

from strandline.config.groups import GroupSettings
from strandline.coordinators.groups import GroupCoordinator
from strandline.coordinators.groups.coordinator import GROUPS_PER_TURN
from strandline.coordinators.groups.shard import GROUPS_PER_STEP, MEMBERS_PER_STEP, GroupShard
from strandline.coordinators.groups.upkeep import OFFSETS_PER_STEP
from strandline.coordinators.runtime import ReadBatch, ReadRecord
from strandline.coordinators.share_states import SharePartitionKey, ShareState
from strandline.coordinators.share_states.schemas import snapshot_record
from strandline.coordinators.share_states.shard import PARTITIONS_PER_STEP, ShareShard
from strandline.coordinators.transactions import TransactionCoordinator, TransactionFilter
from strandline.coordinators.transactions.coordinator import IDS_PER_TURN, TransactionLimits
from strandline.coordinators.transactions.shard import IDS_PER_STEP, TransactionShard
from strandline.coordinators.transactions.states import TransactionState
from strandline.coordinators.transactions.table import TransactionTable
from strandline.errors import NotCoordinator
from strandline.model import ProducerAndEpoch, TopicPartition
from strandline.tasks import next_turn
from strandline.testing.clock import VirtualClock
from tests.coordinators.groups.known_topics import KnownTopics
from tests.coordinators.groups.timed_shard import Log
from tests.coordinators.runtime.memory_log import MemoryCoordinatorLog
from tests.guards.counting import CountedInstructions, exponent

FEW, MANY = 60, 600
# What an offset (with its group, which is deleted) or an id may take of a step, and a step by itself.
INSTRUCTIONS_EACH, INSTRUCTIONS_PER_STEP = 750, 5_000
INSTRUCTIONS_PER_MEMBER = 4_000


@pytest.mark.parametrize("shape", GROUP_SHAPES)
def test_offsets_are_loaded_and_expire_in_proportion(shape: str) -> None:
    def work(size: int) -> int:
        shard, batches = group_shard(), list(GROUP_SHAPES[shape](size))
        with CountedInstructions() as counted:
            replay(shard, batches)
            steps(counted, shard.prepare())
            steps(counted, shard.loaded())
            steps(counted, shard.expire())
        return counted.total

    few, many = work(FEW), work(MANY)
    grows = exponent((FEW, few), (MANY, many))
    assert grows <= 1.03, f"{shape}: {few} instructions for {FEW}, {many} for {MANY}"


def steps(counted: CountedInstructions, work: Iterator[None]) -> int:
    """Take them all. The number of them."""
    number = 0
    counted.end_turn()
    for _ in work:
        counted.end_turn()
        number += 1
    return number


@pytest.mark.parametrize("shape", [shape for shape in GROUP_SHAPES if shape != "transactions of a consumer"])
@pytest.mark.parametrize("work", [GroupShard.prepare, GroupShard.expire])
def test_offsets_are_looked_at_in_short_steps(work: Callable[[GroupShard], Iterator[None]], shape: str) -> None:
    shard = group_shard()
    replay(shard, GROUP_SHAPES[shape](4 * OFFSETS_PER_STEP))
    with CountedInstructions() as counted:
        number = steps(counted, work(shard))
    assert number >= 4
    assert counted.longest_turn <= OFFSETS_PER_STEP * INSTRUCTIONS_EACH + INSTRUCTIONS_PER_STEP


@pytest.mark.parametrize("work", [TransactionShard.abort_timed_out, lambda shard: shard.expire(60_000)])
def test_transactional_ids_are_looked_at_in_short_steps(work: Callable[[TransactionShard], Iterator[None]]) -> None:
    shard = transaction_shard()
    replay(shard, transactional_ids(4 * IDS_PER_STEP))
    with CountedInstructions() as counted:
        assert steps(counted, work(shard)) == 4
    assert counted.longest_turn <= IDS_PER_STEP * INSTRUCTIONS_EACH + INSTRUCTIONS_PER_STEP


@pytest.mark.parametrize("shape", MEMBER_SHAPES)
@pytest.mark.parametrize("work", [GroupShard.prepare, GroupShard.loaded])
def test_members_are_looked_at_in_short_steps(work: Callable[[GroupShard], Iterator[None]], shape: str) -> None:
    shard = group_shard()
    replay(shard, MEMBER_SHAPES[shape](4 * MEMBERS_PER_STEP))
    with CountedInstructions() as counted:
        steps(counted, work(shard))
    assert counted.longest_turn <= MEMBERS_PER_STEP * INSTRUCTIONS_PER_MEMBER + INSTRUCTIONS_PER_STEP


def test_markers_of_prepared_transactions_are_sent_in_short_steps() -> None:
    markers = KeptMarkers()
    shard = transaction_shard(markers)
    replay(shard, transactional_ids(4 * IDS_PER_STEP, TransactionState.PREPARE_COMMIT))
    with CountedInstructions() as counted:
        assert steps(counted, shard.loaded()) == 4
    assert markers.outstanding == 4 * IDS_PER_STEP
    assert counted.longest_turn <= IDS_PER_STEP * INSTRUCTIONS_EACH + INSTRUCTIONS_PER_STEP


def test_a_start_does_not_look_at_transactions_that_are_complete() -> None:
    shard = transaction_shard()
    replay(shard, transactional_ids(4 * IDS_PER_STEP))
    with CountedInstructions() as counted:
        steps(counted, shard.loaded())
    assert counted.longest_turn <= INSTRUCTIONS_PER_STEP


def test_metrics_do_not_look_at_every_transactional_id() -> None:
    shard = transaction_shard()
    replay(shard, transactional_ids(4 * IDS_PER_STEP))
    with CountedInstructions() as counted:
        assert shard.transactions.by_state == {TransactionState.COMPLETE_COMMIT: 4 * IDS_PER_STEP}
        assert shard.transactions.oldest_start_ms is None
    assert counted.total <= INSTRUCTIONS_PER_STEP


def test_a_group_with_more_offsets_than_a_step_looks_at_loses_them_all_and_then_goes() -> None:
    shard = group_shard()
    replay(shard, offsets_of_one_group(2 * OFFSETS_PER_STEP + 1))
    for _ in shard.prepare():
        pass
    for _ in shard.loaded():
        pass
    for _ in shard.expire():
        pass
    assert len(shard.offsets) == 0
    assert list(shard.groups) == ["g"]
    for _ in shard.expire():
        pass
    assert list(shard.groups) == []


def test_offsets_that_are_committed_between_two_steps_stay() -> None:
    shard = group_shard()
    replay(shard, offsets_of_one_group(3 * OFFSETS_PER_STEP))
    expiring = shard.expire()
    next(expiring)
    kept = {key: stored for piece in shard.offsets.pieces(10_000) for key, stored in piece}
    last = max(kept, key=lambda key: key.partition)
    shard.offsets.put(last, kept[last]._replace(commit_timestamp=1 << 60), 1 << 40)
    for _ in expiring:
        pass
    assert [key for piece in shard.offsets.pieces(10_000) for key, _ in piece] == [last]


# Topics that are deleted


@pytest.mark.parametrize("shape", GROUP_SHAPES)
def test_the_end_of_a_topic_costs_nothing_where_it_has_no_offsets(shape: str) -> None:
    shard = group_shard()
    replay(shard, GROUP_SHAPES[shape](4 * OFFSETS_PER_STEP))
    with CountedInstructions() as counted:
        steps(counted, shard.drop_stale_offsets(["another"]))
    assert counted.total <= INSTRUCTIONS_PER_STEP


def offsets_of_a_topic(size: int, shape: str) -> Iterator[ReadBatch]:
    """That was deleted."""
    for number in range(size):
        group, partition = ("g", number) if shape == "one group" else (f"g{number}", 0)
        producer = ProducerAndEpoch(1, 0) if shape == "a transaction" else None
        yield committed(number, group, partition, topic="gone", producer=producer)


@pytest.mark.parametrize("shape", ["one group", "many groups", "a transaction"])
def test_offsets_of_a_deleted_topic_go_in_short_steps(shape: str) -> None:
    shard = group_shard()
    replay(shard, offsets_of_a_topic(4 * OFFSETS_PER_STEP, shape))
    with CountedInstructions() as counted:
        assert steps(counted, shard.drop_stale_offsets(["gone"])) >= 4
    assert len(shard.offsets) == 0
    assert not shard.offsets.has_any("g0")
    assert counted.longest_turn <= OFFSETS_PER_STEP * INSTRUCTIONS_EACH + INSTRUCTIONS_PER_STEP


def test_offsets_of_one_open_transaction_are_looked_at_in_short_steps() -> None:
    shard = group_shard()
    batches = (committed(at, "g", at, producer=ProducerAndEpoch(1, 0)) for at in range(4 * OFFSETS_PER_STEP))
    replay(shard, batches)
    with CountedInstructions() as counted:
        assert steps(counted, shard.upkeep.drop_stale()) == 4
    assert counted.longest_turn <= OFFSETS_PER_STEP * INSTRUCTIONS_EACH + INSTRUCTIONS_PER_STEP


def test_groups_are_asked_for_state_of_deleted_topics_in_short_steps() -> None:
    shard = group_shard()
    replay(shard, offsets_of_many_groups(2 * GROUPS_PER_STEP))
    with CountedInstructions() as counted:
        assert steps(counted, shard.forget_vanished_topics()) == 2
    assert counted.longest_turn <= GROUPS_PER_STEP * 100 + INSTRUCTIONS_PER_STEP


def share_shard(size: int) -> ShareShard:
    """Half of its share partitions are of a topic that was deleted."""
    shard = ShareShard(
        InstantSink(),
        VirtualClock(),
        has_partition=lambda key: key.topic_id == UUID(int=1),
        updates_per_snapshot=500,
        delete_before=lambda _: None,
    )
    for number in range(size):
        key = SharePartitionKey(f"g{number}", UUID(int=1 + number % 2), 0)
        replay_share(shard, number, key)
    return shard


def replay_share(shard: ShareShard, at: int, key: SharePartitionKey) -> None:
    state = ShareState(snapshot_epoch=0, state_epoch=0, leader_epoch=0, start_offset=0, created_ms=1, written_ms=1)
    record, value = snapshot_record(key, state)
    shard.replay(ReadBatch(records=(ReadRecord(at, record, value),)))


def test_share_partitions_of_a_deleted_topic_go_in_short_steps() -> None:
    shard = share_shard(8 * PARTITIONS_PER_STEP)
    with CountedInstructions() as counted:
        assert steps(counted, shard.drop_deleted_topics([UUID(int=2)])) == 4
    assert len(shard) == 4 * PARTITIONS_PER_STEP
    assert counted.longest_turn <= PARTITIONS_PER_STEP * 2 * INSTRUCTIONS_EACH + INSTRUCTIONS_PER_STEP
    with CountedInstructions() as counted:
        steps(counted, shard.drop_deleted_topics([UUID(int=2), UUID(int=3)]))
    assert counted.total <= INSTRUCTIONS_PER_STEP


def test_share_partitions_that_have_outlived_their_topic_are_looked_for_in_short_steps() -> None:
    shard = share_shard(4 * PARTITIONS_PER_STEP)
    for number in range(4 * PARTITIONS_PER_STEP):
        replay_share(shard, number, SharePartitionKey("g", UUID(int=10 + number), 0))
    with CountedInstructions() as counted:
        steps(counted, shard.drop_left_over())
    assert len(shard) == 2 * PARTITIONS_PER_STEP
    assert counted.longest_turn <= PARTITIONS_PER_STEP * 2 * INSTRUCTIONS_EACH + INSTRUCTIONS_PER_STEP


def test_share_partitions_of_topics_that_are_there_cost_a_look_at_each_topic() -> None:
    shard = share_shard(8 * PARTITIONS_PER_STEP)
    steps(CountedInstructions(), shard.drop_left_over())
    with CountedInstructions() as counted:
        steps(counted, shard.drop_left_over())
    assert counted.total <= INSTRUCTIONS_PER_STEP


# Groups that are deleted


def test_a_group_with_many_offsets_is_deleted_in_short_turns() -> None:
    log = Log()
    shard, answers = group_shard(log), list[object]()
    replay(shard, offsets_of_one_group(4 * OFFSETS_PER_STEP))
    log.records = [(b"", None)] * (4 * OFFSETS_PER_STEP)
    with CountedInstructions() as counted:
        shard.delete_group("g", answers.append)
        while log.waiting:
            counted.end_turn()
            log.finish_one(accept=True)
    assert (answers, len(shard.offsets)) == ([None], 0)
    assert counted.longest_turn <= OFFSETS_PER_STEP * INSTRUCTIONS_EACH + INSTRUCTIONS_PER_STEP


def test_the_deletion_of_an_offset_costs_no_look_at_the_others() -> None:
    shard, answers = group_shard(), list[object]()
    replay(shard, offsets_of_one_group(4 * OFFSETS_PER_STEP))
    with CountedInstructions() as counted:
        shard.delete_offsets("g", [TopicPartition("t", 0), TopicPartition("another", 0)], answers.append)
    assert (answers, len(shard.offsets)) == ([[None, None]], 4 * OFFSETS_PER_STEP - 1)
    assert counted.total <= INSTRUCTIONS_PER_STEP


# The end of a shard


def test_groups_and_offsets_are_unloaded_in_short_steps() -> None:
    shard = group_shard()
    replay(shard, offsets_of_many_groups(2 * GROUPS_PER_STEP))
    with CountedInstructions() as counted:
        assert steps(counted, shard.unloaded(NotCoordinator("lost"))) == 2
        assert steps(counted, shard.let_go()) == 2
    assert (len(shard.groups), len(shard.offsets)) == (0, 0)
    assert counted.longest_turn <= GROUPS_PER_STEP * 100 + INSTRUCTIONS_PER_STEP


def test_offsets_of_one_group_and_of_a_transaction_are_let_go_in_short_steps() -> None:
    shard = group_shard()
    replay(shard, offsets_of_one_group(2 * GROUPS_PER_STEP))
    replay(shard, offsets_of_a_topic(GROUPS_PER_STEP, "a transaction"))
    with CountedInstructions() as counted:
        assert steps(counted, shard.let_go()) == 4
    assert (len(shard.offsets), shard.offsets.has_any("g")) == (0, False)
    assert counted.longest_turn <= GROUPS_PER_STEP * 100 + INSTRUCTIONS_PER_STEP


def test_members_are_unloaded_in_short_steps() -> None:
    shard = group_shard()
    replay(shard, MEMBER_SHAPES["classic groups with a member"](4 * MEMBERS_PER_STEP))
    with CountedInstructions() as counted:
        assert steps(counted, shard.unloaded(NotCoordinator("lost"))) >= 4
    assert counted.longest_turn <= MEMBERS_PER_STEP * INSTRUCTIONS_PER_MEMBER + INSTRUCTIONS_PER_STEP


def test_transactional_ids_are_unloaded_in_short_steps() -> None:
    shard = transaction_shard()
    replay(shard, transactional_ids(4 * IDS_PER_STEP))
    with CountedInstructions() as counted:
        steps(counted, shard.unloaded(NotCoordinator("lost")))
        assert counted.total <= INSTRUCTIONS_PER_STEP
        assert steps(counted, shard.let_go()) == 4
    assert len(shard.transactions) == 0
    assert counted.longest_turn <= IDS_PER_STEP * INSTRUCTIONS_EACH + INSTRUCTIONS_PER_STEP


def test_share_partitions_are_let_go_in_short_steps() -> None:
    shard = share_shard(4 * PARTITIONS_PER_STEP)
    with CountedInstructions() as counted:
        assert steps(counted, shard.let_go()) == 4
    assert len(shard) == 0
    assert counted.longest_turn <= PARTITIONS_PER_STEP * INSTRUCTIONS_EACH + INSTRUCTIONS_PER_STEP


# Listings and metrics


async def counted_by_turns(counted: CountedInstructions, work: Callable[[], Awaitable[list[Any]]]) -> int:
    """Do it, with another task that has a turn whenever it can. How much was found."""

    async def others() -> None:
        while True:
            counted.end_turn()
            await next_turn()

    task = asyncio.create_task(others())
    try:
        return len(await work())
    finally:
        task.cancel()


async def test_groups_are_listed_in_short_turns() -> None:
    nobody = cast("Any", None)
    coordinator = GroupCoordinator(
        MemoryCoordinatorLog(), KnownTopics(), clock=VirtualClock(), ids=nobody, settings=GroupSettings()
    )
    async with coordinator.running():
        coordinator.runtime.elected(0, 0)
        await coordinator.runtime.wait_loaded()
        replay(coordinator.runtime.shard_of(0), offsets_of_many_groups(4 * GROUPS_PER_TURN))
        with CountedInstructions() as counted:
            found = await counted_by_turns(counted, coordinator.list_groups)
    assert found == 4 * GROUPS_PER_TURN
    assert counted.longest_turn <= GROUPS_PER_TURN * INSTRUCTIONS_EACH / 2 + INSTRUCTIONS_PER_STEP


async def test_transactions_are_listed_in_short_turns() -> None:
    nobody = cast("Any", None)
    coordinator = TransactionCoordinator(
        MemoryCoordinatorLog(), KeptMarkers(), nobody, clock=VirtualClock(), limits=TransactionLimits()
    )
    async with coordinator.running():
        coordinator.runtime.elected(0, 0)
        await coordinator.runtime.wait_loaded()
        replay(coordinator.runtime.shard_of(0), transactional_ids(4 * IDS_PER_TURN))
        wanted = TransactionFilter(longer_than_ms=-1)
        with CountedInstructions() as counted:
            found = await counted_by_turns(counted, lambda: coordinator.transactions(wanted))
    assert found == 4 * IDS_PER_TURN
    assert counted.longest_turn <= IDS_PER_TURN * INSTRUCTIONS_EACH / 2 + INSTRUCTIONS_PER_STEP


class Moment(int):
    """Counts comparisons: the interpreter does not see those of numbers."""

    compared = 0

    def __lt__(self, other: int) -> bool:
        Moment.compared += 1
        return int(self) < int(other)


def test_the_oldest_transaction_is_known_without_a_look_at_all_that_are_open() -> None:
    shard, table = transaction_shard(), TransactionTable()
    replay(shard, transactional_ids(10_000, TransactionState.ONGOING))
    for number, one in enumerate(shard.transactions.values()):
        table[one.transactional_id] = replace(one, start_ms=Moment(50_000 + number * 7))
    Moment.compared = 0
    assert table.oldest_start_ms == 50_000
    assert Moment.compared <= 1_000


class NamedId(str):
    """Something that can be seen to go."""


def test_transactional_ids_that_expire_are_let_go_step_by_step() -> None:
    """To let go of a million names at once takes a tenth of a second."""
    shard = transaction_shard()
    replay(shard, transactional_ids(4 * IDS_PER_STEP))
    for one in list(shard.transactions):
        shard.transactions[NamedId(one)] = shard.transactions.pop(one)
    names = [ref(one) for one in shard.transactions]
    there = [len(names)]
    for _ in shard.expire(60_000):
        there.append(sum(name() is not None for name in names))
    assert not shard.transactions
    assert max(before - after for before, after in pairwise(there)) <= IDS_PER_STEP
    assert there[-1] <= IDS_PER_STEP
