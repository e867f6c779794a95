"""Consumer groups with real clients: members come and go, the broker restarts, and no record is missed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import aiokafka
import kafka
import pytest
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AioRangeAssignor
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka.coordinator.assignors.range import RangePartitionAssignor

from tests.broker import Broker, running_broker
from tests.clients.conftest import TopicMaker
from tests.waiting import wait_until

PARTITIONS = 6
WAIT_SECONDS = 40.0


class Member(threading.Thread):
    """A confluent-kafka consumer in a thread of its own, which commits after every poll that gave records."""

    def __init__(self, bootstrap: str, group: str, topic: str, **settings: Any) -> None:
        super().__init__(daemon=True)
        is_classic = settings.get("group_protocol", "classic") == "classic"
        times = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 300} if is_classic else {}  # else the broker's
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **times,
                "topic.metadata.refresh.interval.ms": 500,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        self._topic = topic
        self._stop_asked = threading.Event()
        self._close_on_stop = True
        self._lock = threading.Lock()
        self.records: set[tuple[int, int]] = set()
        self.assigned: set[int] = set()
        self.events: list[tuple[str, tuple[int, ...]]] = []
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            self._consumer.subscribe([self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke)
            while not self._stop_asked.is_set():
                self._poll()
        except Exception as error:  # noqa: BLE001 - shown by the test that asks for it
            self.failure = error
        finally:
            self._consumer.close()

    def _poll(self) -> None:
        messages = self._consumer.consume(100, timeout=0.1)
        for message in messages:
            error = message.error()
            if error is not None:
                if error.retriable() or error.code() == KafkaError._ALL_BROKERS_DOWN:
                    continue
                raise KafkaException(error)
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            with self._lock:
                self.records.add((partition, offset))
        if messages:
            self._commit()

    def _commit(self) -> None:
        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as error:
            # A rebalance or restart got in between: the records come again, to the member that has the partition then.
            code = error.args[0]
            if code.fatal():
                raise

    def _on_assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        numbers = tuple(sorted(partition.partition for partition in partitions))
        with self._lock:
            self.events.append(("assign", numbers))
            self.assigned |= set(numbers)

    def _on_revoke(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        numbers = tuple(sorted(partition.partition for partition in partitions))
        with self._lock:
            self.events.append(("revoke", numbers))
            self.assigned -= set(numbers)

    def seen(self) -> set[tuple[int, int]]:
        with self._lock:
            return set(self.records)

    def stop(self) -> None:
        self._stop_asked.set()
        self.join(WAIT_SECONDS)
        assert not self.is_alive(), "a consumer did not close in time"
        assert self.failure is None, self.failure


@contextmanager
def member(bootstrap: str, group: str, topic: str, **settings: Any) -> Iterator[Member]:
    consumer = Member(bootstrap, group, topic, **settings)
    consumer.start()
    try:
        yield consumer
    finally:
        consumer.stop()


def shared_out(*members: Member) -> bool:
    """Whether the members have every partition once, and each has some."""
    numbers = [number for member in members for number in member.assigned]
    return sorted(numbers) == list(range(PARTITIONS)) and all(member.assigned for member in members)


def write(broker: Broker, topic: str, count: int) -> set[tuple[int, int]]:
    """Write records to every partition; where they are."""
    written: set[tuple[int, int]] = set()
    errors: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if error is not None or partition is None or offset is None:
            errors.append(error or KafkaError(KafkaError.UNKNOWN))
        else:
            written.add((partition, offset))

    # One for all partitions: librdkafka often waits half a second before it asks for the id of a new producer.
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for partition in range(PARTITIONS):
        for at in range(count):
            producer.produce(topic, f"{partition}-{at}".encode(), partition=partition, on_delivery=on_delivery)
    assert (producer.flush(WAIT_SECONDS), errors) == (0, [])
    assert len(written) == count * PARTITIONS
    return written


def wait_consumed(written: set[tuple[int, int]], members: list[Member]) -> None:
    wait_until(
        lambda: written <= set().union(*(member.seen() for member in members)),
        within=WAIT_SECONDS,
        what=f"{len(written)} records",
    )


def committed(admin: AdminClient, group: str) -> dict[int, int]:
    (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    return {row.partition: row.offset for row in future.result(30).topic_partitions}


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_nobody_misses_a_record_while_members_come_and_go(
    broker: Broker, new_topic: TopicMaker, unique_name: Callable[[], str], admin: AdminClient, strategy: str
) -> None:
    topic, group = new_topic(PARTITIONS), unique_name()
    how = {"partition_assignment_strategy": strategy}
    written = write(broker, topic, 50)
    with ExitStack() as stack:
        first = stack.enter_context(member(broker.bootstrap, group, topic, **how))
        wait_until(lambda: shared_out(first), within=WAIT_SECONDS, what="the first member to have everything")
        second = stack.enter_context(member(broker.bootstrap, group, topic, **how))
        third = stack.enter_context(member(broker.bootstrap, group, topic, **how))
        written |= write(broker, topic, 50)
        wait_until(lambda: shared_out(first, second, third), within=WAIT_SECONDS, what="three members")
        second.stop()
        written |= write(broker, topic, 50)
        wait_until(lambda: shared_out(first, third), within=WAIT_SECONDS, what="two members")
        wait_consumed(written, [first, second, third])
        ends = {partition: 150 for partition in range(PARTITIONS)}
        wait_until(lambda: committed(admin, group) == ends, within=WAIT_SECONDS, what="all offsets committed")


def test_a_cooperative_member_keeps_what_it_may_keep(
    broker: Broker, new_topic: TopicMaker, unique_name: Callable[[], str]
) -> None:
    topic, group = new_topic(PARTITIONS), unique_name()
    how = {"partition_assignment_strategy": "cooperative-sticky"}
    with member(broker.bootstrap, group, topic, **how) as first:
        wait_until(lambda: shared_out(first), within=WAIT_SECONDS, what="the first member to have everything")
        with member(broker.bootstrap, group, topic, **how) as second:
            wait_until(lambda: shared_out(first, second), within=WAIT_SECONDS, what="two members")
            revoked = [number for kind, numbers in first.events if kind == "revoke" for number in numbers]
            assert sorted(revoked) == sorted(second.assigned)


def test_a_static_member_comes_back_to_its_partitions(
    broker: Broker, new_topic: TopicMaker, unique_name: Callable[[], str]
) -> None:
    topic, group = new_topic(PARTITIONS), unique_name()

    def static(name: str) -> Any:
        return member(broker.bootstrap, group, topic, group_instance_id=name, session_timeout_ms=20_000)

    with static("a") as stays:
        with static("b") as leaves:
            wait_until(lambda: shared_out(stays, leaves), within=WAIT_SECONDS, what="two members")
            before = set(leaves.assigned)
        events = list(stays.events)
        with static("b") as returns:
            wait_until(lambda: returns.assigned == before, within=WAIT_SECONDS, what="the same partitions again")
            assert stays.events == events  # the other member has not noticed


def test_a_second_process_with_the_same_instance_id_fences_the_first(
    broker: Broker, new_topic: TopicMaker, unique_name: Callable[[], str]
) -> None:
    topic, group = new_topic(PARTITIONS), unique_name()
    first = Member(broker.bootstrap, group, topic, group_instance_id="a")
    first.start()
    wait_until(lambda: shared_out(first), within=WAIT_SECONDS, what="the first one")
    with member(broker.bootstrap, group, topic, group_instance_id="a") as second:
        wait_until(lambda: shared_out(second), within=WAIT_SECONDS, what="the second one")
        wait_until(lambda: first.failure is not None, within=WAIT_SECONDS, what="the first one to be fenced")
        first.join(WAIT_SECONDS)
        assert isinstance(first.failure, KafkaException)
        assert first.failure.args[0].code() == KafkaError._FATAL


@pytest.mark.parametrize("is_clean", [True, False], ids=["stopped", "killed"])
def test_groups_survive_a_restart_of_the_broker(tmp_path_factory: pytest.TempPathFactory, is_clean: bool) -> None:
    with running_broker(tmp_path_factory.mktemp("restart") / "data") as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        topic, group = "numbers", "survivors"
        admin.create_topics([NewTopic(topic, num_partitions=PARTITIONS, replication_factor=1)])[topic].result(30)
        written = write(broker, topic, 100)
        with (
            member(broker.bootstrap, group, topic, session_timeout_ms=30_000) as first,
            member(broker.bootstrap, group, topic, session_timeout_ms=30_000) as second,
        ):
            wait_until(lambda: shared_out(first, second), within=WAIT_SECONDS, what="two members")
            wait_consumed(written, [first, second])
            ends = {partition: 100 for partition in range(PARTITIONS)}
            wait_until(lambda: committed(admin, group) == ends, within=WAIT_SECONDS, what="all offsets committed")
            if is_clean:
                broker.stop()
            else:
                broker.kill()
            broker.start()
            # librdkafka 2.16 loses an admin request that it sends while it replaces its broker handles after an outage.
            fresh_admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            assert committed(fresh_admin, group) == ends
            more = write(broker, topic, 100)
            wait_consumed(more, [first, second])
            seen = len(first.seen()) + len(second.seen())
            assert seen == len(written) + len(more)  # committed records did not come again
            assert shared_out(first, second)


def test_offsets_are_administered(
    broker: Broker, new_topic: TopicMaker, unique_name: Callable[[], str], admin: AdminClient
) -> None:
    topic, group = new_topic(PARTITIONS), unique_name()
    wanted = [TopicPartition(topic, 0, 5), TopicPartition(topic, 1, 7)]
    admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, wanted)])[group].result(30)
    assert committed(admin, group) == {0: 5, 1: 7}
    listed = admin.list_consumer_groups().result(30).valid
    assert group in [row.group_id for row in listed]
    admin.delete_consumer_groups([group])[group].result(30)
    assert committed(admin, group) == {}
    with pytest.raises(KafkaException) as refused:
        admin.delete_consumer_groups([group])[group].result(30)
    assert refused.value.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND


def test_a_group_in_use_is_described_and_not_deleted(
    broker: Broker, new_topic: TopicMaker, unique_name: Callable[[], str], admin: AdminClient
) -> None:
    topic, group = new_topic(PARTITIONS), unique_name()
    with member(broker.bootstrap, group, topic, client_id="someone") as only:
        wait_until(lambda: shared_out(only), within=WAIT_SECONDS, what="the member")
        described = admin.describe_consumer_groups([group])[group].result(30)
        assert described.state.name == "STABLE"
        (row,) = described.members
        assert (row.client_id, row.host) == ("someone", "/127.0.0.1")
        assert sorted(p.partition for p in row.assignment.topic_partitions) == list(range(PARTITIONS))
        with pytest.raises(KafkaException) as refused:
            admin.delete_consumer_groups([group])[group].result(30)
        assert refused.value.args[0].code() == KafkaError.NON_EMPTY_GROUP
        wanted = [TopicPartition(topic, 0, 5)]
        altered = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, wanted)])[group].result(30)
        assert [row.error.code() for row in altered.topic_partitions] == [KafkaError.UNKNOWN_MEMBER_ID]


# Other clients


def kafka_python_consumer(broker: Broker, group: str, topic: str) -> kafka.KafkaConsumer:
    """A member that knows its topic before it joins. One that learns of it afterwards joins again, and if another
    member comes at that moment, kafka-python 3.0.12 sometimes sends neither a heartbeat nor a JoinGroup any more."""
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=broker.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6000,
        heartbeat_interval_ms=300,
        partition_assignment_strategy=[RangePartitionAssignor],
    )
    assert len(consumer.partitions_for_topic(topic)) == PARTITIONS
    consumer.subscribe([topic])
    return consumer


def has_committed(consumer: kafka.KafkaConsumer) -> bool:
    """Commit what was polled. False while the group rebalances: then it has to be polled first, as the error says."""
    try:
        consumer.commit()
    except kafka.errors.RebalanceInProgressError:
        return False
    return True


def test_kafka_python_members_share_a_topic(
    broker: Broker, new_topic: TopicMaker, unique_name: Callable[[], str], admin: AdminClient
) -> None:
    """Each member has a thread that polls all the time, as each would in its own process.

    One thread that polled them in turn let each of them move only while the other stood still. Once, on a busy machine,
    one of them then joined again with each of its turns, for 92 generations, until the time was over.
    """
    topic, group = new_topic(PARTITIONS), unique_name()
    written = write(broker, topic, 20)
    seen: set[tuple[int, int]] = set()
    shares = [0, 0]
    is_over, have_committed = threading.Event(), set[int]()

    def live(number: int) -> None:
        with closing(kafka_python_consumer(broker, group, topic)) as consumer:
            try:
                while len(have_committed) < 2:  # until then both poll: neither rebalances without the other
                    for records in consumer.poll(timeout_ms=200).values():
                        seen.update((record.partition, record.offset) for record in records)
                    shares[number] = len(consumer.assignment())
                    if is_over.is_set() and has_committed(consumer):
                        have_committed.add(number)
            finally:
                have_committed.update((0, 1))  # the other one ends as well, should this one have failed

    with ThreadPoolExecutor(max_workers=2) as members:
        lives = [members.submit(live, number) for number in range(2)]
        try:
            wait_until(
                lambda: (seen >= written and shares == [3, 3]) or any(life.done() for life in lives),
                within=WAIT_SECONDS,
                what="all records, shared out between two",
            )
        finally:
            is_over.set()
        for life in lives:
            life.result(WAIT_SECONDS)
    assert committed(admin, group) == {partition: 20 for partition in range(PARTITIONS)}


async def test_aiokafka_members_share_a_topic(
    broker: Broker, new_topic: TopicMaker, unique_name: Callable[[], str], admin: AdminClient
) -> None:
    topic, group = new_topic(PARTITIONS), unique_name()
    written = write(broker, topic, 20)

    def consumer() -> aiokafka.AIOKafkaConsumer:
        return aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=broker.bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6000,
            heartbeat_interval_ms=300,
            partition_assignment_strategy=[AioRangeAssignor],
        )

    seen: set[tuple[int, int]] = set()

    async def poll(*members: aiokafka.AIOKafkaConsumer) -> None:
        for answer in await asyncio.gather(*(member.getmany(timeout_ms=100) for member in members)):
            for records in answer.values():
                seen.update((record.partition, record.offset) for record in records)

    first, second = consumer(), consumer()
    await asyncio.gather(first.start(), second.start())
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            while not (seen >= written and len(first.assignment()) == len(second.assignment()) == 3):
                await poll(first, second)
            await asyncio.gather(first.commit(), second.commit())
            await second.stop()
            while len(first.assignment()) != PARTITIONS:
                await poll(first)
    finally:
        await asyncio.gather(first.stop(), second.stop())
    assert committed(admin, group) == {partition: 20 for partition in range(PARTITIONS)}


def test_different_clients_can_be_in_one_group(
    broker: Broker, new_topic: TopicMaker, unique_name: Callable[[], str]
) -> None:
    topic, group = new_topic(PARTITIONS), unique_name()
    with member(broker.bootstrap, group, topic, partition_assignment_strategy="range") as one:
        wait_until(lambda: shared_out(one), within=WAIT_SECONDS, what="the first member")
        with closing(kafka_python_consumer(broker, group, topic)) as other:

            def joined() -> bool:
                other.poll(timeout_ms=100)
                numbers = {partition.partition for partition in other.assignment()} | one.assigned
                return len(other.assignment()) == 3 and numbers == set(range(PARTITIONS))

            wait_until(joined, within=WAIT_SECONDS, what="both clients to have three partitions")
        wait_until(lambda: shared_out(one), within=WAIT_SECONDS, what="the first member to have everything again")
