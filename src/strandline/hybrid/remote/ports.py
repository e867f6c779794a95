"""What other components ask of remote storage, whether it is open on this broker (`RemoteTier`) or not (`topics`).

A port for each kind of caller. Loads nothing of remote storage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias

from strandline.clock import Clock
from strandline.config import TierSettings
from strandline.health import HealthStatus
from strandline.hybrid.reading import FinalRead, PendingRead
from strandline.hybrid.remote.status import TieredStatus
from strandline.model import BrokerId, LeaderEpoch, Offset, TimestampMs, TopicIdPartition
from strandline.reads import FetchIsolation, FoundOffset, WholeLog
from strandline.remote.values import RemoteLogSegmentMetadata
from strandline.replication import Partition

if TYPE_CHECKING:  # a broker without remote storage does not load it
    from strandline.hybrid.remote.tier import RemoteTier
    from strandline.remote.manager import PartitionTierStatus, PrefixStatus

FindSegment: TypeAlias = Callable[[Offset], RemoteLogSegmentMetadata | None]
"""The segment that has an offset; None if there is none."""


class RemoteReads(Protocol):
    """What partitions read."""

    def read_now(
        self,
        replica: Partition,
        offset: Offset,
        max_bytes: int,
        *,
        isolation: FetchIsolation,
        min_one_message: bool,
        whole: WholeLog | None = None,
    ) -> FinalRead | PendingRead:
        """See `PartitionReads`. Raises KafkaStorageError if remote storage is not open.

        With `whole`, the replica has only the older part of a log: answers carry the offsets of the whole log, and an
        offset that no segment has is NotLeaderOrFollower.
        """

    async def offset_by_timestamp(
        self,
        replica: Partition,
        timestamp: TimestampMs,
        *,
        isolation: FetchIsolation,
        current_leader_epoch: LeaderEpoch,
        timeout_ms: int,
    ) -> FoundOffset | None:
        """The first record at or after a time among those in remote storage only; None if the local log has to say.

        Raises RequestTimedOut if it takes longer than the client or the setting allows.
        """

    async def offset_of_max_timestamp(
        self, replica: Partition, *, current_leader_epoch: LeaderEpoch, timeout_ms: int
    ) -> FoundOffset | None:
        """The first record with the largest timestamp among those in remote storage only; None if there is none.

        Raises RequestTimedOut as above.
        """


class RemoteHoldings(Protocol):
    """What remote storage has of partitions, for components that look after them. Without it there is nothing."""

    def prefix_status(self, replica: Partition, boundary: Offset) -> PrefixStatus | None:
        """How much of a partition below a boundary is in remote storage; None while that is not known here.

        Of very many segments it looks at some at a time: `tiered_high` goes on from question to question.
        """

    def copy_now(self, partition: TopicIdPartition) -> None:
        """Copy the closed segments of a led partition without waiting for the next round."""

    def finder(self, replica: Partition) -> FindSegment:
        """A function that finds the segments which belong to a log as it is now. It raises RemoteStorageError."""

    async def segments_of(self, partition: TopicIdPartition, clock: Clock) -> Sequence[RemoteLogSegmentMetadata]:
        """The segments of a partition by start offset; none while this broker has not read their metadata."""


class RemoteFigures(Protocol):
    """What operators are shown of remote storage."""

    @property
    def url(self) -> str:
        """Where segments are; empty without remote storage."""

    def remote_bytes(self, replica: Partition) -> int:
        """How many bytes a partition has in remote storage; 0 until its remote log metadata has been read."""

    def status(self) -> TieredStatus | None:
        """Its components now; None without remote storage."""

    async def partition_rows(self, led: Iterable[TopicIdPartition]) -> Sequence[PartitionTierStatus] | None:
        """Led partitions in detail, by number; None without remote storage. Looks at every segment."""

    def health(self) -> Sequence[HealthStatus]:
        """Of the store; nothing without remote storage."""

    def trouble_of(self, broker: BrokerId) -> str | None:
        """A sentence that says why this broker cannot use it now; None if it can."""


class TieredStorage(RemoteReads, RemoteHoldings, RemoteFigures, Protocol):
    """Remote storage as the components of a broker see it."""

    is_open: ClassVar[bool]
    """Whether this broker has it open: `topics.is_open_tier` says so to type checkers, too."""

    def opened(self, why: Callable[[], str]) -> RemoteTier:
        """The open storage. Raises KafkaStorageError with the sentence of `why` if it is not open."""

    def follow(self, settings: TierSettings) -> None:
        """Settings that may change while the broker runs may have changed."""
