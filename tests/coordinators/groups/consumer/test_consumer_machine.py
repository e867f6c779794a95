"""Consumer groups under random requests, random time and a log that may refuse, and what must hold in every case.

The clients are as careless as real ones: they lose answers, come back late, change their minds, vanish, and speak
either protocol. What they own is what they were told, minus what they gave up.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from strandline.coordinators.groups import HeartbeatRequest, HeartbeatResponse, JoinResponse, MemberProtocol
from strandline.coordinators.groups.consumer.embedded import read_embedded_assignment
from strandline.coordinators.groups.consumer.group import ConsumerGroup
from strandline.coordinators.groups.modern.partitions import pairs
from strandline.errors import FencedMemberEpoch, IllegalGeneration, StrandlineError
from tests.coordinators.groups.consumer.consumer_world import state_of
from tests.coordinators.groups.consumer.model_consumer import Consumer
from tests.coordinators.groups.consumer.shard_world import Answers, ShardWorld
from tests.coordinators.groups.consumer.whole_decisions import steady_members
from tests.coordinators.groups.members import join_request, subscription

TOPICS = (("orders",), ("payments",), ("orders", "payments"), ("orders", "later"))
LUCK = ("good", "good", "good", "good", "lost", "slow", "refused")
EXPRESSIONS = ("", "orders", ".*s", "pay.*")


class ConsumerGroupMachine(RuleBasedStateMachine):
    @initialize(interval=st.sampled_from([0, 1000]), static=st.integers(0, 2))
    def start(self, interval: int, static: int) -> None:
        self.world = ShardWorld(group_consumer_assignment_interval_ms=interval)
        self.clients = [Consumer(name=f"c{at}", is_static=at < static) for at in range(4)]
        self.epochs: dict[str, int] = {}
        self.last_group: object = None
        self.last_epoch = 0
        self.may_differ = False

    # What clients do

    def client(self, at: int) -> Consumer:
        client = self.clients[at]
        self.hear(client)
        return client

    def hear(self, client: Consumer) -> None:
        """Read an answer that has come."""
        if client.waiting is None or not client.waiting.given:
            return
        answer = client.waiting.only
        client.waiting = None
        if isinstance(answer, HeartbeatResponse):
            if answer.error is None:
                client.epoch = answer.member_epoch
                if answer.assignment is not None:
                    client.told = answer.assignment
        elif isinstance(answer, JoinResponse):
            client.classic_id = answer.member_id or client.classic_id
            client.epoch = answer.generation_id if answer.error is None else -1

    @rule(at=st.integers(0, 3), full=st.booleans(), luck=st.sampled_from(LUCK))
    def beat(self, at: int, full: bool, luck: str) -> None:
        """`luck` says what becomes of the answer and of what is to be written."""
        client = self.client(at)
        if client.is_classic:
            self.beat_classic(client)
        elif client.waiting is None:
            self.beat_consumer(client, full=full, loses_answer=luck == "lost")
        if luck == "refused":
            self.may_differ |= bool(self.world.log.waiting)
            self.world.settle(accept=False)
        elif luck != "slow":
            self.world.settle()
        self.hear(client)

    @rule(times=st.integers(1, 3), at=st.integers(0, 3))
    def everyone_beats(self, times: int, at: int) -> None:
        """All but one, who is late."""
        for _ in range(times):
            for other in range(len(self.clients)):
                if other != at:
                    self.beat(other, False, "good")
                    self.sync(other)

    def beat_consumer(self, client: Consumer, *, full: bool, loses_answer: bool) -> None:
        self.take(client)
        is_joining = client.epoch <= 0
        request = HeartbeatRequest(
            group_id="g",
            member_id=client.member_id,
            member_epoch=max(client.epoch, 0),
            instance_id=client.instance_id,
            rebalance_timeout_ms=20_000 if is_joining or full else -1,
            topics=client.topics if is_joining or full else None,
            regex=client.regex if is_joining or full else None,
            owned={} if is_joining else client.owned,
        )
        try:
            answers = self.world.send(request)
        except StrandlineError:
            client.forget()  # fenced or unknown: it gives up what it has, and joins again
            if client.instance_id is None:
                client.incarnation += 1
        else:
            client.waiting = None if loses_answer else answers

    def take(self, client: Consumer) -> None:
        """Give up what the client is not told to own, and take what it is."""
        if client.told is not None:
            client.owned, client.told = client.told, None

    def beat_classic(self, client: Consumer) -> None:
        if client.waiting is not None:
            return
        try:
            self.world.shard.memberships.heartbeat("g", client.classic_id, client.epoch, client.instance_id)
        except StrandlineError:
            client.owned = {}  # eager: everything is given up before it joins again
            self.join_classic(client)

    def join_classic(self, client: Consumer) -> None:
        answers = Answers()
        protocol = MemberProtocol(name="range", metadata=subscription(*client.topics))
        self.world.shard.memberships.join(
            join_request(
                member_id=client.classic_id,
                group_instance_id=client.instance_id,
                protocols=(protocol,),
                requires_member_id=False,
                rebalance_timeout_ms=20_000,
            ),
            answers,
        )
        client.waiting = answers
        self.hear(client)

    @rule(at=st.integers(0, 3))
    def sync(self, at: int) -> None:
        client = self.client(at)
        group = self.world.shard.groups.get("g")
        if not client.is_classic or client.waiting is not None or not isinstance(group, ConsumerGroup):
            return
        if client.owned:
            return
        try:
            answer = self.world.classic_sync_now(client.classic_id, client.epoch, client.instance_id)
        except StrandlineError:
            return
        if answer is not None:
            topics = self.world.topics.image.topics
            found = read_embedded_assignment(answer).partitions
            client.owned = {topics[name].topic_id: numbers for name, numbers in found.items() if name in topics}

    @rule(at=st.integers(0, 3), for_a_while=st.booleans())
    def leave(self, at: int, for_a_while: bool) -> None:
        client = self.client(at)
        if client.is_classic or client.epoch <= 0 or client.waiting is not None:
            return
        epoch = -2 if for_a_while and client.is_static else -1
        request = HeartbeatRequest(
            group_id="g", member_id=client.member_id, member_epoch=epoch, instance_id=client.instance_id
        )
        with suppress(StrandlineError):
            self.world.send(request)
        client.forget()
        client.incarnation += 1

    @rule(at=st.integers(0, 3), topics=st.sampled_from(TOPICS), regex=st.sampled_from(EXPRESSIONS))
    def change_mind(self, at: int, topics: tuple[str, ...], regex: str) -> None:
        self.client(at).topics, self.client(at).regex = topics, regex

    @rule(at=st.integers(0, 3), distance=st.sampled_from([-3, -2, -1, 1, 2]), says_all=st.booleans())
    def beat_with_a_wrong_epoch(self, at: int, distance: int, says_all: bool) -> None:
        """A member that is ahead or behind is fenced, and the group stays as it was."""
        client, group = self.client(at), self.world.shard.groups.get("g")
        if not isinstance(group, ConsumerGroup):
            return
        member = group.members.get(client.classic_id if client.is_classic else client.member_id)
        if member is None or (wrong := member.epoch + distance) <= 0 or wrong == member.previous_epoch:
            return
        before, waiting = state_of(group), len(self.world.log.waiting)
        if member.is_classic:
            with pytest.raises(IllegalGeneration):
                self.world.shard.memberships.heartbeat("g", member.member_id, wrong, member.instance_id)
        else:
            request = HeartbeatRequest(
                group_id="g",
                member_id=member.member_id,
                member_epoch=wrong,
                instance_id=member.instance_id,
                topics=("later",) if says_all else None,
                owned={} if says_all else None,
            )
            with pytest.raises(FencedMemberEpoch):
                self.world.send(request)
        assert state_of(group) == before
        assert len(self.world.log.waiting) == waiting

    @rule(at=st.integers(0, 3))
    def crash(self, at: int) -> None:
        client = self.client(at)
        client.forget()
        client.incarnation += 1

    @rule(at=st.integers(0, 3))
    def change_protocol(self, at: int) -> None:
        client = self.client(at)
        client.forget()
        client.incarnation += 1
        client.is_classic = not client.is_classic

    # What happens to the broker

    @rule(seconds=st.sampled_from([0.1, 1.0, 5.0, 25.0, 50.0]))
    def pass_time(self, seconds: float) -> None:
        self.world.let_time_pass(seconds)

    @rule(accept=st.booleans())
    def finish_write(self, accept: bool) -> None:
        if self.world.log.waiting:
            self.may_differ |= not accept
            self.world.log.finish_one(accept=accept)

    @rule()
    def finish_all(self) -> None:
        self.world.settle()

    @rule(count=st.integers(5, 7))
    def enlarge(self, count: int) -> None:
        if len(self.world.topics.image.topics["orders"].partitions) < count:
            self.world.topics.enlarge("orders", count)

    @rule()
    def create(self) -> None:
        if "later" not in self.world.topics.image.topics:
            self.world.topics.create("later", 2)

    @rule(name=st.sampled_from(["payments", "later"]))
    def delete(self, name: str) -> None:
        """A topic that is created again has another id."""
        if name in self.world.topics.image.topics:
            self.world.topics.delete(name)
        elif name == "payments":
            self.world.topics.create(name, 2)

    @rule()
    def restart(self) -> None:
        """The log has everything: its successor knows what this broker knew."""
        if self.may_differ:
            self.world.let_time_pass(3)  # long enough for what was refused to be written
            self.may_differ = False
        self.world.settle()
        self.log_and_memory_agree()
        self.begin_anew()

    @rule()
    def die(self) -> None:
        """What was not in the log is lost, and clients do not know it."""
        self.may_differ = False
        self.begin_anew()

    @rule(at=st.integers(0, 3), refused=st.integers(0, 2), comes_back=st.booleans())
    def die_while_partitions_move(self, at: int, refused: int, comes_back: bool = False) -> None:
        """A member leaves, and the others have got its partitions when the broker dies with a gap in its log."""
        self.everyone_beats(2, -1)
        self.leave(at, False)
        for other in range(len(self.clients)):
            if other != at:
                self.beat(other, False, "slow")
        self.die_between_two_writes(refused, at if comes_back else None)

    @rule(refused=st.integers(0, 2), next_one=st.none() | st.integers(0, 3))
    def die_between_two_writes(self, refused: int, next_one: int | None = None) -> None:
        """The log refused one write and took those behind it, and the broker has no time to write it again.

        Or it has just begun to: somebody was heard of while the others were on their way.
        """
        for at in range(len(self.world.log.waiting)):
            self.world.log.finish_one(accept=at != refused)
            if at == refused and next_one is not None:
                self.beat(next_one, False, "slow")
        self.die()

    def begin_anew(self) -> None:
        """Answers that the broker gave arrive; those that it still owed do not."""
        for client in self.clients:
            self.hear(client)
            client.waiting = None
        self.world.restart()
        self.last_group = None

    def log_and_memory_agree(self) -> None:
        group, again = self.world.shard.groups.get("g"), self.world.replayed().groups.get("g")
        if isinstance(group, ConsumerGroup):
            assert isinstance(again, ConsumerGroup)
            assert state_of(again) == state_of(group)

    # What must hold

    @invariant()
    def nobody_is_told_to_own_what_another_owns(self) -> None:
        group = self.world.shard.groups.get("g")
        if not isinstance(group, ConsumerGroup):
            return
        owners: Counter[tuple[UUID, int]] = Counter()
        for member in group.members.values():
            owners.update(pairs(member.assigned))
            owners.update(pairs(member.pending_revocation))
        assert all(count == 1 for count in owners.values()), owners
        if group.epoch == group.target_epoch:  # else it is computed again: a gap in the log may have left half of it
            targets = Counter(pair for partitions in group.targets.values() for pair in pairs(partitions))
            assert all(count == 1 for count in targets.values())

    @invariant()
    def members_own_what_the_group_thinks_they_own(self) -> None:
        """So two members never read the same partition, since nobody is told to own what another owns."""
        group = self.world.shard.groups.get("g")
        if not isinstance(group, ConsumerGroup):
            return
        for client in self.clients:
            member_id = client.classic_id if client.is_classic else client.member_id
            member = group.members.get(member_id)
            if member is not None and client.epoch in (member.epoch, member.previous_epoch) and client.epoch > 0:
                held = {*pairs(member.assigned), *pairs(member.pending_revocation)}
                assert set(pairs(client.owned)) <= held, (client, member)

    @invariant()
    def epochs_only_rise(self) -> None:
        group = self.world.shard.groups.get("g")
        if isinstance(group, ConsumerGroup):
            assert group.target_epoch <= group.epoch
            for member in group.members.values():
                assert member.epoch <= group.target_epoch or member.epoch < group.epoch
            if group is self.last_group:
                assert group.epoch >= self.last_epoch
            self.last_group, self.last_epoch = group, group.epoch

    @invariant()
    def every_member_has_a_session(self) -> None:
        group = self.world.shard.groups.get("g")
        if isinstance(group, ConsumerGroup):
            assert set(group.targets) <= set(group.members)
            assert len(self.world.timers) >= len(group.members)
            assert len(self.world.timers) <= 4 * len(group.members) + 2

    @invariant()
    def steady_members_hear_what_a_decision_would_tell_them(self) -> None:
        group = self.world.shard.groups.get("g")
        if isinstance(group, ConsumerGroup):
            steady_members(group, self.world.shard.consumer.around("g"))

    def teardown(self) -> None:
        """When everybody behaves, everything is assigned, and the log has the state that the group has."""
        if not hasattr(self, "world"):
            return
        self.world.settle()
        self.world.let_time_pass(3)
        for client in self.clients:
            if client.is_classic:
                client.forget()
        self.world.let_time_pass(12)  # the sessions of classic members end; those of the others go on
        self.clients = [client for client in self.clients if not client.is_classic]
        for _ in range(30):
            for at, client in enumerate(self.clients):
                self.beat(at, True, "good")
                self.world.settle()
                self.hear(client)
            self.world.let_time_pass(6)
        group = self.world.shard.groups.get("g")
        if not self.clients:
            return
        assert isinstance(group, ConsumerGroup)
        assert group.state.value == "Stable"
        image = self.world.topics.image
        wanted = {
            (image.topics[name].topic_id, number)
            for name in group.topics()
            if name in image.topics
            for number in range(len(image.topics[name].partitions))
        }
        owned = Counter(pair for client in self.clients for pair in pairs(client.told or client.owned))
        assert owned == dict.fromkeys(wanted, 1)
        steady = steady_members(group, self.world.shard.consumer.around("g"))
        assert steady == (set() if group.has_expressions else set(group.members))
        self.log_and_memory_agree()


ConsumerGroupMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestConsumerGroups = ConsumerGroupMachine.TestCase
