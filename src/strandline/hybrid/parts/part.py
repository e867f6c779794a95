"""What a partition asks of the parts of its log. Ports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from strandline.errors import StrandlineError
from strandline.hybrid.layout import PartitionLayout
from strandline.log import LogAppendInfo
from strandline.model import NO_TIMESTAMP, LeaderEpoch, Offset, ProducerAndEpoch, TimestampMs, TopicPartition
from strandline.reads import ActiveProducer, AnsweredOffsets, FetchIsolation, FoundOffset, ReadResult, Watcher
from strandline.replication import Append, Appended, Partition


class PartitionAppends(Protocol):
    """For producers: appends to the newest part."""

    @property
    def local_replica(self) -> Partition | None:
        """The replica whose role takes ordinary batches at once (`append_now`); None if there is none of that kind."""

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


class LogPart(Protocol):
    """A stretch of a partition's log with one history of leader epochs. Lives on the event loop."""

    @property
    def older(self) -> OlderPart | None:
        """The part that ends where this one begins, if it is known here; None if the log begins here."""

    @property
    def layout(self) -> PartitionLayout:
        """Which tier serves which of its offsets now. The same object as long as nothing has changed."""

    def refusal(self, offset: Offset) -> StrandlineError:
        """The error for a read of an offset that is in no extent of this part, nor of a newer one."""

    async def find(
        self,
        timestamp: TimestampMs,
        *,
        isolation: FetchIsolation,
        current_leader_epoch: LeaderEpoch,
        timeout_ms: int,
    ) -> FoundOffset | None:
        """ListOffsets in this part alone; NOTHING if it has no such record, None if it has no say. See
        `ServedPartition.list_offset`."""

    def known_end_of_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset] | None:
        """As `end_of_epoch`, as far as this broker knows."""

    async def end_of_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset] | None:
        """The largest leader epoch up to `epoch`, and where it ended; (-1, -1): unknown.

        None from an older part if the epoch does not end in it.
        """


class OlderPart(LogPart, Protocol):
    """A part that ends at a boundary, and does not grow any more."""

    @property
    def end(self) -> Offset:
        """The boundary: the first offset of the next newer part."""

    @property
    def is_gone(self) -> bool:
        """True if the log is known to start at its end or later."""

    def check_readable(self) -> None:
        """Raise NotLeaderOrFollower unless this broker may read it."""


class NewestPart(LogPart, Protocol):
    """The part that grows. It knows the leader, the ends of the whole log, and what waits for them."""

    @property
    def topic_partition(self) -> TopicPartition:
        """The name of the partition."""

    @property
    def leader_epoch(self) -> LeaderEpoch:
        """The leader epoch that the metadata gives."""

    @property
    def appends(self) -> PartitionAppends:
        """Takes what producers send."""

    def check_leader(self, current_leader_epoch: LeaderEpoch = ...) -> None:
        """Raise unless this broker serves the partition in the epoch that the client knows."""

    @property
    def log_start_offset(self) -> Offset:
        """The first offset of the whole log that may be read, as far as this broker knows; -1 if it does not know."""

    def without_records(self) -> ReadResult:
        """The answer of a read whose records did not come in time. Raises KafkaStorageError."""

    def stands_at(self, high_watermark: Offset, log_start: Offset) -> bool:
        """True if the partition is served here and neither its end nor its start has moved from these offsets."""

    @property
    def keeps_watchers(self) -> bool:
        """True if a watcher costs nothing while nothing happens, so that it may stay although no request waits."""

    def watch(self, watcher: Watcher) -> None:
        """Notify `watcher` of every change of the partition until `unwatch`."""

    def unwatch(self, watcher: Watcher) -> None:
        """Stop notifying."""

    async def delete_records(self, before: Offset) -> Offset:
        """DeleteRecords: move the log start to `before` (-1: the high watermark). Returns the low watermark.

        Raises StrandlineError.
        """

    async def active_producers(self) -> Sequence[ActiveProducer]:
        """DescribeProducers. Raises StrandlineError."""

    async def find(
        self,
        timestamp: TimestampMs,
        *,
        isolation: FetchIsolation,
        current_leader_epoch: LeaderEpoch,
        timeout_ms: int,
    ) -> FoundOffset:
        """As every part; it always has a say."""

    def known_end_of_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset]:
        """As every part; it always has a say."""

    async def end_of_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset]:
        """As every part; it always has a say."""


class JoinedPart(OlderPart, Protocol):
    """An older part, as the diskless part behind it sees it."""

    def admit(self, records: memoryview) -> None:
        """Raise StrandlineError if a batch may not be appended behind the boundary yet."""

    def bound(self, known: AnsweredOffsets) -> AnsweredOffsets:
        """The offsets of the whole log, from those of the newer part, which are -1 where they are not known."""

    def end_for_followers(self) -> ReadResult:
        """The answer to a follower that has everything below the boundary: what is behind it is not replicated."""

    def check_deletable(self) -> None:
        """Raise StrandlineError unless records may be deleted through this broker."""

    def follow_log_start(self, offset: Offset) -> None:
        """The whole log starts at `offset`, here or in the newer part. Raises KafkaStorageError."""

    def watch(self, watcher: Watcher) -> None:
        """Notify of changes of this part and of the newer one until `unwatch`."""

    def unwatch(self, watcher: Watcher) -> None:
        """Stop notifying."""

    def close(self) -> None:
        """The topic is gone, or the broker stops."""
