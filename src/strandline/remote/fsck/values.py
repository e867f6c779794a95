"""Options, findings and sources of a comparison of remote storage. No I/O."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from uuid import UUID

from strandline.model import LeaderEpoch, Offset, TopicIdPartition, TopicPartition
from strandline.objects.comparing import ComparisonReport
from strandline.remote.topic_based.topic import MetadataTopicRecord


class RemoteFindingKind(enum.StrEnum):
    """What can be wrong."""

    MISSING = "missing"
    """An object of a copied segment does not exist."""
    DAMAGED = "damaged"
    """An object, or a record of remote log metadata, is damaged."""
    HOLE = "hole"
    """Offsets of a log that are neither local nor in a remote segment."""
    STUCK = "stuck"
    """A copy or a deletion that began long ago and has not ended."""
    ORPHAN = "orphan"
    """Objects of a known partition that no metadata refers to, too old to belong to an in-flight copy."""
    UNKNOWN = "unknown"
    """Objects of a partition without metadata. They may belong to another cluster: never touched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFsckOptions:
    """How thoroughly to look, and whether to repair."""

    grace_ms: int
    """Objects without metadata are orphans when they are older than this."""
    stuck_ms: int
    """Copies and deletions are stuck when they began longer ago than this."""
    deep: bool = False
    """Read every byte: checksums and offsets of batches, and all indexes."""
    repair: bool = False
    """Delete orphans."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFsckReport(ComparisonReport):
    """What was compared, and the findings. The key of a finding is that of an object, that of a segment up to the dot,
    or the name of a partition.
    """

    segments: int
    """Segments in the metadata that are not deleted."""
    unbounded_partitions: int
    """Tiered partitions whose log start is not available: they were not checked for holes."""

    @property
    def is_complete(self) -> bool:
        return self.unbounded_partitions == 0


class TieredLogBounds(NamedTuple):
    """Where a log begins."""

    log_start: Offset | None
    """None if it is not known: then the log begins with its first remote segment."""
    local_log_start: Offset
    epochs: Sequence[tuple[LeaderEpoch, Offset]] | None = None
    """The leader epochs of the log, ascending; None if they are not known here."""
    is_exact: bool = True
    """False if the log start may have been higher: a killed broker does not write its last log start. The next leader
    then begins with the first remote segment.
    """
    converted: tuple[Offset, Offset] | None = None
    """Where the offsets begin and end that the tiering pipeline has converted: they are remote, and never local."""


class ClusterState(NamedTuple):
    """The topics and logs of the cluster."""

    topics: Mapping[UUID, int]
    """Topic ids, and how many partitions each has."""
    bounds: Mapping[TopicPartition, TieredLogBounds]
    """Partitions whose log is available."""
    uploads: Collection[UUID] = frozenset()
    """Ids of segments that the tiering pipeline is at work on: they are not stuck, however long that takes."""

    def has(self, partition: TopicIdPartition) -> bool:
        """Whether the partition exists."""
        return partition.partition < self.topics.get(partition.topic_id, 0)


class FsckSource(Protocol):
    """Where metadata, topics and logs are read from. All calls block: they are made in a thread."""

    @property
    def metadata_partitions(self) -> int:
        """How many partitions the metadata topic has; 0 if there is none."""

    def records(self, partition: int, from_offset: Offset) -> Iterator[MetadataTopicRecord]:
        """The records of a metadata partition that are there now, from an offset on."""

    def state(self) -> ClusterState:
        """The topics and logs as they are now."""
