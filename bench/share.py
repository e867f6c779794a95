"""Share groups (KIP-932): how fast their members get records. All systems get Kafka's client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from bench import java_program
from bench.figures import Workload
from bench.group_figures import SHARE_CASES
from bench.java_program import JavaProgram
from bench.measures import Bench, Measured, Step
from bench.systems import StrandlineBroker

_SOURCE: Final = Path(__file__).resolve().parent / "java" / "ShareLoad.java"
_WORKLOAD: Final = Workload(name="share", title="1 KB, 16 partitions", size=1024, partitions=16, records=400_000)
_WARMUP: Final = 0.25
"""The part of the records before the measurement: a JVM compiles its hot code only after it has seen it often."""
_CLASSIC: Final[Mapping[str, str]] = MappingProxyType({})
_DISKLESS: Final[Mapping[str, str]] = MappingProxyType({"diskless.enable": "true"})


@dataclass(frozen=True, slots=True)
class ShareLoad:
    """The program that reads: so many members of one group, which acknowledge in one of the two ways."""

    program: JavaProgram

    @classmethod
    def build(cls, cache: Path) -> ShareLoad:
        return cls(java_program.build(_SOURCE, cache))

    def run(self, bench: Bench, topic: str, *, members: int, acknowledgement: str, records: int) -> Measured:
        options: dict[str, str | int] = {
            "brokers": bench.broker.bootstrap,
            "topic": topic,
            "group": f"{topic}-readers",
            "members": members,
            "records": records,
            "warmup": int(records * _WARMUP),
            "acknowledgement": acknowledgement,
        }
        answer = self.program.measure(options)
        return {"mb": float(answer["mb_s"]), "records": float(answer["records_s"])}


def steps(cache: Path) -> Iterator[Step]:
    """The measurements, each with a topic of its own."""
    load = ShareLoad.build(cache)
    for kind, config in (("classic", _CLASSIC), ("diskless", _DISKLESS)):
        for members, acknowledgement in SHARE_CASES:
            title = f"share group of {members}, {acknowledgement} acknowledgement, {kind} topic"
            how = partial(_read, load=load, kind=kind, config=config, members=members, acknowledgement=acknowledgement)
            yield Step(title, how)


def _read(
    bench: Bench, *, load: ShareLoad, kind: str, config: Mapping[str, str], members: int, acknowledgement: str
) -> Measured:
    """A group reads a topic that is full. Kafka has no diskless ones."""
    if kind == "diskless" and not isinstance(bench.broker, StrandlineBroker):
        return {}
    records = int(_WORKLOAD.records * max(bench.scale.share, 0.5))
    name = f"{kind}.{acknowledgement}.{members}"
    measured: Measured = {}
    with bench.topic(f"bench-share-{name}", _WORKLOAD.partitions, config) as topic:
        bench.produce(topic, _WORKLOAD, records)
        with bench.cpu_per_gb(measured, f"share.{name}.cpu", records * _WORKLOAD.size):
            found = load.run(bench, topic, members=members, acknowledgement=acknowledgement, records=records)
    return measured | {f"share.{name}.{part}": value for part, value in found.items()}
