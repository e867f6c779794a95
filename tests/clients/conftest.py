"""The broker under test, and topics on it, for tests with real clients."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from strandline.wire.client import Client
from tests.broker import TIERS, Broker, broker_of_tier
from tests.clients.transactions import client_of
from tests.golden import kafka_classic as kafka_classic
from tests.waiting import wait_until

_numbers = itertools.count(1)


class TopicMaker(Protocol):
    def __call__(self, partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
        """Create a topic with a name of its own and wait until it has leaders."""


@pytest.fixture(scope="module", params=sorted(TIERS))
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker_of_tier(request.param, tmp_path_factory.mktemp("broker") / "data") as running:
        yield running


@pytest.fixture(autouse=True)
def _broker_is_alive(request: pytest.FixtureRequest) -> None:
    """Fail at once, not by time-out, when an earlier test of the module brought the broker down."""
    if "broker" in request.fixturenames:
        running: Broker = request.getfixturevalue("broker")
        assert running.is_running, "the broker died in an earlier test"


@pytest.fixture
def unique_name(request: pytest.FixtureRequest) -> Callable[[], str]:
    """A topic or group name that was never used, also on a broker that outlives this run."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:80].strip("-")
    return lambda: f"{words}-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    """A connection of our own client, to ask for what other clients do not show."""
    with client_of(broker.bootstrap) as opened:
        yield opened


@pytest.fixture
def admin(broker: Broker) -> Iterator[AdminClient]:
    with AdminClient({"bootstrap.servers": broker.bootstrap}) as opened:  # closed before the broker ends
        yield opened


@pytest.fixture
def new_topic(admin: AdminClient, unique_name: Callable[[], str]) -> TopicMaker:
    def make(partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
        name = unique_name()
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(configs or {}))
        admin.create_topics([topic])[name].result(30)
        wait_until(lambda: has_leaders(admin, name, partitions), what=f"leaders of {name}")
        return name

    return make


def has_leaders(admin: AdminClient, topic: str, partitions: int) -> bool:
    """Whether the metadata of the topic names a leader for each partition."""
    metadata = admin.list_topics(topic, timeout=10).topics[topic]
    leaders = [partition.leader for partition in metadata.partitions.values()]
    return metadata.error is None and len(leaders) == partitions and all(leader >= 0 for leader in leaders)
