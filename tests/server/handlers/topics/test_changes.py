"""CreateTopics, DeleteTopics, CreatePartitions: each topic has its own answer, and a refusal changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from strandline.model import ZERO_UUID
from strandline.wire.api import API_VERSIONS, ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from strandline.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from strandline.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicState
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker import running_broker
from tests.server.handlers.conftest import create_topic


def versions(api_key: ApiKey) -> range:
    return range(API_VERSIONS[api_key].min, API_VERSIONS[api_key].max + 1)


def create(
    client: Client, *topics: CreatableTopic, version: int = 7, validate: bool = False
) -> list[CreatableTopicResult]:
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate)
    results: list[CreatableTopicResult] = client.request(ApiKey.CREATE_TOPICS, request, version=version).topics
    return results


def wanted(name: str, **how: Any) -> CreatableTopic:
    return CreatableTopic(**{"name": name, "num_partitions": 2, "replication_factor": 1, **how})


def partitions_of(client: Client, name: str) -> int | None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    (topic,) = client.request(ApiKey.METADATA, request).topics
    return None if topic.error_code else len(topic.partitions)


@pytest.mark.parametrize("version", versions(ApiKey.CREATE_TOPICS))
def test_creating_in_every_version(client: Client, new_name: Callable[[], str], version: int) -> None:
    name = new_name()
    (result,) = create(client, wanted(name), version=version)
    assert (result.name, result.error_code, result.error_message) == (name, ErrorCode.NONE, None)
    assert (result.topic_id != ZERO_UUID) == (version >= 7)
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (2, 1)
        assert {config.name for config in result.configs or ()} >= {"cleanup.policy", "retention.ms"}
    assert partitions_of(client, name) == 2


def test_the_configs_of_a_new_topic_say_where_they_come_from(client: Client, new_name: Callable[[], str]) -> None:
    (result,) = create(client, wanted(new_name(), configs=[CreatableTopicConfig(name="retention.ms", value="1000")]))
    found = {config.name: (config.value, config.config_source) for config in result.configs or ()}
    assert found["retention.ms"] == ("1000", 1)
    assert found["cleanup.policy"] == ("delete", 5)


def test_validating_only_creates_nothing(client: Client, new_name: Callable[[], str]) -> None:
    name = new_name()
    (result,) = create(client, wanted(name), validate=True)
    assert result.error_code == ErrorCode.NONE
    assert partitions_of(client, name) is None


def test_defaults_of_the_broker(client: Client, new_name: Callable[[], str]) -> None:
    (result,) = create(client, wanted(new_name(), num_partitions=-1, replication_factor=-1))
    assert (result.error_code, result.num_partitions, result.replication_factor) == (ErrorCode.NONE, 1, 1)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"num_partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"num_partitions": -2}, ErrorCode.INVALID_PARTITIONS),
        ({"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"replication_factor": 2}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"name": "no such/name"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"configs": [CreatableTopicConfig(name="no.such.setting", value="1")]}, ErrorCode.INVALID_CONFIG),
        ({"configs": [CreatableTopicConfig(name="retention.ms", value="soon")]}, ErrorCode.INVALID_CONFIG),
        ({"configs": [CreatableTopicConfig(name="retention.ms", value=None)]}, ErrorCode.INVALID_CONFIG),
        ({"assignments": [CreatableReplicaAssignment(partition_index=0, broker_ids=[1])]}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_topic_that_cannot_be(
    client: Client, new_name: Callable[[], str], how: dict[str, Any], expected: ErrorCode
) -> None:
    topic, good = wanted(new_name()), wanted(new_name())
    for key, value in how.items():
        setattr(topic, key, value)
    refused, made = create(client, topic, good)
    assert (ErrorCode(refused.error_code), refused.topic_id) == (expected, ZERO_UUID)
    assert refused.error_message
    assert made.error_code == ErrorCode.NONE
    assert partitions_of(client, good.name) == 2


def test_a_name_twice_in_one_request(client: Client, new_name: Callable[[], str]) -> None:
    name = new_name()
    results = create(client, wanted(name), wanted(name))
    assert {result.error_code for result in results} == {ErrorCode.INVALID_REQUEST}
    assert partitions_of(client, name) is None


def test_a_topic_that_exists(client: Client, topic: str) -> None:
    (result,) = create(client, wanted(topic))
    assert result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_assignments(client: Client, new_name: Callable[[], str]) -> None:
    def assigned(*rows: tuple[int, list[int]]) -> CreatableTopicResult:
        assignments = [CreatableReplicaAssignment(partition_index=index, broker_ids=ids) for index, ids in rows]
        topic = wanted(new_name(), num_partitions=-1, replication_factor=-1, assignments=assignments)
        return create(client, topic)[0]

    assert assigned((0, [1]), (1, [1])).num_partitions == 2
    assert assigned((0, [2])).error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert assigned((1, [1])).error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert assigned((0, [1]), (0, [1])).error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


# DeleteTopics


def delete(client: Client, *states: DeleteTopicState, version: int = 6) -> list[DeletableTopicResult]:
    request = DeleteTopicsRequest(
        topics=list(states), topic_names=[state.name or "" for state in states], timeout_ms=5000
    )
    results: list[DeletableTopicResult] = client.request(ApiKey.DELETE_TOPICS, request, version=version).responses
    return results


@pytest.mark.parametrize("version", versions(ApiKey.DELETE_TOPICS))
def test_deleting_by_name_in_every_version(client: Client, topic: str, version: int) -> None:
    good, missing = delete(client, DeleteTopicState(name=topic), DeleteTopicState(name="absent"), version=version)
    assert (good.name, good.error_code) == (topic, ErrorCode.NONE)
    assert (missing.name, missing.error_code) == ("absent", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert partitions_of(client, topic) is None


def test_deleting_by_id(client: Client, new_name: Callable[[], str]) -> None:
    name = new_name()
    topic_id = create(client, wanted(name))[0].topic_id
    good, missing = delete(client, DeleteTopicState(topic_id=topic_id), DeleteTopicState(topic_id=UUID(int=9)))
    assert (good.name, good.topic_id, good.error_code) == (name, topic_id, ErrorCode.NONE)
    assert (missing.name, missing.topic_id, missing.error_code) == (None, UUID(int=9), ErrorCode.UNKNOWN_TOPIC_ID)


def test_deletions_that_contradict_themselves(client: Client, topic: str) -> None:
    both = DeleteTopicState(name=topic, topic_id=UUID(int=9))
    twice = DeleteTopicState(name=topic)
    results = delete(client, both, DeleteTopicState(), twice, twice)
    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * 4
    assert partitions_of(client, topic) == 3


def test_a_deleted_topic_can_be_created_again_with_another_id(client: Client, new_name: Callable[[], str]) -> None:
    name = new_name()
    first = create(client, wanted(name))[0].topic_id
    delete(client, DeleteTopicState(name=name))
    second = create(client, wanted(name))[0].topic_id
    assert ZERO_UUID != first != second != ZERO_UUID


@pytest.mark.parametrize(
    ("version", "expected"), [(1, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)]
)
def test_deletion_may_be_disabled(tmp_path: Path, version: int, expected: ErrorCode) -> None:
    with (
        running_broker(tmp_path / "data", {"delete.topic.enable": "false"}) as broker,
        Client.connect("127.0.0.1", broker.port) as client,
    ):
        create_topic(client, "kept")
        (result,) = delete(client, DeleteTopicState(name="kept"), version=version)
        assert result.error_code == expected
        assert partitions_of(client, "kept") == 1


# CreatePartitions


def grow(client: Client, topic: str, count: int, *, version: int = 3, validate: bool = False, **how: Any) -> ErrorCode:
    wish = CreatePartitionsTopic(**{"name": topic, "count": count, "assignments": None, **how})
    request = CreatePartitionsRequest(topics=[wish], timeout_ms=5000, validate_only=validate)
    (result,) = client.request(ApiKey.CREATE_PARTITIONS, request, version=version).results
    assert result.name == topic
    assert (result.error_message is None) == (result.error_code == 0)
    return ErrorCode(result.error_code)


@pytest.mark.parametrize("version", versions(ApiKey.CREATE_PARTITIONS))
def test_adding_partitions_in_every_version(client: Client, topic: str, version: int) -> None:
    assert grow(client, topic, 5, version=version, validate=True) is ErrorCode.NONE
    assert partitions_of(client, topic) == 3
    assert grow(client, topic, 5, version=version) is ErrorCode.NONE
    assert partitions_of(client, topic) == 5


def test_partitions_that_cannot_be_added(client: Client, topic: str) -> None:
    assert grow(client, topic, 3) is ErrorCode.INVALID_PARTITIONS
    assert grow(client, topic, 2) is ErrorCode.INVALID_PARTITIONS
    assert grow(client, "absent", 2) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elsewhere = [CreatePartitionsAssignment(broker_ids=[7])]
    assert grow(client, topic, 4, assignments=elsewhere) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert partitions_of(client, topic) == 3
