"""A group log that is a list: passes the contract of `GroupLog`, and can be told to fail or to wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from strandline.coordinators.groups import LogRecord, ReadBatch, ReadRecord
from strandline.errors import StrandlineError


class MemoryGroupLog:
    """Partitions as lists of batches. `hold()` keeps appends waiting until `release()`; `fail_with` refuses them."""

    def __init__(self, partitions: int = 1) -> None:
        self.batches: dict[int, list[ReadBatch]] = {partition: [] for partition in range(partitions)}
        self.appends: list[tuple[int, list[LogRecord]]] = []
        self.fail_with: StrandlineError | None = None
        self.max_bytes = 1_048_588
        self._open = asyncio.Event()
        self._open.set()

    def partition_count(self) -> int:
        return len(self.batches)

    def max_batch_bytes(self, partition: int) -> int:
        return self.max_bytes

    async def append(self, partition: int, records: Sequence[LogRecord]) -> int:
        await self._open.wait()
        if self.fail_with is not None:
            raise self.fail_with
        base = self.end_offset(partition)
        self.appends.append((partition, list(records)))
        read = tuple(ReadRecord(base + at, record.key, record.value) for at, record in enumerate(records))
        self.batches[partition].append(ReadBatch(records=read))
        return base

    async def read(self, partition: int) -> AsyncIterator[ReadBatch]:
        await self._open.wait()
        if self.fail_with is not None:
            raise self.fail_with
        for batch in list(self.batches[partition]):
            yield batch

    def end_offset(self, partition: int) -> int:
        return sum(len(batch.records) for batch in self.batches[partition])

    def hold(self) -> None:
        self._open.clear()

    def release(self) -> None:
        self._open.set()
