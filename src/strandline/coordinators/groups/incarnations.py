"""Whether a committed offset belongs to the topic that has its name now.

A topic that is deleted and created again has the same name and other records. Offsets are stored by name, so each
keeps the id of its topic, and counts only while the metadata has a topic of this name with this id. That is asked when
the offset is read, by level: a coordinator that was away while its topics were deleted answers right from the start,
and deletes what is left of them when it has loaded the partition and at every later look.

The metadata is never behind the offsets here. A coordinator stores ids of the image that it has while it leads the
partition, and its successor leads by a later record of the same metadata log. So a topic that the image does not have
is gone, and not still to come.

Kafka stores offsets of transactions without an id, and older versions store all of them so. They count for the topic
that has the name when the partition is loaded, and are stored again with its id, so that they end with it.
"""

from __future__ import annotations

from strandline.coordinators.groups.schemas import OffsetKey, OffsetValue
from strandline.metadata import Images, MetadataImage
from strandline.model import ZERO_UUID


class TopicIncarnations:
    """Compares committed offsets with the topics of the newest image."""

    def __init__(self, images: Images) -> None:
        self._images = images

    @property
    def image(self) -> MetadataImage:
        """The newest image."""
        return self._images.image

    def is_current(self, topic: str, value: OffsetValue) -> bool:
        """Whether the offset belongs to the topic that has this name now."""
        known = self._images.image.topics.get(topic)
        if known is None:
            return False
        topic_id = value.topic_id
        # Nearly always the same object: comparing ids costs a call.
        return topic_id is known.topic_id or topic_id == known.topic_id or topic_id == ZERO_UUID

    def with_id(self, key: OffsetKey, value: OffsetValue) -> OffsetValue | None:
        """The value with the id of its topic; None if it has one, or if there is no such topic."""
        known = self._images.image.topics.get(key.topic)
        return None if known is None or value.topic_id != ZERO_UUID else value._replace(topic_id=known.topic_id)
