"""Topics that become diskless while a test looks: how to switch one, and what the broker tells of it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka.admin import AdminClient

from tests.broker import BrokerProcess
from tests.clients.tiering import SECONDS, alter, kafka_admin
from tests.waiting import wait_until

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
