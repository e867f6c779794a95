"""Every figure the benchmark reports, and the results of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from bench.catch_up_figures import catch_up_figures
from bench.cluster.figures import cluster_figures
from bench.figure import Against, Figure, Target
from bench.group_figures import group_figures
from bench.tail_figures import tail_figures
from bench.tiering.figures import tiering_figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Records of one shape, sent by one producer and read by one consumer."""

    name: str
    title: str
    size: int
    partitions: int
    records: int
    codec: str = "none"
    produce_target: float = 1.0
    consume_target: float = 1.0


WORKLOADS: Final = (
    Workload(name="1k.1p", title="1 KB, 1 partition", size=1024, partitions=1, records=1_500_000, produce_target=1.3),
    Workload(
        name="1k.16p", title="1 KB, 16 partitions", size=1024, partitions=16, records=1_500_000, produce_target=1.3
    ),
    Workload(
        name="100b.1p", title="100 B, 1 partition", size=100, partitions=1, records=10_000_000, produce_target=1.2
    ),
    Workload(
        name="100b.16p", title="100 B, 16 partitions", size=100, partitions=16, records=10_000_000, produce_target=1.2
    ),
    Workload(name="lz4.16p", title="1 KB lz4, 16 partitions", size=1024, partitions=16, records=2_000_000, codec="lz4"),
    Workload(name="10k.16p", title="10 KB, 16 partitions", size=10_240, partitions=16, records=150_000),
)


def _throughput() -> Iterable[Figure]:
    for workload in WORKLOADS:
        target = Target(workload.produce_target)
        yield Figure(
            name=f"produce.{workload.name}",
            title=workload.title,
            unit="MB/s",
            target=target,
            section="Produce, acks=all",
        )
    yield Figure(
        name="produce.1k.16p.idempotent",
        title="1 KB, 16 partitions, idempotent",
        unit="MB/s",
        section="Produce, acks=all",
    )
    for workload in WORKLOADS:
        yield Figure(
            name=f"consume.{workload.name}",
            title=workload.title,
            unit="MB/s",
            target=Target(workload.consume_target),
            section="Consume",
        )
    yield Figure(name="drain.1k.16p", title="1 KB, 16 partitions, bare socket", unit="MB/s", section="Consume")


def _cpu() -> Iterable[Figure]:
    for direction in ("produce", "consume"):
        for workload in WORKLOADS:
            yield Figure(
                name=f"cpu.{direction}.{workload.name}",
                title=f"{direction} {workload.title}",
                unit="s/GB",
                more_is_better=False,
                section="Broker CPU per GB of records",
            )


def _latency() -> Iterable[Figure]:
    cases = (("alone", "alone", 0.8), ("loaded", "beside full-speed producer and consumer", 1.0))
    for case, title, bound in cases:
        for part, words in (("p50", "p50"), ("p99", "p99"), ("max", "max"), ("ack_p99", "acknowledged p99")):
            yield Figure(
                name=f"latency.{case}.{part}",
                title=f"{words}, {title}",
                unit="ms",
                more_is_better=False,
                target=Target(bound) if part == "p99" else None,
                section="End-to-end latency at 1,000 records/s",
            )
    for part in ("p50", "p99", "max"):
        yield Figure(
            name=f"echo.alone.{part}",
            title=f"{part} of a bare echo just before",
            unit="ms",
            more_is_better=False,
            section="End-to-end latency at 1,000 records/s",
        )
    for direction, words in (("in", "producer"), ("out", "consumer")):
        yield Figure(
            name=f"latency.loaded.{direction}",
            title=f"the full-speed {words} meanwhile",
            unit="MB/s",
            section="End-to-end latency at 1,000 records/s",
        )


def _connections() -> Iterable[Figure]:
    for case, title, least in (
        ("requests", "8 connections, 5 in flight", 1.3),
        ("connections", "50 active + 200 idle connections", 1.0),
    ):
        section = f"Small Produce requests (100 B), {title}"
        yield Figure(name=f"{case}.rate", title="requests", unit="req/s", target=Target(least), section=section)
        yield Figure(
            name=f"{case}.p99", title="p99", unit="ms", more_is_better=False, target=Target(1.0), section=section
        )
        yield Figure(name=f"{case}.cpu", title="broker CPU", unit="µs/req", more_is_better=False, section=section)


def _transactions() -> Iterable[Figure]:
    section = "Transactions, one producer, Kafka's Java client"

    def less(name: str, title: str, target: Target | None = None) -> Figure:
        return Figure(
            name=f"transactions.{name}", title=title, unit="ms", more_is_better=False, target=target, section=section
        )

    for milliseconds in (1, 10, 100):
        case, is_judged = f"{milliseconds}ms", milliseconds == 100
        title = f"transactions of {milliseconds} ms"
        yield Figure(
            name=f"transactions.{case}.produce",
            title=f"produce 1 KB to 16 partitions, {title}",
            unit="MB/s",
            target=Target(1.0) if is_judged else None,
            section=section,
        )
        yield less(f"{case}.commit.p50", f"commit p50, {title}")
        yield less(f"{case}.commit.p99", f"commit p99, {title}", Target(1.0) if is_judged else None)
    yield Figure(
        name="transactions.one.rate",
        title="transactions of one record, one after the other",
        unit="/s",
        section=section,
    )
    yield less("one.commit.p50", "commit p50, transactions of one record")
    yield less("one.commit.p99", "commit p99, transactions of one record")
    for case, title in (("one", "50 transactions of one record per second"), ("10ms", "1,000 records/s, 10 ms each")):
        yield less(f"latency.{case}.p50", f"end to end with read_committed, p50, {title}")
        yield less(f"latency.{case}.p99", f"end to end with read_committed, p99, {title}")


def _footprint() -> Iterable[Figure]:
    section = "Footprint"

    def less(name: str, title: str, unit: str, target: Target | None = None) -> Figure:
        return Figure(name=name, title=title, unit=unit, more_is_better=False, target=target, section=section)

    yield less("startup.1p", "start-up with 1 partition", "s", Target(0.35))
    yield less("startup.2000p", "start-up with 2,000 partitions", "s", Target(2.0, Against.NOTHING))
    yield less("stop.2000p", "clean stop with 2,000 partitions", "s", Target(5.0, Against.NOTHING))
    yield less("memory.rest", "memory at rest", "MB", Target(0.25))
    yield less("memory.1gb", "memory after 1 GB in and out", "MB")
    yield less("memory.2000p", "memory with 2,000 partitions", "MB")
    yield less("memory.per2000p", "cost of 2,000 empty partitions", "MB", Target(60.0, Against.NOTHING))
    yield less("cpu.idle.2000p", "idle with 2,000 partitions", "% of a core", Target(3.0, Against.NOTHING))


def _diskless() -> Iterable[Figure]:
    speed, latency, cost = (
        f"Diskless topics on a directory: {part}" for part in ("1 KB, 16 partitions", "latency", "cost")
    )

    def faster(name: str, title: str, target: Target | None = None) -> Figure:
        return Figure(name=f"diskless.{name}", title=title, unit="MB/s", target=target, section=speed)

    def beside(bound: float, other: str, words: str) -> Target:
        return Target(bound, Against.ANOTHER, f"diskless.{other}", words)

    def less(name: str, title: str, unit: str, section: str, target: Target | None = None) -> Figure:
        return Figure(
            name=f"diskless.{name}", title=title, unit=unit, more_is_better=False, target=target, section=section
        )

    yield faster("classic.produce", "produce, a classic topic")
    yield faster("produce", "produce", beside(0.5, "classic.produce", "classic"))
    yield faster("produce.idempotent", "produce, idempotent", beside(0.9, "produce", "without"))
    yield faster("slow.produce", "produce, 50 ms added to each call of the store", Target(40.0, Against.NOTHING))
    yield faster("classic.consume", "consume the newest 120 MB, a classic topic")
    yield faster("consume.cached", "consume the newest 120 MB", beside(0.8, "classic.consume", "classic"))
    yield faster("consume", "consume from the store, then the cache")
    yield less("latency.one.p50", "acknowledged p50, one quiet producer", "ms", latency)
    yield less("latency.one.p99", "acknowledged p99, one quiet producer", "ms", latency, Target(40.0, Against.NOTHING))
    yield less("latency.many.p50", "acknowledged p50, eight producers", "ms", latency)
    yield less("latency.many.p99", "acknowledged p99, eight producers", "ms", latency)
    yield less("puts", "objects written", "PUT/GB", cost)
    yield less("gets", "ranges read by the consumer from the store", "GET/GB", cost)
    yield less("cpu.produce", "broker CPU, produce", "s/GB", cost)
    yield less("memory", "memory with the cache full", "MB", cost)


def _services() -> Iterable[Figure]:
    section = "Diskless topics on PostgreSQL and S3, all on this machine"

    def faster(name: str, title: str) -> Figure:
        return Figure(name=f"services.{name}", title=title, unit="MB/s", section=section)

    def quicker(name: str, title: str) -> Figure:
        return Figure(name=f"services.{name}", title=title, unit="ms", more_is_better=False, section=section)

    yield faster("produce", "produce")
    yield faster("produce.idempotent", "produce, idempotent")
    yield faster("consume", "consume from the store, then the cache")
    yield quicker("latency.p50", "acknowledged p50, one quiet producer")
    yield quicker("latency.p99", "acknowledged p99, one quiet producer")


def _tiered() -> Iterable[Figure]:
    catching_up, latency, cost = (
        f"Tiered storage on a directory: {part}"
        for part in ("copying, catching up (1 KB)", "traffic of 10 MB/s", "broker CPU")
    )

    def faster(name: str, title: str, target: Target | None = None) -> Figure:
        return Figure(name=f"tiered.{name}", title=title, unit="MB/s", target=target, section=catching_up)

    def less(name: str, title: str, unit: str, section: str, target: Target | None = None) -> Figure:
        return Figure(
            name=f"tiered.{name}", title=title, unit=unit, more_is_better=False, target=target, section=section
        )

    yield faster("copy", "copy, nothing else going on")
    moved = "of the records to be read are remote, the rest is in active segments"
    yield Figure(name="tiered.moved", title=moved, unit="%", section=catching_up)
    for case, words in (("cached", ""), ("cold", ", from the disk")):
        is_judged = case == "cached"
        for partitions in ("1p", "4p"):
            title = f"{partitions[0]} partition{'s' if partitions != '1p' else ''}{words}"
            yield faster(f"{case}.local.{partitions}", f"local segments, {title}")
            yield faster(f"{case}.remote.{partitions}", f"remote segments, {title}", Target(1.0) if is_judged else None)
            yield Figure(
                name=f"tiered.{case}.share.{partitions}",
                title=f"remote by local, {title}",
                unit="x",
                target=Target(0.6, Against.NOTHING) if is_judged else None,
                section=catching_up,
            )
    yield faster("drain.local", "local segments, 4 partitions, bare socket")
    yield faster("drain.remote", "remote segments, 4 partitions, bare socket")

    without = ("tiered.traffic.without.ack_p99", "not tiered")
    targets = {
        case: Target(most, Against.ANOTHER, *without) for case, most in (("traffic.copying", 1.5), ("backlog", 2.0))
    }
    for case, words in (
        ("traffic.without", "not tiered"),
        ("traffic.copying", "tiered"),
        ("readers.local", "beside 60 MB/s of old records, local"),
        ("readers.remote", "tiered, beside 60 MB/s of old records, remote"),
        ("backlog", "not tiered, beside the copy of a backlog"),
    ):
        yield less(f"{case}.ack_p50", f"acknowledged p50, {words}", "ms", latency)
        yield less(f"{case}.ack_p99", f"acknowledged p99, {words}", "ms", latency, targets.get(case))
        yield less(f"{case}.p99", f"end-to-end p99, {words}", "ms", latency)
    for case, words in (
        ("readers.local.out", "the reader of old local records"),
        ("readers.remote.out", "the reader of old remote records"),
        ("backlog.copy", "the copy of the backlog"),
    ):
        yield Figure(name=f"tiered.{case}", title=f"{words} meanwhile", unit="MB/s", section=latency)

    yield less("traffic.echo.p99", "p99 of a bare echo just before", "ms", latency)
    yield less("cpu.copy", "copy", "s/GB", cost)
    for kind in ("local", "remote"):
        for partitions in ("1p", "4p"):
            title = f"{kind} segments, {partitions[0]} partition{'s' if partitions != '1p' else ''}"
            yield less(f"cpu.cached.{kind}.{partitions}", title, "s/GB", cost)


def _tiered_through_memory() -> Iterable[Figure]:
    for store, section in (
        ("memory", "Tiered storage on a directory, through the broker's memory"),
        ("s3", "Tiered storage on S3, all on this machine"),
    ):
        for name, title, unit in (
            ("copy", "copy, nothing else going on", "MB/s"),
            ("cached.local.1p", "local segments, 1 partition", "MB/s"),
            ("cached.remote.1p", "remote segments, 1 partition", "MB/s"),
            ("cached.share.1p", "remote by local, 1 partition", "x"),
            ("cached.local.4p", "local segments, 4 partitions", "MB/s"),
            ("cached.remote.4p", "remote segments, 4 partitions", "MB/s"),
            ("cached.share.4p", "remote by local, 4 partitions", "x"),
            ("drain.remote", "remote segments, 4 partitions, bare socket", "MB/s"),
        ):
            yield Figure(name=f"tiered.{store}.{name}", title=title, unit=unit, section=section)
        for name, title, unit in (
            ("cpu.copy", "broker CPU, copy", "s/GB"),
            ("cpu.cached.remote.1p", "broker CPU, remote segments, 1 partition", "s/GB"),
            ("cpu.cached.remote.4p", "broker CPU, remote segments, 4 partitions", "s/GB"),
            ("rss", "memory afterwards", "MB"),
        ):
            yield Figure(name=f"tiered.{store}.{name}", title=title, unit=unit, more_is_better=False, section=section)


def _migration() -> Iterable[Figure]:
    moments = (("before", "before"), ("during", "in the second of the pause"), ("after", "after"))
    for kind, database, bound in (("sqlite", "SQLite", 250.0), ("postgresql", "PostgreSQL", 500.0)):
        for partitions in (1, 16, 256):
            section = f"Switch to diskless under load, {partitions} partition{'s' * (partitions > 1)}, {database}"
            target = Target(bound, Against.NOTHING) if partitions == 16 else None
            for name, title, unit in (
                ("pause", "longest time without an acknowledged record, of a partition", "ms"),
                ("pause.half", "the same, of half of the partitions", "ms"),
                ("pause.all", "the same, of all partitions together", "ms"),
                ("usual", "the same, of a partition in the two seconds before", "ms"),
                ("sealed", "longest time for which the broker took no record of a partition", "ms"),
                ("boundary", "from the change of the setting to the last boundary", "s"),
                ("hybrid", "from the change of the setting to HYBRID", "s"),
                *(
                    (f"{moment}.{quantile}", f"acknowledged {quantile}, {words}", "ms")
                    for moment, words in moments
                    for quantile in ("p50", "p99")
                ),
            ):
                yield Figure(
                    name=f"migration.{kind}.{partitions}p.{name}",
                    title=title,
                    unit=unit,
                    more_is_better=False,
                    target=target if name == "pause" else None,
                    section=section,
                )
        for case, words in (
            ("local", "below the boundary, local segments"),
            ("remote", "below the boundary, remote segments"),
            ("diskless", "from the boundary on"),
            ("whole", "a third of each, one after the other"),
        ):
            section = f"Consume a topic that was switched, 1 KB, 4 partitions, {database}"
            yield Figure(name=f"migration.{kind}.read.{case}", title=words, unit="MB/s", section=section)


FIGURES: Final[Mapping[str, Figure]] = {
    figure.name: figure
    for part in (
        _throughput,
        _latency,
        _connections,
        tail_figures,
        _transactions,
        group_figures,
        _footprint,
        _diskless,
        _services,
        catch_up_figures,
        _tiered,
        _tiered_through_memory,
        _migration,
        tiering_figures,
        _cpu,
        cluster_figures,
    )
    for figure in part()
}


@dataclass(slots=True)
class Results:
    """Samples by figure and system, at least one per round."""

    samples: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, system: str, measured: Mapping[str, float]) -> None:
        for name, value in measured.items():
            self.samples.setdefault(name, {}).setdefault(system, []).append(value)

    def median(self, name: str, system: str) -> float | None:
        values = self.samples.get(name, {}).get(system)
        return median(values) if values else None

    def ratio(self, name: str) -> float | None:
        """Strandline's median by Kafka's, or by that of the figure it is compared with."""
        target = FIGURES[name].target if name in FIGURES else None
        ours = self.median(name, "strandline")
        if target is not None and target.against is Against.ANOTHER:
            theirs = self.median(target.other, "strandline")
        else:
            theirs = self.median(name, "kafka")
        return ours / theirs if ours is not None and theirs else None

    def is_met(self, figure: Figure) -> bool | None:
        """Whether the target is met; None without a target or without what it needs."""
        if figure.target is None:
            return None
        is_ratio = figure.target.against is not Against.NOTHING
        value = self.ratio(figure.name) if is_ratio else self.median(figure.name, "strandline")
        if value is None:
            return None
        return value >= figure.target.bound if figure.more_is_better else value <= figure.target.bound
