"""A start after SIGKILL, Strandline beside Apache Kafka: `python -m bench.starting`.

    .venv/bin/python -m bench.starting                                     # some minutes
    .venv/bin/python -m bench.starting --transactions 10000 --offsets 100000 --partitions 1000

Each system gets so many partitions in topics of 1,000, so many committed offsets in groups of 1,000, and a partition
whose active segment holds so many transactions of one producer: the same bytes for both, put there after the kill, as
if none of it had been forced to disk. Then it is started, and asked until it has done all that waits for a crash.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench import machine
from bench.asking import Asker, Refused
from bench.growing.crashed_logs import one_after_the_other
from bench.growing.measuring import cpu_seconds, settle
from bench.kafka import default_cache
from bench.systems import ApacheKafka, Broker, Strandline, System
from bench.topics import Topics
from bench.tree import SourceTree
from strandline.wire.api import ApiKey
from strandline.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from strandline.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics

_EACH: Final = 1_000
_TRANSACTIONAL: Final = "transactions"
_LATEST: Final = -1
_READ_COMMITTED: Final = 1
_PER_TRANSACTION: Final = 2  # a record and a marker
_LEADS: Final = "leads every partition"
_STABLE: Final = "knows the end of every transaction"
_OFFSETS: Final = "answers every group with its offsets"


@dataclass(frozen=True, slots=True)
class Scale:
    """How much there is."""

    transactions: int
    offsets: int
    partitions: int

    @property
    def topics(self) -> dict[str, int]:
        """All but that of the transactions."""
        count = max(self.partitions // _EACH, 1)
        return {f"many-{number:03}": self.partitions // count for number in range(count)}

    @property
    def groups(self) -> dict[str, str]:
        """Each with its topic."""
        topics = [*self.topics]
        return {f"group-{at:05}": topics[at % len(topics)] for at in range(self.offsets // _EACH)}


@dataclass(frozen=True, slots=True)
class Moment:
    """When a broker was as far as that."""

    what: str
    seconds: float
    """Since exec."""
    cpu_seconds: float


def measure(system: System, root: Path, scale: Scale) -> list[Moment]:
    """Fill a broker, kill it, and start it again."""
    broker = system.new_broker(root / system.name)
    try:
        broker.start()
        for topic, partitions in {**scale.topics, _TRANSACTIONAL: 1}.items():  # Kafka limits what one request creates
            Topics(broker.bootstrap).create({topic: partitions})
        with _asker(broker) as asker:
            for group, topic in scale.groups.items():
                asker.find_coordinator(group)
                asker.ask_when_ready(ApiKey.OFFSET_COMMIT, _commit(group, topic))
        settle(broker.process)
        broker.process.kill()
        _replace_segment(broker.data_dir, scale.transactions)
        return _restart(broker, scale)
    finally:
        broker.stop()


def _asker(broker: Broker) -> Asker:
    return Asker(int(broker.bootstrap.rpartition(":")[2]))


def _commit(group: str, topic: str) -> OffsetCommitRequest:
    partitions = [
        OffsetCommitRequestPartition(partition_index=number, committed_offset=0, committed_metadata="")
        for number in range(_EACH)
    ]
    return OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=partitions)])


def _replace_segment(data_dir: Path, transactions: int) -> None:
    (directory,) = data_dir.rglob(f"{_TRANSACTIONAL}-0")
    with (directory / f"{0:020}.log").open("wb") as file:
        file.writelines(one_after_the_other(transactions))


def _restart(broker: Broker, scale: Scale) -> list[Moment]:
    moments: list[Moment] = []
    broker.start(led_partitions=sum(scale.topics.values()) + 1)

    def reached(what: str) -> None:
        moments.append(Moment(what, time.perf_counter() - broker.process.started_at, cpu_seconds(broker.process.pid)))

    with _asker(broker) as asker:
        for topic, partitions in scale.topics.items():
            asker.wait_served(topic, partitions)
        reached(_LEADS)
        _check_stable(asker, scale)
        reached(_STABLE)
        for group, topic in scale.groups.items():
            _check_offsets(asker, group, topic)
        reached(_OFFSETS)
    return moments


def _check_stable(asker: Asker, scale: Scale) -> None:
    asker.wait_served(_TRANSACTIONAL, 1)
    asked = ListOffsetsPartition(partition_index=0, timestamp=_LATEST)
    topics = [ListOffsetsTopic(name=_TRANSACTIONAL, partitions=[asked])]
    request = ListOffsetsRequest(replica_id=-1, isolation_level=_READ_COMMITTED, topics=topics)
    stable = asker.ask_when_ready(ApiKey.LIST_OFFSETS, request).topics[0].partitions[0].offset
    if stable != _PER_TRANSACTION * scale.transactions:
        raise Refused(f"The last stable offset is {stable} after {scale.transactions} transactions.")


def _check_offsets(asker: Asker, group: str, topic: str) -> None:
    asker.find_coordinator(group)
    wanted = OffsetFetchRequestTopics(name=topic, partition_indexes=[*range(_EACH)])
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=[wanted])])
    (found,) = asker.ask_when_ready(ApiKey.OFFSET_FETCH, request).groups
    missing = sum(one.committed_offset != 0 for one in found.topics[0].partitions)
    if missing:
        raise Refused(f"{missing} offsets of {group} are lost.")


def table(found: Sequence[tuple[str, Sequence[Moment]]]) -> str:
    """As Markdown: a row for each moment, a pair of columns for each system."""
    names = [name for name, _ in found]
    lines = [
        "| the broker | " + " | ".join(f"{name}, s | {name}, CPU s" for name in names) + " |",
        "|---|" + "---:|" * (2 * len(names)),
    ]
    for rows in zip(*(moments for _, moments in found), strict=True):
        cells = " | ".join(f"{row.seconds:.2f} | {row.cpu_seconds:.2f}" for row in rows)
        lines.append(f"| {rows[0].what} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.starting", description="A start after SIGKILL.")
    parser.add_argument("--transactions", type=int, default=100_000)
    parser.add_argument("--offsets", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=10_000)
    arguments = parser.parse_args()
    scale = Scale(arguments.transactions, arguments.offsets, arguments.partitions)
    makers: list[Callable[[], System]] = [
        lambda: Strandline(SourceTree.working()),
        lambda: ApacheKafka(default_cache()),
    ]
    found: list[tuple[str, Sequence[Moment]]] = []
    described = machine.describe()
    with tempfile.TemporaryDirectory(prefix="starting-") as root:
        for make in makers:
            system = make()
            missing = system.why_unavailable()
            if missing is None:
                found.append((system.name, measure(system, Path(root), scale)))
            else:
                print(f"{system.name} is left out: {missing}")
    print(
        f"{scale.transactions:,} transactions, {scale.offsets:,} offsets in {len(scale.groups):,} groups, "
        f"{scale.partitions:,} partitions; {', '.join(f'{name}: {value}' for name, value in described.items())}\n"
    )
    print(table(found))


if __name__ == "__main__":
    main()
