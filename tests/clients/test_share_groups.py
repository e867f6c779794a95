"""Share groups with the share consumer of librdkafka: queues of records, on classic and diskless topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import AcknowledgeType, Message, ShareConsumer

from tests.broker import TIERS, BrokerProcess, running_broker
from tests.clients.two_brokers import produce
from tests.waiting import wait_until
from tests.wirelevel.raw import connected, create_topic
from tests.wirelevel.share_member import connect, set_group_config

SECONDS = 60.0
PARTITIONS = 3
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "2",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.assignment.interval.ms": "0",
}


@pytest.fixture(scope="module", params=list(TIERS))
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    directory: Path = tmp_path_factory.mktemp("broker") / "data"
    with running_broker(directory, {**SETTINGS, **TIERS[request.param]}) as running:
        yield running


@pytest.fixture
def topic(broker: BrokerProcess, unique_name: Callable[[], str]) -> str:
    """A topic, and a group of the same name that begins with its first record."""
    name = unique_name()
    with connected(broker.bootstrap) as connection:
        create_topic(connection, name, partitions=PARTITIONS)
    with connect(broker.bootstrap) as client:
        set_group_config(client, name, share_auto_offset_reset="earliest")
    return name


def consumer_of(broker: BrokerProcess, group: str, **settings: object) -> ShareConsumer:
    consumer = ShareConsumer({"bootstrap.servers": broker.bootstrap, "group.id": group, **settings})
    consumer.subscribe([group])
    return consumer


def poll(consumer: ShareConsumer) -> list[Message]:
    messages = list(consumer.poll(0.5))
    assert [message.error() for message in messages] == [None] * len(messages)
    return messages


def test_two_consumers_share_the_records_of_all_partitions(broker: BrokerProcess, topic: str) -> None:
    values = [b"%d" % number for number in range(300)]
    produce(broker.bootstrap, topic, values, partitions=PARTITIONS)
    received: list[bytes] = []
    with closing(consumer_of(broker, topic)) as one, closing(consumer_of(broker, topic)) as other:

        def is_enough() -> bool:
            for consumer in (one, other):
                received.extend(message.value() or b"" for message in poll(consumer))
            return len(received) >= len(values)

        wait_until(is_enough, within=SECONDS, step=0.0, what="all records")
        for consumer in (one, other):
            assert all(error is None for error in consumer.commit_sync(SECONDS).values())
    assert sorted(received) == sorted(values), "each record went to one of them"
    with closing(consumer_of(broker, topic)) as late:
        produce(broker.bootstrap, topic, [b"last"], partitions=PARTITIONS)
        again = wait_until(lambda: poll(late), within=SECONDS, step=0.0, what="the next record")
        assert [message.value() for message in again] == [b"last"]


def test_records_are_released_rejected_and_accepted(broker: BrokerProcess, topic: str) -> None:
    produce(broker.bootstrap, topic, [b"%d" % number for number in range(9)], partitions=PARTITIONS)
    verdicts = {0: AcknowledgeType.ACCEPT, 1: AcknowledgeType.RELEASE, 2: AcknowledgeType.REJECT}
    seen: list[int] = []
    with closing(consumer_of(broker, topic, **{"share.acknowledgement.mode": "explicit"})) as consumer:

        def is_settled() -> bool:
            for message in poll(consumer):
                number = int(message.value() or b"")
                is_first = number not in seen
                seen.append(number)
                consumer.acknowledge(message, verdicts[number // 3] if is_first else AcknowledgeType.ACCEPT)
            assert all(error is None for error in consumer.commit_sync(SECONDS).values())
            return len(seen) >= 12

        wait_until(is_settled, within=SECONDS, step=0.0, what="all records, and three of them twice")
    assert sorted(seen) == [0, 1, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8]


def test_records_that_a_closed_consumer_did_not_settle_go_to_the_next(broker: BrokerProcess, topic: str) -> None:
    produce(broker.bootstrap, topic, [b"a", b"b", b"c"], partitions=PARTITIONS)
    with closing(consumer_of(broker, topic, **{"share.acknowledgement.mode": "explicit"})) as first:
        wait_until(lambda: poll(first), within=SECONDS, step=0.0, what="a record")
    found: set[bytes] = set()
    with closing(consumer_of(broker, topic)) as second:

        def has_all() -> bool:
            found.update(message.value() or b"" for message in poll(second))
            return len(found) == 3

        wait_until(has_all, within=SECONDS, step=0.0, what="all records")


def test_a_consumer_goes_on_when_the_broker_was_killed(broker: BrokerProcess, topic: str) -> None:
    values = [b"%d" % number for number in range(60)]
    settled: list[bytes] = []
    with closing(consumer_of(broker, topic, **{"share.acknowledgement.mode": "explicit"})) as consumer:
        produce(broker.bootstrap, topic, values[:30], partitions=PARTITIONS)

        def has(count: int) -> bool:
            held: dict[tuple[int | None, int | None], bytes] = {}
            for message in poll(consumer):
                consumer.acknowledge(message)
                held[message.partition(), message.offset()] = message.value() or b""
            answers = consumer.commit_sync(SECONDS)
            good = {partition.partition for partition, error in answers.items() if error is None}
            settled.extend(value for (partition, _), value in held.items() if partition in good)
            return len(settled) >= count

        wait_until(lambda: has(30), within=SECONDS, step=0.0, what="the first records")
        broker.kill()
        broker.start()
        produce(broker.bootstrap, topic, values[30:], partitions=PARTITIONS)
        wait_until(lambda: has(60), within=SECONDS, step=0.0, what="the other records")
    assert sorted(settled) == sorted(values), "what was settled before does not come again"
