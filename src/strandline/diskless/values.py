"""Requests and results of the writer and the reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from strandline.errors import StrandlineError
from strandline.model import LeaderEpoch, Offset, TimestampMs, TopicIdPartition
from strandline.reads import FetchIsolation, ReadResult, Watcher
from strandline.records import BatchHeader, TimestampType
from strandline.records.slices import MemorySlices as MemorySlices


class DisklessAppend(NamedTuple):
    """One valid batch of a producer, to be written to the next WAL object.

    The buffer belongs to the writer from here on: it is uploaded as it is, and gets its offsets after the commit.
    """

    partition: TopicIdPartition
    buffer: bytearray | memoryview
    header: BatchHeader
    timestamp_type: TimestampType
    leader_epoch: LeaderEpoch


class DisklessAppended(NamedTuple):
    """The offsets of a committed batch. A duplicate gets those of the first commit."""

    base_offset: Offset
    log_append_time_ms: TimestampMs
    log_start_offset: Offset


# Called on the event loop, once.
AppendDone: TypeAlias = Callable[[DisklessAppended | StrandlineError], None]


class DisklessRead(NamedTuple):
    """Read one partition from `offset` on."""

    partition: TopicIdPartition
    offset: Offset
    max_bytes: int
    isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK


class BatchAppends(Protocol):
    """The writer, as the request handlers see it."""

    def append(self, batch: DisklessAppend, done: AppendDone) -> None:
        """Take a batch; its place among the batches of this broker is fixed when this returns.

        `done` is called when it is committed, or could not be; never from inside this call.
        """


class DisklessReads(Protocol):
    """The reader, as the request handlers see it."""

    def read_now(self, request: DisklessRead, *, min_one_message: bool) -> ReadResult | None:
        """The answer if it can be given from memory at once; None if the database or the store must be asked.

        At the known high watermark the answer is "nothing yet", without a query: `watch` tells of commits by other
        brokers. Raises OffsetOutOfRange.
        """

    async def read(self, requests: Sequence[DisklessRead], *, max_bytes: int) -> Sequence[ReadResult | StrandlineError]:
        """Read several partitions at once, fairly: no partition gets more than its share of `max_bytes` while others
        want some, and the first batch of the first partition that has one comes whole. Errors are answers.
        """

    def watch(self, partition: TopicIdPartition, watcher: Watcher) -> None:
        """Notify `watcher` after commits to the partition, by this broker at once, by others soon."""

    def unwatch(self, partition: TopicIdPartition, watcher: Watcher) -> None:
        """The end of `watch`. Harmless if it is over already."""


class CommittedBlock(NamedTuple):
    """The batches of one committed row, still in memory, with their offsets: from the writer to the reader."""

    partition: TopicIdPartition
    base_offset: Offset
    last_offset: Offset
    batches: tuple[bytearray | memoryview, ...]
    max_timestamp: TimestampMs


class CommitListener(Protocol):
    """Gets the batches that this broker has just committed."""

    def committed(self, blocks: Sequence[CommittedBlock], *, log_start_offsets: Sequence[Offset]) -> None:
        """New rows, in the order of their offsets for each partition. Called on the event loop, before producers are
        answered: a producer that has its answer can read its record."""
