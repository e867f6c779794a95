"""Clusters of several broker processes on one PostgreSQL database, and what tests ask of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient

from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from strandline.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.broker import EXTERNAL_BOOTSTRAP, BrokerProcess
from tests.waiting import wait_until

SECONDS = 60.0

# Sessions short enough for a test, and long enough for a busy machine.
QUICK: Mapping[str, str] = {"broker.heartbeat.interval.ms": "500", "broker.session.timeout.ms": "4000"}


@dataclass(slots=True)
class BrokerCluster:
    """Brokers by node id."""

    brokers: dict[int, BrokerProcess]
    admins: dict[int, AdminClient] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    @property
    def running(self) -> list[int]:
        return [node_id for node_id, broker in self.brokers.items() if broker.is_running]

    def connect(self, node_id: int, timeout_s: float = SECONDS) -> Client:
        """A connection to one broker."""
        broker = self.brokers[node_id]
        return Client.connect(broker.host, broker.port, timeout_s=timeout_s)

    def describe(self, node_id: int) -> DescribeClusterResponse:
        """The cluster as one of its brokers sees it, with the fenced ones."""
        with self.connect(node_id) as client:
            answer = client.request(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest(include_fenced_brokers=True))
        assert isinstance(answer, DescribeClusterResponse)
        return answer

    def alive(self, node_id: int) -> set[int]:
        """The brokers that this one takes for alive."""
        return {broker.broker_id for broker in self.describe(node_id).brokers if not broker.is_fenced}

    def controller(self) -> int:
        """The controller, when all running brokers agree on one of them."""

        def agreed() -> int | None:
            named = {self.describe(node_id).controller_id for node_id in self.running}
            return next(iter(named)) if len(named) == 1 and named <= set(self.running) else None

        return wait_until(agreed, within=SECONDS, what="the brokers to agree on a controller")

    def wait_alive(self, *node_ids: int) -> None:
        """Until every running broker takes exactly these for alive."""
        expected = set(node_ids)
        wait_until(
            lambda: all(self.alive(node_id) == expected for node_id in self.running),
            within=SECONDS,
            what=f"brokers {sorted(expected)} to be the ones alive",
        )

    def revive(self) -> None:
        """Have all brokers alive and without crash points, whatever was done to them."""
        for broker in self.brokers.values():
            if broker.environment:
                broker.kill()
                broker.environment = {}
            if not broker.is_running:
                broker.start()
        self.wait_alive(*self.brokers)

    def admin(self, node_id: int) -> AdminClient:
        """An administrator who knows only one of the brokers to begin with."""
        if node_id not in self.admins:
            self.admins[node_id] = AdminClient({"bootstrap.servers": self.brokers[node_id].bootstrap})
        return self.admins[node_id]

    def close_admins(self) -> None:
        """Let them go before the brokers: librdkafka complains of brokers that end."""
        while self.admins:
            with self.admins.popitem()[1]:
                pass

    def create(
        self,
        name: str,
        *,
        partitions: int = 1,
        via: int,
        config: Mapping[str, str] | None = None,
        replicas: int = 1,
    ) -> None:
        """Create a topic and wait until every running broker names leaders for it."""
        error = self.create_straight(name, partitions=partitions, via=via, config=config, replicas=replicas)
        assert error is ErrorCode.NONE, f"{name} with {replicas} replicas: {error.name}"
        self.wait_led(name, partitions)

    def create_straight(
        self,
        name: str,
        *,
        partitions: int = 1,
        via: int,
        config: Mapping[str, str] | None = None,
        replicas: int = 1,
    ) -> ErrorCode:
        """CreateTopics to this broker, whichever is the controller. librdkafka would insist on the one it once knew."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replicas,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in (config or {}).items()],
        )
        with self.connect(via) as client:
            (answer,) = client.request(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=[topic])).topics
        return ErrorCode(answer.error_code)

    def wait_led(self, topic: str, partitions: int) -> None:
        """Until every running broker names a leader for each partition."""
        wait_until(
            lambda: all(all_led(self.leaders(topic, node_id), partitions) for node_id in self.running),
            within=SECONDS,
            what=f"leaders of all partitions of {topic}",
        )

    def topics(self, node_id: int) -> set[str]:
        """The topics that one broker knows."""
        return {str(topic.name) for topic in self._metadata(node_id, None).topics}

    def topic_id(self, topic: str, node_id: int) -> UUID:
        """The id of a topic, as one broker knows it."""
        (found,) = self._metadata(node_id, [MetadataRequestTopic(name=topic)]).topics
        return found.topic_id

    def leaders(self, topic: str, node_id: int) -> list[int]:
        """The leaders of a topic's partitions as one broker knows them; none if it does not know the topic."""
        (found,) = self._metadata(node_id, [MetadataRequestTopic(name=topic)]).topics
        return [row.leader_id for row in sorted(found.partitions, key=lambda row: row.partition_index)]

    def _metadata(self, node_id: int, topics: list[MetadataRequestTopic] | None) -> MetadataResponse:
        """From this broker and no other: librdkafka asks any broker of the cluster, one that is dead or lags, too."""
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        with self.connect(node_id) as client:
            answer = client.request(ApiKey.METADATA, request)
        assert isinstance(answer, MetadataResponse)
        return answer


def all_led(leaders: list[int], partitions: int) -> bool:
    return len(leaders) == partitions and all(leader >= 0 for leader in leaders)


@contextmanager
def running_cluster(
    directory: Path,
    url: str,
    node_ids: tuple[int, ...] = (1, 2),
    settings: Mapping[str, str] | None = None,
    *,
    log_dirs: tuple[str, ...] = ("logs",),
) -> Iterator[BrokerCluster]:
    """Brokers that were started one after the other and are all alive. `log_dirs` are below the data of each."""
    if EXTERNAL_BOOTSTRAP:
        pytest.skip("needs broker processes of its own")
    cluster = BrokerCluster(
        {
            node_id: BrokerProcess(
                directory / f"broker-{node_id}",
                settings={
                    **QUICK,
                    "log.dirs": ",".join(str(directory / f"broker-{node_id}" / name) for name in log_dirs),
                    **(settings or {}),
                    "node.id": str(node_id),
                    "strandline.metadata.url": url,
                },
            )
            for node_id in node_ids
        }
    )
    try:
        for broker in cluster.brokers.values():
            broker.start()
        cluster.wait_alive(*node_ids)
        yield cluster
    finally:
        cluster.close_admins()
        for broker in cluster.brokers.values():
            broker.close()


def produce(bootstrap: str, topic: str, values: list[bytes], *, partitions: int, idempotent: bool = True) -> None:
    """Write the values round the partitions; each must be acknowledged."""
    errors: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            errors.append(error)

    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": idempotent, "delivery.timeout.ms": int(SECONDS * 1000)}
    )
    for number, value in enumerate(values):
        producer.produce(topic, value=value, partition=number % partitions, on_delivery=on_delivery)
    left = producer.flush(SECONDS)
    if errors:
        raise KafkaException(errors[0])
    assert left == 0, f"{left} records were not acknowledged"


def consume_as_group(bootstrap: str, group: str, topic: str, is_enough: Callable[[list[bytes]], bool]) -> list[bytes]:
    """What a member of the group reads until it is enough; it commits and leaves."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 10_000,
        }
    )
    received: list[bytes] = []
    try:
        consumer.subscribe([topic])

        def poll() -> bool:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                received.append(message.value() or b"")
            return is_enough(received)

        wait_until(poll, within=SECONDS, step=0.0, what=f"enough records of {topic}; got {len(received)}")
        if received:
            consumer.commit(asynchronous=False)
        return received
    finally:
        consumer.close()
