"""A shard with share groups, topics that a test changes, and a log that takes what it is told to take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from strandline.config.groups import GroupSettings
from strandline.config.share_groups import ShareGroupSettings
from strandline.coordinators.groups.incarnations import TopicIncarnations
from strandline.coordinators.groups.modern.values import HeartbeatResponse
from strandline.coordinators.groups.shard import GroupShard
from strandline.coordinators.groups.share.group import ShareGroup
from strandline.coordinators.groups.share.service import ShareHeartbeatOutcome
from strandline.coordinators.groups.share.states import StateCreation
from strandline.coordinators.groups.share.values import ShareHeartbeatRequest
from strandline.coordinators.runtime import KeyValue
from strandline.errors import StrandlineError
from tests.coordinators.groups.conftest import CountedIds
from tests.coordinators.groups.immediate_matcher import ImmediateMatcher
from tests.coordinators.groups.partitioned_topics import PartitionedTopics
from tests.coordinators.groups.timed_shard import Call, TimedShard
from tests.coordinators.steps import take_all


class ShareWorld(TimedShard):
    """`takes_all`: the log takes every write at once."""

    def __init__(self, counts: Mapping[str, int], *, takes_all: bool = True, **settings: Any) -> None:
        super().__init__()
        self.takes_all = takes_all
        self.topics = PartitionedTopics(counts)
        self.settings = replace(ShareGroupSettings(), **settings)
        self.creations: list[StateCreation] = []
        self.shard = self.new_shard()

    def new_shard(self) -> GroupShard:
        incarnations = TopicIncarnations(self.topics)
        return GroupShard(
            self.log,
            self.timers,
            self.clock,
            CountedIds(),
            GroupSettings(),
            incarnations,
            ImmediateMatcher(),
            self.settings,
        )

    def restart(self) -> None:
        """The broker comes back and reads its log."""
        take_all(self.shard.unloaded(StrandlineError("stopped")))
        self.shard = self.replayed()
        take_all(self.shard.prepare())
        take_all(self.shard.loaded())
        self.settle()

    @property
    def records(self) -> list[KeyValue]:
        return self.log.records

    def group(self, group_id: str = "g") -> ShareGroup:
        found = self.shard.groups[group_id]
        assert isinstance(found, ShareGroup)
        return found

    def group_records_of_deletion(self) -> list[KeyValue]:
        """The records of the write that waits last."""
        return list(self.log.waiting[-1][0])

    def settle(self) -> None:
        while self.log.waiting and self.takes_all:
            self.log.finish_one(accept=True)

    # Requests

    def send(self, request: ShareHeartbeatRequest) -> HeartbeatResponse:
        """Raises what is refused at once, and the error in the answer."""
        call = Call()
        self.shard.share.heartbeat(request, call)
        self.settle()
        outcome: ShareHeartbeatOutcome = call.answers[0]
        if outcome.creation is not None:
            self.creations.append(outcome.creation)
        if outcome.response.error is not None:
            raise outcome.response.error
        return outcome.response

    def join(self, member_id: str, *topics: str, group_id: str = "g", **fields: Any) -> HeartbeatResponse:
        return self.send(ShareHeartbeatRequest(group_id=group_id, member_id=member_id, topics=topics, **fields))

    def beat(self, member_id: str, *, group_id: str = "g", **fields: Any) -> HeartbeatResponse:
        epoch = fields.pop("epoch", None)
        if epoch is None:
            epoch = self.group(group_id).members[member_id].epoch
        return self.send(ShareHeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=epoch, **fields))

    def leave(self, member_id: str, *, group_id: str = "g") -> HeartbeatResponse:
        return self.beat(member_id, group_id=group_id, epoch=-1)

    # The share coordinator

    def create_states(self) -> None:
        """All state that was asked for is created."""
        for creation in self.creations:
            self.shard.share.created(creation.group_id, creation.partitions, Call())
        self.creations.clear()
        self.settle()
