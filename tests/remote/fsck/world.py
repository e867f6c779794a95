"""The tiered broker that Apache Kafka 4.3.1 left behind, for tests that spoil it and look whether that is found."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from strandline.admin.commands.fsck.remote_sources import LogDirectories
from strandline.model import TopicIdPartition, TopicPartition, uuid_from_text
from strandline.objects import ObjectStore, open_objects
from strandline.objects.comparing import Finding, ignore_progress
from strandline.remote.fsck import ClusterState, RemoteFsck, RemoteFsckOptions, RemoteFsckReport, TieredLogBounds
from strandline.remote.fsck.replay import MetadataReplay
from strandline.remote.topic_based.partitioner import metadata_partition
from strandline.remote.topic_based.records import RemoteLogMetadata, deserialize, partition_of, serialize
from strandline.remote.topic_based.topic import MetadataTopicRecord
from strandline.remote.values import (
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
)
from strandline.testing.clock import VirtualClock
from tests.golden import copy_of, read_json

DAY_MS = 86_400_000
NOW = 1_800_000_000_000
METADATA_PARTITIONS = 3
NOTHING = RemotePartitionDeleteMetadata(
    partition=TopicIdPartition(UUID(int=0), TopicPartition("nothing", 0)),
    state=RemotePartitionDeleteState.DELETE_PARTITION_FINISHED,
    event_timestamp_ms=0,
    broker_id=1,
)
"""A record that changes nothing."""
OPTIONS = RemoteFsckOptions(grace_ms=DAY_MS, stuck_ms=DAY_MS)


@dataclass
class World:
    """A `FsckSource` on Kafka's directories, and what tests change about them."""

    local: Path
    """Shared by all tests: to be read, not written."""
    remote: Path
    """A copy."""
    topics: dict[UUID, int]
    names: dict[str, UUID]
    clock: VirtualClock = field(default_factory=lambda: VirtualClock(NOW))
    said: list[RemoteLogMetadata] = field(default_factory=list)
    """Records that follow those of Kafka."""
    later: list[RemoteLogMetadata] = field(default_factory=list)
    """Records that are written while the storage is compared."""
    damaged: int | None = None
    """A metadata partition whose last record cannot be read."""
    adjust: Callable[[TieredLogBounds], TieredLogBounds] = lambda bounds: bounds
    only: str | None = None
    """Leave out other topics."""
    reads: int = 0

    # The port

    metadata_partitions: int = METADATA_PARTITIONS

    def records(self, partition: int, from_offset: int) -> Iterator[MetadataTopicRecord]:
        self.reads += 1
        position = 0
        for record in LogDirectories([str(self.local)], self.topics, metadata_partitions=3).records(partition, 0):
            position = record.offset + 1
            if record.offset >= from_offset:
                yield record if self._is_wanted(record) else record._replace(value=serialize(NOTHING))
        said = [*self.said, *(self.later if self.reads > METADATA_PARTITIONS else ())]
        values = [serialize(each) for each in said if metadata_partition(partition_of(each), 3) == partition]
        for offset, value in enumerate(values, position):
            if offset >= from_offset:
                yield MetadataTopicRecord(offset, value)
        if partition == self.damaged and from_offset <= position + len(values):
            yield MetadataTopicRecord(position + len(values), None, "It is damaged.")

    def state(self) -> ClusterState:
        found = LogDirectories([str(self.local)], self.topics, metadata_partitions=3).state()
        bounds = {place: self.adjust(each) for place, each in found.bounds.items() if self.only in (None, place.topic)}
        return ClusterState(self.topics, bounds)

    def _is_wanted(self, record: MetadataTopicRecord) -> bool:
        assert record.value is not None
        return self.only is None or partition_of(deserialize(record.value)).topic == self.only

    # What tests do

    def partition(self, topic: str, number: int = 0) -> TopicIdPartition:
        return TopicIdPartition(self.names[topic], TopicPartition(topic, number))

    def segments(self, topic: str, number: int = 0) -> list[RemoteLogSegmentMetadata]:
        """The remote segments of a partition, by start offset."""
        metadata = MetadataReplay(self, ignore_progress)
        metadata.catch_up()
        self.reads = 0
        return list(metadata.cache(self.partition(topic, number)).list_remote_log_segments())

    def objects(self, topic: str, number: int = 0) -> Path:
        (directory,) = self.remote.glob(f"{topic}-{number}-*")
        return directory

    def object(self, topic: str, start_offset: int, kind: str, number: int = 0) -> Path:
        (path,) = self.objects(topic, number).glob(f"{start_offset:020d}-*.{kind}")
        path.chmod(0o644)
        return path

    def spoil(self, path: Path, at: int, xor: int = 1) -> None:
        data = bytearray(path.read_bytes())
        data[at] ^= xor
        path.write_bytes(data)

    def add_orphan(self, topic: str, *, age_ms: int, number: int = 0, start_offset: int = 42) -> list[Path]:
        """Objects of a copy whose metadata was deleted before them."""
        made = []
        for source in sorted(self.objects(topic, number).glob(f"{start_offset:020d}-*")):
            path = source.with_name(f"{start_offset:020d}-AAAAAAAAAAAAAAAAAAAAAA{source.suffix}")
            shutil.copyfile(source, path)
            made.append(path)
        self.age(made, age_ms)
        return made

    def age(self, paths: list[Path], age_ms: int) -> None:
        for path in paths:
            os.utime(path, ((self.clock.now_ms() - age_ms) / 1000,) * 2)

    def update(
        self, metadata: RemoteLogSegmentMetadata, state: RemoteLogSegmentState, *, age_ms: int = 0
    ) -> RemoteLogSegmentMetadataUpdate:
        return RemoteLogSegmentMetadataUpdate(
            segment_id=metadata.segment_id, event_timestamp_ms=NOW - age_ms, state=state, broker_id=1
        )

    def deletion(
        self, partition: TopicIdPartition, state: RemotePartitionDeleteState, *, age_ms: int = 0
    ) -> RemotePartitionDeleteMetadata:
        return RemotePartitionDeleteMetadata(
            partition=partition, state=state, event_timestamp_ms=NOW - age_ms, broker_id=1
        )

    async def compare(self, options: RemoteFsckOptions = OPTIONS) -> RemoteFsckReport:
        async with open_objects(f"file://{self.remote}") as store:
            return await self.compare_in(store, "", options)

    async def compare_in(self, store: ObjectStore, prefix: str, options: RemoteFsckOptions) -> RemoteFsckReport:
        self.reads = 0
        return await RemoteFsck(self, store, prefix, self.clock, options).run()

    async def findings(self, options: RemoteFsckOptions = OPTIONS) -> list[Finding]:
        return list((await self.compare(options)).findings)


def make_world(kafka_tiered: Path, directory: Path) -> World:
    topics = read_json(kafka_tiered / "expected/tiered/topics.json")
    names = {name: uuid_from_text(topic["topic_id"]) for name, topic in topics.items()}
    return World(
        local=kafka_tiered / "tiered/local",
        remote=copy_of(kafka_tiered / "tiered/remote/kafka-tiered-storage", directory / "remote"),
        topics={names[name]: topic["partitions"] for name, topic in topics.items()},
        names=names,
    )
