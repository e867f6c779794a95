"""Transactions whose coordinator and partitions are on different brokers, which die, pause, and lose topics."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from strandline.crash import ENVIRONMENT_VARIABLE
from strandline.wire.errors import ErrorCode
from tests.clients.split_transactions import PARTITIONS, assert_settled, connected_pair
from tests.clients.transactions import TRANSACTION_SETTINGS, read_topic, transactional_producer
from tests.clients.two_brokers import SECONDS, BrokerCluster, running_cluster
from tests.postgres import start_postgres
from tests.waiting import wait_until
from tests.wirelevel.transactional import (
    GROUP_COORDINATOR,
    RawTransactionalProducer,
    end_of,
    fetch_offset,
    last_stable_offset,
    open_producers,
    read_values,
    unfinished,
)

E = ErrorCode
KINDS = pytest.mark.parametrize("is_new", [False, True], ids=["version-1", "version-2"])


@pytest.fixture(scope="module")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    url = start_postgres().new_database()
    with running_cluster(tmp_path_factory.mktemp("cluster"), url, settings=TRANSACTION_SETTINGS) as running:
        yield running


@pytest.fixture
def cluster(shared_cluster: BrokerCluster) -> BrokerCluster:
    """With both brokers alive, whatever the test before has done to them."""
    shared_cluster.revive()
    return shared_cluster


@KINDS
@pytest.mark.parametrize("coordinator", [1, 2])
def test_a_transaction_over_both_brokers(cluster: BrokerCluster, is_new: bool, coordinator: int) -> None:
    with connected_pair(cluster) as pair:
        topic, producer = pair.topic(), pair.producer(coordinator, is_new=is_new)
        group = pair.name_on(3 - coordinator, kind=GROUP_COORDINATOR)
        elsewhere = pair.clients[3 - coordinator]
        for offset, commit in ((5, True), (9, False), (7, True)):
            producer.begin(topic, *range(PARTITIONS), value=b"%d" % offset)
            if not is_new:
                assert producer.raw.add_group(group) is E.NONE
            producer.raw.client = elsewhere
            assert producer.raw.commit_offset(group, topic, offset) is E.NONE
            assert fetch_offset(elsewhere, group, topic, stable=True)[0] is E.UNSTABLE_OFFSET_COMMIT
            producer.raw.client = pair.clients[coordinator]
            assert producer.raw.end(commit=commit) is E.NONE
            producer.wait_state("CompleteCommit" if commit else "CompleteAbort")
            assert fetch_offset(elsewhere, group, topic, stable=True) == (E.NONE, 5 if offset == 9 else offset)
        assert_settled(pair, topic, [b"5", b"7"])


def test_a_batch_that_was_not_announced_is_refused_by_the_other_broker(cluster: BrokerCluster) -> None:
    with connected_pair(cluster) as pair:
        topic, producer = pair.topic(), pair.producer(1)
        partition = pair.partition_on(topic, 2)
        assert producer.write(topic, partition, b"x") is E.TRANSACTION_ABORTABLE
        producer.begin(topic, partition)
        assert producer.raw.end(commit=True) is E.NONE
        producer.wait_state("CompleteCommit")
        assert producer.write(topic, partition, b"late") is E.TRANSACTION_ABORTABLE
        assert last_stable_offset(pair.clients[2], topic, partition) == end_of(pair.clients[2], topic, partition) == 2


def test_a_broker_that_does_not_coordinate_the_id_says_so(cluster: BrokerCluster) -> None:
    with connected_pair(cluster) as pair:
        topic, producer = pair.topic(), pair.producer(1)
        wrong = RawTransactionalProducer(
            pair.clients[2], producer.raw.transactional_id, producer_id=producer.raw.producer_id, epoch=0
        )
        assert wrong.init() is E.NOT_COORDINATOR
        assert wrong.add((topic, 0)) == [E.NOT_COORDINATOR]
        assert wrong.verify((topic, 0)) == [E.NOT_COORDINATOR]
        assert wrong.add_group("g") is E.NOT_COORDINATOR
        assert wrong.end(commit=True) is E.NOT_COORDINATOR
        assert wrong.state() == "NOT_COORDINATOR"
        group = pair.name_on(1, kind=GROUP_COORDINATOR)
        assert wrong.commit_offset(group, topic, 1) is E.NOT_COORDINATOR


def test_librdkafka_over_both_brokers(cluster: BrokerCluster) -> None:
    with connected_pair(cluster) as pair:
        topic = pair.topic()
        group = pair.name_on(1, kind=GROUP_COORDINATOR)
        producer = transactional_producer(cluster.bootstrap, pair.name_on(2))
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
        try:
            for number in range(6):
                producer.begin_transaction()
                for partition in range(PARTITIONS):
                    producer.produce(topic, value=b"%d" % number, partition=partition)
                offsets = [TopicPartition(topic, 0, number)]
                producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), SECONDS)
                if number % 3 == 1:
                    producer.flush(SECONDS)
                    producer.abort_transaction(SECONDS)
                else:
                    producer.commit_transaction(SECONDS)
        finally:
            consumer.close()
        wait_until(lambda: not any(unfinished(one) for one in pair.clients.values()), what="the markers")
        assert_settled(pair, topic, [b"0", b"2", b"3", b"5"])
        assert read_topic(cluster.bootstrap, topic, partitions=PARTITIONS) == [[b"0", b"2", b"3", b"5"]] * PARTITIONS
        assert fetch_offset(pair.clients[1], group, topic, stable=True) == (E.NONE, 5)


@KINDS
def test_a_leader_that_is_away_gets_its_markers_when_it_is_back(cluster: BrokerCluster, is_new: bool) -> None:
    """Transactions without a partition there do not wait."""
    with connected_pair(cluster) as pair:
        topic = pair.topic()
        producer, other = pair.producer(1, is_new=is_new), pair.producer(1, is_new=is_new)
        here = [n for n, leader in enumerate(cluster.leaders(topic, 1)) if leader == 1]
        producer.begin(topic, *range(PARTITIONS))
        other.begin(topic, *here, value=b"other")
        cluster.brokers[2].kill()
        assert producer.raw.end(commit=True) is E.NONE
        assert other.raw.end(commit=True) is E.NONE
        other.wait_state("CompleteCommit")
        for number in here:
            wait_until(lambda at=number: read_values(pair.clients[1], topic, at) == [b"x", b"other"])  # type: ignore[misc]
        cluster.wait_alive(1)
        assert producer.raw.state() == "PrepareCommit"
        assert producer.raw.init() is E.CONCURRENT_TRANSACTIONS
        cluster.brokers[2].start()
        producer.wait_state("CompleteCommit")
        cluster.wait_alive(1, 2)
    with connected_pair(cluster) as pair:
        for number in range(PARTITIONS):
            leader = pair.leader(topic, number)
            assert open_producers(leader, topic, number) == []
            assert last_stable_offset(leader, topic, number) == end_of(leader, topic, number)
            assert read_values(leader, topic, number)[0] == b"x"


@pytest.mark.long
@KINDS
@pytest.mark.parametrize("place", ["after_prepare", "before_complete", "before_prepare"])
def test_a_coordinator_that_dies_goes_on_when_it_is_back(cluster: BrokerCluster, is_new: bool, place: str) -> None:
    cluster.brokers[2].stop()
    cluster.brokers[2].environment = {ENVIRONMENT_VARIABLE: f"transactions.{place}"}
    cluster.brokers[2].start()
    cluster.wait_alive(1, 2)
    with connected_pair(cluster) as pair:
        topic, producer = pair.topic(), pair.producer(2, is_new=is_new)
        producer.begin(topic, *range(PARTITIONS))
        try:
            code = producer.raw.end(commit=True, keeps_epoch=True)
            assert code is E.NONE
            assert place == "before_complete"
        except ConnectionError:
            assert place != "before_complete"
        assert cluster.brokers[2].wait() == -9
    cluster.brokers[2].environment = {}
    cluster.brokers[2].start()
    cluster.wait_alive(1, 2)
    cluster.wait_led(topic, PARTITIONS)
    with connected_pair(cluster) as pair:
        producer.pair, producer.raw.client = pair, pair.clients[2]

        def is_ended() -> bool:
            ended = producer.raw.end(commit=True)
            assert ended in (E.NONE, E.CONCURRENT_TRANSACTIONS, E.COORDINATOR_LOAD_IN_PROGRESS, E.NOT_COORDINATOR)
            return ended is E.NONE

        wait_until(is_ended, within=SECONDS, what="the answer to a repeated EndTxn")
        producer.wait_state("CompleteCommit")
        assert_settled(pair, topic, [b"x"])


@pytest.mark.long
@KINDS
def test_a_coordinator_that_dies_aborts_what_times_out(cluster: BrokerCluster, is_new: bool) -> None:
    with connected_pair(cluster) as pair:
        topic, producer = pair.topic(), pair.producer(2, is_new=is_new, timeout_ms=8_000)
        producer.begin(topic, *range(PARTITIONS))
        cluster.brokers[2].kill()
        cluster.wait_alive(1)
        here = cluster.leaders(topic, 1).index(1)
        assert last_stable_offset(pair.clients[1], topic, here) == 0
    cluster.brokers[2].start()
    cluster.wait_alive(1, 2)
    cluster.wait_led(topic, PARTITIONS)
    with connected_pair(cluster) as pair:
        producer.pair, producer.raw.client = pair, pair.clients[2]
        producer.wait_state("CompleteAbort")
        assert_settled(pair, topic, [])
        assert producer.write(topic, 0, b"zombie") is E.INVALID_PRODUCER_EPOCH


@pytest.mark.long
@KINDS
@pytest.mark.parametrize("who", ["coordinator", "leader"])
def test_a_broker_that_pauses_past_its_session(cluster: BrokerCluster, is_new: bool, who: str) -> None:
    """The transaction is decided before or after the pause, and never both ways."""
    coordinator = 2 if who == "coordinator" else 1
    with connected_pair(cluster) as pair:
        topic = pair.topic()
        producer = pair.producer(coordinator, is_new=is_new, timeout_ms=4_000 if who == "coordinator" else 60_000)
        producer.begin(topic, *range(PARTITIONS))
        with cluster.brokers[2].suspended():
            if who == "leader":
                assert producer.raw.end(commit=True) is E.NONE
            wait_until(lambda: cluster.alive(1) == {1}, within=SECONDS, what="the paused broker to be fenced")
        cluster.wait_alive(1, 2)
        cluster.wait_led(topic, PARTITIONS)
        producer.wait_state("CompleteAbort" if who == "coordinator" else "CompleteCommit")
        assert_settled(pair, topic, [] if who == "coordinator" else [b"x"])


@pytest.mark.long
def test_nothing_overtakes_a_batch_whose_coordinator_did_not_answer(cluster: BrokerCluster) -> None:
    with connected_pair(cluster) as pair:
        topic, producer = pair.topic(), pair.producer(2)
        partition = pair.partition_on(topic, 1)
        assert producer.raw.add((topic, partition)) == [E.NONE]
        with cluster.brokers[2].suspended():
            assert producer.write(topic, partition, b"0") is E.NOT_ENOUGH_REPLICAS
        cluster.wait_alive(1, 2)
        producer.raw.sequences[topic, partition] = 1

        def refusal() -> ErrorCode | None:
            code = producer.write(topic, partition, b"1")
            return None if code is E.NOT_ENOUGH_REPLICAS else code

        assert wait_until(refusal, within=SECONDS) is E.OUT_OF_ORDER_SEQUENCE_NUMBER
        producer.raw.sequences[topic, partition] = 0
        assert [producer.write(topic, partition, b"%d" % number) for number in range(2)] == [E.NONE, E.NONE]
        assert producer.raw.end(commit=True) is E.NONE
        producer.wait_state("CompleteCommit")
        assert read_values(pair.clients[1], topic, partition) == [b"0", b"1"]


@KINDS
def test_a_topic_that_is_deleted_and_created_again_within_a_transaction(cluster: BrokerCluster, is_new: bool) -> None:
    with connected_pair(cluster) as pair:
        topic, lasting = pair.topic(), pair.topic()
        producer = pair.producer(1, is_new=is_new)
        producer.begin(topic, *range(PARTITIONS), value=b"gone")
        producer.begin(lasting, *range(PARTITIONS))
        cluster.admin(1).delete_topics([topic])[topic].result(SECONDS)
        wait_until(lambda: all(topic not in cluster.topics(node_id) for node_id in (1, 2)), within=SECONDS)
        cluster.create(topic, partitions=PARTITIONS, via=1)
        assert producer.raw.end(commit=True) is E.NONE
        producer.wait_state("CompleteCommit")
        assert_settled(pair, topic, [])
        assert_settled(pair, lasting, [b"x"])
        producer.raw.sequences = {(lasting, n): s for (t, n), s in producer.raw.sequences.items() if t == lasting}
        producer.begin(topic, *range(PARTITIONS), value=b"new")
        assert producer.raw.end(commit=True) is E.NONE
        producer.wait_state("CompleteCommit")
        assert_settled(pair, topic, [b"new"])


@pytest.mark.long
@KINDS
def test_a_topic_that_is_deleted_while_its_markers_wait(cluster: BrokerCluster, is_new: bool) -> None:
    with connected_pair(cluster) as pair:
        topic, producer = pair.topic(), pair.producer(1, is_new=is_new)
        producer.begin(topic, *range(PARTITIONS))
        cluster.brokers[2].kill()
        cluster.wait_alive(1)
        assert producer.raw.end(commit=False) is E.NONE
        assert producer.raw.state() == "PrepareAbort"
        cluster.admin(1).delete_topics([topic])[topic].result(SECONDS)
        producer.wait_state("CompleteAbort")
        cluster.create(topic, partitions=PARTITIONS, via=1)
        cluster.brokers[2].start()
        cluster.wait_alive(1, 2)
    with connected_pair(cluster) as pair:
        assert_settled(pair, topic, [])
