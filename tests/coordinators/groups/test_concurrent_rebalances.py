"""Many members at the same time: in other brokers, under load, a second member got UNKNOWN_MEMBER_ID, and SyncGroup
answered without an assignment."""

from __future__ import annotations

import asyncio

from strandline.coordinators.groups import GroupCoordinator, GroupState, JoinResponse, SyncRequest, SyncResponse
from strandline.errors import IllegalGeneration, RebalanceInProgress, StrandlineError
from tests.coordinators.groups.members import GroupDriver, join_request


class Client:
    """Does what the protocol tells it to do, at its own pace, until told to stop."""

    def __init__(self, group: GroupDriver, pace: int) -> None:
        self._coordinator: GroupCoordinator = group.coordinator
        self._clock, self._pace = group.clock, pace
        self.member_id = ""
        self.joined = JoinResponse()

    async def run(self, stop: asyncio.Event) -> None:
        self.member_id = (await self._coordinator.join(join_request())).member_id
        while not stop.is_set():
            await self.rebalance()
            while not stop.is_set() and self.is_current():
                await self._clock.sleep(0)

    def is_current(self) -> bool:
        try:
            self._coordinator.heartbeat("g", self.member_id, self.joined.generation_id)
        except RebalanceInProgress:
            return False
        return True

    async def rebalance(self) -> None:
        while True:
            self.joined = await self._coordinator.join(join_request(member_id=self.member_id))
            assert self.joined.error is None, self.joined.error
            for _ in range(self._pace):
                await self._clock.sleep(0)
            synced = await self.sync()
            if synced.error is None:
                assert synced.assignment == f"{self.joined.generation_id}:{self.member_id}".encode()
                return
            assert isinstance(synced.error, RebalanceInProgress | IllegalGeneration), synced.error

    async def sync(self) -> SyncResponse:
        generation = self.joined.generation_id
        members = [member.member_id for member in self.joined.members]
        assignments = {member_id: f"{generation}:{member_id}".encode() for member_id in members}
        return await self._coordinator.sync(
            SyncRequest(group_id="g", member_id=self.member_id, generation_id=generation, assignments=assignments)
        )


async def test_members_that_join_all_the_time_are_never_unknown_or_without_assignment(group: GroupDriver) -> None:
    stop = asyncio.Event()
    clients = [Client(group, pace) for pace in (0, 1, 3, 7, 0, 2, 11, 5, 0, 1) * 4]
    async with asyncio.TaskGroup() as tasks:
        for client in clients:
            tasks.create_task(client.run(stop))
            await group.clock.settle()
        while group.state() is not GroupState.STABLE:
            await group.clock.settle()
        stop.set()
    described = group.coordinator.describe_group("g")
    assert {member.member_id for member in described.members} == {client.member_id for client in clients}
    generation = {client.joined.generation_id for client in clients}
    assert len(generation) == 1
    assert all(member.assignment.endswith(member.member_id.encode()) for member in described.members)


async def test_commits_beside_rebalances_are_taken_or_refused_for_a_reason(group: GroupDriver) -> None:
    leader, follower = await group.stable({}, {})
    refused: list[StrandlineError] = []
    for at in range(30):
        if at % 10 == 5:
            await group.start_join(member_id=leader.member_id)
        try:
            await group.commit(("orders", 0, at), member_id=follower.member_id, generation_id=1)
        except StrandlineError as error:
            refused.append(error)
        if at == 25:
            await group.start_join(member_id=follower.member_id)
    assert {type(error) for error in refused} == {IllegalGeneration}
    (answer, *_) = await group.coordinator.fetch("g", None)
    assert answer.offset == 25
