"""The figures of the tiering pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from bench.figure import Against, Figure, Target

_AMOUNTS: Final = (("64mb", "64 MB"), ("2gb", "2 GB"))
_SIZES: Final = (("1k", "1 KB"), ("100b", "100 B"))
_STATES: Final = (("diskless", "in WAL objects"), ("converted", "converted"))


def tiering_figures() -> Iterable[Figure]:
    """All of them, in the order of the table."""
    yield from _convert()
    yield from _rows()
    yield from _find()
    yield from _catch_up()
    yield from _source()


def _convert() -> Iterator[Figure]:
    for amount, words in _AMOUNTS:
        section = f"Conversion of {words} beside a plain copy of the same bytes, Spark on 2 cores"
        for name, title, unit in (
            ("split", "split", "MB/s"),
            ("merge", "merge", "MB/s"),
            ("both", "both, one after the other", "MB/s"),
            ("batches", "batches", "1/s"),
            ("segments", "segments made", ""),
            ("copy.first", "plain copy, object by object", "MB/s"),
            ("copy.second", "plain copy, into objects of the size of segments", "MB/s"),
            ("copy", "plain copy, both steps", "MB/s"),
        ):
            yield Figure(name=f"tiering.convert.{amount}.{name}", title=title, unit=unit, section=section)
        yield Figure(
            name=f"tiering.convert.{amount}.ratio",
            title="split and merge by plain copy",
            unit="x",
            section=section,
            target=Target(0.35, Against.NOTHING),
        )
    section = "Conversion, Spark itself"
    yield Figure(
        name="tiering.convert.memory",
        title="most memory of a task",
        unit="MB",
        more_is_better=False,
        section=section,
        target=Target(512, Against.NOTHING),
    )
    yield Figure(
        name="tiering.convert.start",
        title="from exec until Spark takes jobs",
        unit="s",
        more_is_better=False,
        section=section,
    )


def _rows() -> Iterator[Figure]:
    section = "Rows of the control plane under load, local.retention.ms=30000"
    for name, title, unit in (
        ("with", "rows at the end, converted", ""),
        ("without", "rows at the end, not converted", ""),
        ("files.with", "files at the end, split files among them, converted", ""),
        ("files.without", "files at the end, not converted", ""),
        ("splits.most", "most split files at a time", ""),
        ("growth.without", "the same, not converted", "x"),
    ):
        if name == "growth.without":
            yield Figure(
                name="tiering.rows.growth",
                title="rows of the last third by those of the second third, converted",
                unit="x",
                more_is_better=False,
                section=section,
                target=Target(1.25, Against.NOTHING),
            )
        yield Figure(name=f"tiering.rows.{name}", title=title, unit=unit, more_is_better=False, section=section)


def _find() -> Iterator[Figure]:
    for kind, database in (("sqlite", "SQLite"), ("postgresql", "PostgreSQL")):
        section = f"find_batches at the end of logs, {database}"
        for rows in ("100000", "1000000"):
            for partitions in (1, 16):
                for name, words in (("rows", f"{int(rows):,} rows"), ("converted", f"{int(rows):,} rows converted")):
                    for quantile in ("p50", "p99"):
                        yield Figure(
                            name=f"tiering.find.{kind}.{rows}.{partitions}p.{name}.{quantile}",
                            title=f"{quantile}, {partitions} partition{'s' * (partitions > 1)}, {words}",
                            unit="ms",
                            more_is_better=False,
                            section=section,
                        )


def _catch_up() -> Iterator[Figure]:
    section = "Cold catch-up of a topic of many small WAL objects"
    for state, words in _STATES:
        yield Figure(name=f"tiering.catchup.{state}", title=f"consume, {words}", unit="MB/s", section=section)
        yield Figure(
            name=f"tiering.catchup.{state}.seconds",
            title=f"from the start of the client to the last record, {words}",
            unit="s",
            more_is_better=False,
            section=section,
        )
        yield Figure(
            name=f"tiering.catchup.{state}.cpu",
            title=f"broker CPU, {words}",
            unit="s/GB",
            more_is_better=False,
            section=section,
        )
    yield Figure(name="tiering.catchup.objects", title="WAL objects of each topic", unit="", section=section)
    yield Figure(name="tiering.catchup.ratio", title="converted by WAL objects", unit="x", section=section)


def _source() -> Iterator[Figure]:
    for size, words in _SIZES:
        section = f"Spark reads a topic of {words} records, 2 cores"
        for state, where in _STATES:
            for name, title in (("ours", "the data source"), ("kafka", "Spark's Kafka connector")):
                yield Figure(
                    name=f"tiering.source.{size}.{state}.{name}",
                    title=f"{title}, {where}",
                    unit="MB/s",
                    section=section,
                )
            yield Figure(
                name=f"tiering.source.{size}.{state}.ratio",
                title=f"the data source by the connector, {where}",
                unit="x",
                section=section,
                target=Target(1.0, Against.NOTHING) if size == "1k" else None,
            )
