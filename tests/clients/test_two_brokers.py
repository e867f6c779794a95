"""Two brokers on one PostgreSQL, by unmodified clients: everything works through either of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka.admin
import kafka
import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import KafkaException, NewPartitions, NewTopic

from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from strandline.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.messages.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.clients.drivers import DRIVERS, Driver, Sent, driver_name
from tests.clients.two_brokers import SECONDS, BrokerCluster, consume_as_group, produce, running_cluster
from tests.postgres import start_postgres
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    with running_cluster(tmp_path_factory.mktemp("two"), start_postgres().new_database()) as running:
        yield running


@pytest.fixture
def controller(cluster: BrokerCluster) -> int:
    return cluster.controller()


@pytest.fixture
def other(cluster: BrokerCluster, controller: int) -> int:
    """The broker that is not the controller."""
    return next(node_id for node_id in cluster.brokers if node_id != controller)


def test_both_brokers_name_both_and_the_same_controller(cluster: BrokerCluster, controller: int) -> None:
    for node_id in (1, 2):
        metadata = cluster.admin(node_id).list_topics(timeout=10)
        assert set(metadata.brokers) == {1, 2}
        assert metadata.controller_id == controller


@pytest.mark.parametrize("via", [1, 2])
def test_topics_made_through_either_broker_are_spread_over_both(
    cluster: BrokerCluster, via: int, unique_name: Callable[[], str]
) -> None:
    name = unique_name()
    cluster.create(name, partitions=6, via=via)
    for node_id in (1, 2):
        assert set(cluster.leaders(name, node_id)) == {1, 2}


@pytest.mark.parametrize("via", [1, 2])
@pytest.mark.parametrize("driver", DRIVERS, ids=driver_name)
def test_every_client_writes_and_reads_partitions_on_both_brokers(
    cluster: BrokerCluster, driver: Driver, via: int, unique_name: Callable[[], str]
) -> None:
    name = unique_name()
    cluster.create(name, partitions=2, via=via)
    bootstrap = cluster.brokers[via].bootstrap
    for partition in (0, 1):
        sent = [Sent(f"{partition}-{number}".encode()) for number in range(20)]
        assert driver.produce(bootstrap, name, sent, partition=partition) == list(range(20))
        received = driver.consume(bootstrap, name, 20, partition=partition)
        assert [record.value for record in received] == [record.value for record in sent]


@pytest.mark.parametrize("via", [1, 2])
def test_groups_work_wherever_their_coordinator_is(
    cluster: BrokerCluster, via: int, unique_name: Callable[[], str]
) -> None:
    name = unique_name()
    cluster.create(name, partitions=4, via=via)
    bootstrap = cluster.brokers[via].bootstrap
    values = [f"{number}".encode() for number in range(40)]
    produce(bootstrap, name, values, partitions=4)
    coordinators = set()
    for number in range(8):
        group = f"{name}-{number}"
        received = consume_as_group(bootstrap, group, name, lambda got: len(got) == len(values))
        assert sorted(received) == sorted(values)
        described = cluster.admin(via).describe_consumer_groups([group])[group].result(SECONDS)
        coordinators.add(described.coordinator.id)
    assert coordinators == {1, 2}
    # What was committed is known through the other broker, too: there is nothing left to read but what is new.
    produce(bootstrap, name, [b"new"], partitions=1)
    assert consume_as_group(cluster.brokers[3 - via].bootstrap, f"{name}-0", name, bool) == [b"new"]


def test_both_brokers_list_the_groups_they_coordinate(cluster: BrokerCluster, unique_name: Callable[[], str]) -> None:
    name = unique_name()
    cluster.create(name, via=1)
    produce(cluster.bootstrap, name, [b"x"], partitions=1)
    groups = {f"{name}-{number}" for number in range(8)}
    for group in groups:
        consume_as_group(cluster.bootstrap, group, name, bool)
    listed = cluster.admin(2).list_consumer_groups().result(SECONDS)
    assert groups <= {group.group_id for group in listed.valid}


def test_changes_by_an_administrator_of_the_other_broker(
    cluster: BrokerCluster, other: int, controller: int, unique_name: Callable[[], str]
) -> None:
    name, admin = unique_name(), cluster.admin(other)
    cluster.create(name, partitions=1, via=other)
    with pytest.raises(KafkaException, match="already exists"):
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(SECONDS)
    admin.create_partitions([NewPartitions(name, 3)])[name].result(SECONDS)
    cluster.wait_led(name, 3)
    names: Any = confluent_kafka.admin  # its stubs do not export these
    resource = names.ConfigResource(names.ResourceType.TOPIC, name)
    change = names.ConfigEntry("retention.ms", "123456", incremental_operation=names.AlterConfigOpType.SET)
    resource.incremental_configs = [change]
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(SECONDS)
    assert config(cluster, controller, TOPIC, name, "retention.ms") == "123456"
    admin.delete_topics([name])[name].result(SECONDS)
    wait_until(lambda: all(name not in cluster.topics(node_id) for node_id in (1, 2)), what="the topic to be gone")


def test_an_administrator_with_kafka_python(cluster: BrokerCluster, other: int, unique_name: Callable[[], str]) -> None:
    name = unique_name()
    admin = kafka.KafkaAdminClient(bootstrap_servers=cluster.brokers[other].bootstrap)
    try:
        admin.create_topics({name: {"num_partitions": 2, "replication_factor": 1}})
        # The client asks any of the brokers, and those that did not create the topic know it a moment later.
        wait_until(lambda: name in admin.list_topics(), what="the topic in the client's list")
        admin.delete_topics([name])
    finally:
        admin.close()


def test_a_request_sent_straight_to_the_other_broker_is_passed_on(
    cluster: BrokerCluster, other: int, unique_name: Callable[[], str]
) -> None:
    """As by clients that think any broker will do: Java's do so for settings, for example."""
    name = unique_name()
    request = CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=4, replication_factor=1)])
    with Client.connect("127.0.0.1", cluster.brokers[other].port) as client:
        for version in range(2, 8):
            (created,) = client.request(ApiKey.CREATE_TOPICS, request, version=version).topics
            assert (created.name, created.error_code) == (name, 0)
            if version >= 5:
                assert (created.num_partitions, created.replication_factor) == (4, 1)
                assert created.configs
            # The client that created it finds it at once.
            asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
            (described,) = client.request(ApiKey.METADATA, asked).topics
            assert (described.error_code, len(described.partitions)) == (0, 4)
            delete = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)])
            assert [row.error_code for row in client.request(ApiKey.DELETE_TOPICS, delete).responses] == [0]


def test_a_topic_comes_into_being_where_a_producer_asks_for_it(
    cluster: BrokerCluster, other: int, unique_name: Callable[[], str]
) -> None:
    name = unique_name()
    produce(cluster.brokers[other].bootstrap, name, [b"first"], partitions=1)
    assert consume_as_group(cluster.bootstrap, name, name, bool) == [b"first"]


def test_producer_ids_of_both_brokers_differ(cluster: BrokerCluster) -> None:
    given: list[int] = []
    for node_id in (1, 2):
        with Client.connect("127.0.0.1", cluster.brokers[node_id].port) as client:
            for _ in range(1200):  # more than a block
                answer = client.request(ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest(transactional_id=None))
                assert answer.error_code == 0
                given.append(answer.producer_id)
    assert len(set(given)) == len(given)


@pytest.mark.parametrize("via", [1, 2])
def test_dynamic_settings_reach_both_brokers(cluster: BrokerCluster, via: int) -> None:
    key = "message.max.bytes"
    for node_id in ("", "1", "2"):
        value = str(1_000_000 + via + len(node_id))
        assert alter(cluster, via, (BROKER, node_id, key, value)) == [0]
        for concerned in (1, 2) if node_id == "" else (int(node_id),):
            wait_for_config(cluster, concerned, key, value)
    assert alter(cluster, via, *((BROKER, node_id, key, None) for node_id in ("", "1", "2"))) == [0, 0, 0]


def test_levels_of_loggers_stay_with_their_broker(
    cluster: BrokerCluster, other: int, controller: int, unique_name: Callable[[], str]
) -> None:
    topic, logger = unique_name(), "strandline.log"
    cluster.create(topic, via=other)
    changes = (
        (LOGGER, str(other), logger, "DEBUG"),
        (TOPIC, topic, "retention.ms", "5000"),
        (LOGGER, str(controller), logger, "DEBUG"),
    )
    codes = [ErrorCode(code) for code in alter(cluster, other, *changes)]
    assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    assert config(cluster, other, LOGGER, str(other), logger) == "DEBUG"
    assert config(cluster, controller, LOGGER, str(controller), logger) != "DEBUG"
    assert config(cluster, other, TOPIC, topic, "retention.ms") == "5000"


def test_more_replicas_than_brokers_are_refused_with_a_sentence(
    cluster: BrokerCluster, other: int, unique_name: Callable[[], str]
) -> None:
    name = unique_name()
    with pytest.raises(KafkaException, match=r"cannot have 3 replicas, because only 2 broker\(s\) are registered"):
        cluster.admin(other).create_topics([NewTopic(name, 1, 3)])[name].result(SECONDS)


def test_a_producer_bootstrapped_at_one_broker_learns_of_the_other(
    cluster: BrokerCluster, unique_name: Callable[[], str]
) -> None:
    name = unique_name()
    cluster.create(name, partitions=2, via=1)
    producer = Producer({"bootstrap.servers": cluster.brokers[1].bootstrap})
    assert set(producer.list_topics(name, timeout=10).brokers) == {1, 2}


TOPIC, BROKER, LOGGER = 2, 4, 8


def alter(cluster: BrokerCluster, via: int, *changes: tuple[int, str, str, str | None]) -> list[int]:
    """Set or delete (None) settings of resources, by a request straight to this broker; the error codes."""
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[AlterableConfig(name=key, config_operation=int(value is None), value=value)],
            )
            for kind, name, key, value in changes
        ]
    )
    with Client.connect("127.0.0.1", cluster.brokers[via].port) as client:
        rows = client.request(ApiKey.INCREMENTAL_ALTER_CONFIGS, request).responses
    assert [(row.resource_type, row.resource_name) for row in rows] == [change[:2] for change in changes]
    return [row.error_code for row in rows]


def wait_for_config(cluster: BrokerCluster, node_id: int, key: str, value: str) -> None:
    """Until a broker uses this value itself."""
    wait_until(
        lambda: config(cluster, node_id, BROKER, str(node_id), key) == value, what=f"{key} to reach broker {node_id}"
    )


def config(cluster: BrokerCluster, via: int, kind: int, name: str, key: str) -> str | None:
    """A setting as this broker describes it."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=[key])
    with Client.connect("127.0.0.1", cluster.brokers[via].port) as client:
        (row,) = client.request(ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=[resource])).results
    assert row.error_code == 0
    return next((entry.value for entry in row.configs), None)
