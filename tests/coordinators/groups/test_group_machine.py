"""A classic group under random requests, random time and a log that may refuse: what must hold in every case.

Members come and go, wait and time out in any order. Whatever happens, each waiting request has exactly one answer in
the end, no member is in two places, progress never depends on luck, and the log tells the same story
as memory.
"""

from __future__ import annotations

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from strandline.clock import SystemChance
from tests.coordinators.groups.group_world import INSTANCES, PROTOCOLS, Client, GroupWorld

ACTIONS = (  # some twice: they should happen more often
    "join",
    "join",
    "sync",
    "sync",
    "heartbeat",
    "commit",
    "leave",
    "change subscription",
    "lose memory",
    "vanish",
)
# What undoes everything happens seldom, else nothing ever gets far.
UPHEAVALS = (*["nothing"] * 8, "delete group", "create topic again", "sweep", "restart")
TIMES = (0.0, 0.5, 3.0, 9.0, 31.0)
TIMEOUTS_MS = (5_000, 30_000)
CLIENTS = st.builds(
    Client,
    instance_id=st.none() | st.sampled_from(INSTANCES),
    protocols=st.sampled_from(PROTOCOLS),
    rebalance_timeout_ms=st.sampled_from(TIMEOUTS_MS),
)


class GroupMachine(RuleBasedStateMachine):
    """Short stories, which Hypothesis makes shorter still when one of them goes wrong."""

    world: GroupWorld | None = None

    @initialize(
        delay=st.sampled_from([0, 3000]),
        max_size=st.sampled_from([3, 1000]),
        clients=st.lists(CLIENTS, min_size=2, max_size=4),
    )
    def start(self, delay: int, max_size: int, clients: list[Client]) -> None:
        self.world = GroupWorld(delay, max_size, clients)

    @property
    def the(self) -> GroupWorld:
        assert self.world is not None
        return self.world

    @rule(client=CLIENTS)
    def appear(self, client: Client) -> None:
        self.the.appear(client)

    @rule(who=st.integers(0, 5), what=st.sampled_from(ACTIONS), number=st.integers(0, 7))
    def act(self, who: int, what: str, number: int) -> None:
        """One rule for all that a client does: Hypothesis leaves out rules at random, and no run should lack any."""
        self.the.act(who, what, number)

    @rule()
    def everyone_joins(self) -> None:
        self.the.everyone_joins()

    @rule(accept=st.sampled_from([True, True, True, False, None]))
    def everyone_syncs(self, accept: bool | None) -> None:
        self.the.everyone_syncs(accept)

    @rule(partition=st.integers(0, 3))
    def commit_without_membership(self, partition: int) -> None:
        self.the.commit_without_membership(partition)

    @rule(what=st.sampled_from(UPHEAVALS))
    def upheaval(self, what: str) -> None:
        self.the.upheaval(what)

    @rule(accept=st.sampled_from([True] * 7 + [False]))
    def finish_write(self, accept: bool) -> None:
        self.the.finish_write(accept)

    @rule(seconds=st.sampled_from(TIMES))
    def pass_time(self, seconds: float) -> None:
        self.the.let_time_pass(seconds)

    @invariant()
    def all_holds(self) -> None:
        if self.world is not None:
            self.world.check()

    def teardown(self) -> None:
        if self.world is not None:
            self.world.end()


TestGroupMachine = GroupMachine.TestCase
TestGroupMachine.settings = hypothesis_settings(stateful_step_count=50)


@pytest.mark.parametrize("seed", range(40))
def test_long_stories(seed: int) -> None:
    """Hundreds of steps, which get into corners that short stories seldom reach."""
    chance = SystemChance(seed)
    may_fail = seed % 2 == 1

    def new_client() -> Client:
        instance = (None, None, *INSTANCES)[chance.below(5)]
        return Client(instance, PROTOCOLS[chance.below(len(PROTOCOLS))], TIMEOUTS_MS[chance.below(2)])

    world = GroupWorld((0, 3000)[chance.below(2)], (3, 1000)[chance.below(2)], [new_client(), new_client()])
    for _ in range(400):
        match chance.below(20):
            case 0:
                world.appear(new_client())
            case 1 | 2:
                world.everyone_joins()
            case 3 | 4:
                world.everyone_syncs((True, True, None, None, not may_fail)[chance.below(5)])
            case 5:
                world.commit_without_membership(chance.below(4))
            case 6:
                world.upheaval(UPHEAVALS[chance.below(len(UPHEAVALS))])
            case 7 | 8 | 9:
                world.finish_write(not may_fail or chance.below(8) > 0)
            case 10 | 11:
                world.let_time_pass(TIMES[chance.below(len(TIMES))])
            case _:
                world.act(chance.below(6), ACTIONS[chance.below(len(ACTIONS))], chance.below(8))
        world.check()
    world.end()
