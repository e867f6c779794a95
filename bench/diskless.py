"""Diskless topics beside classic ones, on one broker of ours: speed, latency, requests to the object store, memory.

On SQLite and a directory, and again on PostgreSQL and an S3 server of this machine, which take their share of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench import s3_server
from bench.controlplane_load import databases
from bench.measures import Bench, Measured, Step
from bench.systems import Broker, StrandlineBroker
from bench.topics import Topics

_PARTITIONS: Final = 16
_SIZE: Final = 1024
_RECORDS: Final = 600_000
_CACHED_RECORDS: Final = 120_000  # 120 MB: less than the cache keeps of what was just written
_LOOP_SECONDS: Final = 4
_PRODUCERS: Final = 8
_QUIET_RATE: Final = 100
_SERVICES_RATE: Final = 20
_DISKLESS: Final = {"diskless.enable": "true"}
SLOW_MILLISECONDS: Final = 50


def steps() -> Iterator[Step]:
    """What to do on each broker with a directory as its store, in this order."""
    yield Step("diskless, a classic topic", _classic)
    yield Step("diskless, produce and consume", _throughput)
    yield Step("diskless, the newest records", _from_cache)
    yield Step("diskless, latency", _latency)


def slow_storage_steps() -> Iterator[Step]:
    """What to do on each broker whose store is slow."""
    yield Step("diskless, a slow store", _on_slow_storage)


def services_steps() -> Iterator[Step]:
    """What to do on each broker with services: many small parts less, since the services decide."""
    yield Step("diskless on PostgreSQL and S3", _on_services)


@contextmanager
def services(data_dir: Path, cache: Path) -> Iterator[Callable[[int], Mapping[str, str]]]:
    """PostgreSQL and S3 for the time of a block: settings of brokers with a database and a bucket of their own."""
    with s3_server.running(s3_server.build(cache), data_dir) as s3, databases("postgresql", data_dir) as new_database:
        yield lambda number: {**s3.settings(f"bench{number}"), "strandline.metadata.url": new_database(number)}


def _on_services(bench: Bench) -> Measured:
    broker, generator = bench.broker, bench.generator
    records = max(int(_RECORDS * bench.scale.share) // 2, 50_000)
    Topics(broker.bootstrap).create({"plain": _PARTITIONS, "idempotent": _PARTITIONS, "quiet": 1}, _DISKLESS)
    produced = _produce(bench, "plain", records)
    idempotent = _produce(bench, "idempotent", records, idempotence=1)
    consumed = generator.run(
        "consume", brokers=broker.bootstrap, topic="plain", partitions=_PARTITIONS, records=records
    )
    quiet = generator.run(
        "latency",
        topic="quiet",
        brokers=broker.bootstrap,
        rate=_SERVICES_RATE,
        seconds=bench.scale.latency_seconds,
    )["acknowledged"]
    return {
        "services.produce": produced,
        "services.produce.idempotent": idempotent,
        "services.consume": float(consumed["mb_s"]),
        "services.latency.p50": float(quiet["p50_ms"]),
        "services.latency.p99": float(quiet["p99_ms"]),
    }


def _classic(bench: Bench) -> Measured:
    Topics(bench.broker.bootstrap).create({"classic": _PARTITIONS})
    return {"diskless.classic.produce": _produce(bench, "classic", _records(bench))}


def _throughput(bench: Bench) -> Measured:
    broker, records = bench.broker, _records(bench)
    Topics(broker.bootstrap).create({"diskless": _PARTITIONS, "idempotent": _PARTITIONS}, _DISKLESS)
    gigabytes = records * _SIZE / 1e9
    measured: Measured = {}
    puts = _requests(broker, "put")
    with bench.cpu_per_gb(measured, "diskless.cpu.produce", records * _SIZE):
        measured["diskless.produce"] = _produce(bench, "diskless", records)
    measured["diskless.puts"] = (_requests(broker, "put") - puts) / gigabytes
    measured["diskless.produce.idempotent"] = _produce(bench, "idempotent", records, idempotence=1)
    gets = _requests(broker, "get_range")
    answer = bench.generator.run(
        "consume", brokers=broker.bootstrap, topic="diskless", partitions=_PARTITIONS, records=records
    )
    measured["diskless.consume"] = float(answer["mb_s"])
    measured["diskless.gets"] = (_requests(broker, "get_range") - gets) / gigabytes
    measured["diskless.memory"] = broker.process.usage().rss_bytes / 1e6
    return measured


def _from_cache(bench: Bench) -> Measured:
    """A consumer that reads the newest 120 MB again and again: from the page cache, and from ours."""
    where = bench.broker.bootstrap
    topics = Topics(where)
    topics.create({"classic-tail": _PARTITIONS})
    topics.create({"diskless-tail": _PARTITIONS}, _DISKLESS)
    measured: Measured = {}
    for topic, name in (("classic-tail", "diskless.classic.consume"), ("diskless-tail", "diskless.consume.cached")):
        _produce(bench, topic, _CACHED_RECORDS)
        load = bench.generator.start("consume", brokers=where, topic=topic, partitions=_PARTITIONS, loop=1)
        time.sleep(_LOOP_SECONDS)
        measured[name] = float(load.stop()["mb_s"])
    return measured


def _latency(bench: Bench) -> Measured:
    """From produce() to the acknowledgement: one quiet producer, then several."""
    where, generator = bench.broker.bootstrap, bench.generator
    Topics(where).create({"quiet": 1, "busy": _PARTITIONS}, _DISKLESS)
    options: dict[str, str | int] = {"brokers": where, "rate": _QUIET_RATE, "seconds": bench.scale.latency_seconds}
    one = generator.run("latency", topic="quiet", **options)["acknowledged"]
    loads = [generator.start("latency", topic="busy", **options) for _ in range(_PRODUCERS)]
    many = [load.wait()["acknowledged"] for load in loads]
    return {
        "diskless.latency.one.p50": float(one["p50_ms"]),
        "diskless.latency.one.p99": float(one["p99_ms"]),
        "diskless.latency.many.p50": sorted(float(answer["p50_ms"]) for answer in many)[_PRODUCERS // 2],
        "diskless.latency.many.p99": max(float(answer["p99_ms"]) for answer in many),
    }


def _on_slow_storage(bench: Bench) -> Measured:
    Topics(bench.broker.bootstrap).create({"slow": _PARTITIONS}, _DISKLESS)
    return {"diskless.slow.produce": _produce(bench, "slow", max(int(_RECORDS * bench.scale.share) // 2, 50_000))}


def _records(bench: Bench) -> int:
    return max(int(_RECORDS * bench.scale.share), 50_000)


def _produce(bench: Bench, topic: str, records: int, **options: int) -> float:
    answer = bench.generator.run(
        "produce", brokers=bench.broker.bootstrap, topic=topic, records=records, size=_SIZE, codec="none", **options
    )
    return float(answer["mb_s"])


def _requests(broker: Broker, operation: str) -> float:
    """How many requests of one kind the object store has had."""
    assert isinstance(broker, StrandlineBroker)
    return broker.metric(f'strandline_diskless_object_requests_total{{operation="{operation}"}}')
