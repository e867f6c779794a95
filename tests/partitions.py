"""Partitions with a topic id, for tests that do not care about names."""

from __future__ import annotations

from uuid import UUID

from strandline.model import TopicIdPartition, TopicPartition


def id_partition(topic_id: UUID, partition: int) -> TopicIdPartition:
    """A partition whose topic has a name made from its id."""
    return TopicIdPartition(topic_id, TopicPartition(f"topic-{topic_id.int:x}", partition))
