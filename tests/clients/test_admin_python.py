"""Administration with kafka-python (newest versions of the APIs) and aiokafka (old versions of the same APIs)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import aiokafka
import kafka
import kafka.admin
import kafka.errors
import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from tests.broker import Broker, running_broker
from tests.clients.conftest import TopicMaker
from tests.clients.drivers import KafkaPythonDriver, Sent

TOPIC_ALREADY_EXISTS, INVALID_CONFIG = 36, 40


@pytest.fixture
def python_admin(broker: Broker) -> Iterator[Any]:
    with closing(kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as client:
        yield client


@pytest.fixture
async def aio_admin(broker: Broker) -> AsyncIterator[Any]:
    client = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await client.start()
    yield client
    await client.close()


def topic_config(admin: Any, topic: str) -> dict[str, str]:
    resource = kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, topic)
    entries = admin.describe_configs([resource], config_filter="all")["topic"][topic]
    return {name: entry["value"] for name, entry in entries.items()}


def test_what_the_command_line_says_is_a_static_setting(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data", {"num.partitions": "2"}) as broker:
        admin: Any = kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        resource = kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.BROKER, "1")
        entries = admin.describe_configs([resource], config_filter="all")["broker"]["1"]
        admin.close()
    given = {
        "advertised.listeners": f"PLAINTEXT://{broker.bootstrap}",
        "listeners": f"PLAINTEXT://{broker.bootstrap}",
        "log.dirs": f"{tmp_path}/data/logs",
        "num.partitions": "2",
    }
    for name, value in given.items():
        assert (entries[name]["value"], entries[name]["config_source"]) == (value, "STATIC_BROKER_CONFIG")


def test_kafka_python_manages_topics(python_admin: Any, unique_name: Callable[[], str]) -> None:
    name = unique_name()
    wanted = {name: {"num_partitions": 2, "replication_factor": 1, "configs": {"retention.ms": "123456"}}}

    [created] = python_admin.create_topics(wanted)["topics"]
    assert (created["num_partitions"], created["replication_factor"]) == (2, 1)
    assert created["configs"]["retention.ms"]["value"] == "123456"
    assert created["configs"]["retention.ms"]["config_source"] == "DYNAMIC_TOPIC_CONFIG"
    assert created["configs"]["segment.bytes"]["config_source"] == "DEFAULT_CONFIG"

    [described] = python_admin.describe_topics([name])
    assert described["topic_id"] == created["topic_id"]
    assert [(one["partition_index"], one["leader_epoch"]) for one in described["partitions"]] == [(0, 0), (1, 0)]
    paged = python_admin.describe_topic_partitions([name], response_partition_limit=1)
    assert [one["partition_index"] for one in paged["topics"][0]["partitions"]] == [0]
    assert paged["next_cursor"] is not None

    python_admin.create_partitions({name: 4})
    with pytest.raises(kafka.errors.InvalidPartitionsError):
        python_admin.create_partitions({name: 3})
    assert len(python_admin.describe_topics([name])[0]["partitions"]) == 4

    python_admin.delete_topics([name])
    assert name not in python_admin.list_topics()


def test_kafka_python_deletes_a_topic_by_its_id(python_admin: Any, new_topic: TopicMaker) -> None:
    name = new_topic()
    [described] = python_admin.describe_topics([name])
    [deleted] = python_admin.delete_topics([name])["topics"]
    assert deleted["topic_id"] == described["topic_id"]


def test_kafka_python_changes_configs(python_admin: Any, new_topic: TopicMaker) -> None:
    name = new_topic(configs={"retention.ms": "123456"})

    def change(changes: dict[str, Any], **how: Any) -> None:
        resource = kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, name, changes)
        python_admin.alter_configs([resource], **how)

    operation = kafka.admin.AlterConfigOp
    throttled = "leader.replication.throttled.replicas"
    change({"retention.bytes": "77", throttled: (operation.APPEND, "0:1")})
    change({throttled: (operation.APPEND, "1:1")})
    config = topic_config(python_admin, name)
    assert (config["retention.ms"], config["retention.bytes"]) == ("123456", "77")
    assert config[throttled] == "0:1,1:1"

    change({"retention.bytes": "99"}, validate_only=True)
    assert topic_config(python_admin, name)["retention.bytes"] == "77"


def test_kafka_python_asks_for_offsets_and_deletes_records(
    broker: Broker, python_admin: Any, new_topic: TopicMaker
) -> None:
    name = new_topic(configs={"retention.ms": "-1"})  # records of 1970 must not expire meanwhile
    partition = kafka.TopicPartition(name, 0)
    KafkaPythonDriver().produce(broker.bootstrap, name, [Sent(b"x", timestamp=1000 + number) for number in range(5)])

    assert python_admin.delete_records({partition: 2})[partition]["low_watermark"] == 2

    def offset(spec: Any) -> tuple[int, int]:
        answer = python_admin.list_partition_offsets({partition: spec})[partition]
        return answer.offset, answer.leader_epoch

    specs = kafka.admin.OffsetSpec
    assert offset(specs.EARLIEST) == (2, 0)
    assert offset(specs.LATEST) == (5, 0)
    assert offset(specs.MAX_TIMESTAMP) == (4, 0)
    assert offset(specs.EARLIEST_LOCAL) == (2, 0)
    assert offset(specs.LATEST_TIERED)[0] == -1
    with pytest.raises(kafka.errors.KafkaError):
        python_admin.delete_records({partition: 99})


def test_kafka_python_looks_at_the_cluster(broker: Broker, python_admin: Any, new_topic: TopicMaker) -> None:
    name = new_topic(partitions=2)
    KafkaPythonDriver().produce(broker.bootstrap, name, [Sent(b"x" * 500)], partition=1)

    cluster = python_admin.describe_cluster()
    [node] = cluster["brokers"]
    assert f"{node['host']}:{node['port']}" == broker.bootstrap
    assert cluster["controller_id"] == node["broker_id"]

    [answer] = python_admin.describe_log_dirs({name: [0, 1]})
    [log_dir] = [one for one in answer["log_dirs"] if one["topics"]]
    sizes = {one["partition_index"]: one["partition_size"] for one in log_dir["topics"][0]["partitions"]}
    assert sizes[0] == 0
    assert sizes[1] > 500
    if log_dir["log_dir"].startswith("/"):
        assert log_dir["total_bytes"] > log_dir["usable_bytes"] > 0
    else:  # an object store has room for everything
        assert (log_dir["total_bytes"], log_dir["usable_bytes"]) == (-1, -1)


def test_kafka_python_sees_producers(broker: Broker, python_admin: Any, new_topic: TopicMaker) -> None:
    name = new_topic()
    with closing(kafka.KafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=True)) as producer:
        for number in range(3):
            producer.send(name, b"%d" % number, partition=0).get(30)
        partition = kafka.TopicPartition(name, 0)
        [state] = python_admin.describe_producers([partition])[partition].active_producers
        assert (state.last_sequence, state.producer_epoch) == (2, 0)


async def test_aiokafka_manages_topics(aio_admin: Any, unique_name: Callable[[], str]) -> None:
    name = unique_name()
    wanted = [NewTopic(name, 1, 1, topic_configs={"retention.ms": "77000"})]
    assert (await aio_admin.create_topics(wanted)).topic_errors[0][:2] == (name, 0)
    assert (await aio_admin.create_topics(wanted)).topic_errors[0][:2] == (name, TOPIC_ALREADY_EXISTS)
    assert (await aio_admin.create_partitions({name: NewPartitions(3)})).topic_errors[0][1] == 0
    with pytest.raises(aiokafka.errors.InvalidPartitionsError):
        await aio_admin.create_partitions({name: NewPartitions(2)})

    [described] = await aio_admin.describe_topics([name])
    assert [one["partition"] for one in described["partitions"]] == [0, 1, 2]
    assert (await aio_admin.delete_topics([name])).topic_error_codes == [(name, 0)]
    assert name not in await aio_admin.list_topics()


async def test_aiokafka_replaces_configs(aio_admin: Any, new_topic: TopicMaker) -> None:
    """AlterConfigs replaces the whole set of overrides: what a request does not name goes back to the default."""
    name = new_topic(configs={"retention.ms": "77000", "retention.bytes": "99"})

    async def values() -> dict[str, str]:
        names = {"retention.ms": None, "retention.bytes": None}
        [answer] = await aio_admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name, names)])
        return {entry[0]: entry[1] for entry in answer.resources[0][4]}

    async def change(text: str) -> int:
        resource = ConfigResource(ConfigResourceType.TOPIC, name, {"retention.ms": text})
        [answer] = await aio_admin.alter_configs([resource])
        code: int = answer.resources[0][0]
        return code

    assert await values() == {"retention.ms": "77000", "retention.bytes": "99"}
    assert await change("soon") == INVALID_CONFIG
    assert await values() == {"retention.ms": "77000", "retention.bytes": "99"}
    assert await change("88000") == 0
    assert await values() == {"retention.ms": "88000", "retention.bytes": "-1"}


async def test_aiokafka_deletes_records_and_looks_at_the_cluster(
    broker: Broker, aio_admin: Any, new_topic: TopicMaker
) -> None:
    name = new_topic()
    partition = aiokafka.TopicPartition(name, 0)
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for _ in range(5):
            await producer.send_and_wait(name, b"x", partition=0)

    assert await aio_admin.delete_records({partition: RecordsToDelete(before_offset=3)}) == {partition: 3}
    [node] = (await aio_admin.describe_cluster())["brokers"]
    assert f"{node['host']}:{node['port']}" == broker.bootstrap
    assert await aio_admin.find_coordinator("some-group") == node["node_id"]
