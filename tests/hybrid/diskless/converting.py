"""Diskless logs of which a part is converted into remote segments, and brokers that read them, without a network.

The conversion is as short as can be: a segment of a real log, then the two records of remote log metadata, then the
read boundary in the control plane, in the order of the pipeline. A test may stop between these steps.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from strandline.clock import Clock, SystemChance, SystemClock, SystemIds
from strandline.config.topic import TopicConfig
from strandline.controlplane import SqlControlPlane
from strandline.diskless.reader import DisklessReader, DisklessReaderLimits, OffsetLookups
from strandline.diskless.values import DisklessRead
from strandline.errors import KafkaStorageError, StrandlineError
from strandline.hybrid.diskless.converted import ConvertedLog
from strandline.hybrid.diskless.offsets import DisklessOffsets
from strandline.hybrid.diskless.reads import RoutedRead, RowReads
from strandline.hybrid.partitions import Partitions
from strandline.hybrid.reading import FinalRead, PendingRead
from strandline.hybrid.remote.subscriptions import MetadataSubscriptions
from strandline.hybrid.remote.tier import RemoteTier
from strandline.hybrid.remote.topics import TieredTopics
from strandline.hybrid.tier_reads import TierReads
from strandline.model import TopicIdPartition, TopicPartition
from strandline.objects.opening import open_objects
from strandline.reads import FetchIsolation, FoundOffset, ReadResult
from strandline.records import read_header
from strandline.remote.indexes import open_index_cache
from strandline.remote.manager import ManagerLimits, PrefixCoverage, RemoteLogManager
from strandline.remote.quota import RateQuota
from strandline.remote.reader import RemoteLogReader, RemoteReaderLimits
from strandline.remote.storage import DeadlineStorage, StorageDeadlines
from strandline.remote.storage.objects import ObjectRemoteStorage
from strandline.remote.topic_based.limits import MetadataLimits
from strandline.remote.topic_based.manager import TopicBasedRemoteLogMetadataManager as TopicBased
from strandline.remote.values import (
    LogSegmentData,
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
)
from strandline.testing.metadata_topic import MemoryMetadataTopic
from strandline.testing.objects import FaultyStore
from tests.diskless.reader.lake import Lake, data_of, open_lake
from tests.log.harness import LogHarness
from tests.reads import found

MANY = 1 << 20


@dataclass
class ReadingBroker:
    """What one broker has for reading diskless logs."""

    reader: DisklessReader
    metadata: TopicBased
    tiered: TieredTopics
    rows: RowReads
    lookups: OffsetLookups
    clock: Clock
    boundaries: dict[TopicIdPartition, int]
    logs: dict[TopicIdPartition, ConvertedLog] = field(default_factory=dict)

    @property
    def partitions(self) -> Partitions:
        """What runs pending reads: it serves none."""
        return Partitions(self.tiered, topic_name=bytes.hex, why_missing=lambda *_: KafkaStorageError("none"))

    def log(self, partition: TopicIdPartition) -> ConvertedLog:
        if partition not in self.logs:
            boundary = self.boundaries.get(partition, 0)
            self.logs[partition] = ConvertedLog(partition, boundary, 0, self.reader, self.tiered)
        return self.logs[partition]

    def offsets(self, partition: TopicIdPartition) -> DisklessOffsets:
        return DisklessOffsets(self.lookups, self.reader, self.log(partition), self.clock, timeout_ms=0)

    async def list_offset(self, partition: TopicIdPartition, timestamp: int) -> FoundOffset:
        return await self.offsets(partition).find(timestamp)

    async def answer(
        self,
        partition: TopicIdPartition,
        offset: int,
        max_bytes: int = MANY,
        isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
    ) -> ReadResult | StrandlineError:
        """One partition, as a Fetch reads it."""
        (answer,) = await self.answers([(partition, offset, max_bytes)], max_bytes, isolation=isolation)
        return answer

    async def answers(
        self,
        asked: Sequence[tuple[TopicIdPartition, int, int]],
        max_bytes: int = MANY,
        *,
        isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
    ) -> list[ReadResult | StrandlineError]:
        """Several partitions: from memory where that is possible, the others together."""
        answers: dict[int, ReadResult | StrandlineError] = {}
        pending: dict[int, PendingRead] = {}
        left = max_bytes
        for place, (partition, offset, limit) in enumerate(asked):
            is_first = left == max_bytes
            request = DisklessRead(partition, offset, max(min(limit, left), 0), isolation)
            log = self.log(partition)
            is_converted = log.boundary <= offset < log.local_log_start_offset  # as the layout of the partition says
            reads = self.rows.converted if is_converted else self.rows
            read = RoutedRead(request, log)
            answer: ReadResult | StrandlineError | FinalRead | PendingRead | None
            try:
                answer = reads.from_memory(read, min_one_message=is_first)
            except StrandlineError as error:
                answer = error
            if answer is None:
                answer = reads.begin(read, min_one_message=is_first)
            if isinstance(answer, PendingRead):
                pending[place] = answer
                continue
            answers[place] = answer.result if isinstance(answer, FinalRead) else answer
            left -= length_of(answers[place])
        if pending:
            late = await self.partitions.read(
                list(pending.values()),
                max_bytes=max(left, 1),
                min_one_message=left == max_bytes,
                is_wanted=lambda: True,
            )
            answers.update(zip(pending, late, strict=True))
        return [answers[place] for place in range(len(asked))]

    async def read_all(self, partition: TopicIdPartition, offset: int, max_bytes: int = MANY) -> bytes:
        """Everything from an offset on."""
        data = b""
        while True:
            result = found(await self.answer(partition, offset, max_bytes))
            got = data_of(result)
            if not got:
                assert offset == result.high_watermark
                return data
            data += got
            offset = next_offset(got)


def length_of(answer: ReadResult | StrandlineError) -> int:
    return 0 if isinstance(answer, StrandlineError) or answer.records is None else answer.records.length


def next_offset(data: bytes) -> int:
    position = 0
    while position < len(data):
        header = read_header(data, position)
        position += header.size
    return header.next_offset


@dataclass
class ConvertingWorld:
    """One lake, one remote storage, and the brokers that read them."""

    directory: Path
    lake: Lake
    remote_objects: FaultyStore
    storage: DeadlineStorage
    topic: MemoryMetadataTopic
    leader: TopicBased
    stack: AsyncExitStack
    brokers: list[ReadingBroker] = field(default_factory=list)
    boundaries: dict[TopicIdPartition, int] = field(default_factory=dict)
    """B0 of logs that do not begin at 0."""
    converted: defaultdict[TopicIdPartition, int] = field(default_factory=lambda: defaultdict(int))
    """Where the segments of a log end."""
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def plane(self) -> SqlControlPlane:
        return self.lake.plane

    async def broker(
        self, limits: DisklessReaderLimits | None = None, *, has_remote: bool = True, clock: Clock | None = None
    ) -> ReadingBroker:
        """Another broker. It has read no remote log metadata yet."""
        reader = self.lake.reader(limits)
        metadata = await self.stack.enter_async_context(_metadata(self.topic, self.directory / f"b{len(self.brokers)}"))
        tiered = TieredTopics()
        if has_remote:
            tiered.storage = await self._tier(metadata)
        clock = clock or SystemClock()
        lookups = OffsetLookups(self.plane.reads, reader)
        rows = RowReads(reader, TierReads(), clock)
        broker = ReadingBroker(reader, metadata, tiered, rows, lookups, clock, self.boundaries)
        self.brokers.append(broker)
        return broker

    async def _tier(self, metadata: TopicBased) -> RemoteTier:
        clock, ids = SystemClock(), SystemIds()
        place = self.directory / f"index-cache-{len(self.brokers)}"
        indexes = await self.stack.enter_async_context(
            open_index_cache(place, self.storage, max_bytes=MANY, clock=clock, ids=ids)
        )
        reader = RemoteLogReader(self.storage, metadata, indexes, limits=RemoteReaderLimits(), clock=clock)
        return RemoteTier(
            storage=self.storage,
            metadata=metadata,
            indexes=indexes,
            reader=await self.stack.enter_async_context(reader.running()),
            manager=RemoteLogManager(
                self.storage,
                metadata,
                broker_id=1,
                limits=ManagerLimits(),
                clock=clock,
                ids=ids,
                chance=SystemChance(1),
            ),
            fetch_quota=RateQuota(1 << 62, windows=2, window_seconds=1, clock=clock),
            prefixes=PrefixCoverage(metadata),
            on_need=lambda: None,
            subscriptions=MetadataSubscriptions(metadata),
        )

    async def convert(self, partition: TopicIdPartition, end: int) -> RemoteLogSegmentMetadata:
        """Make one segment of the records below `end`, which is the end of a row."""
        segment = await self.upload(partition, end)
        await self.move_boundary(partition, end)
        return segment

    async def upload(self, partition: TopicIdPartition, end: int) -> RemoteLogSegmentMetadata:
        """A finished segment that the control plane does not know yet."""
        start = max(self.converted[partition], self.boundaries.get(partition, 0))
        batches = [one for one in self.lake.model[partition] if start <= one.base_offset and one.last_offset < end]
        assert batches[0].base_offset == start
        assert batches[-1].last_offset == end - 1
        config = TopicConfig(remote_storage_enable=True, index_interval_bytes=0, message_timestamp_after_max_ms=2**62)
        place = TopicPartition("built", next(self._numbers))
        harness = LogHarness(self.directory / "built", config=config, partition=place, remote_enabled=True)
        log = harness.create()
        log.truncate_fully_and_start_at(start)
        for one in batches:
            log.append_as_follower(memoryview(one.data))
        log.roll()
        log.update_high_watermark(end)
        (closed,) = log.remote.segments_to_copy(start)
        metadata = RemoteLogSegmentMetadata(
            segment_id=RemoteLogSegmentId(partition, SystemIds().uuid()),
            start_offset=start,
            end_offset=end - 1,
            max_timestamp_ms=closed.max_timestamp,
            broker_id=1,
            event_timestamp_ms=0,
            segment_size_in_bytes=closed.size,
            segment_leader_epochs=closed.leader_epochs,
            txn_index_empty=True,
        )
        await self.leader.add_remote_log_segment_metadata(metadata)
        data = LogSegmentData(
            log_segment=closed.log,
            offset_index=closed.offset_index,
            time_index=closed.time_index,
            transaction_index=closed.txn_index,
            producer_snapshot_index=closed.producer_snapshot,
            leader_epoch_index=closed.epoch_history,
        )
        await self.storage.copy_log_segment_data(metadata, data)
        log.close()
        await self.set_state(metadata, RemoteLogSegmentState.COPY_SEGMENT_FINISHED)
        self.converted[partition] = end
        return metadata

    async def set_state(self, segment: RemoteLogSegmentMetadata, state: RemoteLogSegmentState) -> None:
        await self.leader.update_remote_log_segment_metadata(
            RemoteLogSegmentMetadataUpdate(
                segment_id=segment.segment_id, event_timestamp_ms=0, state=state, broker_id=1
            )
        )

    async def delete_segment(self, segment: RemoteLogSegmentMetadata) -> None:
        """As expiration does, after the log start has moved behind it."""
        await self.set_state(segment, RemoteLogSegmentState.DELETE_SEGMENT_STARTED)
        await self.storage.delete_log_segment_data(segment)
        await self.set_state(segment, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED)

    async def move_boundary(self, partition: TopicIdPartition, end: int) -> None:
        """The segments are part of the log, and their rows go, and objects that no row needs."""
        place = (partition.topic_id, partition.partition)
        async with self.plane.store.transaction() as tx:
            await tx.execute(
                "UPDATE inkless_log SET tiered_high_offset = $3, diskless_start_offset = $4 "
                "WHERE topic_id = $1 AND partition = $2",
                *place,
                end - 1,
                end,
            )
            await tx.execute(
                "DELETE FROM inkless_batch WHERE last_offset < $3 AND log_id = "
                "(SELECT log_id FROM inkless_log WHERE topic_id = $1 AND partition = $2)",
                *place,
                end,
            )
            kept = await tx.fetch(
                "SELECT DISTINCT f.object_key FROM inkless_batch b JOIN inkless_file f ON f.file_id = b.file_id"
            )
        in_use = {key for (key,) in kept}
        keys = [one.key async for one in self.lake.objects.list("wal/")]
        await self.lake.objects.delete([key for key in keys if key not in in_use])


def _metadata(topic: MemoryMetadataTopic, directory: Path) -> AbstractAsyncContextManager[TopicBased]:
    directory.mkdir()
    limits = MetadataLimits(consume_wait=10.0)
    return TopicBased(topic, directory=directory, limits=limits, clock=SystemClock()).running()


@asynccontextmanager
async def open_converting(directory: Path, *, create: bool = True) -> AsyncIterator[ConvertingWorld]:
    """Nothing is written or converted yet."""
    clock, ids = SystemClock(), SystemIds()
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        lake = await enter(open_lake(create=create))
        objects = await enter(open_objects("memory://", clock=clock, ids=ids, chance=SystemChance(1)))
        remote = FaultyStore(objects, clock)
        storage = DeadlineStorage(ObjectRemoteStorage(remote), StorageDeadlines(), clock=clock)
        topic = MemoryMetadataTopic(1)
        leader = await enter(_metadata(topic, directory / "leader"))
        yield ConvertingWorld(directory, lake, remote, storage, topic, leader, stack)
