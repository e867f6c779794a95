"""Plans for ElectLeaders, and for giving leadership back to preferred replicas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from strandline.errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    InvalidRequest,
    PreferredLeaderNotAvailable,
    StrandlineError,
    UnknownTopicOrPartition,
)
from strandline.metadata.image import MetadataImage, PartitionImage
from strandline.metadata.plans.elections import ElectionType, PartitionChange, grouped, partition_change
from strandline.metadata.plans.rules import ConfigRules
from strandline.metadata.requests import Plan
from strandline.metadata.topic_map import indexed_topics
from strandline.model import TopicPartition


def plan_elections(
    image: MetadataImage,
    election: ElectionType,
    partitions: Sequence[TopicPartition] | None,
    rules: ConfigRules,
) -> Plan[Mapping[TopicPartition, StrandlineError | None]]:
    """Elect leaders for these partitions, or for all that need it. None as answer: elected."""
    is_for_all = partitions is None
    if partitions is None:
        partitions = [TopicPartition(topic.name, found.partition) for topic, found in image.all_partitions()]
    changes: list[PartitionChange] = []
    answers: dict[TopicPartition, StrandlineError | None] = {}
    for partition in partitions:
        if partition in answers:
            continue
        try:
            changes.append(_elected(image, election, partition, rules))
        except ElectionNotNeeded as error:
            if not is_for_all:
                answers[partition] = error
        except StrandlineError as error:
            answers[partition] = error
        else:
            answers[partition] = None
    return Plan(grouped(changes), answers)


def _elected(
    image: MetadataImage, election: ElectionType, wanted: TopicPartition, rules: ConfigRules
) -> PartitionChange:
    topic = image.topics.get(wanted.topic)
    partition = None if topic is None else topic.partition(wanted.partition)
    if topic is None or partition is None:
        raise UnknownTopicOrPartition(f"No such partition as {wanted}.")
    _check_needed(election, partition)
    change = partition_change(
        topic.topic_id,
        partition,
        isr=partition.isr,
        is_active=partial(image.is_available, partition),
        election=election,
        committed_by=rules.committed_by(image, topic.name, partition),
    )
    if change is None or change.leader is None:
        if election is ElectionType.PREFERRED:
            raise PreferredLeaderNotAvailable(
                f"The preferred leader {partition.preferred_leader} of {wanted} is not in sync or not alive."
            )
        raise EligibleLeadersNotAvailable(f"No replica of {wanted} is alive.")
    if election is ElectionType.PREFERRED and change.leader != partition.preferred_leader:
        raise PreferredLeaderNotAvailable(
            f"The preferred leader {partition.preferred_leader} of {wanted} is not in sync or not alive."
        )
    return change


def _check_needed(election: ElectionType, partition: PartitionImage) -> None:
    match election:
        case ElectionType.PREFERRED:
            if partition.leader == partition.preferred_leader:
                raise ElectionNotNeeded("The partition is led by its preferred replica.")
        case ElectionType.UNCLEAN:
            if partition.has_leader:
                raise ElectionNotNeeded("The partition has a leader.")
        case _:
            raise InvalidRequest(f"Clients cannot request elections of type {election.name}.")


def plan_balance(image: MetadataImage, names: Iterable[str], limit: int) -> list[PartitionChange]:
    """Give leadership of these topics back to preferred replicas that can lead again, at most `limit` at a time."""
    changes: list[PartitionChange] = []
    partitions = ((topic, one) for topic in indexed_topics(image).named(names) for one in topic.partitions)
    for topic, partition in partitions:
        preferred = partition.preferred_leader
        if (
            partition.leader == preferred
            or preferred not in partition.isr
            or not image.is_available(partition, preferred)
        ):
            continue
        changes.append(PartitionChange(topic.topic_id, partition.partition, leader=preferred))
        if len(changes) >= limit:
            break
    return changes
