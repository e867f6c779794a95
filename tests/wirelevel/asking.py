"""Questions about one partition in single requests of the newest version that fits, and what a broker answers."""

from __future__ import annotations

from typing import Any, NamedTuple

from strandline.records import iter_headers, read_records
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker import BrokerProcess

FETCH_VERSION, PRODUCE_VERSION = 12, 9  # the last ones with topic names and with the id of a follower in the request
LIMIT = 50_000_000


class Asked(NamedTuple):
    """An answer about one partition."""

    error: int
    offset: int
    other: int = -1
    """The timestamp that ListOffsets found, or the log start of Produce."""


def client_of(broker: BrokerProcess) -> Client:
    return Client.connect("127.0.0.1", broker.port)


def ask_to_produce(client: Client, topic: str, records: bytes, *, partition: int = 0, acks: int = -1) -> Asked:
    """The base offset."""
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=records)])
    request = ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[data])
    answer = client.request(ApiKey.PRODUCE, request, version=PRODUCE_VERSION).responses[0].partition_responses[0]
    return Asked(answer.error_code, answer.base_offset, answer.log_start_offset)


def fetch_request(
    topic: str,
    offset: int,
    *,
    partition: int = 0,
    wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = LIMIT,
    isolation: int = 0,
    replica_id: int = -1,
    epoch: int = -1,
    last_epoch: int = -1,
) -> FetchRequest:
    """Without a session."""
    entry = FetchPartition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=max_bytes,
        current_leader_epoch=epoch,
        last_fetched_epoch=last_epoch,
    )
    return FetchRequest(
        replica_id=replica_id,
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation,
        topics=[FetchTopic(topic=topic, partitions=[entry])],
    )


def ask_to_fetch(client: Client, topic: str, offset: int, **how: Any) -> PartitionData:
    answer = client.request(ApiKey.FETCH, fetch_request(topic, offset, **how), version=FETCH_VERSION)
    assert answer.error_code == 0
    row: PartitionData = answer.responses[0].partitions[0]
    return row


def offsets_in(row: PartitionData) -> list[int]:
    """The offsets of the records of an answer."""
    data = row.records or b""
    return [
        record.offset
        for position, header in iter_headers(data)
        for record in read_records(data[position : position + header.size])
    ]


def ask_for_offset(client: Client, topic: str, timestamp: int, *, partition: int = 0, isolation: int = 0) -> Asked:
    """ListOffsets."""
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[ListOffsetsTopic(name=topic, partitions=[wanted])],
        timeout_ms=10_000,
    )
    answer = client.request(ApiKey.LIST_OFFSETS, request).topics[0].partitions[0]
    return Asked(answer.error_code, answer.offset, answer.timestamp)


def ask_for_end_of_epoch(client: Client, topic: str, epoch: int, *, partition: int = 0) -> tuple[int, int, int]:
    """OffsetForLeaderEpoch: error, epoch, end."""
    wanted = OffsetForLeaderPartition(partition=partition, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[wanted])]
    )
    answer = client.request(ApiKey.OFFSET_FOR_LEADER_EPOCH, request).topics[0].partitions[0]
    return answer.error_code, answer.leader_epoch, answer.end_offset


def ask_to_delete(client: Client, topic: str, before: int, *, partition: int = 0) -> Asked:
    """DeleteRecords."""
    wanted = DeleteRecordsPartition(partition_index=partition, offset=before)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[wanted])], timeout_ms=10_000)
    answer = client.request(ApiKey.DELETE_RECORDS, request).topics[0].partitions[0]
    return Asked(answer.error_code, answer.low_watermark)
