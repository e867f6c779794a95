"""Shards with many offsets, groups or transactional ids: loading is linear, and sweeps go over them in short steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from bench.growing.coordinated import (
    GROUP_SHAPES,
    MEMBER_SHAPES,
    KeptMarkers,
    group_shard,
    offsets_of_one_group,
    replay,
    transaction_shard,
    transactional_ids,
)

from strandline.coordinators.groups.shard import MEMBERS_PER_STEP, GroupShard
from strandline.coordinators.groups.upkeep import OFFSETS_PER_STEP
from strandline.coordinators.transactions.shard import IDS_PER_STEP, TransactionShard
from strandline.coordinators.transactions.states import TransactionState
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
