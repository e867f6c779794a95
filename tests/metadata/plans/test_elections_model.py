"""Any order of starts, crashes, fencings, elections and changes of the in-sync set: what is committed is not lost.

A clean election never gives the partition to a replica that may lack committed records. Who has which records is a
model (`tests.metadata.replicating`); the decisions are the planners' own.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from strandline.metadata import ElectionType
from strandline.metadata.plans.membership import BrokerState
from tests.metadata.replicating import NODES, ReplicatedPartition

nodes = st.sampled_from(NODES)


class PartitionOfThreeBrokers(RuleBasedStateMachine):
    """What may happen to one partition, apart from losses."""

    partition: ReplicatedPartition

    # What clients and followers do

    @rule(node=nodes)
    def append(self, node: int) -> None:
        self.partition.append(node)

    @rule(node=nodes, leader=nodes)
    def fetch(self, node: int, leader: int) -> None:
        self.partition.fetch(node, leader)

    @rule()
    def replicate_everywhere(self) -> None:
        for node in NODES:
            self.partition.learn(node)
        leader = self.partition.partition.leader
        if leader in NODES:
            self.partition.append(leader)
            for node in NODES * 3:
                self.partition.fetch(node, leader)

    @rule(node=nodes, is_delivered=st.booleans())
    def join(self, node: int, is_delivered: bool) -> None:
        """A follower catches up, and its leader asks for it. What it asks may arrive later."""
        leader = self.partition.partition.leader
        if leader not in NODES:
            return
        for one in (leader, node):
            self.partition.learn(one)
        for _ in range(3):
            self.partition.fetch(node, leader)
        self.partition.propose(leader, [*self.partition.brokers[leader].view.isr, node])
        if is_delivered and self.partition.proposals:
            self.partition.deliver(len(self.partition.proposals) - 1)

    @rule(node=nodes)
    def flush(self, node: int) -> None:
        self.partition.flush(node)

    # What brokers and the controller tell each other

    @rule(node=nodes)
    def learn(self, node: int) -> None:
        self.partition.learn(node)

    @rule(node=nodes, wanted=st.sets(nodes))
    def propose(self, node: int, wanted: set[int]) -> None:
        self.partition.propose(node, sorted(wanted))

    @precondition(lambda self: self.partition.proposals)
    @rule(back=st.integers(0, 3))
    def deliver(self, back: int) -> None:
        self.partition.deliver(max(0, len(self.partition.proposals) - 1 - back))

    @rule(node=nodes)
    def fence(self, node: int) -> None:
        self.partition.fence(node)

    @rule(node=nodes)
    def unfence(self, node: int) -> None:
        if self.partition.is_current(node):
            self.partition.unfence(node)

    @rule(node=nodes)
    def shut_down(self, node: int) -> None:
        if not self.partition.image.brokers[node].fenced:
            self.partition.change(node, BrokerState.CONTROLLED_SHUTDOWN)

    # What happens to processes and machines

    @rule(node=nodes)
    def kill_the_process(self, node: int) -> None:
        self.partition.stop(node)

    @rule(node=nodes)
    def start(self, node: int) -> None:
        if not self.partition.brokers[node].is_running:
            self.partition.start(node)

    @rule(node=nodes)
    def kill_and_start(self, node: int) -> None:
        self.partition.stop(node)
        self.partition.start(node)
        self.partition.unfence(node)

    @rule(node=nodes)
    def name_the_directory(self, node: int) -> None:
        self.partition.name_directory(node)

    @rule(node=nodes)
    def tell_of_the_failure(self, node: int) -> None:
        self.partition.tell_of_failure(node)

    # What administrators do

    @rule()
    def elect_preferred(self) -> None:
        self.partition.balance()

    @rule()
    def elect_preferred_on_request(self) -> None:
        self.partition.elect(ElectionType.PREFERRED)

    @rule()
    def grow(self) -> None:
        self.partition.grow()

    @invariant()
    def the_image_is_sound(self) -> None:
        self.partition.assert_sound()


class AnythingIsLost(PartitionOfThreeBrokers):
    """Machines crash, disks are wiped, operators give records up: a clean election still loses nothing."""

    @initialize(replicas=st.permutations(NODES), count=st.sampled_from([3, 3, 2]), min_isr=st.sampled_from([2, 2, 1]))
    def begin(self, replicas: list[int], count: int, min_isr: int) -> None:
        self.partition = ReplicatedPartition(tuple(replicas[:count]), min_isr)

    @rule(node=nodes, lost=st.integers(0, 3))
    def crash_the_machine(self, node: int, lost: int) -> None:
        self.partition.stop(node, lost=lost, is_machine=True)

    @rule(node=nodes)
    def wipe(self, node: int) -> None:
        self.partition.stop(node, is_wiped=True)

    @rule(node=nodes, lost=st.integers(0, 3))
    def fail_the_directory(self, node: int, lost: int) -> None:
        self.partition.fail_directory(node, lost=lost)

    @rule(node=nodes, is_replaced=st.booleans())
    def bring_the_directory_back(self, node: int, is_replaced: bool) -> None:
        self.partition.stop(node)
        self.partition.bring_back(node, is_replaced=is_replaced)

    @rule(value=st.integers(1, 3))
    def change_min_isr(self, value: int) -> None:
        self.partition.set_min_isr(value)

    @rule()
    def elect_uncleanly(self) -> None:
        self.partition.elect(ElectionType.UNCLEAN)


class OneBrokerIsWiped(PartitionOfThreeBrokers):
    """With three replicas, and two in sync for a commit, one broker may lose its disk: no election is unclean."""

    @initialize()
    def begin(self) -> None:
        self.partition = ReplicatedPartition(NODES, 2)

    @rule(lost=st.integers(0, 3))
    def crash_the_machine(self, lost: int) -> None:
        self.partition.stop(NODES[0], lost=lost, is_machine=True)

    @rule()
    def wipe(self) -> None:
        self.partition.stop(NODES[0], is_wiped=True)

    @rule(lost=st.integers(0, 3))
    def fail_the_directory(self, lost: int) -> None:
        self.partition.fail_directory(NODES[0], lost=lost)

    @rule(is_replaced=st.booleans())
    def bring_the_directory_back(self, is_replaced: bool) -> None:
        self.partition.stop(NODES[0])
        self.partition.bring_back(NODES[0], is_replaced=is_replaced)

    @rule(value=st.integers(2, 3))
    def change_min_isr(self, value: int) -> None:
        self.partition.set_min_isr(value)

    @invariant()
    def no_election_was_unclean(self) -> None:
        assert self.partition.unclean == 0


AnythingIsLost.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
OneBrokerIsWiped.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestAnythingIsLost = AnythingIsLost.TestCase
TestOneBrokerIsWiped = OneBrokerIsWiped.TestCase
