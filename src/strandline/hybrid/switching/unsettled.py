"""A partition of a topic that is diskless, on the broker that has its log, until the control plane was asked for B0.

The log may have ended at a boundary before this broker started: neither its end nor its last offsets can be told, and
nothing may be appended to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

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
from strandline.replication import Append, Appended, Partition
from strandline.replication.first_batches import with_refused


class UnsettledPartition:
    """`ServedPartition` that refuses everything, so that clients ask again: writes and ListOffsets with
    REQUEST_TIMED_OUT while the control plane is away, KAFKA_STORAGE_ERROR if it fails for good,
    NOT_LEADER_OR_FOLLOWER otherwise."""

    __slots__ = ("__weakref__", "_replica", "problem")

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

    @property
    def local_replica(self) -> None:
        """None: the log of this broker takes no batches of clients any more."""
        return None

    def check_leader(self, current_leader_epoch: LeaderEpoch = NO_EPOCH) -> None:
        self._replica.check_leader(current_leader_epoch)
        self._refuse()

    def _refuse(self) -> NoReturn:
        if isinstance(self.problem, KafkaStorageError):
            raise self.problem
        raise NotLeaderOrFollower(self._sentence())

    def _refuse_for_now(self) -> NoReturn:
        if isinstance(self.problem, RequestTimedOut):
            raise RequestTimedOut(self._sentence())
        self._refuse()

    def _sentence(self) -> str:
        why = "" if self.problem is None else f": {self.problem}"
        return f"The boundary of {self.topic_partition}, where it became diskless, is not known yet{why}"

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

    @property
    def layout(self) -> PartitionLayout:
        return PartitionLayout(())

    def reads_memory(self, offset: Offset) -> bool:
        return False

    @property
    def log_start_offset(self) -> Offset:
        return self._replica.log.log_start_offset

    def read_now(
        self, offset: Offset, max_bytes: int, *, isolation: FetchIsolation, min_one_message: bool
    ) -> ReadResult:
        self._refuse()

    def without_records(self) -> ReadResult:
        self._refuse()

    def stands_at(self, high_watermark: Offset, log_start: Offset) -> bool:
        return False

    def available_bytes(self, offset: Offset, isolation: FetchIsolation) -> int | None:
        return None

    def known_end_of_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset]:
        self._refuse()

    @property
    def keeps_watchers(self) -> bool:
        return False

    def watch(self, watcher: Watcher) -> None:
        self._replica.watch(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        self._replica.unwatch(watcher)

    # Queries

    async def list_offset(
        self,
        timestamp: TimestampMs,
        *,
        isolation: FetchIsolation,
        current_leader_epoch: LeaderEpoch = NO_EPOCH,
        timeout_ms: int = 0,
    ) -> FoundOffset:
        self._replica.check_leader(current_leader_epoch)
        self._refuse_for_now()

    async def end_offset_for_epoch(
        self, epoch: LeaderEpoch, *, current_leader_epoch: LeaderEpoch
    ) -> tuple[LeaderEpoch, Offset]:
        self.check_leader(current_leader_epoch)
        self._refuse()

    async def delete_records(self, before: Offset) -> Offset:
        self._refuse()

    async def active_producers(self) -> Sequence[ActiveProducer]:
        self._refuse()
