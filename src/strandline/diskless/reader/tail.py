"""What this broker knows of one diskless log."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from strandline.diskless.reader.aborts import KnownAborts
from strandline.diskless.reader.cache import PartitionBlocks
from strandline.model import NO_OFFSET, Offset, TopicIdPartition
from strandline.reads import Watcher


class FoundOffsets(Protocol):
    """The offsets of a log as a query found them: a `DisklessLog`, or `FoundBatches`."""

    @property
    def high_watermark(self) -> Offset: ...

    @property
    def log_start_offset(self) -> Offset: ...

    @property
    def diskless_start_offset(self) -> Offset: ...

    @property
    def first_unstable_offset(self) -> Offset: ...

    @property
    def last_aborted_offset(self) -> Offset: ...


class Tail:
    """One partition: its known offsets, its blocks in memory, its watchers."""

    __slots__ = (
        "aborts",
        "blocks",
        "diskless_start_offset",
        "high_watermark",
        "is_replaced",
        "known_at",
        "log_start_offset",
        "news_seen",
        "partition",
        "stable_end",
        "watchers",
    )

    def __init__(self, partition: TopicIdPartition) -> None:
        self.partition = partition
        self.blocks = PartitionBlocks()
        self.high_watermark: Offset = NO_OFFSET
        """-1 until it is known. Commits of other brokers may have moved it already."""
        self.stable_end: Offset = NO_OFFSET
        """The last stable offset at that high watermark. The two belong together: a transaction begins and ends with a
        batch. One that is outdated is too low, never too high. It may be below the log start."""
        self.aborts = KnownAborts()
        self.log_start_offset: Offset = NO_OFFSET
        self.diskless_start_offset: Offset = NO_OFFSET
        """The read boundary: what lies below it has left the rows. It may have moved on already."""
        self.known_at = 0.0
        """When the offsets were last known to be right."""
        self.news_seen = -1
        """The number of announcements received when the offsets were queried."""
        self.watchers: set[Watcher] = set()
        self.is_replaced = False
        """True once another tail has taken its place, because the database has lost commits."""

    @property
    def last_stable_offset(self) -> Offset:
        """What consumers are told."""
        return max(self.stable_end, self.log_start_offset)

    def grow(self, high_watermark: Offset, first_unstable: Offset) -> bool:
        """Take over an end of the log, unless a later one is known; returns whether it was."""
        if high_watermark <= self.high_watermark:
            return False
        self.high_watermark = high_watermark
        self.stable_end = high_watermark if first_unstable < 0 else first_unstable
        return True


class AskedTail(NamedTuple):
    """A partition that the database is asked for, and what was known of it before."""

    tail: Tail
    high_watermark: Offset
    log_start_offset: Offset
    diskless_start_offset: Offset
    at: float
