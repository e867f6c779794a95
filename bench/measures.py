"""The measurements that need a running broker: each takes a Bench and returns figures by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.figures import Workload
from bench.generator import Generator, Load
from bench.systems import Broker
from bench.topics import Topics

Measured = dict[str, float]

_LOAD_RECORDS: Final = 300_000
_LOAD_PARTITIONS: Final = 4
_ECHO_SECONDS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much work one round does. `share` shortens the throughput workloads.

    `many_partitions_for` names the systems that are also started with 2,000 partitions: Kafka takes most of a minute.
    """

    share: float
    latency_seconds: int
    loaded_seconds: int
    request_seconds: int
    idle_seconds: int
    tiered_turns: int
    transaction_seconds: int
    transaction_warmup_seconds: int
    warmup_records: int
    many_partitions_for: frozenset[str]


FULL: Final = Scale(
    share=1.0,
    latency_seconds=6,
    loaded_seconds=6,
    request_seconds=4,
    idle_seconds=10,
    tiered_turns=2,
    transaction_seconds=8,
    transaction_warmup_seconds=5,
    warmup_records=1_000_000,
    many_partitions_for=frozenset({"strandline", "before", "kafka"}),
)
QUICK: Final = Scale(
    share=0.2,
    latency_seconds=3,
    loaded_seconds=3,
    request_seconds=1,
    idle_seconds=4,
    tiered_turns=1,
    transaction_seconds=3,
    transaction_warmup_seconds=3,
    warmup_records=300_000,
    many_partitions_for=frozenset({"strandline", "before"}),
)


@dataclass(frozen=True, slots=True)
class Bench:
    """A running broker, the generator that drives it, and how much to do."""

    broker: Broker
    generator: Generator
    scale: Scale

    @contextmanager
    def topic(self, name: str, partitions: int, config: Mapping[str, str] | None = None) -> Iterator[str]:
        """A topic for the time of a block; its files are gone when the block is left."""
        topics = Topics(self.broker.bootstrap)
        topics.create({name: partitions}, config)
        try:
            yield name
        finally:
            topics.delete([name])
            wait_gone(self.broker.data_dir, name)

    def produce(self, topic: str, workload: Workload, records: int, **options: str | int) -> float:
        answer = self.generator.run(
            "produce",
            brokers=self.broker.bootstrap,
            topic=topic,
            records=records,
            size=workload.size,
            codec=workload.codec,
            compressible=int(workload.codec != "none"),
            **options,
        )
        return float(answer["mb_s"])

    def consume(self, topic: str, workload: Workload, records: int) -> float:
        where = {"brokers": self.broker.bootstrap, "topic": topic}
        answer = self.generator.run("consume", partitions=workload.partitions, records=records, **where)
        return float(answer["mb_s"])

    @contextmanager
    def cpu_per_gb(self, measured: Measured, name: str, size: int) -> Iterator[None]:
        """Adds the broker's CPU time during the block, by gigabyte of records."""
        before = self.broker.process.usage().cpu_seconds
        yield
        measured[name] = (self.broker.process.usage().cpu_seconds - before) / (size / 1e9)


@dataclass(frozen=True, slots=True)
class Step:
    """One measurement of a running broker."""

    title: str
    run: Callable[[Bench], Measured]


def warm_up(bench: Bench) -> None:
    """Bring a fresh broker to speed: a JVM compiles its hot code only after it has seen it often."""
    small = Workload(name="warm", title="", size=100, partitions=4, records=0)
    with bench.topic("warm-up", 4) as topic:
        bench.produce(topic, small, bench.scale.warmup_records * 3)
        bench.consume(topic, small, bench.scale.warmup_records * 3)
        large = Workload(name="warm", title="", size=1024, partitions=4, records=0)
        bench.produce(topic, large, bench.scale.warmup_records // 2)
        where = {"brokers": bench.broker.bootstrap, "topic": topic}
        bench.generator.run("requests", partitions=4, seconds=bench.scale.request_seconds, **where)
        bench.generator.run("latency", seconds=1, **where)


def throughput(bench: Bench, workload: Workload, *, consumes: bool = True) -> Measured:
    """One producer at full speed, then one consumer from the beginning."""
    records = max(int(workload.records * bench.scale.share), 1)
    size = records * workload.size
    measured: Measured = {}
    with bench.topic(f"bench-{workload.name}", workload.partitions) as topic:
        with bench.cpu_per_gb(measured, f"cpu.produce.{workload.name}", size):
            measured[f"produce.{workload.name}"] = bench.produce(topic, workload, records)
        if consumes:
            with bench.cpu_per_gb(measured, f"cpu.consume.{workload.name}", size):
                measured[f"consume.{workload.name}"] = bench.consume(topic, workload, records)
        if consumes and workload.name == "1k.16p":
            answer = bench.generator.run(
                "drain",
                brokers=bench.broker.bootstrap,
                topic=topic,
                partitions=workload.partitions,
                records=records,
                loops=2,
            )
            measured[f"drain.{workload.name}"] = float(answer["mb_s"])
    return measured


def idempotent(bench: Bench, workload: Workload) -> Measured:
    """The same producer with enable.idempotence: the broker checks sequences too."""
    records = max(int(workload.records * bench.scale.share), 1)
    with bench.topic(f"bench-{workload.name}-idempotent", workload.partitions) as topic:
        speed = bench.produce(topic, workload, records, idempotence=1)
    return {f"produce.{workload.name}.idempotent": speed}


def latency(bench: Bench) -> Measured:
    """End-to-end latency of a slow producer with the broker to itself, and that of the bare machine just before."""
    echo = bench.generator.run("echo", rate=1000, seconds=_ECHO_SECONDS)["end_to_end"]
    with bench.topic("bench-latency", 1) as topic:
        measured = _latency(bench, topic, "alone", bench.scale.latency_seconds)
    return measured | {f"echo.alone.{part}": float(echo[f"{part}_ms"]) for part in ("p50", "p99", "max")}


def loaded_latency(bench: Bench) -> Measured:
    """The same beside a producer and a consumer at full speed, on other topics."""
    load = Workload(name="load", title="", size=1024, partitions=_LOAD_PARTITIONS, records=_LOAD_RECORDS)
    where = bench.broker.bootstrap
    with (
        bench.topic("bench-latency-loaded", 1) as topic,
        bench.topic("bench-load-in", load.partitions) as inward,
        bench.topic("bench-load-out", load.partitions) as outward,
    ):
        bench.produce(outward, load, load.records)
        consumer = bench.generator.start("consume", brokers=where, topic=outward, partitions=load.partitions, loop=1)
        producer = bench.generator.start("produce", brokers=where, topic=inward, size=load.size, seconds=120)
        with killed_on_error(consumer, producer):
            time.sleep(1.0)  # the consumer needs half a second to begin
            measured = _latency(bench, topic, "loaded", bench.scale.loaded_seconds)
            measured["latency.loaded.in"] = float(producer.stop()["mb_s"])
            measured["latency.loaded.out"] = float(consumer.stop()["mb_s"])
    return measured


def requests(bench: Bench) -> Measured:
    """Small requests without a client library's batching: a few busy connections, then many."""
    measured: Measured = {}
    cases = (("requests", {"active": 8, "inflight": 5}), ("connections", {"active": 50, "inflight": 1, "idle": 200}))
    with bench.topic("bench-requests", 16) as topic:
        where = {"brokers": bench.broker.bootstrap, "topic": topic}
        for name, shape in cases:
            before = bench.broker.process.usage().cpu_seconds
            answer = bench.generator.run(
                "requests", partitions=16, seconds=bench.scale.request_seconds, **where, **shape
            )
            spent = bench.broker.process.usage().cpu_seconds - before
            measured[f"{name}.rate"] = float(answer["requests_s"])
            measured[f"{name}.cpu"] = spent / int(answer["requests"]) * 1e6
            measured[f"{name}.p99"] = float(answer["answer"]["p99_ms"])
    return measured


def wait_gone(data_dir: Path, topic: str, patience: float = 4.0) -> None:
    """Wait until no file of a deleted topic is left, so that deleting is not part of the next measurement.

    Kafka looks for deleted topics only after its first 30 seconds: until then the files stay, and the wait times out.
    """
    deadline = time.perf_counter() + patience
    while time.perf_counter() < deadline and any(data_dir.rglob(f"{topic}-*")):
        time.sleep(0.05)


def _latency(bench: Bench, topic: str, case: str, seconds: int) -> Measured:
    answer = bench.generator.run("latency", brokers=bench.broker.bootstrap, topic=topic, rate=1000, seconds=seconds)
    parts = {part: float(answer["end_to_end"][f"{part}_ms"]) for part in ("p50", "p99", "max")}
    parts["ack_p99"] = float(answer["acknowledged"]["p99_ms"])
    return {f"latency.{case}.{part}": value for part, value in parts.items()}


@contextmanager
def killed_on_error(*loads: Load) -> Iterator[None]:
    """Kill the load when the block fails."""
    try:
        yield
    except BaseException:
        for load in loads:
            load.kill()
        raise
