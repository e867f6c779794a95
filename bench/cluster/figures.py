"""The figures of a cluster of three, and the targets that they are judged by."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bench.figure import Against, Figure, Target

_PAUSES: Final = "Pauses of writes, acks=all, min.insync.replicas=2"
_SHOWN: Final = "From a change until every broker shows it, 10,000 partitions"

# Of the workloads of `bench.figures`, which imports this module.
WORKLOADS: Final = (
    ("1k.16p", "1 KB, 16 partitions"),
    ("100b.16p", "100 B, 16 partitions"),
    ("1k.1p", "1 KB, 1 partition"),
)

# The longest of all events is judged; a leader that is suspended may take its session of 9 s and a second more.
_OUTAGES: Final = (
    ("kill", "SIGKILL, all", 2.0),
    ("leader", "SIGKILL of a leader", 2.0),
    ("controller", "SIGKILL of the controller", 2.0),
    ("suspended", "SIGSTOP of a leader", 10.0),
    ("rolling", "clean restart of each in turn", 0.5),
)

CHANGES: Final = (
    ("create", "a new topic of 10 partitions"),
    ("grow", "10 more partitions for it"),
    ("config", "a setting of it"),
    ("bulk", "a new topic of 1,000 partitions"),
    ("elections", "its preferred leaders, after a restart"),
    ("delete", "it is gone"),
)


def cluster_figures() -> Iterable[Figure]:
    yield from _throughput()
    yield from _latency()
    yield from _outages()
    for name, title in CHANGES:
        yield Figure(name=f"cluster.shown.{name}", title=title, unit="ms", more_is_better=False, section=_SHOWN)
    yield from _idle()


def _throughput() -> Iterable[Figure]:
    for name, title in WORKLOADS:
        yield Figure(
            name=f"cluster.produce.{name}",
            title=title,
            unit="MB/s",
            target=Target(1.5) if name == "1k.16p" else None,
            section="Produce to three replicas, acks=all",
        )
    for name, title in WORKLOADS:
        yield Figure(name=f"cluster.consume.{name}", title=title, unit="MB/s", section="Consume from three replicas")
    for direction in ("produce", "consume"):
        for name, title in WORKLOADS:
            is_judged = (direction, name) == ("produce", "1k.16p")
            yield Figure(
                name=f"cluster.cpu.{direction}.{name}",
                title=f"{direction} {title}",
                unit="s/GB",
                more_is_better=False,
                target=Target(0.5) if is_judged else None,
                section="CPU of all brokers and the database per GB",
            )


def _latency() -> Iterable[Figure]:
    for what, words in (("ack", "acknowledged"), ("end", "end to end")):
        for part in ("p50", "p99", "max"):
            yield Figure(
                name=f"cluster.latency.{what}.{part}",
                title=f"{words}, {part}",
                unit="ms",
                more_is_better=False,
                section="Latency of three replicas at 1,000 records/s",
            )


def _outages() -> Iterable[Figure]:
    for name, title, bound in _OUTAGES:
        yield Figure(
            name=f"cluster.pause.{name}.longest",
            title=f"{title}, longest",
            unit="s",
            more_is_better=False,
            target=Target(bound, Against.NOTHING),
            section=_PAUSES,
        )
        yield Figure(
            name=f"cluster.pause.{name}.median",
            title=f"{title}, median",
            unit="s",
            more_is_better=False,
            section=_PAUSES,
        )
    yield Figure(
        name="cluster.pause.given_up",
        title="records that the client gave up",
        unit="",
        more_is_better=False,
        target=Target(0.0, Against.NOTHING),
        section=_PAUSES,
    )


def _idle() -> Iterable[Figure]:
    section = "A cluster at rest, 2,000 partitions of three replicas"
    for name, title, bound in (
        ("mean", "CPU of a broker, mean of three", None),
        ("most", "CPU of the busiest broker", 3.0),
        ("database", "CPU of its database", None),
    ):
        yield Figure(
            name=f"cluster.idle.{name}",
            title=title,
            unit="% of a core",
            more_is_better=False,
            target=None if bound is None else Target(bound, Against.NOTHING),
            section=section,
        )
    yield Figure(
        name="cluster.idle.memory",
        title="memory of a broker, mean of three",
        unit="MB",
        more_is_better=False,
        section=section,
    )
