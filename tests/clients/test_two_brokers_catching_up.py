"""Consumers that catch up over small objects through two brokers, while these, the database and the store fail.

Whoever reads sees every acknowledged record once and in order, and nothing that nobody has written.
"""

from __future__ import annotations

import itertools
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from strandline.records import iter_headers, read_records
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from strandline.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.clients.test_two_brokers_diskless import DISKLESS, is_served
from tests.clients.two_brokers import SECONDS, BrokerCluster, running_cluster
from tests.link import Link
from tests.postgres import postgres, postgres_url
from tests.waiting import wait_until
from tests.wirelevel.raw import batch

__all__ = ["postgres", "postgres_url"]

PARTITIONS = 6
# Bytes of a partition that a consumer asks for.
SIZES = (5_000, 500, 100_000)
# Errors after which a consumer asks again.
PASSING = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.CORRUPT_MESSAGE,
    }
)


class Load:
    """Two producers, and consumers that begin at offset 0 again and again. What they see is compared."""

    def __init__(self, cluster: BrokerCluster, topic: str) -> None:
        self._cluster, self._topic = cluster, topic
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._acknowledged: defaultdict[int, dict[int, bytes]] = defaultdict(dict)
        self._sent: set[bytes] = set()
        self.rounds = 0
        """Consumers that have read all that was acknowledged when they began."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Until the block ends. Then everything is read once more through each broker."""
        with ThreadPoolExecutor(4) as pool:
            tasks = [pool.submit(self._produce, node_id) for node_id in (1, 2)]
            tasks += [pool.submit(self._consume, node_id) for node_id in (1, 2)]
            try:
                yield
                self.wait_rounds(2)
            finally:
                self._stop.set()
            for task in tasks:
                task.result(SECONDS)
        for node_id in (1, 2):
            self._catch_up(node_id, SIZES[0])

    def wait_rounds(self, count: int) -> None:
        """Until some more consumers are through."""
        before = self.rounds
        wait_until(lambda: self.rounds >= before + count, within=SECONDS, what=f"{count} consumers to catch up")

    def _connect(self, node_id: int) -> Client:
        return Client.connect("127.0.0.1", self._cluster.brokers[node_id].port)

    def _produce(self, node_id: int) -> None:
        numbers = itertools.count()
        while not self._stop.wait(0.005):
            try:
                with self._connect(node_id) as client:
                    while not self._stop.wait(0.005):
                        number = next(numbers)
                        self._write(client, number % PARTITIONS, [b"%d-%d-%d" % (node_id, number, i) for i in range(3)])
            except OSError:
                continue  # the broker is away: nobody knows what became of the last records

    def _write(self, client: Client, index: int, values: list[bytes]) -> None:
        with self._lock:
            self._sent.update(values)
        data = PartitionProduceData(index=index, records=batch(*values))
        topics = [TopicProduceData(name=self._topic, partition_data=[data])]
        request = ProduceRequest(acks=-1, timeout_ms=20_000, topic_data=topics)
        response = client.request(ApiKey.PRODUCE, request, version=12)
        assert isinstance(response, ProduceResponse)
        answer = response.responses[0].partition_responses[0]
        if answer.error_code == ErrorCode.NONE:
            with self._lock:
                self._acknowledged[index].update(enumerate(values, answer.base_offset))

    def _consume(self, node_id: int) -> None:
        sizes = itertools.cycle(SIZES)
        while not self._stop.is_set():
            self._catch_up(node_id, next(sizes))
            self.rounds += 1

    def _catch_up(self, node_id: int, max_bytes: int) -> None:
        with self._lock:
            expected = {index: dict(records) for index, records in self._acknowledged.items()}
        ends = {index: max(records) + 1 for index, records in expected.items()}
        seen: dict[int, list[bytes]] = {index: [] for index in expected}
        while behind := [index for index, end in ends.items() if len(seen[index]) < end]:
            try:
                with self._connect(node_id) as client:
                    while behind := [index for index in behind if len(seen[index]) < ends[index]]:
                        self._fetch(client, {index: seen[index] for index in behind}, max_bytes)
            except OSError:
                self._stop.wait(0.1)
        for index, records in expected.items():
            assert {offset: seen[index][offset] for offset in records} == records
            assert len({*seen[index]}) == len(seen[index]), "no record comes twice"
            assert self._sent.issuperset(seen[index])

    def _fetch(self, client: Client, seen: dict[int, list[bytes]], max_bytes: int) -> None:
        wanted = [
            FetchPartition(partition=index, fetch_offset=len(values), partition_max_bytes=max_bytes)
            for index, values in seen.items()
        ]
        topics = [FetchTopic(topic=self._topic, partitions=wanted)]
        request = FetchRequest(max_wait_ms=200, min_bytes=1, max_bytes=4 * max_bytes, topics=topics)
        response = client.request(ApiKey.FETCH, request, version=12)
        assert isinstance(response, FetchResponse)
        for answer in response.responses[0].partitions:
            assert ErrorCode(answer.error_code) in PASSING
            data, values = bytes(answer.records or b""), seen[answer.partition_index]
            for position, header in iter_headers(data):
                for record in read_records(data[position : position + header.size]):
                    if record.offset >= len(values):  # a batch comes whole
                        assert record.offset == len(values), "no offset is left out"
                        values.append(record.value or b"")


@contextmanager
def loaded_cluster(directory: Path, url: str, topic: str) -> Iterator[tuple[BrokerCluster, Load, Link]]:
    """Brokers with little memory for records, which they read from objects as if they were old."""
    database = urlsplit(url)
    (socket,) = parse_qs(database.query)["host"]
    settings = {
        "strandline.objects.url": f"file://{directory}/objects",
        "inkless.consume.cache.max.bytes": "4000000",
        "inkless.fetch.lagging.consumer.threshold.ms": "0",
    }
    with Link(f"{socket}/.s.PGSQL.5432") as link:
        linked = f"postgresql://postgres:@127.0.0.1:{link.port}{database.path}"
        with running_cluster(directory, linked, settings=settings) as cluster:
            cluster.create(topic, partitions=PARTITIONS, via=1, config=DISKLESS)
            wait_until(lambda: all(is_served(cluster, topic, node_id) for node_id in (1, 2)), what="both to serve it")
            cluster.close_admins()
            load = Load(cluster, topic)
            with load.running():
                load.wait_rounds(20)
                yield cluster, load, link


def test_a_broker_is_killed_and_the_other_one_suspended(
    tmp_path: Path, postgres_url: str, unique_name: Callable[[], str]
) -> None:
    with loaded_cluster(tmp_path, postgres_url, unique_name()) as (cluster, load, _):
        cluster.brokers[1].kill()
        load.wait_rounds(10)
        cluster.brokers[1].start()
        load.wait_rounds(10)
        with cluster.brokers[2].suspended():
            load.wait_rounds(10)


def test_the_database_hangs_and_breaks_off(tmp_path: Path, postgres_url: str, unique_name: Callable[[], str]) -> None:
    with loaded_cluster(tmp_path, postgres_url, unique_name()) as (_, load, link):
        for stop in (link.hang, link.go_down):
            stop()
            threading.Event().wait(2)  # longer than offsets count as right
            link.come_back()
            load.wait_rounds(10)


@pytest.mark.parametrize("damage", ["missing", "short"])
def test_objects_are_away_for_a_while(
    tmp_path: Path, postgres_url: str, unique_name: Callable[[], str], damage: str
) -> None:
    with loaded_cluster(tmp_path, postgres_url, unique_name()) as (_, load, __):
        objects = sorted(path for path in (tmp_path / "objects" / "wal").rglob("*") if path.is_file())[::3]
        aside = tmp_path / "aside"
        aside.mkdir()
        for path in objects:
            data = path.read_bytes()
            path.rename(aside / path.name)
            if damage == "short":
                path.write_bytes(data[:100])
        threading.Event().wait(1)
        for path in objects:
            (aside / path.name).rename(path)
        load.wait_rounds(10)
