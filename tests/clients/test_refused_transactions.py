"""Clients that want transactions, which are not served yet, learn so at once and with a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import aiokafka
import aiokafka.errors
import kafka
import kafka.errors
import pytest
from confluent_kafka import KafkaException, Producer

from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.broker import EXTERNAL_BOOTSTRAP, BrokerProcess, running_broker

FAR_AWAY_S = 60.0
TRANSACTION = 1


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    if EXTERNAL_BOOTSTRAP:
        pytest.skip("Kafka serves transactions")
    with running_broker(tmp_path_factory.mktemp("broker") / "data") as running:
        yield running


def test_librdkafka_gives_up_at_once(broker: BrokerProcess) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "t", "client.id": "app"})
    with pytest.raises(KafkaException) as refusal:
        producer.init_transactions(FAR_AWAY_S)
    error = refusal.value.args[0]
    assert error.fatal()
    assert not error.retriable()
    assert "Strandline does not serve transactions yet" in error.str()


async def test_aiokafka_gives_up_at_once(broker: BrokerProcess) -> None:
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="t")
    try:
        with pytest.raises(aiokafka.errors.TransactionalIdAuthorizationFailed):
            await producer.start()
    finally:
        await producer.stop()


def test_kafka_python_gives_up_at_once(broker: BrokerProcess) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="t")
    try:
        with pytest.raises(kafka.errors.TransactionalIdAuthorizationFailedError):
            producer.init_transactions()
    finally:
        producer.close(timeout=1)


@pytest.mark.parametrize("version", range(1, 7))
def test_the_answer_says_what_to_do(broker: BrokerProcess, version: int) -> None:
    with Client.connect("127.0.0.1", broker.port) as client:
        request = FindCoordinatorRequest(key="t", key_type=TRANSACTION, coordinator_keys=["t"])
        answer = client.request(ApiKey.FIND_COORDINATOR, request, version=version)
    found = answer if version < 4 else answer.coordinators[0]
    assert found.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert "Remove transactional.id from the producer's settings" in found.error_message


def test_the_log_names_the_client_once_in_a_while(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data") as broker:
        with Client.connect("127.0.0.1", broker.port, client_id="app") as client:
            for number in range(100):
                request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[f"orders-{number}"])
                client.request(ApiKey.FIND_COORDINATOR, request)
        assert broker.stop() == 0
        assert "client 'app' at 127.0.0.1 asked for a transaction with transactional.id 'orders-0'" in broker.log_text
        assert broker.log_text.count("asked for a transaction") < 10
