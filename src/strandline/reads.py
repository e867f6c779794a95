"""Requests to read a partition and their results, whatever tier holds the records.

Every tier answers with these values, so that one Fetch or ListOffsets request can be served from several of them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

from strandline.model import NO_EPOCH, NO_OFFSET, NO_TIMESTAMP, LeaderEpoch, Offset, ProducerId, TimestampMs


class FetchIsolation(enum.Enum):
    """How far a reader may see."""

    LOG_END = enum.auto()
    HIGH_WATERMARK = enum.auto()
    TXN_COMMITTED = enum.auto()


class RecordSet(Protocol):
    """Record batches that are only passed on: a range of a file, or views of memory."""

    @property
    def length(self) -> int:
        """How many bytes there are."""

    def read(self) -> bytes:
        """The bytes themselves. Blocking; for small ranges and tests."""


class AbortedTransaction(NamedTuple):
    """A transaction whose records a read_committed consumer has to skip, from `first_offset` to its marker."""

    producer_id: ProducerId
    first_offset: Offset


@dataclass(slots=True)
class ReadResult:
    """What a read of one partition found, in any tier."""

    records: RecordSet | None
    """From the batch that holds the offset on, possibly cut inside the last batch; None if there is nothing yet."""
    high_watermark: Offset
    last_stable_offset: Offset
    log_start_offset: Offset
    aborted_transactions: list[AbortedTransaction] | None
    """None unless the read was TXN_COMMITTED."""


class AnsweredOffsets(NamedTuple):
    """The offsets that come with every answer: those of the whole log, whatever part of it was read."""

    high_watermark: Offset
    last_stable_offset: Offset
    log_start_offset: Offset


WholeLog: TypeAlias = Callable[[], AnsweredOffsets]
"""The offsets, at the moment of the answer, of a log of which the log that is read is only the older part."""


class Watcher(Protocol):
    """A long poll that waits for partitions to move."""

    def notify(self) -> None:
        """The partition has new data, another leader, or is gone. Called on the event loop; must not read at once."""


# ListOffsets: what a negative timestamp asks for.
LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6


class FoundOffset(NamedTuple):
    """An offset with the timestamp of its record and the leader epoch that wrote it; -1 where one is not known."""

    timestamp: TimestampMs
    offset: Offset
    leader_epoch: LeaderEpoch


NOTHING: Final = FoundOffset(NO_TIMESTAMP, NO_OFFSET, NO_EPOCH)
"""The answer of ListOffsets where no record fits."""


class ActiveProducer(NamedTuple):
    """What DescribeProducers says about one producer. -1 stands for "none" as in Kafka's answer."""

    producer_id: ProducerId
    producer_epoch: int
    last_sequence: int
    last_timestamp: TimestampMs
    coordinator_epoch: int
    current_txn_start_offset: Offset
