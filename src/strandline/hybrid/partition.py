"""A partition as request handlers see it, whatever tiers hold its records.

Ports, one for each kind of caller. `ClassicPartition` and `DisklessPartition` implement them; handlers never ask which
one they have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

from strandline.errors import StrandlineError
from strandline.hybrid.layout import PartitionLayout
from strandline.log import LogAppendInfo
from strandline.model import NO_TIMESTAMP, LeaderEpoch, Offset, ProducerAndEpoch, TimestampMs, TopicPartition
from strandline.reads import ActiveProducer, FetchIsolation, FoundOffset, ReadResult, Watcher
from strandline.replication import Append, Appended, Partition


class TierReader(Protocol):
    """Answers reads that need a database, an object store or a disk."""

    always_gives_a_batch: ClassVar[bool]
    """Whether the first batch comes whole even if the caller's `min_one_message` is False."""

    async def read(
        self,
        requests: Sequence[Any],
        *,
        max_bytes: int,
        min_one_message: bool,
        is_wanted: Callable[[], bool],
    ) -> Sequence[ReadResult | StrandlineError]:
        """Read several partitions of one tier at the same time, fairly. Errors are answers.

        Records that are not wanted any more when they arrive are kept for later reads, and neither given nor counted.
        """


class PendingRead(NamedTuple):
    """A read that cannot be answered from memory: what to ask of which reader."""

    reader: TierReader
    request: Any
    """In the form that this reader takes."""
    max_wait_s: float | None = None
    """How long a Fetch waits for it, whatever its client's max.wait.ms says; None: as long as the client does."""


class FinalRead(NamedTuple):
    """An answer that ends the wait of a Fetch: waiting would not bring more records.

    A Fetch is answered with it, however small it is, and does not read it again: its tier has counted it.
    """

    result: ReadResult | StrandlineError
    max_wait_s: float
    """How long the Fetch waits for pending reads of other partitions, whatever its client's max.wait.ms says."""


class PartitionAppends(Protocol):
    """For producers."""

    @property
    def local_replica(self) -> Partition | None:
        """The replica that can take ordinary batches at once (`append_now`); None if there is none of that kind."""

    def append(self, append: Append) -> Appended:
        """Append batches in the order of the calls. Raises StrandlineError; then nothing was written.

        The offsets in the answer's `info` are final when the append is done.
        """

    def has_transaction(self, producer: ProducerAndEpoch) -> bool:
        """True if this broker knows that a transaction of the producer, in this epoch, is open here."""

    def check_epoch(self, producer: ProducerAndEpoch) -> None:
        """Refuse a producer of which this broker knows that it was here with a later epoch. Raises
        InvalidProducerEpoch."""

    async def check_stored_epoch(self, producer: ProducerAndEpoch) -> None:
        """The same, where this broker does not know: asks a database, and raises StrandlineError if that fails."""

    async def append_and_wait(
        self,
        records: memoryview,
        *,
        timeout_ms: int,
        transaction_version: int = 0,
        transaction_start_ms: TimestampMs = NO_TIMESTAMP,
    ) -> LogAppendInfo:
        """Append a batch of a coordinator of this cluster, a marker for instance, and wait until it is durable.

        `transaction_version` is that of the client whose transaction a marker ends: its epochs are judged by it.
        `transaction_start_ms` tells the transaction from others of the same epoch, where a marker can come so late that
        the next one is open. Raises StrandlineError; after RequestTimedOut it may be appended nevertheless.
        """


class PartitionReads(Protocol):
    """For consumers: nothing here waits."""

    @property
    def layout(self) -> PartitionLayout:
        """Which tier serves which offsets now."""

    def reads_memory(self, offset: Offset) -> bool:
        """True if a read at `offset` may answer with records in memory, which stay there until they are sent."""

    @property
    def log_start_offset(self) -> Offset:
        """The first offset that may be read, as far as this broker knows; -1 if it does not know."""

    def read_now(
        self, offset: Offset, max_bytes: int, *, isolation: FetchIsolation, min_one_message: bool
    ) -> ReadResult | FinalRead | PendingRead:
        """Records from `offset` on, from the tier that the layout names, and from that tier alone.

        At most `max_bytes`, unless `min_one_message` and the first batch is larger. Raises StrandlineError.
        """

    def without_records(self) -> ReadResult:
        """The answer of a read whose records did not come in time. Raises KafkaStorageError."""

    def stands_at(self, high_watermark: Offset, log_start: Offset) -> bool:
        """True if the partition is served here and neither its end nor its start has moved from these offsets."""

    def available_bytes(self, offset: Offset, isolation: FetchIsolation) -> int | None:
        """How many bytes a read from `offset` on would find; None if only a read can tell."""

    def known_end_of_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset]:
        """The largest leader epoch up to `epoch`, and where it ended as far as this broker knows; (-1, -1): unknown."""

    @property
    def keeps_watchers(self) -> bool:
        """True if a watcher costs nothing while nothing happens, so that it may stay although no request waits."""

    def watch(self, watcher: Watcher) -> None:
        """Notify `watcher` of every change until `unwatch`."""

    def unwatch(self, watcher: Watcher) -> None:
        """Stop notifying."""


class PartitionQueries(Protocol):
    """For questions that may have to ask a database or a store. All raise StrandlineError."""

    async def list_offset(
        self,
        timestamp: TimestampMs,
        *,
        isolation: FetchIsolation,
        current_leader_epoch: LeaderEpoch,
        timeout_ms: int = 0,
    ) -> FoundOffset:
        """ListOffsets: a special timestamp, or the first record at or after a time, in whatever tier.

        The client waits `timeout_ms` for remote storage; 0: as long as the broker's setting says.
        """

    async def end_offset_for_epoch(
        self, epoch: LeaderEpoch, *, current_leader_epoch: LeaderEpoch
    ) -> tuple[LeaderEpoch, Offset]:
        """OffsetForLeaderEpoch: the largest epoch at or below `epoch`, and where it ended."""

    async def delete_records(self, before: Offset) -> Offset:
        """DeleteRecords: move the log start to `before` (-1: the high watermark). Returns the low watermark."""

    async def active_producers(self) -> Sequence[ActiveProducer]:
        """DescribeProducers."""


class ServedPartition(PartitionAppends, PartitionReads, PartitionQueries, Protocol):
    """One partition that this broker serves. Lives on the event loop."""

    @property
    def topic_partition(self) -> TopicPartition:
        """Its name."""

    @property
    def leader_epoch(self) -> LeaderEpoch:
        """The leader epoch that the metadata gives."""

    def check_leader(self, current_leader_epoch: LeaderEpoch = ...) -> None:
        """Raise unless this broker serves the partition in the epoch that the client knows."""
