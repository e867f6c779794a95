"""A broker for tests that talk to it in bytes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import pytest

from strandline.wire.client import Client
from tests.broker import EXTERNAL_BOOTSTRAP, TIERS, Broker, BrokerProcess, broker_of_tier
from tests.clients.transactions import client_of
from tests.wirelevel.raw import RawConnection, connected

_numbers = itertools.count(1)


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
def own_broker(broker: Broker) -> BrokerProcess:
    """The broker, for tests that look into its process or log."""
    if not isinstance(broker, BrokerProcess):
        pytest.skip(f"looks into the broker's process, and {EXTERNAL_BOOTSTRAP} is not ours")
    return broker


@pytest.fixture
def connection(broker: Broker) -> Iterator[RawConnection]:
    with connected(broker.bootstrap) as opened:
        yield opened


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    """A connection of our own client, to ask for what other clients do not show."""
    with client_of(broker.bootstrap) as opened:
        yield opened


@pytest.fixture
def unique_name() -> Callable[[], str]:
    return lambda: f"wire-{os.getpid()}-{next(_numbers)}"
