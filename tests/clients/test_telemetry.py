"""Metrics that librdkafka pushes are on /metrics, of the clients that a subscription names."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families

from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker import BrokerProcess, running_broker
from tests.waiting import wait_until

SECONDS = 60.0
CLIENT_METRICS = 16


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    directory: Path = tmp_path_factory.mktemp("telemetry")
    with running_broker(directory / "data") as running:
        yield running


def subscribe(broker: BrokerProcess, name: str, **settings: str) -> None:
    configs = [AlterableConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()]
    resource = AlterConfigsResource(resource_type=CLIENT_METRICS, resource_name=name, configs=configs)
    with Client.connect("127.0.0.1", broker.port) as client:
        request = IncrementalAlterConfigsRequest(resources=[resource])
        (answer,) = client.request(ApiKey.INCREMENTAL_ALTER_CONFIGS, request).responses
    assert answer.error_code == ErrorCode.NONE, answer.error_message


def pushed(broker: BrokerProcess) -> list[Any]:
    with urllib.request.urlopen(f"{broker.http}/metrics", timeout=10) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    return [sample for family in families if family.name == "strandline_client_metric" for sample in family.samples]


def test_what_librdkafka_pushes_is_on_the_metrics_page(broker: BrokerProcess) -> None:
    subscribe(
        broker,
        "quick",
        metrics="*",
        interval_ms="100",
        match="client_software_name=confluent-kafka-python.*,client_id=pushing",
    )
    settings = {"bootstrap.servers": broker.bootstrap, "enable.metrics.push": True}
    pushing, silent = Producer({**settings, "client.id": "pushing"}), Producer({**settings, "client.id": "other"})

    def arrived() -> list[Any]:
        for producer in (pushing, silent):
            producer.produce("telemetry", b"x")
            producer.poll(0.05)
        return [sample for sample in pushed(broker) if sample.value > 0]

    samples = wait_until(arrived, within=SECONDS, what="metrics of librdkafka")
    assert {sample.labels["client_id"] for sample in samples} == {"pushing"}
    assert any(sample.labels["metric"].startswith("org.apache.kafka.producer.") for sample in samples)
    assert "Traceback" not in broker.log_text
