"""The runtime of a coordinator: which partitions this broker owns, and the shard that answers for a key."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, TypeVar

from strandline.clock import Clock
from strandline.coordinators.runtime.context import CoordinatorContext, CoordinatorState, S
from strandline.coordinators.runtime.errands import Errands
from strandline.coordinators.runtime.log import CoordinatorLog
from strandline.coordinators.runtime.results import wait_result_in_time
from strandline.coordinators.runtime.timers import Timer, Timers
from strandline.coordinators.runtime.writer import CoordinatorPartitionWriter
from strandline.errors import CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator
from strandline.model import LeaderEpoch, TopicPartition, coordinator_partition
from strandline.replication import Partition
from strandline.tasks import next_turn

T = TypeVar("T")

DEFAULT_WRITE_TIMEOUT_MS: Final = 5_000
_ACTIVE: Final = CoordinatorState.ACTIVE  # an attribute of an enumeration costs as much as a call


class CoordinatorRuntime(Generic[S]):
    """Owns a shard for each partition of an internal topic that this broker leads.

    Lives on the event loop. `name` is what the coordinator coordinates ("group"), for error texts. `make_shard` gets
    the sink of the partition; its `leader_epoch` is the epoch of this coordinator for the partition.

    Epochs fence: an election or a resignation of an older epoch than the one known is ignored, and the log refuses
    writes of an epoch that is over.
    """

    def __init__(
        self,
        name: str,
        log: CoordinatorLog,
        make_shard: Callable[[CoordinatorPartitionWriter], S],
        *,
        clock: Clock,
        write_timeout_ms: int = DEFAULT_WRITE_TIMEOUT_MS,
    ) -> None:
        """`write_timeout_ms`: how long a request waits for what it has written."""
        self._write_timeout_ms = write_timeout_ms
        self.timers = Timers(clock)
        self._name, self._log, self._make_shard, self._clock = name, log, make_shard, clock
        self._contexts: dict[int, CoordinatorContext[S]] = {}
        self._sweeps: list[_Sweep[S]] = []
        self._errands = Errands[S](self._spawn)
        self._tasks: asyncio.TaskGroup | None = None
        self._own_tasks: set[asyncio.Task[None]] = set()

    # Life -------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve inside the block. Leaving it unloads every shard: waiting requests get NotCoordinator."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            self._spawn(self.timers.run())
            try:
                yield
            finally:
                self._errands.stop()  # if a task has failed, none can be started any more
                for partition in list(self._contexts):
                    self.resigned(partition)
                self._errands.finish_all()
                self._tasks = None
                for task in self._own_tasks:
                    task.cancel()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        if self._tasks is None:
            work.close()
            raise RuntimeError(f"The {self._name} coordinator is not running.")
        task = self._tasks.create_task(work)
        self._own_tasks.add(task)
        task.add_done_callback(self._own_tasks.discard)
        return task

    def sweep_every(self, interval_ms: int, work: Callable[[S], Iterable[None]]) -> None:
        """Do `work` for every active shard each `interval_ms`, while this broker owns any: a step of it in a turn."""
        self._sweeps.append(_Sweep(self.timers, interval_ms, self._contexts, work))

    def wait_written(self, start: Callable[[Callable[[T], None]], None]) -> Coroutine[Any, Any, T]:
        """Start work on a shard that answers when its write has ended, and wait for the answer.

        Raises CoordinatorNotAvailable. The write may still count: the shard learns what becomes of it, and so does a
        client that asks again.
        """
        return wait_result_in_time(start, self.timers, self._write_timeout_ms)

    # Ownership --------------------------------------------------------------------------------------------------

    def leadership_gained(self, partition: Partition, leader_epoch: LeaderEpoch) -> None:
        """`replication.LeadershipListener`."""
        self.elected(partition.topic_partition.partition, leader_epoch)

    def leadership_lost(self, partition: TopicPartition, leader_epoch: LeaderEpoch) -> None:
        """`replication.LeadershipListener`."""
        self.resigned(partition.partition, leader_epoch)

    def elected(self, partition: int, leader_epoch: LeaderEpoch) -> None:
        """This broker leads the partition: load it, unless it is loaded or loading already."""
        context = self._contexts.get(partition)
        if context is not None:
            if leader_epoch < context.leader_epoch:
                return
            if context.state is not CoordinatorState.FAILED:
                context.enter_epoch(leader_epoch)
                return
        writer = CoordinatorPartitionWriter(
            self._name, partition, leader_epoch, log=self._log, clock=self._clock, patience_ms=self._write_timeout_ms
        )
        context = CoordinatorContext(self._make_shard(writer), writer, finish=self._errands.finish)
        context.loading = self._spawn(context.load(self._log, self._clock))
        self._contexts[partition] = context
        for sweep in self._sweeps:
            sweep.start()

    def resigned(self, partition: int, leader_epoch: LeaderEpoch | None = None) -> None:
        """This broker does not lead the partition any more: unload it. Without an epoch: whatever its epoch is."""
        context = self._contexts.get(partition)
        if context is None or (leader_epoch is not None and leader_epoch < context.leader_epoch):
            return
        del self._contexts[partition]
        context.close(NotCoordinator(f"Another broker coordinates this {self._name} now."))
        if not self._contexts:
            for sweep in self._sweeps:
                sweep.stop()

    async def wait_loaded(self) -> None:
        """Return when no partition is loading."""
        loading = [context.loading for context in self._contexts.values() if context.loading is not None]
        await asyncio.gather(*loading, return_exceptions=True)

    # Finding ----------------------------------------------------------------------------------------------------

    @property
    def contexts(self) -> Collection[CoordinatorContext[S]]:
        """The partitions this broker owns, in whatever state; always as they are now."""
        return self._contexts.values()

    def partition_for(self, key: str) -> int:
        """The partition of the internal topic whose leader coordinates the key."""
        return coordinator_partition(key, self._log.partition_count())

    def shard_for(self, key: str) -> S:
        """The active shard. Raises CoordinatorNotAvailable, NotCoordinator or CoordinatorLoadInProgress."""
        partition = self.partition_for(key)
        context = self._contexts.get(partition)
        if context is not None and context.state is _ACTIVE and self._tasks is not None:
            return context.shard
        return self._shard(partition, f"{self._name} {key}")

    def shard_of(self, partition: int) -> S:
        """The active shard of a partition. Raises what `shard_for` raises."""
        return self._shard(partition, f"the {self._name}s of partition {partition}")

    def _shard(self, partition: int, what: str) -> S:
        self._check_running()
        context = self._contexts.get(partition)
        if context is None or context.state is CoordinatorState.FAILED:
            raise NotCoordinator(f"This broker does not coordinate {what}.")
        if context.state is CoordinatorState.LOADING:
            raise CoordinatorLoadInProgress(f"The coordinator of {what} is still loading its partition.")
        return context.shard

    def check_all_loaded(self) -> None:
        """Raise CoordinatorNotAvailable, or CoordinatorLoadInProgress if a partition is loading."""
        self._check_running()
        if any(context.state is CoordinatorState.LOADING for context in self._contexts.values()):
            raise CoordinatorLoadInProgress(f"The {self._name} coordinator is still loading its partitions.")

    def _check_running(self) -> None:
        if self._tasks is None:
            raise CoordinatorNotAvailable(f"The {self._name} coordinator is not running.")

    async def in_turns(self, held: Callable[[S], Mapping[str, T]], size: int) -> AsyncIterator[list[T]]:
        """What the active shards hold, so many items in a turn of the event loop. Items that are added meanwhile may be
        missing; items that are gone, and those of shards that are unloaded meanwhile, are left out."""
        seen = 0
        for context in list(self._contexts.values()):
            names = list(held(context.shard)) if context.state is _ACTIVE else []
            while names and context.state is _ACTIVE:
                some = names[-size:]
                del names[-size:]  # to let go of a million at once takes long
                everything = held(context.shard)
                yield [everything[name] for name in some if name in everything]
                seen += len(some)
                if seen >= size:
                    seen = 0
                    await next_turn()

    def for_each_shard(self, work: Callable[[S], None]) -> None:
        """Do something with every shard at once, or as soon as it is loaded; a shard that failed to load is left out.
        Whatever looks at much that a shard holds is for `sweep_once`."""
        for context in self._contexts.values():
            context.when_loaded(work)

    def sweep_once(self, work: Callable[[S], Iterator[None]]) -> None:
        """The same with work that is done in steps, one in a turn of the event loop; work that is equal to some that
        has not begun is done once for both. What a shard wrote in a step is committed before its next step."""
        for context in self._contexts.values():
            self._errands.add(context, work)


class _Sweep(Generic[S]):
    """Recurring work on all active shards: one step of one shard per turn of the event loop, so that no request waits
    long."""

    def __init__(
        self,
        timers: Timers,
        interval_ms: int,
        contexts: dict[int, CoordinatorContext[S]],
        work: Callable[[S], Iterable[None]],
    ) -> None:
        self._timers, self._interval_ms, self._contexts, self._work = timers, interval_ms, contexts, work
        self._timer: Timer | None = None
        self._remaining: list[CoordinatorContext[S]] = []
        self._steps: Iterator[None] | None = None
        """The steps that are left of the last of the remaining shards."""

    def start(self) -> None:
        if self._timer is None:
            self._timer = self._timers.after(self._interval_ms, self._sweep_one)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._remaining, self._steps = [], None

    def _sweep_one(self) -> None:
        if not self._remaining:
            self._remaining = list(self._contexts.values())
        has_more = False
        try:
            has_more = self._take_step(self._remaining[-1])
        finally:
            if not has_more:
                self._steps = None
                del self._remaining[-1:]  # none if the work has ended all sweeps
            if self._timer is not None:
                self._timer.restart(0 if self._remaining else self._interval_ms)

    def _take_step(self, context: CoordinatorContext[S]) -> bool:
        """False if that was the last one of the shard. A shard that was unloaded meanwhile has none."""
        if context.state is not CoordinatorState.ACTIVE:
            return False
        if self._steps is None:
            self._steps = iter(self._work(context.shard))
        return next(self._steps, self) is not self
