"""What administrators change in share groups without members: where they begin, which offsets they forget, deletion.

Each change is noted in the record of the group before the share coordinator is asked, and when it has answered. A
change that was interrupted is in the record, and is done when it is asked for again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from strandline.coordinators.groups.modern.partitions import Partitions, united
from strandline.coordinators.groups.share.changes import ShareChanges
from strandline.coordinators.groups.share.schemas import ShareTopicValue
from strandline.coordinators.groups.share.states import StateCreation, begin_creation
from strandline.coordinators.groups.share.values import AlteredShareOffset, DeletedShareOffsets
from strandline.errors import UnknownTopicOrPartition
from strandline.metadata import MetadataImage


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetAlteration:
    """One answer for each wish, and the state that has to be created for those without an error."""

    answers: tuple[AlteredShareOffset, ...]
    creation: StateCreation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeletion:
    """One answer for each topic, and the state that has to be deleted for those without an error."""

    answers: tuple[DeletedShareOffsets, ...]
    partitions: Partitions


def alter_offsets(
    changes: ShareChanges, wishes: Sequence[AlteredShareOffset], image: MetadataImage, now_ms: int
) -> OffsetAlteration:
    """Begin partitions at other offsets. Raises NonEmptyGroup."""
    changes.group.check_delete()
    answers = tuple(_placed(wish, image) for wish in wishes)
    wanted: dict[UUID, ShareTopicValue] = {}
    for answer in answers:
        if answer.error is None:
            known = wanted.get(answer.topic_id, ShareTopicValue(answer.topic, frozenset()))
            wanted[answer.topic_id] = replace(known, partitions=known.partitions | {answer.partition})
    if not wanted:
        return OffsetAlteration(answers=answers)
    offsets = {(one.topic_id, one.partition): one.start_offset for one in answers if one.error is None}
    return OffsetAlteration(answers=answers, creation=begin_creation(changes, wanted, now_ms, offsets))


def _placed(wish: AlteredShareOffset, image: MetadataImage) -> AlteredShareOffset:
    topic = image.topics.get(wish.topic)
    if topic is None:
        return replace(wish, error=UnknownTopicOrPartition(f"There is no topic {wish.topic}."))
    if topic.partition(wish.partition) is None:
        text = f"Topic {wish.topic} has {len(topic.partitions)} partitions, and none with number {wish.partition}."
        return replace(wish, topic_id=topic.topic_id, error=UnknownTopicOrPartition(text))
    return replace(wish, topic_id=topic.topic_id)


def begin_offset_deletion(changes: ShareChanges, topics: Iterable[str], image: MetadataImage) -> OffsetDeletion:
    """Note that the group's state of these topics goes. Raises NonEmptyGroup."""
    changes.group.check_delete()
    states = changes.group.states
    answers, partitions = [], dict[UUID, frozenset[int]]()
    for name in dict.fromkeys(topics):
        topic = image.topics.get(name)
        if topic is None:
            answers.append(DeletedShareOffsets(topic=name, error=UnknownTopicOrPartition(f"There is no topic {name}.")))
        elif topic.topic_id in states.initialized:
            partitions[topic.topic_id] = states.initialized[topic.topic_id].partitions
        elif topic.topic_id in states.deleting:
            partitions[topic.topic_id] = frozenset(range(len(topic.partitions)))
        else:
            error = UnknownTopicOrPartition("There is no offset information to delete.")
            answers.append(DeletedShareOffsets(topic=name, error=error))
        if topic is not None and topic.topic_id in partitions:
            answers.append(DeletedShareOffsets(topic=name, topic_id=topic.topic_id))
    if partitions:
        initialized = {at: topic for at, topic in states.initialized.items() if at not in partitions}
        deleting = {**states.deleting, **{at: image.topics_by_id[at].name for at in partitions}}
        changes.put_states(replace(states, initialized=initialized, deleting=deleting))
    return OffsetDeletion(answers=tuple(answers), partitions=partitions)


def end_offset_deletion(changes: ShareChanges, topic_ids: Iterable[UUID]) -> None:
    """Note that the state of these topics is gone."""
    states, gone = changes.group.states, set(topic_ids)
    deleting = {at: name for at, name in states.deleting.items() if at not in gone}
    if deleting != states.deleting:
        changes.put_states(replace(states, deleting=deleting))


def begin_group_deletion(changes: ShareChanges, image: MetadataImage) -> Partitions:
    """Note that all state of the group goes, and say which that is; that of deleted topics goes by itself. Raises
    NonEmptyGroup."""
    group = changes.group
    group.check_delete()
    states = group.states
    named = [
        (topic_id, topic)
        for topics in (states.initializing, states.initialized)
        for topic_id, topic in topics.items()
        if topic_id in image.topics_by_id
    ]
    interrupted = {
        topic_id: frozenset(range(len(image.topics_by_id[topic_id].partitions)))
        for topic_id in states.deleting
        if topic_id in image.topics_by_id
    }
    partitions = united(*({topic_id: topic.partitions} for topic_id, topic in named), interrupted)
    deleting = {**states.deleting, **{topic_id: topic.name for topic_id, topic in named}}
    kept = {topic_id: name for topic_id, name in deleting.items() if topic_id in partitions}
    after = replace(states, initializing={}, initialized={}, deleting=kept)
    if after != states:
        changes.put_states(after)
    return partitions
