"""A shard with consumer and classic members, its log and its clock: what the service writes, answers and times."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from strandline.config import GroupSettings
from strandline.coordinators.groups import (
    GroupState,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinResponse,
    LeavingMember,
    MemberProtocol,
    SyncRequest,
    SyncResponse,
)
from strandline.coordinators.groups.classic_group import ClassicGroup
from strandline.coordinators.groups.consumer.embedded import read_embedded_assignment
from strandline.coordinators.groups.consumer.group import ConsumerGroup
from strandline.coordinators.groups.consumer.partitions import without_epochs
from strandline.coordinators.groups.incarnations import TopicIncarnations
from strandline.coordinators.groups.modern.partitions import Partitions
from strandline.coordinators.groups.shard import GroupShard
from strandline.errors import NotCoordinator
from tests.coordinators.groups.conftest import CountedIds
from tests.coordinators.groups.consumer.consumer_world import state_of
from tests.coordinators.groups.immediate_matcher import ImmediateMatcher
from tests.coordinators.groups.members import join_request, subscription
from tests.coordinators.groups.partitioned_topics import PartitionedTopics
from tests.coordinators.groups.timed_shard import TimedShard
from tests.coordinators.steps import take_all


@dataclass(eq=False)
class Answers:
    """Collects the answers to requests."""

    given: list[Any] = field(default_factory=list)

    def __call__(self, answer: Any) -> None:
        self.given.append(answer)

    @property
    def only(self) -> Any:
        (answer,) = self.given
        return answer


class ShardWorld(TimedShard):
    """`settle` lets writes end; time passes by `let_time_pass`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        changed = {"group_initial_rebalance_delay_ms": 0, "group_consumer_assignment_interval_ms": 0, **settings}
        self.settings = replace(GroupSettings(), **changed)
        self.ids = CountedIds()
        self.topics = PartitionedTopics({"orders": 4, "payments": 2})
        self.shard = self.new_shard()

    def new_shard(self) -> GroupShard:
        incarnations = TopicIncarnations(self.topics)
        return GroupShard(self.log, self.timers, self.clock, self.ids, self.settings, incarnations, ImmediateMatcher())

    def settle(self, *, accept: bool = True) -> None:
        while self.log.waiting:
            self.log.finish_one(accept=accept)

    def restart(self) -> None:
        """Another broker loads what is in the log."""
        take_all(self.shard.unloaded(NotCoordinator("Another broker coordinates this group now.")))
        assert len(self.timers) == 0
        self.log.waiting.clear()
        self.shard = self.replayed()
        take_all(self.shard.prepare())
        take_all(self.shard.loaded())

    # Groups

    @property
    def group(self) -> ConsumerGroup:
        group = self.shard.groups["g"]
        assert isinstance(group, ConsumerGroup)
        return group

    @property
    def classic(self) -> ClassicGroup:
        group = self.shard.groups["g"]
        assert isinstance(group, ClassicGroup)
        return group

    def assigned(self, member_id: str) -> Partitions:
        return without_epochs(self.group.members[member_id].assigned)

    def keep_alive(self, member_id: str) -> None:
        consumer = self.shard.consumer
        consumer.start_session(self.group, self.group.members[member_id], consumer.around("g"))

    # Consumer members

    def send(self, request: HeartbeatRequest) -> Answers:
        answers = Answers()
        self.shard.consumer.heartbeat(request, answers)
        return answers

    def heartbeat(self, member_id: str, epoch: int, **fields: Any) -> HeartbeatResponse:
        answers = self.send(HeartbeatRequest(group_id="g", member_id=member_id, member_epoch=epoch, **fields))
        self.settle()
        answer = answers.only
        assert isinstance(answer, HeartbeatResponse)
        return answer

    def join(self, member_id: str, *topics: str, **fields: Any) -> HeartbeatResponse:
        fields = {"topics": topics, "rebalance_timeout_ms": 20_000, "owned": {}, **fields}
        return self.heartbeat(member_id, 0, **fields)

    def obey(self, member_id: str) -> HeartbeatResponse:
        member = self.group.members[member_id]
        return self.heartbeat(member_id, member.epoch, owned=self.assigned(member_id))

    def leave(self, member_id: str) -> HeartbeatResponse:
        return self.heartbeat(member_id, -1)

    # Classic members

    def classic_join(self, member_id: str = "", *topics: str, **fields: Any) -> Answers:
        answers = Answers()
        metadata = fields.pop("metadata", None) or subscription(*(topics or ("orders",)))
        self.shard.memberships.join(
            join_request(
                member_id=member_id,
                protocols=(MemberProtocol(name="range", metadata=metadata),),
                **{"requires_member_id": False, **fields},
            ),
            answers,
        )
        self.settle()
        return answers

    def joined(self, member_id: str = "", **fields: Any) -> JoinResponse:
        answer = self.classic_join(member_id, **fields).only
        assert isinstance(answer, JoinResponse)
        return answer

    def classic_sync(self, member_id: str, generation: int, **fields: Any) -> SyncResponse:
        answers = Answers()
        request = SyncRequest(group_id="g", member_id=member_id, generation_id=generation, **fields)
        self.shard.memberships.sync(request, answers)
        self.settle()
        answer = answers.only
        assert isinstance(answer, SyncResponse)
        return answer

    def classic_sync_now(self, member_id: str, generation: int, instance_id: str | None) -> bytes | None:
        """The assignment if it is told at once; None if the log has to take something first, or if it is refused."""
        answers = Answers()
        request = SyncRequest(
            group_id="g", member_id=member_id, generation_id=generation, group_instance_id=instance_id
        )
        self.shard.memberships.sync(request, answers)
        if not answers.given or answers.only.error is not None:
            return None
        return bytes(answers.only.assignment)

    def synced(self, member_id: str, generation: int) -> dict[str, frozenset[int]]:
        answer = self.classic_sync(member_id, generation)
        assert answer.error is None
        return dict(read_embedded_assignment(answer.assignment).partitions)

    def classic_heartbeat(self, member_id: str, generation: int) -> None:
        self.shard.memberships.heartbeat("g", member_id, generation, None)

    def classic_leave(self, member_id: str) -> None:
        assert self.shard.memberships.leave("g", [LeavingMember(member_id=member_id)]) == [None]
        self.settle()

    def state(self) -> GroupState:
        return self.shard.groups["g"].state


def check_replay(world: ShardWorld) -> None:
    """The log gives the state that the group has."""
    assert not world.log.waiting
    again = world.replayed().groups["g"]
    assert isinstance(again, ConsumerGroup)
    assert state_of(again) == state_of(world.group)
