"""The offsets of diskless logs as far as this broker knows them, and the fetches that wait for them to move.

Own commits are known at once. The database announces the commits of other brokers; after an announcement, and each
second in case one was lost, one query asks for all watched partitions. If no other process can write, the query is
rare, for own commits whose answer was lost. Without watched partitions there are no queries.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, Protocol, TypeAlias

from strandline.clock import Clock
from strandline.controlplane import COMMIT_CHANNEL, BatchReads
from strandline.diskless.reader.cache import BlockCache, PartitionBlocks
from strandline.model import NO_OFFSET, Offset, TopicIdPartition
from strandline.reads import Watcher
from strandline.sql import SqlError
from strandline.tasks import Setbacks

logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 1.0
EXCLUSIVE_POLL_SECONDS: Final = 10.0
# Every commit of every broker is announced: under load one query answers several announcements.
QUERY_GAP_SECONDS: Final = 0.02


# Whether the metadata has the topic of a partition.
IsKnown: TypeAlias = Callable[[TopicIdPartition], bool]


class Announcements(Protocol):
    """Announces commits: the part of a SqlStore that is needed here."""

    @property
    def is_exclusive(self) -> bool:
        """True if no other process can commit."""

    def listen(self, channel: str, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` after commits; some calls may be lost. Returns a function that ends it."""


class Tail:
    """One partition: its known offsets, its blocks in memory, its watchers."""

    __slots__ = ("blocks", "high_watermark", "known_at", "log_start_offset", "news_seen", "partition", "watchers")

    def __init__(self, partition: TopicIdPartition) -> None:
        self.partition = partition
        self.blocks = PartitionBlocks()
        self.high_watermark: Offset = NO_OFFSET
        """-1 until it is known. Commits of other brokers may have moved it already."""
        self.log_start_offset: Offset = NO_OFFSET
        self.known_at = 0.0
        """When the offsets were last known to be right."""
        self.news_seen = -1
        """The number of announcements received when the offsets were queried."""
        self.watchers: set[Watcher] = set()


class Tails:
    """All partitions that were read or written on this broker. Lives on the event loop."""

    def __init__(
        self,
        plane: BatchReads,
        announcements: Announcements,
        cache: BlockCache,
        clock: Clock,
        *,
        is_known: IsKnown,
    ) -> None:
        self._is_known = is_known
        self._plane, self._announcements, self._cache, self._clock = plane, announcements, cache, clock
        self.by_partition: dict[TopicIdPartition, Tail] = {}
        self.is_shared = not announcements.is_exclusive
        """Whether other processes commit as well."""
        self._poll_seconds = POLL_SECONDS if self.is_shared else EXCLUSIVE_POLL_SECONDS
        self.fresh_seconds = 2 * self._poll_seconds
        """Offsets older than this may be outdated, unless the partition is watched."""
        self.news = 0
        """Announcements received so far."""
        self.queries = 0
        self._watched: dict[TopicIdPartition, Tail] = {}
        self._wake = asyncio.Event()
        self._is_idle = False
        self._is_stale = False
        self._is_stopping = False
        self._asked_at = clock.monotonic()
        self._setbacks = Setbacks("reading the offsets of diskless logs", logger)

    # Known offsets

    def of(self, partition: TopicIdPartition) -> Tail:
        """The tail of a partition, created if there is none.

        The tail of a deleted topic is for the caller alone: its log may take commits until the controller has removed
        it, and nothing would make this broker forget what it kept of them.
        """
        tail = self.by_partition.get(partition)
        if tail is None:
            tail = Tail(partition)
            if self._is_known(partition):
                self.by_partition[partition] = tail
            else:
                self._cache.forget(tail.blocks)
        return tail

    def learn(self, tail: Tail, high_watermark: Offset, log_start_offset: Offset) -> None:
        """Take over offsets just read or committed. They never go back; watchers are notified if they moved."""
        tail.known_at = self._clock.monotonic()
        has_moved = self._move_start(tail, log_start_offset)
        if high_watermark > tail.high_watermark:
            tail.high_watermark = high_watermark
            has_moved = True
        if has_moved:
            _notify(tail)

    def trim(self, tail: Tail, log_start_offset: Offset) -> None:
        """Records below this offset were deleted."""
        if self._move_start(tail, log_start_offset):
            _notify(tail)

    def _move_start(self, tail: Tail, log_start_offset: Offset) -> bool:
        if log_start_offset <= tail.log_start_offset:
            return False
        tail.log_start_offset = log_start_offset
        self._cache.trim(tail.blocks, log_start_offset)
        return True

    def forget(self, partition: TopicIdPartition) -> None:
        """The log was deleted. Watchers are notified, and get the error when they read."""
        tail = self.by_partition.pop(partition, None)
        if tail is not None:
            self._watched.pop(partition, None)
            self._cache.forget(tail.blocks)
            _notify(tail)

    # Watching

    def watch(self, partition: TopicIdPartition, watcher: Watcher) -> None:
        """Notify `watcher` after commits to the partition: of this broker at once, of other brokers soon."""
        tail = self.of(partition)
        if tail.blocks.is_forgotten:
            watcher.notify()  # as `forget` does
            return
        if not tail.watchers:
            self._watched[partition] = tail
        tail.watchers.add(watcher)
        if self.is_shared and tail.news_seen != self.news:
            self._is_stale = True
            self._wake.set()
        elif self._is_idle:
            self._wake.set()

    def unwatch(self, partition: TopicIdPartition, watcher: Watcher) -> None:
        """Stop notifying. Harmless if `watch` is over already."""
        tail = self.by_partition.get(partition)
        if tail is not None:
            tail.watchers.discard(watcher)
            if not tail.watchers:
                self._watched.pop(partition, None)

    @property
    def watched(self) -> int:
        """Partitions with at least one watcher."""
        return len(self._watched)

    # Following

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Follow the commits of other brokers while the block lasts."""
        async with AsyncExitStack() as stack:
            if self.is_shared:
                stack.callback(self._announcements.listen(COMMIT_CHANNEL, self._announced))
            tasks = await stack.enter_async_context(asyncio.TaskGroup())
            tasks.create_task(self._follow(), name="diskless-tails")
            yield
            self._is_stopping = True
            self._wake.set()

    def _announced(self) -> None:
        self.news += 1
        if self._watched:
            self._is_stale = True
            self._wake.set()

    async def _follow(self) -> None:
        while not self._is_stopping:
            if self._watched:
                await self._clock.wait_set(self._wake, within=max(self._due_in(), 0.0))
            else:
                self._is_idle = True
                await self._wake.wait()
                self._is_idle = False
                if not self._is_stale:
                    self._asked_at = self._clock.monotonic()  # what the first watcher knows has just been read
            self._wake.clear()
            if self._watched and not self._is_stopping and self._due_in() <= 0:
                await self._ask()

    def _due_in(self) -> float:
        pause = QUERY_GAP_SECONDS if self._is_stale else self._poll_seconds
        return self._asked_at + pause - self._clock.monotonic()

    async def _ask(self) -> None:
        """One query for everything that is watched."""
        news = self.news
        partitions = tuple(self._watched)
        self._asked_at = self._clock.monotonic()
        self._is_stale = False
        self.queries += 1
        try:
            logs = await self._plane.logs(partitions)
        except SqlError as error:
            self._setbacks.met(error)
            return
        self._setbacks.over()
        for partition in partitions:
            tail = self.by_partition.get(partition)
            log = logs.get(partition)
            if log is None:
                self.forget(partition)
            elif tail is not None:
                tail.news_seen = news
                self.learn(tail, log.high_watermark, log.log_start_offset)


def _notify(tail: Tail) -> None:
    if not tail.watchers:
        return
    for watcher in tuple(tail.watchers):
        watcher.notify()
