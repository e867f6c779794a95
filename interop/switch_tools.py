"""Kafka's tools switch topics to diskless, and ask about switched ones."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from confluent_kafka import Producer

from interop.broker import CACHE, Target
from interop.kafka_tools import TOOLS, ToolFailed, Tools
from interop.records import SECONDS, create_topics
from interop.tiers import is_copied, local_bases, remote_segments, wait_until

CONFIG = "kafka.admin.ConfigCommand"
CONSUMER = f"{TOOLS}.consumer.ConsoleConsumer"
GROUPS = f"{TOOLS}.consumer.group.ConsumerGroupCommand"

BOUNDARY = 1000  # records below it; their number is their offset
END = 1200
FIRST_TIMESTAMP = 1_700_000_000_000  # 2023-11-14 22:13:20. The timestamp of record N is N seconds later
SETTINGS = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "20000",
    "index.interval.bytes": "500",
    "local.retention.bytes": "30000",
    "retention.ms": "-1",
}
TOPICS = ("measured", "shortened", "grown")
UNFIT = {"compacted": {"cleanup.policy": "compact"}, "untiered": {"retention.ms": "-1"}}


@dataclass(frozen=True, slots=True)
class Switch:
    """A running broker whose topics are switched, and the tools that do it."""

    tools: Tools
    broker: Target
    remote: Path
    log_file: Path

    def alter(self, topic: str, *settings: str) -> None:
        self.tools.ask(CONFIG, *_of(topic), "--alter", "--add-config", ",".join(settings))

    def described(self, topic: str) -> str:
        """All settings of a topic, as the tool prints them."""
        return self.tools.ask(CONFIG, *_of(topic), "--describe", "--all")

    def must_refuse(self, topic: str, setting: str, because: str) -> None:
        """The tool shows the sentence, and the settings of the topic are what they were."""
        before = self.described(topic)
        self.tools.be_refused(CONFIG, *_of(topic), "--alter", "--add-config", setting, expect=because)
        if self.described(topic) != before:
            raise ToolFailed(f"{setting} was refused, but the settings of {topic} are others than before")

    def wait_for_state(self, topic: str, state: str) -> None:
        """Until the tool says so. States that come before are the only ones on the way."""
        order = ("TIERED_ONLY", "MIGRATING", "HYBRID", "DISKLESS_ONLY")
        seen: list[str] = []

        def is_reached() -> bool:
            seen.extend(re.findall(r"diskless\.migration\.state=(\w+) ", self.described(topic)))
            return seen[-1:] == [state]

        wait_until(is_reached, f"{topic} in state {state}")
        self.log(f"{topic}: {' -> '.join(dict.fromkeys(seen))}")
        if sorted(seen, key=order.index) != seen:
            raise ToolFailed(f"{topic} went through the states {seen}")

    def offsets(self, topic: str, spec: str | int) -> dict[int, int]:
        """What kafka-get-offsets says, by partition; it prints nothing where there is no such offset."""
        said = self.tools.ask("GetOffsetShell", "--topic", topic, "--time", str(spec))
        return {int(one): int(two) for one, two in re.findall(rf"^{topic}:(\d+):(\d+)$", said, re.MULTILINE)}

    def must_be(self, topic: str, spec: str | int, expected: int | None) -> None:
        offset = self.offsets(topic, spec).get(0)
        if offset != expected:
            raise ToolFailed(f"offset {spec} of {topic} is {offset}, not {expected}")

    def log(self, text: str) -> None:
        """Write down what was seen."""
        with self.log_file.open("a") as file:
            file.write(text + "\n")


def prepare(switch: Switch) -> None:
    """Topics with history, most of it remote only; topics that cannot be switched."""
    create_topics(switch.broker.bootstrap, dict.fromkeys(TOPICS, SETTINGS), 1)
    create_topics(switch.broker.bootstrap, UNFIT, 1)
    write(switch.broker.bootstrap, TOPICS, range(BOUNDARY))
    write(switch.broker.bootstrap, UNFIT, range(10))
    for topic in TOPICS:
        copied = partial(is_copied, switch.broker.log_dir, switch.remote, f"{topic}-0", is_local_part_gone=True)
        wait_until(copied, f"copying of {topic}")


def write(bootstrap: str, topics: Iterable[str], numbers: range, *, partition: int = 0) -> None:
    """Records with these numbers. The producer is idempotent: the number of a record is its offset."""
    settings = {"bootstrap.servers": bootstrap, "log_level": 2, "batch.num.messages": 20}
    producer = Producer({**settings, "enable.idempotence": True})
    for topic in topics:
        for number in numbers:
            value, timestamp = f"value-{number} ".encode() * 8, FIRST_TIMESTAMP + 1000 * number
            producer.produce(topic, value, key=b"key", partition=partition, timestamp=timestamp)
    if producer.flush(SECONDS):
        raise RuntimeError("records were not acknowledged")


def switching(switch: Switch) -> None:
    """kafka-configs switches topics; it shows the state, which cannot be written."""
    for topic in TOPICS:
        switch.alter(topic, "diskless.enable=true")
    for topic in TOPICS:
        switch.wait_for_state(topic, "HYBRID")
    write(switch.broker.bootstrap, TOPICS, range(BOUNDARY, END))
    switch.must_refuse("measured", "diskless.migration.state=TIERED_ONLY", "diskless.migration.state")


def refusals(switch: Switch) -> None:
    """What cannot be switched says why, and is as it was, for its clients as well."""
    switch.must_refuse("compacted", "diskless.enable=true", r"InvalidConfigurationException.*compacted")
    switch.must_refuse("untiered", "diskless.enable=true", r"InvalidConfigurationException.*records.* not tiered")
    switch.must_refuse("measured", "diskless.enable=false", r"InvalidConfigurationException.*diskless already")
    switch.must_refuse("measured", "cleanup.policy=compact", "InvalidConfigurationException")
    for topic in UNFIT:
        write(switch.broker.bootstrap, (topic,), range(10, 20))
        _must_consume(switch, topic, range(20))


def offsets(switch: Switch) -> None:
    """Ends of all tiers, and searches by time on either side of the boundary."""
    local_start = local_bases(switch.broker.log_dir, "measured-0")[0]
    expected: dict[str | int, int | None] = {
        "earliest": 0,
        "latest": END,
        "max-timestamp": END - 1,
        "-4": local_start,
        "-5": BOUNDARY - 1,
        FIRST_TIMESTAMP - 5: 0,
        FIRST_TIMESTAMP + 100_500: 101,
        FIRST_TIMESTAMP + (BOUNDARY - 1) * 1000: BOUNDARY - 1,
        FIRST_TIMESTAMP + (BOUNDARY - 1) * 1000 + 1: BOUNDARY,
        FIRST_TIMESTAMP + (END - 1) * 1000: END - 1,
        FIRST_TIMESTAMP + END * 1000: None,
    }
    for spec, offset in expected.items():
        switch.must_be("measured", spec, offset)


def consumers(switch: Switch) -> None:
    """From the beginning at both isolation levels, and from offsets in every tier."""
    for isolation in ("read_uncommitted", "read_committed"):
        _must_consume(switch, "measured", range(END), "--isolation-level", isolation)
    for start in (BOUNDARY - 1, BOUNDARY):
        _must_consume(switch, "measured", range(start, END))


def groups(switch: Switch) -> None:
    """Lag counts both parts, and offsets are set back by time to either side of the boundary."""
    group = ("--group", "across")
    read = ("--topic", "measured", "--from-beginning", "--timeout-ms", "20000", "--max-messages", str(END))
    switch.tools.ask(CONSUMER, *read, *group, expect=rf"^value-{END - 1} ")
    described = ("--describe", *group)
    switch.tools.ask(GROUPS, *described, expect=rf"across +measured +0 +{END} +{END} +0 ")
    reset = (*group, "--topic", "measured", "--reset-offsets", "--execute")
    for moment, offset in {"22:15:00.000": 100, "22:29:59.500": BOUNDARY, "22:31:40.000": 1100}.items():
        switch.tools.ask(GROUPS, *reset, "--to-datetime", f"2023-11-14T{moment}", expect=rf"measured +0 +{offset}\b")
    switch.tools.ask(GROUPS, *described, expect=rf"across +measured +0 +1100 +{END} +100 ")
    switch.tools.ask(GROUPS, *reset, "--to-datetime", "2023-11-14T22:29:59.000", expect=r"measured +0 +999\b")
    switch.tools.ask(CONSUMER, *read[:2], *group, "--max-messages", "2", expect=r"\Avalue-999 .*\nvalue-1000 ")
    switch.tools.ask(GROUPS, *reset, "--shift-by", "-500", expect=r"measured +0 +501\b")
    switch.tools.ask(GROUPS, *described, expect=rf"across +measured +0 +501 +{END} +{END - 501} ")


def log_dirs(switch: Switch) -> None:
    """A switched partition has a size in its directory, in remote storage, and in the object store."""
    said = switch.tools.ask("LogDirsCommand", "--describe", "--topic-list", "measured")
    brokers = json.loads(next(line for line in said.splitlines() if line.startswith("{")))["brokers"]
    sizes = {one["logDir"]: one["partitions"][0]["size"] for one in brokers[0]["logDirs"] if one["partitions"]}
    directory = switch.broker.log_dir / "measured-0"
    local = sum(path.stat().st_size for path in directory.glob("*.log"))
    if len(sizes) != 3 or sizes.get(str(switch.broker.log_dir)) != local or not all(sizes.values()):
        raise ToolFailed(f"{directory} has {local} bytes, but the tool says {sizes}")


def producers(switch: Switch) -> None:
    """kafka-transactions knows the producers of both parts, and their last sequence numbers."""
    said = switch.tools.ask("TransactionsCommand", "describe-producers", "--topic", "measured", "--partition", "0")
    last = sorted(int(one) for one in re.findall(r"^\d+\s+\d+\s+-?\d+\s+(\d+)\s", said, re.MULTILINE))
    if last != [END - BOUNDARY - 1, BOUNDARY - 1]:
        raise ToolFailed(f"the last sequence numbers are {last}:\n{said}")


def partitions(switch: Switch) -> None:
    """A switched topic gets partitions, which are diskless from the beginning."""
    command = "TopicCommand"
    switch.tools.ask(command, "--alter", "--topic", "grown", "--partitions", "3")
    said = switch.tools.ask(command, "--describe", "--topic", "grown", expect=r"PartitionCount: 3")
    if said.count("Isr: 1") != 3 or "diskless.enable=true" not in said:
        raise ToolFailed(f"the description is wrong:\n{said}")
    write(switch.broker.bootstrap, ("grown",), range(50), partition=2)
    if switch.offsets("grown", "latest") != {0: END, 1: 0, 2: 50}:
        raise ToolFailed(f"the ends of grown are {switch.offsets('grown', 'latest')}")
    _must_consume(switch, "grown", range(50), partition=2)
    switch.wait_for_state("grown", "HYBRID")


def delete_records(switch: Switch) -> None:
    """Into the remote range, into the diskless one, and everything; nothing is left below, in any tier."""
    for offset in (500, 1100):
        _delete(switch, offset, expect=offset)
        switch.must_be("shortened", "earliest", offset)
        _must_consume(switch, "shortened", range(offset, END))
        if offset < BOUNDARY:
            wait_until(lambda: _remote_bases(switch, "shortened")[1] > 500, "deletion of remote segments")
    switch.wait_for_state("shortened", "DISKLESS_ONLY")
    wait_until(lambda: not _remote_bases(switch, "shortened"), "deletion of all remote segments")
    _delete(switch, -1, expect=END)
    switch.must_be("shortened", "earliest", END)
    switch.must_be("shortened", "latest", END)


def deleted_topic(switch: Switch) -> None:
    """Deleting a switched topic deletes its prefix, too."""
    switch.tools.ask("TopicCommand", "--delete", "--topic", "grown")
    wait_until(lambda: not _remote_bases(switch, "grown"), "deletion of the topic's remote segments")
    if "grown" in switch.tools.ask("TopicCommand", "--list").split():
        raise ToolFailed("the deleted topic is still listed")


CHECKS: tuple[Callable[[Switch], None], ...] = (
    switching,
    refusals,
    offsets,
    consumers,
    groups,
    log_dirs,
    producers,
    partitions,
    delete_records,
    deleted_topic,
)


def _of(topic: str) -> tuple[str, ...]:
    return "--entity-type", "topics", "--entity-name", topic


def _must_consume(switch: Switch, topic: str, numbers: range, *more: str, partition: int = 0) -> None:
    """The console consumer gets exactly these records, in order, from their first one on."""
    start = "earliest" if numbers.start == 0 else str(numbers.start)
    where = ("--topic", topic, "--partition", str(partition), "--offset", start, "--timeout-ms", "20000")
    said = switch.tools.ask(CONSUMER, *where, "--max-messages", str(len(numbers)), *more)
    values = re.findall(r"^value-(\d+) ", said, re.MULTILINE)
    if values != [str(number) for number in numbers]:
        raise ToolFailed(f"{topic}: {len(values)} of {len(numbers)} records, or in another order: {values[:5]}")


def _deletion(offset: int) -> Sequence[str]:
    request = CACHE / "delete-switched-records.json"
    request.write_text(json.dumps({"partitions": [{"topic": "shortened", "partition": 0, "offset": offset}]}))
    return "--offset-json-file", str(request)


def _delete(switch: Switch, offset: int, *, expect: int) -> None:
    switch.tools.ask("DeleteRecordsCommand", *_deletion(offset), expect=rf"low_watermark: {expect}\b")


def _remote_bases(switch: Switch, topic: str) -> list[int]:
    return [one.base_offset for one in remote_segments(switch.remote) if one.partition == f"{topic}-0"]
