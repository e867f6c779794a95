"""A task: reads its parts, plans anew what has moved meanwhile, and decodes.

The store is read on an event loop in a thread of its own, one chunk ahead of the decoder: a loop that stood still while
Spark takes its time would run into the deadlines of the stores.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from strandline.client import CommandFailed
from strandline.errors import StrandlineError
from strandline.model import Offset
from strandline.objects import ObjectStoreError
from strandline.pipeline.client import TieringClient
from strandline.pipeline.source.brokers import TopicBrokers
from strandline.pipeline.source.decoding import Decoder
from strandline.pipeline.source.errors import RecordsGone, SourceFailed
from strandline.pipeline.source.fetching import Chunk, PartsFetcher
from strandline.pipeline.source.parts import Part, ReadTask
from strandline.pipeline.source.places import find_places
from strandline.pipeline.source.stores import LazyStores
from strandline.pipeline.stores import StoreSettings
from strandline.reads import FetchIsolation
from strandline.remote.ports import RemoteStorageError

T = TypeVar("T")

_REPLANS: Final = 5
"""How often a part may be planned anew before any record of it was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingContext:
    """What a task has to know besides its parts. Can be pickled."""

    bootstrap: str
    timeout_s: float
    isolation: FetchIsolation
    include_headers: bool
    fail_on_data_loss: bool
    stores: StoreSettings = field(repr=False)


def read_task(task: ReadTask, context: ReadingContext) -> Iterator[Any]:
    """The record batches of a task. Raises SourceFailed."""
    topic, partition = task.partition.topic_partition
    decoder = Decoder(topic, partition, task.wanted, include_headers=context.include_headers)
    try:
        with _LoopThread() as loop, _Chunks(loop, task, context) as chunks:
            for chunk in chunks:
                yield from decoder.feed(chunk.data, row=chunk.row, name=chunk.name)
            yield from decoder.finish()
    except (StrandlineError, ObjectStoreError, RemoteStorageError, CommandFailed) as error:
        raise SourceFailed(f"{task.partition.topic_partition} cannot be read: {error}") from error


async def read_chunks(task: ReadTask, context: ReadingContext) -> AsyncGenerator[Chunk, None]:
    """The batches of all parts of a task."""
    with (
        TopicBrokers(context.bootstrap, timeout_s=context.timeout_s) as brokers,
        TieringClient(context.bootstrap, timeout_s=context.timeout_s) as client,
    ):
        async with AsyncExitStack() as stack:
            stores = LazyStores(context.stores, stack)
            fetcher = PartsFetcher(
                task.partition,
                stores,
                brokers,
                isolation=context.isolation,
                min_timestamp=task.wanted.min_timestamp,
            )
            reader = TaskReader(task, context, fetcher, client)
            async with aclosing(reader.chunks()) as chunks:
                async for chunk in chunks:
                    yield chunk


class TaskReader:
    """Goes on where it was when a WAL object or a segment is gone: what it held is elsewhere now."""

    def __init__(self, task: ReadTask, context: ReadingContext, fetcher: PartsFetcher, client: TieringClient) -> None:
        self._task, self._context, self._fetcher, self._client = task, context, fetcher, client

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        left = list(self._task.parts)
        at, replans = left[0].start if left else 0, 0
        while left:
            try:
                async with aclosing(self._fetcher.chunks(tuple(left))) as found:
                    async for part, chunk in found:
                        while left[0] is not part:
                            left.pop(0)
                        at, replans = max(chunk.end, part.start), 0
                        yield chunk
                return
            except RecordsGone as gone:
                replans += 1
                if replans > _REPLANS:
                    raise SourceFailed(
                        f"{self._task.partition.topic_partition} cannot be read from offset {at} on: {gone} Brokers "
                        "were asked several times where its records are now."
                    ) from gone
                while left and left[0].end <= at:
                    left.pop(0)
                left = [*await self._planned_anew(left[0], max(at, left[0].start)), *left[1:]]

    async def _planned_anew(self, part: Part, start: Offset) -> list[Part]:
        def lost(sentence: str, instead: Offset) -> Offset:
            if self._context.fail_on_data_loss:
                raise SourceFailed(f"{sentence}. With failOnDataLoss=false the query goes on without them.")
            return instead

        where, topic_id = self._task.partition.topic_partition, self._task.partition.topic_id
        _, parts = await asyncio.to_thread(find_places, self._client, where, start, part.end, lost, topic_id=topic_id)
        return parts


class _LoopThread:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="strandline-reads", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)


class _Chunks:
    """The chunks of a task, from the loop's thread: the next one is always under way."""

    def __init__(self, loop: _LoopThread, task: ReadTask, context: ReadingContext) -> None:
        self._loop = loop
        self._source = read_chunks(task, context)
        self._next: Future[Chunk | None] | None = None
        self._taking: asyncio.Task[Any] | None = None

    def __enter__(self) -> Self:
        self._next = self._loop.start(self._take())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.start(self._close()).result()

    def __iter__(self) -> Iterator[Chunk]:
        while self._next is not None and (chunk := self._next.result()) is not None:
            self._next = self._loop.start(self._take())
            yield chunk

    async def _take(self) -> Chunk | None:
        self._taking = asyncio.current_task()
        return await anext(self._source, None)

    async def _close(self) -> None:
        """Stop the read that is under way: Spark may not want all records."""
        if self._taking is not None and not self._taking.done():
            self._taking.cancel()
            await asyncio.gather(self._taking, return_exceptions=True)
        await self._source.aclose()
