"""Topics with partitions, as groups under test find them in the metadata."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Mapping
from dataclasses import replace

from strandline.coordinators.groups.modern.partitions import Partitions
from strandline.metadata.comparison import delta_between
from strandline.metadata.delta import MetadataDelta
from strandline.metadata.image import MetadataImage, PartitionImage, TopicImage


def topic_image(name: str, partitions: int, topic_id: uuid.UUID) -> TopicImage:
    return TopicImage(
        name,
        topic_id,
        tuple(
            PartitionImage(partition=at, replicas=(0,), isr=(0,), leader=0, leader_epoch=0, partition_epoch=0)
            for at in range(partitions)
        ),
    )


class PartitionedTopics:
    """An image whose topics a test creates, enlarges and deletes."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._numbers = itertools.count(1)
        self.image = MetadataImage()
        for name, count in counts.items():
            self.create(name, count)

    def create(self, name: str, partitions: int) -> MetadataDelta:
        return self.put(topic_image(name, partitions, uuid.UUID(int=next(self._numbers))))

    def enlarge(self, name: str, partitions: int) -> MetadataDelta:
        return self.put(topic_image(name, partitions, self.id_of(name)))

    def put(self, topic: TopicImage) -> MetadataDelta:
        return self._become({**self.image.topics, topic.name: topic})

    def delete(self, name: str) -> MetadataDelta:
        return self._become({known: topic for known, topic in self.image.topics.items() if known != name})

    def id_of(self, name: str) -> uuid.UUID:
        return self.image.topics[name].topic_id

    def partitions(self, **numbers: set[int]) -> Partitions:
        return {self.id_of(name): frozenset(of_topic) for name, of_topic in numbers.items()}

    def all_of(self, *names: str) -> Partitions:
        """All partitions of these topics."""
        found = (self.image.topics[name] for name in names)
        return {topic.topic_id: frozenset(range(len(topic.partitions))) for topic in found}

    def _become(self, topics: Mapping[str, TopicImage]) -> MetadataDelta:
        before = self.image
        by_id = {topic.topic_id: topic for topic in topics.values()}
        self.image = replace(before, topics=topics, topics_by_id=by_id, offset=before.offset + 1)
        return delta_between(before, self.image)
