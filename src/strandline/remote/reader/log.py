"""What the reader asks of the log whose remote segments it reads. A port: `log.UnifiedLog` satisfies it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from strandline.log.transaction_index import AbortedTxn
from strandline.model import LeaderEpoch, Offset, TopicPartition
from strandline.reads import FetchIsolation, ReadResult


class EpochHistory(Protocol):
    """The leader epochs of a log."""

    @property
    def entries(self) -> Sequence[tuple[LeaderEpoch, Offset]]:
        """(epoch, start offset), oldest first."""


class LocalTransactionIndex(Protocol):
    """The aborted transactions that ended in one local segment, in the order of their markers."""

    @property
    def is_empty(self) -> bool:
        """Whether no transaction was aborted in the segment. Reads no file."""

    def __iter__(self) -> Iterator[AbortedTxn]: ...


class LocalSegment(Protocol):
    """A segment of the log that is on this broker's disk."""

    @property
    def txn_index(self) -> LocalTransactionIndex:
        """Its transaction index."""


class ReadableLog(Protocol):
    """A partition with records in remote storage: where it begins, which leader epochs wrote it, and what is local.

    A partition without a local log has no `segments`, its `local_log_start_offset` is where its remote records end,
    and `read` finds nothing.
    """

    @property
    def topic_partition(self) -> TopicPartition:
        """Its name, for error sentences."""

    @property
    def log_start_offset(self) -> Offset:
        """Records below it are deleted, whatever remote storage still has."""

    @property
    def local_log_start_offset(self) -> Offset:
        """Records from this offset on are read locally."""

    @property
    def high_watermark(self) -> Offset:
        """Sent to consumers with every answer."""

    @property
    def last_stable_offset(self) -> Offset:
        """Sent to consumers with every answer."""

    @property
    def epochs(self) -> EpochHistory:
        """The leader epochs decide which of several copies of an offset belongs to the log."""

    @property
    def segments(self) -> Iterable[LocalSegment]:
        """The local segments, oldest first: a transaction that began in remote records may end in one of them."""

    def epoch_for_offset(self, offset: Offset) -> LeaderEpoch | None:
        """The leader epoch that wrote `offset`; None if no epoch is known for it."""

    def read(self, offset: Offset, max_bytes: int, *, isolation: FetchIsolation, min_one_message: bool) -> ReadResult:
        """Local records from `offset` on. Raises OffsetOutOfRange or KafkaStorageError."""
