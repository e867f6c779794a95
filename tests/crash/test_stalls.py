"""A store, a database or a client that stalls: whoever does not need it does not notice, and memory stays bounded."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from confluent_kafka import Consumer

from strandline.clock import SystemClock
from strandline.records import Record, build_batch
from strandline.wire.api import ApiKey
from strandline.wire.registry import encode_request
from tests.broker import BrokerProcess, running_broker
from tests.clients.two_brokers import running_cluster
from tests.crash.writers import Writer
from tests.link import Link
from tests.postgres import postgres, postgres_url
from tests.s3 import S3, s3
from tests.waiting import wait_until
from tests.wirelevel.raw import batch, connected, create_topic, fetch_request, produce, produce_request

__all__ = ["postgres", "postgres_url", "s3"]

MIB = 1024 * 1024
BUDGETS = {"queued.max.request.bytes": str(16 * MIB), "strandline.queued.max.diskless.bytes": str(16 * MIB)}
QUICK_GROUPS = {"group.min.session.timeout.ms": "1000", "group.initial.rebalance.delay.ms": "0"}
PRODUCE_VERSION = FETCH_VERSION = 12

pytestmark = pytest.mark.timeout(240)


class Flood:
    """A producer that sends large requests for a diskless topic without waiting for answers, and reads all of them."""

    def __init__(self, port: int, topic: str) -> None:
        self.sent = self.answered = 0
        self._sock = socket.create_connection(("127.0.0.1", port))
        records = build_batch([Record(0, SystemClock().now_ms(), None, b"x" * 500_000)])
        frame = encode_request(ApiKey.PRODUCE, PRODUCE_VERSION, 0, "flood", produce_request(topic, bytes(records)))
        self._frame = struct.pack(">i", len(frame)) + frame
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._send, self._receive)]
        for thread in self._threads:
            thread.start()

    def _send(self) -> None:
        with suppress(OSError):
            while True:
                self._sock.sendall(self._frame)
                self.sent += 1

    def _receive(self) -> None:
        with suppress(OSError):
            while data := self._sock.recv(1 << 16):
                self.answered += len(data)

    def close(self) -> None:
        self._sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        self._sock.close()


@contextmanager
def floods(ports: list[int], topic: str, *, each: int) -> Iterator[list[Flood]]:
    with ExitStack() as stack:
        opened = []
        for port in ports * each:
            flood = Flood(port, topic)
            stack.callback(flood.close)
            opened.append(flood)
        yield opened


class Member:
    """A member of a group that reads a classic topic, and counts how often partitions are taken from it."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.read = self.revoked = 0
        self._stopping = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 2000,
                "heartbeat.interval.ms": 400,
                "auto.commit.interval.ms": 500,
            }
        )
        self._consumer.subscribe([topic], on_revoke=self._revoked, on_lost=self._revoked)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _revoked(self, *_: object) -> None:
        self.revoked += not self._stopping.is_set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            message = self._consumer.poll(0.1)
            self.read += message is not None and message.error() is None

    def close(self) -> None:
        self._stopping.set()
        self._thread.join(10)
        self._consumer.close()


def outlast(seconds: float, *running: Callable[[], int]) -> None:
    """Let time pass: each of the numbers must grow in every second of it."""
    for _ in range(int(seconds)):
        before = [count() for count in running]
        threading.Event().wait(1.0)
        wait_until(
            lambda before=before: all(count() > old for count, old in zip(running, before, strict=True)),  # type: ignore[misc]
            within=5.0,
            what="classic topics to be written and read",
        )


def test_a_store_that_hangs_under_load_stalls_diskless_producers_only(tmp_path: Path, s3: S3) -> None:
    with Link(("127.0.0.1", s3.port)) as link:
        settings = {
            **BUDGETS,
            **QUICK_GROUPS,
            "strandline.objects.url": f"s3://{s3.new_bucket()}/stall",
            "inkless.storage.s3.endpoint.url": f"http://127.0.0.1:{link.port}",
            "inkless.storage.aws.access.key.id": "test",
            "inkless.storage.aws.secret.access.key": "test-secret",
        }
        with running_broker(tmp_path / "data", settings) as broker, ExitStack() as stack:
            with connected(broker.bootstrap) as connection:
                create_topic(connection, "diskless", diskless_enable="true")
                create_topic(connection, "classic")
                assert produce(connection, "diskless", batch(b"first"))[0] == 0
            writer = Writer(broker.bootstrap, "classic", "writer", 1, pause=0.01)
            writer.start()
            stack.callback(writer.stop)
            member = Member(broker.bootstrap, "group", "classic")
            stack.callback(member.close)
            wait_until(lambda: member.read > 10, within=30.0, what="the group to read")
            link.hang()
            before = broker.rss_bytes()
            with floods([broker.port], "diskless", each=6) as flooding:
                wait_until(lambda: sum(flood.sent for flood in flooding) * 500_000 > 16 * MIB, what="a full budget")
                outlast(6, lambda: len(writer.acknowledged), lambda: member.read)
                with connected(broker.bootstrap) as connection:  # also clients that come now
                    assert produce(connection, "classic", batch(b"x" * 900_000))[0] == 0
                assert broker.rss_bytes() - before < 60 * MIB
                link.come_back()
                answered = [flood.answered for flood in flooding]
                wait_until(
                    lambda: all(flood.answered > old for flood, old in zip(flooding, answered, strict=True)),
                    within=40.0,
                    what="answers for the diskless producers",
                )
            assert (member.revoked, writer.failures) == (0, [])


def test_a_database_that_hangs_under_load_fences_no_broker_and_stalls_no_classic_topic(
    tmp_path: Path, postgres_url: str
) -> None:
    """The active controller is flooded as well. It must hear the heartbeats of the other broker."""
    database = urlsplit(postgres_url)
    (directory,) = parse_qs(database.query)["host"]
    with Link(f"{directory}/.s.PGSQL.5432") as link, ExitStack() as stack:
        url = f"postgresql://postgres:@127.0.0.1:{link.port}{database.path}"
        settings = {
            **BUDGETS,
            **QUICK_GROUPS,
            "strandline.objects.url": f"file://{tmp_path}/objects",
            "broker.session.timeout.ms": "2000",
            "broker.heartbeat.interval.ms": "300",
        }
        cluster = stack.enter_context(running_cluster(tmp_path, url, settings=settings))
        cluster.create("diskless", partitions=1, via=1, config={"diskless.enable": "true"})
        cluster.create("classic", partitions=2, via=1)
        cluster.wait_led("classic", 2)
        writer = Writer(cluster.bootstrap, "classic", "writer", 2, pause=0.01)
        writer.start()
        stack.callback(writer.stop)
        member = Member(cluster.bootstrap, "group", "classic")
        stack.callback(member.close)
        wait_until(lambda: member.read > 10, within=30.0, what="the group to read")
        link.hang()
        ports = [broker.port for broker in cluster.brokers.values()]
        with floods(ports, "diskless", each=3) as flooding:
            wait_until(lambda: min(flood.sent for flood in flooding) > 10, what="full budgets")
            outlast(6, lambda: len(writer.acknowledged), lambda: member.read)
            link.come_back()
            outlast(3, lambda: len(writer.acknowledged), lambda: member.read)
        assert (member.revoked, writer.failures) == (0, [])
        for broker in cluster.brokers.values():
            assert "is fenced" not in broker.log_text


@pytest.mark.parametrize("kind", ["diskless", "classic"])
def test_clients_that_never_read_cost_no_more_than_the_budget_and_are_closed(tmp_path: Path, kind: str) -> None:
    budget, cache, now_ms = 24 * MIB, 16 * MIB, SystemClock().now_ms()
    settings = {
        "strandline.queued.max.answer.bytes": str(budget),
        "inkless.consume.cache.max.bytes": str(cache),
        "connections.max.idle.ms": "3000",
    }
    with running_broker(tmp_path / "data", settings) as broker, ExitStack() as stack:
        with connected(broker.bootstrap) as connection:
            create_topic(connection, "large", diskless_enable=str(kind == "diskless").lower())
            for _ in range(70):
                assert produce(connection, "large", batch(b"x" * 900_000, first_timestamp=now_ms))[0] == 0
        before = broker.rss_bytes()
        silent = [stack.enter_context(connected(broker.bootstrap, receive_buffer=65536)) for _ in range(8)]
        for one in silent:
            one.send(ApiKey.FETCH, FETCH_VERSION, fetch_request("large", max_bytes=55_000_000))
        with connected(broker.bootstrap) as reading:  # a client that reads is served beside them
            answer = reading.call(ApiKey.FETCH, FETCH_VERSION, fetch_request("large", max_wait_ms=5000, max_bytes=MIB))
            assert answer.responses[0].partitions[0].records
        memory = []

        def are_closed() -> bool:
            memory.append(broker.rss_bytes() - before)
            return open_connections(broker) == 0

        wait_until(are_closed, within=15.0, what="the silent clients to be closed")
        assert "has not read any of its answers for 3000 ms (connections.max.idle.ms)" in broker.log_text
        assert max(memory) < budget + cache + 16 * MIB


def test_a_client_that_leaves_while_its_fetch_waits_gives_the_memory_back(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data") as broker:
        with connected(broker.bootstrap) as connection:
            create_topic(connection, "t", diskless_enable="true")
            assert produce(connection, "t", batch(b"x" * 900_000))[0] == 0
        broker.restart()  # the cache is empty
        with connected(broker.bootstrap) as connection:
            connection.call(ApiKey.FETCH, FETCH_VERSION, fetch_request("t", 1, max_wait_ms=300))  # the end is known
            connection.send(ApiKey.FETCH, FETCH_VERSION, fetch_request("t", max_wait_ms=600_000, min_bytes=10 * MIB))
            wait_until(lambda: held_for_answers(broker) > 0, what="the records that wait for more of them")
        wait_until(lambda: held_for_answers(broker) == 0, what="their memory")


def held_for_answers(broker: BrokerProcess) -> int:
    try:
        return int(httpx.get(f"{broker.http}/status").json()["client_memory"]["answers"]["bytes"])
    except httpx.ConnectError:
        return -1  # HTTP is served a moment after Kafka clients are


def open_connections(broker: BrokerProcess) -> int:
    metrics = httpx.get(f"{broker.http}/metrics").text
    counts = [
        int(float(line.split()[1]))
        for line in metrics.splitlines()
        if line.startswith("kafka_server_socket_server_metrics_connection_count{")
    ]
    assert counts
    return sum(counts)
