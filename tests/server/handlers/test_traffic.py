"""What producers and consumers move is counted by topic, for topics of every kind, and goes with the topic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import httpx
import pytest

from strandline.records import Record, build_batch
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker import BrokerProcess, running_broker
from tests.moments import T0
from tests.server.handlers.conftest import create_topic
from tests.server.handlers.test_fetch import fetch, wanted

KINDS = {"classic": {}, "tiered": {"remote.storage.enable": "true"}, "diskless": {"diskless.enable": "true"}}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("traffic")
    with running_broker(folder / "data", {"remote.log.storage.system.enable": "true"}) as running:
        yield running


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[Client]:
    host, port = broker.bootstrap.rsplit(":", 1)
    with Client.connect(host, int(port)) as connected:
        yield connected


def put(client: Client, topic: str | UUID, value: bytes, count: int = 1) -> tuple[int, int]:
    """One batch of equal records; its size and the error code."""
    batch = bytes(build_batch([Record(i, T0, None, value) for i in range(count)]))
    data = [PartitionProduceData(index=0, records=batch)]
    if isinstance(topic, str):
        request, version = TopicProduceData(name=topic, partition_data=data), 12
    else:
        request, version = TopicProduceData(topic_id=topic, partition_data=data), 13
    answer = client.request(
        ApiKey.PRODUCE, ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[request]), version=version
    )
    return len(batch), answer.responses[0].partition_responses[0].error_code


def traffic(broker: BrokerProcess, topic: str) -> dict[str, Any] | None:
    rows = httpx.get(f"{broker.http}/status").json()["topic_rows"]
    return next((row["traffic"] for row in rows if row["name"] == topic), None)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_topic_is_counted(client: Client, broker: BrokerProcess, kind: str) -> None:
    topic = create_topic(client, f"counted-{kind}", configs={"max.message.bytes": "400000", **KINDS[kind]})
    size, error = put(client, topic, b"x" * 100, count=7)
    assert error == 0
    large, error = put(client, topic, b"y" * 300_000)  # written by a thread
    assert error == 0
    too_large, error = put(client, topic, b"z" * 500_000)
    assert error == ErrorCode.MESSAGE_TOO_LARGE
    (known,) = client.request(
        ApiKey.METADATA, MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), version=12
    ).topics
    by_id, error = put(client, known.topic_id, b"w")
    assert error == 0
    assert fetch(client, topic, wanted(0), wait_ms=5000).responses[0].partitions[0].records
    fetch(client, topic, wanted(0, 1_000_000))  # out of range: the consumer's mistake
    found = traffic(broker, topic)
    assert found == {
        "messages_in": 9,
        "bytes_in": size + large + by_id,
        "bytes_out": size + large + by_id,
        "bytes_rejected": too_large,
        "produce_requests": 4,
        "fetch_requests": 2,
        "produce_failures": 0,
        "fetch_failures": 0,
    }
    all_topics = httpx.get(f"{broker.http}/status").json()["traffic"]
    client.request(ApiKey.DELETE_TOPICS, DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=5000))
    assert traffic(broker, topic) is None
    assert httpx.get(f"{broker.http}/status").json()["traffic"] == all_topics
    create_topic(client, topic, configs=KINDS[kind])
    again = traffic(broker, topic)
    assert again is not None
    assert again["messages_in"] == 0


def test_topics_that_do_not_exist_are_not_counted(client: Client, broker: BrokerProcess) -> None:
    before = httpx.get(f"{broker.http}/status").json()["traffic"]
    assert put(client, "nowhere", b"x")[1] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert fetch(client, "nowhere", wanted(0)).responses[0].partitions[0].error_code
    assert traffic(broker, "nowhere") is None
    assert httpx.get(f"{broker.http}/status").json()["traffic"] == before
