"""Rounds: in each, every system gets fresh brokers and the same measurements, turn by turn."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console

from bench import diskless, groups, java_program, measures, migration, s3_server, share, tail, tiered, transactions
from bench.catch_up import CatchUpPlace
from bench.catch_up_figures import LINGERS_MS
from bench.change import NOW
from bench.controlplane_load import DATABASES, databases
from bench.figures import WORKLOADS, Results
from bench.footprint import footprint
from bench.generator import Generator, LoadFailed
from bench.measures import Bench, Measured, Scale, Step
from bench.process import ProcessFailed
from bench.systems import Broker, Strandline, System, remote_dir
from bench.tiering.parts import TIERING_PARTS
from bench.tiering.place import TieringPlace

GROUPS: Final = (
    "loopback",
    "produce",
    "consume",
    "idempotent",
    "latency",
    "loaded",
    "requests",
    "tail",
    "transactions",
    "groups",
    "share",
    "footprint",
    "diskless",
    "services",
    "catch-up",
    "linger",
    "tiered",
    "migration",
    *TIERING_PARTS,
)

_PAGE_CACHE_MEGABYTES: Final = 3000
_LOOPBACK_MEGABYTES: Final = 4000
_LATENCY_TURNS: Final = 3  # a stall of the machine spoils one turn of one system, not the round


@dataclass(slots=True)
class Runner:
    """Runs rounds and collects results. A measurement that fails is reported, and has no figure."""

    systems: Sequence[System]
    generator: Generator
    scale: Scale
    work_dir: Path
    cache: Path
    console: Console
    groups: Sequence[str] = GROUPS
    workloads: Sequence[str] = ()
    results: Results = field(default_factory=Results)
    rounds: list[Results] = field(default_factory=list)
    """The results of each round by itself."""
    failures: list[str] = field(default_factory=list)

    def run_round(self, number: int, *, watched: Callable[[Step], Step] = lambda step: step) -> None:
        """One round. The order of systems changes from round to round; `watched` may wrap each step."""
        order = [*self.systems] if number % 2 == 0 else [*reversed(self.systems)]
        self.rounds.append(Results())
        self._round_dir.mkdir(parents=True)
        try:
            self._warm_page_cache()
            if "loopback" in self.groups:
                self._measure_loopback()
            steps = [watched(step) for step in self._steps()]
            if steps:
                brokers = {system.name: system.new_broker(self._round_dir / system.name) for system in order}
                self._run_steps(brokers, steps)
            if "diskless" in self.groups:
                self._run_diskless(order, number)
            if "services" in self.groups:
                self._run_on_services(order, number)
            if {"catch-up", "linger"} & {*self.groups}:
                self._run_catch_up(order, number)
            if "tiered" in self.groups:
                self._run_tiered(order, watched)
            if "migration" in self.groups:
                self._run_migration(order, number)
            if {*TIERING_PARTS} & {*self.groups}:
                self._run_tiering(order, number)
            if "footprint" in self.groups:
                self._run_footprints(order)
        finally:
            shutil.rmtree(self._round_dir, ignore_errors=True)

    @property
    def _round_dir(self) -> Path:
        return self.work_dir / "round"

    def _steps(self) -> Iterator[Step]:
        for workload in WORKLOADS:
            if self.workloads and workload.name not in self.workloads:
                continue
            if {"produce", "consume"} & {*self.groups}:
                consumes = "consume" in self.groups
                yield Step(workload.title, partial(measures.throughput, workload=workload, consumes=consumes))
            if "idempotent" in self.groups and workload.name == "1k.16p":
                yield Step("idempotent producer", partial(measures.idempotent, workload=workload))
        if "latency" in self.groups:
            for turn in range(_LATENCY_TURNS):
                yield Step(f"latency alone, turn {turn + 1}", measures.latency)
        if "loaded" in self.groups:
            yield Step("latency beside load", measures.loaded_latency)
        if "requests" in self.groups:
            yield Step("small requests", measures.requests)
        if "tail" in self.groups:
            yield from tail.steps()
        yield from self._coordinator_steps()

    def _coordinator_steps(self) -> Iterator[Step]:
        if "transactions" in self.groups:
            yield from self._java_steps("transactions", transactions.steps)
        if "groups" in self.groups:
            yield from groups.steps()
        if "share" in self.groups:
            yield from self._java_steps("share", share.steps)

    def _java_steps(self, group: str, steps: Callable[[Path], Iterable[Step]]) -> Iterator[Step]:
        """Those with a client in Java, if there is one."""
        reason = java_program.why_unavailable(self.cache)
        if reason is not None:
            self.console.print(f"[yellow]Without {group}: {reason}[/yellow]")
            return
        yield from steps(self.cache)

    def _run_steps(
        self, brokers: Mapping[str, Broker], steps: Iterable[Step], *, warms_up: bool = True, keeps_data: bool = False
    ) -> None:
        """All brokers run at once, and one of them gets load at a time: figures that are close in time compare best."""
        with self._running(brokers, warms_up, keeps_data) as benches:
            for step in steps:
                for name, bench in benches.items():
                    with self._reporting(name, step.title):
                        self._add(name, step.title, step.run(bench))

    @contextmanager
    def _running(
        self, brokers: Mapping[str, Broker], warms_up: bool, keeps_data: bool
    ) -> Iterator[Mapping[str, Bench]]:
        benches: dict[str, Bench] = {}
        try:
            for name, broker in brokers.items():
                with self._reporting(name, "start and warm-up"):
                    broker.start()
                    bench = Bench(broker, self.generator, self.scale)
                    if warms_up:
                        measures.warm_up(bench)
                    benches[name] = bench
            yield benches
        finally:
            for broker in brokers.values():
                broker.stop()
                if not keeps_data:
                    shutil.rmtree(broker.data_dir, ignore_errors=True)

    def _run_tiered(self, order: Sequence[System], watched: Callable[[Step], Step]) -> None:
        brokers = {system.name: system.new_tiered_broker(self._round_dir / f"{system.name}-tiered") for system in order}
        self._run_steps(brokers, map(watched, tiered.steps(self.scale)))
        through_memory = {
            system.name: system.new_tiered_broker_through_memory(self._round_dir / f"{system.name}-tiered-memory")
            for system in _ours(order)
        }
        self._run_steps(through_memory, tiered.short_steps("memory", "through memory"), warms_up=False)

    def _run_migration(self, order: Sequence[System], number: int) -> None:
        data_dir = self.work_dir / f"migration-{number}"  # stays, as that of diskless topics
        for kind in DATABASES:
            with self._reporting("migration", kind), databases(kind, data_dir) as new_database:
                names = itertools.count()
                for steps in migration.parts(kind, self.scale):
                    brokers: dict[str, Broker] = {}
                    for system in _ours(order):
                        home = data_dir / f"{kind}-{next(names)}" / system.name
                        settings = {"rsm.config.url": f"file://{remote_dir(home)}"}
                        if kind != "sqlite":
                            settings["strandline.metadata.url"] = new_database(next(names))
                        brokers[system.name] = system.new_tiered_broker(home, settings)
                    self._run_steps(brokers, steps, warms_up=False, keeps_data=True)

    def _run_tiering(self, order: Sequence[System], number: int) -> None:
        for system in _ours(order):
            for name, steps in TIERING_PARTS.items():
                if name not in self.groups:
                    continue
                home = self.work_dir / f"{name}-{number}" / system.name
                place = TieringPlace(system, self.generator, self.scale, home, self.cache)
                with self._reporting(system.name, name), closing(steps(place)) as found:
                    for step in found:
                        with self._reporting(system.name, step.title):
                            self._add(system.name, step.title, step.run())

    def _run_footprints(self, order: Sequence[System]) -> None:
        for system in order:
            with self._reporting(system.name, "footprint"):
                data_dir = self._round_dir / f"{system.name}-footprint"
                self._add(system.name, "footprint", footprint(system, self.generator, self.scale, data_dir))
                shutil.rmtree(data_dir, ignore_errors=True)

    def _run_diskless(self, order: Sequence[System], number: int) -> None:
        # Stays until the end of all rounds: where ext4 has no journal it looks at every file that was deleted in the
        # last half minute before it makes a new one, and that was a sixth of all time.
        data_dir, ours = self.work_dir / f"diskless-{number}", _ours(order)
        fast = {system.name: system.new_broker(data_dir / "fast" / system.name) for system in ours}
        self._run_steps(fast, diskless.steps(), warms_up=False, keeps_data=True)
        slow = {
            system.name: system.new_broker_on_slow_storage(data_dir / "slow" / system.name, diskless.SLOW_MILLISECONDS)
            for system in ours
        }
        self._run_steps(slow, diskless.slow_storage_steps(), warms_up=False, keeps_data=True)

    def _run_on_services(self, order: Sequence[System], number: int) -> None:
        reason = s3_server.why_unavailable(self.cache)
        if reason is not None:
            self.console.print(f"[yellow]{reason}[/yellow]")
            return
        ours = _ours(order)
        data_dir = self.work_dir / f"services-{number}"
        with self._reporting("services", "diskless"), diskless.services(data_dir, self.cache) as settings:
            brokers = {
                system.name: system.new_broker(data_dir / system.name, settings(count))
                for count, system in enumerate(ours)
            }
            self._run_steps(brokers, diskless.services_steps(), warms_up=False, keeps_data=True)
        data_dir = self._round_dir / "tiered-s3"
        with (
            self._reporting("services", "tiered"),
            s3_server.running(s3_server.build(self.cache), data_dir) as s3,
        ):
            brokers = {
                system.name: system.new_tiered_broker(data_dir / system.name, s3.remote_settings(system.name))
                for system in ours
            }
            self._run_steps(brokers, tiered.short_steps("s3", "on S3"), warms_up=False)

    def _run_catch_up(self, order: Sequence[System], number: int) -> None:
        ours = _ours(order)
        place = CatchUpPlace(ours, self.generator, self.scale, self.work_dir / f"catch-up-{number}", self.cache)
        newest = next((system for system in ours if system.name == NOW), None)
        if "catch-up" in self.groups and ours:
            oldest = next((system for system in ours if system is not newest), ours[0])
            with self._reporting(oldest.name, "catch-up, fill"):
                filled = place.fill_for_all(oldest)
                for system in ours:
                    self._add(system.name, "catch-up, fill", filled)
                for case in place.cases:
                    for system in ours:
                        with self._reporting(system.name, f"catch-up, {case}"):
                            self._add(system.name, f"catch-up, {case}", place.read(system, case))
        if "linger" in self.groups and newest is not None:
            for linger in LINGERS_MS:
                with self._reporting(newest.name, f"linger, {linger} ms"):
                    self._add(newest.name, f"linger, {linger} ms", place.linger(newest, linger))

    def _measure_loopback(self) -> None:
        size = int(_LOOPBACK_MEGABYTES * self.scale.share)
        for direction in ("out", "in"):
            where = self._round_dir / "loopback"
            answer = self.generator.run("loopback", direction=direction, megabytes=size, file=str(where))
            self._add("loopback", direction, {f"loopback.{direction}": float(answer["mb_s"])})

    def _warm_page_cache(self) -> None:
        """Write a file and delete it: memory the machine has not used for a while is several times slower at first."""
        self.generator.run(
            "loopback", direction="in", megabytes=_PAGE_CACHE_MEGABYTES, file=str(self._round_dir / "warm-up")
        )

    def _add(self, system: str, what: str, measured: Measured) -> None:
        self.results.add(system, measured)
        self.rounds[-1].add(system, measured)
        shown = "  ".join(f"{name} {value:,.2f}" for name, value in measured.items() if not name.startswith("cpu.p"))
        self.console.print(f"[dim]{system:>10}  {what}: {shown}[/dim]", highlight=False, soft_wrap=True)

    @contextmanager
    def _reporting(self, system: str, what: str) -> Iterator[None]:
        try:
            yield
        except (LoadFailed, ProcessFailed, TimeoutError, OSError) as failure:
            self.failures.append(f"{system}, {what}: {failure}")
            self.console.print(f"[red]{system}, {what}[/red]: {failure}", highlight=False, markup=True)


def _ours(systems: Sequence[System]) -> list[Strandline]:
    return [system for system in systems if isinstance(system, Strandline)]
