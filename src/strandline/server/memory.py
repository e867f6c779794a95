"""Memory that clients make the broker hold, and its limits.

Each kind has a budget of its own, so that requests which wait for a store or a database, and answers that wait for a
slow reader, never take the room of requests that could be served at once:

- `frames`: requests that are being served (queued.max.request.bytes). While it is full, a connection without an
  unanswered request is still read, as long as its next request is small: heartbeats always come through.
- `commits`: diskless batches that wait to be uploaded and committed (strandline.queued.max.diskless.bytes). While it is
  full, only connections that have such batches are not read.
- `answers`: records in memory on their way to clients (strandline.queued.max.answer.bytes). It limits how much one
  Fetch may read; see `AnswerMemory`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from strandline.config import NetworkSettings
from strandline.reads import Watcher

_ROOM: Final = 0.75
SHARE_OF_REST: Final = 4


class ByteBudget:
    """Counts bytes. It is full from its limit on until a quarter of it is free again, so that it does not flicker."""

    __slots__ = ("_changed", "_low", "held", "is_full", "limit")

    def __init__(self, limit: int, changed: Callable[[], None]) -> None:
        """`changed` is called when the budget has become full, and when it has room again."""
        self.limit = limit
        self.held = 0
        self.is_full = False
        self._low = int(limit * _ROOM)
        self._changed = changed

    def take(self, size: int) -> None:
        """Hold this many bytes more, also beyond the limit: the caller has them already."""
        self.held += size
        if not self.is_full and self.held >= self.limit:
            self.is_full = True
            self._changed()

    def give_back(self, size: int) -> None:
        """Hold this many bytes less."""
        self.held -= size
        if self.is_full and self.held <= self._low:
            self.is_full = False
            self._changed()


class AnswerMemory(ByteBudget):
    """Records in memory that are being read for clients or sent to them.

    An answer gets a quarter of what is left: clients that never read cannot take everything, and what they leave is
    enough for others. Segment files, which are sent by the kernel, do not count.
    """

    __slots__ = ("_waiting",)

    def __init__(self, limit: int) -> None:
        super().__init__(limit, self._notify)
        self._waiting: set[Watcher] = set()

    @property
    def allowance(self) -> int:
        """How many bytes one more answer may hold; 0: none, wait until there is room."""
        return 0 if self.is_full else max((self.limit - self.held) // SHARE_OF_REST, 1)

    def room_beside(self, held: int, watcher: Watcher) -> int:
        """How many bytes an answer may hold besides those it has. `watcher` is notified when there is room again."""
        if self.is_full:
            self.watch(watcher)
            return 0
        return max(self.allowance - held, 0)

    def watch(self, watcher: Watcher) -> None:
        """Notify `watcher` once when there is room again."""
        self._waiting.add(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        """Do not notify `watcher`."""
        self._waiting.discard(watcher)

    def _notify(self) -> None:
        if not self.is_full:
            waiting, self._waiting = self._waiting, set()
            for watcher in waiting:
                watcher.notify()


class ReadGrant:
    """The memory that one Fetch has taken for its reads, until it is answered."""

    __slots__ = ("_answers", "size")

    def __init__(self, answers: AnswerMemory) -> None:
        self._answers = answers
        self.size = 0
        """How many bytes were taken and not given back."""

    def take(self, wanted: int) -> int:
        """Take up to `wanted` bytes more; returns how many it got, 0 if there is no room."""
        size = min(wanted, self._answers.allowance)
        self.size += size
        self._answers.take(size)
        return size

    def resize(self, size: int) -> None:
        """The records that were read take so much, also if that is more than there is room for: they are there."""
        if size > self.size:
            self._answers.take(size - self.size)
            self.size = size
        else:
            self.give_back_all_but(size)

    def give_back(self) -> None:
        """The records that were read are on their way, or not wanted any more."""
        self.give_back_all_but(0)

    def give_back_all_but(self, size: int) -> None:
        """What was read is smaller than what was taken for it."""
        unused = self.size - size
        if unused > 0:
            self.size = size
            self._answers.give_back(unused)


class ClientMemory:
    """The three budgets of a broker."""

    def __init__(self, settings: NetworkSettings, *, has_room: Callable[[], None]) -> None:
        """`has_room` is called when connections that were not read may be read again."""
        self.frames = ByteBudget(settings.max_held_bytes, self._changed)
        self.commits = ByteBudget(settings.diskless_pause_bytes, self._changed)
        self.answers = AnswerMemory(settings.strandline_queued_max_answer_bytes)
        self.is_tight = False
        """True while some connections are not read."""
        self._has_room = has_room

    @property
    def by_name(self) -> Mapping[str, ByteBudget]:
        """The budgets, by what holds their memory."""
        return {"requests": self.frames, "diskless_batches": self.commits, "answers": self.answers}

    def _changed(self) -> None:
        was_tight = self.is_tight
        self.is_tight = self.frames.is_full or self.commits.is_full
        if was_tight:
            self._has_room()
