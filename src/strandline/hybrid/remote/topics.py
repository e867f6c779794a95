"""Whether this broker has tiered storage open. Loads nothing of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, ClassVar, TypeGuard

from strandline.clock import Clock
from strandline.config import TierSettings
from strandline.errors import KafkaStorageError
from strandline.health import HealthStatus
from strandline.hybrid.reading import FinalRead, PendingRead
from strandline.hybrid.remote.ports import FindSegment, TieredStorage
from strandline.model import BrokerId, LeaderEpoch, Offset, TimestampMs, TopicIdPartition
from strandline.reads import FetchIsolation, FoundOffset, WholeLog
from strandline.remote.values import RemoteLogSegmentMetadata
from strandline.replication import Partition

if TYPE_CHECKING:  # a broker without tiered storage does not load it
    from strandline.hybrid.remote.tier import RemoteTier


class NoRemoteStorage:
    """`TieredStorage` of a broker with `remote.log.storage.system.enable=false`, and of any broker until it is open."""

    is_open: ClassVar[bool] = False
    url: ClassVar[str] = ""

    def opened(self, why: Callable[[], str]) -> RemoteTier:
        raise KafkaStorageError(why())

    def follow(self, settings: TierSettings) -> None:
        """Nothing follows."""

    # Reads

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
        raise _not_open(replica)

    async def offset_by_timestamp(
        self,
        replica: Partition,
        timestamp: TimestampMs,
        *,
        isolation: FetchIsolation,
        current_leader_epoch: LeaderEpoch,
        timeout_ms: int,
    ) -> FoundOffset | None:
        raise _not_open(replica)

    async def offset_of_max_timestamp(
        self, replica: Partition, *, current_leader_epoch: LeaderEpoch, timeout_ms: int
    ) -> FoundOffset | None:
        raise _not_open(replica)

    # Segments: there are none, as far as this broker knows

    def prefix_status(self, replica: Partition, boundary: Offset) -> None:
        return None

    def copy_now(self, partition: TopicIdPartition) -> None:
        """Nothing is copied."""

    def finder(self, replica: Partition) -> FindSegment:
        return lambda offset: None

    async def segments_of(self, partition: TopicIdPartition, clock: Clock) -> Sequence[RemoteLogSegmentMetadata]:
        return ()

    # Figures

    def remote_bytes(self, replica: Partition) -> int:
        return 0

    def status(self) -> None:
        return None

    async def partition_rows(self, led: Iterable[TopicIdPartition]) -> None:
        return None

    def health(self) -> Sequence[HealthStatus]:
        return ()

    def trouble_of(self, broker: BrokerId) -> str:
        return f"Broker {broker} has not opened remote storage: remote.log.storage.system.enable has to be true."


def _not_open(replica: Partition) -> KafkaStorageError:
    return KafkaStorageError(
        f"{replica.topic_partition} has records in remote storage, which this broker has not opened: "
        "remote.log.storage.system.enable has to be true."
    )


def is_open_tier(storage: TieredStorage) -> TypeGuard[RemoteTier]:
    """Whether remote storage is open here: for work that there is only then."""
    return storage.is_open


class TieredTopics:
    """Holds tiered storage, whether it is open or off."""

    def __init__(self) -> None:
        self.storage: TieredStorage = NoRemoteStorage()

    @asynccontextmanager
    async def serving(self, opening: AbstractAsyncContextManager[RemoteTier]) -> AsyncIterator[RemoteTier]:
        """Open tiered storage, and use it while the block lasts."""
        async with opening as tier:
            self.storage = tier
            try:
                yield tier
            finally:
                self.storage = NoRemoteStorage()
