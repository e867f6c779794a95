"""Kafka's own tools against a running broker with tiered topics. Every check passes against Apache Kafka, too."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from confluent_kafka import Producer

from interop.broker import CACHE, Target
from interop.kafka_tools import ToolFailed, Tools
from interop.records import SECONDS, create_topics
from interop.tiers import METADATA_PARTITIONS, METADATA_TOPIC, is_copied, local_bases, remote_segments, wait_until

CONFIG = "kafka.admin.ConfigCommand"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
SERDE = "org.apache.kafka.server.log.remote.metadata.storage.serialization.RemoteLogMetadataSerde"

RECORDS = 1000
FIRST_TIMESTAMP = 1_700_000_000_000  # the timestamp of record N is N seconds later
SETTINGS = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "20000",
    "index.interval.bytes": "500",
    "local.retention.bytes": "30000",
    "retention.ms": "-1",
}
TOPICS = ("measured", "shortened", "switched-off", "dropped")


@dataclass(frozen=True, slots=True)
class Tiers:
    """A running broker, its remote directory, and the tools that ask it."""

    tools: Tools
    broker: Target
    remote: Path

    @property
    def local_start(self) -> int:
        return local_bases(self.broker.log_dir, "measured-0")[0]

    @property
    def active_segment(self) -> int:
        return local_bases(self.broker.log_dir, "measured-0")[-1]

    def offset(self, topic: str, spec: str | int) -> int | None:
        """What GetOffsetShell says; it prints nothing where there is no such offset."""
        said = self.tools.ask("GetOffsetShell", "--topic", topic, "--time", str(spec))
        line = re.search(rf"^{topic}:0:(\d+)$", said, re.MULTILINE)
        return int(line[1]) if line else None

    def must_be(self, topic: str, spec: str | int, expected: int | None) -> None:
        offset = self.offset(topic, spec)
        if offset != expected:
            raise ToolFailed(f"offset {spec} of {topic} is {offset}, not {expected}")

    def alter(self, topic: str, *settings: str) -> None:
        self.tools.ask(CONFIG, *_of(topic), "--alter", "--add-config", ",".join(settings))

    def must_refuse(self, topic: str, setting: str, because: str) -> None:
        self.tools.be_refused(CONFIG, *_of(topic), "--alter", "--add-config", setting, expect=because)


def prepare(broker: Target, remote: Path) -> None:
    """Write the topics of the checks, and wait until most of each is remote."""
    create_topics(broker.bootstrap, dict.fromkeys(TOPICS, SETTINGS), 1)
    settings = {"bootstrap.servers": broker.bootstrap, "log_level": 2, "batch.num.messages": 20}
    producer = Producer({**settings, "enable.idempotence": True})  # record N must have offset N
    for number in range(RECORDS):
        for topic in TOPICS:
            value = f"value-{number} ".encode() * 8
            producer.produce(topic, value, partition=0, timestamp=FIRST_TIMESTAMP + 1000 * number)
    if producer.flush(SECONDS):
        raise RuntimeError("records were not acknowledged")
    for topic in TOPICS:
        copied = partial(is_copied, broker.log_dir, remote, f"{topic}-0", is_local_part_gone=True)
        wait_until(copied, f"copying of {topic}")


def tool_offsets(tiers: Tiers) -> None:
    """Both ends of both tiers, and by time in either."""
    expected: dict[str | int, int | None] = {
        "earliest": 0,
        "latest": RECORDS,
        "max-timestamp": RECORDS - 1,
        "-4": tiers.local_start,
        "earliest-local": tiers.local_start,
        "-5": tiers.active_segment - 1,
        "latest-tiered": tiers.active_segment - 1,
        FIRST_TIMESTAMP - 5: 0,
        FIRST_TIMESTAMP + 100_000: 100,
        FIRST_TIMESTAMP + 100_500: 101,
        FIRST_TIMESTAMP + (tiers.local_start - 1) * 1000: tiers.local_start - 1,
        FIRST_TIMESTAMP + tiers.local_start * 1000: tiers.local_start,
        FIRST_TIMESTAMP + 995_000: 995,
        FIRST_TIMESTAMP + RECORDS * 1000: None,
    }
    for spec, offset in expected.items():
        tiers.must_be("measured", spec, offset)


def tool_consumer(tiers: Tiers) -> None:
    """From the beginning through both tiers, from the middle of the remote tier, and as a group."""
    start = ("--topic", "measured", "--partition", "0", "--timeout-ms", "20000")
    said = tiers.tools.ask(CONSUMER, *start, "--offset", "0", "--max-messages", str(RECORDS))
    if re.findall(r"^value-(\d+) ", said, re.MULTILINE) != [str(number) for number in range(RECORDS)]:
        raise ToolFailed("the console consumer does not get every record in order")
    tiers.tools.ask(CONSUMER, *start, "--offset", "123", "--max-messages", "1", expect=r"\Avalue-123 ")
    group = ("--topic", "measured", "--from-beginning", "--group", "tier-readers", "--timeout-ms", "20000")
    tiers.tools.ask(CONSUMER, *group, "--max-messages", str(RECORDS), expect=rf"^value-{RECORDS - 1} ")
    described = ("--describe", "--group", "tier-readers")
    command = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    tiers.tools.ask(command, *described, expect=rf"tier-readers +measured +0 +{RECORDS} +{RECORDS} +0 ")
    reset = ("--group", "tier-readers", "--topic", "measured", "--reset-offsets", "--execute")
    tiers.tools.ask(command, *reset, "--to-datetime", "2023-11-14T22:15:00.000", expect=r"measured +0 +100\b")


def tool_metadata_formatter(tiers: Tiers) -> None:
    """The console consumer prints what is in __remote_log_metadata, with Kafka's own classes."""
    said = ""
    for partition in range(METADATA_PARTITIONS):
        count = tiers.tools.ask("GetOffsetShell", "--topic-partitions", f"{METADATA_TOPIC}:{partition}")
        latest = int(count.split()[0].rpartition(":")[2])
        if latest:
            read = ("--topic", METADATA_TOPIC, "--partition", str(partition), "--offset", "earliest")
            limits = ("--max-messages", str(latest), "--timeout-ms", "20000")
            formatter = ("--formatter", f"{SERDE}$RemoteLogMetadataFormatter")
            said += tiers.tools.ask(CONSUMER, *read, *limits, *formatter)
    for segment in remote_segments(tiers.remote):
        begun = f"id={segment.segment_id}}}, startOffset={segment.base_offset}, "
        finished = rf"id={segment.segment_id}\}}, .*state=COPY_SEGMENT_FINISHED"
        if begun not in said or not re.search(finished, said):
            raise ToolFailed(f"segment {segment.segment_id} of {segment.partition} is not in {METADATA_TOPIC}")


def tool_configs(tiers: Tiers) -> None:
    """Which settings of a tiered topic kafka-configs may change, and which changes are refused."""
    described = (*_of("measured"), "--describe", "--all")
    said = tiers.tools.ask(CONFIG, *described, expect=r"remote\.storage\.enable=true ")
    for setting in ("remote.log.copy.disable=false", "remote.log.delete.on.disable=false", "local.retention.ms=-2"):
        if f" {setting} " not in said:
            raise ToolFailed(f"{setting} is not in the description:\n{said}")
    refused = "InvalidConfigurationException"
    tiers.must_refuse("measured", "cleanup.policy=compact", refused)
    tiers.must_refuse("measured", "remote.storage.enable=false", refused)
    tiers.must_refuse("measured", "retention.bytes=20000", refused)  # less than local.retention.bytes
    tiers.must_refuse("measured", "remote.log.copy.disable=true", refused)  # local.retention.* is not retention.*
    tiers.alter("measured", "local.retention.ms=3600000000")
    tiers.tools.ask(CONFIG, *described, expect=r"local\.retention\.ms=3600000000 ")


def tool_log_dirs(tiers: Tiers) -> None:
    """The local directory shows local bytes only."""
    directory = tiers.broker.log_dir / "measured-0"
    size = sum(path.stat().st_size for path in directory.glob("*.log"))
    said = tiers.tools.ask("LogDirsCommand", "--describe", "--topic-list", "measured")
    if f'"partition":"measured-0","size":{size},' not in said:
        raise ToolFailed(f"measured-0 has {size} bytes in {directory}, but the tool says\n{said}")


def tool_delete_records(tiers: Tiers) -> None:
    """Into the remote range: segments entirely below the new log start are deleted, and consumers begin there."""
    request = CACHE / "delete-tiered-records.json"
    request.write_text('{"partitions": [{"topic": "shortened", "partition": 0, "offset": 500}], "version": 1}')
    tiers.tools.ask("DeleteRecordsCommand", "--offset-json-file", str(request), expect=r"low_watermark: 500")
    tiers.must_be("shortened", "earliest", 500)
    consumer = ("--topic", "shortened", "--partition", "0", "--offset", "earliest", "--timeout-ms", "20000")
    tiers.tools.ask(CONSUMER, *consumer, "--max-messages", "1", expect=r"\Avalue-500 ")
    wait_until(lambda: _remote_bases(tiers, "shortened")[1] > 500, "deletion of remote segments below the log start")
    if _remote_bases(tiers, "shortened")[0] > 500:
        raise ToolFailed("the remote segment with offset 500 is gone")


def tool_switch_off(tiers: Tiers) -> None:
    """remote.storage.enable=false with remote.log.delete.on.disable=true deletes the remote segments."""
    local_start = local_bases(tiers.broker.log_dir, "switched-off-0")[0]
    tiers.alter("switched-off", "remote.storage.enable=false", "remote.log.delete.on.disable=true")
    wait_until(lambda: not _remote_bases(tiers, "switched-off"), "deletion of all remote segments")
    tiers.must_be("switched-off", "earliest", local_start)
    tiers.must_be("switched-off", "latest", RECORDS)


def tool_delete_topic(tiers: Tiers) -> None:
    """Deleting a topic deletes its remote segments."""
    tiers.tools.ask("TopicCommand", "--delete", "--topic", "dropped")
    wait_until(lambda: not _remote_bases(tiers, "dropped"), "deletion of the topic's remote segments")


CHECKS: tuple[Callable[[Tiers], None], ...] = (
    tool_offsets,
    tool_consumer,
    tool_metadata_formatter,
    tool_configs,
    tool_log_dirs,
    tool_delete_records,
    tool_switch_off,
    tool_delete_topic,
)


def _of(topic: str) -> tuple[str, ...]:
    return "--entity-type", "topics", "--entity-name", topic


def _remote_bases(tiers: Tiers, topic: str) -> list[int]:
    return [one.base_offset for one in remote_segments(tiers.remote) if one.partition == f"{topic}-0"]
