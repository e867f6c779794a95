"""A topic becomes diskless while Kafka's clients and kcat write and read it; what they printed is compared."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from bench import kafka
from confluent_kafka import Producer

from interop.broker import CACHE
from interop.kafka_tools import ToolFailed
from interop.kcat import prepare_kcat
from interop.records import SECONDS, create_topics
from interop.running_clients import Clients, Feeder, Printed, RunningClient
from interop.switch_tools import SETTINGS, Switch
from interop.tiers import is_copied, wait_until

TOPIC = "loaded"
PARTITIONS = 4
_HISTORY = 4000
_PER_SECOND = 300
_MEASURED = 12_000  # records of kafka-producer-perf-test, which cannot be stopped: 40 seconds of them
_ENOUGH = 1000  # records of the verifiable producer before the switch, and again after it
# Clients may say this of a switch, and nothing else. They repeat what they sent.
EXPECTED_WARNINGS = (r"WARN .*Got error produce response .* retrying .* Error: REQUEST_TIMED_OUT",)


@dataclass(frozen=True, slots=True)
class Writers:
    """What writes while the topic is switched."""

    verifiable: RunningClient
    performance: RunningClient
    kcat: RunningClient
    feeder: Feeder

    def written(self) -> Counter[str]:
        """Everything that was acknowledged, when all have ended."""
        values = Counter(one.value for one in self.verifiable.acknowledged())
        values.update(str(number) for number in range(_MEASURED))
        values.update(f"kcat-{number}" for number in range(self.feeder.lines))
        return values


def prepare(switch: Switch) -> None:
    """The topic with history, most of it remote only."""
    create_topics(switch.broker.bootstrap, {TOPIC: SETTINGS}, PARTITIONS)
    producer = Producer({"bootstrap.servers": switch.broker.bootstrap, "log_level": 2, "batch.num.messages": 50})
    for number in range(_HISTORY):
        producer.produce(TOPIC, _history(number), partition=number % PARTITIONS)
    if producer.flush(SECONDS):
        raise RuntimeError("records were not acknowledged")
    for name in (f"{TOPIC}-{number}" for number in range(PARTITIONS)):
        copied = partial(is_copied, switch.broker.log_dir, switch.remote, name, is_local_part_gone=True)
        wait_until(copied, f"copying of {name}")


def _history(number: int) -> str:
    return f"{'of old ' * 8}{number}"


def switch_under_load(switch: Switch) -> None:
    """Three kinds of producers, and consumers that began before, during and after: each record once and in order."""
    with Clients(kafka.install(), switch.broker.bootstrap, CACHE / "switch-clients") as clients:
        readers = [
            clients.verifiable_consumer(TOPIC),
            clients.console_consumer(TOPIC, "committed", "--isolation-level", "read_committed"),
            _kcat_consumer(clients, switch.broker.bootstrap),
        ]
        writers = _start_writers(clients, switch.broker.bootstrap)
        _wait_written(writers, _ENOUGH)
        switch.alter(TOPIC, "diskless.enable=true")
        readers.append(clients.console_consumer(TOPIC, "during"))
        switch.wait_for_state(TOPIC, "HYBRID")
        _wait_written(writers, len(writers.verifiable.acknowledged()) + _ENOUGH)
        _end(writers)
        expected = Counter(map(_history, range(_HISTORY))) + writers.written()
        readers.append(clients.console_consumer(TOPIC, "after"))
        for reader in readers:
            _must_read(reader, expected, writers.verifiable.acknowledged())
        _boundaries_must_be_within(switch, writers.verifiable.acknowledged())
        switch.log(f"{expected.total()} records, each read once and in order by {len(readers)} consumers")
        _judge_warnings(switch, clients.started)


def _start_writers(clients: Clients, bootstrap: str) -> Writers:
    program, libraries = prepare_kcat()
    idempotent = ("-X", "enable.idempotence=true", "-X", "acks=all")
    command = [program, "-b", bootstrap, "-P", "-t", TOPIC, *idempotent]
    kcat = clients.start("kcat-producer", command, {"LD_LIBRARY_PATH": libraries})
    return Writers(
        clients.verifiable_producer(TOPIC, per_second=_PER_SECOND),
        clients.performance_producer(TOPIC, records=_MEASURED, per_second=_PER_SECOND),
        kcat,
        Feeder(kcat, prefix="kcat-", per_second=100),
    )


def _kcat_consumer(clients: Clients, bootstrap: str) -> RunningClient:
    program, libraries = prepare_kcat()
    settings = ("-X", "auto.offset.reset=earliest", "-u", "-q", "-f", "Partition:%p\\tOffset:%o\\t%s\\n")
    command = [program, "-b", bootstrap, *settings, "-G", "kcat-readers", TOPIC]
    return clients.start("kcat-consumer", command, {"LD_LIBRARY_PATH": libraries})


def _wait_written(writers: Writers, count: int) -> None:
    wait_until(lambda: len(writers.verifiable.acknowledged()) >= count, f"{count} acknowledged records")


def _end(writers: Writers) -> None:
    """Every producer ends by itself and says that all its records were acknowledged."""
    writers.verifiable.stop()
    if writers.verifiable.refused():
        raise ToolFailed(f"the verifiable producer gave up records: {writers.verifiable.refused()[:3]}")
    writers.feeder.stop()
    if writers.kcat.wait() != 0 or "ERROR" in writers.kcat.text:
        raise ToolFailed(f"kcat says:\n{writers.kcat.text[-2000:]}")
    if writers.performance.wait(180) != 0 or f"\n{_MEASURED} records sent" not in writers.performance.text:
        raise ToolFailed(f"kafka-producer-perf-test says:\n{writers.performance.text[-2000:]}")


def _must_read(reader: RunningClient, expected: Counter[str], acknowledged: Sequence[Printed]) -> None:
    """A consumer gets what is expected, each record once, at the place that its producer was told, and in order."""
    wait_until(lambda: len(reader.consumed()) >= expected.total(), f"{expected.total()} records at {reader.name}")
    reader.stop()
    records = reader.consumed()
    got = Counter(one.value for one in records)
    if got != expected:
        lost, more = list((expected - got).elements()), list((got - expected).elements())
        raise ToolFailed(
            f"{reader.name}: {len(lost)} lost ({lost[:5]}), {len(more)} doubled or unexpected ({more[:5]})"
        )
    missing = set(acknowledged) - set(records)
    if missing:
        raise ToolFailed(f"{reader.name}: not where the producer was told that they are: {sorted(missing)[:5]}")
    for partition in range(PARTITIONS):
        _must_be_in_order(reader.name, [one for one in records if one.partition == partition])


def _must_be_in_order(name: str, records: Sequence[Printed]) -> None:
    """Offsets without a gap, and the numbers of each writer rising."""
    if [one.offset for one in records] != list(range(len(records))):
        raise ToolFailed(f"{name}: offsets have gaps, or are not in order")
    newest: dict[str, int] = {}
    for one in records:
        writer, number = re.findall(r"^(.*?)(\d+)$", one.value)[0]
        if int(number) <= newest.get(writer, -1):
            raise ToolFailed(f"{name}: {one} comes after number {newest[writer]} of the same writer")
        newest[writer] = int(number)


def _boundaries_must_be_within(switch: Switch, acknowledged: Sequence[Printed]) -> None:
    """Every partition was switched in the middle of what a producer wrote."""
    for partition, tiered in switch.offsets(TOPIC, "latest-tiered").items():
        written = [one.offset for one in acknowledged if one.partition == partition]
        if not min(written) <= tiered < max(written):
            raise ToolFailed(f"partition {partition}: the last classic offset is {tiered}, not within {written}")


def _judge_warnings(switch: Switch, clients: Iterable[RunningClient]) -> None:
    """Write down what clients logged. Raises ToolFailed if one of them logged anything that is not expected."""
    unexpected = []
    for client in clients:
        for text, count in client.warnings().items():
            switch.log(f"{client.name} logged {count} times: {text}")
            if not any(re.match(pattern, text) for pattern in EXPECTED_WARNINGS):
                unexpected.append(f"{client.name}: {text}")
    if unexpected:
        raise ToolFailed("clients logged " + "; ".join(unexpected))
