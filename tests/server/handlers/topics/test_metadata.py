"""Metadata: all topics, none, by name, by id, created on demand, in every version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from strandline.model import ZERO_UUID
from strandline.wire.api import API_VERSIONS, ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from tests.broker import free_port, running_broker

VERSIONS = range(API_VERSIONS[ApiKey.METADATA].min, API_VERSIONS[ApiKey.METADATA].max + 1)
NO_OPERATIONS = -(1 << 31)


def ask(client: Client, *topics: MetadataRequestTopic, version: int = 13, create: bool = False) -> MetadataResponse:
    request = MetadataRequest(topics=list(topics), allow_auto_topic_creation=create)
    answer = client.request(ApiKey.METADATA, request, version=version)
    assert isinstance(answer, MetadataResponse)
    return answer


def ask_name(client: Client, name: str, *, version: int = 13, create: bool = False) -> MetadataResponseTopic:
    (topic,) = ask(client, MetadataRequestTopic(name=name), version=version, create=create).topics
    return topic


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_in_every_version(client: Client, topic: str, version: int) -> None:
    described = ask_name(client, topic, version=version)
    assert described.error_code == ErrorCode.NONE
    assert described.name == topic
    assert [partition.partition_index for partition in described.partitions] == [0, 1, 2]
    assert {(p.error_code, p.leader_id) for p in described.partitions} == {(0, 1)}
    assert {tuple(p.replica_nodes) for p in described.partitions} == {(1,)}
    assert (described.topic_id != ZERO_UUID) == (version >= 10)
    assert {p.leader_epoch for p in described.partitions} == {0 if version >= 7 else -1}


@pytest.mark.parametrize("version", VERSIONS)
def test_all_topics_and_no_topics(client: Client, topic: str, version: int) -> None:
    everything = client.request(ApiKey.METADATA, MetadataRequest(topics=None if version else []), version=version)
    assert topic in {described.name for described in everything.topics}
    if version:
        assert ask(client, version=version).topics == []
    assert [broker.node_id for broker in everything.brokers] == [1]


def test_the_cluster(client: Client) -> None:
    answer = ask(client)
    assert answer.controller_id == 1
    assert answer.cluster_id
    assert answer.error_code == ErrorCode.NONE


def test_an_unknown_topic_is_not_created_unless_allowed(client: Client, new_name: Callable[[], str]) -> None:
    name = new_name()
    described = ask_name(client, name)
    assert (described.error_code, described.partitions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])
    described = ask_name(client, name, create=True)
    assert (described.error_code, len(described.partitions)) == (ErrorCode.NONE, 1)
    assert described.topic_id == ask_name(client, name).topic_id != ZERO_UUID


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize("name", ["", ".", "a b", "x" * 250, "b\u00e9"])
def test_an_illegal_name(client: Client, name: str, create: bool) -> None:
    described = ask_name(client, name, create=create)
    assert (described.error_code, described.name) == (ErrorCode.INVALID_TOPIC_EXCEPTION, name)


def test_a_topic_asked_for_twice_is_described_once(client: Client, topic: str) -> None:
    answer = ask(client, MetadataRequestTopic(name=topic), MetadataRequestTopic(name=topic))
    assert [described.name for described in answer.topics] == [topic]


def test_by_id(client: Client, topic: str) -> None:
    topic_id = ask_name(client, topic).topic_id
    unknown = UUID(int=77)
    answer = ask(
        client,
        MetadataRequestTopic(topic_id=topic_id, name=None),
        MetadataRequestTopic(topic_id=unknown, name=None),
        version=12,
    )
    assert [(t.error_code, t.name, t.topic_id) for t in answer.topics] == [
        (ErrorCode.NONE, topic, topic_id),
        (ErrorCode.UNKNOWN_TOPIC_ID, None, unknown),
    ]


@pytest.mark.parametrize("version", [10, 11])
def test_by_id_in_a_version_that_cannot(client: Client, topic: str, version: int) -> None:
    answer = ask(client, MetadataRequestTopic(topic_id=UUID(int=77), name=topic), version=version)
    assert [described.error_code for described in answer.topics] == [ErrorCode.INVALID_REQUEST]


def test_authorized_operations_are_told_when_asked_for(client: Client, topic: str) -> None:
    def operations(**flags: bool) -> tuple[int, int]:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], **flags)
        answer = client.request(ApiKey.METADATA, request, version=10)
        return answer.topics[0].topic_authorized_operations, answer.cluster_authorized_operations

    assert operations() == (NO_OPERATIONS, NO_OPERATIONS)
    # These two numbers are Kafka's answers without an authorizer.
    both = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}
    assert operations(**both) == (3576, 8096)
    assert operations() == (NO_OPERATIONS, NO_OPERATIONS)


def test_brokers_are_named_by_the_listener_of_the_request(tmp_path: Path) -> None:
    inside, outside = free_port(), free_port()
    settings = {
        "listeners": f"INSIDE://127.0.0.1:{inside},OUTSIDE://127.0.0.1:{outside}",
        "advertised.listeners": f"INSIDE://127.0.0.1:{inside},OUTSIDE://broker.example:9999",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
    }
    with running_broker(tmp_path / "data", settings, port=inside):
        for port, expected in ((inside, ("127.0.0.1", inside)), (outside, ("broker.example", 9999))):
            with Client.connect("127.0.0.1", port) as client:
                (found,) = ask(client).brokers
                assert (found.host, found.port) == expected


def test_topics_are_not_created_where_the_broker_forbids_it(tmp_path: Path) -> None:
    with (
        running_broker(tmp_path / "data", {"auto.create.topics.enable": "false"}) as broker,
        Client.connect("127.0.0.1", broker.port) as client,
    ):
        assert ask_name(client, "never", create=True).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
