"""Plans for log directories of brokers: which replicas are in them, and what follows when one fails. Pure.

A replica in a directory that is not online can neither lead nor be in sync. Its broker goes on with the others.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from strandline.errors import (
    BrokerIdNotRegistered,
    InvalidRequest,
    NotLeaderOrFollower,
    StaleBrokerEpoch,
    StrandlineError,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from strandline.metadata.features import may_replicate
from strandline.metadata.image import RESERVED_DIRECTORY_IDS, BrokerImage, MetadataImage, PartitionImage, TopicImage
from strandline.metadata.plans.elections import Returned
from strandline.metadata.plans.membership import checked_broker
from strandline.metadata.plans.returning import losses
from strandline.metadata.plans.rules import ConfigRules
from strandline.metadata.plans.succession import Succession, Target
from strandline.metadata.records import BrokerChangeRecord, MetadataRecord, ReplicaDirectoryRecord
from strandline.metadata.requests import DirectoryAssignment, Plan
from strandline.metadata.topic_map import indexed_topics


class AssignedDirectories(NamedTuple):
    """The answer to each assignment, None for those that hold; and what an operator has to be told, if anything."""

    answers: list[StrandlineError | None]
    losses: str = ""


class DirectoryPlanner:
    """Plans what follows from the state of log directories."""

    def __init__(self, rules: ConfigRules) -> None:
        self._succession = Succession(rules)

    def newly_failed(
        self, image: MetadataImage, broker: BrokerImage, failed: Sequence[uuid.UUID]
    ) -> tuple[uuid.UUID, ...]:
        """Those of the failed directories that the metadata does not know of; none if its level has no directories."""
        if not failed or not may_replicate(image):
            return ()
        return tuple(one for one in failed if one not in broker.failed_log_dirs)

    def fail(self, image: MetadataImage, broker: BrokerImage, failed: Sequence[uuid.UUID]) -> list[MetadataRecord]:
        """Log directories of a broker have failed: others lead what it led there, and it is not in sync with it."""
        new = self.newly_failed(image, broker, failed)
        if not new:
            return []
        node = broker.node_id
        changes = self._succession.changes(
            image,
            _in_sync_in(image, node, frozenset(new)),
            lambda partition, other: other != node and image.is_available(partition, other),
        )
        record = BrokerChangeRecord(
            node_id=node, broker_epoch=broker.epoch, failed_log_dirs=(*broker.failed_log_dirs, *new)
        )
        return [record, *changes]

    def assign(
        self, image: MetadataImage, node_id: int, broker_epoch: int, assignments: Sequence[DirectoryAssignment]
    ) -> Plan[AssignedDirectories]:
        """A broker says where its replicas are. Raises StaleBrokerEpoch or UnsupportedVersion for all of them.

        A replica that was in a directory which is away, and is in another one now, has been made anew: it may not lead
        for what it had. One that is in a directory that has failed is not in sync.
        """
        try:
            broker = checked_broker(image, node_id, broker_epoch)
        except BrokerIdNotRegistered as error:  # as Kafka answers
            raise StaleBrokerEpoch(str(error)) from error
        if not may_replicate(image):
            raise UnsupportedVersion("The level of metadata.version has no log directories of replicas yet.")
        answers: list[StrandlineError | None] = []
        accepted: dict[uuid.UUID, dict[uuid.UUID, list[int]]] = {}
        made_anew: list[Target] = []
        failed: list[Target] = []
        for assignment in assignments:
            try:
                topic, before = _checked(image, node_id, assignment)
            except StrandlineError as error:
                answers.append(error)
                continue
            answers.append(None)
            known, directory = before.directory_of(node_id), assignment.directory
            if known == directory:
                continue
            accepted.setdefault(directory, {}).setdefault(topic.topic_id, []).append(before.partition)
            after = before.in_directory(node_id, directory)
            target = (topic, after, tuple(node for node in after.isr if node != node_id))
            if not broker.has_online(known):
                made_anew.append(target)
            elif not broker.has_online(directory):
                failed.append(target)
        lost = Returned(incomplete=node_id, empty=node_id)
        changes = [
            *self._succession.changes(image, made_anew, image.is_available, lambda partition: lost),
            *self._succession.changes(image, failed, image.is_available),
        ]
        records: list[MetadataRecord] = [
            ReplicaDirectoryRecord(
                node_id=node_id,
                directory=directory,
                partitions=tuple((topic_id, tuple(numbers)) for topic_id, numbers in topics.items()),
            )
            for directory, topics in accepted.items()
        ]
        return Plan([*records, *changes], AssignedDirectories(answers, losses(image, node_id, changes)))


def _in_sync_in(image: MetadataImage, node_id: int, directories: frozenset[uuid.UUID]) -> Iterator[Target]:
    for topic in indexed_topics(image).held_by(node_id):
        for partition in topic.partitions:
            is_held = node_id in partition.isr or partition.leader == node_id
            if is_held and partition.directory_of(node_id) in directories:
                yield topic, partition, tuple(node for node in partition.isr if node != node_id)


def _checked(image: MetadataImage, node_id: int, assignment: DirectoryAssignment) -> tuple[TopicImage, PartitionImage]:
    topic = image.topics_by_id.get(assignment.topic_id)
    if topic is None:
        raise UnknownTopicId(f"No topic has the id {assignment.topic_id}.")
    partition = topic.partition(assignment.partition)
    if partition is None:
        raise UnknownTopicOrPartition(f"Topic {topic.name} has no partition {assignment.partition}.")
    if node_id not in partition.replicas:
        raise NotLeaderOrFollower(f"Broker {node_id} has no replica of {topic.name}-{assignment.partition}.")
    if assignment.directory.int < RESERVED_DIRECTORY_IDS:
        raise InvalidRequest(f"{assignment.directory} is not the id of a log directory.")
    return topic, partition
