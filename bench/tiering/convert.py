"""Split and merge beside a plain copy of the same bytes, in turn."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from bench.generator import LoadFailed
from bench.measures import Measured
from bench.systems import StrandlineBroker
from bench.tiering.conversion import WarmConverter
from bench.tiering.place import CORES, DISKLESS, KILOBYTE, MASTER, TieringPlace, TieringStep, objects_dir, remove
from bench.tiering.plain_copy import PlainCopier, plain_copier
from bench.topics import Topics
from strandline.pipeline.client import TieringClient

_WARM_UPS: Final = 2


class Amount(NamedTuple):
    """How much is converted at a time."""

    name: str
    records: int
    """Of 1 KB."""
    partitions: int
    segment_bytes: int
    turns: int


SMALL: Final = Amount("64mb", 62_500, 4, 16 << 20, 3)
LARGE: Final = Amount("2gb", 1_950_000, 16, 64 << 20, 1)
_WARM_UP: Final = Amount("warm-up", 62_500, 4, 16 << 20, 1)


def steps(place: TieringPlace) -> Generator[TieringStep]:
    """Warm Spark up, then convert topics of both sizes."""
    amounts = [SMALL] if place.is_quick else [SMALL, LARGE]
    with ExitStack() as stack:
        # What is converted is what was triggered: nothing happens by age.
        broker = stack.enter_context(place.broker("convert"))
        copier = stack.enter_context(plain_copier(CORES))
        log_file = place.home / "convert-driver.log"
        driver = stack.enter_context(WarmConverter(broker.bootstrap, MASTER, log_file))
        part = _Converting(place, broker, copier, driver)
        yield TieringStep("tiering, start of Spark", part.start)
        for number in range(_WARM_UPS):
            yield TieringStep(f"tiering, convert, uncounted, {number + 1}", part.warm_up)
        for amount in amounts:
            for turn in range(amount.turns):
                part.turn += 1
                title = f"tiering, convert {amount.name}, turn {turn + 1}"
                yield TieringStep(title, partial(part.measure, amount))
        yield TieringStep("tiering, memory of tasks", part.memory)


class _Converting:
    """A broker, a driver that converts its topics, and processes that copy their bytes."""

    def __init__(
        self, place: TieringPlace, broker: StrandlineBroker, copier: PlainCopier, driver: WarmConverter
    ) -> None:
        self._place, self._broker, self._copier, self._driver = place, broker, copier, driver
        self.turn = 0
        self._topics = 0

    def start(self) -> Measured:
        return {"tiering.convert.start": self._driver.wait_started()}

    def warm_up(self) -> Measured:
        self._both(_WARM_UP)
        return {}

    def measure(self, amount: Amount) -> Measured:
        return self._both(amount)

    def memory(self) -> Measured:
        return {"tiering.convert.memory": self._driver.memory.peak_bytes / 1e6}

    def _both(self, amount: Amount) -> Measured:
        """A topic is filled; its objects are copied and converted, in an order that changes from turn to turn."""
        topic, links = self._fill(amount)
        name = f"tiering.convert.{amount.name}"
        measured: Measured = {}
        for is_copy in (True, False) if self.turn % 2 else (False, True):
            os.sync()
            measured |= self._copy(name, links, amount) if is_copy else self._convert(name, topic)
        measured[f"{name}.ratio"] = measured[f"{name}.both"] / measured[f"{name}.copy"]
        remove(links)
        return measured

    def _fill(self, amount: Amount) -> tuple[str, Path]:
        """A topic with records, and links to its WAL objects, which the broker may delete after the conversion."""
        self._topics += 1
        topic = f"{amount.name}-{self._topics}"
        where, store = self._broker.bootstrap, objects_dir(self._broker)
        config = {**DISKLESS, "segment.bytes": str(amount.segment_bytes), "local.retention.ms": "-1"}
        Topics(where).create({topic: amount.partitions}, config)
        before = {path for path in store.rglob("wal/**/*") if path.is_file()}
        self._place.generator.run("produce", brokers=where, topic=topic, records=amount.records, size=KILOBYTE)
        links = self._place.home / f"links-{topic}"
        links.mkdir(parents=True)
        for path in store.rglob("wal/**/*"):
            if path.is_file() and path not in before:
                os.link(path, links / path.name)
        with TieringClient(where) as client:
            client.trigger(topic)
        return topic, links

    def _convert(self, name: str, topic: str) -> Measured:
        done = self._driver.convert(topic)
        return {
            f"{name}.split": done.bytes / done.split_seconds / 1e6,
            f"{name}.merge": done.bytes / done.merge_seconds / 1e6,
            f"{name}.both": done.bytes / done.seconds / 1e6,
            f"{name}.batches": done.batches / done.seconds,
            f"{name}.segments": done.segments,
        }

    def _copy(self, name: str, links: Path, amount: Amount) -> Measured:
        size = sum(path.stat().st_size for path in links.iterdir())
        if not size:
            raise LoadFailed(f"There are no WAL objects of {name}.")
        target = self._place.home / f"copies-{links.name}"
        seconds = self._copier.copy(links, target, amount.segment_bytes)
        remove(target)
        return {
            f"{name}.copy.first": size / seconds.first / 1e6,
            f"{name}.copy.second": size / seconds.second / 1e6,
            f"{name}.copy": size / sum(seconds) / 1e6,
        }
