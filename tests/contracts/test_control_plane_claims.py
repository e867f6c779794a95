"""The contract of the control plane: a leader that does not know what earlier ones did claims the boundary first."""

from __future__ import annotations

import asyncio

from strandline.controlplane import MigrationState, SqlControlPlane
from strandline.controlplane.values import BoundaryClaim, Refusal
from tests.contracts.test_control_plane_rivals import planes as planes
from tests.controlplane.making import batch, commit
from tests.controlplane.switching import P, Q, R, abort, boundary, log_of, request, switch


async def claim(plane: SqlControlPlane, *claims: BoundaryClaim) -> dict[int, tuple[int, int]]:
    """Claim boundaries; returns boundary and epoch of each partition that has a log."""
    logs = await plane.migrations.claim_boundaries(claims)
    return {
        partition.partition: (log.diskless_log_start_offset, log.diskless_log_start_epoch)
        for partition, log in logs.items()
    }


async def test_an_earlier_leader_comes_too_late_after_a_claim(plane: SqlControlPlane) -> None:
    position = await request(plane)
    assert await claim(plane, BoundaryClaim(P, position, 5)) == {0: (-1, 5)}
    assert await switch(plane, boundary(P, 100, position=position, epoch=4)) == [Refusal.STALE_LEADER_EPOCH]
    assert await switch(plane, boundary(P, 120, position=position, epoch=5)) == [None]
    assert (await log_of(plane, P)).diskless_log_start_offset == 120


async def test_a_claim_of_an_earlier_leader_changes_nothing(plane: SqlControlPlane) -> None:
    position = await request(plane)
    await claim(plane, BoundaryClaim(P, position, 5))
    assert await claim(plane, BoundaryClaim(P, position, 4)) == {0: (-1, 5)}


async def test_a_claim_finds_the_boundary_that_is_set(plane: SqlControlPlane) -> None:
    position = await request(plane)
    await switch(plane, boundary(P, 100, position=position, epoch=3))
    found = await claim(plane, BoundaryClaim(P, position, 7), BoundaryClaim(Q, position, 7))
    assert found == {0: (100, 3), 1: (-1, 7)}
    assert (await log_of(plane, P)).migration_state is MigrationState.MIGRATING


async def test_without_a_request_nothing_is_claimed(plane: SqlControlPlane) -> None:
    position = await request(plane, partitions=2)
    assert await claim(plane, BoundaryClaim(R, position, 7)) == {}  # a partition that was added later
    await abort(plane)
    assert await claim(plane, BoundaryClaim(P, position, 7)) == {}
    assert not await plane.reads.logs([P, R])


async def test_a_claimed_log_takes_no_batches(plane: SqlControlPlane) -> None:
    position = await request(plane)
    await claim(plane, BoundaryClaim(P, position, 5))
    (answer,) = await commit(plane, "a", batch(P))
    assert answer.refusal is Refusal.UNKNOWN_LOG


async def test_a_switch_that_is_only_claimed_can_be_aborted(plane: SqlControlPlane) -> None:
    position = await request(plane)
    await claim(plane, BoundaryClaim(P, position, 5))
    assert await abort(plane) is None
    assert not await plane.reads.logs([P])


async def test_a_claim_and_a_boundary_at_once_agree(planes: list[SqlControlPlane]) -> None:
    """Whichever comes first: the claim sees the boundary, or the earlier leader is refused."""
    leader, successor = planes
    for _ in range(20):
        position = await request(leader)
        refusals, found = await asyncio.gather(
            switch(leader, boundary(P, 100, position=position, epoch=3)),
            claim(successor, BoundaryClaim(P, position, 4)),
        )
        assert (refusals, found) in (
            ([None], {0: (100, 3)}),
            ([Refusal.STALE_LEADER_EPOCH], {0: (-1, 4)}),
        )
        await leader.lifecycle.delete_topics([P.topic_id])
