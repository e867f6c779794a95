"""Puts records into a topic through the wire, for tests that need some."""

from __future__ import annotations

from typing import Any

from strandline.records import Record, build_batch
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def produce(client: Client, topic: str, *timestamps: int, partition: int = 0, **batch: Any) -> int:
    """One batch with a record per timestamp; its first offset."""
    records = [Record(i, timestamp, None, b"value %d" % i) for i, timestamp in enumerate(timestamps)]
    data = PartitionProduceData(index=partition, records=bytes(build_batch(records, **batch)))
    request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[TopicProduceData(name=topic, partition_data=[data])])
    answer = client.request(ApiKey.PRODUCE, request, version=12).responses[0].partition_responses[0]
    assert ErrorCode(answer.error_code) is ErrorCode.NONE, answer.error_message
    offset: int = answer.base_offset
    return offset
