"""What the broker asks of the process that rewrites segments, and what it gets back. All of it can be pickled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from strandline.log.transaction_index import AbortedTxn


class CleaningStopped(Exception):
    """The pass was stopped, or its segments were removed meanwhile."""


class LastOfProducer(NamedTuple):
    """Where a producer that is still remembered left its state: the batch there must not vanish."""

    last_offset: int
    """The last offset of its newest data batch; -1 if only a marker is known of it."""
    producer_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningRules:
    """The rules of one pass over a log."""

    now_ms: int
    delete_retention_ms: int
    end_offset: int
    """Where the pass ends: the batch before it stays, if empty, so that the offset is not lost."""
    producers: Mapping[int, LastOfProducer] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningSource:
    """A segment to read: its file, how much of it, and where the next segment starts."""

    base_offset: int
    next_base_offset: int
    path: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MapRequest:
    """Begin a pass: map the keys of the dirty segments."""

    token: int
    """Names the pass. A new pass replaces the one before."""
    sources: tuple[CleaningSource, ...]
    start_offset: int
    aborted: tuple[AbortedTxn, ...]
    """The aborted transactions of all segments that the pass will read."""
    budget_bytes: int
    max_bytes_per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MapResult:
    """How far the map got. Only records below `end_offset` may be removed."""

    end_offset: int
    keys: int
    bytes_read: int
    records_read: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRequest:
    """Go on with a pass: write the segments of one group into one new segment, named `.cleaned`."""

    token: int
    directory: str
    sources: tuple[CleaningSource, ...]
    rules: CleaningRules
    index_interval_bytes: int
    max_bytes_per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResult:
    """The new segment, complete and on disk under its `.cleaned` names."""

    base_offset: int
    size: int
    has_txn_index: bool
    bytes_read: int
    records_read: int
    records_kept: int
    keyless_records: int
