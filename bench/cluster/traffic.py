"""Produce, consume and latency with replicas: what `bench.measures` does with one broker, over a cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.cluster.nodes import Cluster
from bench.figures import Workload
from bench.generator import Generator
from bench.measures import Measured, wait_gone

_WARM_UP_RECORDS: Final = 300_000


@dataclass(frozen=True, slots=True)
class Loaded:
    """A running cluster, and the generator that drives it."""

    cluster: Cluster
    generator: Generator
    min_in_sync: int
    share: float
    """Of the records of each workload."""

    @contextmanager
    def topic(self, name: str, partitions: int) -> Iterator[str]:
        """A topic for the time of a block; its files are gone when the block is left."""
        self.cluster.create({name: partitions}, {"min.insync.replicas": str(self.min_in_sync)})
        try:
            yield name
        finally:
            self.cluster.delete(name)
            for broker in self.cluster.brokers.values():
                wait_gone(Path(broker.data_dir), name)

    def records(self, workload: Workload) -> int:
        return max(int(workload.records * self.share), 1)

    def produce(self, topic: str, workload: Workload) -> float:
        where = {"brokers": self.cluster.bootstrap, "topic": topic}
        answer = self.generator.run("produce", records=self.records(workload), size=workload.size, **where)
        return float(answer["mb_s"])

    def consume(self, topic: str, workload: Workload) -> float:
        where = {"brokers": self.cluster.bootstrap, "topic": topic}
        answer = self.generator.run("consume", records=self.records(workload), partitions=workload.partitions, **where)
        return float(answer["mb_s"])


def warm_up(loaded: Loaded) -> None:
    """Bring fresh brokers to speed: a JVM compiles its hot code only after it has seen it often."""
    small = Workload(name="warm", title="", size=100, partitions=6, records=_WARM_UP_RECORDS * 3)
    large = Workload(name="warm", title="", size=1024, partitions=6, records=_WARM_UP_RECORDS)
    with loaded.topic("warm-up", 6) as topic:
        loaded.produce(topic, small)
        loaded.consume(topic, small)
        loaded.produce(topic, large)
        loaded.generator.run("latency", brokers=loaded.cluster.bootstrap, topic=topic, seconds=1)


def throughput(loaded: Loaded, workload: Workload) -> Measured:
    """One producer at full speed, then one consumer from the beginning."""
    gigabytes = loaded.records(workload) * workload.size / 1e9
    measured: Measured = {}
    with loaded.topic(f"cluster-{workload.name.replace('.', '-')}", workload.partitions) as topic:
        for direction, run in (("produce", loaded.produce), ("consume", loaded.consume)):
            before = loaded.cluster.cpu_seconds()
            measured[f"cluster.{direction}.{workload.name}"] = run(topic, workload)
            spent = loaded.cluster.cpu_seconds() - before
            measured[f"cluster.cpu.{direction}.{workload.name}"] = spent / gigabytes
    return measured


def latency(loaded: Loaded, rate: int, seconds: int) -> Measured:
    """Records of 100 B to one partition by a schedule that does not wait for a slow broker."""
    with loaded.topic("cluster-latency", 1) as topic:
        time.sleep(1.0)  # what the topics before have left to do is done
        answer = loaded.generator.run(
            "latency", brokers=loaded.cluster.bootstrap, topic=topic, rate=rate, seconds=seconds
        )
    return {
        f"cluster.latency.{name}.{part}": float(answer[key][f"{part}_ms"])
        for name, key in (("ack", "acknowledged"), ("end", "end_to_end"))
        for part in ("p50", "p99", "max")
    }
