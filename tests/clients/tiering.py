"""Tiered topics of a real broker, for tests with real clients: small segments, short pauses, a look into the store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import confluent_kafka.admin
from confluent_kafka import IsolationLevel, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.broker import BrokerProcess
from tests.clients.drivers import ConfluentDriver, Received, Sent
from tests.waiting import wait_until

SECONDS = 30.0
kafka_admin: Any = confluent_kafka.admin  # its stubs leave most of it out
QUICK = {
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "100",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
    "log.retention.check.interval.ms": "100",
    "log.initial.task.delay.ms": "0",
}
# Two batches of `produce` fill a segment; whatever was copied may leave the disk.
SMALL = {"internal.segment.bytes": "21000", "local.retention.bytes": "1"}
TIERED = {"remote.storage.enable": "true", **SMALL}


def create(admin: AdminClient, name: str, configs: Mapping[str, str] = TIERED, *, partitions: int = 1) -> str:
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(configs))
    admin.create_topics([topic])[name].result(SECONDS)
    return name


def alter(admin: AdminClient, topic: str, values: Mapping[str, str]) -> None:
    """Set some settings of a topic and leave the others. Raises KafkaException."""
    entries = [
        kafka_admin.ConfigEntry(name, value, incremental_operation=kafka_admin.AlterConfigOpType.SET)
        for name, value in values.items()
    ]
    resource = kafka_admin.ConfigResource(kafka_admin.ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    untyped: Any = admin
    untyped.incremental_alter_configs([resource])[resource].result(SECONDS)


def numbered(first: int, count: int, *, start_ms: int | None = None) -> list[Sent]:
    """Records of 1000 bytes that say their number; one per millisecond if there is a start."""
    return [
        Sent(b"%08d " % number + b"x" * 991, timestamp=None if start_ms is None else start_ms + number)
        for number in range(first, first + count)
    ]


def produce(broker: BrokerProcess, topic: str, records: list[Sent], *, partition: int = 0) -> list[int]:
    """Write records, ten to a batch; the offsets that they got."""
    offsets: list[int] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        offsets.append(message.offset() or 0)

    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "linger.ms": 1000})
    for begin in range(0, len(records), 10):
        for record in records[begin : begin + 10]:
            producer.produce(
                topic, record.value, partition=partition, timestamp=record.timestamp or 0, on_delivery=delivered
            )
        assert producer.flush(SECONDS) == 0
    return offsets


def read(
    broker: BrokerProcess,
    topic: str,
    count: int,
    *,
    offset: int = 0,
    partition: int = 0,
    isolation: str = "read_uncommitted",
) -> list[Received]:
    return ConfluentDriver().consume(
        broker.bootstrap, topic, count, partition=partition, offset=offset, isolation=isolation
    )


def values(records: list[Received]) -> list[int]:
    """The numbers of `numbered` records."""
    return [int((record.value or b"").split()[0]) for record in records]


def offset_of(admin: AdminClient, topic: str, spec: Any, partition: int = 0) -> int:
    """What ListOffsets answers."""
    key = TopicPartition(topic, partition)
    untyped: Any = admin
    answer = untyped.list_offsets({key: spec}, isolation_level=IsolationLevel.READ_UNCOMMITTED)
    return int(answer[key].result(SECONDS).offset)


def earliest(admin: AdminClient, topic: str, partition: int = 0) -> int:
    return offset_of(admin, topic, kafka_admin.OffsetSpec.earliest(), partition)


def remote_logs(broker: BrokerProcess, topic: str) -> list[Path]:
    """The segments of a topic in the store, oldest first."""
    return sorted((broker.data_dir / "remote").glob(f"{topic}-*/*.log"))


def remote_files(broker: BrokerProcess, topic: str) -> list[Path]:
    """Everything that the store has of a topic."""
    found = os.walk(broker.data_dir / "remote")  # which does not mind that directories go meanwhile
    return [Path(directory, name) for directory, _, names in found if topic in directory for name in names]


def local_logs(broker: BrokerProcess, topic: str, partition: int = 0) -> list[Path]:
    """The segments on the broker's disk, oldest first."""
    return sorted((broker.data_dir / "logs" / f"{topic}-{partition}").glob("*.log"))


def first_local_offset(broker: BrokerProcess, topic: str, partition: int = 0) -> int:
    """The first offset on the broker's disk, or 0 if there is none."""
    return min((int(path.stem) for path in local_logs(broker, topic, partition)), default=0)


def wait_tiered(broker: BrokerProcess, topic: str, partition: int = 0) -> int:
    """Wait until all but the active segment are in remote storage alone; the first offset that is left."""

    def only_active() -> bool:
        return len(local_logs(broker, topic, partition)) == 1 and first_local_offset(broker, topic, partition) > 0

    wait_until(only_active, within=SECONDS, what=f"{topic}-{partition} to leave the disk")
    return first_local_offset(broker, topic, partition)
