"""Whether this broker has tiered storage open. Loads nothing of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from strandline.config.remote import TierSettings
from strandline.errors import KafkaStorageError
from strandline.hybrid.reading import FinalRead, PendingRead
from strandline.model import LeaderEpoch, Offset, TimestampMs
from strandline.reads import FetchIsolation, FoundOffset, WholeLog
from strandline.replication import Partition

if TYPE_CHECKING:  # a broker without tiered storage does not load it
    from strandline.hybrid.remote.tier import RemoteTier


class TieredStorage(Protocol):
    """Remote storage as partitions use it: open (`RemoteTier`), or `Off`."""

    def follow(self, settings: TierSettings) -> None:
        """Settings that may change while the broker runs may have changed."""

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


class Off:
    """Tiered storage of a broker with `remote.log.storage.system.enable=false`, and of any broker until it is open."""

    def follow(self, settings: TierSettings) -> None:
        """Nothing follows."""

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


def _not_open(replica: Partition) -> KafkaStorageError:
    return KafkaStorageError(
        f"{replica.topic_partition} has records in remote storage, which this broker has not opened: "
        "remote.log.storage.system.enable has to be true."
    )


class TieredTopics:
    """Holds tiered storage, whether it is open or off."""

    def __init__(self) -> None:
        self.storage: TieredStorage = Off()
        self.tier: RemoteTier | None = None
        """What the open storage consists of, for status; None while it is off."""

    @asynccontextmanager
    async def serving(self, opening: AbstractAsyncContextManager[RemoteTier]) -> AsyncIterator[RemoteTier]:
        """Open tiered storage, and use it while the block lasts."""
        async with opening as tier:
            self.storage = self.tier = tier
            try:
                yield tier
            finally:
                self.storage, self.tier = Off(), None
