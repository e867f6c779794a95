"""Static members: they come back under their instance id, without a rebalance where possible."""

from __future__ import annotations

import pytest

from strandline.coordinators.groups import GroupState, MemberProtocol
from strandline.coordinators.groups.schemas import read_group_value
from strandline.errors import (
    CoordinatorNotAvailable,
    FencedInstanceId,
    NotEnoughReplicas,
    RebalanceInProgress,
    UnknownMemberId,
)
from tests.coordinators.groups.members import RANGE, SESSION_MS, GroupDriver, answer_of, subscription
from tests.coordinators.runtime.memory_log import MemoryCoordinatorLog

STATIC = {"group_instance_id": "i-1"}
OTHER = {"group_instance_id": "i-2"}


async def test_a_static_member_needs_no_id_first(group: GroupDriver) -> None:
    response = await group.join(**STATIC)
    assert response.error is None
    assert response.member_id.startswith("i-1-")
    assert response.members[0].group_instance_id == "i-1"


async def test_a_static_follower_comes_back_without_a_rebalance(group: GroupDriver, log: MemoryCoordinatorLog) -> None:
    leader, follower = await group.stable(STATIC, OTHER)
    back = await group.join(**OTHER)
    assert back.error is None
    assert back.generation_id == 1
    assert back.member_id != follower.member_id
    assert back.leader == leader.member_id
    assert back.members == ()
    assert group.state() is GroupState.STABLE
    assert (await group.sync(back.member_id, 1)).assignment == f"a-{follower.member_id}".encode()
    stored = read_group_value(log.appends[-1][1][0].value or b"")
    assert back.member_id in [member.member_id for member in stored.members]


async def test_a_static_leader_comes_back_and_must_not_assign(group: GroupDriver) -> None:
    await group.stable(STATIC, OTHER)
    back = await group.join(**STATIC)
    assert back.skip_assignment
    assert back.leader == back.member_id
    assert len(back.members) == 2
    assert group.state() is GroupState.STABLE


async def test_an_older_static_leader_is_not_told_that_it_leads(group: GroupDriver) -> None:
    leader, _ = await group.stable(STATIC, OTHER)
    back = await group.join(**STATIC, can_skip_assignment=False)
    assert not back.skip_assignment
    assert back.leader == leader.member_id != back.member_id
    assert back.members == ()


async def test_the_old_member_id_is_fenced(group: GroupDriver) -> None:
    (old,) = await group.stable(STATIC)
    back = await group.join(**STATIC)
    with pytest.raises(FencedInstanceId):
        group.coordinator.heartbeat("g", old.member_id, 1, "i-1")
    assert isinstance((await group.join(member_id=old.member_id, **STATIC)).error, FencedInstanceId)
    assert isinstance((await group.sync(old.member_id, 1, group_instance_id="i-1")).error, FencedInstanceId)
    with pytest.raises(FencedInstanceId):
        await group.commit(("orders", 0, 1), member_id=old.member_id, generation_id=1, group_instance_id="i-1")
    with pytest.raises(UnknownMemberId):
        group.coordinator.heartbeat("g", old.member_id, 1)
    group.coordinator.heartbeat("g", back.member_id, 1, "i-1")


async def test_a_duplicate_that_waits_is_fenced_at_once(group: GroupDriver) -> None:
    _, other = await group.stable(STATIC, OTHER)
    waiting = await group.start_join(
        **OTHER, member_id=other.member_id, protocols=(MemberProtocol(name="range", metadata=subscription("x")),)
    )
    assert not waiting.done()
    await group.start_join(**OTHER)
    assert isinstance(answer_of(waiting).error, FencedInstanceId)


async def test_a_static_member_with_another_protocol_starts_a_rebalance(group: GroupDriver) -> None:
    sticky = MemberProtocol(name="sticky", metadata=b"")
    await group.stable({**STATIC, "protocols": (RANGE, sticky)}, {**OTHER, "protocols": (RANGE, sticky)})
    await group.start_join(**OTHER, protocols=(sticky,))
    assert group.state() is GroupState.PREPARING_REBALANCE


async def test_a_static_member_that_comes_back_during_the_assignment_starts_a_rebalance(group: GroupDriver) -> None:
    waiting = await group.join_together(STATIC, OTHER)
    assert all(task.done() for task in waiting)
    follower_sync = await group.start_sync(answer_of(waiting[1]).member_id, 1)
    await group.start_join(**OTHER)
    assert isinstance(answer_of(follower_sync).error, FencedInstanceId)
    assert group.state() is GroupState.PREPARING_REBALANCE


async def test_a_return_that_cannot_be_stored_is_undone(group: GroupDriver, log: MemoryCoordinatorLog) -> None:
    leader, follower = await group.stable(STATIC, OTHER)
    log.fail_with = NotEnoughReplicas("no replicas")
    back = await group.join(**OTHER)
    assert isinstance(back.error, CoordinatorNotAvailable)
    assert group.state() is GroupState.STABLE
    log.fail_with = None
    group.coordinator.heartbeat("g", follower.member_id, 1, "i-2")
    group.coordinator.heartbeat("g", leader.member_id, 1, "i-1")


async def test_a_rebalance_answers_a_static_member_whose_return_is_being_stored(
    group: GroupDriver, log: MemoryCoordinatorLog
) -> None:
    leader, _ = await group.stable(STATIC, OTHER)
    log.hold()
    back = await group.start_join(**OTHER)
    assert not back.done()
    rejoined = await group.start_join(**STATIC, member_id=leader.member_id)
    log.release()
    await group.clock.settle()
    assert answer_of(back).generation_id == answer_of(rejoined).generation_id == 2


async def test_a_static_member_survives_a_rebalance_it_misses(group: GroupDriver) -> None:
    leader, absent = await group.stable(
        {**STATIC, "rebalance_timeout_ms": 5000}, {**OTHER, "rebalance_timeout_ms": 5000}
    )
    waiting = await group.start_join(**STATIC, member_id=leader.member_id, rebalance_timeout_ms=5000)
    await group.clock.advance(5)
    assert len(answer_of(waiting).members) == 2
    assert absent.member_id in [member.member_id for member in answer_of(waiting).members]


async def test_a_static_member_that_stays_away_is_removed_by_its_session(group: GroupDriver) -> None:
    await group.stable(STATIC)
    await group.clock.advance(SESSION_MS / 1000)
    assert group.state() is GroupState.EMPTY
    assert (await group.join(**STATIC)).error is None


async def test_an_unknown_instance_id_with_a_member_id_is_refused(group: GroupDriver) -> None:
    (member,) = await group.stable({})
    assert isinstance((await group.join(**STATIC, member_id=member.member_id)).error, UnknownMemberId)


async def test_a_rebalance_without_anyone_waits_for_the_sessions(group: GroupDriver) -> None:
    """All members are static and none rejoins: no member is left to lead, so the old generation is kept for now."""
    short = {"rebalance_timeout_ms": 4000}
    first, _second = await group.stable({**STATIC, **short}, {**OTHER, **short})
    lost = await group.start_join(**STATIC, member_id=first.member_id, **short)
    lost.cancel()
    await group.clock.advance(4)
    assert group.state() is GroupState.COMPLETING_REBALANCE  # the coordinator cannot see that the client has gone
    await group.clock.advance(SESSION_MS / 1000)
    assert group.state() is GroupState.EMPTY


async def test_a_heartbeat_tells_static_members_to_rejoin(group: GroupDriver) -> None:
    leader, other = await group.stable(STATIC, OTHER)
    await group.start_join(**STATIC, member_id=leader.member_id)
    with pytest.raises(RebalanceInProgress):
        group.coordinator.heartbeat("g", other.member_id, 1, "i-2")


async def test_a_session_that_ended_while_the_return_was_stored_starts_anew(
    group: GroupDriver, log: MemoryCoordinatorLog
) -> None:
    await group.stable(STATIC)
    log.hold()
    back = await group.start_join(**STATIC)
    await group.clock.advance(SESSION_MS / 1000)
    log.release()
    await group.clock.settle()
    assert answer_of(back).error is None
    await group.clock.advance(SESSION_MS / 1000)
    assert group.state() is GroupState.EMPTY
