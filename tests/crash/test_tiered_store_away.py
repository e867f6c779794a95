"""The storage for segments, a real S3 server, is away for a while: only what needs it waits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.admin.commands.conftest import Command, command
from tests.broker import BrokerProcess, running_broker
from tests.clients.tiering import (
    QUICK,
    SECONDS,
    create,
    earliest,
    first_local_offset,
    numbered,
    produce,
    read,
    values,
    wait_tiered,
)
from tests.link import Link
from tests.s3 import s3, s3_link, s3_url
from tests.waiting import wait_until

__all__ = ["command", "s3", "s3_link", "s3_url"]

TOPIC = "numbers"
COUNT = 100

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def broker(tmp_path: Path, s3_link: Link, s3_url: str) -> Iterator[BrokerProcess]:
    """A broker whose only way to the storage is the link, and a topic that has left the disk."""
    storage = {
        "rsm.config.url": s3_url,
        "rsm.config.inkless.storage.s3.endpoint.url": f"http://127.0.0.1:{s3_link.port}",
        "rsm.config.inkless.storage.s3.region": "us-east-1",
        "rsm.config.inkless.storage.aws.access.key.id": "test",
        "rsm.config.inkless.storage.aws.secret.access.key": "test-secret",
        "rsm.config.inkless.storage.s3.api.call.timeout": "2000",
        "rsm.config.inkless.storage.s3.api.call.attempt.timeout": "1000",
        "remote.log.manager.task.retry.backoff.max.ms": "500",
    }
    with running_broker(tmp_path / "data", {**QUICK, **storage}) as running:
        create(AdminClient({"bootstrap.servers": running.bootstrap}), TOPIC)
        produce(running, TOPIC, numbered(0, COUNT))
        wait_tiered(running, TOPIC)
        yield running


def tiers(broker: BrokerProcess, command: Command) -> dict[str, object]:
    (partition,) = command("topics", "tiers", TOPIC, "--json", "-b", broker.bootstrap).json["partitions"]
    assert isinstance(partition, dict)
    return partition


def test_only_remote_reads_and_copies_wait_for_a_storage_that_is_away(
    broker: BrokerProcess, s3_link: Link, command: Command
) -> None:
    local = first_local_offset(broker, TOPIC)
    s3_link.go_down()
    assert produce(broker, TOPIC, numbered(COUNT, COUNT)) == list(range(COUNT, 2 * COUNT))
    assert values(read(broker, TOPIC, 2 * COUNT - local, offset=local)) == list(range(local, 2 * COUNT))
    wait_until(lambda: tiers(broker, command)["last_error"], "the command to say why nothing is copied")
    shown = command("topics", "tiers", TOPIC, "-b", broker.bootstrap).out
    assert shown.count("Cannot write object") <= 1, "the error is shown once"
    assert ".." not in shown
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    assert [message.value() for message in consumer.consume(1, timeout=3) if message.error() is None] == []
    s3_link.come_back()
    assert [int((m.value() or b"").split()[0]) for m in consumer.consume(1, timeout=SECONDS)] == [0]
    consumer.close()
    assert values(read(broker, TOPIC, 2 * COUNT)) == list(range(2 * COUNT))
    wait_until(lambda: first_local_offset(broker, TOPIC) > COUNT, "copies to go on")
    wait_until(lambda: tiers(broker, command)["last_error"] is None, "the command to have nothing to complain about")
    assert values(read(broker, TOPIC, 2 * COUNT)) == list(range(2 * COUNT))


def test_a_broker_starts_and_serves_what_is_local_while_the_storage_is_away(
    broker: BrokerProcess, s3_link: Link
) -> None:
    local = first_local_offset(broker, TOPIC)
    s3_link.go_down()
    broker.restart()
    assert earliest(AdminClient({"bootstrap.servers": broker.bootstrap}), TOPIC) == 0
    assert values(read(broker, TOPIC, COUNT - local, offset=local)) == list(range(local, COUNT))
    s3_link.come_back()
    assert values(read(broker, TOPIC, COUNT)) == list(range(COUNT))
