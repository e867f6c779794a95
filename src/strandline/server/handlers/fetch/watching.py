"""The partitions that a Fetch has found, and how it hears of their news while it waits."""

from __future__ import annotations

from strandline.hybrid.partition import ServedPartition
from strandline.reads import Watcher
from strandline.server.fetch_sessions import FetchContext, Place


class PollWatch:
    """Of one poll. Places of a session that watch their partitions pass their news on; the others are watched here."""

    __slots__ = ("_sees_growth", "_watched", "found")

    def __init__(self, *, sees_growth: bool = False) -> None:
        """`sees_growth`: the reader is a follower, which sees records before they are replicated."""
        self._sees_growth = sees_growth
        self.found: dict[Place, ServedPartition] = {}
        """The partitions as the last look found them, in the order of their places. Written by `PlaceReads`."""
        self._watched: set[ServedPartition] = set()

    def start(self, poll: Watcher, context: FetchContext) -> None:
        """Let the poll be notified of every partition. Harmless if it is already."""
        context.watch(poll)
        for place, partition in self.found.items():
            if not place.watches and partition not in self._watched:
                partition.newest.watch(poll)
                replica = partition.appends.local_replica if self._sees_growth else None
                if replica is not None:
                    replica.watch_growth(poll)
                self._watched.add(partition)

    def stop(self, poll: Watcher, context: FetchContext) -> None:
        """Do not notify the poll any more."""
        context.unwatch(poll)
        for partition in self._watched:
            partition.newest.unwatch(poll)
            replica = partition.appends.local_replica if self._sees_growth else None
            if replica is not None:
                replica.unwatch_growth(poll)
        self._watched.clear()
