"""The values that go in and out of a log."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

from strandline.log.segment_file import SegmentFile


class AppendOrigin(enum.Enum):
    """Who appends. It decides which checks a batch has to pass."""

    CLIENT = enum.auto()
    """A producer: everything is checked, sequences included."""
    COORDINATOR = enum.auto()
    """A coordinator of this cluster: control batches allowed, producer epochs checked, sequences not."""
    REPLICATION = enum.auto()
    """A leader's log: offsets are kept, producer state follows without complaint."""


class FetchIsolation(enum.Enum):
    """How far a reader may see."""

    LOG_END = enum.auto()
    HIGH_WATERMARK = enum.auto()
    TXN_COMMITTED = enum.auto()


class AbortedTransaction(NamedTuple):
    """A transaction whose records a read_committed consumer has to skip, from `first_offset` to its marker."""

    producer_id: int
    first_offset: int


class TimestampOffset(NamedTuple):
    """A record found by its timestamp."""

    timestamp: int
    offset: int
    leader_epoch: int


class ActiveProducer(NamedTuple):
    """What DescribeProducers says about one producer. -1 stands for "none" as in Kafka's answer."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int


@dataclass(slots=True)
class LogAppendInfo:
    """Where an append went. For a duplicate these are the offsets of the first time."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    """-1 under CreateTime."""
    log_start_offset: int
    is_duplicate: bool
    size: int
    max_timestamp: int


@dataclass(slots=True)
class FileSlice:
    """A range of a segment's file. Holding it keeps the bytes readable, even after the segment is deleted."""

    file: SegmentFile
    position: int
    length: int

    def read(self) -> bytes:
        """The bytes themselves. Blocking; for small ranges and tests."""
        return self.file.read(self.position, self.length)


@dataclass(slots=True)
class LogReadResult:
    """What a read found: bytes from the batch that holds the offset on, possibly cut inside the last batch."""

    records: FileSlice | None
    """None if there is nothing to read yet at this isolation."""
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    log_end_offset: int
    aborted_transactions: list[AbortedTransaction] | None
    """None unless the read was TXN_COMMITTED."""
