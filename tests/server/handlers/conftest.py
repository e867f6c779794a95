"""A broker per test module, and a client connected to it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tests.broker import TIERS, Broker, broker_of_tier

_numbers = itertools.count(1)


@pytest.fixture(scope="module", params=sorted(TIERS))
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker_of_tier(request.param, tmp_path_factory.mktemp("broker") / "data") as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    host, port = broker.bootstrap.rsplit(":", 1)
    with Client.connect(host, int(port)) as connected:
        yield connected


@pytest.fixture
def new_name() -> Callable[[], str]:
    """Topic names that no other test uses."""
    return lambda: f"handlers-{next(_numbers)}"


@pytest.fixture
def topic(client: Client, new_name: Callable[[], str]) -> str:
    """A topic of three partitions."""
    return create_topic(client, new_name(), partitions=3)


def create_topic(client: Client, name: str, *, partitions: int = 1, configs: dict[str, str] | None = None) -> str:
    """Create a topic that must be possible, and give back its name."""
    wanted = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )
    (result,) = client.request(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=[wanted])).topics
    assert ErrorCode(result.error_code) is ErrorCode.NONE, result.error_message
    return name
