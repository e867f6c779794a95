"""A partition of `__remote_log_metadata` that another broker leads, written and read over Kafka's protocol."""

from __future__ import annotations

import asyncio
from typing import Final
from uuid import UUID

from strandline.errors import LeaderNotAvailable
from strandline.metadata import Images
from strandline.model import REMOTE_LOG_METADATA_TOPIC, ZERO_UUID, BrokerId, Offset, TopicPartition
from strandline.reads import EARLIEST, LATEST
from strandline.remote.topic_based.topic import MetadataTopicTruncated, TopicChunk
from strandline.replication.leader_client import LeaderClient
from strandline.replication.remote_metadata.batches import read_chunk
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

READ_BYTES: Final = 1 << 20
_ACKS_ALL: Final = -1
_NO_REPLICA: Final = -1
_ANSWER_SECONDS: Final = 30.0


class MetadataLeaderClient:
    """Requests to the leader, on two connections: a write does not wait behind a read that waits for data."""

    def __init__(self, partition: int, images: Images, *, node_id: BrokerId, listener: str) -> None:
        self._partition, self._images = partition, images
        self._name = TopicPartition(REMOTE_LOG_METADATA_TOPIC, partition)
        name = f"broker-{node_id}-remote-log-metadata-{partition}"
        self._writes = LeaderClient(self._name, images, listener=listener, client_id=f"{name}-producer")
        self._reads = LeaderClient(self._name, images, listener=listener, client_id=f"{name}-consumer")

    async def append(self, batch: bytes) -> Offset:
        """Write one batch with acks=all; the offset of its last record. Raises LeaderNotAvailable."""
        data = [PartitionProduceData(index=self._partition, records=batch)]
        topic = TopicProduceData(name=REMOTE_LOG_METADATA_TOPIC, topic_id=self._topic_id(), partition_data=data)
        request = ProduceRequest(acks=_ACKS_ALL, timeout_ms=int(_ANSWER_SECONDS * 1000), topic_data=[topic])
        answer = await self._writes.ask(ApiKey.PRODUCE, request, within=_ANSWER_SECONDS + 5)
        produced = answer.responses[0].partition_responses[0]
        _check(produced.error_code, produced.error_message)
        offset: Offset = produced.base_offset
        return offset

    async def end_offset(self) -> Offset:
        """The high watermark. Raises LeaderNotAvailable, also while a new leader does not know how far its log is
        committed (KIP-207)."""
        return await self._list_offset(LATEST)

    async def _list_offset(self, timestamp: int) -> Offset:
        wanted = ListOffsetsPartition(partition_index=self._partition, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=_NO_REPLICA,
            topics=[ListOffsetsTopic(name=REMOTE_LOG_METADATA_TOPIC, partitions=[wanted])],
            timeout_ms=int(_ANSWER_SECONDS * 1000),
        )
        answer = await self._writes.ask(ApiKey.LIST_OFFSETS, request, within=_ANSWER_SECONDS)
        found = answer.topics[0].partitions[0]
        _check(found.error_code, None)
        offset: Offset = found.offset
        return offset

    async def read(self, from_offset: Offset, *, wait: float) -> TopicChunk:
        """As `MetadataTopic.read`. Raises LeaderNotAvailable or MetadataTopicTruncated."""
        wanted = FetchPartition(partition=self._partition, fetch_offset=from_offset, partition_max_bytes=READ_BYTES)
        request = FetchRequest(
            max_wait_ms=int(wait * 1000),
            min_bytes=1,
            max_bytes=READ_BYTES,
            topics=[FetchTopic(topic=REMOTE_LOG_METADATA_TOPIC, topic_id=self._topic_id(), partitions=[wanted])],
        )
        answer = await self._reads.ask(ApiKey.FETCH, request, within=wait + _ANSWER_SECONDS)
        _check(answer.error_code, None)
        fetched = answer.responses[0].partitions[0] if answer.responses else None
        if fetched is None:
            return TopicChunk((), from_offset)
        if fetched.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return await self._nearest(from_offset)
        _check(fetched.error_code, None)
        records: bytes = fetched.records or b""
        return await asyncio.to_thread(read_chunk, records, from_offset)

    async def _nearest(self, from_offset: Offset) -> TopicChunk:
        """The records at `from_offset` were deleted, or never written: where to go on."""
        end = await self._list_offset(LATEST)
        if from_offset > end:
            raise MetadataTopicTruncated(f"{self._name} ends at offset {end}, before {from_offset}.")
        return TopicChunk((), await self._list_offset(EARLIEST))

    def _topic_id(self) -> UUID:
        topic = self._images.image.topics.get(REMOTE_LOG_METADATA_TOPIC)
        return ZERO_UUID if topic is None else topic.topic_id

    def give_up(self) -> None:
        """Another broker leads: requests that are under way end with LeaderNotAvailable."""
        self._writes.give_up()
        self._reads.give_up()

    def close(self) -> None:
        """End the connections."""
        self._writes.close()
        self._reads.close()


def _check(error_code: int, message: str | None) -> None:
    if error_code != ErrorCode.NONE:
        name = ErrorCode(error_code).name
        raise LeaderNotAvailable(f"The leader answers {name}" + (f": {message}" if message else "."))
