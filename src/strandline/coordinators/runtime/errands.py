"""Work on shards that is done once and takes long: one step in a turn of the event loop, however many shards there are.

A shard may have a million of something. Between two steps requests are served, partitions come and go, and further
work is asked for: each step decides by what is true when it is taken.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Generic, TypeAlias
from weakref import WeakKeyDictionary

from strandline.coordinators.runtime.context import CoordinatorContext, CoordinatorState, S
from strandline.coordinators.runtime.results import wait_result
from strandline.tasks import next_turn

logger = logging.getLogger(__name__)

Work: TypeAlias = Callable[[S], Iterator[None]]


class Errands(Generic[S]):
    """The errands of one coordinator. `spawn` starts a task that ends with the coordinator."""

    def __init__(self, spawn: Callable[[Coroutine[Any, Any, None]], object]) -> None:
        self._spawn = spawn
        self._turn = asyncio.Lock()
        """Held while a step is taken and until the turn of the loop is over."""
        self._waiting = WeakKeyDictionary[CoordinatorContext[S], deque[Work[S]]]()
        """Work that has not begun, of the shards that have any."""
        self._unloading = deque[Iterator[None]]()
        self._letting_go = deque[Iterator[None]]()
        self._is_finishing = self._is_stopping = False

    def add(self, context: CoordinatorContext[S], work: Work[S]) -> None:
        """Do it with the shard as soon as that is loaded, behind what it has to do already. Not at all if the shard
        cannot be loaded, and not to the end if it is unloaded meanwhile. What fails is logged."""
        if context.state not in (CoordinatorState.LOADING, CoordinatorState.ACTIVE):
            return
        waiting = self._waiting.get(context)
        if waiting is None:
            self._waiting[context] = deque([work])
            context.when_loaded(lambda _: self._start(context))
        elif work not in waiting:
            waiting.append(work)

    def _start(self, context: CoordinatorContext[S]) -> None:
        self._spawn(self._run(context))

    async def _run(self, context: CoordinatorContext[S]) -> None:
        waiting = self._waiting[context]
        while waiting:
            work = waiting.popleft()
            try:
                await self._do(context, work)
            except Exception:  # what else there is to do must be done
                logger.exception("work on a shard of a coordinator failed")
        del self._waiting[context]

    async def _do(self, context: CoordinatorContext[S], work: Work[S]) -> None:
        steps: Iterator[None] | None = None
        while True:
            async with self._turn:
                await next_turn()
                if context.state is not CoordinatorState.ACTIVE:
                    return
                steps = work(context.shard) if steps is None else steps
                if next(steps, self) is self:
                    return
            await wait_result(context.when_written)

    def finish(self, unloading: Iterator[None], letting_go: Iterator[None]) -> None:
        """Take the last steps of a shard: the first one at once, the others soon, those of `letting_go` last. Once the
        coordinator stops, `finish_all` takes what is left of `unloading`, and nothing has to be let go of."""
        if self._has_more(unloading):
            self._unloading.append(unloading)
        if self._is_stopping:
            return
        self._letting_go.append(letting_go)
        if not self._is_finishing:
            self._is_finishing = True
            self._spawn(self._finish())

    async def _finish(self) -> None:
        while steps := self._unloading or self._letting_go:
            async with self._turn:
                await next_turn()
                self._take_step(steps)
        self._is_finishing = False

    def _take_step(self, finishing: deque[Iterator[None]]) -> None:
        """Take a step of the first of them, if there is any left."""
        if finishing and not self._has_more(finishing[0]):
            finishing.popleft()

    def _has_more(self, steps: Iterator[None]) -> bool:
        """Take a step. Whether there are more."""
        try:
            return next(steps, self) is not self
        except Exception:  # other shards have to end as well
            logger.exception("a shard of a coordinator could not be unloaded")
            return False

    def stop(self) -> None:
        """The coordinator stops: no task is started any more."""
        self._is_stopping = True

    def finish_all(self) -> None:
        """Take all steps of unloading that are left, now."""
        while self._unloading:
            self._take_step(self._unloading)
