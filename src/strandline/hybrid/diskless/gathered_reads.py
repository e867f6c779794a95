"""Puts queries to the control plane that are made in the same turn of the event loop into one.

ListOffsets looks up each partition separately; a consumer of many partitions would cost one query for each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Final, Generic, TypeVar

from strandline.controlplane import BatchLookups, DisklessLog, FindBatches, FoundBatches
from strandline.model import TopicIdPartition
from strandline.tasks import TaskSet

Q = TypeVar("Q")
A = TypeVar("A")

_FIRST_ROW_ONLY: Final = 1


class GatheredReads:
    """`BatchLookups` for callers that look up one partition at a time."""

    def __init__(self, lookups: BatchLookups) -> None:
        self._lookups = lookups
        self._logs: _Gathered[TopicIdPartition, DisklessLog | None] = _Gathered(self._ask_logs)
        self._first_rows: _Gathered[FindBatches, FoundBatches] = _Gathered(self._ask_first_rows)
        self.first_row_at_time = lookups.first_row_at_time
        self.row_of_max_timestamp = lookups.row_of_max_timestamp

    async def logs(self, partitions: Collection[TopicIdPartition]) -> Mapping[TopicIdPartition, DisklessLog]:
        """See BatchLookups."""
        found = await asyncio.gather(*(self._logs.answer(partition) for partition in partitions))
        return {log.partition: log for log in found if log is not None}

    async def find_batches(self, requests: Sequence[FindBatches], *, max_rows: int) -> Sequence[FoundBatches]:
        """See BatchLookups."""
        if max_rows != _FIRST_ROW_ONLY:
            return await self._lookups.find_batches(requests, max_rows=max_rows)
        return await asyncio.gather(*(self._first_rows.answer(request) for request in requests))

    async def _ask_logs(self, partitions: Sequence[TopicIdPartition]) -> Sequence[DisklessLog | None]:
        found = await self._lookups.logs(frozenset(partitions))
        return [found.get(partition) for partition in partitions]

    async def _ask_first_rows(self, requests: Sequence[FindBatches]) -> Sequence[FoundBatches]:
        return await self._lookups.find_batches(requests, max_rows=_FIRST_ROW_ONLY)


class _Gathered(Generic[Q, A]):
    """The lookups of one turn of the event loop, made together."""

    def __init__(self, ask: Callable[[Sequence[Q]], Awaitable[Sequence[A]]]) -> None:
        self._ask = ask
        self._waiting: list[tuple[Q, asyncio.Future[A]]] = []
        self._tasks = TaskSet()

    async def answer(self, question: Q) -> A:
        """The answer. An error of the query is raised to every caller of the same turn."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[A] = loop.create_future()
        self._waiting.append((question, future))
        if len(self._waiting) == 1:
            loop.call_soon(self._start)
        return await future

    def _start(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._tasks.start(self._ask_all(waiting), name="gathered-read")

    async def _ask_all(self, waiting: Sequence[tuple[Q, asyncio.Future[A]]]) -> None:
        try:
            answers = await self._ask([question for question, _ in waiting])
        except asyncio.CancelledError:
            for _, future in waiting:
                future.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - it is raised to the callers
            for _, future in waiting:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), answer in zip(waiting, answers, strict=True):
            if not future.done():
                future.set_result(answer)
