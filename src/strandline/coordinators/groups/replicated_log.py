"""The group log on the partitions of `__consumer_offsets` that this broker leads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from strandline.config.groups import GroupSettings
from strandline.coordinators.groups.log import LogRecord, ReadBatch, ReadRecord
from strandline.errors import CorruptMessage
from strandline.metadata.image import MetadataImage
from strandline.model import GROUP_METADATA_TOPIC, TopicPartition
from strandline.reads import FetchIsolation
from strandline.records.batch import BatchHeader, crc_matches, iter_headers
from strandline.records.builder import build_batch
from strandline.records.codecs import Codec
from strandline.records.control import ControlType, read_marker
from strandline.records.record import Record, iter_records
from strandline.replication import Partition, ReplicaManager


class ReplicatedGroupLog:
    """`GroupLog` on the partitions of `__consumer_offsets` that this broker leads."""

    def __init__(self, replicas: ReplicaManager, image: Callable[[], MetadataImage], settings: GroupSettings) -> None:
        self._replicas, self._image, self._settings = replicas, image, settings
        self._codec = Codec(settings.offsets_topic_compression_codec)

    def partition_count(self) -> int:
        topic = self._image().topics.get(GROUP_METADATA_TOPIC)
        return self._settings.offsets_topic_num_partitions if topic is None else len(topic.partitions)

    def max_batch_bytes(self, partition: int) -> int:
        return self._leader(partition).log.config.max_message_bytes

    async def append(self, partition: int, records: Sequence[LogRecord]) -> int:
        batch = build_batch(
            [Record(at, record.timestamp_ms, record.key, record.value) for at, record in enumerate(records)],
            codec=self._codec,
            base_sequence=0,  # with producer id -1: as Kafka's group coordinator writes it
        )
        info = await self._leader(partition).append_and_wait(
            memoryview(batch), timeout_ms=self._settings.offsets_commit_timeout_ms
        )
        return info.first_offset

    async def read(self, partition: int) -> AsyncIterator[ReadBatch]:
        leader = self._leader(partition)
        position = leader.log.log_start_offset
        end = leader.log.log_end_offset
        while position < end:
            leader.check_leader()
            chunk = await self._read_chunk(leader, position)
            for at, header in iter_headers(chunk):
                if header.last_offset >= position:
                    yield _read_batch(chunk, at, header, leader.topic_partition)
                    position = header.next_offset
            if not chunk:
                return

    async def _read_chunk(self, leader: Partition, position: int) -> bytes:
        size = self._settings.offsets_load_buffer_size
        result = leader.read(position, size, isolation=FetchIsolation.LOG_END, min_one_message=True)
        if result.records is None:
            return b""
        return await asyncio.get_running_loop().run_in_executor(None, result.records.read)

    def _leader(self, partition: int) -> Partition:
        return self._replicas.get_leader(TopicPartition(GROUP_METADATA_TOPIC, partition))


def _read_batch(chunk: bytes, at: int, header: BatchHeader, where: TopicPartition) -> ReadBatch:
    if not crc_matches(chunk, at, header):
        raise CorruptMessage(f"the batch at offset {header.base_offset} of {where} does not match its checksum")
    batch = memoryview(chunk)[at : at + header.size]
    if header.is_control:
        marker = read_marker(batch)
        committed = None if marker is None else marker.type is ControlType.COMMIT
        return ReadBatch(producer_id=header.producer_id, is_transactional=True, committed=committed)
    return ReadBatch(
        records=tuple(ReadRecord(record.offset, record.key, record.value) for record in iter_records(batch)),
        producer_id=header.producer_id,
        is_transactional=header.is_transactional,
    )
