"""The tiered broker that Apache Kafka 4.3.1 left behind, opened with our log, storage, metadata manager and reader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from strandline.clock import SystemChance, SystemClock, SystemIds
from strandline.log import LogManager, UnifiedLog
from strandline.model import REMOTE_LOG_METADATA_TOPIC
from strandline.objects.opening import open_objects
from strandline.objects.options import ObjectOptions
from strandline.records import iter_headers, read_records
from strandline.remote.indexes import open_index_cache
from strandline.remote.ports import RemoteStorageManager
from strandline.remote.reader import RemoteLogReader, RemoteReaderLimits
from strandline.remote.storage.objects import ObjectRemoteStorage
from strandline.remote.topic_based.limits import MetadataLimits
from strandline.remote.topic_based.manager import TopicBasedRemoteLogMetadataManager
from strandline.testing.metadata_topic import MemoryMetadataTopic
from strandline.testing.objects import FaultyStore
from tests.golden import copy_of
from tests.log.test_golden_tiered import managed
from tests.remote.reader.consuming import id_of


@dataclass
class GoldenWorld:
    """Everything that is needed to read what Kafka wrote."""

    logs: dict[str, UnifiedLog]
    store: FaultyStore
    remote: Path
    metadata: TopicBasedRemoteLogMetadataManager
    reader: RemoteLogReader


def _metadata_topic(manager: LogManager) -> MemoryMetadataTopic:
    logs = [log for log in manager.all_logs() if log.topic_partition.topic == REMOTE_LOG_METADATA_TOPIC]
    topic = MemoryMetadataTopic(len(logs))
    for log in logs:
        values = topic.values[log.topic_partition.partition]
        for segment in log.segments:
            data = segment.file.read(0, segment.size)
            for position, header in iter_headers(data):
                values += [record.value for record in read_records(data[position : position + header.size])]
    return topic


@asynccontextmanager
async def open_golden(
    kafka_tiered: Path, directory: Path, *, has_files: bool, limits: RemoteReaderLimits | None = None
) -> AsyncIterator[GoldenWorld]:
    """A copy of it. Without `has_files` the reader has to go through memory, as with S3."""
    clock, ids = SystemClock(), SystemIds()
    manager = managed(kafka_tiered, copy_of(kafka_tiered / "tiered/local", directory / "local"))
    remote = copy_of(kafka_tiered / "tiered/remote/kafka-tiered-storage", directory / "remote")
    async with AsyncExitStack() as stack:
        stack.callback(manager.shutdown)
        enter = stack.enter_async_context
        objects = await enter(
            open_objects(f"file://{remote}", ObjectOptions(), clock=clock, ids=ids, chance=SystemChance(1))
        )
        store = FaultyStore(objects, clock)
        storage: RemoteStorageManager = ObjectRemoteStorage(store, directory=remote if has_files else None)
        indexes = await enter(
            open_index_cache(directory / "index-cache", storage, max_bytes=1 << 20, clock=clock, ids=ids)
        )
        metadata = TopicBasedRemoteLogMetadataManager(
            _metadata_topic(manager), directory=directory, limits=MetadataLimits(consume_wait=10.0), clock=clock
        )
        await enter(metadata.running())
        logs = {str(log.topic_partition): log for log in manager.all_logs() if log.topic_partition.topic[:3] == "fx-"}
        partitions = [id_of(log) for log in logs.values()]
        metadata.on_partition_leadership_changes(partitions, [])
        async with asyncio.timeout(20):
            while not all(map(metadata.is_ready, partitions)):
                await asyncio.to_thread(lambda: None)
        reader = RemoteLogReader(storage, metadata, indexes, limits=limits or RemoteReaderLimits(), clock=clock)
        await enter(reader.running())
        yield GoldenWorld(logs, store, remote, metadata, reader)
