"""Brokers that start with diskless topics, and object stores that are not theirs or not there."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.broker import BrokerProcess, running_broker
from tests.waiting import wait_until

SECONDS = 30.0


def ready(broker: BrokerProcess) -> str:
    """What `/readyz` says when it says that the broker is ready."""

    def ask() -> str | None:
        try:
            with urllib.request.urlopen(f"{broker.http}/readyz", timeout=10) as answer:
                return str(answer.read().decode())
        except urllib.error.URLError:
            return None

    return wait_until(ask, what="the broker to be ready")


def create(broker: BrokerProcess, name: str, **configs: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    config = {key.replace("_", "."): value for key, value in configs.items()}
    admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=1, config=config)])[name].result(SECONDS)


def write(broker: BrokerProcess, topic: str, **settings: object) -> KafkaError | None:
    errors: list[KafkaError | None] = []
    timeouts = {name.replace("_", "."): value for name, value in settings.items()}
    producer = Producer({"bootstrap.servers": broker.bootstrap, **timeouts})
    producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(SECONDS) == 0
    return errors[0]


def test_two_clusters_do_not_share_a_store(tmp_path: Path) -> None:
    shared = {"strandline.objects.url": f"file://{tmp_path}/objects"}
    with running_broker(tmp_path / "one", shared) as one:
        create(one, "t", diskless_enable="true")
        assert write(one, "t") is None
        with running_broker(tmp_path / "two", {}) as two:
            create(two, "classic")
            create(two, "t", diskless_enable="true")
            two.stop()
            two.settings = shared
            two.start()
            assert write(two, "classic") is None, "classic topics need no object store"
            wait_until(lambda: "belongs to the cluster" in ready(two), what="the store to be named")
            assert "strandline.objects.url" in ready(two)
            error = write(two, "t", message_timeout_ms=1500)
            assert error is not None
            with pytest.raises(KafkaException, match="belongs to the cluster"):
                create(two, "another", diskless_enable="true")
        assert write(one, "t") is None


def test_a_broker_whose_diskless_storage_is_switched_off_serves_the_other_topics(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data") as broker:
        create(broker, "classic")
        create(broker, "t", diskless_enable="true")
        assert write(broker, "t") is None
        broker.stop()
        broker.settings = {"diskless.storage.system.enable": "false"}
        broker.start()
        assert write(broker, "classic") is None
        assert write(broker, "t", message_timeout_ms=1500) is not None
        broker.stop()
        broker.settings = {}
        broker.start()
        assert write(broker, "t") is None


def test_a_broker_without_diskless_topics_has_no_object_store(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data") as broker:
        create(broker, "classic")
        assert write(broker, "classic") is None
        assert not (broker.data_dir / "objects").exists()


@pytest.mark.parametrize("idempotent", [False, True])
def test_a_stopping_broker_commits_and_answers_what_it_has_taken(tmp_path: Path, *, idempotent: bool) -> None:
    with running_broker(tmp_path / "data") as broker:
        create(broker, "t", diskless_enable="true")
        answers: list[KafkaError | None] = []
        settings = {"bootstrap.servers": broker.bootstrap, "linger.ms": 0, "enable.idempotence": idempotent}
        producer = Producer({**settings, "message.timeout.ms": 60_000})
        for number in range(2000):
            producer.produce("t", b"%d" % number, on_delivery=lambda error, _: answers.append(error))
            producer.poll(0)
        assert broker.stop() == 0
        broker.start()
        assert producer.flush(60) == 0
        assert answers == [None] * 2000
        assert "Traceback" not in broker.log_text
        wait_until(lambda: "diskless topics are kept in" in broker.log_text, what="the store to be opened")


def test_a_stopping_broker_answers_what_lingers(tmp_path: Path) -> None:
    def gathered() -> bool:
        with urllib.request.urlopen(f"{broker.http}/metrics", timeout=10) as answer:
            found = re.search(r"^strandline_diskless_pending_bytes ([0-9.]+)$", answer.read().decode(), re.MULTILINE)
        return found is not None and float(found[1]) > 0

    with running_broker(tmp_path / "data", {"strandline.produce.linger.ms": "60000"}) as broker:
        create(broker, "t", diskless_enable="true")
        answers: list[KafkaError | None] = []
        producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0, "enable.idempotence": False})
        producer.produce("t", b"x", on_delivery=lambda error, _: answers.append(error))
        wait_until(gathered, what="the batch to arrive")
        assert broker.stop() == 0
        producer.flush(SECONDS / 3)
        assert answers == [None], "without an answer it would be sent again, and be there twice"
