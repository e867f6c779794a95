"""The caches of all partitions that one metadata partition describes. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple
from uuid import UUID

from strandline.model import Offset, TopicIdPartition
from strandline.remote.topic_based.cache.partition import CacheImage, RemoteLogMetadataCache
from strandline.remote.topic_based.records import RemoteLogMetadata, partition_of


class StoreImage(NamedTuple):
    """A store as it was when the records before `next_offset` had been read, and of which topic they were."""

    topic_id: UUID
    topic_partitions: int
    next_offset: Offset
    caches: tuple[CacheImage, ...]


class RemotePartitionMetadataStore:
    """A cache for each partition of which anything is known.

    A partition whose deletion is over is forgotten, as if it had never been. This depends on nothing but the records
    and their order, so whoever has read the same, from wherever he began, knows the same. What comes later for such a
    partition is taken as for a new one: moves that need an earlier one are refused, a deletion or a copy that begins
    makes the partition known again, and it is deleted again like that of any topic that is gone.
    """

    def __init__(self, images: Iterable[CacheImage] = ()) -> None:
        caches = (RemoteLogMetadataCache.restored(image) for image in images)
        self._caches = {cache.partition: cache for cache in caches if not cache.is_deleted}

    def apply(self, message: RemoteLogMetadata) -> None:
        """Take a record. Raises ValueError or RemoteResourceNotFound if the move is illegal; then nothing changes."""
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
        """What is known of a partition; an empty cache if that is nothing."""
        cache = self._caches.get(partition)
        return RemoteLogMetadataCache(partition) if cache is None else cache

    def partitions(self) -> Collection[TopicIdPartition]:
        """All partitions of which anything is known."""
        return self._caches.keys()

    def segment_count(self) -> int:
        """Segments of all partitions."""
        return sum(map(len, self._caches.values()))

    def images(self) -> tuple[CacheImage, ...]:
        """Copies that do not change any more."""
        return tuple(cache.image() for cache in self._caches.values())
