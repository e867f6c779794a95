"""SyncGroup, Heartbeat, LeaveGroup and sessions of classic groups."""

from __future__ import annotations

import pytest

from strandline.coordinators.groups import GroupState, LeavingMember
from strandline.coordinators.groups.schemas import read_group_value
from strandline.errors import (
    FencedInstanceId,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidGroupId,
    NotCoordinator,
    NotLeaderOrFollower,
    RebalanceInProgress,
    UnknownMemberId,
)
from tests.coordinators.groups.members import REBALANCE_MS, SESSION_MS, GroupDriver, answer_of
from tests.coordinators.runtime.memory_log import MemoryCoordinatorLog


async def joined_pair(group: GroupDriver) -> tuple[str, str]:
    """Leader and follower of a group that waits for its assignment."""
    ids = [await group.new_id(), await group.new_id()]
    waiting = await group.join_together(*({"member_id": member_id} for member_id in ids))
    assert all(task.done() for task in waiting)
    return ids[0], ids[1]


async def test_all_members_get_the_leaders_assignment_once_it_is_stored(
    group: GroupDriver, log: MemoryCoordinatorLog
) -> None:
    leader, follower = await joined_pair(group)
    waiting = await group.start_sync(follower, 1)
    log.hold()
    leading = await group.start_sync(leader, 1, {leader: b"L", follower: b"F"})
    assert not waiting.done()
    assert not leading.done()
    assert group.state() is GroupState.COMPLETING_REBALANCE
    log.release()
    await group.clock.settle()
    assert answer_of(waiting).assignment == b"F"
    assert answer_of(leading).assignment == b"L"
    assert (answer_of(waiting).protocol_type, answer_of(waiting).protocol_name) == ("consumer", "range")
    assert group.state() is GroupState.STABLE
    stored = read_group_value(log.appends[-1][1][0].value or b"")
    assert [(member.member_id, member.assignment) for member in stored.members] == [(leader, b"L"), (follower, b"F")]
    assert stored.leader == leader


async def test_a_member_the_leader_forgot_gets_an_empty_assignment(group: GroupDriver) -> None:
    leader, follower = await joined_pair(group)
    await group.sync(leader, 1, {leader: b"L"})
    assert (await group.sync(follower, 1)).assignment == b""


async def test_an_assignment_that_cannot_be_stored_starts_a_rebalance(
    group: GroupDriver, log: MemoryCoordinatorLog
) -> None:
    leader, follower = await joined_pair(group)
    waiting = await group.start_sync(follower, 1)
    log.fail_with = NotLeaderOrFollower("moved")
    response = await group.sync(leader, 1, {leader: b"L", follower: b"F"})
    assert isinstance(response.error, NotCoordinator)
    assert isinstance(answer_of(waiting).error, NotCoordinator)
    assert group.state() is GroupState.PREPARING_REBALANCE


async def test_an_assignment_that_comes_too_late_is_void(group: GroupDriver, log: MemoryCoordinatorLog) -> None:
    leader, follower = await joined_pair(group)
    third = await group.new_id()
    log.hold()
    leading = await group.start_sync(leader, 1, {leader: b"L", follower: b"F"})
    await group.start_join(member_id=third)
    assert isinstance(answer_of(leading).error, RebalanceInProgress)
    log.release()
    await group.clock.settle()
    assert group.state() is GroupState.PREPARING_REBALANCE


async def test_a_repeated_sync_of_the_leader_is_stored_once(group: GroupDriver, log: MemoryCoordinatorLog) -> None:
    leader, _ = await joined_pair(group)
    written = len(log.appends)
    log.hold()
    lost = await group.start_sync(leader, 1, {leader: b"L"})
    again = await group.start_sync(leader, 1, {leader: b"L"})
    log.release()
    await group.clock.settle()
    assert isinstance(answer_of(lost).error, RebalanceInProgress)
    assert answer_of(again).assignment == b"L"
    assert len(log.appends) == written + 1


async def test_sync_is_refused_with_kafkas_errors(group: GroupDriver) -> None:
    assert isinstance((await group.sync("x", 1)).error, UnknownMemberId)
    assert isinstance((await group.sync("x", 1, group_id="")).error, InvalidGroupId)
    leader, follower = await joined_pair(group)
    assert isinstance((await group.sync("x", 1)).error, UnknownMemberId)
    assert isinstance((await group.sync(leader, 2)).error, IllegalGeneration)
    assert isinstance((await group.sync(leader, 1, protocol_type="connect")).error, InconsistentGroupProtocol)
    assert isinstance((await group.sync(leader, 1, protocol_name="sticky")).error, InconsistentGroupProtocol)
    assert isinstance((await group.sync(leader, 1, group_instance_id="i")).error, UnknownMemberId)
    await group.sync(leader, 1, {leader: b"L", follower: b"F"})
    await group.start_join(member_id=leader)
    assert isinstance((await group.sync(follower, 1)).error, RebalanceInProgress)


async def test_a_stable_group_gives_the_assignment_again(group: GroupDriver) -> None:
    leader, _ = await group.stable({}, {})
    response = await group.sync(leader.member_id, 1)
    assert response.assignment == f"a-{leader.member_id}".encode()


async def test_members_that_never_sync_are_removed(group: GroupDriver) -> None:
    leader, silent = await joined_pair(group)
    await group.sync(leader, 1, {leader: b"L", silent: b"S"})
    for _ in range(REBALANCE_MS // SESSION_MS):
        group.coordinator.heartbeat("g", leader, 1)
        group.coordinator.heartbeat("g", silent, 1)
        await group.clock.advance(SESSION_MS / 1000 - 0.001)
    group.coordinator.heartbeat("g", leader, 1)
    group.coordinator.heartbeat("g", silent, 1)
    await group.clock.advance(1)
    assert group.state() is GroupState.PREPARING_REBALANCE
    with pytest.raises(UnknownMemberId):
        group.coordinator.heartbeat("g", silent, 1)


# Heartbeats and sessions


async def test_a_heartbeat_is_refused_with_kafkas_errors(group: GroupDriver) -> None:
    heartbeat = group.coordinator.heartbeat
    with pytest.raises(UnknownMemberId):
        heartbeat("g", "x", 1)
    with pytest.raises(InvalidGroupId):
        heartbeat("", "x", 1)
    (member,) = await group.stable({})
    heartbeat("g", member.member_id, 1)
    with pytest.raises(UnknownMemberId):
        heartbeat("g", "x", 1)
    with pytest.raises(IllegalGeneration):
        heartbeat("g", member.member_id, 2)
    with pytest.raises(UnknownMemberId):
        heartbeat("g", member.member_id, 1, "no-such-instance")


async def test_heartbeats_are_good_while_the_assignment_is_awaited(group: GroupDriver) -> None:
    leader, _ = await joined_pair(group)
    group.coordinator.heartbeat("g", leader, 1)


async def test_a_member_without_heartbeats_is_removed(group: GroupDriver) -> None:
    alive, silent = await group.stable({}, {})
    await group.clock.advance(SESSION_MS / 1000 - 1)
    group.coordinator.heartbeat("g", alive.member_id, 1)
    await group.clock.advance(1)
    with pytest.raises(UnknownMemberId):
        group.coordinator.heartbeat("g", silent.member_id, 1)
    with pytest.raises(RebalanceInProgress):
        group.coordinator.heartbeat("g", alive.member_id, 1)
    rejoined = await group.join(member_id=alive.member_id)
    assert len(rejoined.members) == 1


async def test_an_offset_commit_keeps_the_session_alive(group: GroupDriver) -> None:
    (member,) = await group.stable({})
    for _ in range(3):
        await group.clock.advance(SESSION_MS / 1000 - 1)
        await group.commit(("orders", 0, 1), member_id=member.member_id, generation_id=1)
    assert group.state() is GroupState.STABLE


async def test_the_group_is_empty_when_the_last_session_ends(group: GroupDriver, log: MemoryCoordinatorLog) -> None:
    await group.stable({})
    await group.clock.advance(SESSION_MS / 1000)
    assert group.state() is GroupState.EMPTY
    stored = read_group_value(log.appends[-1][1][0].value or b"")
    assert (stored.generation, stored.protocol_type, stored.protocol, stored.leader) == (2, "consumer", None, None)


async def test_a_new_member_that_waits_is_forgotten_after_five_minutes(group: GroupDriver) -> None:
    (leader,) = await group.stable({"rebalance_timeout_ms": 1_000_000})
    newcomer = await group.start_join(member_id=await group.new_id(), rebalance_timeout_ms=1_000_000)
    for _ in range(300 // 9):
        await group.clock.advance(9)
        assert not newcomer.done()
        with pytest.raises(RebalanceInProgress):
            group.coordinator.heartbeat("g", leader.member_id, 1)
    await group.clock.advance(4)
    assert isinstance(answer_of(newcomer).error, UnknownMemberId)


# Leaving


async def test_leaving_starts_a_rebalance(group: GroupDriver) -> None:
    leader, follower = await group.stable({}, {})
    assert group.coordinator.leave("g", [LeavingMember(member_id=follower.member_id)]) == [None]
    assert group.state() is GroupState.PREPARING_REBALANCE
    assert len((await group.join(member_id=leader.member_id)).members) == 1


async def test_the_last_to_leave_leaves_an_empty_group(group: GroupDriver) -> None:
    (member,) = await group.stable({})
    group.coordinator.leave("g", [LeavingMember(member_id=member.member_id)])
    await group.clock.settle()
    assert group.state() is GroupState.EMPTY


async def test_leaving_answers_what_the_member_waits_for(group: GroupDriver) -> None:
    leader, follower = await joined_pair(group)
    waiting = await group.start_sync(follower, 1)
    group.coordinator.leave("g", [LeavingMember(member_id=follower)])
    await group.clock.settle()
    assert isinstance(answer_of(waiting).error, UnknownMemberId)
    rejoining = await group.start_join(member_id=leader)
    assert rejoining.done()


async def test_a_leaving_member_lets_a_waiting_rebalance_complete(group: GroupDriver) -> None:
    leader, follower = await group.stable({}, {})
    waiting = await group.start_join(member_id=leader.member_id)
    assert not waiting.done()
    group.coordinator.leave("g", [LeavingMember(member_id=follower.member_id)])
    await group.clock.settle()
    assert len(answer_of(waiting).members) == 1


async def test_an_id_that_has_not_joined_can_leave(group: GroupDriver) -> None:
    member_id = await group.new_id()
    assert group.coordinator.leave("g", [LeavingMember(member_id=member_id)]) == [None]
    assert isinstance((await group.join(member_id=member_id)).error, UnknownMemberId)


async def test_a_pending_id_that_leaves_starts_no_rebalance(group: GroupDriver) -> None:
    await group.stable({})
    member_id = await group.new_id()
    group.coordinator.leave("g", [LeavingMember(member_id=member_id)])
    assert group.state() is GroupState.STABLE


async def test_each_leaving_member_has_its_own_answer(group: GroupDriver) -> None:
    (member,) = await group.stable({"group_instance_id": "i"})
    results = group.coordinator.leave(
        "g",
        [
            LeavingMember(member_id="x"),
            LeavingMember(group_instance_id="nobody"),
            LeavingMember(member_id="x", group_instance_id="i"),
            LeavingMember(group_instance_id="i"),
        ],
    )
    kinds = [None if result is None else type(result) for result in results]
    assert kinds == [UnknownMemberId, UnknownMemberId, FencedInstanceId, None]
    with pytest.raises(UnknownMemberId):
        group.coordinator.heartbeat("g", member.member_id, 1)


async def test_leaving_a_group_that_does_not_exist_is_refused(group: GroupDriver) -> None:
    (result,) = group.coordinator.leave("g", [LeavingMember(member_id="x")])
    assert isinstance(result, UnknownMemberId)
    with pytest.raises(InvalidGroupId):
        group.coordinator.leave("", [LeavingMember(member_id="x")])
