"""One Fetch request over two partitions that tests move: one is read at once, the other one slowly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

from strandline.errors import KafkaStorageError, StrandlineError, UnknownTopicOrPartition
from strandline.hybrid.layout import Extent, PartitionLayout, Tier
from strandline.hybrid.partition import ServedPartition
from strandline.hybrid.partitions import Partitions
from strandline.hybrid.reading import PendingRead
from strandline.hybrid.remote.topics import TieredTopics
from strandline.log import FileSlice, SegmentFile
from strandline.model import TopicPartition
from strandline.reads import FetchIsolation, ReadResult, RecordSet, Watcher
from strandline.records.slices import MemorySlices
from strandline.server.deadlines import Deadlines
from strandline.server.exchange import Exchange
from strandline.server.fetch_sessions import FetchContext, FetchSessions, Place
from strandline.server.handlers.fetch.handler import FetchHandler
from strandline.server.handlers.fetch.poll import FetchPoll
from strandline.server.handlers.fetch.states import PollState
from strandline.server.memory import AnswerMemory
from strandline.server.page_cache import PageCache
from strandline.tasks import next_turn
from strandline.wire.api import ApiKey
from strandline.wire.fetch_codec import FetchEntry, FetchRequest

MEMORY = 4_000_000
RECORD = 100
LONG_MS = 60_000
VERSION = 12


class ScriptedPart:
    """A `NewestPart` and the `Engine` of its only extent. A record is a number of bytes."""

    older: ClassVar[None] = None
    appends: ClassVar[None] = None
    keeps_watchers: ClassVar[bool] = False

    def __init__(self, name: str, tier: Tier) -> None:
        self.topic_partition = TopicPartition(name, 0)
        self.leader_epoch = 0
        self.log_start_offset = 0
        self.records = 0
        self.reads = 0
        self.watchers: set[Watcher] = set()
        self.layout = PartitionLayout((Extent(tier, cast(Any, self), 0),))

    def check_leader(self, current_leader_epoch: int = -1) -> None:
        pass

    def stands_at(self, high_watermark: int, log_start: int) -> bool:
        return (high_watermark, log_start) == (self.records, self.log_start_offset)

    def without_records(self) -> ReadResult:
        return self.result(None)

    def result(self, records: RecordSet | None) -> ReadResult:
        return ReadResult(records, self.records, self.records, self.log_start_offset, None)

    def watch(self, watcher: Watcher) -> None:
        self.watchers.add(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        self.watchers.discard(watcher)

    def move(self) -> None:
        for watcher in tuple(self.watchers):
            watcher.notify()

    def add_record(self) -> None:
        self.records += 1
        self.move()

    def available_bytes(self, offset: int, isolation: FetchIsolation) -> int | None:
        return self.records * RECORD


class PromptPart(ScriptedPart):
    """Is read at once, from a file or from memory."""

    def __init__(self, name: str, tier: Tier = Tier.LOCAL) -> None:
        super().__init__(name, tier)
        self.is_in_memory = tier is not Tier.LOCAL

    def read_now(self, offset: int, max_bytes: int, *, isolation: FetchIsolation, min_one_message: bool) -> ReadResult:
        self.reads += 1
        length = min(self.records * RECORD, max_bytes)
        if not length:
            return self.result(None)
        if self.is_in_memory:
            return self.result(MemorySlices([memoryview(bytes(length))], length))
        return self.result(FileSlice(SegmentFile("/none", length), 0, length))


class SlowPart(ScriptedPart):
    """Is read by a task, which waits for the test. Its own `TierReader`."""

    always_gives_a_batch: ClassVar[bool] = True

    def __init__(self, name: str) -> None:
        super().__init__(name, Tier.DISKLESS)
        self.max_wait_s: float | None = None
        self.is_idle = False
        """Whether memory can tell that there is nothing."""
        self.under_way: list[asyncio.Future[StrandlineError | None]] = []
        self.granted: list[int] = []

    def read_now(
        self, offset: int, max_bytes: int, *, isolation: FetchIsolation, min_one_message: bool
    ) -> ReadResult | PendingRead:
        if self.is_idle and not self.records:
            return self.result(None)
        return PendingRead(cast(Any, self), offset, self.max_wait_s)

    def available_bytes(self, offset: int, isolation: FetchIsolation) -> int | None:
        return None

    async def read(
        self, requests: Sequence[Any], *, max_bytes: int, min_one_message: bool, is_wanted: Callable[[], bool]
    ) -> Sequence[ReadResult | StrandlineError]:
        self.reads += 1
        self.granted.append(max_bytes)
        end: asyncio.Future[StrandlineError | None] = asyncio.get_running_loop().create_future()
        self.under_way.append(end)
        error = await end
        if error is not None:
            return [error]
        length = min(self.records * RECORD, max_bytes)
        return [self.result(MemorySlices([memoryview(bytes(length))], length) if length else None)]

    def bring(self, error: BaseException | None = None) -> None:
        """Let the reads end: with what is there now, with an error of the store, or with a failure."""
        ended, self.under_way = self.under_way, []
        for end in ended:
            if error is None or isinstance(error, StrandlineError):
                end.set_result(error)
            else:
                end.set_exception(error)


class OneConnection:
    """What an exchange and a poll ask of a connection and its server."""

    def __init__(self, memory: AnswerMemory) -> None:
        self.answers = memory
        self.memory = self.server = self
        self.is_closed = False
        self.answered_exchanges: list[Exchange] = []
        self.open: list[Exchange] = []

    def answered(self, exchange: Exchange) -> None:
        self.answered_exchanges.append(exchange)
        self.answers.give_back(exchange.memory)

    def close(self, reason: str | None) -> None:
        if not self.is_closed:
            self.is_closed = True
            for exchange in self.open:
                if exchange.on_closed is not None:
                    exchange.on_closed()


class RecordedPoll(FetchPoll):
    """Writes down its moves."""

    __slots__ = ("moves",)

    def __init__(self, *values: Any) -> None:
        self.moves: list[tuple[PollState, PollState]] = []
        super().__init__(*values)

    def _enter(self, state: PollState) -> None:
        before = self.state
        super()._enter(state)
        self.moves.append((before, state))


def _missing(topic: str, partition: int) -> StrandlineError:
    return UnknownTopicOrPartition(f"{topic}-{partition} is not here.")


class PollWorld:
    """A broker's part of it, and one request of one client."""

    def __init__(self, here: PromptPart | None = None) -> None:
        loop = asyncio.get_running_loop()
        self.here = PromptPart("here") if here is None else here
        self.there = SlowPart("there")
        self.partitions = Partitions(TieredTopics(), topic_name=lambda key: key.decode(), why_missing=_missing)
        for part in (self.here, self.there):
            self.partitions.add(ServedPartition(cast(Any, part)))
        self.memory = AnswerMemory(MEMORY)
        self.deadlines = Deadlines(loop)
        self.handler = FetchHandler(
            self.partitions,
            cast(FetchSessions, None),
            self.deadlines,
            memory=self.memory,
            pages=PageCache(loop),
            loop=loop,
            max_bytes=1 << 20,
        )
        self.connection = OneConnection(self.memory)
        self.poll: RecordedPoll
        self.places: list[Place]
        self._taken = 0

    def ask(self, *, wait_ms: int = LONG_MS, min_bytes: int = 1, max_bytes: int = 1 << 20) -> RecordedPoll:
        """Let the request begin."""
        entries = [FetchEntry(name, 0, -1, 0, -1, -1, 1 << 20) for name in ("here", "there")]
        request = FetchRequest(-1, wait_ms, min_bytes, max_bytes, 0, 0, -1, entries, [], "")
        self.places = [Place(entry) for entry in entries]
        context = FetchContext(self.places, None, is_full=True)
        exchange = Exchange(cast(Any, self.connection), ApiKey.FETCH, VERSION, 1)
        self.connection.open.append(exchange)
        self.poll = RecordedPoll(self.handler, exchange, request, context)
        self.poll.begin()
        return self.poll

    async def turns(self) -> None:
        """Let everything that is due happen."""
        for _ in range(6):
            await next_turn()

    def take_memory(self) -> None:
        """Other clients take all that is left."""
        taken = max(self.memory.limit - self.memory.held, 0)
        self._taken += taken
        self.memory.take(taken)

    def free_memory(self) -> None:
        """They give it back."""
        taken, self._taken = self._taken, 0
        self.memory.give_back(taken)

    def store_is_away(self) -> None:
        self.there.bring(KafkaStorageError("A test took the store away."))

    def reader_fails(self) -> None:
        self.there.bring(RuntimeError("a test let a reader fail"))

    def leader_moves(self) -> None:
        self.here.leader_epoch += 1
        self.here.move()

    async def close(self) -> None:
        await self.handler.close()
        self.deadlines.close()
