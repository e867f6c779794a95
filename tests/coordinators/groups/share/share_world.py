"""A shard with share groups, topics that a test changes, and a log that takes what it is told to take."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from strandline.config.groups import GroupSettings
from strandline.config.share_groups import ShareGroupSettings
from strandline.coordinators.groups.incarnations import TopicIncarnations
from strandline.coordinators.groups.shard import GroupShard
from strandline.coordinators.groups.share.group import ShareGroup
from strandline.coordinators.groups.share.service import ShareHeartbeatOutcome
from strandline.coordinators.groups.share.states import StateCreation
from strandline.coordinators.groups.share.values import ShareHeartbeatRequest, ShareHeartbeatResponse
from strandline.coordinators.runtime import KeyValue, ReadBatch, ReadRecord, Timers
from strandline.errors import StrandlineError
from strandline.metadata.delta import MetadataDelta, delta_between
from strandline.metadata.image import MetadataImage, PartitionImage, TopicImage
from strandline.testing.clock import VirtualClock
from tests.coordinators.groups.conftest import CountedIds
from tests.coordinators.groups.group_world import Call, Log


def image_of(name: str, partitions: int, topic_id: uuid.UUID) -> TopicImage:
    return TopicImage(
        name,
        topic_id,
        tuple(
            PartitionImage(partition=at, replicas=(0,), isr=(0,), leader=0, leader_epoch=0, partition_epoch=0)
            for at in range(partitions)
        ),
    )


class ShareTopics:
    """An image whose topics a test creates, enlarges and deletes."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._numbers = itertools.count(1)
        self.image = MetadataImage()
        for name, count in counts.items():
            self.create(name, count)

    def create(self, name: str, partitions: int) -> MetadataDelta:
        return self.put(image_of(name, partitions, uuid.UUID(int=next(self._numbers))))

    def enlarge(self, name: str, partitions: int) -> MetadataDelta:
        return self.put(image_of(name, partitions, self.id_of(name)))

    def delete(self, name: str) -> MetadataDelta:
        return self._become({known: topic for known, topic in self.image.topics.items() if known != name})

    def put(self, topic: TopicImage) -> MetadataDelta:
        return self._become({**self.image.topics, topic.name: topic})

    def id_of(self, name: str) -> uuid.UUID:
        return self.image.topics[name].topic_id

    def all_of(self, *names: str) -> Mapping[uuid.UUID, frozenset[int]]:
        """All partitions of these topics."""
        found = (self.image.topics[name] for name in names)
        return {topic.topic_id: frozenset(range(len(topic.partitions))) for topic in found}

    def _become(self, topics: Mapping[str, TopicImage]) -> MetadataDelta:
        before = self.image
        by_id = {topic.topic_id: topic for topic in topics.values()}
        self.image = replace(before, topics=topics, topics_by_id=by_id)
        return delta_between(before, self.image)


class ShareWorld:
    """`takes_all`: the log takes every write at once."""

    def __init__(self, counts: Mapping[str, int], *, takes_all: bool = True, **settings: Any) -> None:
        self.clock = VirtualClock()
        self.timers = Timers(self.clock)
        self.log = Log()
        self.takes_all = takes_all
        self.topics = ShareTopics(counts)
        self.settings = replace(ShareGroupSettings(), **settings)
        self.creations: list[StateCreation] = []
        self.shard = self.new_shard()

    def new_shard(self) -> GroupShard:
        incarnations = TopicIncarnations(lambda: self.topics.image)
        return GroupShard(
            self.log, self.timers, self.clock, CountedIds(), GroupSettings(), incarnations, None, self.settings
        )

    def replayed(self) -> GroupShard:
        shard = self.new_shard()
        shard.replay(ReadBatch(records=tuple(ReadRecord(at, k, v) for at, (k, v) in enumerate(self.log.records))))
        return shard

    def restart(self) -> None:
        """The broker comes back and reads its log."""
        self.shard.unloaded(StrandlineError("stopped"))
        self.shard = self.replayed()
        self.shard.loaded()
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

    def send(self, request: ShareHeartbeatRequest) -> ShareHeartbeatResponse:
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

    def join(self, member_id: str, *topics: str, group_id: str = "g", **fields: Any) -> ShareHeartbeatResponse:
        return self.send(ShareHeartbeatRequest(group_id=group_id, member_id=member_id, topics=topics, **fields))

    def beat(self, member_id: str, *, group_id: str = "g", **fields: Any) -> ShareHeartbeatResponse:
        epoch = fields.pop("epoch", None)
        if epoch is None:
            epoch = self.group(group_id).members[member_id].epoch
        return self.send(ShareHeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=epoch, **fields))

    def leave(self, member_id: str, *, group_id: str = "g") -> ShareHeartbeatResponse:
        return self.beat(member_id, group_id=group_id, epoch=-1)

    # The share coordinator

    def create_states(self) -> None:
        """All state that was asked for is created."""
        for creation in self.creations:
            self.shard.share.created(creation.group_id, creation.partitions, Call())
        self.creations.clear()
        self.settle()

    def pass_time(self, seconds: float) -> None:
        end = self.clock.monotonic() + seconds
        while (deadline := self.timers.next_deadline()) is not None and deadline <= end:
            self.clock.move(max(deadline - self.clock.monotonic(), 0.0))
            self.timers.run_due()
            self.settle()
        self.clock.move(max(end - self.clock.monotonic(), 0.0))
        self.timers.run_due()
        self.settle()
