"""Polls that were woken in one turn of the event loop look at their partitions together, and share what they read.

An append usually wakes several consumers that wait at the same offset of the same partition. They get the same records
with the same offsets: only correlation id and session id differ, which stand at the beginning of an answer. So the
first poll reads, and the others send a copy of its bytes. Nothing is kept beyond the one pass over these polls, in
which no partition can change: there is nothing to invalidate.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, NamedTuple, Protocol

from strandline.log import FileSlice
from strandline.reads import FetchIsolation
from strandline.server.exchange import Exchange
from strandline.server.page_cache import PageCache
from strandline.wire.fetch_codec import FetchAnswer, FetchEntry, write_fetch_body, write_fetch_head

logger = logging.getLogger(__name__)

LARGEST_SHARED: Final = 16 * 1024
"""Larger record sets leave by themselves from their files."""


class ShareKey(NamedTuple):
    """All that an answer with records of one partition depends on, beside the state of the partition."""

    entry: FetchEntry
    max_bytes: int
    """Of the whole response."""
    isolation: FetchIsolation
    api_version: int


class SharedAnswer(NamedTuple):
    """An answer with the records of one partition, ready to be sent behind any head."""

    answer: FetchAnswer
    length: int
    """How many bytes of records there are."""
    body: bytes

    def send(self, exchange: Exchange, session_id: int) -> None:
        """Answer a request with it. The records are in memory, and counted as such."""
        head = write_fetch_head(exchange.correlation_id, exchange.api_version, session_id, len(self.body))
        exchange.respond([head + self.body], memory=self.length)


class SharedAnswers:
    """The answers of one pass."""

    __slots__ = ("_answers", "_pages")

    def __init__(self, pages: PageCache) -> None:
        self._pages = pages
        self._answers: dict[ShareKey, SharedAnswer] = {}

    def get(self, key: ShareKey) -> SharedAnswer | None:
        """What another poll has found for the same request."""
        return self._answers.get(key)

    def add(self, key: ShareKey, answer: FetchAnswer) -> SharedAnswer | None:
        """Read the records of an answer for all polls that want the same.

        None if it cannot be shared: it has no records or an error, they do not come from a file, are too many, or are
        not in the page cache.
        """
        records = answer.records
        if type(records) is not FileSlice or records.length > LARGEST_SHARED or answer.error_code:
            return None
        data = self._pages.read(records.file.fileno(), records.position, records.length)
        if data is None or len(data) < records.length:
            return None
        shared = SharedAnswer(answer, records.length, write_fetch_body(answer, data, key.api_version))
        self._answers[key] = shared
        return shared


class LookingPoll(Protocol):
    """A poll that was woken."""

    def look(self, shared: SharedAnswers) -> None:
        """Answer if there is enough now."""


class WokenPolls:
    """Gathers the polls that are woken in one turn of the event loop."""

    __slots__ = ("_loop", "_pages", "_woken")

    def __init__(self, loop: asyncio.AbstractEventLoop, pages: PageCache) -> None:
        self._loop, self._pages = loop, pages
        self._woken: list[LookingPoll] = []

    def add(self, poll: LookingPoll) -> None:
        """Let the poll look once this turn of the loop is through with its appends."""
        if not self._woken:
            self._loop.call_soon(self._look)
        self._woken.append(poll)

    def _look(self) -> None:
        woken, self._woken = self._woken, []
        shared = SharedAnswers(self._pages)
        for poll in woken:
            try:
                poll.look(shared)
            except Exception:  # a poll that fails must not keep the others waiting
                logger.exception("a Fetch that was woken could not be answered")
