"""The topics of the tiered-storage suite: their settings, when they are copied, and whether they are still the same."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench import kafka

from interop.broker import CACHE, Target
from interop.dump_tool import Complaint
from interop.kafka_tools import Tools
from interop.records import Records
from interop.tiers import is_copied, local_bases, wait_until

NAME = "tiered-storage"
LOG_FILE = CACHE / f"{NAME}.log"
PARTITIONS = 2
_SMALL = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "20000",
    "index.interval.bytes": "500",
    "retention.ms": "-1",
}
TOPICS = {"tiered": {**_SMALL, "local.retention.bytes": "30000"}, "tiered-kept": _SMALL}
TRANSACTIONS = "tiered-transactions"
ALL_TOPICS = {**TOPICS, TRANSACTIONS: TOPICS["tiered"]}


def wait_until_copied(broker: Target, remote: Path, topics: Sequence[str]) -> None:
    """Until every closed segment is remote and, where local retention says so, only there."""
    for partition in (f"{topic}-{number}" for topic in topics for number in range(PARTITIONS)):
        goes = "local.retention.bytes" in ALL_TOPICS[partition.rpartition("-")[0]]
        copied = partial(is_copied, broker.log_dir, remote, partition, is_local_part_gone=goes)
        wait_until(copied, f"copying of {partition}")
    for topic in topics:
        _wait_until_told(broker, topic)


def wait_until_ready(broker: Target, topics: Sequence[str]) -> None:
    """Kafka answers UNKNOWN_SERVER_ERROR to consumers until it has read its remote log metadata. They retry here."""
    if broker.name == "kafka":
        for topic in topics:
            _wait_until_told(broker, topic)


def _wait_until_told(broker: Target, topic: str) -> None:
    """Until the broker says that the last record of its last closed segment is remote."""
    tools = Tools(kafka.install(), broker.bootstrap, LOG_FILE)
    ends = [local_bases(broker.log_dir, f"{topic}-{number}")[-1] - 1 for number in range(PARTITIONS)]
    expected = [f"{topic}:{number}:{offset}" for number, offset in enumerate(ends)]
    latest_tiered = partial(tools.ask, "GetOffsetShell", "--topic", topic, "--time", "latest-tiered")
    wait_until(lambda: latest_tiered().split() == expected, f"latest tiered offsets {expected}")


def must_be_same(before: Records, now: Records, *, is_longer: bool = False) -> None:
    """Every record is where it was. Raises Complaint with some that are not."""
    differ = [place for place, record in before.items() if now.get(place) != record]
    more = now.keys() - before.keys()
    log(f"{len(now)} records are served, {len(before)} expected; {len(differ)} are missing or differ")
    if differ or (more and not is_longer) or not before:
        raise Complaint(f"missing or different: {differ[:10]}; not expected: {sorted(more)[:10]}")


def log(text: str) -> None:
    """Write down what a check has seen."""
    with LOG_FILE.open("a") as file:
        file.write(text + "\n")
