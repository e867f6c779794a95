"""Large records: up to the limit they pass, above it they are refused and change nothing."""

from __future__ import annotations

import aiokafka
import kafka.errors
import pytest
from confluent_kafka import KafkaError, KafkaException

from tests.broker import Broker
from tests.clients.conftest import TopicMaker
from tests.clients.drivers import DRIVERS, AioKafkaDriver, ConfluentDriver, Driver, KafkaPythonDriver, Sent, driver_name

DEFAULT_LIMIT = 1_048_588
# Header of a batch (61 bytes) and of its only record (at most 20 bytes here).
NEAR_LIMIT = DEFAULT_LIMIT - 85

each_driver = pytest.mark.parametrize("driver", DRIVERS, ids=driver_name)


@each_driver
def test_a_record_near_the_limit_passes(broker: Broker, new_topic: TopicMaker, driver: Driver) -> None:
    topic = new_topic()
    value = bytes(range(251)) * (NEAR_LIMIT // 251)
    driver.produce(broker.bootstrap, topic, [Sent(value), Sent(b"small")])

    first, second = driver.consume(broker.bootstrap, topic, 2)

    assert first.value == value
    assert second.value == b"small"


@each_driver
def test_a_topic_may_raise_the_limit(broker: Broker, new_topic: TopicMaker, driver: Driver) -> None:
    topic = new_topic(configs={"max.message.bytes": "8000000"})
    value = b"large" * 1_400_000
    driver.produce(broker.bootstrap, topic, [Sent(value)])

    # A fetch returns at least one batch, whatever the client's limits say.
    assert driver.consume(broker.bootstrap, topic, 1)[0].value == value


def test_confluent_is_told_that_a_record_is_too_large(broker: Broker, new_topic: TopicMaker) -> None:
    topic = new_topic(configs={"max.message.bytes": "2000"})
    with pytest.raises(KafkaException) as failure:
        ConfluentDriver().produce(broker.bootstrap, topic, [Sent(b"x" * 3000)])

    assert failure.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert ConfluentDriver().produce(broker.bootstrap, topic, [Sent(b"fits")]) == [0]


def test_kafka_python_is_told_that_a_record_is_too_large(broker: Broker, new_topic: TopicMaker) -> None:
    topic = new_topic(configs={"max.message.bytes": "2000"})
    with pytest.raises(kafka.errors.MessageSizeTooLargeError):
        KafkaPythonDriver().produce(broker.bootstrap, topic, [Sent(b"x" * 3000)])

    assert KafkaPythonDriver().produce(broker.bootstrap, topic, [Sent(b"fits")]) == [0]


def test_aiokafka_is_told_that_a_record_is_too_large(broker: Broker, new_topic: TopicMaker) -> None:
    topic = new_topic(configs={"max.message.bytes": "2000"})
    with pytest.raises(aiokafka.errors.MessageSizeTooLargeError):
        AioKafkaDriver().produce(broker.bootstrap, topic, [Sent(b"x" * 3000)])

    assert AioKafkaDriver().produce(broker.bootstrap, topic, [Sent(b"fits")]) == [0]


@each_driver
def test_the_limit_is_for_the_compressed_batch(broker: Broker, new_topic: TopicMaker, driver: Driver) -> None:
    topic = new_topic(configs={"max.message.bytes": "2000"})
    assert driver.produce(broker.bootstrap, topic, [Sent(b"x" * 100_000)], codec="gzip") == [0]
    assert driver.consume(broker.bootstrap, topic, 1)[0].value == b"x" * 100_000
