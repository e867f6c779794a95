"""A classic group under random requests, random time and a log that may refuse, and what must hold in every case."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from strandline.config.groups import GroupSettings
from strandline.coordinators.groups import (
    CommitRequest,
    GroupState,
    JoinResponse,
    LeavingMember,
    MemberProtocol,
    PartitionCommit,
    SyncRequest,
)
from strandline.coordinators.groups.classic_group import ClassicGroup
from strandline.coordinators.groups.incarnations import TopicIncarnations
from strandline.coordinators.groups.shard import GroupShard
from strandline.errors import StrandlineError
from tests.coordinators.groups.conftest import CountedIds
from tests.coordinators.groups.immediate_matcher import ImmediateMatcher
from tests.coordinators.groups.known_topics import KnownTopics
from tests.coordinators.groups.members import join_request, subscription
from tests.coordinators.groups.timed_shard import Call, TimedShard
from tests.coordinators.steps import take_all

INSTANCES = ("i-0", "i-1", "i-2")
PROTOCOLS = tuple(
    tuple(MemberProtocol(name=name, metadata=subscription(topic)) for name in names)
    for names in (("range", "sticky"), ("sticky", "range"), ("range",))
    for topic in ("orders", "payments")
)


@dataclass(eq=False)
class Client:
    """What one client knows about itself."""

    instance_id: str | None
    protocols: tuple[MemberProtocol, ...]
    rebalance_timeout_ms: int
    member_id: str = ""
    generation: int = -1
    join: Call | None = None
    sync: Call | None = None


class GroupWorld(TimedShard):
    """A shard, its log, its clock and its clients. Every action is followed by `check`, the last one by `end`."""

    def __init__(self, delay: int, max_size: int, clients: list[Client]) -> None:
        super().__init__()
        self.settings = replace(
            GroupSettings(),
            group_initial_rebalance_delay_ms=delay,
            group_max_size=max_size,
            offsets_retention_minutes=5,
        )
        self.ids = CountedIds()
        self.topics = KnownTopics()
        self.shard = self.new_shard()
        self.all_calls: list[Call] = []
        self.alive = clients
        self.last_group: ClassicGroup | None = None
        self.last_generation = 0
        self.protocol_of: dict[int, str] = {}

    def new_shard(self) -> GroupShard:
        incarnations = TopicIncarnations(self.topics)
        return GroupShard(self.log, self.timers, self.clock, self.ids, self.settings, incarnations, ImmediateMatcher())

    def settle(self) -> None:
        """Writes wait until an action ends them."""

    @property
    def group(self) -> ClassicGroup | None:
        group = self.shard.groups.get("g")
        assert group is None or isinstance(group, ClassicGroup)
        return group

    # Requests

    def appear(self, client: Client) -> None:
        if len(self.alive) < 6:
            self.alive.append(client)

    def act(self, who: int, what: str, number: int) -> None:
        """Something one client does."""
        if not self.alive:
            return
        client = self.alive[who % len(self.alive)]
        self.learn(client)
        match what:
            case "join":
                self.join(client, bool(number & 1), bool(number & 2))
            case "sync":
                self.sync(client)
            case "heartbeat":
                self.heartbeat(client)
            case "commit":
                self.commit(client, number)
            case "leave":
                self.leave(client, bool(number & 1))
            case "change subscription":
                client.protocols = PROTOCOLS[number % len(PROTOCOLS)]
            case "lose memory":
                client.member_id, client.generation = "", -1
            case "vanish" if number < 2:
                self.alive.remove(client)

    def join(self, client: Client, asks_for_id: bool, can_skip: bool) -> None:
        client.join = self.call()
        self.shard.classic.join(
            join_request(
                member_id=client.member_id,
                group_instance_id=client.instance_id,
                protocols=client.protocols,
                rebalance_timeout_ms=client.rebalance_timeout_ms,
                requires_member_id=asks_for_id,
                can_skip_assignment=can_skip,
            ),
            client.join,
        )
        self.learn(client)

    def everyone_joins(self) -> None:
        """All clients do what they should, so that rebalances get to their end more often than by chance."""
        for _ in range(2):  # the first time some are only given an id
            for client in self.alive:
                self.learn(client)
                if client.join is None:
                    self.join(client, True, True)
        self.let_time_pass(3)

    def everyone_syncs(self, accept: bool | None) -> None:
        """`accept` None: the log takes its time."""
        for client in self.alive:
            self.sync(client)
        while self.log.waiting and accept is not None:
            self.log.finish_one(accept=accept)

    def sync(self, client: Client) -> None:
        self.learn(client)
        client.sync = self.call()
        members = self.group.members if self.group is not None else {}
        self.shard.classic.sync(
            SyncRequest(
                group_id="g",
                member_id=client.member_id,
                generation_id=client.generation,
                group_instance_id=client.instance_id,
                assignments={member_id: f"{client.generation}".encode() for member_id in members},
            ),
            client.sync,
        )

    def heartbeat(self, client: Client) -> None:
        self.tolerate(
            lambda: self.shard.classic.heartbeat("g", client.member_id, client.generation, client.instance_id)
        )

    def leave(self, client: Client, by_instance: bool) -> None:
        member_id = "" if by_instance else client.member_id
        self.tolerate(
            lambda: self.shard.classic.leave(
                "g", [LeavingMember(member_id=member_id, group_instance_id=client.instance_id)]
            )
        )

    def commit(self, client: Client, number: int) -> None:
        self.commit_offset(
            CommitRequest(
                group_id="g",
                member_id=client.member_id,
                generation_id=client.generation,
                group_instance_id=client.instance_id,
                offsets=(self.offset_of("orders", number % 4),),
            )
        )

    def commit_without_membership(self, partition: int) -> None:
        self.commit_offset(CommitRequest(group_id="g", offsets=(self.offset_of("old", partition),)))

    def offset_of(self, topic: str, partition: int) -> PartitionCommit:
        topic_id = self.topics.id_of(topic)
        return PartitionCommit(topic=topic, partition=partition, offset=len(self.log.records), topic_id=topic_id)

    def commit_offset(self, request: CommitRequest) -> None:
        call = self.call()
        if not self.tolerate(lambda: self.shard.commit(request, call)):
            self.all_calls.remove(call)

    def upheaval(self, what: str) -> None:
        match what:
            case "delete group":
                self.delete_group()
            case "create topic again":
                self.topics.create_again("old")
                take_all(self.shard.drop_stale_offsets(["old"]))
            case "sweep":
                take_all(self.shard.expire())
            case "restart":
                self.restart()

    def delete_group(self) -> None:
        call = self.call()
        if not self.tolerate(lambda: self.shard.delete_group("g", call)):
            self.all_calls.remove(call)

    # The world

    def finish_write(self, accept: bool) -> None:
        if self.log.waiting:
            self.log.finish_one(accept=accept)

    def pass_time(self, seconds: float) -> None:
        self.let_time_pass(seconds)

    def restart(self) -> None:
        """The broker comes back and reads its log."""
        while self.log.waiting:
            self.log.finish_one(accept=True)
        take_all(self.shard.unloaded(StrandlineError("stopped")))
        assert len(self.timers) == 0
        self.shard = self.replayed()
        take_all(self.shard.prepare())
        take_all(self.shard.loaded())

    def call(self) -> Call:
        call = Call()
        self.all_calls.append(call)
        return call

    @staticmethod
    def tolerate(action: Any) -> bool:
        try:
            action()
        except StrandlineError:
            return False
        return True

    @staticmethod
    def learn(client: Client) -> None:
        """The client reads the answer to its JoinGroup."""
        if client.join is not None and client.join.answers:
            response: JoinResponse = client.join.answers[0]
            client.join = None
            client.member_id = response.member_id
            client.generation = response.generation_id

    # What must hold

    def check(self) -> None:
        self.members_are_consistent()
        self.generations_never_go_back()
        self.every_open_request_waits_with_a_member()
        self.waiting_is_bounded_by_a_timer()
        self.timers_are_bounded()
        self.a_generation_has_one_protocol()

    def members_are_consistent(self) -> None:
        group = self.group
        if group is None:
            return
        members = group.members
        assert (group.leader in members) if members else group.leader is None
        assert not set(group.pending) & set(members)
        assert set(group.instances.values()) == {m.member_id for m in members.values() if m.is_static}
        assert all(member_id == member.member_id for member_id, member in members.items())
        assert group.pending_sync <= set(members)
        names = [{protocol.name for protocol in member.protocols} for member in members.values()]
        assert group.common_protocols() == (set.intersection(*names) if names else set())
        if group.state is GroupState.EMPTY:
            assert not members
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            assert members
            assert group.protocol_name in group.common_protocols()
        assert group.state is not GroupState.DEAD

    def generations_never_go_back(self) -> None:
        group = self.group
        if group is not None:
            if group is self.last_group:
                assert group.generation >= self.last_generation
            else:
                self.protocol_of.clear()
            self.last_group, self.last_generation = group, group.generation

    def every_open_request_waits_with_a_member(self) -> None:
        """No JoinGroup or SyncGroup is lost: it is answered, or a member of the group holds it."""
        group = self.group
        held: set[Any] = set()
        for member in group.members.values() if group is not None else ():
            held |= {reply for reply in (member.join_reply, member.sync_reply) if reply is not None}
        writes = len(self.log.waiting)
        unanswered = [call for call in self.all_calls if not call.answers]
        assert sum(call not in held for call in unanswered) <= writes
        assert all(not call.answers for call in held)

    def waiting_is_bounded_by_a_timer(self) -> None:
        group = self.group
        if group is None:
            return
        for member in group.members.values():
            if member.is_awaiting_sync:
                assert group.state is GroupState.COMPLETING_REBALANCE
            if not member.is_awaiting_join and not member.is_awaiting_sync:
                assert member.session is not None
                assert member.session.is_pending
        if group.state is GroupState.PREPARING_REBALANCE:
            assert group.join_timer is not None
            assert group.join_timer.is_pending
        if group.state is GroupState.COMPLETING_REBALANCE:
            waits_for_members = group.sync_timer is not None and group.sync_timer.is_pending
            assert waits_for_members or group.storing_generation == group.generation

    def timers_are_bounded(self) -> None:
        group = self.group
        wanted = 0 if group is None else len(group.members) + len(group.pending) + 2
        assert len(self.timers) <= wanted
        assert self.timers.entries <= 64 + 5 * wanted

    def a_generation_has_one_protocol(self) -> None:
        group = self.group
        if group is self.last_group and group is not None and group.protocol_name is not None:
            assert self.protocol_of.setdefault(group.generation, group.protocol_name) == group.protocol_name

    def end(self) -> None:
        """Let every write and every timer end: then no request waits any more."""
        while self.log.waiting:
            self.log.finish_one(accept=True)
        self.memory_agrees_with_the_log()
        for _ in range(20):  # long enough for every rebalance and session; new members wait for five minutes
            self.let_time_pass(60)
            while self.log.waiting:
                self.log.finish_one(accept=True)
        assert all(call.answers for call in self.all_calls), "a request was never answered"
        assert len(self.timers) == 0
        group = self.group
        assert group is None or group.state is GroupState.EMPTY
        self.memory_agrees_with_the_log()

    def memory_agrees_with_the_log(self) -> None:
        again = self.replayed()
        assert dict(again.offsets.of_group("g")) == dict(self.shard.offsets.of_group("g"))
        group, loaded = self.group, again.groups.get("g")
        if group is None or self.log.has_failed:
            return
        assert isinstance(loaded, ClassicGroup)
        if group.state is GroupState.STABLE:
            assert loaded.described() == group.described()
        if group.state in (GroupState.STABLE, GroupState.EMPTY):
            assert loaded.generation == group.generation
