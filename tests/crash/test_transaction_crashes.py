"""Broker and client die while a topic is copied exactly once: at the end every record is there once, and in order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from strandline.crash import ENVIRONMENT_VARIABLE
from strandline.wire.client import Client
from tests.broker import TIERS, BrokerProcess, running_broker
from tests.clients.switching import switch, wait_switched
from tests.clients.tiering import QUICK
from tests.clients.transactions import TRANSACTION_SETTINGS, client_of, read_topic
from tests.crash.copier import CopierProcess, Copy
from tests.waiting import wait_until
from tests.wirelevel.raw import connected, create_topic
from tests.wirelevel.transactional import (
    GROUP_COORDINATOR,
    RawTransactionalProducer,
    end_of,
    fetch_offset,
    last_stable_offset,
    open_producers,
    read_values,
    unfinished,
    wait_for_coordinator,
)

SECONDS = 60.0
SIGKILLED = -9
PARTITIONS = 3
PLACES = ("before_prepare", "after_prepare", "before_marker", "after_marker", "before_complete")
# In the middle of a transaction's markers: each has up to PARTITIONS of the target, and one of the offsets.
VISITS = {"before_marker": (5, 6, 8), "after_marker": (5, 6, 8)}


class CopiedTopic:
    """A broker, a source that grows, and a copier."""

    def __init__(self, broker: BrokerProcess, **configs: str) -> None:
        """`configs` are those of both topics."""
        self.broker = broker
        self.copier = CopierProcess(
            Copy(broker.bootstrap, "source", "target", PARTITIONS), broker.log_path.with_name("copier.log")
        )
        self.written: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        with connected(broker.bootstrap) as connection:
            for topic in ("source", "target"):
                create_topic(connection, topic, partitions=PARTITIONS, **configs)
        with client_of(broker.bootstrap) as client:
            wait_for_coordinator(client, "copier")
            wait_for_coordinator(client, "copier", kind=GROUP_COORDINATOR)

    def write(self, records: int) -> None:
        """More to copy."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "enable.idempotence": True})
        for number in range(records):
            values = self.written[number % PARTITIONS]
            values.append(b"%d" % len(values))
            producer.produce("source", value=values[-1], partition=number % PARTITIONS)
        assert producer.flush(SECONDS) == 0

    def copied(self, client: Client) -> int:
        """Records whose copy counts, by the offsets of the group."""
        self.copier.look_after()
        return sum(max(fetch_offset(client, "copier", "source", number)[1], 0) for number in range(PARTITIONS))

    def has_died(self) -> bool:
        """Whether the broker has; the copier goes on."""
        self.copier.look_after()
        return not self.broker.is_running

    def wait_for_more(self, records: int) -> None:
        with client_of(self.broker.bootstrap) as client:
            wanted = self.copied(client) + records
            wait_until(
                lambda: self.copied(client) >= wanted,
                within=SECONDS,
                what=f"{wanted} copies of {sum(map(len, self.written))}",
            )

    def judge(self) -> None:
        """Everything is copied once and in order, and nothing is left open."""
        total = sum(len(values) for values in self.written)
        with client_of(self.broker.bootstrap) as client:
            wait_until(lambda: self.copied(client) == total, within=SECONDS, what="the rest to be copied")
            self.copier.kill()
            wait_until(lambda: not unfinished(client), within=SECONDS, what="the last transaction to end")
            for number in range(PARTITIONS):
                assert open_producers(client, "target", number) == []
                assert last_stable_offset(client, "target", number) == end_of(client, "target", number)
                offset = fetch_offset(client, "copier", "source", number, stable=True)[1]
                assert offset == len(self.written[number])
        assert read_topic(self.broker.bootstrap, "target", partitions=PARTITIONS) == self.written


@pytest.fixture(params=["classic", pytest.param("diskless", marks=pytest.mark.long)])
def copied(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CopiedTopic]:
    with running_broker(tmp_path / "data", {**TRANSACTION_SETTINGS, **TIERS[request.param]}) as broker:
        world = CopiedTopic(broker)
        try:
            yield world
        finally:
            world.copier.kill()


def die_at(copied: CopiedTopic, place: str, *, of: str = "transactions") -> None:
    """Start the broker, which is dead, let it die at a place, and start it again."""
    copied.broker.environment = {ENVIRONMENT_VARIABLE: f"{of}.{place}"}
    copied.broker.start()
    wait_until(copied.has_died, within=SECONDS, what=place)
    assert copied.broker.wait() == SIGKILLED
    copied.broker.environment = {}


def test_the_broker_dies_at_every_step_of_the_coordinator(copied: CopiedTopic) -> None:
    copied.write(1500)
    copied.copier.start()
    copied.wait_for_more(25)
    copied.broker.kill()
    for place in PLACES:
        die_at(copied, f"{place}:{VISITS.get(place, (3,))[0]}")
    copied.broker.start()
    copied.judge()


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES)
def test_the_broker_dies_often_at_one_step(copied: CopiedTopic, place: str) -> None:
    copied.write(6000)
    copied.copier.start()
    copied.broker.kill()
    for visit in (1, 2, *VISITS.get(place, (3, 4, 5))):
        die_at(copied, f"{place}:{visit}")
    copied.broker.start()
    copied.judge()


def wait(seconds: float) -> None:
    """Let a moment pass that depends on nothing the processes do."""
    threading.Event().wait(seconds)


def test_the_client_dies_at_any_moment(copied: CopiedTopic) -> None:
    copied.write(900)
    copied.copier.start()
    for number in range(3):
        copied.write(300)  # however quick the copier is, there is more to copy
        copied.wait_for_more(60)
        wait(0.013 * number)
        copied.copier.kill()
    copied.judge()


@pytest.mark.long
def test_client_and_broker_die_at_any_moment(copied: CopiedTopic) -> None:
    copied.write(3000)
    copied.copier.start()
    for number in range(12):
        copied.write(300)  # however quick the copier is, there is more to copy
        copied.wait_for_more(60)
        wait(0.017 * (number % 5))
        if number % 3 != 1:
            copied.broker.kill()
        if number % 3 != 0:
            copied.copier.kill()
        if not copied.broker.is_running:
            copied.broker.start()
    copied.judge()


@pytest.mark.long
@pytest.mark.parametrize("is_killed", [False, True], ids=["alive", "killed"])
def test_both_topics_become_diskless_meanwhile(tmp_path: Path, is_killed: bool) -> None:
    """The switch waits for open transactions and keeps new ones out; the copier goes on after a while."""
    with running_broker(tmp_path / "data", {**TRANSACTION_SETTINGS, **QUICK}) as broker:
        copied = CopiedTopic(broker, remote_storage_enable="true")
        try:
            copied.write(6000)
            copied.copier.start()
            copied.wait_for_more(200)
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            for topic in ("target", "source"):
                switch(admin, topic)
                if is_killed:
                    copied.wait_for_more(25)
                    broker.kill()
                    broker.start()
                wait_switched(broker, topic)
                copied.write(300)
                copied.wait_for_more(200)
            copied.judge()
        finally:
            copied.copier.kill()


@pytest.mark.parametrize(
    ("tier", "is_new", "commit", "place"),
    [
        pytest.param("classic", False, True, "after_marker:140", marks=pytest.mark.long),
        ("classic", True, False, "before_marker:77"),
        pytest.param("classic", False, False, "before_marker:200", marks=pytest.mark.long),
        pytest.param("classic", True, True, "after_marker:1", marks=pytest.mark.long),
        pytest.param("diskless", True, True, "before_marker:120", marks=pytest.mark.long),
        pytest.param("diskless", False, False, "after_marker:60", marks=pytest.mark.long),
    ],
)
def test_the_broker_dies_while_many_partitions_wait_for_their_marker(
    tmp_path: Path, tier: str, is_new: bool, commit: bool, place: str
) -> None:
    partitions = 200
    environment = {ENVIRONMENT_VARIABLE: f"transactions.{place}"}
    settings = {**TRANSACTION_SETTINGS, **TIERS[tier]}
    with running_broker(tmp_path / "data", settings, environment=environment) as broker:
        with connected(broker.bootstrap) as connection:
            create_topic(connection, "wide", partitions=partitions)
        with client_of(broker.bootstrap) as client:
            wait_for_coordinator(client, "g", kind=GROUP_COORDINATOR)
            producer = RawTransactionalProducer(client, "t", is_new=is_new).initialised()
            if not is_new:
                producer.add(*(("wide", number) for number in range(partitions)))
                producer.add_group("g")
            for number in range(partitions):
                assert producer.write("wide", b"%d" % number, partition=number) == 0
            assert producer.commit_offset("g", "wide", 5) == 0
            assert producer.end(commit=commit) == 0
        assert broker.wait() == SIGKILLED
        broker.environment = {}
        broker.start()
        with client_of(broker.bootstrap) as client:
            wait_until(lambda: not unfinished(client), within=SECONDS, what="the markers")
            for number in range(partitions):
                assert open_producers(client, "wide", number) == []
                assert last_stable_offset(client, "wide", number) == end_of(client, "wide", number)
                assert read_values(client, "wide", number) == ([b"%d" % number] if commit else [])
            assert fetch_offset(client, "g", "wide", stable=True) == (0, 5 if commit else -1)
            again = RawTransactionalProducer(
                client, "t", is_new=is_new, producer_id=producer.producer_id, epoch=producer.epoch
            )
            if not is_new:
                assert again.add(("wide", 0)) == [0]
            assert again.write("wide", b"next", partition=0, sequence=0 if is_new else 1) == 0, "it goes on"
            assert again.end(commit=True) == 0
