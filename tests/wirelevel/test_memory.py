"""Memory follows the bytes received, not the bytes announced, and not the bytes a client refuses to read."""

from __future__ import annotations

import array
import fcntl
import socket
import termios
from collections.abc import Callable, Iterator

import pytest

from strandline.wire.api import ApiKey
from tests.broker import BrokerProcess, running_broker
from tests.waiting import wait_until
from tests.wirelevel.raw import (
    FETCH_VERSION,
    LENGTH,
    SECONDS,
    Closed,
    RawConnection,
    batch,
    connected,
    create_topic,
    fetch_request,
    produce,
)

MB = 1_000_000


@pytest.fixture(scope="module")
def quiet_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker of its own, warmed up, so that its memory can be compared."""
    with running_broker(tmp_path_factory.mktemp("broker") / "data") as broker:
        with connected(broker.bootstrap) as connection:
            create_topic(connection, "warm")
            for _ in range(50):
                assert produce(connection, "warm", batch(b"x" * 100_000))[0] == 0
                connection.call(ApiKey.FETCH, FETCH_VERSION, fetch_request("warm", max_bytes=MB))
        yield broker


def test_announced_bytes_cost_nothing(quiet_broker: BrokerProcess) -> None:
    """20 connections announce 50 MB and send 1 MB each: 20 MB are really there."""
    before = quiet_broker.rss_bytes()
    connections = [RawConnection(quiet_broker.bootstrap) for _ in range(20)]
    try:
        for connection in connections:
            connection.send_bytes(LENGTH.pack(50 * MB) + b"\0\0\0\x09\0\0\0\1\0\0" + bytes(MB - 10))
        with connected(quiet_broker.bootstrap) as neighbour:
            for _ in range(20):  # time for the broker to read everything, and a proof that it still serves others
                assert neighbour.is_answered()
        wait_until(lambda: all(_is_drained(one) for one in connections), within=SECONDS, what="the bytes to be read")
        grown = quiet_broker.rss_bytes() - before
        assert grown < 45 * MB, f"20 MB were received, and memory grew by {grown / MB:.0f} MB"
    finally:
        for connection in connections:
            connection.close()


def _is_drained(connection: RawConnection) -> bool:
    """Whether the kernel has handed every byte we sent to the broker's side (SIOCOUTQ)."""
    left = array.array("i", [0])
    fcntl.ioctl(connection.socket.fileno(), termios.TIOCOUTQ, left)
    return left[0] == 0


def test_a_client_that_does_not_read_is_bounded(quiet_broker: BrokerProcess) -> None:
    """It asks for far more than memory should hold and reads nothing; other clients are not affected."""
    with connected(quiet_broker.bootstrap, receive_buffer=8192) as lazy:
        lazy.socket.setblocking(False)
        before = quiet_broker.rss_bytes()
        asked = 0
        try:
            for _ in range(400):  # answers of 4 MB each: 1.6 GB in all
                asked += 1
                lazy.send(ApiKey.FETCH, FETCH_VERSION, fetch_request("warm", max_bytes=4 * MB))
        except (BlockingIOError, Closed, ConnectionError):
            pass  # the broker has stopped reading: that is one way to be bounded
        with connected(quiet_broker.bootstrap) as neighbour:
            for _ in range(100):
                assert neighbour.is_answered()
                neighbour.call(ApiKey.FETCH, FETCH_VERSION, fetch_request("warm", max_bytes=MB))
        grown = quiet_broker.rss_bytes() - before
        assert grown < 60 * MB, f"memory grew by {grown / MB:.0f} MB for {asked} unread answers"


def test_an_abandoned_answer_is_forgotten(quiet_broker: BrokerProcess) -> None:
    """Clients that ask for much and hang up at once, again and again, leave nothing behind."""

    def ask_and_leave() -> None:
        with connected(quiet_broker.bootstrap, receive_buffer=8192) as connection:
            for _ in range(5):
                connection.send(ApiKey.FETCH, FETCH_VERSION, fetch_request("warm", max_bytes=4 * MB))
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # reset on close

    for _ in range(20):
        ask_and_leave()
    before = quiet_broker.rss_bytes()
    for _ in range(60):
        ask_and_leave()
    with connected(quiet_broker.bootstrap) as neighbour:
        assert neighbour.is_answered()
    wait_until(lambda: quiet_broker.rss_bytes() - before < 30 * MB, what="memory to be given back")
    assert "Traceback" not in quiet_broker.log_text


def test_many_idle_connections_are_cheap(quiet_broker: BrokerProcess, unique_name: Callable[[], str]) -> None:
    before = quiet_broker.rss_bytes()
    connections = [RawConnection(quiet_broker.bootstrap) for _ in range(200)]
    try:
        for connection in connections:
            assert connection.is_answered()
        grown = quiet_broker.rss_bytes() - before
        assert grown < 30 * MB, f"200 connections cost {grown / MB:.0f} MB"
    finally:
        for connection in connections:
            connection.close()
