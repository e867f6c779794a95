"""A partition that a coordinator owns: its shard, its writer, and whether it is loading, active or failed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Generic, Protocol, TypeVar

from strandline.clock import Clock
from strandline.coordinators.runtime.log import CoordinatorLog, ReadBatch, WriteResult
from strandline.coordinators.runtime.writer import CoordinatorPartitionWriter
from strandline.errors import StrandlineError
from strandline.model import LeaderEpoch

logger = logging.getLogger(__name__)

# The event loop serves other requests after so many replayed records.
_RECORDS_PER_TURN = 500


class CoordinatorShard(Protocol):
    """The state of one partition, in memory. Synchronous: it decides at once and writes through its `RecordSink`.

    Memory follows the log: what `replay` makes of the records is what the shard had when it wrote them. `str()` of a
    shard says what it holds, for log lines.
    """

    def replay(self, batch: ReadBatch) -> None:
        """Apply a batch that was read while the partition is loaded. Raises CorruptMessage."""

    def prepare(self) -> Iterator[None]:
        """The whole partition is replayed: what has to be done about it before requests come, in steps of some
        milliseconds each."""

    def loaded(self) -> Iterator[None]:
        """The whole partition is prepared and requests may come, also between two steps of this: start timers, resume
        what was interrupted. The first step is taken before any request."""

    def unloaded(self, error: StrandlineError) -> Iterator[None]:
        """This broker does not own the partition any more: answer waiting requests with `error`, stop timers. In steps;
        no request comes in between, but the timers that are not stopped yet do.

        Called only after `prepare`, and after every write that is not committed has failed with `error`.
        """

    def let_go(self) -> Iterator[None]:
        """No request reaches this shard any more: forget everything, in steps, since freeing a million objects at once
        takes long. The shard may never have been loaded as a whole. Not called if the coordinator stops."""


S = TypeVar("S", bound=CoordinatorShard)


class CoordinatorState(Enum):
    LOADING = auto()
    ACTIVE = auto()
    FAILED = auto()
    """The partition could not be loaded. The next election tries again."""
    CLOSED = auto()


class CoordinatorContext(Generic[S]):
    """One owned partition, from election to resignation. `finish` takes the steps in which the shard is unloaded, and
    those in which it lets go."""

    def __init__(
        self, shard: S, writer: CoordinatorPartitionWriter, *, finish: Callable[[Iterator[None], Iterator[None]], None]
    ) -> None:
        self.shard = shard
        self.state = CoordinatorState.LOADING
        self.loading: asyncio.Task[None] | None = None
        self._writer, self._finish = writer, finish
        self._deferred: list[Callable[[S], None]] = []
        self._is_prepared = False
        """Whether the shard has begun to prepare, and so may have timers and writes."""

    @property
    def leader_epoch(self) -> LeaderEpoch:
        return self._writer.leader_epoch

    def enter_epoch(self, leader_epoch: LeaderEpoch) -> None:
        """This broker goes on leading the partition in a newer epoch: the state stays, writes carry the epoch."""
        self._writer.leader_epoch = leader_epoch

    async def load(self, log: CoordinatorLog, clock: Clock) -> None:
        """Replay the whole partition, then become active; or fail, until the next election."""
        records = this_turn = 0
        try:
            async for batch in log.read(self._writer.partition, leader_epoch=self.leader_epoch):
                self.shard.replay(batch)
                records += len(batch.records)
                this_turn += 1 + len(batch.records)  # a marker has no records, and costs as much as one
                if this_turn >= _RECORDS_PER_TURN:
                    this_turn = 0
                    await clock.sleep(0)
            self._is_prepared = True
            for _ in self.shard.prepare():
                await clock.sleep(0)
            self.state = CoordinatorState.ACTIVE
            beginning = self.shard.loaded()
            has_more = next(beginning, self) is not self
            for work in self._deferred:
                work(self.shard)
            self._deferred.clear()
            while has_more:
                await clock.sleep(0)
                has_more = next(beginning, self) is not self
        except StrandlineError as error:
            logger.error("%s cannot be loaded: %s", self._writer, error)
            self._leave(CoordinatorState.FAILED, error)
            return
        except Exception as error:  # one unreadable partition must not stop the others
            logger.exception("%s cannot be loaded", self._writer)
            self._leave(CoordinatorState.FAILED, StrandlineError(f"The {self._writer} cannot be loaded: {error}"))
            return
        if records:
            logger.info("loaded %s of %s from %d records", self.shard, self._writer, records)

    def when_loaded(self, work: Callable[[S], None]) -> None:
        """Do something with the shard: now if it is active, after the load if it is loading."""
        if self.state is CoordinatorState.ACTIVE:
            work(self.shard)
        elif self.state is CoordinatorState.LOADING:
            self._deferred.append(work)

    def when_written(self, done: Callable[[WriteResult], None]) -> None:
        """Call back when everything that was written so far is committed, or has failed."""
        self._writer.write((), done)

    def close(self, error: StrandlineError) -> None:
        """Answer every waiting request with `error`, and stop loading."""
        if self.loading is not None:
            self.loading.cancel()
        self._leave(CoordinatorState.CLOSED, error)

    def _leave(self, state: CoordinatorState, error: StrandlineError) -> None:
        was_prepared, self._is_prepared = self._is_prepared, False
        self.state = state
        self._writer.close(error)
        unloading = self.shard.unloaded(error) if was_prepared else iter(())
        self._finish(unloading, self.shard.let_go())
