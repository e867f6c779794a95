"""A broker is suspended in the middle of a transaction on a diskless topic, past its session, and then goes on.

Clients without `transaction.version` 2 keep their epoch from one transaction to the next: nothing in a batch or a
marker tells which of them it belongs to. The control plane knows by the time at which the transaction began.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from strandline.crash import ENVIRONMENT_VARIABLE
from strandline.wire.errors import ErrorCode
from tests.broker import BrokerProcess
from tests.clients.split_transactions import Pair, SplitProducer, connected_pair
from tests.clients.transactions import TRANSACTION_SETTINGS, client_of
from tests.clients.two_brokers import SECONDS, BrokerCluster, running_cluster
from tests.crash.switching import wait_stopped
from tests.postgres import postgres, postgres_url
from tests.waiting import wait_until
from tests.wirelevel.raw import batch, connected, produce
from tests.wirelevel.transactional import RawTransactionalProducer, end_of, last_stable_offset, read_values

__all__ = ["postgres", "postgres_url"]

E = ErrorCode
KINDS = pytest.mark.parametrize(
    "is_new", [False, pytest.param(True, marks=pytest.mark.long)], ids=["version-1", "version-2"]
)


@contextmanager
def cluster_stopping_at(place: str, directory: Path, url: str) -> Iterator[tuple[BrokerCluster, BrokerProcess]]:
    """Two brokers; the second one, which coordinates nothing here, suspends itself at a place."""
    settings = {**TRANSACTION_SETTINGS, "strandline.objects.url": f"file://{directory}/objects"}
    with running_cluster(directory, url, settings=settings) as cluster:
        second = cluster.brokers[2]
        second.stop()
        second.environment = {ENVIRONMENT_VARIABLE: f"stop@{place}"}
        second.start()
        cluster.wait_alive(1, 2)
        yield cluster, second


def begun(pair: Pair, *, is_new: bool) -> tuple[SplitProducer, str, int]:
    """A producer whose transaction has a partition that the second broker leads, and a record in it."""
    topic, producer = pair.topic({"diskless.enable": "true"}), pair.producer(1, is_new=is_new)
    for client in pair.clients.values():
        wait_until(lambda at=client: end_of(at, topic) == 0, within=SECONDS, what="both to serve it")  # type: ignore[misc]
    partition = pair.partition_on(topic, 2)
    go_on(producer, topic, partition, b"first")
    return producer, topic, partition


def go_on(producer: SplitProducer, topic: str, partition: int, value: bytes) -> None:
    """Another transaction, through the first broker."""
    if not producer.raw.is_new:
        wait_until(lambda: producer.raw.add((topic, partition)) == [E.NONE], within=SECONDS)
    wait_until(lambda: producer.write(topic, partition, value, via=1) is E.NONE, within=SECONDS)


def wake(broker: BrokerProcess, topic: str, partition: int) -> None:
    """Let it go on, and return when it has committed what it had before: a batch that comes now is behind that."""
    assert broker.process is not None
    broker.process.send_signal(signal.SIGCONT)
    with connected(broker.bootstrap) as connection:
        wait_until(
            lambda: produce(connection, topic, batch(b"outside"), partition=partition)[0] == E.NONE,
            within=SECONDS,
            what="the broker to write",
        )


def wait_seen(pair: Pair, topic: str, partition: int, expected: list[bytes]) -> None:
    """The first broker hears of what the other one has committed."""
    client = pair.clients[1]
    wait_until(
        lambda: read_values(client, topic, partition) == expected,
        within=SECONDS,
        what=f"{expected}; there is {read_values(client, topic, partition)}",
    )


@KINDS
def test_a_late_marker_does_not_end_the_next_transaction(tmp_path: Path, postgres_url: str, is_new: bool) -> None:
    with (
        cluster_stopping_at("transactions.before_marker", tmp_path, postgres_url) as (cluster, second),
        connected_pair(cluster) as pair,
    ):
        producer, topic, partition = begun(pair, is_new=is_new)
        assert producer.raw.end(commit=True) is E.NONE
        wait_stopped(second)
        producer.wait_state("CompleteCommit")
        go_on(producer, topic, partition, b"second")
        stable = last_stable_offset(pair.clients[1], topic, partition)
        wake(second, topic, partition)
        assert last_stable_offset(pair.clients[1], topic, partition) == stable, "the second transaction is open"
        assert producer.raw.end(commit=False) is E.NONE
        producer.wait_state("CompleteAbort")
        wait_seen(pair, topic, partition, [b"first", b"outside"])


@KINDS
def test_a_late_batch_opens_no_transaction(tmp_path: Path, postgres_url: str, is_new: bool) -> None:
    """It was given leave before the transaction was aborted, and is committed after the marker."""
    with (
        cluster_stopping_at("diskless.writer.before_commit", tmp_path, postgres_url) as (cluster, second),
        connected_pair(cluster) as pair,
        ThreadPoolExecutor(1) as threads,
        client_of(second.bootstrap) as own,
    ):
        producer, topic, partition = begun(pair, is_new=is_new)
        raw = producer.raw
        late = RawTransactionalProducer(
            own,
            raw.transactional_id,
            is_new=is_new,
            producer_id=raw.producer_id,
            epoch=raw.epoch,
            sequences=dict(raw.sequences),
        )
        written = threads.submit(late.write, topic, b"late", partition=partition)
        wait_stopped(second)
        assert raw.end(commit=False) is E.NONE
        producer.wait_state("CompleteAbort")
        wake(second, topic, partition)
        assert written.result(SECONDS) is (E.INVALID_PRODUCER_EPOCH if is_new else E.INVALID_TXN_STATE)
        assert last_stable_offset(pair.clients[1], topic, partition) == end_of(pair.clients[1], topic, partition)
        wait_seen(pair, topic, partition, [b"outside"])
