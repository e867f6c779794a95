"""The partitions that a Fetch has found, and how it hears of their news while it waits."""

from __future__ import annotations

from strandline.hybrid.partition import ServedPartition
from strandline.reads import Watcher
from strandline.server.fetch_sessions import FetchContext, Place


class PollWatch:
    """Of one poll. Places of a session that watch their partitions pass their news on; the others are watched here."""

    __slots__ = ("_unwatched", "_watched", "found")

    def __init__(self) -> None:
        self.found: list[ServedPartition] = []
        """The partitions in the order of their places, as the last read found them."""
        self._unwatched: list[ServedPartition] = []
        self._watched: set[ServedPartition] = set()

    def read_again(self) -> None:
        """The partitions are going to be found again."""
        self.found, self._unwatched = [], []

    def note(self, place: Place, partition: ServedPartition) -> None:
        """A partition was found."""
        self.found.append(partition)
        if not place.watches:
            self._unwatched.append(partition)

    def start(self, poll: Watcher, context: FetchContext) -> None:
        """Let the poll be notified of every partition. Harmless if it is already."""
        context.watch(poll)
        for partition in self._unwatched:
            if partition not in self._watched:
                partition.newest.watch(poll)
                self._watched.add(partition)

    def stop(self, poll: Watcher, context: FetchContext) -> None:
        """Do not notify the poll any more."""
        context.unwatch(poll)
        for partition in self._watched:
            partition.newest.unwatch(poll)
        self._watched.clear()
