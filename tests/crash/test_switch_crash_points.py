"""The broker dies at each step of the switch of a topic to diskless. After the restart the switch ends by itself."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from strandline.clock import SystemChance, SystemClock
from strandline.crash import ENVIRONMENT_VARIABLE
from strandline.records import Record, build_batch
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker import BrokerProcess, running_broker
from tests.crash.switching import (
    PARTITIONS,
    SETTINGS,
    TOPIC,
    assert_nothing_lost,
    create_history,
    request_switch,
    wait_switched,
)
from tests.crash.writers import Writer, wait_for_more

SIGKILLED = -9
PRODUCERS = 20
BEFORE_ITS_REQUEST_IS_STORED = "controlplane.migration.requested"

pytestmark = pytest.mark.timeout(240)


def dies_at(broker: BrokerProcess, place: str) -> None:
    """Start the broker again so that it dies at a place, before or after it accepts connections."""
    broker.environment = {ENVIRONMENT_VARIABLE: place}
    broker.spawn()
    assert broker.wait() == SIGKILLED


@pytest.mark.parametrize(
    "place",
    [
        BEFORE_ITS_REQUEST_IS_STORED,
        "switch.before_seal",
        "switch.after_seal",
        "switch.at_rest",
        "switch.after_roll:2",
        "switch.after_flush",
        "controlplane.migration.before_commit",
        "controlplane.migration.after_commit",
        "switch.after_boundary",
        "switch.joined:2",
        "switch.before_prefix",
        "controlplane.migration.before_prefix_commit",
        "switch.after_prefix",
    ],
)
def test_death_at_a_step_of_the_switch(tmp_path: Path, start_writers: Callable[..., list[Writer]], place: str) -> None:
    """Idempotent producers write all the time; whoever requested the switch does not ask for it a second time."""
    with running_broker(tmp_path / "data", SETTINGS, environment={ENVIRONMENT_VARIABLE: place}) as broker:
        create_history(broker)
        writers = start_writers(broker.bootstrap, TOPIC, count=2, partitions=PARTITIONS, pause=0.001)
        wait_for_more(writers, 600)
        with suppress(KafkaException):  # it may die before it answers
            request_switch(broker)
        assert broker.wait() == SIGKILLED
        if place == "switch.after_flush":  # and once more when it has seen that nobody else sets the boundary
            dies_at(broker, "switch.claimed")
        broker.environment = {}
        broker.start()
        if place == BEFORE_ITS_REQUEST_IS_STORED:
            wait_for_more(writers, 100)
            request_switch(broker)
        found = wait_switched(broker)
        assert min(found) > 0
        wait_for_more(writers, 300)
        records = assert_nothing_lost(broker, writers)
        assert all(max(p.offset for p in records if p.partition == n) >= found[n] for n in range(PARTITIONS))
        assert "Traceback" not in broker.log_text


def test_kills_at_random_moments_while_several_topics_are_switched(
    tmp_path: Path, start_writers: Callable[..., list[Writer]]
) -> None:
    """Two topics at once, two behind them in the queue; the broker dies again and again before all are done."""
    settings = {**SETTINGS, "inkless.migration.parallel.topics": "2", "inkless.migration.segment.wait.ms": "0"}
    topics = [f"{TOPIC}-{number}" for number in range(4)]
    chance = SystemChance()
    with running_broker(tmp_path / "data", settings) as broker:
        writers: dict[str, list[Writer]] = {}
        for topic in topics:
            create_history(broker, topic, partitions=2)
            writers[topic] = start_writers(broker.bootstrap, topic, count=1, partitions=2, pause=0.003)
        for some in writers.values():
            wait_for_more(some, 150)
        for topic in topics:
            request_switch(broker, topic)
        for _ in range(4):
            wait_for_more(writers[topics[chance.below(4)]], 1 + chance.below(150))
            broker.kill()
            broker.start()
        for topic in topics:
            assert min(wait_switched(broker, topic)) > 0
        for topic, some in writers.items():
            wait_for_more(some, 50)
            assert_nothing_lost(broker, some, topic)
        assert "Traceback" not in broker.log_text


def test_every_producer_goes_on_where_it_was_after_a_death_at_the_boundary(tmp_path: Path) -> None:
    """Lesson 6: also those with one batch, and those that were silent. Each repeats its five newest batches, which get
    the offsets that they have, and then writes the next one."""
    place = "controlplane.migration.after_commit"
    with running_broker(tmp_path / "data", SETTINGS, environment={ENVIRONMENT_VARIABLE: place}) as broker:
        create_history(broker, partitions=1)
        written: dict[tuple[int, int], int] = {}
        with Client.connect("127.0.0.1", broker.port) as client:
            for number in range(PRODUCERS):
                request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
                producer_id = client.request(ApiKey.INIT_PRODUCER_ID, request).producer_id
                for sequence in range(1 + number % 7):
                    written[producer_id, sequence] = send(client, producer_id, sequence)
        with suppress(KafkaException):
            request_switch(broker)
        assert broker.wait() == SIGKILLED
        broker.environment = {}
        broker.start()
        (boundary,) = wait_switched(broker)
        assert boundary == len(written)
        newest = {producer_id: sequence for producer_id, sequence in written}
        with Client.connect("127.0.0.1", broker.port) as client:
            for (producer_id, sequence), offset in written.items():
                if sequence > newest[producer_id] - 5:
                    assert send(client, producer_id, sequence) == offset
            after = [send(client, producer_id, sequence + 1) for producer_id, sequence in newest.items()]
        assert after == list(range(boundary, boundary + PRODUCERS))


def send(client: Client, producer_id: int, sequence: int) -> int:
    """The offset of a batch of one record."""
    record = Record(0, SystemClock().now_ms(), None, f"{producer_id} {sequence} ".encode())
    batch = build_batch([record], producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
    data = PartitionProduceData(index=0, records=bytes(batch))
    request = ProduceRequest(
        acks=-1, timeout_ms=20_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])]
    )
    answer = client.request(ApiKey.PRODUCE, request, version=12).responses[0].partition_responses[0]
    assert ErrorCode(answer.error_code) is ErrorCode.NONE, answer.error_message
    return int(answer.base_offset)
