"""The contract of the control plane: leader epochs never go back along a log."""

from __future__ import annotations

import asyncio
import itertools

from strandline.controlplane import SqlControlPlane
from tests.contracts.test_control_plane_rivals import PARTITIONS, planes
from tests.controlplane.making import A, B, batch, commit, rows_of, wal

__all__ = ["planes"]


async def test_a_late_commit_of_a_broker_with_old_metadata_gets_the_epoch_of_the_log(plane: SqlControlPlane) -> None:
    (newer,) = await commit(plane, "newer", batch(A, leader_epoch=5))
    late, other = await commit(plane, "late", batch(A, leader_epoch=3), batch(B, leader_epoch=3))
    assert [answer.leader_epoch for answer in (newer, late, other)] == [5, 5, 3]
    assert [row.leader_epoch for row in await rows_of(plane, A)] == [5, 5]
    assert [row.leader_epoch for row in await rows_of(plane, B)] == [3]
    logs = await plane.reads.logs([A, B])
    assert (logs[A].last_epoch, logs[B].last_epoch) == (5, 3)


async def test_the_batches_of_a_row_agree_on_the_epoch_that_was_kept(plane: SqlControlPlane) -> None:
    accepted = [3, 3, 5, 5, 3, 3, 6]
    answers = await commit(plane, "one", *(batch(A, leader_epoch=epoch) for epoch in accepted))
    kept = [answer.leader_epoch for answer in answers]
    assert kept == [3, 3, 5, 5, 5, 5, 6]
    rows = await rows_of(plane, A)
    # A row lies within one extent of the object, and extents are divided by the epoch of the acceptance.
    assert [(row.base_offset, row.last_offset) for row in rows] == [(0, 1), (2, 3), (4, 5), (6, 6)]
    assert [row.leader_epoch for row in rows for _ in range(row.base_offset, row.last_offset + 1)] == kept


async def test_a_log_remembers_its_epoch_after_its_records_are_gone(plane: SqlControlPlane) -> None:
    await commit(plane, "one", batch(A, leader_epoch=5))
    await plane.trimming.delete_records({A: -1})
    (late,) = await commit(plane, "late", batch(A, leader_epoch=3))
    assert late.leader_epoch == 5
    assert (await plane.reads.logs([A]))[A].last_epoch == 5


async def test_a_repeated_commit_gets_the_epoch_of_the_first(plane: SqlControlPlane) -> None:
    await commit(plane, "zero", batch(A, leader_epoch=5))
    file = wal("one", batch(A, leader_epoch=3), batch(A, leader_epoch=6))
    (first,) = await plane.commits.commit_files([file])
    await commit(plane, "two", batch(A, leader_epoch=9))
    (again,) = await plane.commits.commit_files([file])
    assert again == first
    assert [answer.leader_epoch for answer in again] == [5, 6]


async def test_a_refused_batch_and_a_duplicate_move_no_epoch(plane: SqlControlPlane) -> None:
    await commit(plane, "one", batch(A, leader_epoch=1, producer=(7, 0, 0)))
    again, gap = await commit(
        plane, "two", batch(A, leader_epoch=4, producer=(7, 0, 0)), batch(A, leader_epoch=5, producer=(7, 0, 9))
    )
    assert again.is_duplicate
    assert gap.refusal is not None
    assert (again.leader_epoch, gap.leader_epoch) == (-1, -1)
    assert (await plane.reads.logs([A]))[A].last_epoch == 1


async def test_epochs_ascend_whoever_commits_when(planes: list[SqlControlPlane]) -> None:
    async def write(number: int) -> None:
        for turn in range(8):
            epoch = turn + 3 * (number % 2)  # one of the two brokers has metadata of another age
            await commit(planes[number % 2], f"{number}-{turn}", *(batch(p, leader_epoch=epoch) for p in PARTITIONS))

    await asyncio.gather(*map(write, range(4)))
    for partition in PARTITIONS:
        epochs = [row.leader_epoch for row in await rows_of(planes[0], partition)]
        assert all(one <= other for one, other in itertools.pairwise(epochs))
        assert epochs[-1] == 10
