"""Is our load generator fast enough? Kafka's own perf tools and ours drive the same Kafka broker, in turn."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from bench import kafka
from bench.figures import WORKLOADS, Workload
from bench.generator import LoadFailed
from bench.measures import Bench

_NAMES: Final = ("1k.1p", "1k.16p", "100b.16p")
_SENT: Final = re.compile(r"([\d.]+) records/sec")


@dataclass(frozen=True, slots=True)
class Comparison:
    """MB/s of the same work done by both clients against one Kafka broker."""

    work: str
    perf_tool: float
    ours: float

    @property
    def ratio(self) -> float:
        return self.ours / self.perf_tool


def compare(bench: Bench, libraries: Path) -> Iterator[Comparison]:
    """Each direction of three workloads, best of two runs each: this asks what a client can do, not what is usual."""
    for workload in (workload for workload in WORKLOADS if workload.name in _NAMES):
        records = max(int(workload.records * bench.scale.share), 1)
        with bench.topic(f"perf-{workload.name}", workload.partitions) as theirs:
            tool = _best(partial(_perf_produce, bench, libraries, theirs, workload, records))
            tool_out = _best(partial(_perf_consume, bench, libraries, theirs, records))
        with bench.topic(f"ours-{workload.name}", workload.partitions) as topic:
            ours = _best(partial(bench.produce, topic, workload, records))
            ours_out = _best(partial(bench.consume, topic, workload, records))
        yield Comparison(f"produce {workload.title}", tool, ours)
        yield Comparison(f"consume {workload.title}", tool_out, ours_out)


def _best(run: Callable[[], float]) -> float:
    return max(run() for _ in range(2))


def _perf_produce(bench: Bench, libraries: Path, topic: str, workload: Workload, records: int) -> float:
    """Its figure after a warm-up, so that the JVM of the client has compiled what it needs."""
    output = _run(
        libraries,
        kafka.PRODUCER_PERFORMANCE,
        *("--topic", topic, "--num-records", str(records), "--record-size", str(workload.size)),
        *("--throughput", "-1", "--warmup-records", str(records // 5), "--bootstrap-server", bench.broker.bootstrap),
        *("--command-property", "acks=all"),
    )
    rates = _SENT.findall(output)
    if not rates:
        raise LoadFailed(f"The output of Kafka's producer tool has no rate:\n{output}")
    return float(rates[-1]) * workload.size / 1e6


def _perf_consume(bench: Bench, libraries: Path, topic: str, records: int) -> float:
    """Its fetch rate, which leaves joining the group out, as our figure leaves the consumer's start out."""
    output = _run(
        libraries,
        kafka.CONSUMER_PERFORMANCE,
        *("--topic", topic, "--num-records", str(records), "--bootstrap-server", bench.broker.bootstrap),
    )
    header, values = ([cell.strip() for cell in line.split(",")] for line in output.splitlines() if "," in line)
    return float(dict(zip(header, values, strict=True))["fetch.MB.sec"]) * 1024 * 1024 / 1e6


def _run(libraries: Path, tool: str, *arguments: str) -> str:
    run = kafka.run_tool(libraries, tool, *arguments)
    if run.returncode != 0:
        raise LoadFailed(f"{tool} failed:\n{run.stdout[-1000:]}{run.stderr[-1000:]}")
    return run.stdout
