"""What time does to partitions that this broker leads: followers that lag for too long leave the in-sync sets.

One timer for the whole broker. A look costs by the partitions that have followers.
"""

from __future__ import annotations

from strandline.clock import Clock
from strandline.replication.isr_changes import IsrChangeSender
from strandline.replication.replica_manager import ReplicaManager


class LeaderUpkeep:
    """Runs while the broker may lead."""

    def __init__(self, replicas: ReplicaManager, changes: IsrChangeSender, clock: Clock, *, lag_seconds: float) -> None:
        self._replicas, self._clock = replicas, clock
        self.changes = changes
        """Changes of in-sync sets on their way to the controller."""
        self._interval = lag_seconds / 2

    async def run(self) -> None:
        """Look every half of replica.lag.time.max.ms, as Kafka does: a follower leaves after 1 to 1.5 times that."""
        while True:
            await self._clock.sleep(self._interval)
            self._replicas.check_in_sync_sets()

    async def close(self) -> None:
        """Ask the controller for nothing more."""
        await self.changes.close()
