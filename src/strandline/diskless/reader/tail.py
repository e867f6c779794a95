"""What this broker knows of one diskless log."""

from __future__ import annotations

from typing import NamedTuple

from strandline.diskless.reader.cache import PartitionBlocks
from strandline.model import NO_OFFSET, Offset, TopicIdPartition
from strandline.reads import Watcher


class Tail:
    """One partition: its known offsets, its blocks in memory, its watchers."""

    __slots__ = (
        "blocks",
        "diskless_start_offset",
        "high_watermark",
        "is_replaced",
        "known_at",
        "log_start_offset",
        "news_seen",
        "partition",
        "watchers",
    )

    def __init__(self, partition: TopicIdPartition) -> None:
        self.partition = partition
        self.blocks = PartitionBlocks()
        self.high_watermark: Offset = NO_OFFSET
        """-1 until it is known. Commits of other brokers may have moved it already."""
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


class AskedTail(NamedTuple):
    """A partition that the database is asked for, and what was known of it before."""

    tail: Tail
    high_watermark: Offset
    log_start_offset: Offset
    diskless_start_offset: Offset
    at: float
