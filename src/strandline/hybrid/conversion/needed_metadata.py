"""The remote log metadata that the conversion of led partitions needs, from its first need to its last."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from strandline.clock import Clock
from strandline.errors import KafkaStorageError
from strandline.hybrid.remote.subscriptions import MetadataUser
from strandline.hybrid.remote.topics import TieredTopics
from strandline.model import TopicIdPartition

if TYPE_CHECKING:  # a broker without tiered storage does not load it
    from strandline.hybrid.remote.tier import RemoteTier

_READY_SECONDS: Final = 3.0
# The metadata manager may be a plugin, which can be asked whether it is ready, but does not say when it is. Only the
# first request about a partition waits.
_LOOK_SECONDS: Final = 0.005


class ConvertedMetadata:
    """Subscribes to the metadata of partitions while requests are about them, and while something is converted."""

    def __init__(self, tiered: TieredTopics, clock: Clock) -> None:
        self._tiered, self._clock = tiered, clock
        self._subscribed: set[TopicIdPartition] = set()
        self._requested = Counter[TopicIdPartition]()
        """Requests of the pipeline that run."""

    def open(self, partition: TopicIdPartition) -> RemoteTier:
        """Tiered storage, with the metadata of a partition that is led here. Raises KafkaStorageError."""
        tier = self._tiered.storage.opened(
            lambda: (
                f"Batches of {partition.topic_partition} cannot be converted: this broker has not opened remote "
                "storage. remote.log.storage.system.enable has to be true."
            )
        )
        self.subscribe(tier, partition)
        if not tier.metadata.is_ready(partition):
            raise KafkaStorageError(f"The remote log metadata of {partition.topic_partition} has not been read yet.")
        return tier

    @asynccontextmanager
    async def ready(self, partition: TopicIdPartition) -> AsyncIterator[RemoteTier]:
        """The same for a request, which waits for a moment: the metadata is read when it is first needed."""
        self._requested[partition] += 1
        try:
            yield await self._wait_ready(partition)
        finally:
            self._requested[partition] -= 1
            if not self._requested[partition]:
                del self._requested[partition]

    async def _wait_ready(self, partition: TopicIdPartition) -> RemoteTier:
        until = self._clock.monotonic() + _READY_SECONDS
        while True:
            try:
                return self.open(partition)
            except KafkaStorageError:
                if not self._tiered.storage.is_open or self._clock.monotonic() >= until:
                    raise
            await self._clock.sleep(_LOOK_SECONDS)

    def subscribe(self, tier: RemoteTier, partition: TopicIdPartition) -> None:
        """The metadata of a led partition is needed from now on. May be repeated."""
        if partition not in self._subscribed:
            self._subscribed.add(partition)
            tier.on_need()
            tier.subscriptions.add(partition, MetadataUser.CONVERTED_LEADER)

    def unsubscribe_others(self, tier: RemoteTier, needed: Collection[TopicIdPartition]) -> None:
        """Partitions that another broker leads, or that have nothing converted, unless a request is about them."""
        for partition in self._subscribed.difference(needed, self._requested):
            self._subscribed.discard(partition)
            tier.subscriptions.remove(partition, MetadataUser.CONVERTED_LEADER)
