"""Transactions on diskless topics of two brokers: either takes any batch, and one of them writes the marker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strandline.wire.errors import ErrorCode
from tests.clients.split_transactions import PARTITIONS, Pair, SplitProducer, connected_pair
from tests.clients.transactions import TRANSACTION_SETTINGS
from tests.clients.two_brokers import SECONDS, BrokerCluster, running_cluster
from tests.postgres import start_postgres
from tests.waiting import wait_until
from tests.wirelevel.transactional import end_of, last_stable_offset, read_values

E = ErrorCode
DISKLESS = {"diskless.enable": "true"}
KINDS = pytest.mark.parametrize("is_new", [False, True], ids=["version-1", "version-2"])

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    directory = tmp_path_factory.mktemp("cluster")
    settings = {**TRANSACTION_SETTINGS, "strandline.objects.url": f"file://{directory}/objects"}
    with running_cluster(directory, start_postgres().new_database(), settings=settings) as running:
        yield running


def served_topic(pair: Pair) -> str:
    topic = pair.topic(DISKLESS)
    for client in pair.clients.values():
        wait_until(lambda at=client: end_of(at, topic) == 0, within=SECONDS, what="both to serve it")  # type: ignore[misc]
    return topic


def insist(producer: SplitProducer, topic: str, partition: int, value: bytes, *, via: int) -> None:
    wait_until(lambda: producer.write(topic, partition, value, via=via) is E.NONE, within=SECONDS)


def assert_seen_everywhere(pair: Pair, topic: str, expected: list[bytes], *, partitions: int = PARTITIONS) -> None:
    """Every broker has heard, or hears soon, of the markers; nothing is open."""
    for client in pair.clients.values():
        for number in range(partitions):
            assert last_stable_offset(client, topic, number) == end_of(client, topic, number)
            wait_until(
                lambda at=client, n=number: read_values(at, topic, n) == expected,  # type: ignore[misc]
                within=SECONDS,
                what=f"{expected}; there is {read_values(client, topic, number)}",
            )


@KINDS
@pytest.mark.parametrize("coordinator", [1, 2])
def test_one_transaction_through_both_brokers(cluster: BrokerCluster, is_new: bool, coordinator: int) -> None:
    with connected_pair(cluster) as pair:
        topic, producer = served_topic(pair), pair.producer(coordinator, is_new=is_new)
        for number, commit in enumerate((True, False, True)):
            if not is_new:
                everywhere = [(topic, at) for at in range(PARTITIONS)]
                wait_until(lambda at=everywhere: set(producer.raw.add(*at)) == {E.NONE}, within=SECONDS)  # type: ignore[misc]
            for partition in range(PARTITIONS):
                for via in (1, 2, 2, 1):
                    insist(producer, topic, partition, b"%d" % number, via=via)
            for client in pair.clients.values():
                assert last_stable_offset(client, topic) < end_of(client, topic)
            assert producer.raw.end(commit=commit) is E.NONE
            producer.wait_state("CompleteCommit" if commit else "CompleteAbort")
        assert_seen_everywhere(pair, topic, [b"0"] * 4 + [b"2"] * 4)


@KINDS
def test_a_late_batch_is_refused_by_both_brokers(cluster: BrokerCluster, is_new: bool) -> None:
    """Whichever of them has written the marker, and whatever the other one remembers."""
    with connected_pair(cluster) as pair:
        topic, producer = served_topic(pair), pair.producer(1, is_new=is_new)
        if not is_new:
            assert producer.raw.add((topic, 0)) == [E.NONE]
        for via in (1, 2):
            insist(producer, topic, 0, b"x", via=via)
        assert producer.raw.end(commit=True, keeps_epoch=True) is E.NONE
        producer.wait_state("CompleteCommit")
        for via in (1, 2):
            code = producer.write(topic, 0, b"late", via=via)
            assert code is (E.INVALID_PRODUCER_EPOCH if is_new else E.TRANSACTION_ABORTABLE)
        assert end_of(pair.clients[1], topic) == 3
        assert_seen_everywhere(pair, topic, [b"x", b"x"], partitions=1)


@KINDS
def test_a_broker_that_dies_with_a_transaction_open(cluster: BrokerCluster, is_new: bool) -> None:
    """The other one takes the rest of it, and the markers."""
    with connected_pair(cluster) as pair:
        topic, producer = served_topic(pair), pair.producer(1, is_new=is_new)
        if not is_new:
            assert set(producer.raw.add(*((topic, at) for at in range(PARTITIONS)))) == {E.NONE}
        for partition in range(PARTITIONS):
            insist(producer, topic, partition, b"0", via=2)
        cluster.brokers[2].kill()
        del pair.clients[2]
        for partition in range(PARTITIONS):
            insist(producer, topic, partition, b"1", via=1)
        assert producer.raw.end(commit=True) is E.NONE
        producer.wait_state("CompleteCommit")
        assert_seen_everywhere(pair, topic, [b"0", b"1"])
    cluster.brokers[2].start()
    cluster.wait_alive(1, 2)
    with connected_pair(cluster) as pair:
        assert_seen_everywhere(pair, topic, [b"0", b"1"])
