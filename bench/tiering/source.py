"""Spark reads topics: with the data source of ours, and with Spark's own Kafka connector, in turn.

All columns of all records, in the same session, from the same broker, into a sink that throws them away. Topics in WAL
objects, and converted ones.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.generator import LoadFailed
from bench.measures import Measured
from bench.systems import StrandlineBroker
from bench.tiering import connector
from bench.tiering.conversion import WarmConverter
from bench.tiering.place import DISKLESS, KILOBYTE, MASTER, TieringPlace, TieringStep
from bench.topics import Topics
from strandline.pipeline.client import TieringClient
from strandline.pipeline.errors import PipelineFailed
from strandline.pipeline.session import SparkOptions, open_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARTITIONS: Final = 4
_WARM_UPS: Final = 6
_TURNS: Final = 6  # an even number: each goes first as often as the other
_QUICK_TURNS: Final = 4
_SEGMENTS: Final = {"segment.bytes": str(64 << 20), "local.retention.ms": "-1"}


class Records(NamedTuple):
    """What is in a topic."""

    name: str
    size: int
    records: int


_RECORDS: Final = (Records("1k", KILOBYTE, 500_000), Records("100b", 100, 5_000_000))


def steps(place: TieringPlace) -> Generator[TieringStep]:
    """Fill topics, convert half of them, read each in turns."""
    kinds = [kind._replace(records=int(kind.records * place.scale.share)) for kind in _RECORDS]
    with ExitStack() as stack:
        jars = connector.install(place.cache)
        broker = stack.enter_context(place.broker("source"))
        for kind in kinds:
            yield TieringStep(f"tiering, source, fill {kind.name}", partial(_fill, place, broker, kind))
        yield TieringStep("tiering, source, convert", partial(_convert, place, broker, kinds))
        # Both have their share of work in the JVM: 2 GB of heap are enough that neither waits for the collector.
        conf = {"spark.jars": jars, "spark.driver.memory": "2g"}
        try:
            session = stack.enter_context(open_session(SparkOptions(master=MASTER, has_ui=False, conf=conf)))
        except PipelineFailed as failure:
            raise LoadFailed(str(failure)) from failure
        reading = _Reading(session, broker)
        for kind in kinds:
            for state in ("diskless", "converted"):
                for turn in range(_WARM_UPS):
                    title = f"tiering, source, {kind.name} {state}, uncounted {turn + 1}"
                    yield TieringStep(title, partial(reading.warm_up, kind, state, turn))
                for turn in range(_QUICK_TURNS if place.is_quick else _TURNS):
                    title = f"tiering, source, {kind.name} {state}, turn {turn + 1}"
                    yield TieringStep(title, partial(reading.read_both, kind, state, turn))


def _fill(place: TieringPlace, broker: StrandlineBroker, kind: Records) -> Measured:
    names = [f"{kind.name}-{state}" for state in ("diskless", "converted")]
    Topics(broker.bootstrap).create(dict.fromkeys(names, _PARTITIONS), {**DISKLESS, **_SEGMENTS})
    for name in names:
        place.generator.run("produce", brokers=broker.bootstrap, topic=name, records=kind.records, size=kind.size)
    return {}


def _convert(place: TieringPlace, broker: StrandlineBroker, kinds: list[Records]) -> Measured:
    with WarmConverter(broker.bootstrap, MASTER, place.home / "source-driver.log") as driver:
        driver.wait_started()
        for kind in kinds:
            topic = f"{kind.name}-converted"
            with TieringClient(broker.bootstrap) as client:
                client.trigger(topic)
            driver.convert(topic)
    return {}


class _Reading:
    """A session that reads topics of a broker."""

    def __init__(self, session: SparkSession, broker: StrandlineBroker) -> None:
        from strandline.tiering import register

        register(session)
        self._session, self._where = session, broker.bootstrap

    def warm_up(self, kind: Records, state: str, turn: int) -> Measured:
        """Code of a JVM is fast after it has run for a while. The first time, all records are counted."""
        if not turn:
            for name, options in self._formats(kind, state).items():
                rows = self._load(name, options).count()
                if rows != kind.records + 1:  # the generator writes one record before the clock starts
                    raise LoadFailed(f"{name} finds {rows} records instead of {kind.records + 1}.")
        self.read_both(kind, state, turn)
        return {}

    def read_both(self, kind: Records, state: str, turn: int) -> Measured:
        formats = list(self._formats(kind, state).items())
        name = f"tiering.source.{kind.name}.{state}"
        measured: Measured = {}
        for source, options in formats if turn % 2 else reversed(formats):
            begun = time.perf_counter()
            self._load(source, options).write.format("noop").mode("overwrite").save()
            seconds = time.perf_counter() - begun
            ending = "kafka" if source == "kafka" else "ours"
            measured[f"{name}.{ending}"] = kind.records * kind.size / seconds / 1e6
        measured[f"{name}.ratio"] = measured[f"{name}.ours"] / measured[f"{name}.kafka"]
        return measured

    def _formats(self, kind: Records, state: str) -> Mapping[str, Mapping[str, str]]:
        topic = f"{kind.name}-{state}"
        return {
            "strandline": {"bootstrap": self._where, "topic": topic},
            "kafka": {"kafka.bootstrap.servers": self._where, "subscribe": topic},
        }

    def _load(self, name: str, options: Mapping[str, str]) -> DataFrame:
        return self._session.read.format(name).options(**options).option("startingOffsets", "earliest").load()
