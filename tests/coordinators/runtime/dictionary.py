"""A replicated dictionary: the smallest coordinator that uses everything the runtime has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator

from strandline.coordinators.runtime import (
    CoordinatorPartitionWriter,
    CoordinatorRuntime,
    ReadBatch,
    WriteResult,
    client_error,
    wait_result,
)
from strandline.errors import CorruptMessage, StrandlineError
from strandline.model import LeaderEpoch
from strandline.testing.clock import VirtualClock
from tests.coordinators.runtime.memory_log import MemoryCoordinatorLog

POISON = b"poison"
BUG = b"bug"


class DictionaryShard:
    """The keys of one partition. A value is visible when it is committed."""

    def __init__(self, writer: CoordinatorPartitionWriter) -> None:
        self.writer = writer
        self.values: dict[bytes, bytes] = {}
        self.events: list[str] = []
        self.transactions: list[tuple[int, bool]] = []
        self.sweeps = 0
        self.steps_to_prepare: Iterable[None] = ()
        self.steps_when_loaded: Iterable[None] = ()
        self.steps_when_unloaded: Iterable[None] = ()
        self.steps_to_let_go: Iterable[None] = ()

    def __str__(self) -> str:
        return f"{len(self.values)} keys"

    def replay(self, batch: ReadBatch) -> None:
        if batch.committed is not None:
            self.transactions.append((batch.producer_id, batch.committed))
        for _, key, value in batch.records:
            assert key is not None
            if key == POISON:
                raise CorruptMessage("This record cannot be read.")
            if key == BUG:
                raise ZeroDivisionError
            self._set(key, value)

    def prepare(self) -> Iterator[None]:
        yield from self.steps_to_prepare

    def loaded(self) -> Iterator[None]:
        self.events.append("loaded")
        if b"cannot start" in self.values:
            raise ZeroDivisionError
        yield from self.steps_when_loaded

    def unloaded(self, error: StrandlineError) -> Iterator[None]:
        self.events.append(f"unloaded: {type(error).__name__}")
        yield from self.steps_when_unloaded

    def let_go(self) -> Iterator[None]:
        yield from self.steps_to_let_go

    def _set(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            self.values.pop(key, None)
        else:
            self.values[key] = value

    def put(self, values: dict[bytes, bytes | None], done: Callable[[WriteResult], None]) -> None:
        """Write several keys as one decision."""

        def written(result: WriteResult) -> None:
            if result.error is None:
                for key, value in values.items():
                    self._set(key, value)
            done(result)

        self.writer.write(list(values.items()), written)

    def sweep(self) -> Iterator[None]:
        self.sweeps += 1
        yield


class Dictionary:
    """What a coordinator makes of the runtime: requests for keys, sent to the shard of their partition."""

    def __init__(self, log: MemoryCoordinatorLog, clock: VirtualClock) -> None:
        self.log, self.clock = log, clock
        self.shards: list[DictionaryShard] = []
        self.runtime: CoordinatorRuntime[DictionaryShard] = CoordinatorRuntime(
            "key", log, self._make_shard, clock=clock
        )

    def _make_shard(self, writer: CoordinatorPartitionWriter) -> DictionaryShard:
        self.shards.append(DictionaryShard(writer))
        return self.shards[-1]

    async def put(self, key: str, value: str | None) -> int:
        """The offset of the record."""
        shard = self.runtime.shard_for(key)
        encoded = None if value is None else value.encode()
        result: WriteResult = await wait_result(lambda done: shard.put({key.encode(): encoded}, done))
        if result.error is not None:
            raise client_error(result.error)
        return result.base_offset

    def get(self, key: str) -> str | None:
        value = self.runtime.shard_for(key).values.get(key.encode())
        return None if value is None else value.decode()

    # The rest of the broker

    def lead(self, partition: int, leader_epoch: LeaderEpoch) -> None:
        """The metadata makes this broker the leader."""
        self.log.leader_epochs[partition] = leader_epoch
        self.runtime.elected(partition, leader_epoch)

    def follow(self, partition: int, leader_epoch: LeaderEpoch) -> None:
        """The metadata makes another broker the leader."""
        self.log.leader_epochs[partition] = leader_epoch
        self.runtime.resigned(partition, leader_epoch)

    async def start_put(self, key: str, value: str | None) -> asyncio.Task[int]:
        """Send a write that may have to wait."""
        task = asyncio.create_task(self.put(key, value))
        await self.clock.settle()
        return task
