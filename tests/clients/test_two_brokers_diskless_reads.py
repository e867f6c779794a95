"""What readers of diskless topics get from two brokers when records are deleted, and when the database is away or has
lost its last commits."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from strandline.records import iter_headers, read_records
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from strandline.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker import BrokerProcess
from tests.clients.drivers import DRIVERS, Driver, driver_name
from tests.clients.test_admin_confluent import alter
from tests.clients.test_two_brokers_diskless import DISKLESS, is_served
from tests.clients.two_brokers import SECONDS, BrokerCluster, running_cluster
from tests.link import Link
from tests.postgres import Postgres, postgres, postgres_url
from tests.waiting import wait_until
from tests.wirelevel.raw import batch

__all__ = ["postgres", "postgres_url"]

LOST = "the database has lost commits"


class Served(NamedTuple):
    """What a broker answers to a Fetch that does not wait."""

    error: ErrorCode
    end: int
    data: bytes

    @property
    def values(self) -> list[bytes]:
        return [
            record.value or b""
            for position, header in iter_headers(self.data)
            for record in read_records(self.data[position : position + header.size])
        ]


class Asking:
    """Requests about partition 0 of one topic, each to the broker that the test names."""

    def __init__(self, cluster: BrokerCluster, topic: str) -> None:
        self.cluster, self.topic = cluster, topic

    def _ask(self, node_id: int, api: ApiKey, request: Any, version: int | None = None) -> Any:
        with Client.connect("127.0.0.1", self.cluster.brokers[node_id].port) as client:
            return client.request(api, request, version=version)

    def read(self, node_id: int) -> Served:
        """Everything, as one broker has it: a Fetch ends where memory ends, and the next goes on there."""
        part, data, offset = self.fetch(node_id), b"", 0
        while part.error is ErrorCode.NONE and offset < part.end:
            if part.data:  # else it is not loaded yet
                *_, (_, last) = iter_headers(part.data)
                data, offset = data + part.data, last.next_offset
            part = self.fetch(node_id, offset, max_wait_ms=1000 if offset < part.end else 0)
        return Served(part.error, part.end, data)

    def fetch(self, node_id: int, offset: int = 0, max_wait_ms: int = 0) -> Served:
        """What one broker has from an offset on."""
        whole = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        topics = [FetchTopic(topic=self.topic, partitions=[whole])]
        request = FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1 << 20, topics=topics)
        (answer,) = self._ask(node_id, ApiKey.FETCH, request, 12).responses[0].partitions
        return Served(ErrorCode(answer.error_code), answer.high_watermark, bytes(answer.records or b""))

    def write(self, node_id: int, *values: bytes) -> None:
        """Each record in an object of its own. Any broker takes it, whichever leads the partition."""
        for value in values:
            data = PartitionProduceData(index=0, records=batch(value))
            topics = [TopicProduceData(name=self.topic, partition_data=[data])]
            request = ProduceRequest(acks=-1, timeout_ms=20_000, topic_data=topics)
            answer = self._ask(node_id, ApiKey.PRODUCE, request, 12).responses[0].partition_responses[0]
            assert ErrorCode(answer.error_code) is ErrorCode.NONE, answer.error_message

    def delete(self, node_id: int, before: int) -> ErrorCode:
        partitions = [DeleteRecordsPartition(partition_index=0, offset=before)]
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=self.topic, partitions=partitions)])
        return ErrorCode(self._ask(node_id, ApiKey.DELETE_RECORDS, request).topics[0].partitions[0].error_code)

    def end(self, node_id: int) -> ErrorCode:
        partitions = [ListOffsetsPartition(partition_index=0, timestamp=-1)]
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=self.topic, partitions=partitions)])
        return ErrorCode(self._ask(node_id, ApiKey.LIST_OFFSETS, request).topics[0].partitions[0].error_code)

    def producers(self, node_id: int) -> ErrorCode:
        request = DescribeProducersRequest(topics=[TopicRequest(name=self.topic, partition_indexes=[0])])
        return ErrorCode(self._ask(node_id, ApiKey.DESCRIBE_PRODUCERS, request).topics[0].partitions[0].error_code)

    def wait_values(self, *values: bytes) -> None:
        """Until both brokers serve these records, and the same bytes."""
        for node_id in (1, 2):
            wait_until(lambda n=node_id: self.read(n).values == [*values], what=f"{values} at broker {node_id}")  # type: ignore[misc]
        assert self.read(1).data == self.read(2).data


def create(cluster: BrokerCluster, name: str) -> Asking:
    """A diskless topic that both brokers serve."""
    cluster.create(name, via=1, config=DISKLESS)
    wait_until(lambda: is_served(cluster, name, 1) and is_served(cluster, name, 2), what="both brokers to serve it")
    return Asking(cluster, name)


@pytest.fixture
def cluster(tmp_path: Path, postgres_url: str) -> Iterator[BrokerCluster]:
    shared = {
        "strandline.objects.url": f"file://{tmp_path}/objects",
        "inkless.retention.enforcement.interval.ms": "200",
    }
    with running_cluster(tmp_path, postgres_url, settings=shared) as running:
        yield running


# Deleted records


def test_records_deleted_through_one_broker_are_not_served_by_the_other(
    cluster: BrokerCluster, unique_name: Callable[[], str]
) -> None:
    topic = create(cluster, unique_name())
    topic.write(1, b"a", b"b", b"c", b"d")
    topic.wait_values(b"a", b"b", b"c", b"d")
    for deleting, reading, before in ((1, 2, 2), (2, 1, 3)):
        assert topic.delete(deleting, before) is ErrorCode.NONE
        wait_until(
            lambda n=reading, o=before: topic.fetch(n, o - 1).error is ErrorCode.OFFSET_OUT_OF_RANGE,  # type: ignore[misc]
            what="the deletion to arrive at the other broker",
        )
    assert topic.fetch(1, 3).values == topic.fetch(2, 3).values == [b"d"]


def test_records_that_have_expired_are_not_served_by_any_broker(
    cluster: BrokerCluster, unique_name: Callable[[], str]
) -> None:
    topic = create(cluster, unique_name())
    topic.write(3 - cluster.controller(), b"a", b"b")  # of yesterday
    topic.wait_values(b"a", b"b")
    alter(cluster.admin(1), "topic", topic.topic, ("retention.ms", "1000", "SET"))
    for node_id in (1, 2):
        wait_until(
            lambda n=node_id: topic.fetch(n).error is ErrorCode.OFFSET_OUT_OF_RANGE,  # type: ignore[misc]
            what=f"the end of the records at broker {node_id}",
        )


# A database that is away


@contextmanager
def linked_cluster(tmp_path: Path, postgres_url: str) -> Iterator[tuple[BrokerCluster, Link]]:
    """Brokers whose connections to the database can be cut."""
    database = urlsplit(postgres_url)
    (directory,) = parse_qs(database.query)["host"]
    with Link(f"{directory}/.s.PGSQL.5432") as link:
        url = f"postgresql://postgres:@127.0.0.1:{link.port}{database.path}"
        shared = {"strandline.objects.url": f"file://{tmp_path}/objects"}
        with running_cluster(tmp_path, url, settings=shared) as cluster:
            yield cluster, link


def test_consumers_go_on_where_they_were_when_the_database_is_back(
    tmp_path: Path, postgres_url: str, unique_name: Callable[[], str]
) -> None:
    with linked_cluster(tmp_path, postgres_url) as (cluster, link), ThreadPoolExecutor(len(DRIVERS)) as pool:
        topic = create(cluster, unique_name())
        topic.write(1, b"a", b"b")
        topic.wait_values(b"a", b"b")

        def consume(driver: Driver) -> list[tuple[int, bytes | None]]:
            received = driver.consume(cluster.bootstrap, topic.topic, 4)
            return [(record.offset, record.value) for record in received]

        consumers = {driver_name(driver): pool.submit(consume, driver) for driver in DRIVERS}
        link.go_down()
        # At the end of the log nobody knows what is there any more; records in memory are served on.
        for node_id in (1, 2):
            wait_until(
                lambda n=node_id: topic.fetch(n, 2).error is ErrorCode.KAFKA_STORAGE_ERROR,  # type: ignore[misc]
                what="an error at the end of the log",
            )
            assert topic.end(node_id) is ErrorCode.REQUEST_TIMED_OUT
            assert topic.delete(node_id, 1) is ErrorCode.REQUEST_TIMED_OUT
            assert topic.producers(node_id) is ErrorCode.REQUEST_TIMED_OUT
            assert topic.fetch(node_id).values == [b"a", b"b"]
        link.come_back()
        wait_until(lambda: topic.end(1) is ErrorCode.NONE, within=SECONDS, what="the database at broker 1")
        topic.write(1, b"c", b"d")
        expected = [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]
        for name, consumer in consumers.items():
            assert consumer.result(SECONDS) == expected, name
    assert all(LOST not in broker.log_text for broker in cluster.brokers.values())


def bytes_for_answers(broker: BrokerProcess) -> float:
    name = 'strandline_client_memory_bytes{kind="answers"} '
    (line,) = (line for line in httpx.get(f"{broker.http}/metrics").text.splitlines() if line.startswith(name))
    return float(line.removeprefix(name))


def test_readers_who_wait_go_on_waiting_while_the_database_is_away(
    tmp_path: Path, postgres_url: str, unique_name: Callable[[], str]
) -> None:
    """Apache Kafka's consumer pauses after no error: answered at once, it would ask hundreds of times a second."""
    with linked_cluster(tmp_path, postgres_url) as (cluster, link), ThreadPoolExecutor(2) as pool:
        topic = create(cluster, unique_name())
        topic.write(1, b"a", b"b")
        topic.wait_values(b"a", b"b")
        link.go_down()

        def is_in_trouble(node_id: int) -> bool:
            return topic.fetch(node_id, 2).error is ErrorCode.KAFKA_STORAGE_ERROR

        for node_id in (1, 2):
            wait_until(lambda n=node_id: is_in_trouble(n), what="an error at the end of the log")  # type: ignore[misc]
            assert topic.fetch(node_id, 2, max_wait_ms=50).error is ErrorCode.KAFKA_STORAGE_ERROR
        waiting = [pool.submit(topic.fetch, node_id, 2, max_wait_ms=25_000) for node_id in (1, 2)]
        for node_id in (1, 2):
            for _ in range(5):
                assert is_in_trouble(node_id)
            wait_until(lambda n=node_id: bytes_for_answers(cluster.brokers[n]) == 0, what="memory that nobody holds")  # type: ignore[misc]
        assert not any(reader.done() for reader in waiting)
        link.come_back()
        wait_until(lambda: topic.end(1) is ErrorCode.NONE, within=SECONDS, what="the database at broker 1")
        topic.write(1, b"c")
        for reader in waiting:
            served = reader.result(SECONDS)
            assert (served.error, served.values) == (ErrorCode.NONE, [b"c"])


# A database that has lost commits


class Copy:
    """A copy of the database that takes its place later, as a standby does that lagged behind."""

    def __init__(self, postgres: Postgres, url: str, link: Link) -> None:
        self._postgres, self._link = postgres, link
        self._name = urlsplit(url).path.lstrip("/")
        self._without_connections(f"CREATE DATABASE {self._name}_standby TEMPLATE {self._name}")

    def take_over(self) -> None:
        """What was committed since the copy is lost."""
        self._without_connections(
            f"ALTER DATABASE {self._name} RENAME TO {self._name}_lost",
            f"ALTER DATABASE {self._name}_standby RENAME TO {self._name}",
        )

    def _without_connections(self, *statements: str) -> None:
        self._link.go_down()
        self._postgres.run(
            f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{self._name}';"
        )
        for statement in statements:
            self._postgres.run(f"{statement};")
        self._link.come_back()


def test_brokers_agree_on_what_a_database_has_kept_that_lost_commits(
    tmp_path: Path, postgres: Postgres, postgres_url: str, unique_name: Callable[[], str]
) -> None:
    with linked_cluster(tmp_path, postgres_url) as (cluster, link):
        topic = create(cluster, unique_name())
        topic.write(1, b"kept")
        standby = Copy(postgres, postgres_url, link)
        wait_until(lambda: topic.end(1) is ErrorCode.NONE, within=SECONDS, what="the database")
        topic.write(1, b"lost 1", b"lost 2")
        topic.wait_values(b"kept", b"lost 1", b"lost 2")
        standby.take_over()
        topic.wait_values(b"kept")
        for node_id in (1, 2):
            assert topic.read(node_id).end == 1
            assert topic.fetch(node_id, 3).error is ErrorCode.OFFSET_OUT_OF_RANGE
            wait_until(lambda n=node_id: LOST in cluster.brokers[n].log_text, what="a line in the log")  # type: ignore[misc]
        topic.write(2, b"new")
        topic.wait_values(b"kept", b"new")


def test_brokers_agree_on_offsets_that_were_given_again_while_one_of_them_slept(
    tmp_path: Path, postgres: Postgres, postgres_url: str, unique_name: Callable[[], str]
) -> None:
    """When it wakes up, the end of the log is where it was, and beyond: only the objects tell."""
    with linked_cluster(tmp_path, postgres_url) as (cluster, link):
        topic = create(cluster, unique_name())
        topic.write(1, b"kept")
        standby = Copy(postgres, postgres_url, link)
        wait_until(lambda: topic.end(1) is ErrorCode.NONE, within=SECONDS, what="the database")
        topic.write(2, b"lost 1", b"lost 2")
        topic.wait_values(b"kept", b"lost 1", b"lost 2")
        pid = cluster.brokers[2].pid
        os.kill(pid, signal.SIGSTOP)
        try:
            standby.take_over()
            wait_until(lambda: topic.end(1) is ErrorCode.NONE, within=SECONDS, what="the database")
            topic.write(1, b"new 1", b"new 2", b"new 3")
        finally:
            os.kill(pid, signal.SIGCONT)
        topic.wait_values(b"kept", b"new 1", b"new 2", b"new 3")
        for broker in cluster.brokers.values():
            wait_until(lambda b=broker: LOST in b.log_text, what="a line in the log")  # type: ignore[misc]
