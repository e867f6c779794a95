"""The topics of the cluster as groups look at them: ids, numbers of partitions, and a hash that tells changes.

A group keeps one hash of all its topics. When it differs from the hash of the newest image, the group needs a new
assignment. The hash is Kafka's, so a group that moves between the two brokers is not rebalanced for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import Struct
from uuid import UUID

import xxhash

from strandline.metadata import BrokerImage, MetadataImage, TopicImage, TopicMap

_LITTLE_I32 = Struct("<i")
_LITTLE_U64 = Struct("<Q")
_SIGN_BIT = 1 << 63


class TopicHashes:
    """Hashes by topic, kept while neither the topic nor the brokers change. Images share what did not change."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[TopicImage, Mapping[int, BrokerImage], int]] = {}

    def of_topics(self, names: Iterable[str], image: MetadataImage) -> int:
        """The hash of those of the topics that exist; 0 if none does."""
        digest = xxhash.xxh3_64()
        has_topics = False
        for name in sorted(names):
            topic = image.topics.get(name)
            if topic is not None:
                has_topics = True
                digest.update(_LITTLE_U64.pack(self._of_topic(topic, image.brokers)))
        value = digest.intdigest()
        return (value - 2 * _SIGN_BIT if value >= _SIGN_BIT else value) if has_topics else 0

    def _of_topic(self, topic: TopicImage, brokers: Mapping[int, BrokerImage]) -> int:
        known = self._known.get(topic.name)
        if known is not None and known[0] is topic and known[1] is brokers:
            return known[2]
        value = topic_hash(topic, brokers)
        self._known[topic.name] = (topic, brokers, value)
        return value


def topic_hash(topic: TopicImage, brokers: Mapping[int, BrokerImage]) -> int:
    """Id, name, number of partitions, and the racks of each partition's replicas."""
    high, low = topic.topic_id.int >> 64, topic.topic_id.int & (2 * _SIGN_BIT - 1)
    parts = [b"\x00", _LITTLE_U64.pack(high), _LITTLE_U64.pack(low), _text(topic.name)]
    parts.append(_LITTLE_I32.pack(len(topic.partitions)))
    for partition in topic.partitions:
        parts.append(_LITTLE_I32.pack(partition.partition))
        found = (brokers.get(node_id) for node_id in partition.replicas)
        for rack in sorted(broker.rack for broker in found if broker is not None and broker.rack is not None):
            parts += [_LITTLE_I32.pack(len(rack.encode("utf-16-le")) // 2), _text(rack)]
    return xxhash.xxh3_64(b"".join(parts)).intdigest()


def _text(value: str) -> bytes:
    """As Java's hash streams take a string: UTF-16 units, then their number."""
    units = value.encode("utf-16-le")
    return units + _LITTLE_I32.pack(len(units) // 2)


class TopicNames:
    """The set of all topic names. The same object as long as no topic is created or deleted."""

    def __init__(self) -> None:
        self._since: object = None
        self._names: frozenset[str] = frozenset()

    def of(self, image: MetadataImage) -> frozenset[str]:
        since = image.topics.names_since if isinstance(image.topics, TopicMap) else image.topics
        if self._since is not since:
            names = frozenset(image.topics)
            self._since = since
            if names != self._names:
                self._names = names
        return self._names


def ids_of(names: Iterable[str], image: MetadataImage) -> frozenset[UUID]:
    """The ids of those of the topics that exist."""
    return frozenset(image.topics[name].topic_id for name in names if name in image.topics)


def partition_counts(topic_ids: Iterable[UUID], image: MetadataImage) -> Mapping[UUID, int]:
    return {topic_id: len(image.topics_by_id[topic_id].partitions) for topic_id in topic_ids}
