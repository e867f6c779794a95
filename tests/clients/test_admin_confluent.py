"""Administration with confluent-kafka: topics, partitions, configs, records, cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

import confluent_kafka.admin
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.broker import Broker
from tests.clients.conftest import TopicMaker, has_leaders
from tests.clients.drivers import ConfluentDriver, Sent
from tests.waiting import wait_until

SECONDS = 30.0
admin_names: Any = confluent_kafka.admin


def config_of(admin: AdminClient, kind: str, name: str) -> Mapping[str, Any]:
    resource = admin_names.ConfigResource(kind, name)
    answer: Mapping[str, Any] = admin.describe_configs([resource])[resource].result(SECONDS)
    return answer


def alter(admin: AdminClient, kind: str, name: str, *changes: tuple[str, str | None, str]) -> None:
    """Apply (setting, value, operation) changes in one incremental request."""
    entries = [
        admin_names.ConfigEntry(key, value, incremental_operation=admin_names.AlterConfigOpType[operation])
        for key, value, operation in changes
    ]
    resource = admin_names.ConfigResource(kind, name, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(SECONDS)


def error_code(failure: pytest.ExceptionInfo[KafkaException]) -> int:
    code: int = failure.value.args[0].code()
    return code


def create(admin: AdminClient, name: str, *, validate_only: bool = False, **how: Any) -> None:
    admin.create_topics([NewTopic(name, **how)], validate_only=validate_only)[name].result(SECONDS)


def test_topics_are_created_described_and_deleted(admin: AdminClient, unique_name: Callable[[], str]) -> None:
    name = unique_name()
    create(admin, name, num_partitions=3, replication_factor=1, config={"retention.ms": "123456"})
    wait_until(lambda: has_leaders(admin, name, 3), what="leaders")

    described = admin.describe_topics(confluent_kafka.TopicCollection([name]))[name].result(SECONDS)
    assert described.name == name
    assert not described.is_internal
    assert str(described.topic_id) != "AAAAAAAAAAAAAAAAAAAAAA"
    assert [(one.id, len(one.replicas), len(one.isr)) for one in described.partitions] == [
        (0, 1, 1),
        (1, 1, 1),
        (2, 1, 1),
    ]

    admin.delete_topics([name])[name].result(SECONDS)
    wait_until(lambda: name not in admin.list_topics(timeout=SECONDS).topics, what="the topic to be gone")


def test_a_topic_is_created_with_an_assignment(admin: AdminClient, unique_name: Callable[[], str]) -> None:
    [node] = admin.describe_cluster().result(SECONDS).nodes
    name = unique_name()
    create(admin, name, num_partitions=2, replica_assignment=[[node.id], [node.id]])
    wait_until(lambda: has_leaders(admin, name, 2), what="leaders")


def test_defaults_of_the_broker_apply(admin: AdminClient, unique_name: Callable[[], str]) -> None:
    name = unique_name()
    create(admin, name, num_partitions=-1, replication_factor=-1)
    wait_until(lambda: has_leaders(admin, name, 1), what="leaders")


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"num_partitions": 0, "replication_factor": 1}, KafkaError.INVALID_PARTITIONS),
        ({"num_partitions": 1, "replication_factor": 2}, KafkaError.INVALID_REPLICATION_FACTOR),
        ({"num_partitions": 1, "config": {"no.such.setting": "1"}}, KafkaError.INVALID_CONFIG),
        ({"num_partitions": 1, "config": {"retention.ms": "soon"}}, KafkaError.INVALID_CONFIG),
        ({"num_partitions": 1, "config": {"cleanup.policy": "shred"}}, KafkaError.INVALID_CONFIG),
        ({"num_partitions": 1, "replica_assignment": [[77]]}, KafkaError.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_a_refused_topic_is_not_created(
    admin: AdminClient, unique_name: Callable[[], str], how: dict[str, Any], code: int
) -> None:
    name = unique_name()
    with pytest.raises(KafkaException) as failure:
        create(admin, name, **how)
    assert error_code(failure) == code
    assert failure.value.args[0].str()
    assert name not in admin.list_topics(timeout=SECONDS).topics


@pytest.mark.parametrize("name", ["no spaces", "..", "x" * 250, "no/slash"])
def test_bad_topic_names_are_refused(admin: AdminClient, name: str) -> None:
    with pytest.raises(KafkaException) as failure:
        create(admin, name, num_partitions=1, replication_factor=1)
    assert error_code(failure) == KafkaError.TOPIC_EXCEPTION


def test_a_topic_exists_only_once(admin: AdminClient, new_topic: TopicMaker) -> None:
    name = new_topic()
    with pytest.raises(KafkaException) as failure:
        create(admin, name, num_partitions=1, replication_factor=1)
    assert error_code(failure) == KafkaError.TOPIC_ALREADY_EXISTS


def test_validate_only_creates_nothing(admin: AdminClient, unique_name: Callable[[], str]) -> None:
    name = unique_name()
    create(admin, name, num_partitions=2, replication_factor=1, validate_only=True)
    assert name not in admin.list_topics(timeout=SECONDS).topics


def test_an_unknown_topic_cannot_be_deleted(admin: AdminClient, unique_name: Callable[[], str]) -> None:
    name = unique_name()
    with pytest.raises(KafkaException) as failure:
        admin.delete_topics([name])[name].result(SECONDS)
    assert error_code(failure) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_partitions_are_added_never_removed(broker: Broker, admin: AdminClient, new_topic: TopicMaker) -> None:
    name = new_topic(partitions=2)
    ConfluentDriver().produce(broker.bootstrap, name, [Sent(b"kept")], partition=1)
    admin.create_partitions([NewPartitions(name, 5)], validate_only=True)[name].result(SECONDS)
    assert has_leaders(admin, name, 2)

    admin.create_partitions([NewPartitions(name, 5)])[name].result(SECONDS)
    wait_until(lambda: has_leaders(admin, name, 5), what="new partitions")
    assert ConfluentDriver().consume(broker.bootstrap, name, 1, partition=1)[0].value == b"kept"
    assert ConfluentDriver().produce(broker.bootstrap, name, [Sent(b"new")], partition=4) == [0]

    for count in (5, 3):
        with pytest.raises(KafkaException) as failure:
            admin.create_partitions([NewPartitions(name, count)])[name].result(SECONDS)
        assert error_code(failure) == KafkaError.INVALID_PARTITIONS


def test_topic_configs_name_their_source(admin: AdminClient, new_topic: TopicMaker) -> None:
    name = new_topic(configs={"retention.bytes": "123456"})
    config = config_of(admin, "topic", name)
    source = admin_names.ConfigSource

    changed, untouched = config["retention.bytes"], config["segment.bytes"]
    assert (changed.value, changed.source) == ("123456", source.DYNAMIC_TOPIC_CONFIG.value)
    assert (untouched.value, untouched.source) == ("1073741824", source.DEFAULT_CONFIG.value)
    assert untouched.is_default
    assert not changed.is_default
    assert [entry.value for entry in changed.synonyms.values()] == ["123456", "-1"]
    assert set(changed.synonyms) == {"retention.bytes", "log.retention.bytes"}


def test_topic_configs_change_one_by_one(admin: AdminClient, new_topic: TopicMaker) -> None:
    throttled = "leader.replication.throttled.replicas"
    name = new_topic(configs={"retention.ms": "123456", throttled: "0:1"})
    alter(admin, "topic", name, ("retention.bytes", "1000000", "SET"), (throttled, "1:1", "APPEND"))
    config = config_of(admin, "topic", name)
    assert config["retention.ms"].value == "123456"
    assert config["retention.bytes"].value == "1000000"
    assert config[throttled].value == "0:1,1:1"

    alter(admin, "topic", name, ("retention.ms", None, "DELETE"), (throttled, "0:1", "SUBTRACT"))
    config = config_of(admin, "topic", name)
    assert (config["retention.ms"].value, config["retention.ms"].is_default) == ("604800000", True)
    assert config[throttled].value == "1:1"


@pytest.mark.parametrize(
    "change",
    [
        ("no.such.setting", "1", "SET"),
        ("retention.ms", "soon", "SET"),
        ("segment.bytes", "10", "SET"),
        ("retention.ms", "1", "APPEND"),
    ],
)
def test_a_refused_config_changes_nothing(
    admin: AdminClient, new_topic: TopicMaker, change: tuple[str, str, str]
) -> None:
    """In another system one bad config request kept a lock until the restart."""
    name = new_topic(configs={"retention.ms": "123456"})
    with pytest.raises(KafkaException) as failure:
        alter(admin, "topic", name, ("retention.bytes", "77", "SET"), change)
    assert error_code(failure) == KafkaError.INVALID_CONFIG
    config = config_of(admin, "topic", name)
    assert (config["retention.ms"].value, config["retention.bytes"].value) == ("123456", "-1")

    alter(admin, "topic", name, ("retention.bytes", "77", "SET"))
    assert config_of(admin, "topic", name)["retention.bytes"].value == "77"


def test_configs_of_an_unknown_topic(admin: AdminClient, unique_name: Callable[[], str]) -> None:
    with pytest.raises(KafkaException) as failure:
        config_of(admin, "topic", unique_name())
    assert error_code(failure) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_a_changed_limit_is_obeyed_at_once(broker: Broker, admin: AdminClient, new_topic: TopicMaker) -> None:
    name = new_topic()
    alter(admin, "topic", name, ("max.message.bytes", "1000", "SET"))
    with pytest.raises(KafkaException) as failure:
        ConfluentDriver().produce(broker.bootstrap, name, [Sent(b"x" * 2000)])
    assert error_code(failure) == KafkaError.MSG_SIZE_TOO_LARGE
    alter(admin, "topic", name, ("max.message.bytes", "3000", "SET"))
    assert ConfluentDriver().produce(broker.bootstrap, name, [Sent(b"x" * 2000)]) == [0]


def test_broker_configs_change_while_it_runs(admin: AdminClient, new_topic: TopicMaker) -> None:
    [node] = admin.describe_cluster().result(SECONDS).nodes
    name = str(node.id)
    assert config_of(admin, "broker", name)["log.retention.ms"].is_default
    try:
        alter(admin, "broker", name, ("log.retention.ms", "7654321", "SET"))
        wait_until(
            lambda: config_of(admin, "broker", name)["log.retention.ms"].value == "7654321", what="the new value"
        )
        inherited = config_of(admin, "topic", new_topic())["retention.ms"]
        assert inherited.value == "7654321"
        assert inherited.source == admin_names.ConfigSource.DYNAMIC_BROKER_CONFIG.value
    finally:
        alter(admin, "broker", name, ("log.retention.ms", None, "DELETE"))
    topic = new_topic()
    wait_until(lambda: config_of(admin, "topic", topic)["retention.ms"].value == "604800000", what="the default")


def test_a_read_only_broker_config_is_refused(admin: AdminClient) -> None:
    [node] = admin.describe_cluster().result(SECONDS).nodes
    assert config_of(admin, "broker", str(node.id))["node.id"].is_read_only
    with pytest.raises(KafkaException) as failure:
        alter(admin, "broker", str(node.id), ("node.id", "7", "SET"))
    assert error_code(failure) == KafkaError.INVALID_REQUEST


def test_records_are_deleted_up_to_an_offset(broker: Broker, admin: AdminClient, new_topic: TopicMaker) -> None:
    name = new_topic()
    ConfluentDriver().produce(broker.bootstrap, name, [Sent(b"%d" % number) for number in range(10)])

    def delete_before(offset: int) -> int:
        partition = TopicPartition(name, 0, offset)
        low: int = admin.delete_records([partition])[partition].result(SECONDS).low_watermark
        return low

    assert delete_before(4) == 4
    with closing(Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused"})) as consumer:
        assert consumer.get_watermark_offsets(TopicPartition(name, 0), timeout=SECONDS) == (4, 10)
        assert ConfluentDriver().consume(broker.bootstrap, name, 6, offset=4)[0].value == b"4"
        with pytest.raises(KafkaException) as failure:
            delete_before(11)
        assert error_code(failure) == KafkaError.OFFSET_OUT_OF_RANGE
        assert delete_before(2) == 4
        assert delete_before(confluent_kafka.OFFSET_END) == 10
        assert consumer.get_watermark_offsets(TopicPartition(name, 0), timeout=SECONDS) == (10, 10)
    assert ConfluentDriver().produce(broker.bootstrap, name, [Sent(b"next")]) == [10]


def test_records_of_a_compacted_topic_cannot_be_deleted(
    broker: Broker, admin: AdminClient, new_topic: TopicMaker
) -> None:
    name = new_topic(configs={"cleanup.policy": "compact"})
    ConfluentDriver().produce(broker.bootstrap, name, [Sent(b"value", b"key")])
    partition = TopicPartition(name, 0, 1)
    with pytest.raises(KafkaException) as failure:
        admin.delete_records([partition])[partition].result(SECONDS)
    assert error_code(failure) == KafkaError.POLICY_VIOLATION


def test_a_compacted_topic_wants_keys(broker: Broker, new_topic: TopicMaker) -> None:
    name = new_topic(configs={"cleanup.policy": "compact"})
    with pytest.raises(KafkaException) as failure:
        ConfluentDriver().produce(broker.bootstrap, name, [Sent(b"value without key")])
    assert error_code(failure) == KafkaError.INVALID_RECORD


def test_the_cluster_describes_itself(broker: Broker, admin: AdminClient) -> None:
    cluster = admin.describe_cluster(include_authorized_operations=True).result(SECONDS)
    [node] = cluster.nodes
    assert f"{node.host}:{node.port}" == broker.bootstrap
    assert cluster.cluster_id == admin.list_topics(timeout=SECONDS).cluster_id
    assert cluster.controller.id == node.id


def test_no_leader_needs_to_be_elected(admin: AdminClient, new_topic: TopicMaker) -> None:
    partition = TopicPartition(new_topic(), 0)
    answer = admin.elect_leaders(confluent_kafka.ElectionType.PREFERRED, [partition]).result(SECONDS)
    assert answer[partition].code() == KafkaError.ELECTION_NOT_NEEDED
