"""ApiVersions, DescribeCluster, DescribeTopicPartitions, DescribeLogDirs, ElectLeaders."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from strandline.wire.api import API_VERSIONS, ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.api_versions import ApiVersionsRequest
from strandline.wire.messages.describe_cluster import DescribeClusterRequest
from strandline.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from strandline.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from strandline.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.broker import Broker
from tests.moments import T0
from tests.server.handlers.conftest import create_topic
from tests.server.handlers.producing import produce


@pytest.mark.parametrize("version", range(5))
def test_the_offer_in_every_version(client: Client, version: int) -> None:
    request = ApiVersionsRequest(client_software_name="some-client", client_software_version="1.2.3")
    answer = client.request(ApiKey.API_VERSIONS, request, version=version)
    assert answer.error_code == ErrorCode.NONE
    offered = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
    telemetry = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)  # offered if somebody wants metrics
    assert offered == {
        key: (versions.min, versions.max) for key, versions in API_VERSIONS.items() if key not in telemetry
    }


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("a b", "1"), ("client", "-1")])
def test_software_with_an_illegal_name(client: Client, name: str, version: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    assert client.request(ApiKey.API_VERSIONS, request).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_cluster(client: Client, broker: Broker, version: int) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True, include_fenced_brokers=version > 1)
    answer = client.request(ApiKey.DESCRIBE_CLUSTER, request, version=version)
    assert (answer.error_code, answer.controller_id, answer.cluster_authorized_operations) == (0, 1, 8096)
    assert answer.cluster_id
    (found,) = answer.brokers
    assert f"{found.host}:{found.port}" == broker.bootstrap
    assert not found.is_fenced


@pytest.mark.parametrize(
    ("kind", "expected"), [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)]
)
def test_endpoints_that_are_no_brokers(client: Client, kind: int, expected: ErrorCode) -> None:
    answer = client.request(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest(endpoint_type=kind))
    assert (ErrorCode(answer.error_code), answer.brokers) == (expected, [])


# DescribeTopicPartitions


def page(
    client: Client, *topics: str, limit: int = 2000, cursor: Cursor | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in topics], response_partition_limit=limit, cursor=cursor
    )
    answer = client.request(ApiKey.DESCRIBE_TOPIC_PARTITIONS, request)
    assert isinstance(answer, DescribeTopicPartitionsResponse)
    return answer


def rows(answer: DescribeTopicPartitionsResponse) -> list[tuple[str | None, list[int]]]:
    return [(topic.name, [p.partition_index for p in topic.partitions]) for topic in answer.topics]


def test_pages_follow_the_cursor(client: Client, new_name: Callable[[], str]) -> None:
    first, second = sorted(create_topic(client, new_name(), partitions=3) for _ in range(2))
    answer = page(client, second, first, limit=2)
    assert rows(answer) == [(first, [0, 1])]
    assert answer.next_cursor == Cursor(topic_name=first, partition_index=2)
    answer = page(client, second, first, limit=2, cursor=answer.next_cursor)
    assert rows(answer) == [(first, [2]), (second, [0])]
    answer = page(client, second, first, limit=2, cursor=answer.next_cursor)
    assert rows(answer) == [(second, [1, 2])]
    assert answer.next_cursor is None


def test_a_page_that_ends_with_a_topic_names_the_next_one(client: Client, new_name: Callable[[], str]) -> None:
    first, second = sorted(create_topic(client, new_name(), partitions=2) for _ in range(2))
    answer = page(client, first, second, limit=2)
    assert (rows(answer), answer.next_cursor) == ([(first, [0, 1])], Cursor(topic_name=second, partition_index=0))


def test_no_names_stand_for_all_topics(client: Client, topic: str) -> None:
    answer = page(client)
    assert topic in {row.name for row in answer.topics}
    (found,) = (row for row in answer.topics if row.name == topic)
    assert found.topic_authorized_operations == 3576
    assert [(p.leader_id, p.replica_nodes, p.isr_nodes, p.offline_replicas) for p in found.partitions] == [
        (1, [1], [1], [])
    ] * 3


def test_topics_that_cannot_be_described(client: Client, topic: str) -> None:
    answer = page(client, "absent", "not a name", topic)
    assert {row.name: row.error_code for row in answer.topics} == {
        "absent": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "not a name": ErrorCode.INVALID_TOPIC_EXCEPTION,
        topic: ErrorCode.NONE,
    }
    refused = page(client, topic, cursor=Cursor(topic_name=topic, partition_index=-1))
    assert [row.error_code for row in refused.topics] == [ErrorCode.INVALID_REQUEST]


# DescribeLogDirs


@pytest.mark.parametrize("version", range(1, 6))
def test_sizes_of_replicas(client: Client, topic: str, version: int) -> None:
    produce(client, topic, T0)
    for topics in (None, [DescribableLogDirTopic(topic=topic, partitions=[0, 1, 9])]):
        answer = client.request(ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=topics), version=version)
        assert [row.error_code for row in answer.results] == [ErrorCode.NONE] * len(answer.results)
        (directory,) = [row for row in answer.results if any(found.name == topic for found in row.topics)]
        is_local = directory.log_dir.startswith("/")
        found = {row.name: {p.partition_index: p for p in row.partitions} for row in directory.topics}
        assert found[topic][0].partition_size > 61
        assert found[topic][1].partition_size == 0
        assert (topics is None) == (2 in found[topic])
        assert (directory.total_bytes > directory.usable_bytes > 0) == (version >= 4 and is_local)


# ElectLeaders


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_election_that_is_not_needed(client: Client, topic: str, version: int) -> None:
    request = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic=topic, partitions=[0, 7])])
    answer = client.request(ApiKey.ELECT_LEADERS, request, version=version)
    (result,) = answer.replica_election_results
    assert (answer.error_code, result.topic) == (ErrorCode.NONE, topic)
    assert [(row.partition_id, row.error_code) for row in result.partition_result] == [
        (0, ErrorCode.ELECTION_NOT_NEEDED),
        (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_elections_of_all_partitions_answer_for_those_that_had_one(client: Client, topic: str) -> None:
    for kind in (0, 1):
        answer = client.request(ApiKey.ELECT_LEADERS, ElectLeadersRequest(election_type=kind, topic_partitions=None))
        assert (answer.error_code, answer.replica_election_results) == (ErrorCode.NONE, [])


def test_an_election_of_an_unknown_type(client: Client, topic: str) -> None:
    wish = [TopicPartitions(topic=topic, partitions=[0])]
    answer = client.request(ApiKey.ELECT_LEADERS, ElectLeadersRequest(election_type=5, topic_partitions=wish))
    assert answer.error_code == ErrorCode.INVALID_REQUEST
