"""InitProducerId and DescribeProducers."""

from __future__ import annotations

from typing import Any

import pytest

from strandline.wire.api import API_VERSIONS, ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.describe_producers import DescribeProducersRequest, PartitionResponse, TopicRequest
from strandline.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.moments import T0
from tests.server.handlers.producing import produce


def init(client: Client, version: int = 5, **how: Any) -> InitProducerIdResponse:
    request = InitProducerIdRequest(**{"transactional_id": None, "transaction_timeout_ms": 1000, **how})
    answer = client.request(ApiKey.INIT_PRODUCER_ID, request, version=version)
    assert isinstance(answer, InitProducerIdResponse)
    return answer


@pytest.mark.parametrize("version", range(API_VERSIONS[ApiKey.INIT_PRODUCER_ID].max + 1))
def test_every_producer_gets_its_own_id(client: Client, version: int) -> None:
    answers = [init(client, version) for _ in range(3)]
    assert [(answer.error_code, answer.producer_epoch) for answer in answers] == [(ErrorCode.NONE, 0)] * 3
    assert len({answer.producer_id for answer in answers}) == 3


def test_ids_go_on_beyond_a_block(client: Client) -> None:
    ids = [init(client).producer_id for _ in range(1100)]
    assert len(set(ids)) == len(ids)
    assert min(ids) >= 0


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"transactional_id": "x", "transaction_timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transactional_id": "x", "transaction_timeout_ms": 900_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transactional_id": "x", "transaction_timeout_ms": 1}, ErrorCode.NOT_COORDINATOR),  # none was asked for
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_requests_that_get_no_id(client: Client, how: dict[str, Any], expected: ErrorCode) -> None:
    answer = init(client, **how)
    assert (ErrorCode(answer.error_code), answer.producer_id) == (expected, -1)


def describe(client: Client, topic: str, partition: int) -> PartitionResponse:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[partition])])
    (answer,) = client.request(ApiKey.DESCRIBE_PRODUCERS, request).topics
    (found,) = answer.partitions
    assert isinstance(found, PartitionResponse)
    return found


def test_producers_of_a_partition(client: Client, topic: str) -> None:
    producer_id = init(client).producer_id
    produce(client, topic, T0, T0 + 1, producer_id=producer_id, producer_epoch=0, base_sequence=0)
    (state,) = describe(client, topic, 0).active_producers
    assert (state.producer_id, state.producer_epoch, state.last_sequence) == (producer_id, 0, 1)
    assert (state.last_timestamp, state.current_txn_start_offset) == (T0 + 1, -1)
    assert describe(client, topic, 1).active_producers == []


def test_producers_of_a_partition_that_is_not_there(client: Client, topic: str) -> None:
    for name, partition in ((topic, 3), ("absent", 0)):
        answer = describe(client, name, partition)
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert answer.error_message
