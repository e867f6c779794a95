"""Several listeners with addresses of their own, and idle connections."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from strandline.wire.api import ApiKey
from strandline.wire.messages.metadata import MetadataRequest
from tests.broker import free_port, running_broker
from tests.clients.drivers import DRIVERS, Driver, Sent, driver_name
from tests.wirelevel.raw import FETCH_VERSION, connected, create_topic, fetch_request


def advertised(bootstrap: str) -> str:
    """The address that the broker names in its metadata on this listener."""
    [broker] = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=20).brokers.values()
    return f"{broker.host}:{broker.port}"


@pytest.mark.parametrize("driver", DRIVERS, ids=driver_name)
def test_each_listener_advertises_its_own_address(tmp_path: Path, driver: Driver) -> None:
    first, second, third, elsewhere = (free_port() for _ in range(4))
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{first},EXTERNAL://127.0.0.1:{second},MAPPED://0.0.0.0:{third}",
        "advertised.listeners": (
            f"PLAINTEXT://127.0.0.1:{first},EXTERNAL://localhost:{second},MAPPED://broker.example.org:{elsewhere}"
        ),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTERNAL:PLAINTEXT,MAPPED:PLAINTEXT",
    }
    with running_broker(tmp_path / "data", settings, port=first) as broker:
        with connected(broker.bootstrap) as connection:
            create_topic(connection, "shared")
        # Written through one listener, read through the other.
        assert driver.produce(f"127.0.0.1:{second}", "shared", [Sent(b"hello")]) == [0]
        assert [record.value for record in driver.consume(broker.bootstrap, "shared", 1)] == [b"hello"]

        assert advertised(f"127.0.0.1:{first}") == f"127.0.0.1:{first}"
        assert advertised(f"127.0.0.1:{second}") == f"localhost:{second}"
        with connected(f"127.0.0.1:{third}") as connection:  # nothing listens at the advertised address
            [node] = connection.call(ApiKey.METADATA, 12, MetadataRequest(topics=[])).brokers
            assert (node.host, node.port) == ("broker.example.org", elsewhere)


def test_idle_connections_are_closed(tmp_path: Path) -> None:
    with (
        running_broker(tmp_path / "data", {"connections.max.idle.ms": "1500"}) as broker,
        connected(broker.bootstrap) as waiting,
        connected(broker.bootstrap) as busy,
    ):
        create_topic(busy, "slow")
        # A request that is still being answered keeps its connection alive, longer than the limit.
        sent = waiting.send(ApiKey.FETCH, FETCH_VERSION, fetch_request("slow", max_wait_ms=4000))
        with connected(broker.bootstrap) as idle:
            assert idle.is_answered()
            idle.wait_closed()
        assert waiting.receive(ApiKey.FETCH, FETCH_VERSION)[0] == sent
        busy.wait_closed()
        with connected(broker.bootstrap) as newcomer:
            assert newcomer.is_answered()
