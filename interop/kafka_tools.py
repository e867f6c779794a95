"""Kafka's own command-line tools against a running Strandline broker."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from bench import kafka
from confluent_kafka import KafkaException

from interop.broker import CACHE, Target
from interop.dump_tool import Complaint
from interop.results import Outcome

NAME = "kafka-tools"
TOOLS = "org.apache.kafka.tools"
SECONDS = 90.0
QUICK_JVM = ("-Xmx512M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")  # a tool runs for a second or two


class ToolFailed(Exception):
    """A tool ended with an error, or said something else than expected."""


def why_unavailable() -> str | None:
    return kafka.why_unavailable()


class Tools:
    """Runs tools against one broker and checks what they say."""

    def __init__(self, libraries: Path, bootstrap: str, log_file: Path) -> None:
        self._libraries, self.bootstrap, self._log_file = libraries, bootstrap, log_file

    def run(self, main_class: str, *arguments: str, stdin: str = "", expect: str = "") -> str:
        """What a tool printed. Raises ToolFailed unless it succeeds and prints `expect` (a pattern)."""
        code, said = self._run(main_class, arguments, stdin)
        if code != 0 or "Exception" in said:
            raise ToolFailed(f"{main_class} {' '.join(arguments)} ended with {code}:\n{said[-3000:]}")
        _must_print(expect, said, main_class, arguments)
        return said

    def ask(self, tool: str, *arguments: str, stdin: str = "", expect: str = "") -> str:
        """Run one of the tools that take --bootstrap-server."""
        return self.run(_main_class(tool), *self._server, *arguments, stdin=stdin, expect=expect)

    def be_refused(self, tool: str, *arguments: str, expect: str) -> None:
        """Run a tool that must end with an error and print `expect`. Raises ToolFailed if it does not."""
        code, said = self._run(_main_class(tool), (*self._server, *arguments), "")
        if code == 0:
            raise ToolFailed(f"{tool} {' '.join(arguments)} was not refused:\n{said[-3000:]}")
        _must_print(expect, said, tool, arguments)

    def output(self, tool: str, *arguments: str) -> str:
        """Only standard output of a tool that may complain, as a consumer does when no more records come."""
        return self._done(_main_class(tool), (*self._server, *arguments), "").stdout

    def at(self, bootstrap: str) -> Tools:
        """The same tools for another broker."""
        return Tools(self._libraries, bootstrap, self._log_file)

    @property
    def _server(self) -> tuple[str, str]:
        return "--bootstrap-server", self.bootstrap

    def _run(self, main_class: str, arguments: Sequence[str], stdin: str) -> tuple[int, str]:
        done = self._done(main_class, arguments, stdin)
        return done.returncode, done.stdout + done.stderr

    def _done(self, main_class: str, arguments: Sequence[str], stdin: str) -> subprocess.CompletedProcess[str]:
        command = kafka.java_command(self._libraries, main_class, *arguments, jvm=QUICK_JVM)
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=SECONDS)
        with self._log_file.open("a") as log:
            log.write(f"$ {main_class} {' '.join(arguments)}\n{done.stdout}{done.stderr}\n")
        return done


def _main_class(tool: str) -> str:
    return tool if "." in tool else f"{TOOLS}.{tool}"


def _must_print(expect: str, said: str, tool: str, arguments: Sequence[str]) -> None:
    if not re.search(expect, said, re.MULTILINE):
        raise ToolFailed(f"{tool} {' '.join(arguments)} did not print {expect!r}:\n{said[-3000:]}")


def topics(tools: Tools) -> None:
    tools.ask("TopicCommand", "--create", "--topic", "by-tool", "--partitions", "3", "--config", "retention.ms=123456")
    tools.ask("TopicCommand", "--list", expect=r"^by-tool$")
    tools.ask("TopicCommand", "--alter", "--topic", "by-tool", "--partitions", "5")
    described = tools.ask("TopicCommand", "--describe", "--topic", "by-tool", expect=r"PartitionCount: 5")
    if "retention.ms=123456" not in described or described.count("Isr: 1") != 5:
        raise ToolFailed(f"the description is wrong:\n{described}")
    tools.ask("TopicCommand", "--create", "--topic", "to-delete", "--partitions", "1")
    tools.ask("TopicCommand", "--delete", "--topic", "to-delete")
    if "to-delete" in tools.ask("TopicCommand", "--list"):
        raise ToolFailed("the deleted topic is still listed")


def configs(tools: Tools) -> None:
    config = "kafka.admin.ConfigCommand"
    topic = ("--entity-type", "topics", "--entity-name", "configured")
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    defaults = ("--entity-type", "brokers", "--entity-default")
    tools.ask("TopicCommand", "--create", "--topic", "configured")
    tools.ask(config, *topic, "--alter", "--add-config", "retention.ms=77000,max.message.bytes=500000")
    tools.ask(config, *topic, "--describe", expect=r"retention\.ms=77000 .*DYNAMIC_TOPIC_CONFIG:retention\.ms=77000")
    tools.ask(config, *topic, "--alter", "--delete-config", "retention.ms")
    tools.ask(config, *topic, "--describe", "--all", expect=r"retention\.ms=604800000")
    tools.ask(config, *broker, "--alter", "--add-config", "log.cleaner.threads=2")
    tools.ask(config, *broker, "--describe", expect=r"log\.cleaner\.threads=2 ")
    tools.ask(config, *defaults, "--alter", "--add-config", "message.max.bytes=2000000")
    tools.ask(config, *defaults, "--describe", expect=r"message\.max\.bytes=2000000 ")
    tools.ask(config, *broker, "--describe", "--all", expect=r"node\.id=1 ")


def policies(tools: Tools) -> None:
    """A topic becomes a compacted one."""
    config = "kafka.admin.ConfigCommand"
    topic = ("--entity-type", "topics", "--entity-name", "compacted")
    tools.ask("TopicCommand", "--create", "--topic", "compacted")
    tools.ask(config, *topic, "--alter", "--add-config", "cleanup.policy=[compact,delete]")
    tools.ask(config, *topic, "--describe", expect=r"cleanup\.policy=compact,delete ")


def console(tools: Tools) -> None:
    """Producer and consumer, with keys and headers, all codecs."""
    tools.ask("TopicCommand", "--create", "--topic", "console", "--partitions", "1")
    shape = ("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true")
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        line = f"a:1,b:2\tkey-{codec}\tvalue-{codec}\n"
        tools.ask("ConsoleProducer", "--topic", "console", "--compression-codec", codec, *shape, stdin=line)
    printed = ("--formatter-property", "print.key=true", "--formatter-property", "print.headers=true")
    consumer = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    limits = ("--from-beginning", "--max-messages", "5", "--timeout-ms", "20000")
    said = tools.ask(consumer, "--topic", "console", *limits, *printed, "--group", "console-readers")
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        if f"a:1,b:2\tkey-{codec}\tvalue-{codec}" not in said:
            raise ToolFailed(f"the record in codec {codec} is missing:\n{said}")
    committed = ("--isolation-level", "read_committed")
    tools.ask(consumer, "--topic", "console", *limits, *committed, expect=r"value-zstd")


def groups(tools: Tools) -> None:
    command = f"{TOOLS}.consumer.group.ConsumerGroupCommand"
    tools.ask("TopicCommand", "--create", "--topic", "grouped", "--partitions", "2")
    tools.ask("ConsoleProducer", "--topic", "grouped", stdin="".join(f"{number}\n" for number in range(20)))
    consumer = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    read = ("--topic", "grouped", "--from-beginning", "--max-messages", "20", "--timeout-ms", "20000")
    tools.ask(consumer, *read, "--group", "tool-group", expect=r"^19$")
    tools.ask(command, "--list", expect=r"^tool-group$")
    tools.ask("GroupsCommand", "--list", expect=r"^tool-group +Classic +consumer")
    group = ("--group", "tool-group")
    tools.ask(command, "--describe", *group, expect=r"tool-group +grouped +\d +\d+ +\d+ +0 ")
    tools.ask(command, "--describe", *group, "--state", expect=r"Empty")
    reset = ("--reset-offsets", "--topic", "grouped", "--to-earliest", "--execute")
    tools.ask(command, *group, *reset, expect=r"tool-group +grouped +\d +0")
    tools.ask(command, *group, "--delete-offsets", "--topic", "grouped", expect=r"Successful")
    tools.ask(command, *group, "--delete", expect=r"successful")


def share_groups(tools: Tools) -> None:
    """Kafka's share consumer takes, releases and rejects records; its tools show, reset, delete and switch off."""
    config, command = "kafka.admin.ConfigCommand", f"{TOOLS}.consumer.group.ShareGroupCommand"
    consumer = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
    group = ("--group", "queue-readers")
    tools.ask("TopicCommand", "--create", "--topic", "queue", "--partitions", "2")
    begin = ("--entity-type", "groups", "--entity-name", "queue-readers", "--alter")
    tools.ask(config, *begin, "--add-config", "share.auto.offset.reset=earliest")
    tools.ask("ConsoleProducer", "--topic", "queue", stdin="".join(f"{number}\n" for number in range(20)))
    read = ("--topic", "queue", *group, "--timeout-ms", "20000", "--max-messages")
    said = tools.ask(consumer, *read, "20", expect=r"^19$")
    if sorted(line for line in said.splitlines() if line.isdigit()) != sorted(map(str, range(20))):
        raise ToolFailed(f"the share consumer did not get each record once:\n{said}")
    tools.ask(command, "--list", expect=r"^queue-readers$")
    tools.ask(command, "--describe", *group, expect=r"queue-readers +queue +\d +\d+ +0")
    tools.ask(command, "--describe", *group, "--state", expect=r"Empty")
    tools.ask("GroupsCommand", "--list", expect=r"^queue-readers +Share +share")
    tools.ask(command, *group, "--reset-offsets", "--topic", "queue", "--to-earliest", "--execute")
    tools.ask(consumer, *read, "3", "--reject", expect=r"Processed a total of 3 messages")
    tools.ask(consumer, *read, "17", "--release", expect=r"Processed a total of 17 messages")
    again = tools.ask(consumer, *read, "17", expect=r"Processed a total of 17 messages")
    if len({line for line in again.splitlines() if line.isdigit()}) != 17:
        raise ToolFailed(f"records that were released did not come again:\n{again}")
    tools.ask(command, *group, "--delete-offsets", "--topic", "queue", expect=r"Successful")
    shown = r"^Feature: share\.version\s+SupportedMinVersion: 0\s+SupportedMaxVersion: 1\s+FinalizedVersionLevel: "
    tools.ask("FeatureCommand", "describe", expect=shown + "1")
    tools.ask("FeatureCommand", "downgrade", "--feature", "share.version=0", expect=r"graded to 0")
    tools.ask("FeatureCommand", "describe", expect=shown + "0")
    refusal = tools.output(command, "--describe", *group)  # the tool ends as if it had succeeded
    if "UnsupportedVersionException" not in refusal:
        raise ToolFailed(f"a share group is described while share groups are switched off:\n{refusal}")
    tools.ask("FeatureCommand", "upgrade", "--feature", "share.version=1", expect=r"graded to 1")
    tools.ask(command, *group, "--delete", expect=r"successful")


def offsets(tools: Tools) -> None:
    tools.ask("TopicCommand", "--create", "--topic", "measured", "--partitions", "1")
    tools.ask("ConsoleProducer", "--topic", "measured", stdin="".join(f"{number}\n" for number in range(10)))
    topic = ("--topic", "measured", "--time")
    for spec, offset in {"latest": 10, "earliest": 0, "earliest-local": 0, "0": 0}.items():
        tools.ask("GetOffsetShell", *topic, spec, expect=rf"^measured:0:{offset}$")
    tools.ask("GetOffsetShell", *topic, "max-timestamp", expect=r"^measured:0:\d+$")
    deletion = CACHE / "delete-records.json"
    deletion.write_text('{"partitions": [{"topic": "measured", "partition": 0, "offset": 4}], "version": 1}')
    tools.ask("DeleteRecordsCommand", "--offset-json-file", str(deletion), expect=r"low_watermark: 4")
    tools.ask("GetOffsetShell", *topic, "earliest", expect=r"^measured:0:4$")


def cluster(tools: Tools) -> None:
    tools.ask("BrokerApiVersionsCommand", expect=r"Produce\(0\): 0 to 13")
    tools.ask("LogDirsCommand", "--describe", expect=r'"logDirs":\[')
    tools.run(f"{TOOLS}.ClusterTool", "cluster-id", "--bootstrap-server", tools.bootstrap, expect=r"Cluster ID: .+")
    election = ("--election-type", "preferred", "--all-topic-partitions")
    tools.ask("LeaderElectionCommand", *election)


def reassignments(tools: Tools) -> None:
    """Nothing is being moved, and tools that ask first get an answer."""
    tools.ask("TopicCommand", "--create", "--topic", "in-place", "--partitions", "2")
    command = f"{TOOLS}.reassign.ReassignPartitionsCommand"
    tools.ask(command, "--list", expect=r"No partition reassignments found\.")
    plan = CACHE / "in-place.json"
    plan.write_text('{"version": 1, "partitions": [{"topic": "in-place", "partition": 0, "replicas": [1]}]}')
    file = ("--reassignment-json-file", str(plan))
    tools.ask(command, "--execute", *file, expect=r"Successfully started partition reassignment for in-place-0")
    tools.ask(command, "--verify", *file, expect=r"Reassignment of partition in-place-0 is completed\.")
    tools.ask(command, "--cancel", *file, expect=r"None of the specified partition reassignments are active")
    tools.ask("TopicCommand", "--describe", "--topic", "in-place", "--under-replicated-partitions")


def quotas(tools: Tools) -> None:
    """Quotas and SCRAM credentials are stored and described."""
    config = "kafka.admin.ConfigCommand"
    both = ("--entity-type", "users", "--entity-name", "alice", "--entity-type", "clients", "--entity-name", "app")
    tools.ask(config, *both, "--alter", "--add-config", "producer_byte_rate=1024,consumer_byte_rate=2048")
    tools.ask(config, *both, "--alter", "--delete-config", "producer_byte_rate")
    tools.ask(config, *both, "--describe", expect=r"client-id 'app' are consumer_byte_rate=2048\.0$")
    address = ("--entity-type", "ips", "--entity-name", "127.0.0.1")
    tools.ask(config, *address, "--alter", "--add-config", "connection_creation_rate=20")
    tools.ask(config, *address, "--describe", expect=r"ip '127\.0\.0\.1' are connection_creation_rate=20\.0")
    user = ("--entity-type", "users", "--entity-name", "alice")
    tools.ask(config, *user, "--alter", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=secret]")
    tools.ask(config, *user, "--describe", expect=r"SCRAM credential configs .* SCRAM-SHA-256=iterations=8192")
    tools.ask(config, *user, "--alter", "--delete-config", "SCRAM-SHA-256")
    tools.be_refused(config, *user, "--alter", "--delete-config", "SCRAM-SHA-256", expect=r"ResourceNotFoundException")
    tools.be_refused("AclCommand", "--list", expect=r"SecurityDisabledException")


def quorum(tools: Tools) -> None:
    """The controller and the features."""
    tools.ask("MetadataQuorumCommand", "describe", "--status", expect=r"^LeaderId: +1$")
    tools.ask("MetadataQuorumCommand", "describe", "--replication", expect=r"^1 .*Leader")
    tools.ask("FeatureCommand", "describe", expect=r"transaction\.version .*FinalizedVersionLevel: 2")
    tools.be_refused("FeatureCommand", "upgrade", "--feature", "transaction.version=9", expect=r"Could not upgrade")


def client_metrics(tools: Tools) -> None:
    """Subscriptions to metrics of clients."""
    command, name = "ClientMetricsCommand", ("--name", "by-tool")
    how = ("--metrics", "org.apache.kafka.producer.", "--interval", "30000", "--match", "client_id=app-.*")
    tools.ask(command, "--alter", *name, *how)
    tools.ask(command, "--describe", *name, expect=r"match=client_id=app-\.\*")
    tools.ask(command, "--list", expect=r"^by-tool$")
    tools.ask(command, "--delete", *name)
    if "by-tool" in tools.ask(command, "--list"):
        raise ToolFailed("the deleted subscription is still listed")


def sizes(tools: Tools) -> None:
    """The log directories show how large a partition is."""
    tools.ask("TopicCommand", "--create", "--topic", "weighed", "--partitions", "1")
    tools.ask("ConsoleProducer", "--topic", "weighed", stdin=f"{'x' * 5000}\n")
    weighed = ("--describe", "--topic-list", "weighed")
    tools.ask("LogDirsCommand", *weighed, expect=r'"partition":"weighed-0","size":5\d\d\d,')


def performance(tools: Tools) -> None:
    tools.ask("TopicCommand", "--create", "--topic", "speed", "--partitions", "3")
    how = ("--num-records", "100000", "--record-size", "200", "--throughput", "-1", "--topic", "speed")
    properties = ("--producer-props", f"bootstrap.servers={tools.bootstrap}", "acks=all")
    tools.run(f"{TOOLS}.ProducerPerformance", *how, *properties, expect=r"^100000 records sent")
    tools.ask("ConsumerPerformance", "--topic", "speed", "--messages", "100000", expect=r", 100000, ")


def verifiable(tools: Tools) -> None:
    tools.ask("TopicCommand", "--create", "--topic", "verified", "--partitions", "2")
    count = ("--max-messages", "5000")
    tools.ask("VerifiableProducer", "--topic", "verified", *count, expect=r'"sent":5000,"acked":5000')
    group = ("--group-id", "verifiers", "--reset-policy", "earliest")
    tools.ask("VerifiableConsumer", "--topic", "verified", *group, *count, expect=r"shutdown_complete")


CHECKS: tuple[Callable[[Tools], None], ...] = (
    topics,
    configs,
    policies,
    console,
    groups,
    share_groups,
    offsets,
    cluster,
    reassignments,
    quotas,
    quorum,
    client_metrics,
    sizes,
    performance,
    verifiable,
)


def run(target: Target, only: str | None = None) -> dict[str, Outcome]:
    """Run every check, or the one named `only`."""
    log_file = target.suite_log
    log_file.write_text("")
    tools = Tools(kafka.install(), target.bootstrap, log_file)
    outcomes: dict[str, Outcome] = {}
    for check in CHECKS:
        if only is None or check.__name__ == only:
            outcomes[check.__name__] = outcome_of(check.__name__, partial(check, tools), log_file)
    return outcomes


def outcome_of(name: str, check: Callable[[], None], log_file: Path) -> Outcome:
    """Whether a check got through. Why it did not is in the log."""
    try:
        check()
    except (ToolFailed, Complaint, KafkaException, subprocess.TimeoutExpired) as failure:
        with log_file.open("a") as log:
            log.write(f"FAILED {name}: {failure}\n")
        return Outcome.FAILED
    return Outcome.PASSED
