"""The difference of two images. Pure, and in short steps: there may be a million topics."""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Final, TypeVar

from strandline.metadata.bucket_map import BucketEditor, BucketMap
from strandline.metadata.delta import MetadataDelta
from strandline.metadata.image import ConfigResource, MetadataImage, Overrides, PartitionImage, TopicImage
from strandline.model import TopicPartition
from strandline.tasks import in_one_go

T = TypeVar("T")

COMPARED_PER_STEP: Final = 250  # topics, or resources with settings, in one turn of the event loop


def delta_between(old: MetadataImage, new: MetadataImage) -> MetadataDelta:
    """The difference of two images whose records are not available (a snapshot was loaded)."""
    return in_one_go(compared_in_steps(old, new))


def compared_in_steps(old: MetadataImage, new: MetadataImage) -> Generator[None, None, MetadataDelta]:
    """As `delta_between`. Yields after some of the topics: there may be a million."""
    changed_topics, changed_partitions = yield from _changed_topics(old, new)
    return MetadataDelta(
        old=old,
        new=new,
        changed_topics=changed_topics,
        deleted_topics=(yield from _deleted_topics(old, new)),
        changed_partitions=changed_partitions,
        changed_brokers={
            node_id: new.brokers.get(node_id)
            for node_id in sorted(old.brokers.keys() | new.brokers.keys())
            if old.brokers.get(node_id) != new.brokers.get(node_id)
        },
        changed_configs=(yield from _changed_configs(old, new)),
    )


# These make bucket maps: a dict of a million entries would be copied in one turn each time that it becomes too small.


def _changed_topics(
    old: MetadataImage, new: MetadataImage
) -> Generator[None, None, tuple[Mapping[str, TopicImage], Mapping[TopicPartition, PartitionImage]]]:
    topics: BucketEditor[str, TopicImage] = BucketEditor(BucketMap())
    partitions: BucketEditor[TopicPartition, PartitionImage] = BucketEditor(BucketMap())
    for some in _pieces(new.topics_by_id.values()):
        for topic in some:
            before = old.topics_by_id.get(topic.topic_id)
            if before == topic:
                continue
            topics.put(topic.name, topic)
            for partition in topic.partitions:
                if before is None or before.partition(partition.partition) != partition:
                    partitions.put(TopicPartition(topic.name, partition.partition), partition)
        yield
    return topics.build(), partitions.build()


def _deleted_topics(old: MetadataImage, new: MetadataImage) -> Generator[None, None, Mapping[uuid.UUID, TopicImage]]:
    deleted: BucketEditor[uuid.UUID, TopicImage] = BucketEditor(BucketMap())
    for some in _pieces(old.topics_by_id.values()):
        for topic in some:
            if topic.topic_id not in new.topics_by_id:
                deleted.put(topic.topic_id, topic)
        yield
    return deleted.build()


def _changed_configs(
    old: MetadataImage, new: MetadataImage
) -> Generator[None, None, Mapping[ConfigResource, Overrides]]:
    changed: BucketEditor[ConfigResource, Overrides] = BucketEditor(BucketMap())
    for some in _pieces(chain(old.configs, new.configs)):
        for resource in some:
            overrides = new.overrides(resource)
            if old.overrides(resource) != overrides:
                changed.put(resource, overrides)
        yield
    return changed.build()


def _pieces(values: Iterable[T]) -> Iterator[Sequence[T]]:
    rest = iter(values)
    while some := list(islice(rest, COMPARED_PER_STEP)):
        yield some
