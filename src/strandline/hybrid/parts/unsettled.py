"""A partition of a topic that is diskless, on the broker that has its log, until the control plane was asked for B0.

The log may have ended at a boundary before this broker started: neither its end nor its last offsets can be told, and
nothing may be appended to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NoReturn

from strandline.errors import KafkaStorageError, NotLeaderOrFollower, RequestTimedOut, StrandlineError
from strandline.hybrid.layout import PartitionLayout
from strandline.log import LogAppendInfo
from strandline.model import (
    NO_EPOCH,
    NO_TIMESTAMP,
    LeaderEpoch,
    Offset,
    ProducerAndEpoch,
    TimestampMs,
    TopicPartition,
)
from strandline.reads import ActiveProducer, FetchIsolation, FoundOffset, ReadResult, Watcher
from strandline.replication import Append, Appended, Partition, with_refused


class UnsettledPart:
    """A `NewestPart` without extents that refuses everything, so that clients ask again: writes and ListOffsets with
    REQUEST_TIMED_OUT while the control plane is away, KAFKA_STORAGE_ERROR if it fails for good,
    NOT_LEADER_OR_FOLLOWER otherwise. Its own `PartitionAppends`."""

    __slots__ = ("_replica", "problem")

    older: ClassVar[None] = None
    layout: ClassVar[PartitionLayout] = PartitionLayout()
    keeps_watchers: ClassVar[bool] = False
    local_replica: ClassVar[None] = None
    """None: the log of this broker takes no batches of clients any more."""

    def __init__(self, replica: Partition) -> None:
        self._replica = replica
        self.problem: StrandlineError | None = None
        """Why the control plane has not told the boundary; None if it was not asked yet."""

    @property
    def topic_partition(self) -> TopicPartition:
        return self._replica.topic_partition

    @property
    def leader_epoch(self) -> LeaderEpoch:
        return self._replica.leader_epoch

    def check_leader(self, current_leader_epoch: LeaderEpoch = NO_EPOCH) -> None:
        self._replica.check_leader(current_leader_epoch)
        self._refuse()

    def _refusal(self) -> StrandlineError:
        return self.problem if isinstance(self.problem, KafkaStorageError) else NotLeaderOrFollower(self._sentence())

    def _refuse(self) -> NoReturn:
        raise self._refusal()

    def _refuse_for_now(self) -> NoReturn:
        if isinstance(self.problem, RequestTimedOut):
            raise RequestTimedOut(self._sentence())
        self._refuse()

    def _sentence(self) -> str:
        why = "" if self.problem is None else f": {self.problem}"
        return f"The boundary of {self.topic_partition}, where it became diskless, is not known yet{why}"

    # Appending

    @property
    def appends(self) -> UnsettledPart:
        return self

    def append(self, append: Append) -> Appended:
        replica = self._replica
        replica.check_leader()
        gate = replica.restrict()
        gate.first_batches = with_refused(gate.first_batches, replica.log, append.records)
        self._refuse_for_now()

    def has_transaction(self, producer: ProducerAndEpoch) -> bool:
        """No coordinator need be asked for permission: `append` refuses every batch, and has to see it."""
        return True

    def check_epoch(self, producer: ProducerAndEpoch) -> None:
        """`append` refuses every batch."""

    async def check_stored_epoch(self, producer: ProducerAndEpoch) -> None:
        """`append` refuses every batch."""

    async def append_and_wait(
        self,
        records: memoryview,
        *,
        timeout_ms: int,
        transaction_version: int = 0,
        transaction_start_ms: TimestampMs = NO_TIMESTAMP,
    ) -> LogAppendInfo:
        self._replica.check_leader()
        self._refuse()

    # Reading

    def refusal(self, offset: Offset) -> StrandlineError:
        return self._refusal()

    @property
    def log_start_offset(self) -> Offset:
        return self._replica.log.log_start_offset

    def without_records(self) -> ReadResult:
        self._refuse()

    def stands_at(self, high_watermark: Offset, log_start: Offset) -> bool:
        return False

    def watch(self, watcher: Watcher) -> None:
        self._replica.watch(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        self._replica.unwatch(watcher)

    # Queries

    async def find(
        self,
        timestamp: TimestampMs,
        *,
        isolation: FetchIsolation,
        current_leader_epoch: LeaderEpoch,
        timeout_ms: int,
    ) -> FoundOffset:
        self._replica.check_leader(current_leader_epoch)
        self._refuse_for_now()

    def known_end_of_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset]:
        self._refuse()

    async def end_of_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset]:
        self._refuse()

    async def delete_records(self, before: Offset) -> Offset:
        self._refuse()

    async def active_producers(self) -> Sequence[ActiveProducer]:
        self._refuse()
