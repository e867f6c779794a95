"""The offsets of diskless logs as far as this broker knows them, and the fetches that wait for them to move.

Own commits are known at once. The database announces the commits of other brokers, and log starts that moved; after an
announcement, and each second in case one was lost, one query asks for all partitions that are watched or read. If no
other process can write, the query is rare, for own commits whose answer was lost. Without fetches there are no queries.

Records in memory are served while their offsets are known to be right, or the database does not answer. If it has lost
commits (`history`), all that was known is dropped.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, Protocol, TypeAlias

from strandline.clock import Clock
from strandline.controlplane import COMMIT_CHANNEL, TRIM_CHANNEL, BatchReads, BatchRow
from strandline.diskless.reader.cache import BlockCache
from strandline.diskless.reader.history import REMEMBERED_SECONDS, CommittedObjects
from strandline.diskless.reader.tail import AskedTail, FoundOffsets, Tail
from strandline.diskless.values import CommittedBlock
from strandline.model import Offset, TopicIdPartition
from strandline.reads import Watcher
from strandline.sql import SqlError
from strandline.tasks import Setbacks

logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 1.0
EXCLUSIVE_POLL_SECONDS: Final = 10.0
# Every commit of every broker is announced: under load one query answers several announcements.
QUERY_GAP_SECONDS: Final = 0.02
# Reads wait this long for the database to confirm what is in memory, and are served without it then.
CONFIRM_SECONDS: Final = 1.0
# Reads go on for this long after log starts have moved, while the new ones are asked for.
_TRIM_SECONDS: Final = 0.25

# Whether the metadata has the topic of a partition.
IsKnown: TypeAlias = Callable[[TopicIdPartition], bool]


class Announcements(Protocol):
    """Announces commits: the part of a SqlStore that is needed here."""

    @property
    def is_exclusive(self) -> bool:
        """True if no other process can commit."""

    def listen(self, channel: str, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` after commits; some calls may be lost. Returns a function that ends it."""


class Tails:
    """All partitions that were read or written on this broker. Lives on the event loop."""

    def __init__(
        self,
        batches: BatchReads,
        announcements: Announcements,
        cache: BlockCache,
        clock: Clock,
        *,
        is_known: IsKnown,
    ) -> None:
        self._is_known = is_known
        self._batches, self._announcements, self._cache, self._clock = batches, announcements, cache, clock
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
        self._objects = CommittedObjects()
        self._objects_checked_at = clock.monotonic()
        self._wanted: dict[TopicIdPartition, Tail] = {}
        """Partitions that were read from memory and have to be confirmed."""
        self._confirmed = asyncio.Event()
        """Set when they are, or cannot be."""
        self._trimmed_at = -math.inf
        self._asking_since = math.inf
        self._failed_at = -math.inf

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

    def asked(self, tail: Tail) -> AskedTail:
        """What is known before a query."""
        known = (tail.high_watermark, tail.log_start_offset, tail.diskless_start_offset)
        return AskedTail(tail, *known, self._clock.monotonic())

    def answered(self, asked: AskedTail, found: FoundOffsets) -> None:
        """Take over what a query found. Offsets that are lower than those known before it are those of a database that
        has lost commits: then the tail, and all others, are replaced."""
        tail = asked.tail
        if tail.is_replaced:
            return
        for what, before, now in (
            ("end", asked.high_watermark, found.high_watermark),
            ("start", asked.log_start_offset, found.log_start_offset),
            ("read boundary", asked.diskless_start_offset, found.diskless_start_offset),
        ):
            if now < before and not tail.blocks.is_forgotten:
                self.start_again(f"the {what} of {tail.partition.topic_partition} went back from {before} to {now}")
                tail = self.of(tail.partition)
                break
        self.found_offsets(tail, found, at=asked.at)

    def found_offsets(self, tail: Tail, found: FoundOffsets, *, at: float | None = None) -> None:
        """Take over what a query has found, at a time."""
        tail.diskless_start_offset = max(tail.diskless_start_offset, found.diskless_start_offset)
        has_grown = tail.grow(found.high_watermark, found.first_unstable_offset)
        if has_grown:
            tail.aborts.log_ends_at(found.high_watermark, found.last_aborted_offset)
        self._learnt(tail, found.log_start_offset, has_grown, at)

    def committed_block(self, tail: Tail, block: CommittedBlock, log_start_offset: Offset) -> None:
        """Take over the offsets of a row that this broker has committed."""
        end = block.last_offset + 1
        has_grown = tail.grow(end, block.first_unstable_offset)
        if has_grown:
            tail.aborts.committed(block.base_offset, end, block.aborted, block.last_aborted_offset)
        self._learnt(tail, log_start_offset, has_grown, None)

    def _learnt(self, tail: Tail, log_start_offset: Offset, has_grown: bool, at: float | None) -> None:
        """Offsets were just committed, or read at a time. They never go back; watchers are told if they moved."""
        tail.known_at = max(tail.known_at, self._clock.monotonic() if at is None else at)
        if self._move_start(tail, log_start_offset) or has_grown:
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

    def start_again(self, why: str) -> None:
        """The database has lost commits: drop everything that is known, in memory or not. Watchers look again."""
        logger.error(
            "the database has lost commits (%s): what this broker had in memory of diskless topics is dropped and read "
            "again. Acknowledged records are gone, and other records get their offsets. The database needs synchronous "
            "replication: see docs/operations.md",
            why,
        )
        self._replace_all()

    def _replace_all(self) -> None:
        self._objects.clear()
        for partition, old in tuple(self.by_partition.items()):
            self._cache.forget(old.blocks)
            old.is_replaced = True
            tail = self.by_partition[partition] = Tail(partition)
            tail.watchers = old.watchers
            if partition in self._watched:
                self._watched[partition] = tail
            _notify(tail)

    # Being right

    def committed(self, object_key: str) -> None:
        """This broker has committed an object."""
        if self.is_shared:
            self._remember_since()
            self._objects.committed(object_key)
            if self._objects.has_many:
                self._wake.set()

    def found(self, rows: Sequence[BatchRow]) -> None:
        """A query has returned rows."""
        if self.is_shared:
            self._remember_since()
            self._objects.found(rows)

    def _remember_since(self) -> None:
        if self._objects.is_empty:
            self._objects_checked_at = self._clock.monotonic()

    def is_outdated(self, tail: Tail) -> bool:
        """Whether a read from memory has to `confirm` the offsets first: records may have been deleted or lost.

        False while the database does not answer. Partitions that are read again and again are confirmed in the
        background, before a read has to wait for it.
        """
        if not self.is_shared:
            return False
        now = self._clock.monotonic()
        age = now - tail.known_at
        is_trimmed = tail.known_at <= self._trimmed_at
        unchecked = self._unchecked_seconds(now)
        if age <= POLL_SECONDS and unchecked <= POLL_SECONDS and not is_trimmed:
            return False
        self._want(tail, is_urgent=is_trimmed)
        if self._failed_at + self.fresh_seconds >= now or self._asking_since + CONFIRM_SECONDS <= now:
            return False
        return (
            age > self.fresh_seconds
            or unchecked > self.fresh_seconds + POLL_SECONDS
            or (is_trimmed and self._trimmed_at + _TRIM_SECONDS < now)
        )

    def _unchecked_seconds(self, now: float) -> float:
        """For how long objects were not looked for. Offsets alone do not tell that commits were lost: others may have
        been given the same."""
        return 0.0 if self._objects.is_empty else now - self._objects_checked_at

    async def confirm(self, tails: Iterable[Tail]) -> None:
        """Return when the offsets of these tails are known to be right, or cannot be read for a second."""
        for tail in tails:
            self._want(tail, is_urgent=True)
        await self._clock.wait_set(self._confirmed, within=CONFIRM_SECONDS)

    def _want(self, tail: Tail, *, is_urgent: bool) -> None:
        self._wanted[tail.partition] = tail
        self._is_stale = self._is_stale or (is_urgent and self._failed_at < self._asked_at)
        if self._is_stale or self._is_idle:
            self._wake.set()

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
                stack.callback(self._announcements.listen(TRIM_CHANNEL, self._trimmed))
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

    def _trimmed(self) -> None:
        self._trimmed_at = self._clock.monotonic()
        self._announced()

    @property
    def _has_questions(self) -> bool:
        return bool(self._watched or self._wanted or self._objects.has_many)

    async def _follow(self) -> None:
        while not self._is_stopping:
            if self._has_questions:
                await self._clock.wait_set(self._wake, within=max(self._due_in(), 0.0))
            else:
                self._is_idle = True
                await self._wake.wait()
                self._is_idle = False
                if not (self._is_stale or self._wanted):
                    self._asked_at = self._clock.monotonic()  # what the first watcher knows has just been read
            self._wake.clear()
            if self._has_questions and not self._is_stopping and self._due_in() <= 0:
                await self._ask()

    def _due_in(self) -> float:
        pause = QUERY_GAP_SECONDS if self._is_stale else self._poll_seconds
        return self._asked_at + pause - self._clock.monotonic()

    async def _ask(self) -> None:
        """One query for everything that is watched or read; now and then one more, for objects."""
        news = self.news
        confirmed, self._confirmed = self._confirmed, asyncio.Event()
        tails, self._wanted = self._wanted | self._watched, {}
        asked = [self.asked(tail) for tail in tails.values()]
        self._asked_at = self._asking_since = self._clock.monotonic()
        self._is_stale = False
        self.queries += 1
        try:
            await self._look_for_objects()
            logs = await self._batches.logs(tails)
        except SqlError as error:
            self._failed_at = self._clock.monotonic()
            self._setbacks.met(error)
            return
        finally:
            self._asking_since = math.inf
            confirmed.set()
        self._failed_at = -math.inf
        self._setbacks.over()
        for one in asked:
            log = logs.get(one.tail.partition)
            if log is None:
                self.forget(one.tail.partition)
            else:
                one.tail.news_seen = news
                self.answered(one, log)

    async def _look_for_objects(self) -> None:
        """Once a second at most. Raises SqlError."""
        now = self._clock.monotonic()
        since = now - self._objects_checked_at
        keys = self._objects.to_look_for(now)
        if not keys or (since < self._poll_seconds and not self._objects.has_many):
            return
        if since > REMEMBERED_SECONDS:
            self._replace_all()  # the database may have forgotten them rightly
        else:
            self.queries += 1
            lost = self._objects.looked_for(keys, await self._batches.known_files(keys), now)
            if lost is not None:
                self.start_again(f"it does not know the object {lost}, which was committed")
        self._objects_checked_at = now


def _notify(tail: Tail) -> None:
    if not tail.watchers:
        return
    for watcher in tuple(tail.watchers):
        watcher.notify()
