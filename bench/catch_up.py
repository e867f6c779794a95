"""Catching up on a diskless topic that was written slowly, which makes many small objects.

Eight producers write 5,000 records of 100 B a second to eight partitions. One consumer then reads everything from a
broker that has just started: with nothing in the page cache, with everything in it, and from stores with 20 ms of
latency, a directory and an S3 server. All systems read copies of the same data. `linger` repeats it with less data and
with objects that wait for more batches.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from bench import s3_server
from bench.acknowledged import Acknowledged
from bench.catch_up_figures import CASES, LATENCY_MS
from bench.generator import Generator
from bench.measures import Measured, Scale
from bench.systems import Strandline, StrandlineBroker
from bench.tiering.place import DISKLESS, forget_pages
from bench.topics import Topics

_TOPIC: Final = "slowly"
_PARTITIONS: Final = 8
_RATE: Final = 5_000
_SIZE: Final = 100
_SECONDS: Final = 60
_QUICK_SECONDS: Final = 12
_LINGER_SECONDS: Final = 12
_PRODUCER_LINGER_MS: Final = "5"
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True)
class CatchUpPlace:
    """What a round needs: the systems in their order, the generator, and a directory of its own."""

    systems: Sequence[Strandline]
    generator: Generator
    scale: Scale
    home: Path
    cache: Path

    # Reading

    def fill_for_all(self, oldest: Strandline) -> Measured:
        """The data, written by one system, which all others can open."""
        seconds = _QUICK_SECONDS if self.scale.share < 1 else _SECONDS
        return self._fill(oldest.new_broker(self._data), seconds)

    def read(self, system: Strandline, case: str) -> Measured:
        """One case with one system."""
        with self._prepared(system, case) as broker:
            broker.start()
            try:
                return self._read(broker, case)
            finally:
                broker.stop()

    @property
    def cases(self) -> list[str]:
        """Those that can be measured here."""
        return [case for case in CASES if case != "s3" or s3_server.why_unavailable(self.cache) is None]

    @property
    def _data(self) -> Path:
        return self.home / "filled"

    @contextmanager
    def _prepared(self, system: Strandline, case: str) -> Iterator[StrandlineBroker]:
        copy = self.home / f"{system.name}-{case}"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self._data, copy / "broker")
        if case != "s3":
            latency = LATENCY_MS if case == "slow" else 0
            yield _broker(system, copy / "broker", latency)
        else:
            with s3_server.running(s3_server.build(self.cache), copy) as s3:
                settings = s3.settings("bench")
                shutil.move(copy / "broker" / "objects", s3.buckets / "bench" / "diskless")
                yield _broker(system, copy / "broker", LATENCY_MS, settings)
        shutil.rmtree(copy, ignore_errors=True)

    def _read(self, broker: StrandlineBroker, case: str) -> Measured:
        records, objects = _counted(self._data)
        if case == "warm":
            for path in broker.data_dir.rglob("*"):
                if path.is_file():
                    path.read_bytes()
        else:
            forget_pages(broker.data_dir.parent)
        cpu = broker.process.usage().cpu_seconds
        rate = self._consume(broker, records)
        spent = broker.process.usage().cpu_seconds - cpu
        return {
            f"catchup.{case}": rate,
            f"catchup.{case}.cpu": spent / records * 1e6,
            f"catchup.{case}.gets": broker.metric('strandline_diskless_object_requests_total{operation="get_range"}')
            / objects,
        }

    # Lingering

    def linger(self, system: Strandline, milliseconds: int) -> Measured:
        """Fill with a setting, and read."""
        home = self.home / f"linger-{milliseconds}"
        settings = {"strandline.produce.linger.ms": str(milliseconds)}
        filled = self._fill(system.new_broker(home, settings), _LINGER_SECONDS)
        records, _ = _counted(home)
        broker = system.new_broker(home, settings)
        broker.start()
        try:
            forget_pages(home)
            rate = self._consume(broker, records)
        finally:
            broker.stop()
        found = {
            "objects": filled["catchup.objects"],
            "p50": filled["catchup.fill.p50"],
            "p99": filled["catchup.fill.p99"],
            "catchup": rate,
        }
        return {f"linger.{milliseconds}.{name}": value for name, value in found.items()}

    # Both

    def _fill(self, broker: StrandlineBroker, seconds: int) -> Measured:
        broker.start()
        acknowledged = broker.data_dir.with_name(f"{broker.data_dir.name}.acknowledged")
        try:
            Topics(broker.bootstrap).create({_TOPIC: _PARTITIONS}, DISKLESS)
            self.generator.run(
                "switch",
                brokers=broker.bootstrap,
                topic=_TOPIC,
                partitions=_PARTITIONS,
                producers=_PARTITIONS,
                rate=_RATE,
                seconds=seconds,
                size=_SIZE,
                idempotence=0,
                file=str(acknowledged),
                rd_linger_ms=_PRODUCER_LINGER_MS,
            )
        finally:
            broker.stop()
        latencies = Acknowledged.read(acknowledged).latencies(0, time.monotonic())
        records, objects = _counted(broker.data_dir)
        with closing(sqlite3.connect(broker.data_dir / "metadata.db")) as database:
            rows = database.execute("SELECT count(*) FROM inkless_batch").fetchone()[0]
        return {
            "catchup.objects": objects / records * 10_000,
            "catchup.rows": rows / records * 10_000,
            **{f"catchup.fill.{name}": value for name, value in latencies.items()},
        }

    def _consume(self, broker: StrandlineBroker, records: int) -> float:
        answer = self.generator.run(
            "consume", brokers=broker.bootstrap, topic=_TOPIC, partitions=_PARTITIONS, records=records
        )
        return float(answer["records_s"])


def _broker(
    system: Strandline, data_dir: Path, latency: int, settings: Mapping[str, str] = _NOTHING
) -> StrandlineBroker:
    if latency:
        return system.new_broker_on_slow_storage(data_dir, latency, settings)
    return system.new_broker(data_dir, settings)


def _counted(data_dir: Path) -> tuple[int, int]:
    """Records and objects of a stopped broker."""
    with closing(sqlite3.connect(data_dir / "metadata.db")) as database:
        records: int = database.execute("SELECT sum(high_watermark) FROM inkless_log").fetchone()[0]
    return records, sum(path.is_file() for path in (data_dir / "objects").rglob("wal/**/*"))
