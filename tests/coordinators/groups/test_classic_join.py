"""JoinGroup: member ids, protocols, sizes, delays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.config.groups import GroupSettings
from strandline.coordinators.groups import GroupState, MemberProtocol
from strandline.coordinators.groups.schemas import read_group_value
from strandline.errors import (
    CoordinatorNotAvailable,
    GroupMaxSizeReached,
    InconsistentGroupProtocol,
    InvalidGroupId,
    InvalidRequest,
    InvalidSessionTimeout,
    MemberIdRequired,
    NotEnoughReplicas,
    RebalanceInProgress,
    UnknownMemberId,
)
from tests.coordinators.groups.members import RANGE, SESSION_MS, GroupDriver, answer_of, subscription
from tests.coordinators.runtime.memory_log import MemoryCoordinatorLog


async def test_a_dynamic_member_is_given_an_id_first(group: GroupDriver) -> None:
    response = await group.join()
    assert isinstance(response.error, MemberIdRequired)
    assert response.member_id == "client-00000000-0000-0000-0000-000000000001"
    assert response.generation_id == -1
    assert group.state() is GroupState.EMPTY


async def test_an_old_client_joins_without_asking_for_an_id(group: GroupDriver) -> None:
    response = await group.join(requires_member_id=False)
    assert response.error is None
    assert response.generation_id == 1
    assert response.leader == response.member_id
    assert [member.metadata for member in response.members] == [RANGE.metadata]
    assert (response.protocol_type, response.protocol_name) == ("consumer", "range")


async def test_creating_a_group_is_written_as_kafka_writes_it(group: GroupDriver, log: MemoryCoordinatorLog) -> None:
    await group.join()
    ((_, records),) = log.appends
    value = read_group_value(records[0].value or b"")
    assert (value.protocol_type, value.generation, value.protocol, value.leader) == ("", 0, None, None)
    assert value.members == ()


async def test_a_group_that_cannot_be_stored_is_not_created(group: GroupDriver, log: MemoryCoordinatorLog) -> None:
    log.fail_with = NotEnoughReplicas("no replicas")
    response = await group.join(requires_member_id=False)
    assert isinstance(response.error, CoordinatorNotAvailable)
    assert await group.coordinator.list_groups() == []


async def test_a_member_id_that_was_not_given_out_is_refused(group: GroupDriver) -> None:
    assert isinstance((await group.join(member_id="made-up")).error, UnknownMemberId)
    await group.stable({})
    assert isinstance((await group.join(member_id="made-up")).error, UnknownMemberId)


async def test_a_member_id_that_is_not_used_is_forgotten(group: GroupDriver) -> None:
    member_id = await group.new_id()
    await group.clock.advance(SESSION_MS / 1000 + 1)
    assert isinstance((await group.join(member_id=member_id)).error, UnknownMemberId)


@pytest.mark.parametrize("timeout_ms", [5_999, 1_800_001, 0, -1])
async def test_the_session_timeout_has_limits(group: GroupDriver, timeout_ms: int) -> None:
    assert isinstance((await group.join(session_timeout_ms=timeout_ms)).error, InvalidSessionTimeout)


async def test_a_group_needs_a_name(group: GroupDriver) -> None:
    assert isinstance((await group.join(group_id="")).error, InvalidGroupId)


@pytest.mark.parametrize(
    "changes",
    [{"protocol_type": "", "protocols": (RANGE,)}, {"protocols": ()}],
)
async def test_a_refused_join_leaves_no_group_behind(group: GroupDriver, changes: dict[str, object]) -> None:
    assert isinstance((await group.join(**changes)).error, InconsistentGroupProtocol)
    assert await group.coordinator.list_groups() == []


async def test_members_need_a_common_protocol(group: GroupDriver) -> None:
    await group.stable({})
    other = (MemberProtocol(name="sticky", metadata=b""),)
    assert isinstance((await group.join(protocols=other)).error, InconsistentGroupProtocol)
    assert isinstance((await group.join(protocol_type="connect")).error, InconsistentGroupProtocol)


async def test_the_protocol_most_members_prefer_is_chosen(group: GroupDriver) -> None:
    sticky = MemberProtocol(name="sticky", metadata=subscription("orders"))
    joined = await group.stable(
        {"protocols": (RANGE, sticky)}, {"protocols": (sticky, RANGE)}, {"protocols": (sticky, RANGE)}
    )
    assert {response.protocol_name for response in joined} == {"sticky"}


async def test_a_rebalance_waits_for_all_members(group: GroupDriver) -> None:
    (first,) = await group.stable({})
    second = await group.start_join(member_id=await group.new_id())
    assert not second.done()
    assert group.state() is GroupState.PREPARING_REBALANCE
    with pytest.raises(RebalanceInProgress):
        group.coordinator.heartbeat("g", first.member_id, 1)
    rejoined = await group.join(member_id=first.member_id)
    assert rejoined.generation_id == answer_of(second).generation_id == 2
    assert len(rejoined.members) == 2
    assert answer_of(second).members == ()
    assert answer_of(second).leader == first.member_id


async def test_members_that_do_not_rejoin_in_time_are_out(group: GroupDriver) -> None:
    first, _silent = await group.stable({}, {})
    rejoined = await group.start_join(member_id=first.member_id)
    for _ in range(6):  # the silent member's session stays alive with heartbeats
        await group.clock.advance(9)
        with pytest.raises(RebalanceInProgress):
            group.coordinator.heartbeat("g", _silent.member_id, 1)
    assert not rejoined.done()
    await group.clock.advance(7)
    assert len(answer_of(rejoined).members) == 1


async def test_a_follower_that_rejoins_unchanged_gets_the_same_generation(group: GroupDriver) -> None:
    _, follower = await group.stable({}, {})
    again = await group.join(member_id=follower.member_id)
    assert again.generation_id == 1
    assert again.members == ()
    assert group.state() is GroupState.STABLE


async def test_a_follower_with_new_metadata_starts_a_rebalance(group: GroupDriver) -> None:
    _, follower = await group.stable({}, {})
    changed = (MemberProtocol(name="range", metadata=subscription("payments")),)
    await group.start_join(member_id=follower.member_id, protocols=changed)
    assert group.state() is GroupState.PREPARING_REBALANCE


async def test_the_leader_may_ask_for_a_rebalance(group: GroupDriver) -> None:
    leader, _ = await group.stable({}, {})
    await group.start_join(member_id=leader.member_id)
    assert group.state() is GroupState.PREPARING_REBALANCE


async def test_a_lost_join_answer_is_given_again(group: GroupDriver) -> None:
    first = await group.join(requires_member_id=False)
    again = await group.join(member_id=first.member_id)
    assert again == first
    assert group.state() is GroupState.COMPLETING_REBALANCE


async def test_a_repeated_join_answers_the_one_it_replaces(group: GroupDriver) -> None:
    first, _second = await group.stable({}, {})
    lost = await group.start_join(member_id=first.member_id)
    await group.start_join(member_id=first.member_id)
    assert isinstance(answer_of(lost).error, RebalanceInProgress)


class TestGroupMaxSize:
    @pytest.fixture
    def settings(self) -> GroupSettings:
        return replace(GroupSettings(), group_initial_rebalance_delay_ms=0, group_max_size=2)

    async def test_a_full_group_takes_no_more(self, group: GroupDriver) -> None:
        await group.stable({}, {})
        assert isinstance((await group.join()).error, GroupMaxSizeReached)
        assert group.state() is GroupState.STABLE

    async def test_members_that_wait_are_counted_while_rebalancing(self, group: GroupDriver) -> None:
        ids = [await group.new_id() for _ in range(3)]
        waiting = await group.join_together(*({"member_id": member_id} for member_id in ids))
        refused = [task for task in waiting if task.done() and isinstance(task.result().error, GroupMaxSizeReached)]
        assert len(refused) == 1


class TestInitialDelay:
    @pytest.fixture
    def settings(self) -> GroupSettings:
        return replace(GroupSettings(), group_initial_rebalance_delay_ms=3000)

    async def test_an_empty_group_waits_for_more_members(self, group: GroupDriver) -> None:
        first = await group.start_join(member_id=await group.new_id())
        await group.clock.advance(2)
        second = await group.start_join(member_id=await group.new_id())
        await group.clock.advance(2)
        assert not first.done()  # the second member has extended the wait
        await group.clock.advance(2)
        assert answer_of(first).generation_id == answer_of(second).generation_id == 1

    async def test_the_wait_ends_with_the_rebalance_timeout(self, group: GroupDriver) -> None:
        first = await group.start_join(member_id=await group.new_id(), rebalance_timeout_ms=7000)
        for _ in range(7):
            assert not first.done()
            await group.start_join(member_id=await group.new_id(), rebalance_timeout_ms=7000)
            await group.clock.advance(1)
        await group.clock.advance(3)
        assert first.done()

    async def test_an_id_given_out_does_not_hold_up_the_first_rebalance(self, group: GroupDriver) -> None:
        first = await group.start_join(member_id=await group.new_id())
        await group.new_id()
        await group.clock.advance(3)
        assert first.done()


@pytest.mark.parametrize("field", ["group_id", "group_instance_id", "protocol_type", "client_id"])
async def test_texts_that_no_record_can_hold_are_refused(group: GroupDriver, field: str) -> None:
    assert isinstance((await group.join(**{field: "é" * 20_000})).error, InvalidRequest)
    protocols = (MemberProtocol(name="x" * 40_000, metadata=b""),)
    assert isinstance((await group.join(protocols=protocols)).error, InvalidRequest)
    assert await group.coordinator.list_groups() == []
