"""A control plane on a real database and objects in a real directory, for what cleans and checks them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from strandline.clock import SystemIds
from strandline.controlplane import BatchToCommit, CommittedBatch, FileToCommit, SqlControlPlane
from strandline.diskless.fsck import Fsck, FsckOptions, FsckReport
from strandline.diskless.values import DisklessAppend
from strandline.diskless.wal import keys, pack
from strandline.model import TopicIdPartition
from strandline.objects import ObjectStore, open_objects
from strandline.objects.store import Buffer
from strandline.sql import open_store
from strandline.testing.clock import VirtualClock
from tests.diskless.batches import TOPIC_A, TOPIC_B, append
from tests.partitions import id_partition
from tests.waiting import until_in

A0 = id_partition(TOPIC_A, 0)
A1 = id_partition(TOPIC_A, 1)
B0 = id_partition(TOPIC_B, 0)
MIDDAY_MS = 1_700_049_600_000
"""When time begins: 2023-11-15 12:00:00, the first moment of an hour."""


@dataclass
class World:
    """Time moves by hand, also for the objects in a directory: they are given the times of its clock."""

    plane: SqlControlPlane
    store: ObjectStore
    root: Path | None
    """The directory of the objects; None if they are elsewhere, and have the times of the machine."""
    clock: VirtualClock
    ids: SystemIds = field(default_factory=SystemIds)

    async def create_logs(self, *partitions: TopicIdPartition) -> None:
        await self.plane.lifecycle.create_logs(partitions)

    async def put(self, key: str, parts: Sequence[Buffer]) -> None:
        """An object, written now."""
        await self.store.put(key, parts)
        if self.root is not None:
            now = self.clock.now_ms() / 1000
            os.utime(self.path(key), (now, now))

    def path(self, key: str) -> Path:
        """Where an object of the directory is."""
        assert self.root is not None
        return self.root / key

    async def upload(self, batches: Sequence[DisklessAppend]) -> FileToCommit:
        """An object, and what the writer would commit of it."""
        now_ms = self.clock.now_ms()
        packed = pack(batches, broker_id=1, cluster_id="a-cluster", created_ms=now_ms)
        key = keys.make(now_ms, 1, self.ids.uuid())
        await self.put(key, packed.parts)
        return FileToCommit(
            object_key=key,
            size=packed.size,
            broker_id=1,
            batches=tuple(_to_commit(batches[index], position) for index, position in packed.placed),
        )

    async def commit(self, file: FileToCommit) -> Sequence[CommittedBatch]:
        (answers,) = await self.plane.commits.commit_files([file])
        return answers

    async def write(self, *partitions: TopicIdPartition, records: int = 3, timestamp: int | None = None) -> str:
        """Upload and commit one batch for each partition; the key of the object."""
        when = self.clock.now_ms() if timestamp is None else timestamp
        file = await self.upload([append(p, records=records, timestamp=when) for p in partitions])
        assert [answer.refusal for answer in await self.commit(file)] == [None] * len(partitions)
        return file.object_key

    async def drop(self, *partitions: TopicIdPartition) -> None:
        """Delete all records."""
        await self.plane.trimming.delete_records(dict.fromkeys(partitions, -1))

    async def compare(self, options: FsckOptions, store: ObjectStore | None = None) -> FsckReport:
        """What fsck finds, of these objects or of those in another store."""
        plane = self.plane
        return await Fsck(
            store or self.store, options, files=plane.files, splits=plane.claims, conversion=plane.uploads
        ).run()

    async def keys(self) -> set[str]:
        """What lies in the store."""
        return {item.key async for item in self.store.list("")}

    async def marked(self) -> set[str]:
        """The keys of all files that wait for their deletion."""
        files = await self.plane.files.files_to_delete(marked_for_ms=-(2**60), limit=10_000)
        return {file.object_key for file in files}

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Let time pass, second by second, until something is so."""
        await until_in(self.clock, condition)


def _to_commit(batch: DisklessAppend, position: int) -> BatchToCommit:
    header = batch.header
    return BatchToCommit(
        partition=batch.partition,
        byte_offset=position,
        byte_size=len(batch.buffer),
        record_count=header.last_offset_delta + 1,
        max_timestamp=header.max_timestamp,
        timestamp_type=batch.timestamp_type,
        leader_epoch=batch.leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )


@asynccontextmanager
async def open_world(database_url: str, root: Path, *, now_ms: int = MIDDAY_MS) -> AsyncIterator[World]:
    clock = VirtualClock(now_ms)
    async with open_store(database_url) as sql, open_objects(f"file://{root}") as store:
        yield World(SqlControlPlane(sql, clock=clock, time=clock), store, root, clock)
