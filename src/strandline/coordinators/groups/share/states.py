"""Where a group has state in the share coordinator: what has to be created, what was, and what goes.

A partition is assigned to members only when its state was created. What a group waits for is in its record, so a
coordinator that takes over knows what to begin again. Creating state twice does no harm: no member reads the partition
before the record says that its state is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol
from uuid import UUID

from strandline.coordinators.groups.modern.partitions import Partitions, common, reduced, united
from strandline.coordinators.groups.share.changes import ShareChanges
from strandline.coordinators.groups.share.group import ShareGroup
from strandline.coordinators.groups.share.schemas import ShareTopicValue
from strandline.coordinators.groups.share.values import NO_SHARE_OFFSET, ShareSurroundings
from strandline.metadata import MetadataImage


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareProgress:
    """What the share coordinator knows of a partition. A delivery count of -1 is unknown."""

    start_offset: int = NO_SHARE_OFFSET
    leader_epoch: int = 0
    delivery_complete_count: int = -1


class ShareStates(Protocol):
    """The share coordinator, which keeps the state of a group in a partition. Any broker may be asked.

    All methods may wait; they raise a StrandlineError if the state is not known to be changed, and may be called again.
    Calls for different partitions do not wait for each other.
    """

    async def initialize(
        self, group_id: str, topic_id: UUID, partition: int, state_epoch: int, start_offset: int
    ) -> None:
        """Create the state, or begin it again at this offset; -1: where share.auto.offset.reset says.

        A state of a later epoch is left alone: FencedStateEpoch.
        """

    async def delete(self, group_id: str, topic_id: UUID, partition: int) -> None:
        """Forget the state. Harmless if there is none."""

    async def summary(self, group_id: str, topic_id: UUID, partition: int) -> ShareProgress:
        """Where the group begins in the partition; a summary without an offset if there is no state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCreation:
    """State that is to be created, in this epoch of the group; at these offsets, or at none."""

    group_id: str
    state_epoch: int
    partitions: Partitions
    start_offsets: Mapping[tuple[UUID, int], int] = field(default_factory=dict)

    def start_offset(self, topic_id: UUID, partition: int) -> int:
        return self.start_offsets.get((topic_id, partition), NO_SHARE_OFFSET)


def begin_missing(changes: ShareChanges, around: ShareSurroundings) -> StateCreation | None:
    """Note that the missing state of subscribed partitions is created now, unless it is being created already."""
    group = changes.group
    wanted: dict[UUID, ShareTopicValue] = {}
    for name in group.topics():
        topic = around.image.topics.get(name)
        if topic is not None and len(_numbers(group.states.initialized, topic.topic_id)) < len(topic.partitions):
            missing = frozenset(range(len(topic.partitions))) - _known(group, topic.topic_id, around)
            if missing:
                wanted[topic.topic_id] = ShareTopicValue(name, missing)
    return begin_creation(changes, wanted, around.now_ms) if wanted else None


def _known(group: ShareGroup, topic_id: UUID, around: ShareSurroundings) -> frozenset[int]:
    """The partitions that have state, or get it from a call of this broker that may still end."""
    known = _numbers(group.states.initialized, topic_id)
    begun_at = group.begun_at.get(topic_id)
    if begun_at is not None and around.now_ms - begun_at < around.limits.retry_ms:
        known |= _numbers(group.states.initializing, topic_id)
    return known


def begin_creation(
    changes: ShareChanges,
    wanted: Mapping[UUID, ShareTopicValue],
    now_ms: int,
    start_offsets: Mapping[tuple[UUID, int], int] | None = None,
) -> StateCreation:
    """Note that this state is created now."""
    group = changes.group
    states = group.states
    initializing = dict(states.initializing)
    for topic_id, topic in wanted.items():
        initializing[topic_id] = replace(topic, partitions=topic.partitions | _numbers(states.initializing, topic_id))
        group.begun_at[topic_id] = now_ms
    deleting = {topic_id: name for topic_id, name in states.deleting.items() if topic_id not in initializing}
    changes.put_states(replace(states, initializing=initializing, deleting=deleting))
    return StateCreation(
        group_id=group.group_id,
        state_epoch=group.epoch,
        partitions={topic_id: topic.partitions for topic_id, topic in wanted.items()},
        start_offsets=start_offsets or {},
    )


def end_creation(changes: ShareChanges, created: Partitions) -> Partitions:
    """Note that this state is there. The part of it that the group does not want any more is returned."""
    states = changes.group.states
    expected = common(created, _partitions(states.initializing))
    if expected:
        initialized = dict(states.initialized)
        for topic_id, numbers in expected.items():
            name = states.initializing[topic_id].name
            initialized[topic_id] = ShareTopicValue(name, numbers | _numbers(states.initialized, topic_id))
        initializing = _without(states.initializing, expected)
        changes.put_states(replace(states, initializing=initializing, initialized=initialized))
    return reduced(created, united(expected, changes.group.assignable))


def give_up_creation(changes: ShareChanges, failed: Partitions) -> None:
    """Note that this state could not be created: the next heartbeat begins again."""
    group = changes.group
    for topic_id in failed:
        group.begun_at.pop(topic_id, None)
    if common(failed, _partitions(group.states.initializing)):
        changes.put_states(replace(group.states, initializing=_without(group.states.initializing, failed)))


def forget_vanished(changes: ShareChanges, image: MetadataImage) -> None:
    """Topics that do not exist any more have no state: the share coordinator forgets them by itself."""
    group = changes.group
    states = replace(
        group.states,
        initializing={at: topic for at, topic in group.states.initializing.items() if at in image.topics_by_id},
        initialized={at: topic for at, topic in group.states.initialized.items() if at in image.topics_by_id},
        deleting={at: name for at, name in group.states.deleting.items() if at in image.topics_by_id},
    )
    for topic_id in [at for at in group.begun_at if at not in image.topics_by_id]:
        del group.begun_at[topic_id]
    if states != group.states:
        changes.put_states(states)


def _numbers(topics: Mapping[UUID, ShareTopicValue], topic_id: UUID) -> frozenset[int]:
    return topics[topic_id].partitions if topic_id in topics else frozenset()


def _partitions(topics: Mapping[UUID, ShareTopicValue]) -> Partitions:
    return {topic_id: topic.partitions for topic_id, topic in topics.items() if topic.partitions}


def _without(topics: Mapping[UUID, ShareTopicValue], part: Partitions) -> Mapping[UUID, ShareTopicValue]:
    left = {
        topic_id: replace(topic, partitions=topic.partitions - part.get(topic_id, frozenset()))
        for topic_id, topic in topics.items()
    }
    return {topic_id: topic for topic_id, topic in left.items() if topic.partitions}
