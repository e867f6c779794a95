"""The internal topic of a coordinator, as a port. `replicated_log` implements it on partitions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from strandline.errors import StrandlineError
from strandline.model import (
    NO_OFFSET,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    LeaderEpoch,
    Offset,
    ProducerAndEpoch,
    ProducerId,
    TimestampMs,
)
from strandline.records import ControlType, EndTransactionMarker, build_marker


class CoordinatorRecord(NamedTuple):
    """A record to be written. A value of None deletes the key."""

    key: bytes
    value: bytes | None
    timestamp_ms: TimestampMs


class ReadRecord(NamedTuple):
    """A record as it was read."""

    offset: Offset
    key: bytes | None
    value: bytes | None


class ReadBatch(NamedTuple):
    """A batch as it was read. `committed` is set for a transaction marker: True is commit, False is abort."""

    records: tuple[ReadRecord, ...] = ()
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    is_transactional: bool = False
    committed: bool | None = None


class TransactionEnd(NamedTuple):
    """What a transaction marker says."""

    producer: ProducerAndEpoch
    is_commit: bool
    coordinator_epoch: int
    transaction_version: int
    """That of the client: by it, partitions judge the epoch."""
    start_ms: TimestampMs = NO_TIMESTAMP
    """When the transaction began; -1 if that is not known."""

    def batch(self, now_ms: TimestampMs) -> memoryview:
        """The marker as a control batch."""
        kind = ControlType.COMMIT if self.is_commit else ControlType.ABORT
        return memoryview(
            build_marker(
                EndTransactionMarker(kind, self.coordinator_epoch),
                producer_id=self.producer.producer_id,
                producer_epoch=self.producer.epoch,
                timestamp_ms=now_ms,
            )
        )


class WriteResult(NamedTuple):
    """How a write ended: the offset of its first record, or why it is not known to be committed."""

    error: StrandlineError | None
    base_offset: Offset = NO_OFFSET


WriteDone: TypeAlias = Callable[[WriteResult], None]


class CoordinatorLog(Protocol):
    """The partitions of one internal topic.

    Every implementation passes tests/coordinators/runtime/test_log.py, which checks that

    - an append is atomic and in order: its records get consecutive offsets, after those of every earlier append;
    - `append` raises if nothing was appended. Otherwise it calls `done` once, perhaps before it returns: when the
      records are committed, or when that will not be known any more, since this broker does not lead the partition now
      or its disk has failed. It takes as long as it takes: while this broker leads, what is in its log counts in the
      end;
    - `read` gives every record that compaction has left in the partition, in offset order, with the transactions as
      they stand in the log, and ends when all of them are committed;
    - both refuse a leader epoch that is not the partition's: FencedLeaderEpoch if it is over, UnknownLeaderEpoch if
      this broker has not heard of it.

    Callers append to one partition one append at a time.
    """

    def partition_count(self) -> int:
        """How many partitions the topic has, or will have when it is created."""

    def max_batch_bytes(self, partition: int) -> int:
        """The largest batch the partition takes. Raises NotLeaderOrFollower or UnknownTopicOrPartition."""

    def append(
        self,
        partition: int,
        records: Sequence[CoordinatorRecord],
        done: WriteDone,
        *,
        leader_epoch: LeaderEpoch,
        producer: ProducerAndEpoch | None = None,
    ) -> None:
        """Append records. With `producer`, they are part of its transaction.

        Raises NotLeaderOrFollower, FencedLeaderEpoch, UnknownLeaderEpoch, UnknownTopicOrPartition, NotEnoughReplicas,
        MessageTooLarge or KafkaStorageError; for a producer also InvalidProducerEpoch. `done` gets NotLeaderOrFollower
        or KafkaStorageError."""

    def append_now(self, partition: int, records: Sequence[CoordinatorRecord], *, leader_epoch: LeaderEpoch) -> Offset:
        """Append records that are committed when this returns; the offset of the first.

        NO_OFFSET if that cannot be, for whatever reason: then nothing has happened, and `append` has to do it.
        Raises NotLeaderOrFollower, FencedLeaderEpoch, UnknownLeaderEpoch or UnknownTopicOrPartition.
        """

    def append_marker(self, partition: int, end: TransactionEnd, done: WriteDone, *, leader_epoch: LeaderEpoch) -> None:
        """Append a marker. Raises what `append` raises, and TransactionCoordinatorFenced. What the log refuses with
        InvalidProducerEpoch may be the repetition of a marker that it has: `done` gets that refusal when everything in
        the log is committed."""

    def check_epoch(self, partition: int, producer: ProducerAndEpoch) -> None:
        """Refuse a producer that is known in the partition with a later epoch. Raises InvalidProducerEpoch,
        NotLeaderOrFollower or UnknownTopicOrPartition."""

    def has_transaction(self, partition: int, producer: ProducerAndEpoch) -> bool:
        """Whether a transaction of the producer, in this epoch, is open in the partition. Raises NotLeaderOrFollower or
        UnknownTopicOrPartition."""

    def read(self, partition: int, *, leader_epoch: LeaderEpoch) -> AsyncIterator[ReadBatch]:
        """Everything up to the end that the log has when the read begins.

        It ends when all of that is committed: before, another leader could begin without some of it, and decide
        otherwise than by what was read. Raises NotLeaderOrFollower,
        FencedLeaderEpoch, UnknownLeaderEpoch, UnknownTopicOrPartition, KafkaStorageError or CorruptMessage.

        The epoch is checked when the read begins. If this broker leads in a newer epoch later, without a break, the
        read goes on: a leader does not truncate its log.
        """
