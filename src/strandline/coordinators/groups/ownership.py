"""A shard this broker owns: being loaded, active, or failed."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from enum import Enum, auto

from strandline.clock import Clock
from strandline.coordinators.groups.log import GroupLog
from strandline.coordinators.groups.shard import GroupShard
from strandline.coordinators.groups.writes import LogWriter
from strandline.errors import StrandlineError
from strandline.model import LeaderEpoch

_log = logging.getLogger(__name__)

# Other requests get their turn after so many records.
_RECORDS_PER_TURN = 500


class ShardState(Enum):
    LOADING = auto()
    ACTIVE = auto()
    FAILED = auto()
    """The log could not be read. The next election tries again."""
    CLOSED = auto()


@dataclass(slots=True)
class OwnedShard:
    """A shard with its place in the log and its state."""

    partition: int
    leader_epoch: LeaderEpoch
    shard: GroupShard
    writer: LogWriter
    state: ShardState = ShardState.LOADING
    loading: asyncio.Task[None] | None = None
    _topics_gone: set[str] = field(default_factory=set)

    async def load(self, log: GroupLog, clock: Clock) -> None:
        """Read the whole partition, then serve."""
        records = 0
        try:
            async for batch in log.read(self.partition):
                self.shard.replay(batch)
                records += len(batch.records)
                if records % _RECORDS_PER_TURN < len(batch.records):
                    await clock.sleep(0)
        except StrandlineError as error:
            _log.error("groups of partition %d cannot be loaded: %s", self.partition, error)
            self.state = ShardState.FAILED
            return
        self.state = ShardState.ACTIVE
        self.shard.start()
        if self._topics_gone:
            self.shard.drop_topics(frozenset(self._topics_gone))
        if records:
            _log.info(
                "loaded %d groups and %d offsets of partition %d from %d records",
                len(self.shard.groups),
                len(self.shard.offsets),
                self.partition,
                records,
            )

    def drop_topics(self, topics: frozenset[str]) -> None:
        """Topics were deleted; while loading this waits for the end."""
        if self.state is ShardState.ACTIVE:
            self.shard.drop_topics(topics)
        else:
            self._topics_gone |= topics

    def close(self, error: StrandlineError) -> None:
        """Answer everyone who waits with `error`, and forget."""
        was_active = self.state is ShardState.ACTIVE
        self.state = ShardState.CLOSED
        if self.loading is not None:
            self.loading.cancel()
        self.writer.close(error)
        if was_active:
            self.shard.stop(error)
