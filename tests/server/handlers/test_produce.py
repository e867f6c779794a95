"""Produce over the wire: every version, every refusal, pipelining, and answers that wait."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from strandline.records import Record, build_batch
from strandline.wire.api import ApiKey
from strandline.wire.client import Client, ConnectionClosed
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from strandline.wire.registry import decode_response, encode_request
from tests.broker import Broker
from tests.moments import T0
from tests.server.handlers.conftest import create_topic
from tests.waiting import wait_until

BY_NAME = 12


def batch(*values: bytes, timestamp: int = T0, **options: int) -> bytearray:
    records = [Record(i, timestamp, None, value) for i, value in enumerate(values)]
    return build_batch(records, **options)  # type: ignore[arg-type]


def request(topic: str, *parts: tuple[int, bytes | bytearray | None], acks: int = -1) -> ProduceRequest:
    data = [
        PartitionProduceData(index=index, records=None if records is None else bytes(records))
        for index, records in parts
    ]
    return ProduceRequest(acks=acks, timeout_ms=5000, topic_data=[TopicProduceData(name=topic, partition_data=data)])


def produce(client: Client, message: ProduceRequest, *, version: int = BY_NAME) -> list[PartitionProduceResponse]:
    response = client.request(ApiKey.PRODUCE, message, version=version)
    return [row for topic in response.responses for row in topic.partition_responses]


def end_offset(client: Client, topic: str, partition: int = 0) -> int:
    message = ListOffsetsRequest(
        topics=[
            ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=partition, timestamp=-1)])
        ]
    )
    row = client.request(ApiKey.LIST_OFFSETS, message).topics[0].partitions[0]
    assert row.error_code == 0
    offset: int = row.offset
    return offset


def test_every_version_appends(client: Client, topic: str) -> None:
    topic_id = client.request(ApiKey.METADATA, MetadataRequest(topics=[MetadataRequestTopic(name=topic)])).topics[0]
    for offset, version in enumerate(range(3, 14)):
        message = request(topic, (0, batch(b"v")))
        message.topic_data[0].topic_id = topic_id.topic_id
        (row,) = produce(client, message, version=version)
        assert (row.error_code, row.base_offset) == (0, offset), version


@pytest.mark.parametrize("version", [0, 1, 2, 14])
def test_versions_that_are_not_served_close_the_connection(client: Client, version: int) -> None:
    frame = struct.pack(">hhih", ApiKey.PRODUCE, version, 1, -1) + bytes(20)
    with pytest.raises((ConnectionClosed, ConnectionResetError)):
        client.exchange(frame)


def damaged(data: bytearray) -> bytearray:
    data[-1] ^= 1
    return data


REFUSALS: dict[str, tuple[Callable[[], bytes | bytearray | None], ErrorCode]] = {
    "a wrong checksum": (lambda: damaged(batch(b"v")), ErrorCode.CORRUPT_MESSAGE),
    "no records": (lambda: None, ErrorCode.INVALID_RECORD),
    "less than a header": (lambda: batch(b"v")[:50], ErrorCode.INVALID_RECORD),
    "two batches": (lambda: batch(b"v") + batch(b"w"), ErrorCode.INVALID_RECORD),
    "an offset of its own": (lambda: batch(b"v", base_offset=5), ErrorCode.INVALID_RECORD),
    "a batch too large": (lambda: batch(b"v" * 1_100_000), ErrorCode.MESSAGE_TOO_LARGE),
    "a timestamp of tomorrow": (lambda: batch(b"v", timestamp=T0 * 2), ErrorCode.INVALID_TIMESTAMP),
    "a control batch": (lambda: batch(b"v", is_control=True, is_transactional=True), ErrorCode.INVALID_TXN_STATE),
    "a transaction": (
        lambda: batch(b"v", is_transactional=True, producer_id=1, producer_epoch=0, base_sequence=0),
        ErrorCode.INVALID_TXN_STATE,
    ),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_a_refusal_has_kafkas_code_and_a_sentence_and_changes_nothing(client: Client, topic: str, what: str) -> None:
    make, error = REFUSALS[what]
    produce(client, request(topic, (0, batch(b"before"))))
    refused, accepted = produce(client, request(topic, (0, make()), (1, batch(b"beside"))))
    assert refused.error_code == error
    assert refused.error_message
    assert accepted.error_code == 0
    assert (end_offset(client, topic, 0), end_offset(client, topic, 1)) == (1, 1)


@pytest.mark.parametrize("version", [BY_NAME, 13])
def test_a_refusal_names_the_topic_also_if_the_request_has_its_id(client: Client, topic: str, version: int) -> None:
    found = client.request(ApiKey.METADATA, MetadataRequest(topics=[MetadataRequestTopic(name=topic)])).topics[0]
    message = request(topic, (1, None))
    message.topic_data[0].topic_id = found.topic_id
    (row,) = produce(client, message, version=version)
    assert row.error_message == f"The request holds no record batch for {topic}-1."


def test_a_wrong_sequence_is_refused_and_the_right_one_goes_on(client: Client, topic: str) -> None:
    def idempotent(sequence: int, *, epoch: int = 0) -> bytearray:
        return batch(b"v", producer_id=4711, producer_epoch=epoch, base_sequence=sequence)

    assert produce(client, request(topic, (0, idempotent(0))))[0].error_code == 0
    assert produce(client, request(topic, (0, idempotent(5))))[0].error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    again = produce(client, request(topic, (0, idempotent(0))))[0]
    assert (again.error_code, again.base_offset) == (0, 0), "a duplicate gets its first offset"
    assert produce(client, request(topic, (0, idempotent(1))))[0].base_offset == 1
    assert produce(client, request(topic, (0, idempotent(0, epoch=1))))[0].base_offset == 2
    assert produce(client, request(topic, (0, idempotent(2))))[0].error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert end_offset(client, topic) == 3


def test_unknown_topics_and_impossible_acks(client: Client, topic: str) -> None:
    (row,) = produce(client, request("no-such-topic", (0, batch(b"v"))))
    assert row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (row,) = produce(client, request(topic, (99, batch(b"v"))))
    assert row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (row,) = produce(client, request(topic, (0, batch(b"v")), acks=2))
    assert row.error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert end_offset(client, topic) == 0


def test_clients_may_not_write_to_internal_topics(client: Client) -> None:
    (row,) = produce(client, request("__consumer_offsets", (0, batch(b"v"))))
    assert row.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_zstd_needs_version_7(client: Client, topic: str) -> None:
    compressed = batch(b"v" * 100, codec=4)
    (row,) = produce(client, request(topic, (0, compressed)), version=6)
    assert row.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    (row,) = produce(client, request(topic, (0, compressed)), version=7)
    assert row.error_code == 0


def test_compacted_topics_want_keys_and_name_the_records_without(client: Client, new_name: Callable[[], str]) -> None:
    topic = create_topic(client, new_name(), configs={"cleanup.policy": "compact"})
    (row,) = produce(client, request(topic, (0, batch(b"a", b"b"))))
    assert row.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in row.record_errors] == [0, 1]
    assert end_offset(client, topic) == 0


def test_log_append_time_is_told_to_the_producer(client: Client, new_name: Callable[[], str]) -> None:
    topic = create_topic(client, new_name(), configs={"message.timestamp.type": "LogAppendTime"})
    (row,) = produce(client, request(topic, (0, batch(b"a"))))
    assert row.log_append_time_ms > T0 - 10**12
    assert produce(client, request(topic, (0, batch(b"b"))))[0].log_append_time_ms >= row.log_append_time_ms


def test_acks_0_is_not_answered_and_its_failure_closes(client: Client, topic: str) -> None:
    client.send(encode_request(ApiKey.PRODUCE, BY_NAME, 1, "c", request(topic, (0, batch(b"quiet")), acks=0)))
    wait_until(lambda: end_offset(client, topic) == 1, what="the record that was sent with acks=0")
    client.send(encode_request(ApiKey.PRODUCE, BY_NAME, 2, "c", request("no-such-topic", (0, batch(b"v")), acks=0)))
    with pytest.raises((ConnectionClosed, ConnectionResetError)):
        client.receive()


@pytest.mark.parametrize("size", [100, 300_000])
def test_pipelined_requests_are_appended_and_answered_in_order(client: Client, topic: str, size: int) -> None:
    """Five in flight of one idempotent producer, inline and through the writer thread."""
    count = 20
    for number in range(count):
        records = batch(b"v" * size, producer_id=99, producer_epoch=0, base_sequence=number)
        client.send(encode_request(ApiKey.PRODUCE, BY_NAME, number, "c", request(topic, (0, records))))
        if number >= 5:
            check(client.receive(), number - 5)
    for number in range(count - 5, count):
        check(client.receive(), number)


def check(frame: bytes, number: int) -> None:
    correlation_id, response = decode_response(ApiKey.PRODUCE, BY_NAME, memoryview(frame))
    row = response.responses[0].partition_responses[0]
    assert (correlation_id, row.error_code, row.base_offset) == (number, 0, number)


def test_small_and_large_appends_keep_their_order(client: Client, topic: str, broker: Broker) -> None:
    """A small append must not overtake a large one that is still being written."""
    sizes = [300_000, 10, 10, 600_000, 10, 300_000, 10]
    for number, size in enumerate(sizes):
        message = request(topic, (0, batch(b"v" * size)), (1, batch(b"w")))
        client.send(encode_request(ApiKey.PRODUCE, BY_NAME, number, "c", message))
    for number in range(len(sizes)):
        _, response = decode_response(ApiKey.PRODUCE, BY_NAME, memoryview(client.receive()))
        assert [row.base_offset for row in response.responses[0].partition_responses] == [number, number]
