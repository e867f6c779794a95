"""A coordinator's log in memory: passes the contract of `CoordinatorLog`, and can be told to fail or to wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from strandline.coordinators.runtime import (
    CoordinatorRecord,
    ReadBatch,
    ReadRecord,
    TransactionEnd,
    WriteDone,
    WriteResult,
)
from strandline.errors import FencedLeaderEpoch, InvalidProducerEpoch, StrandlineError, UnknownLeaderEpoch
from strandline.model import NO_OFFSET, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, LeaderEpoch, ProducerAndEpoch


class MemoryCoordinatorLog:
    """Partitions as lists of batches. `hold()` keeps appends and reads waiting until `release()`; `fail_with` makes
    them fail; with `commits_at_once = False` an append takes a turn of the loop. A partition without an entry in
    `leader_epochs` takes every epoch."""

    def __init__(self, partitions: int = 1, leader_epoch: LeaderEpoch | None = None) -> None:
        self.batches: dict[int, list[ReadBatch]] = {partition: [] for partition in range(partitions)}
        self.appends: list[tuple[int, list[CoordinatorRecord]]] = []
        self.leader_epochs = {} if leader_epoch is None else dict.fromkeys(self.batches, leader_epoch)
        self.fail_with: Exception | None = None
        self.now_fails_with: StrandlineError | None = None
        self.commits_at_once = True
        self.max_bytes = 1_048_588
        self.max_bytes_error: StrandlineError | None = None
        self._held: list[Callable[[], None]] = []
        self._open = asyncio.Event()
        self._open.set()

    def partition_count(self) -> int:
        return len(self.batches)

    def max_batch_bytes(self, partition: int) -> int:
        if self.max_bytes_error is not None:
            raise self.max_bytes_error
        return self.max_bytes

    def append(
        self,
        partition: int,
        records: Sequence[CoordinatorRecord],
        done: WriteDone,
        *,
        leader_epoch: LeaderEpoch,
        producer: ProducerAndEpoch | None = None,
    ) -> None:
        self._check_epoch(partition, leader_epoch)
        self._when_open(lambda: self._store(partition, records, producer), done)

    def append_now(self, partition: int, records: Sequence[CoordinatorRecord], *, leader_epoch: LeaderEpoch) -> int:
        self._check_epoch(partition, leader_epoch)
        if self.now_fails_with is not None:
            raise self.now_fails_with
        if not self.commits_at_once or self.fail_with is not None or not self._open.is_set():
            return NO_OFFSET
        return self._store(partition, records, None)

    def _store(self, partition: int, records: Sequence[CoordinatorRecord], producer: ProducerAndEpoch | None) -> int:
        base = self.end_offset(partition)
        self.appends.append((partition, list(records)))
        read = tuple(ReadRecord(base + at, record.key, record.value) for at, record in enumerate(records))
        producer_id, epoch = producer or ProducerAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
        batch = ReadBatch(
            records=read, producer_id=producer_id, producer_epoch=epoch, is_transactional=producer is not None
        )
        self.batches[partition].append(batch)
        return base

    def append_marker(self, partition: int, end: TransactionEnd, done: WriteDone, *, leader_epoch: LeaderEpoch) -> None:
        self._check_epoch(partition, leader_epoch)
        self._when_open(lambda: self._store_marker(partition, end), done)

    def _store_marker(self, partition: int, end: TransactionEnd) -> int:
        base = self.end_offset(partition)
        producer_id, epoch = end.producer
        batch = ReadBatch(producer_id=producer_id, producer_epoch=epoch, is_transactional=True, committed=end.is_commit)
        self.batches[partition].append(batch)
        return base

    def check_epoch(self, partition: int, producer: ProducerAndEpoch) -> None:
        known = [one.producer_epoch for one in self.batches[partition] if one.producer_id == producer.producer_id]
        if producer.epoch < max(known, default=producer.epoch):
            raise InvalidProducerEpoch(f"Producer {producer.producer_id} was here with a later epoch.")

    def has_transaction(self, partition: int, producer: ProducerAndEpoch) -> bool:
        own = [one for one in self.batches[partition] if one.producer_id == producer.producer_id]
        return bool(own) and own[-1].committed is None and own[-1].producer_epoch == producer.epoch

    def _when_open(self, store: Callable[[], int], done: WriteDone) -> None:
        """Append now, or when the log is released. A failure before that is a refusal, a later one the end."""
        if self._open.is_set():
            if self.fail_with is not None:
                raise self.fail_with
            done(WriteResult(None, store()))
            return

        def released() -> None:
            if self.fail_with is None:
                done(WriteResult(None, store()))
            else:
                assert isinstance(self.fail_with, StrandlineError)
                done(WriteResult(self.fail_with))

        self._held.append(released)

    async def read(self, partition: int, *, leader_epoch: LeaderEpoch) -> AsyncIterator[ReadBatch]:
        self._check_epoch(partition, leader_epoch)
        batches = list(self.batches[partition])
        await self._open.wait()
        if self.fail_with is not None:
            raise self.fail_with
        for batch in batches:
            yield batch

    def end_offset(self, partition: int) -> int:
        return sum(1 if batch.committed is not None else len(batch.records) for batch in self.batches[partition])

    def hold(self) -> None:
        self._open.clear()

    def release(self) -> None:
        self._open.set()
        held, self._held = self._held, []
        for released in held:
            released()

    def _check_epoch(self, partition: int, leader_epoch: LeaderEpoch) -> None:
        current = self.leader_epochs.get(partition, leader_epoch)
        if leader_epoch != current:
            error = FencedLeaderEpoch if leader_epoch < current else UnknownLeaderEpoch
            raise error(f"Partition {partition} is in epoch {current}, not {leader_epoch}.")
