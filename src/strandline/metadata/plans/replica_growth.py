"""Internal topics that were created when there were few brokers get more replicas when there are more. Pure.

By level: what is missing follows from the image and the settings. New replicas go to the end of the list, so that the
preferred leader stays; they are not in sync, and join the in-sync set when they have the records. The topic's
`min.insync.replicas` follows when they have joined in every partition: before, it would stop the coordinators while
their logs are copied. Not here: topics of users, whose number of replicas is theirs to choose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from strandline.metadata.image import BrokerImage, ConfigResource, ConfigResourceType, MetadataImage, TopicImage
from strandline.metadata.plans.internal_topics import possible_factor, wanted_replication
from strandline.metadata.plans.rules import MIN_INSYNC_REPLICAS, ConfigRules
from strandline.metadata.records import ConfigRecord, MetadataRecord, PartitionChangeRecord


class ReplicaGrowth:
    """Plans the replicas that internal topics lack."""

    def __init__(self, rules: ConfigRules) -> None:
        self._rules = rules

    def plan(self, image: MetadataImage) -> list[MetadataRecord]:
        """The records that give internal topics the replicas they lack; none if they have what is possible."""
        records: list[MetadataRecord] = []
        for name, wanted in wanted_replication(self._rules.settings(image)).items():
            topic = image.topics.get(name)
            if topic is None:
                continue
            records += _grown(image, topic, possible_factor(wanted.factor, image))
            if wanted.min_insync_replicas is not None:
                records += self._raised(image, topic, min(wanted.min_insync_replicas, wanted.factor))
        return records

    def _raised(self, image: MetadataImage, topic: TopicImage, least: int) -> list[ConfigRecord]:
        """A lower `min.insync.replicas` was right for fewer replicas. The setting of the brokers says what is."""
        if self._rules.topic_config(image, topic.name).min_insync_replicas >= least:
            return []
        if any(len(partition.isr) < least for partition in topic.partitions):
            return []
        resource = ConfigResource(ConfigResourceType.TOPIC, topic.name)
        return [ConfigRecord(resource=resource, key=MIN_INSYNC_REPLICAS, value=str(least))]


def _grown(image: MetadataImage, topic: TopicImage, factor: int) -> list[PartitionChangeRecord]:
    """Partitions with fewer replicas get those they lack. One without a leader waits: nothing could be copied."""
    lacking = [one for one in topic.partitions if len(one.replicas) < factor and one.has_leader]
    if not lacking:
        return []
    held = Counter(node_id for one in topic.partitions for node_id in one.replicas)
    by_replicas: dict[tuple[int, ...], list[int]] = {}
    for one in lacking:
        replicas = _extended(image, one.replicas, factor, held)
        by_replicas.setdefault(replicas, []).append(one.partition)
    return [
        PartitionChangeRecord(partitions=((topic.topic_id, tuple(numbers)),), replicas=replicas)
        for replicas, numbers in by_replicas.items()
    ]


def _extended(image: MetadataImage, replicas: Sequence[int], factor: int, held: Counter[int]) -> tuple[int, ...]:
    """These replicas and further ones: in racks without one first, then on the brokers that hold the fewest."""
    extended = list(replicas)
    while len(extended) < factor:
        racks = {image.brokers[node_id].rack for node_id in extended if node_id in image.brokers} - {None}
        candidates = _without(image.brokers.values(), extended)
        chosen = min(candidates, key=lambda broker: (broker.rack in racks, held[broker.node_id], broker.node_id))
        held[chosen.node_id] += 1
        extended.append(chosen.node_id)
    return tuple(extended)


def _without(brokers: Iterable[BrokerImage], replicas: Sequence[int]) -> list[BrokerImage]:
    return [broker for broker in brokers if broker.is_active and broker.node_id not in replicas]
