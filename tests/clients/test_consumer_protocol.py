"""The consumer protocol of KIP-848 with a real client: members come and go, and no record is missed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, ConsumerGroupType, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.broker import Broker, broker_for_clients, running_broker
from tests.clients.conftest import TopicMaker
from tests.clients.test_groups import (
    PARTITIONS,
    WAIT_SECONDS,
    Member,
    committed,
    member,
    shared_out,
    wait_consumed,
    write,
)
from tests.waiting import wait_until

# Quick heartbeats and short sessions; Kafka's defaults are ten times as long.
SETTINGS = {
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "1000",
}
CONSUMER = {"group_protocol": "consumer"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker_for_clients(tmp_path_factory.mktemp("consumer") / "data", SETTINGS) as running:
        yield running


def consumer(broker: Broker, group: str, topic: str, **settings: Any) -> Any:
    return member(broker.bootstrap, group, topic, **CONSUMER, **settings)


# A process of its own, which can be killed: it never leaves the group.
_CONSUMER = """
import sys
from confluent_kafka import Consumer
bootstrap, group, topic = sys.argv[1:]
consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": "consumer"})
consumer.subscribe([topic])
while True:
    consumer.poll(1.0)
"""


@contextmanager
def dying_consumer(broker: Broker, group: str, topic: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", _CONSUMER, broker.bootstrap, group, topic]) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_nobody_misses_a_record_while_consumers_come_and_go(
    broker: Broker, new_topic: TopicMaker, unique_name: Callable[[], str], admin: AdminClient, assignor: str
) -> None:
    topic, group = new_topic(PARTITIONS), unique_name()
    how = {"group_remote_assignor": assignor}
    written = write(broker, topic, 50)
    with ExitStack() as stack:
        first = stack.enter_context(consumer(broker, group, topic, **how))
        wait_until(lambda: shared_out(first), within=WAIT_SECONDS, what="the first member to have everything")
        second = stack.enter_context(consumer(broker, group, topic, **how))
        third = stack.enter_context(consumer(broker, group, topic, **how))
        written |= write(broker, topic, 50)
        wait_until(lambda: shared_out(first, second, third), within=WAIT_SECONDS, what="three members")
        second.stop()
        written |= write(broker, topic, 50)
        wait_until(lambda: shared_out(first, third), within=WAIT_SECONDS, what="two members")
        wait_consumed(written, [first, second, third])
        ends = {partition: 150 for partition in range(PARTITIONS)}
        wait_until(lambda: committed(admin, group) == ends, within=WAIT_SECONDS, what="all offsets committed")


def test_a_consumer_that_dies_is_missed(
    broker: Broker, new_topic: TopicMaker, unique_name: Callable[[], str], admin: AdminClient
) -> None:
    """It does not leave: its session has to end."""
    topic, group = new_topic(PARTITIONS), unique_name()
    with consumer(broker, group, topic) as stays, dying_consumer(broker, group, topic) as dies:
        wait_until(lambda: len(stays.assigned) == PARTITIONS // 2, within=WAIT_SECONDS, what="two members")
        dies.kill()
        written = write(broker, topic, 10)
        wait_consumed(written, [stays])
        assert shared_out(stays)


@pytest.mark.parametrize("is_clean", [True, False], ids=["stopped", "killed"])
def test_consumers_survive_a_restart_of_the_broker(tmp_path_factory: pytest.TempPathFactory, is_clean: bool) -> None:
    times = {**SETTINGS, "group.consumer.session.timeout.ms": "30000"}
    with running_broker(tmp_path_factory.mktemp("restart") / "data", times) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        topic, group = "numbers", "survivors"
        admin.create_topics([NewTopic(topic, num_partitions=PARTITIONS, replication_factor=1)])[topic].result(30)
        written = write(broker, topic, 100)
        with consumer(broker, group, topic) as first, consumer(broker, group, topic) as second:
            wait_until(lambda: shared_out(first, second), within=WAIT_SECONDS, what="two members")
            wait_consumed(written, [first, second])
            ends = {partition: 100 for partition in range(PARTITIONS)}
            wait_until(lambda: committed(admin, group) == ends, within=WAIT_SECONDS, what="all offsets committed")
            events = (list(first.events), list(second.events))
            if is_clean:
                broker.stop()
            else:
                broker.kill()
            broker.start()
            assert committed(AdminClient({"bootstrap.servers": broker.bootstrap}), group) == ends
            more = write(broker, topic, 100)
            wait_consumed(more, [first, second])
            assert (first.events, second.events) == events, "the members have not noticed"
            assert len(first.seen()) + len(second.seen()) == len(written) + len(more)


def test_a_static_consumer_comes_back_to_its_partitions(
    broker: Broker, new_topic: TopicMaker, unique_name: Callable[[], str]
) -> None:
    topic, group = new_topic(PARTITIONS), unique_name()
    with consumer(broker, group, topic, group_instance_id="a") as stays:
        with consumer(broker, group, topic, group_instance_id="b") as leaves:
            wait_until(lambda: shared_out(stays, leaves), within=WAIT_SECONDS, what="two members")
            before = set(leaves.assigned)
        events = list(stays.events)
        with consumer(broker, group, topic, group_instance_id="b") as returns:
            wait_until(lambda: returns.assigned == before, within=WAIT_SECONDS, what="the same partitions again")
            assert stays.events == events, "the other member has not noticed"


def test_an_instance_id_that_is_in_use_is_refused(
    broker: Broker, new_topic: TopicMaker, unique_name: Callable[[], str]
) -> None:
    topic, group = new_topic(PARTITIONS), unique_name()
    with consumer(broker, group, topic, group_instance_id="a") as first:
        wait_until(lambda: shared_out(first), within=WAIT_SECONDS, what="the first one")
        second = Member(broker.bootstrap, group, topic, **CONSUMER, group_instance_id="a")
        second.start()
        wait_until(lambda: second.failure is not None, within=WAIT_SECONDS, what="the second one to be refused")
        assert isinstance(second.failure, KafkaException)
        assert shared_out(first)


def test_a_regular_expression_follows_the_topics(
    broker: Broker, admin: AdminClient, unique_name: Callable[[], str]
) -> None:
    name, group = unique_name(), unique_name()

    def create(topic: str) -> None:
        admin.create_topics([NewTopic(topic, num_partitions=PARTITIONS, replication_factor=1)])[topic].result(30)

    create(f"{name}-1")
    with consumer(broker, group, f"^{name}-[0-9]+") as only:
        wait_until(lambda: shared_out(only), within=WAIT_SECONDS, what="the topic that matches")
        create(f"{name}-x")
        create(f"{name}-2")
        written = write(broker, f"{name}-2", 10)
        wait_consumed(written, [only])


def test_an_expression_that_re2_does_not_know(broker: Broker, unique_name: Callable[[], str]) -> None:
    wrong = Member(broker.bootstrap, unique_name(), r"^(a)\1", **CONSUMER)
    wrong.start()
    wait_until(lambda: wrong.failure is not None, within=WAIT_SECONDS, what="the refusal")
    assert isinstance(wrong.failure, KafkaException)


def test_consumer_groups_as_administrators_see_them(
    broker: Broker, new_topic: TopicMaker, unique_name: Callable[[], str], admin: AdminClient
) -> None:
    topic, group = new_topic(PARTITIONS), unique_name()
    with consumer(broker, group, topic, client_id="someone") as only:
        wait_until(lambda: shared_out(only), within=WAIT_SECONDS, what="the member")
        described = admin.describe_consumer_groups([group])[group].result(30)
        assert (described.state.name, described.type) == ("STABLE", ConsumerGroupType.CONSUMER)
        assert described.partition_assignor == "uniform"
        (row,) = described.members
        assert (row.client_id, row.host) == ("someone", "/127.0.0.1")
        for assignment in (row.assignment, row.target_assignment):
            assert sorted(p.partition for p in assignment.topic_partitions) == list(range(PARTITIONS))
        with pytest.raises(KafkaException) as refused:
            admin.delete_consumer_groups([group])[group].result(30)
        assert refused.value.args[0].code() == KafkaError.NON_EMPTY_GROUP
        wanted = [TopicPartition(topic, 0, 5)]
        altered = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, wanted)])[group].result(30)
        assert [row.error.code() for row in altered.topic_partitions] == [KafkaError.UNKNOWN_MEMBER_ID]
        listed = admin.list_consumer_groups(types={ConsumerGroupType.CONSUMER}).result(30).valid
        assert [row.state.name for row in listed if row.group_id == group] == ["STABLE"]
        classic = admin.list_consumer_groups(types={ConsumerGroupType.CLASSIC}).result(30).valid
        assert group not in [row.group_id for row in classic]
    described = admin.describe_consumer_groups([group])[group].result(30)
    assert (described.state.name, described.type) == ("EMPTY", ConsumerGroupType.CONSUMER)
    admin.delete_consumer_groups([group])[group].result(30)
    assert group not in [row.group_id for row in admin.list_consumer_groups().result(30).valid]


@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
def test_a_group_moves_to_the_consumer_protocol_and_back(
    broker: Broker, new_topic: TopicMaker, unique_name: Callable[[], str], admin: AdminClient, strategy: str
) -> None:
    """One member after the other is exchanged, as in a rolling upgrade, and nobody misses a record."""
    topic, group = new_topic(PARTITIONS), unique_name()
    how = {"partition_assignment_strategy": strategy}

    def kind() -> str:
        return str(admin.describe_consumer_groups([group])[group].result(30).type.name)

    everybody: list[Member] = []

    def start(stack: ExitStack, **settings: Any) -> Member:
        everybody.append(stack.enter_context(member(broker.bootstrap, group, topic, **settings)))
        return everybody[-1]

    written = write(broker, topic, 20)
    with ExitStack() as stack:
        old = [start(stack, **how), start(stack, **how)]
        wait_until(lambda: shared_out(*old), within=WAIT_SECONDS, what="two classic members")
        assert kind() == "CLASSIC"
        new = [start(stack, **CONSUMER)]
        wait_until(lambda: shared_out(*old, *new), within=WAIT_SECONDS, what="members of both protocols")
        assert kind() == "CONSUMER"
        written |= write(broker, topic, 20)
        old[0].stop()
        new.append(start(stack, **CONSUMER))
        wait_until(lambda: shared_out(old[1], *new), within=WAIT_SECONDS, what="one classic member")
        old[1].stop()
        wait_until(lambda: shared_out(*new), within=WAIT_SECONDS, what="consumers only")
        written |= write(broker, topic, 20)
        old = [start(stack, **how)]
        wait_until(lambda: shared_out(*old, *new), within=WAIT_SECONDS, what="a classic member again")
        new[0].stop()
        wait_until(lambda: shared_out(*old, new[1]), within=WAIT_SECONDS, what="one consumer")
        assert kind() == "CONSUMER"
        new[1].stop()
        wait_until(lambda: shared_out(*old), within=WAIT_SECONDS, what="classic members only")
        assert kind() == "CLASSIC"
        written |= write(broker, topic, 20)
        wait_consumed(written, everybody)
        ends = {partition: 80 for partition in range(PARTITIONS)}
        wait_until(lambda: committed(admin, group) == ends, within=WAIT_SECONDS, what="all offsets committed")


def test_a_group_whose_assignor_has_data_of_its_own_stays_classic(
    broker: Broker, new_topic: TopicMaker, unique_name: Callable[[], str]
) -> None:
    """librdkafka's cooperative-sticky assignor keeps data in its assignments from the second rebalance on."""
    topic, group = new_topic(PARTITIONS), unique_name()
    how = {"partition_assignment_strategy": "cooperative-sticky"}
    with member(broker.bootstrap, group, topic, **how) as first:
        wait_until(lambda: shared_out(first), within=WAIT_SECONDS, what="the first member")
        with member(broker.bootstrap, group, topic, **how) as second:
            wait_until(lambda: shared_out(first, second), within=WAIT_SECONDS, what="two members")
            refused = Member(broker.bootstrap, group, topic, **CONSUMER)
            refused.start()
            wait_until(lambda: refused.failure is not None, within=WAIT_SECONDS, what="the refusal")
            assert "The group id does not exist" in str(refused.failure)
            wait_consumed(write(broker, topic, 10), [first, second])
            assert shared_out(first, second)
