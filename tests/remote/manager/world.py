"""A RemoteLogManager with a real log, a real object store and topic-based metadata."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from strandline.clock import SystemChance, SystemClock, SystemIds
from strandline.config.topic import TopicConfig
from strandline.log import LoadedOffsets, UnifiedLog
from strandline.model import Offset, TopicIdPartition
from strandline.objects import ObjectStore
from strandline.records.batch import iter_headers
from strandline.remote.manager import LeaderPartition, ManagerLimits, PartitionTierStatus, RemoteLogManager
from strandline.remote.storage import DeadlineStorage, StorageDeadlines
from strandline.remote.storage.objects import ObjectRemoteStorage
from strandline.remote.topic_based.limits import MetadataLimits
from strandline.remote.topic_based.manager import TopicBasedRemoteLogMetadataManager
from strandline.remote.topic_based.topic import MetadataTopicUnavailable
from strandline.remote.values import (
    IndexType,
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentState,
    RemotePartitionDeleteState,
)
from strandline.testing.clock import VirtualClock
from strandline.testing.metadata_topic import MemoryMetadataTopic
from strandline.testing.objects import FaultyStore
from tests.log.harness import NOW, PARTITION, LogHarness, batch

TOPIC_ID = UUID(int=0xFEED)
TIERED = TopicIdPartition(TOPIC_ID, PARTITION)
BROKER = 1
LIMITS = ManagerLimits(task_interval_ms=1000)
_PATIENCE = 100.0
_REAL_PATIENCE = 20.0  # seconds for files, on a busy machine
SIZE = len(batch())
FINISHED = RemoteLogSegmentState.COPY_SEGMENT_FINISHED


def settings(**changes: object) -> TopicConfig:
    """A tiered topic with two batches in a segment, that keeps everything."""
    chosen = {"remote_storage_enable": True, "internal_segment_bytes": 2 * SIZE, "retention_ms": -1, **changes}
    return TopicConfig(**chosen)  # type: ignore[arg-type]


class StoredTopic(MemoryMetadataTopic):
    """The metadata topic, in a file if a path is given: it outlives the process. Appends fail as a test says."""

    def __init__(self, clock: VirtualClock, path: Path | None = None) -> None:
        super().__init__(1, clock=clock)
        self._path = path
        self.fail_next = 0
        self.lose_next = 0
        if path is not None and path.exists():
            data = path.read_bytes()
            while data:
                length = int.from_bytes(data[:4], "big")
                self.values[0].append(data[4 : 4 + length])
                data = data[4 + length :]

    async def append(self, partition: int, value: bytes) -> Offset:
        if self.fail_next:
            self.fail_next -= 1
            raise MetadataTopicUnavailable("a test lets an append fail")
        if self._path is not None:
            with self._path.open("ab", buffering=0) as file:
                file.write(len(value).to_bytes(4, "big") + value)
        offset = await super().append(partition, value)
        if self.lose_next:
            self.lose_next -= 1
            raise MetadataTopicUnavailable("a test loses the answer of an append")
        return offset


@dataclass
class World:
    """Time moves by hand. The log and the manager may be stopped and started again."""

    root: Path
    clock: VirtualClock
    store: FaultyStore
    objects: ObjectRemoteStorage
    storage: DeadlineStorage
    topic: StoredTopic
    limits: ManagerLimits
    harness: LogHarness
    metadata: TopicBasedRemoteLogMetadataManager = field(init=False)
    manager: RemoteLogManager = field(init=False)
    epoch: int = 0
    step: float = 0.25
    """How much time passes at once. Little, if objects are in real files: they take real time."""
    suffix_bytes: int = 0
    """The size of what follows the log elsewhere."""
    deleted: deque[RemoteLogSegmentId] = field(default_factory=deque)

    @property
    def log(self) -> UnifiedLog:
        return self.harness.log

    @asynccontextmanager
    async def running(self, *, lead: bool = True) -> AsyncIterator[RemoteLogManager]:
        """A metadata manager and a RemoteLogManager, as after a start of the broker."""
        self.metadata = TopicBasedRemoteLogMetadataManager(
            self.topic, directory=self.root, limits=MetadataLimits(consume_wait=10.0), clock=self.clock
        )
        self.manager = RemoteLogManager(
            self.storage,
            self.metadata,
            broker_id=BROKER,
            limits=self.limits,
            clock=self.clock,
            ids=SystemIds(),
            chance=SystemChance(1),
            on_segments_deleted=self.deleted.extend,
        )
        async with self.metadata.running(), self.manager.running():
            if lead:
                self.lead()
            yield self.manager

    def lead(self) -> None:
        self.metadata.on_partition_leadership_changes([TIERED], [])
        self.manager.lead(
            LeaderPartition(
                partition=TIERED, log=self.log, leader_epoch=self.epoch, suffix_bytes=lambda: self.suffix_bytes
            )
        )

    def create_log(self) -> None:
        self.harness.create()

    def open_log(self) -> None:
        """After another process has died."""
        self.harness.open(LoadedOffsets(), is_clean=False)
        self.log.update_high_watermark(self.log.log_end_offset)

    def append(self, batches: int = 1, *, timestamp: int = NOW) -> None:
        for _ in range(batches):
            self.harness.append(batch(timestamp=timestamp), epoch=self.epoch)

    def configure(self, **changes: object) -> None:
        self.harness.config = settings(**changes)
        self.log.update_config(self.harness.config)
        self.manager.reconsider(TIERED)

    # What there is

    def segments(self, state: RemoteLogSegmentState | None = None) -> list[RemoteLogSegmentMetadata]:
        if not self.metadata.is_ready(TIERED):
            return []
        known = self.metadata.list_remote_log_segments(TIERED)
        return [segment for segment in known if state is None or segment.state is state]

    def ranges(self, state: RemoteLogSegmentState | None = FINISHED) -> list[tuple[Offset, Offset]]:
        return [(segment.start_offset, segment.end_offset) for segment in self.segments(state)]

    def delete_state(self) -> RemotePartitionDeleteState | None:
        return self.metadata.partition_delete_state(TIERED) if self.metadata.is_ready(TIERED) else None

    def is_forgotten(self) -> bool:
        """Whether the partition has no metadata any more: its deletion is over."""
        return self.metadata.is_ready(TIERED) and TIERED not in self.metadata.partitions()

    def forget_snapshots(self) -> None:
        """Lose the snapshots of the metadata."""
        for snapshot in self.root.glob("_rlmm_snapshot.*"):
            snapshot.unlink()

    def status(self) -> PartitionTierStatus:
        status = self._status()
        assert status is not None
        return status

    def _status(self) -> PartitionTierStatus | None:
        """As of now: without the turns of others that it leaves room for."""
        making = self.manager.partition_status(TIERED)
        while True:
            try:
                making.send(None)
            except StopIteration as end:
                status: PartitionTierStatus | None = end.value
                return status

    async def keys(self) -> set[str]:
        return {item.key async for item in self.store.list("")}

    def keys_of(self, segment: RemoteLogSegmentMetadata) -> set[str]:
        kinds = set(IndexType) - ({IndexType.TRANSACTION} if segment.txn_index_empty else set())
        return {self.objects.log_key(segment), *(self.objects.index_key(segment, kind) for kind in kinds)}

    async def check_nothing_leaked(self) -> None:
        """Every object has metadata, every segment in COPY_SEGMENT_FINISHED its objects, and no copy is unfinished."""
        segments = self.segments()
        assert [segment.state.name for segment in segments if segment.state is not FINISHED] == []
        expected = {key for segment in segments for key in self.keys_of(segment)}
        assert await self.keys() == expected

    async def check_nothing_lost(self, batches: Sequence[bytes]) -> None:
        """`batches[offset]` is on disk or in the remote segment that a reader is sent to, for the whole log."""
        log = self.log
        for offset in range(log.log_start_offset, log.log_end_offset):
            if offset >= log.local_log_start_offset:
                found = log.read(offset, 1)
                assert found.records is not None
                assert found.records.read() == batches[offset], offset
                continue
            epoch = log.epochs.epoch_of(offset)
            assert epoch is not None
            segment = self.metadata.remote_log_segment_metadata(TIERED, epoch, offset)
            assert segment is not None, f"offset {offset} is nowhere"
            data = bytes(await self.storage.fetch_log_segment(segment, 0, segment.segment_size_in_bytes))
            remote = {h.base_offset: data[at : at + h.size] for at, h in iter_headers(data)}
            assert remote[offset] == batches[offset], offset

    # Waiting

    async def until(self, holds: Callable[[], object], *, step: float | None = None) -> None:
        """Let time pass until something is so; files get real time for their part."""
        step = self.step if step is None else step
        system, steps = SystemClock(), 0
        until = system.monotonic() + _REAL_PATIENCE
        while steps < round(_PATIENCE / self.step) or system.monotonic() < until:
            if holds():
                return
            await self.clock.advance(step)
            await system.sleep(0.0005 if steps < round(_PATIENCE / self.step) else 0.01)
            steps += 1
        raise AssertionError(f"waited in vain; {self._status()}; tasks: {len(asyncio.all_tasks())}")

    async def until_copied(self) -> None:
        """Until everything that is finished is in remote storage, and nothing else is under way."""
        await self.until(lambda: self.metadata.is_ready(TIERED))
        await self.until(lambda: self._is_at_rest())

    def _is_at_rest(self) -> bool:
        status = self.status()
        states = set(status.segments_by_state) - {"LOCAL_ACTIVE", FINISHED.name}
        return not states and status.copying_seconds is None

    async def pass_time(self, seconds: float) -> None:
        await self.until_ready()
        for _ in range(max(round(seconds * 4), 1)):
            await self.clock.advance(0.25)
            await SystemClock().sleep(0.0005)

    async def until_ready(self) -> None:
        await self.until(lambda: self.metadata.is_ready(TIERED))


@asynccontextmanager
async def open_world(
    root: Path,
    store: ObjectStore,
    *,
    config: TopicConfig | None = None,
    limits: ManagerLimits = LIMITS,
    topic_path: Path | None = None,
    now_ms: int = NOW,
) -> AsyncIterator[World]:
    os.makedirs(root, exist_ok=True)
    clock = VirtualClock(now_ms)
    faulty = FaultyStore(store, clock)
    objects = ObjectRemoteStorage(faulty)
    yield World(
        root=root,
        clock=clock,
        store=faulty,
        objects=objects,
        storage=DeadlineStorage(objects, StorageDeadlines(), clock=clock),
        topic=StoredTopic(clock, topic_path),
        limits=limits,
        harness=LogHarness(root / "data", config or settings(), clock, remote_enabled=True),
    )
