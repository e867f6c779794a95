"""What goes in and out of the reader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from strandline.errors import StrandlineError
from strandline.log import AbortedTransaction, FetchIsolation, FileSlice, UnifiedLog
from strandline.model import Offset, TopicIdPartition
from strandline.records.slices import MemorySlices

RemoteRecords: TypeAlias = MemorySlices | FileSlice


class RemoteRead(NamedTuple):
    """Read one partition from `offset` on, which lies before its local log."""

    partition: TopicIdPartition
    log: UnifiedLog
    offset: Offset
    max_bytes: int
    isolation: FetchIsolation


@dataclass(slots=True)
class RemoteReadResult:
    """What a read found: the fields of `log.LogReadResult` that answers are made of, or an error."""

    error: StrandlineError | None
    records: RemoteRecords | None
    """From the batch that holds the offset on, possibly cut inside the last batch; None if there is nothing now."""
    high_watermark: Offset
    last_stable_offset: Offset
    log_start_offset: Offset
    aborted_transactions: list[AbortedTransaction] | None
    """None unless the read was TXN_COMMITTED."""


class FetchQuota(Protocol):
    """How much may be read from remote storage (remote.log.manager.fetch.max.bytes.per.second)."""

    def throttle_seconds(self) -> float:
        """How long to wait until there is room again; 0 if there is some now."""

    def record(self, size: int) -> None:
        """So many bytes were read."""
