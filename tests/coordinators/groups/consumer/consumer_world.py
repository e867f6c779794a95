"""A consumer group, its topics and its time, and shorthands for requests: decisions are tested without a broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from strandline.config import GroupSettings, group_config
from strandline.coordinators.groups.consumer.changes import ConsumerChanges
from strandline.coordinators.groups.consumer.group import ConsumerGroup
from strandline.coordinators.groups.consumer.heartbeat import heartbeat
from strandline.coordinators.groups.consumer.leaving import find_leaving, leave_for_a_while, remove_members
from strandline.coordinators.groups.consumer.partitions import without_epochs
from strandline.coordinators.groups.consumer.schemas import ConsumerRecordKey, read_consumer_value
from strandline.coordinators.groups.consumer.target import assigned_by_preference
from strandline.coordinators.groups.consumer.values import ConsumerLimits, ConsumerSurroundings, HeartbeatRequest
from strandline.coordinators.groups.modern.partitions import Partitions
from strandline.coordinators.groups.modern.surroundings import Surroundings
from strandline.coordinators.groups.modern.target import assign_if_due
from strandline.coordinators.groups.modern.topics import TopicHashes
from strandline.coordinators.groups.modern.values import HeartbeatResponse
from strandline.coordinators.groups.schemas import read_key
from strandline.coordinators.runtime import KeyValue
from tests.coordinators.groups.partitioned_topics import PartitionedTopics


class ConsumerWorld:
    """One group; every decision is applied and its records are kept."""

    def __init__(self, counts: Mapping[str, int] | None = None, **settings: Any) -> None:
        self.topics = PartitionedTopics(counts or {"orders": 3})
        self.group = ConsumerGroup("g")
        self.now_ms = 1_000_000
        self.hashes = TopicHashes()
        changed = {"group_consumer_assignment_interval_ms": 0, **settings}
        self.settings = replace(GroupSettings(), **changed)
        self.log: list[KeyValue] = []

    def around(self) -> ConsumerSurroundings:
        return Surroundings(
            image=self.topics.image,
            hashes=self.hashes,
            now_ms=self.now_ms,
            limits=ConsumerLimits(broker=self.settings, group=group_config({}, self.settings)),
        )

    def heartbeat(self, member_id: str, epoch: int, **fields: Any) -> HeartbeatResponse:
        """Raises the refusal; then the group is as it was."""
        fields = {"client_id": "c", **fields}
        request = HeartbeatRequest(group_id=self.group.group_id, member_id=member_id, member_epoch=epoch, **fields)
        changes = ConsumerChanges(self.group)
        with changes:
            response = heartbeat(changes, request, self.around())
        self.log += changes.records
        return response

    def join(self, member_id: str, *topics: str, **fields: Any) -> HeartbeatResponse:
        fields = {"topics": topics, "rebalance_timeout_ms": 60_000, "owned": {}, **fields}
        return self.heartbeat(member_id, 0, **fields)

    def beat(self, member_id: str, *, owned: Partitions | None = None, **fields: Any) -> HeartbeatResponse:
        """A heartbeat with the epoch that the member has."""
        return self.heartbeat(member_id, self.group.members[member_id].epoch, owned=owned, **fields)

    def obey(self, member_id: str) -> HeartbeatResponse:
        """The client owns what it was told to, and says so."""
        return self.beat(member_id, owned=self.assigned(member_id))

    def leave(self, member_id: str, epoch: int = -1, instance_id: str | None = None) -> None:
        request = HeartbeatRequest(group_id="g", member_id=member_id, member_epoch=epoch, instance_id=instance_id)
        changes = ConsumerChanges(self.group)
        member = find_leaving(changes, request)
        if epoch == -2:
            leave_for_a_while(changes, member)
        else:
            remove_members(changes, [member], self.around())
        self.log += changes.records

    def assign(self) -> None:
        """The timer of the group."""
        changes = ConsumerChanges(self.group)
        assign_if_due(changes, self.around(), assigned_by_preference)
        self.log += changes.records

    def settle(self) -> None:
        """Everybody obeys until nothing changes any more."""
        self.assign()
        for _ in range(4 * len(self.group.members) + 4):
            before = len(self.log)
            for member_id in list(self.group.members):
                if not self.group.members[member_id].has_left_for_now:
                    self.obey(member_id)
            if len(self.log) == before:
                return
        raise AssertionError("the group does not settle")

    def assigned(self, member_id: str) -> Partitions:
        return without_epochs(self.group.members[member_id].assigned)

    def replayed(self) -> ConsumerGroup:
        return replay(self.log)


def replay(records: list[KeyValue], group_id: str = "g") -> ConsumerGroup:
    group = ConsumerGroup(group_id)
    for raw_key, raw_value in records:
        key = read_key(raw_key)
        assert isinstance(key, ConsumerRecordKey)
        group.apply(key, None if raw_value is None else read_consumer_value(key.kind, raw_value))
    return group


def state_of(group: ConsumerGroup) -> Any:
    """Everything that the log has to bring back."""
    return (
        group.epoch,
        group.metadata_hash,
        group.target_epoch,
        group.target_timestamp_ms,
        group.members,
        group.targets,
        group.expressions,
        group.instances,
        group.topics(),
        group.state,
    )
