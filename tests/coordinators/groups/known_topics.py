"""The topics that a coordinator under test finds in the metadata."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Mapping
from dataclasses import replace

from strandline.metadata.comparison import delta_between
from strandline.metadata.delta import MetadataDelta
from strandline.metadata.image import MetadataImage, TopicImage

NAMES = ("orders", "payments", "other", "old", "a", "b")


class KnownTopics:
    """An image whose topics a test creates and deletes. Each creation gives another id."""

    def __init__(self, *names: str) -> None:
        self._numbers = itertools.count(1001)
        self.image = MetadataImage()
        for name in names or NAMES:
            self.create(name)

    def create(self, name: str, topic_id: uuid.UUID | None = None) -> MetadataDelta:
        topic = TopicImage(name, topic_id or uuid.UUID(int=next(self._numbers)), ())
        return self._become({**self.image.topics, name: topic})

    def delete(self, name: str) -> MetadataDelta:
        return self._become({known: topic for known, topic in self.image.topics.items() if known != name})

    def create_again(self, name: str) -> MetadataDelta:
        """Deleted and created, and the coordinator hears of both at once."""
        return self.create(name)

    def id_of(self, name: str) -> uuid.UUID:
        return self.image.topics[name].topic_id

    def _become(self, topics: Mapping[str, TopicImage]) -> MetadataDelta:
        before = self.image
        by_id = {topic.topic_id: topic for topic in topics.values()}
        self.image = replace(before, topics=topics, topics_by_id=by_id)
        return delta_between(before, self.image)
