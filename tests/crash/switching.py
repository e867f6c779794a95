"""Switching topics from classic to diskless while brokers die and stores go away: what the tests of it share."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Collection, Sequence
from typing import Any

from confluent_kafka.admin import AdminClient

from tests.broker import BrokerProcess
from tests.clients.tiering import QUICK, alter, create
from tests.crash.writers import Place, Writer, judge, read_all
from tests.waiting import wait_until

SECONDS = 60.0
TOPIC = "numbers"
PARTITIONS = 3
# Segments that fill within a second, so that there is something to copy before and after the switch.
HISTORY = {"remote.storage.enable": "true", "internal.segment.bytes": "20000"}
SETTINGS = {**QUICK, "inkless.produce.commit.interval.ms": "20"}
DONE = ("HYBRID", "DISKLESS_ONLY")


def administrator(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def create_history(broker: BrokerProcess, topic: str = TOPIC, *, partitions: int = PARTITIONS) -> AdminClient:
    """A tiered topic; its administrator."""
    admin = administrator(broker)
    create(admin, topic, HISTORY, partitions=partitions)
    return admin


def request_switch(broker: BrokerProcess, topic: str = TOPIC) -> None:
    alter(administrator(broker), topic, {"diskless.enable": "true"})


def migration(broker: BrokerProcess, topic: str = TOPIC) -> dict[str, Any] | None:
    """What the broker tells of the switch; None while it cannot tell."""
    try:
        with urllib.request.urlopen(f"{broker.http}/topics/{topic}/migration", timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return None


def partitions_of(broker: BrokerProcess, topic: str = TOPIC) -> list[dict[str, Any]]:
    found = migration(broker, topic)
    return [] if found is None else list(found["partitions"])


def boundaries(broker: BrokerProcess, topic: str = TOPIC) -> list[int]:
    """B0 of each partition; -1 where there is none."""
    return [partition["b0"] for partition in partitions_of(broker, topic)]


def problems(broker: BrokerProcess, topic: str = TOPIC) -> list[str]:
    return [partition["problem"] for partition in partitions_of(broker, topic) if partition["problem"]]


def wait_switched(broker: BrokerProcess, topic: str = TOPIC, *, states: Collection[str] = DONE) -> list[int]:
    """Wait until every partition of the topic is in one of these states; their boundaries."""
    last: list[dict[str, Any] | None] = [None]

    def is_done() -> bool:
        found = last[0] = migration(broker, topic)
        if found is None or not found["partitions"]:
            return False
        return all(partition["state"] in states and partition["b0"] >= 0 for partition in found["partitions"])

    try:
        wait_until(is_done, within=SECONDS, step=0.05)
    except AssertionError as error:
        raise AssertionError(f"{topic} does not become {' or '.join(states)}: {last[0]}") from error
    return boundaries(broker, topic)


def wait_bounded(broker: BrokerProcess, topic: str = TOPIC, *, partitions: int = PARTITIONS) -> list[int]:
    """Wait until every partition has its boundary; the boundaries."""

    def are_set() -> bool:
        found = boundaries(broker, topic)
        return len(found) == partitions and min(found) >= 0

    wait_until(are_set, within=SECONDS, what=f"the boundaries of {topic}")
    return boundaries(broker, topic)


def wait_stopped(broker: BrokerProcess) -> None:
    """Wait until the broker has suspended itself at a place that it was told to stop at."""

    def is_stopped() -> bool:
        assert broker.is_running, f"the broker has ended:\n{broker.log_text[-4000:]}"
        return _state(broker).startswith("T")

    wait_until(is_stopped, within=SECONDS, what="the broker to be suspended")


def _state(broker: BrokerProcess) -> str:
    answer = subprocess.run(["ps", "-o", "stat=", "-p", str(broker.pid)], check=True, capture_output=True, text=True)
    return answer.stdout.strip()


def stop_all(writers: Sequence[Writer]) -> None:
    for writer in writers:
        writer.stop()


def assert_one_log(writers: Sequence[Writer], found: dict[Place, str], partitions: int = PARTITIONS) -> None:
    """Every acknowledged record once, at its offset, in order; no offset missing; no producer saw an error."""
    assert [failure for writer in writers for failure in writer.failures] == []
    verdict = judge(writers, found)
    assert verdict.is_clean, str(verdict)
    for partition in range(partitions):
        offsets = sorted(place.offset for place in found if place.partition == partition)
        assert offsets == list(range(len(offsets)))


def assert_nothing_lost(broker: BrokerProcess, writers: Sequence[Writer], topic: str = TOPIC) -> dict[Place, str]:
    """Stop the writers, and compare what they were told with what a consumer reads from the beginning."""
    stop_all(writers)
    partitions = writers[0].partitions
    found = read_all(broker.bootstrap, topic, partitions)
    assert_one_log(writers, found, partitions)
    return found
