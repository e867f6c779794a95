"""When partitions are asked for again after an error."""

from __future__ import annotations

import heapq
import itertools
from typing import Final

from strandline.replication.fetching.followed import FollowedPartition

FIRST_RETRY_SECONDS: Final = 0.02
"""It doubles up to replica.fetch.backoff.ms: a leader that has just been elected is ready within milliseconds."""
_MOST_DOUBLINGS: Final = 20


def retry_delay(attempt: int, *, most: float) -> float:
    """Seconds after the attempt of this number, counted from 1, has failed."""
    return min(most, FIRST_RETRY_SECONDS * 2.0 ** min(attempt - 1, _MOST_DOUBLINGS))


class Retries:
    """The partitions that wait, by the time at which they are due."""

    __slots__ = ("_numbers", "_waiting")

    def __init__(self) -> None:
        self._waiting: list[tuple[float, int, FollowedPartition]] = []
        self._numbers = itertools.count()

    def add(self, followed: FollowedPartition, now: float, *, most: float) -> None:
        """One more attempt has failed."""
        followed.attempts += 1
        followed.retry_at = due = now + retry_delay(followed.attempts, most=most)
        heapq.heappush(self._waiting, (due, next(self._numbers), followed))

    def next_due(self) -> float | None:
        """When the first of them is due."""
        waiting = self._waiting
        while waiting and waiting[0][2].retry_at != waiting[0][0]:  # it has been delayed once more
            heapq.heappop(waiting)
        return waiting[0][0] if waiting else None

    def take_due(self, now: float) -> list[FollowedPartition]:
        """Those that are due. They do not wait any more."""
        taken: list[FollowedPartition] = []
        while (due := self.next_due()) is not None and due <= now:
            followed = heapq.heappop(self._waiting)[2]
            followed.retry_at = None
            taken.append(followed)
        return taken
