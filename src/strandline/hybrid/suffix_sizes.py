"""How many bytes of each partition are diskless although older ones are not."""

from __future__ import annotations

from strandline.model import TopicIdPartition


class SuffixSizes:
    """The size of the diskless part of partitions that began as classic ones, whether it is converted or not.

    Kept by whoever asks the control plane; read by the expiration of remote segments, which owns the retention of such
    a partition as long as it has something else, and counts both parts for retention.bytes.
    """

    def __init__(self) -> None:
        self._bytes: dict[TopicIdPartition, int] = {}
        self._converted: dict[TopicIdPartition, int] = {}

    def __call__(self, partition: TopicIdPartition) -> int:
        """The size as it was last heard of; 0 of a partition without a diskless part."""
        return self._bytes.get(partition, 0) + self._converted.get(partition, 0)

    def set(self, partition: TopicIdPartition, size: int) -> None:
        """The diskless part has this many bytes now."""
        self._bytes[partition] = size

    def forget(self, partition: TopicIdPartition) -> None:
        """The partition is gone, led by another broker, or all of it is diskless."""
        self._bytes.pop(partition, None)

    def set_converted(self, partition: TopicIdPartition, size: int) -> None:
        """So many bytes of the diskless part are in remote segments now, besides those of `set`."""
        self._converted[partition] = size

    def forget_converted(self, partition: TopicIdPartition) -> None:
        """The partition is gone, led by another broker, or nothing of it is converted."""
        self._converted.pop(partition, None)
