"""Places in the fetch session of a follower: another broker, which copies thousands of partitions from this one.

As for clients, a place that was found idle is not looked at again before its partition has news; see `fetch_sessions`.
What is different: a follower has everything when it is at the end of the log, and not at the high watermark. It is to
hear of a high watermark that has moved, but not at once: that alone does not end its wait, as in Kafka. And each of its
requests says of every partition of the session that the follower still is where it was: while a place rests, its
`Follower` knows the times of these requests (`FollowerVisits`). A follower that is not in sync is seen each time, since
it may join with any request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.hybrid.partition import ServedPartition
from strandline.model import NO_EPOCH, BrokerId, LeaderEpoch
from strandline.replication import FollowerVisits, LeaderRole, Partition
from strandline.server.fetch_places import Place
from strandline.wire.fetch_codec import FetchEntry

if TYPE_CHECKING:
    from strandline.server.fetch_sessions import FetchSession


class FollowerPlace(Place):
    """See the module."""

    __slots__ = ("_broker", "_seen", "_seen_epoch", "_visits")

    def __init__(self, entry: FetchEntry, session: FetchSession, broker: BrokerId, visits: FollowerVisits) -> None:
        super().__init__(entry, session)
        self._broker: Final = broker
        self._visits: Final = visits
        self._seen: FetchEntry | None = None
        self._seen_epoch: LeaderEpoch = NO_EPOCH

    def visited(self, leader_epoch: LeaderEpoch) -> None:
        """The leader, in this epoch, has taken note of where the follower is, and has found that their logs agree."""
        self._seen, self._seen_epoch = self.entry, leader_epoch

    def idle_partition(self) -> ServedPartition | None:
        """The partition, if a request would tell the leader nothing that it does not know, and the follower neither."""
        partition = self.served()
        if partition is None or self.is_unsettled or self._seen is not self.entry:
            return None
        replica = partition.appends.local_replica
        if (
            replica is not None
            and not self._would_end_wait(replica)
            and self._broker in replica.isr
            and partition.newest.stands_at(self.sent_high_watermark, self.sent_log_start)
        ):
            return partition
        return None

    def rest(self, partition: ServedPartition) -> None:
        """See `Place.rest`. From now on each request of the session shows that the follower still has everything."""
        super().rest(partition)
        replica = partition.appends.local_replica
        if replica is not None and isinstance(replica.role, LeaderRole):
            replica.role.follower_rests(self._broker, self._visits)

    def notify(self) -> None:
        """See `Watcher`. Requests that wait look again if there are records, or another leader."""
        session = self._session
        if session is None:
            return
        self._wake_follower()
        partition = self.served()
        replica = None if partition is None else partition.appends.local_replica
        if replica is None or self._would_end_wait(replica):
            super().notify()
        else:
            self.activate()

    def _watch(self, partition: ServedPartition) -> None:
        """A follower sees records before they are replicated."""
        super()._watch(partition)
        replica = partition.appends.local_replica
        if replica is not None:
            replica.watch_growth(self)

    def _stop_watching(self, partition: ServedPartition) -> None:
        super()._stop_watching(partition)
        replica = partition.appends.local_replica
        if replica is not None:
            replica.unwatch_growth(self)

    def leave(self) -> None:
        self._wake_follower()
        super().leave()

    def _would_end_wait(self, replica: Partition) -> bool:
        return replica.log.offsets.end != self.entry.fetch_offset or replica.leader_epoch != self._seen_epoch

    def _wake_follower(self) -> None:
        partition = self.served()
        replica = None if partition is None else partition.appends.local_replica
        if replica is not None and isinstance(replica.role, LeaderRole):
            replica.role.follower_wakes(self._broker, self._visits)
