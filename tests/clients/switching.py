"""Topics that become diskless while a test looks: how to switch one, and what the broker tells of it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka.admin import AdminClient

from strandline.records import Record, build_batch
from tests.broker import BrokerProcess
from tests.clients.tiering import SECONDS, alter, create, kafka_admin, local_logs
from tests.moments import T0
from tests.waiting import wait_until

# One topic at a time: a topic whose switch cannot begin keeps all others waiting.
ONE_AT_A_TIME = {"inkless.migration.parallel.topics": "1"}
PRODUCER = 4711  # whose transactions are put into logs
MIGRATING, HYBRID, DISKLESS_ONLY = "MIGRATING", "HYBRID", "DISKLESS_ONLY"


def switch(admin: AdminClient, topic: str) -> None:
    """Ask for it, as `kafka-configs --alter` does. Raises KafkaException."""
    alter(admin, topic, {"diskless.enable": "true"})


def switch_all(admin: AdminClient, topics: Sequence[str]) -> None:
    """Ask for many at once, in this order. Raises KafkaException."""
    kind, set_to = kafka_admin.ConfigResource.Type.TOPIC, kafka_admin.AlterConfigOpType.SET
    flag = kafka_admin.ConfigEntry("diskless.enable", "true", incremental_operation=set_to)
    resources = [kafka_admin.ConfigResource(kind, topic, incremental_configs=[flag]) for topic in topics]
    untyped: Any = admin
    for future in untyped.incremental_alter_configs(resources).values():
        future.result(SECONDS)


def abort(admin: AdminClient, topic: str) -> None:
    """Take it back. Raises KafkaException."""
    alter(admin, topic, {"diskless.enable": "false"})


def status(broker: BrokerProcess, topic: str) -> dict[str, Any]:
    """What `strandline migration status TOPIC --json` prints."""

    def ask() -> dict[str, Any] | None:
        try:
            with urllib.request.urlopen(f"{broker.http}/topics/{topic}/migration", timeout=SECONDS) as answer:
                found: dict[str, Any] = json.load(answer)
        except urllib.error.HTTPError:
            raise
        except urllib.error.URLError:  # it listens for clients first
            return None
        return found

    return wait_until(ask, what=f"an answer of {broker.http}")


def boundaries(broker: BrokerProcess, topic: str) -> list[int]:
    """B0 of each partition; -1 where there is none yet."""
    return [partition["b0"] for partition in status(broker, topic)["partitions"]]


def described_state(admin: AdminClient, topic: str) -> str:
    """`diskless.migration.state`, as DescribeConfigs tells it."""
    resource = kafka_admin.ConfigResource(kafka_admin.ConfigResource.Type.TOPIC, topic)
    untyped: Any = admin
    return str(untyped.describe_configs([resource])[resource].result(SECONDS)["diskless.migration.state"].value)


def wait_switched(broker: BrokerProcess, topic: str) -> list[int]:
    """Until every partition has its boundary; all of them."""

    def found() -> list[int]:
        known = boundaries(broker, topic)
        return known if known and min(known) >= 0 else []

    return wait_until(found, within=SECONDS, what=f"{topic} to have its boundaries: {status(broker, topic)}")


def wait_state(broker: BrokerProcess, topic: str, *states: str) -> Mapping[str, Any]:
    """Until the topic is in one of these states."""
    seen: list[Mapping[str, Any]] = []

    def reached() -> bool:
        seen[:] = [status(broker, topic)]
        return seen[0]["state"] in states

    try:
        wait_until(reached, within=SECONDS, what=f"{topic} to be {' or '.join(states)}")
    except AssertionError as error:
        raise AssertionError(f"{error}: {seen}") from error
    return seen[0]


# Switches that wait


def put_into_log(broker: BrokerProcess, topic: str, batch: bytearray) -> None:
    """Kill the broker, append a batch to the log of partition 0 as it is, and start it again."""
    broker.kill()
    with local_logs(broker, topic)[-1].open("ab") as log:
        log.write(batch)
    broker.start()


def open_transaction(broker: BrokerProcess, topic: str, at: int) -> None:
    """Put a record of an open transaction at the end of the log, as a log of Kafka may have it."""
    batch = build_batch(
        [Record(at, T0, None, b"%08d uncommitted" % at)],
        base_offset=at,
        leader_epoch=0,
        producer_id=PRODUCER,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    put_into_log(broker, topic, batch)


def wait_draining(broker: BrokerProcess, topic: str) -> None:
    """Until the switch waits for an open transaction."""

    def is_draining() -> bool:
        (partition,) = status(broker, topic)["partitions"]
        return partition["phase"] == "DRAINING_TRANSACTIONS" and "open transactions" in partition["problem"]

    wait_until(is_draining, within=SECONDS, what=f"the switch of {topic} to wait for its transaction")


def hold_queue(broker: BrokerProcess, admin: AdminClient, topic: str = "front") -> str:
    """A topic whose switch waits for a transaction that nobody ends: with `ONE_AT_A_TIME`, others wait for it."""
    create(admin, topic, {"remote.storage.enable": "true"})
    wait_until(lambda: local_logs(broker, topic), what=f"the log of {topic}")
    open_transaction(broker, topic, 0)
    switch(admin, topic)
    wait_draining(broker, topic)
    return topic


def is_waiting(broker: BrokerProcess, topic: str) -> bool:
    """Whether every partition waits for its turn."""
    return {partition["phase"] for partition in status(broker, topic)["partitions"]} == {"WAITING"}
