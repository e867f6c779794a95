"""A broker does the same whichever form of the hot modules it runs: a real client, transactions, a kill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from strandline.compiled.manifest import Unusable, find_build
from tests.broker import COMPILED_VARIABLE, BrokerProcess, running_broker
from tests.compiled.small_tree import PACKAGE

TOPICS = {"classic": {}, "diskless": {"diskless.enable": "true"}, "compacted": {"cleanup.policy": "compact"}}
RECORDS = 500


@pytest.fixture(params=["no", "required"], ids=["plain", "compiled"])
def form(request: pytest.FixtureRequest) -> str:
    if request.param == "required":
        found = find_build(str(PACKAGE))
        if isinstance(found, Unusable):
            pytest.skip(f"{found.reason}: `make compiled` makes one")
    return str(request.param)


def produce(broker: BrokerProcess, values: range, **settings: Any) -> None:
    """Write values to each topic, by an idempotent or transactional producer, and wait for the acknowledgements."""
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "linger.ms": 0, **settings})
    is_transactional = "transactional.id" in settings
    if is_transactional:
        producer.init_transactions(30)
        producer.begin_transaction()
    for value in values:
        for topic in TOPICS:
            producer.produce(
                topic,
                key=b"key-%d" % value,
                value=b"%d" % value,
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
        if value % 10 == 0:
            producer.poll(0)
    assert producer.flush(30) == 0
    assert failures == []
    if is_transactional and settings["transactional.id"] == "commits":
        producer.commit_transaction(30)
    elif is_transactional:
        producer.abort_transaction(30)


def consume(broker: BrokerProcess, topic: str, count: int) -> list[int]:
    """The first committed values of a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "readers",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    values: list[int] = []
    try:
        while True:
            message = consumer.poll(30)
            assert message is not None, f"{len(values)} of {count} records came"
            if message.error() is None:
                values.append(int(message.value() or b""))
            elif len(values) >= count:  # the end of the partition
                return values
    finally:
        consumer.close()


def test_records_transactions_and_a_kill(tmp_path: Path, form: str) -> None:
    settings = {
        "log.cleaner.min.cleanable.ratio": "0.01",
        "log.cleaner.backoff.ms": "100",
        "transaction.state.log.num.partitions": "2",
    }
    with running_broker(tmp_path / "data", settings, environment={COMPILED_VARIABLE: form}) as broker:
        said = "compiled" if form == "required" else "as plain Python"
        assert f"hot modules run {said}" in broker.log_text
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        created = admin.create_topics([NewTopic(name, 1, 1, config=config) for name, config in TOPICS.items()])
        for future in created.values():
            future.result(30)
        produce(broker, range(RECORDS))
        broker.kill()
        broker.start()
        produce(broker, range(RECORDS, RECORDS + 50), **{"transactional.id": "commits"})
        produce(broker, range(RECORDS + 50, RECORDS + 100), **{"transactional.id": "aborts"})
        broker.restart()
        produce(broker, range(RECORDS + 100, RECORDS + 110))
        wanted = [*range(RECORDS + 50), *range(RECORDS + 100, RECORDS + 110)]
        for topic in TOPICS:
            assert consume(broker, topic, len(wanted)) == wanted, topic
        assert "Traceback" not in broker.log_text
        assert broker.stop() == 0
