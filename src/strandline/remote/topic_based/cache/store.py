"""The caches of all partitions whose metadata is in one metadata partition. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple
from uuid import UUID

from strandline.model import Offset, TopicIdPartition
from strandline.remote.topic_based.cache.partition import CacheImage, RemoteLogMetadataCache
from strandline.remote.topic_based.records import RemoteLogMetadata, partition_of


class StoreImage(NamedTuple):
    """A store after the records before `next_offset`, and the topic that they are from."""

    topic_id: UUID
    topic_partitions: int
    next_offset: Offset
    caches: tuple[CacheImage, ...]


class RemotePartitionMetadataStore:
    """A cache for each partition with metadata.

    A partition whose deletion is over is dropped, as if it had never existed. This depends only on the records and
    their order, so all brokers that have read the same records have the same caches, from a snapshot or from the
    beginning. Later records of such a partition count as those of a new one: moves that need an earlier state are
    refused; a new copy or deletion adds the partition again, and it is deleted again, like that of any deleted topic.
    """

    def __init__(self, images: Iterable[CacheImage] = ()) -> None:
        caches = (RemoteLogMetadataCache.restored(image) for image in images)
        self._caches = {cache.partition: cache for cache in caches if not cache.is_deleted}

    def apply(self, message: RemoteLogMetadata) -> None:
        """Apply a record. Raises ValueError or RemoteResourceNotFound for an illegal move, and changes nothing then."""
        partition = partition_of(message)
        cache = self._caches.get(partition)
        if cache is None:
            cache = RemoteLogMetadataCache(partition)
        cache.apply(message)
        if cache.is_deleted:
            self._caches.pop(partition, None)
        else:
            self._caches[partition] = cache

    def check(self, message: RemoteLogMetadata) -> None:
        """Raise what `apply` would raise."""
        self.cache(partition_of(message)).check(message)

    def cache(self, partition: TopicIdPartition) -> RemoteLogMetadataCache:
        """The cache of a partition; an empty one if it has no metadata."""
        cache = self._caches.get(partition)
        return RemoteLogMetadataCache(partition) if cache is None else cache

    def partitions(self) -> Collection[TopicIdPartition]:
        """All partitions with metadata."""
        return self._caches.keys()

    def segment_count(self) -> int:
        """Segments of all partitions."""
        return sum(map(len, self._caches.values()))

    def images(self) -> tuple[CacheImage, ...]:
        """Copies that do not change."""
        return tuple(cache.image() for cache in self._caches.values())
