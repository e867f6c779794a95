"""What a Fetch that waits asks of the handler that it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Protocol

from strandline.hybrid.partition import ServedPartition
from strandline.hybrid.partitions import Partitions
from strandline.server.deadlines import Deadline
from strandline.server.handlers.fetch.sharing import LookingPoll
from strandline.server.memory import AnswerMemory
from strandline.wire.fetch_codec import FetchEntry


class PollOwner(Protocol):
    """What a poll asks of the handler."""

    @property
    def partitions(self) -> Partitions:
        """Where partitions are found."""

    @property
    def memory(self) -> AnswerMemory:
        """For records in memory."""

    @property
    def max_bytes(self) -> int:
        """The most that one response holds, unless the first batch is larger."""

    def find(self, entry: FetchEntry) -> ServedPartition:
        """The partition an entry means. Raises StrandlineError."""

    def call_within(self, seconds: float, callback: Callable[[], None]) -> Deadline:
        """Call back after this time."""

    def look_soon(self, poll: LookingPoll) -> None:
        """Call `look` when this turn of the loop is through with its appends."""

    def start(self, work: Coroutine[None, None, None]) -> None:
        """Do something that the poll waits for."""
