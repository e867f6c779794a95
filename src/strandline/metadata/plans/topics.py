"""Plans for creating and deleting topics and for adding partitions.

Each item of a request gets its own answer, and takes the items before it into account.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from strandline.clock import Chance, Ids
from strandline.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    PolicyViolation,
    StrandlineError,
    TopicAlreadyExists,
    TopicDeletionDisabled,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from strandline.metadata.features import METADATA_VERSION, REPLICATED, finalized_level, may_replicate
from strandline.metadata.image import (
    ConfigResource,
    ConfigResourceType,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from strandline.metadata.plans.placement import UsableBroker, place_partitions
from strandline.metadata.plans.rules import ConfigRules
from strandline.metadata.records import (
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from strandline.metadata.requests import NewPartitions, NewTopic, Plan
from strandline.metadata.topic_map import indexed_topics
from strandline.metadata.topic_names import CollisionIndex, validate_topic_name
from strandline.model import REMOTE_LOG_METADATA_TOPIC

MAX_PARTITIONS_PER_REQUEST: Final = 10_000
_METADATA_TOPIC_STAYS: Final = (
    f"{REMOTE_LOG_METADATA_TOPIC} holds the remote log metadata: it cannot be deleted while "
    "remote.log.storage.system.enable is true on the broker."
)
_METADATA_TOPIC_FIXED: Final = (
    f"{REMOTE_LOG_METADATA_TOPIC} cannot have more partitions: the metadata partition of a tiered partition is "
    "computed from their number."
)
# Connect, Streams and MirrorMaker ask for as many replicas as settings of their own say.
_WRITE_INSTEAD: Final = (
    "Write 1 or -1 as its replication factor; in Kafka Connect's worker that is config.storage.replication.factor, "
    "offset.storage.replication.factor and status.storage.replication.factor, in Kafka Streams and MirrorMaker "
    "replication.factor"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlanner:
    """Plans changes of topics."""

    rules: ConfigRules
    ids: Ids
    chance: Chance

    def create(self, image: MetadataImage, topics: Sequence[NewTopic]) -> Plan[list[TopicImage | StrandlineError]]:
        """Records for the topics that can be created; answers in the order of the request."""
        records: list[MetadataRecord] = []
        answers: list[TopicImage | StrandlineError] = []
        times = Counter(topic.name for topic in topics)
        names = CollisionIndex(indexed_topics(image).alike)
        room = MAX_PARTITIONS_PER_REQUEST
        for topic in topics:
            try:
                if times[topic.name] > 1:
                    raise InvalidRequest("Duplicate topic name.")
                made, topic_records = self._create_one(image, topic, names, room)
            except StrandlineError as error:
                answers.append(error)
            else:
                names.add(topic.name)
                room -= len(made.partitions)
                records += topic_records
                answers.append(made)
        return Plan(records, answers)

    def _create_one(
        self, image: MetadataImage, topic: NewTopic, names: CollisionIndex, room: int
    ) -> tuple[TopicImage, list[MetadataRecord]]:
        validate_topic_name(topic.name)
        if topic.name in image.topics:
            raise TopicAlreadyExists(f"Topic '{topic.name}' already exists.")
        names.check(topic.name)
        overrides = self.rules.new_topic_overrides(image, topic.name, _overrides(topic.configs))
        if self.rules.is_diskless(image, overrides):
            topic = _with_one_replica(topic)
        partitions = self._new_topic_partitions(image, topic, room)
        _check_level(image, topic.name, partitions)
        if self.rules.is_tiered(image, overrides):
            _check_one_replica(topic, partitions)
        made = TopicImage(topic.name, self.ids.uuid(), partitions)
        resource = ConfigResource(ConfigResourceType.TOPIC, topic.name)
        return made, [
            TopicRecord(name=made.name, topic_id=made.topic_id),
            *(ConfigRecord(resource=resource, key=key, value=value) for key, value in overrides.items()),
            *(_partition_record(made.topic_id, partition) for partition in partitions),
        ]

    def _new_topic_partitions(self, image: MetadataImage, topic: NewTopic, room: int) -> tuple[PartitionImage, ...]:
        if topic.assignments:
            return _assigned_topic(image, topic, room)
        if topic.replication_factor < -1 or topic.replication_factor == 0:
            raise InvalidReplicationFactor("Replication factor must be larger than 0, or -1 to use the default value.")
        if topic.num_partitions < -1 or topic.num_partitions == 0:
            raise InvalidPartitions("Number of partitions must be larger than 0, or -1 to use the default value.")
        defaults = self.rules.settings(image).cluster
        count = defaults.num_partitions if topic.num_partitions == -1 else topic.num_partitions
        factor = defaults.default_replication_factor if topic.replication_factor == -1 else topic.replication_factor
        if factor > len(image.brokers):
            raise InvalidReplicationFactor(_too_many_replicas(topic, factor, len(image.brokers)))
        return self._placed(image, (), count=count, factor=factor, room=room)

    def _placed(
        self, image: MetadataImage, old: tuple[PartitionImage, ...], *, count: int, factor: int, room: int
    ) -> tuple[PartitionImage, ...]:
        _check_room(count, room)
        usable = (
            UsableBroker(broker.node_id, broker.rack, broker.fenced)
            for broker in image.brokers.values()
            if broker.fenced or not broker.in_controlled_shutdown
        )
        existing = [partition.replicas for partition in old]
        placed = place_partitions(count, factor, usable, self.chance, existing)
        return tuple(_new_partition(image, number, replicas) for number, replicas in enumerate(placed, len(old)))

    def delete(
        self, image: MetadataImage, topics: Sequence[str | uuid.UUID]
    ) -> Plan[list[TopicImage | StrandlineError]]:
        """Records for the topics that exist; the answers are the topics as they were."""
        is_enabled = self.rules.settings(image).cluster.delete_topic_enable
        times = Counter(_id_of(image, topic) for topic in topics)
        records: list[MetadataRecord] = []
        answers: list[TopicImage | StrandlineError] = []
        for topic in topics:
            found = image.topics.get(topic) if isinstance(topic, str) else image.topics_by_id.get(topic)
            if not is_enabled:
                answers.append(TopicDeletionDisabled("Topic deletion is disabled: delete.topic.enable is false."))
            elif times[_id_of(image, topic)] > 1:
                answers.append(InvalidRequest("The request names the same topic more than once."))
            elif found is not None and found.name == REMOTE_LOG_METADATA_TOPIC and self.rules.has_tiers(image):
                answers.append(TopicDeletionDisabled(_METADATA_TOPIC_STAYS))
            elif found is not None:
                answers.append(found)
                records.append(RemoveTopicRecord(topic_id=found.topic_id))
            elif isinstance(topic, str):
                answers.append(UnknownTopicOrPartition("This server does not host this topic-partition."))
            else:
                answers.append(UnknownTopicId("This server does not host this topic ID."))
        return Plan(records, answers)

    def add_partitions(
        self, image: MetadataImage, wishes: Sequence[NewPartitions]
    ) -> Plan[list[TopicImage | StrandlineError]]:
        """Records for the partitions that can be added; the answers are the topics as they will be."""
        times = Counter(wish.name for wish in wishes)
        records: list[MetadataRecord] = []
        answers: list[TopicImage | StrandlineError] = []
        room = MAX_PARTITIONS_PER_REQUEST
        for wish in wishes:
            try:
                if times[wish.name] > 1:
                    raise InvalidRequest("Duplicate topic name.")
                topic, added = self._added(image, wish, room)
            except StrandlineError as error:
                answers.append(error)
            else:
                room -= len(added)
                records += [_partition_record(topic.topic_id, partition) for partition in added]
                answers.append(TopicImage(topic.name, topic.topic_id, topic.partitions + added))
        return Plan(records, answers)

    def _added(
        self, image: MetadataImage, wish: NewPartitions, room: int
    ) -> tuple[TopicImage, tuple[PartitionImage, ...]]:
        topic = image.topics.get(wish.name)
        if topic is None:
            raise UnknownTopicOrPartition(f"The topic '{wish.name}' does not exist.")
        if wish.name == REMOTE_LOG_METADATA_TOPIC:
            raise InvalidPartitions(_METADATA_TOPIC_FIXED)
        current = len(topic.partitions)
        additional = wish.count - current
        if additional == 0:
            raise InvalidPartitions(f"Topic already has {current} partition(s).")
        if additional < 0:
            raise InvalidPartitions(
                f"The topic {wish.name} currently has {current} partition(s); {wish.count} would not be an increase."
            )
        factor = len(topic.partitions[0].replicas)
        if wish.assignments is None:
            return topic, self._placed(image, topic.partitions, count=additional, factor=factor, room=room)
        if len(wish.assignments) != additional:
            raise InvalidReplicaAssignment(
                f"Attempted to add {additional} additional partition(s), but {len(wish.assignments)} assignment(s) "
                "were specified."
            )
        _check_room(additional, room)
        return topic, _assigned(image, dict(enumerate(wish.assignments, current)), factor)


def _overrides(configs: Mapping[str, str | None]) -> dict[str, str]:
    missing = sorted(key for key, value in configs.items() if value is None)
    if missing:
        raise InvalidConfig(f"Null value not supported for topic configs: {','.join(missing)}")
    return {key: value for key, value in configs.items() if value is not None}


def _with_one_replica(topic: NewTopic) -> NewTopic:
    """The diskless topic with one replica, the broker that clients are sent to: object storage keeps its records."""
    factor = max((len(replicas) for replicas in topic.assignments.values()), default=topic.replication_factor)
    if factor > 1:
        raise InvalidReplicationFactor(
            f"Diskless topic {topic.name} has one replica, not {factor}: its records are in object storage, which has "
            f"copies of its own. {_WRITE_INSTEAD}."
        )
    return topic if topic.assignments or factor != -1 else replace(topic, replication_factor=1)


def _too_many_replicas(topic: NewTopic, factor: int, brokers: int) -> str:
    instead = (
        f"Start more brokers, or set default.replication.factor={brokers} on them."
        if topic.replication_factor == -1
        else f"Start more brokers. {_WRITE_INSTEAD}."
    )
    return (
        f"Topic {topic.name} cannot have {factor} replicas, because only {brokers} broker(s) are registered: each "
        f"replica of a partition is on a broker of its own. {instead}"
    )


def _check_level(image: MetadataImage, name: str, partitions: Sequence[PartitionImage]) -> None:
    """Brokers of an earlier release do not copy what others lead."""
    if not may_replicate(image) and any(len(partition.replicas) > 1 for partition in partitions):
        level = finalized_level(image, METADATA_VERSION)
        raise InvalidReplicationFactor(
            f"Topic {name} cannot have more than one replica while {METADATA_VERSION} of this cluster is {level}. When "
            f"all brokers have this release: kafka-features upgrade --feature {METADATA_VERSION}={REPLICATED}."
        )


def _check_one_replica(topic: NewTopic, partitions: Sequence[PartitionImage]) -> None:
    """A tiered topic has one replica: followers cannot take over from remote storage yet."""
    factor = max(len(partition.replicas) for partition in partitions)
    if factor > 1:
        by_default = topic.replication_factor == -1 and not topic.assignments
        asked = f"{factor} by default.replication.factor" if by_default else str(factor)
        raise InvalidReplicationFactor(
            f"Tiered topic {topic.name} has one replica in this version, not {asked}: followers cannot read remote "
            "storage yet. Write 1 as its replication factor, or create it without remote.storage.enable."
        )


def _check_room(count: int, room: int) -> None:
    if count > room:
        raise PolicyViolation(
            f"Excessively large number of partitions per request: at most {MAX_PARTITIONS_PER_REQUEST} can be "
            "created at a time."
        )


def _assigned_topic(image: MetadataImage, topic: NewTopic, room: int) -> tuple[PartitionImage, ...]:
    if topic.replication_factor != -1:
        raise InvalidRequest("A manual partition assignment was specified, but replication factor was not set to -1.")
    if topic.num_partitions != -1:
        raise InvalidRequest("A manual partition assignment was specified, but numPartitions was not set to -1.")
    if sorted(topic.assignments) != list(range(len(topic.assignments))):
        raise InvalidReplicaAssignment("partitions should be a consecutive 0-based integer sequence")
    _check_room(len(topic.assignments), room)
    return _assigned(image, topic.assignments, None)


def _assigned(
    image: MetadataImage, assignments: Mapping[int, Sequence[int]], factor: int | None
) -> tuple[PartitionImage, ...]:
    partitions = []
    for number in sorted(assignments):
        replicas = tuple(assignments[number])
        _check_assignment(image, replicas, factor)
        factor = len(replicas)
        if not any(image.is_active(node) for node in replicas):
            raise InvalidReplicaAssignment(
                f"All brokers specified in the manual partition assignment for partition {number} "
                "are fenced or in controlled shutdown."
            )
        partitions.append(_new_partition(image, number, replicas))
    return tuple(partitions)


def _check_assignment(image: MetadataImage, replicas: tuple[int, ...], factor: int | None) -> None:
    if not replicas:
        raise InvalidReplicaAssignment("The manual partition assignment includes an empty replica list.")
    for node in replicas:
        if node not in image.brokers:
            raise InvalidReplicaAssignment(
                f"The manual partition assignment includes broker {node}, but no such broker is registered."
            )
        if replicas.count(node) > 1:
            raise InvalidReplicaAssignment(
                f"The manual partition assignment includes the broker {node} more than once."
            )
    if factor is not None and factor != len(replicas):
        raise InvalidReplicaAssignment(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {factor} replica(s)."
        )


def _new_partition(image: MetadataImage, number: int, replicas: tuple[int, ...]) -> PartitionImage:
    isr = tuple(node for node in replicas if image.is_active(node))
    return PartitionImage(number, replicas, isr, isr[0], 0, 0)


def _partition_record(topic_id: uuid.UUID, partition: PartitionImage) -> PartitionRecord:
    return PartitionRecord(
        topic_id=topic_id,
        partition=partition.partition,
        replicas=partition.replicas,
        isr=partition.isr,
        leader=partition.leader,
    )


def _id_of(image: MetadataImage, topic: str | uuid.UUID) -> str | uuid.UUID:
    """A name and an id of the same topic are the same topic; an unknown name stands for itself."""
    found = image.topics.get(topic) if isinstance(topic, str) else None
    return topic if found is None else found.topic_id
