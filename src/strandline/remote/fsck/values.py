"""What a comparison of remote storage is told, asks for and finds. No I/O."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from uuid import UUID

from strandline.model import LeaderEpoch, Offset, TopicIdPartition, TopicPartition
from strandline.objects.comparing import ComparisonReport
from strandline.remote.topic_based.topic import MetadataTopicRecord


class RemoteFindingKind(enum.StrEnum):
    """What can be wrong."""

    MISSING = "missing"
    """A segment was copied, and an object of it is not there."""
    DAMAGED = "damaged"
    """An object, or a record of the description, is not what was written."""
    HOLE = "hole"
    """Offsets of a log that are neither on disk nor in a remote segment."""
    STUCK = "stuck"
    """A copy or a deletion that began long ago and has not ended."""
    ORPHAN = "orphan"
    """Objects of one of our partitions that no description refers to, too old to be on their way."""
    UNKNOWN = "unknown"
    """Objects of a partition of which the description has never heard. Perhaps somebody else's: never touched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFsckOptions:
    """How far to look, and what to do about it."""

    grace_ms: int
    """Objects that no description refers to are orphans when they are older than this."""
    stuck_ms: int
    """Copies and deletions are stuck when they began longer ago than this."""
    deep: bool = False
    """Read every byte: checksums and offsets of batches, and all indexes."""
    repair: bool = False
    """Delete orphans."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFsckReport(ComparisonReport):
    """What was compared, and what was found. Keys of findings are those of objects, of all objects of a segment up to
    the dot, or names of partitions.
    """

    segments: int
    """Segments in the description that are not deleted."""
    unbounded_partitions: int
    """Tiered partitions of which nobody could say where their logs begin: no holes were looked for."""


class TieredLogBounds(NamedTuple):
    """Where a log begins."""

    log_start: Offset | None
    """None if nobody has kept it: then it begins with what there is."""
    local_log_start: Offset
    epochs: Sequence[tuple[LeaderEpoch, Offset]] | None = None
    """The leader epochs of the log, ascending; None if they are not known here."""
    is_exact: bool = True
    """False if the log start may have been higher: a broker that was killed had no time to write it down. The next one
    begins with the first remote segment then.
    """


class ClusterState(NamedTuple):
    """The topics and logs that there are."""

    topics: Mapping[UUID, int]
    """Topic ids, and how many partitions each has."""
    bounds: Mapping[TopicPartition, TieredLogBounds]
    """What has a log that could be asked."""

    def has(self, partition: TopicIdPartition) -> bool:
        """Whether the partition exists."""
        return partition.partition < self.topics.get(partition.topic_id, 0)


class FsckSource(Protocol):
    """Where the description, the topics and the logs are read from. All calls block: they are made in a thread."""

    @property
    def metadata_partitions(self) -> int:
        """How many partitions the metadata topic has; 0 if there is none."""

    def records(self, partition: int, from_offset: Offset) -> Iterator[MetadataTopicRecord]:
        """The records of a metadata partition that are there now, from an offset on."""

    def state(self) -> ClusterState:
        """The topics and logs as they are now."""
