"""How many bytes of each partition are diskless although older ones are not."""

from __future__ import annotations

from typing import NamedTuple

from strandline.model import Offset, TopicIdPartition


class _SizeAtBoundary(NamedTuple):
    """A size, and the read boundary of the partition when it was found out."""

    size: int
    read_boundary: Offset


class SuffixSizes:
    """The size of the diskless part of partitions that began as classic ones, whether it is converted or not.

    Set by the components that ask the control plane; read by the expiration of remote segments, which owns the
    retention of such a partition as long as it has something else, and counts both parts for retention.bytes. Never
    more than there is, or records would be deleted too early: while a segment is committed, its bytes are known as rows
    and as converted.
    """

    def __init__(self) -> None:
        self._unconverted: dict[TopicIdPartition, int] = {}
        self._rows: dict[TopicIdPartition, _SizeAtBoundary] = {}
        self._converted: dict[TopicIdPartition, _SizeAtBoundary] = {}

    def __call__(self, partition: TopicIdPartition) -> int:
        """The size as it was last heard of; 0 of a partition without a diskless part."""
        rows, converted = self._rows.get(partition), self._converted.get(partition)
        if rows is None or converted is None:
            return self._unconverted.get(partition, 0)
        if rows.read_boundary != converted.read_boundary:
            return max(rows.size, converted.size)
        return rows.size + converted.size

    def set(self, partition: TopicIdPartition, size: int) -> None:
        """The diskless part has this many bytes now. Counts as long as nothing of it is converted."""
        self._unconverted[partition] = size

    def forget(self, partition: TopicIdPartition) -> None:
        """The partition is gone, led by another broker, or all of it is diskless."""
        self._unconverted.pop(partition, None)

    def set_rows(self, partition: TopicIdPartition, size: int, *, read_boundary: Offset) -> None:
        """So many bytes of a partition with converted segments are in rows from the read boundary on."""
        self._rows[partition] = _SizeAtBoundary(size, read_boundary)

    def set_converted(self, partition: TopicIdPartition, size: int, *, read_boundary: Offset) -> None:
        """So many bytes of it are in segments up to the read boundary."""
        self._converted[partition] = _SizeAtBoundary(size, read_boundary)

    def forget_converted(self, partition: TopicIdPartition) -> None:
        """The partition is gone, led by another broker, or nothing of it is converted."""
        self._rows.pop(partition, None)
        self._converted.pop(partition, None)
