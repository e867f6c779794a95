"""A cold catch-up of a topic of many small WAL objects, and of one with the same records that was converted.

Both are read in turn, each time by a consumer of a broker that has just started, with nothing of its stores in the page
cache.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from functools import partial
from typing import Final

from bench.measures import Measured
from bench.systems import StrandlineBroker, remote_dir
from bench.tiering.conversion import WarmConverter
from bench.tiering.place import DISKLESS, KILOBYTE, MASTER, TieringPlace, TieringStep, forget_pages, objects_dir
from bench.topics import Topics
from strandline.pipeline.client import TieringClient

_PARTITIONS: Final = 16
_RECORDS: Final = 256_000
_QUICK_RECORDS: Final = 64_000
_TURNS: Final = 3
_QUICK_TURNS: Final = 1
_OBJECT_BYTES: Final = 64 * KILOBYTE
_BATCH_BYTES: Final = 4 * KILOBYTE
# As objects of many quiet producers: small, with small batches of many partitions.
_SMALL_OBJECTS: Final = {"inkless.produce.buffer.max.bytes": str(_OBJECT_BYTES)}
_TOPICS: Final = ("diskless", "converted")


def steps(place: TieringPlace) -> Generator[TieringStep]:
    """Fill both topics, convert one, read both in turn."""
    part = _CatchUp(place)
    yield TieringStep("tiering, catch-up, fill and convert", part.prepare)
    for turn in range(_QUICK_TURNS if place.is_quick else _TURNS):
        yield TieringStep(f"tiering, catch-up, turn {turn + 1}", partial(part.read_both, turn))


class _CatchUp:
    def __init__(self, place: TieringPlace) -> None:
        self._place = place
        self._records = _QUICK_RECORDS if place.is_quick else _RECORDS

    def prepare(self) -> Measured:
        with self._place.broker("catch-up", _SMALL_OBJECTS) as broker:
            where, counts = broker.bootstrap, [0]
            Topics(where).create(dict.fromkeys(_TOPICS, _PARTITIONS), {**DISKLESS, "local.retention.ms": "-1"})
            for topic in _TOPICS:
                self._place.generator.run(
                    "produce",
                    brokers=where,
                    topic=topic,
                    records=self._records,
                    size=KILOBYTE,
                    rd_batch_size=str(_BATCH_BYTES),
                )
                counts.append(sum(path.is_file() for path in objects_dir(broker).rglob("wal/**/*")))
            with TieringClient(where) as client:
                client.trigger("converted")
            with WarmConverter(where, MASTER, self._place.home / "catch-up-driver.log") as driver:
                driver.wait_started()
                driver.convert("converted")
        return {"tiering.catchup.objects": counts[-1] - counts[-2]}

    def read_both(self, turn: int) -> Measured:
        measured: Measured = {}
        for topic in _TOPICS if turn % 2 else reversed(_TOPICS):
            with self._place.broker("catch-up", _SMALL_OBJECTS) as broker:
                measured |= self._read(broker, topic)
        measured["tiering.catchup.ratio"] = measured["tiering.catchup.converted"] / measured["tiering.catchup.diskless"]
        return measured

    def _read(self, broker: StrandlineBroker, topic: str) -> Measured:
        for directory in (objects_dir(broker), remote_dir(broker.data_dir)):
            forget_pages(directory)
        name, cpu = f"tiering.catchup.{topic}", broker.process.usage().cpu_seconds
        begun = time.perf_counter()
        answer = self._place.generator.run(
            "consume", brokers=broker.bootstrap, topic=topic, partitions=_PARTITIONS, records=self._records
        )
        seconds = time.perf_counter() - begun
        spent = broker.process.usage().cpu_seconds - cpu
        return {
            name: float(answer["mb_s"]),
            f"{name}.seconds": seconds,
            f"{name}.cpu": spent / (self._records * KILOBYTE / 1e9),
        }
