"""Rounds over clusters, turn by turn, and what is measured of one cluster at a time.

Traffic is measured in rounds, with both clusters up and one of them under load. Pauses, changes of metadata and rest
are measured of one cluster alone: the other one is stopped, since three JVMs at rest take their share of two cores,
and a fault is over sooner where nothing else runs.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from rich.console import Console

from bench.cluster import traffic
from bench.cluster.bare_writer import BareWriter
from bench.cluster.client_writer import ClientWriter
from bench.cluster.faults import Faults, Plan, missing_records
from bench.cluster.idle import idle
from bench.cluster.nodes import Cluster, ClusterFailed
from bench.cluster.pauses import Outage, longest_of
from bench.cluster.propagation import propagation
from bench.cluster.recording import Writer
from bench.cluster.systems import ClusterSystem
from bench.cluster.traffic import Loaded
from bench.cluster.view import Unanswered
from bench.figures import FIGURES, Results, Workload
from bench.generator import Generator, LoadFailed
from bench.measures import Measured
from bench.process import ProcessFailed
from bench.report import short_number

PRODUCE: Final = "produce"
LATENCY: Final = "latency"
PAUSES: Final = "pauses"
METADATA: Final = "metadata"
IDLE: Final = "idle"
GROUPS: Final = (PRODUCE, LATENCY, PAUSES, METADATA, IDLE)
WRITERS: Final = ("bare", "client")
_FAILURES: Final = (ClusterFailed, ProcessFailed, LoadFailed, Unanswered, OSError, subprocess.SubprocessError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How much of everything."""

    groups: Sequence[str]
    workloads: Sequence[Workload]
    share: float
    min_in_sync: int
    rate: int
    latency_seconds: int
    writer: str
    interval: float
    plan: Plan
    many_partitions: int
    bulk_partitions: int
    turns: int
    idle_partitions: int
    idle_seconds: float
    settle_seconds: float


@dataclass(slots=True)
class ClusterRunner:
    """Collects results. What fails is reported, and has no figure."""

    systems: Sequence[ClusterSystem]
    generator: Generator
    wanted: Wanted
    directory: Path
    console: Console
    results: Results = field(default_factory=Results)
    outages: list[dict[str, object]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    _clusters: int = 0
    """How many there were: each has a directory of its own."""

    def run(self, rounds: int) -> None:
        if {PRODUCE, LATENCY} & {*self.wanted.groups}:
            for number in range(rounds):
                self.console.rule(f"traffic, round {number + 1} of {rounds}")
                self._traffic(number)
        alone: dict[str, Callable[[Cluster], None]] = {
            PAUSES: self._pauses,
            METADATA: self._propagation,
            IDLE: self._idle,
        }
        for group, measure in alone.items():
            if group in self.wanted.groups:
                for system in self.systems:
                    self.console.rule(f"{group}, {system.name}")
                    with self._kept_going(f"{group}, {system.name}"), self._cluster(system) as cluster:
                        measure(cluster)

    @contextmanager
    def _kept_going(self, what: str) -> Iterator[None]:
        try:
            yield
        except _FAILURES as failure:
            self.failures.append(f"{what}: {failure}")
            self.console.print(f"[red]{what} failed:[/red]", f"{type(failure).__name__}: {failure}", highlight=False)

    @contextmanager
    def _cluster(self, system: ClusterSystem) -> Iterator[Cluster]:
        self._clusters += 1
        directory = self.directory / f"{system.name}-{self._clusters}"
        try:
            with system.new_cluster(directory) as cluster:
                yield cluster
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _add(self, system: str, measured: Measured) -> None:
        self.results.add(system, measured)
        for name, value in measured.items():
            figure = FIGURES[name]
            text = f"{figure.section}: {figure.title}  {short_number(value)} {figure.unit}"
            self.console.print(f"  {system:10} {text}", highlight=False, soft_wrap=True)

    # Both up, one under load

    def _traffic(self, number: int) -> None:
        order = [*self.systems] if number % 2 == 0 else [*reversed(self.systems)]
        with ExitStack() as up:
            loads: list[Loaded] = []
            for system in order:
                with self._kept_going(f"warming up {system.name}"):
                    cluster = up.enter_context(self._cluster(system))
                    loaded = Loaded(cluster, self.generator, self.wanted.min_in_sync, self.wanted.share)
                    traffic.warm_up(loaded)
                    loads.append(loaded)
            if PRODUCE in self.wanted.groups:
                for workload in self.wanted.workloads:
                    self._each(loads, partial(traffic.throughput, workload=workload))
            if LATENCY in self.wanted.groups:
                rate, seconds = self.wanted.rate, self.wanted.latency_seconds
                self._each(loads, partial(traffic.latency, rate=rate, seconds=seconds))

    def _each(self, loads: Sequence[Loaded], measure: Callable[[Loaded], Measured]) -> None:
        for loaded in loads:
            with self._kept_going(loaded.cluster.name):
                self._add(loaded.cluster.name, measure(loaded))

    # One cluster alone

    def _pauses(self, cluster: Cluster) -> None:
        plan = self.wanted.plan
        cluster.create({plan.topic: plan.partitions}, {"min.insync.replicas": str(self.wanted.min_in_sync)})
        events = len([*plan.kinds()])
        outages: list[Outage] = []

        def say(outage: Outage) -> None:
            outages.append(outage)
            self.outages.append({"system": cluster.name, "writer": self.wanted.writer, **asdict(outage)})
            errors = ", ".join(f"{count} x {error}" for error, count in outage.errors.items())
            self.console.print(
                f"  {len(outages)} of {events}: {outage.kind}, broker {outage.node_id}: {outage.seconds:.2f} s"
                f"{f', unwritable: {outage.unwritable}' if outage.unwritable else ''}  {errors}",
                highlight=False,
                soft_wrap=True,
            )

        try:
            with self._writer(cluster) as writer:
                Faults(cluster, writer, plan).run(say)
            missing = missing_records(writer, cluster.ends(plan.topic))
            if missing:
                raise ClusterFailed(f"{missing} acknowledged records of {plan.topic} are missing.")
            stuck = {number for outage in outages for number in outage.unwritable}
            if stuck:
                raise ClusterFailed(f"Partitions {sorted(stuck)} of {plan.topic} were not written to after an event.")
        finally:
            self._add(cluster.name, pause_figures(outages, writer=self.wanted.writer))

    def _writer(self, cluster: Cluster) -> Writer:
        plan = self.wanted.plan
        if self.wanted.writer == "client":
            return ClientWriter(cluster.bootstrap, plan.topic, plan.partitions, self.wanted.interval)
        ports = {node_id: cluster.port(node_id) for node_id in cluster.brokers}
        return BareWriter(ports, plan.topic, plan.partitions, self.wanted.interval)

    def _propagation(self, cluster: Cluster) -> None:
        wanted = self.wanted
        samples = propagation(cluster, wanted.many_partitions, wanted.turns, wanted.bulk_partitions)
        for name, values in samples.items():
            self._add(cluster.name, {name: median(values)})

    def _idle(self, cluster: Cluster) -> None:
        wanted = self.wanted
        settle, seconds = wanted.settle_seconds, wanted.idle_seconds
        self._add(cluster.name, idle(cluster, wanted.idle_partitions, settle_seconds=settle, seconds=seconds))


def pause_figures(outages: Sequence[Outage], *, writer: str) -> Measured:
    """The longest and the median of each kind, and of all kills together."""
    by_kind: Mapping[str, list[Outage]] = {
        "kill": [one for one in outages if one.kind in ("leader", "controller")],
        **{kind: [one for one in outages if one.kind == kind] for kind in dict.fromkeys(one.kind for one in outages)},
    }
    measured: Measured = {}
    for kind, found in by_kind.items():
        if found:
            measured[f"cluster.pause.{kind}.longest"] = longest_of(found)
            measured[f"cluster.pause.{kind}.median"] = median(one.seconds for one in found)
    if writer == "client" and outages:
        measured["cluster.pause.given_up"] = float(sum(sum(one.errors.values()) for one in outages))
    return measured
