"""Diskless topics beside classic ones, on one broker of ours: speed, latency, requests to the object store, memory.

On SQLite and a directory, and again on PostgreSQL and an S3 server of this machine, which take their share of it.
"""

from __future__ import annotations

import time
import urllib.request
from pathlib import Path
from typing import Final

from bench import s3_server
from bench.controlplane_load import databases
from bench.generator import Generator
from bench.measures import Measured, Scale
from bench.systems import Strandline, StrandlineBroker
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


def diskless(system: Strandline, generator: Generator, scale: Scale, data_dir: Path) -> Measured:
    """Everything on a directory, then one producer with 50 ms added to every call of the store."""
    measured: Measured = {}
    broker = system.new_broker(data_dir / "fast")
    try:
        broker.start()
        measured |= _throughput(broker, generator, scale)
        measured["diskless.memory"] = broker.process.usage().rss_bytes / 1e6
        measured |= _from_cache(broker, generator)
        measured |= _latency(broker, generator, scale)
    finally:
        broker.stop()
    return measured | _on_slow_storage(system, generator, scale, data_dir / "slow")


def diskless_on_services(
    system: Strandline, generator: Generator, scale: Scale, data_dir: Path, cache: Path
) -> Measured:
    """The same topics on PostgreSQL and S3: many small parts less, since the services decide."""
    with s3_server.running(s3_server.build(cache), data_dir) as s3, databases("postgresql", data_dir) as new_database:
        settings = {**s3.settings("bench"), "strandline.metadata.url": new_database(1)}
        broker = system.new_broker(data_dir / "broker", settings)
        try:
            broker.start()
            topics, records = Topics(broker.bootstrap), max(int(_RECORDS * scale.share) // 2, 50_000)
            topics.create({"plain": _PARTITIONS, "idempotent": _PARTITIONS, "quiet": 1}, _DISKLESS)
            produced = _produce(broker, generator, "plain", records)
            idempotent = _produce(broker, generator, "idempotent", records, idempotence=1)
            consumed = generator.run(
                "consume", brokers=broker.bootstrap, topic="plain", partitions=_PARTITIONS, records=records
            )
            quiet = generator.run(
                "latency",
                topic="quiet",
                brokers=broker.bootstrap,
                rate=_SERVICES_RATE,
                seconds=scale.latency_seconds,
            )["acknowledged"]
        finally:
            broker.stop()
    return {
        "services.produce": produced,
        "services.produce.idempotent": idempotent,
        "services.consume": float(consumed["mb_s"]),
        "services.latency.p50": float(quiet["p50_ms"]),
        "services.latency.p99": float(quiet["p99_ms"]),
    }


def _throughput(broker: StrandlineBroker, generator: Generator, scale: Scale) -> Measured:
    topics, records = Topics(broker.bootstrap), max(int(_RECORDS * scale.share), 50_000)
    topics.create({"classic": _PARTITIONS})
    topics.create({"diskless": _PARTITIONS, "idempotent": _PARTITIONS}, _DISKLESS)
    gigabytes = records * _SIZE / 1e9
    measured = {"diskless.classic.produce": _produce(broker, generator, "classic", records)}
    puts, cpu = _requests(broker, "put"), broker.process.usage().cpu_seconds
    measured["diskless.produce"] = _produce(broker, generator, "diskless", records)
    measured["diskless.puts"] = (_requests(broker, "put") - puts) / gigabytes
    measured["diskless.cpu.produce"] = (broker.process.usage().cpu_seconds - cpu) / gigabytes
    measured["diskless.produce.idempotent"] = _produce(broker, generator, "idempotent", records, idempotence=1)
    gets = _requests(broker, "get_range")
    answer = generator.run(
        "consume", brokers=broker.bootstrap, topic="diskless", partitions=_PARTITIONS, records=records
    )
    measured["diskless.consume"] = float(answer["mb_s"])
    measured["diskless.gets"] = (_requests(broker, "get_range") - gets) / gigabytes
    return measured


def _from_cache(broker: StrandlineBroker, generator: Generator) -> Measured:
    """A consumer that reads the newest 120 MB again and again: from the page cache, and from ours."""
    topics = Topics(broker.bootstrap)
    topics.create({"classic-tail": _PARTITIONS})
    topics.create({"diskless-tail": _PARTITIONS}, _DISKLESS)
    measured: Measured = {}
    for topic, name in (("classic-tail", "diskless.classic.consume"), ("diskless-tail", "diskless.consume.cached")):
        _produce(broker, generator, topic, _CACHED_RECORDS)
        load = generator.start("consume", brokers=broker.bootstrap, topic=topic, partitions=_PARTITIONS, loop=1)
        time.sleep(_LOOP_SECONDS)
        measured[name] = float(load.stop()["mb_s"])
    return measured


def _latency(broker: StrandlineBroker, generator: Generator, scale: Scale) -> Measured:
    """From produce() to the acknowledgement: one quiet producer, then several."""
    Topics(broker.bootstrap).create({"quiet": 1, "busy": _PARTITIONS}, _DISKLESS)
    options: dict[str, str | int] = {"brokers": broker.bootstrap, "rate": _QUIET_RATE, "seconds": scale.latency_seconds}
    one = generator.run("latency", topic="quiet", **options)["acknowledged"]
    loads = [generator.start("latency", topic="busy", **options) for _ in range(_PRODUCERS)]
    many = [load.wait()["acknowledged"] for load in loads]
    return {
        "diskless.latency.one.p50": float(one["p50_ms"]),
        "diskless.latency.one.p99": float(one["p99_ms"]),
        "diskless.latency.many.p50": sorted(float(answer["p50_ms"]) for answer in many)[_PRODUCERS // 2],
        "diskless.latency.many.p99": max(float(answer["p99_ms"]) for answer in many),
    }


def _on_slow_storage(system: Strandline, generator: Generator, scale: Scale, data_dir: Path) -> Measured:
    broker = system.new_broker_on_slow_storage(data_dir, SLOW_MILLISECONDS)
    try:
        broker.start()
        Topics(broker.bootstrap).create({"slow": _PARTITIONS}, _DISKLESS)
        speed = _produce(broker, generator, "slow", max(int(_RECORDS * scale.share) // 2, 50_000))
    finally:
        broker.stop()
    return {"diskless.slow.produce": speed}


def _produce(broker: StrandlineBroker, generator: Generator, topic: str, records: int, **options: int) -> float:
    answer = generator.run(
        "produce", brokers=broker.bootstrap, topic=topic, records=records, size=_SIZE, codec="none", **options
    )
    return float(answer["mb_s"])


def _requests(broker: StrandlineBroker, operation: str) -> float:
    """How many requests of one kind the object store has had."""
    with urllib.request.urlopen(broker.metrics_url, timeout=10) as response:
        for line in response.read().decode().splitlines():
            if line.startswith(f'strandline_diskless_object_requests_total{{operation="{operation}"}}'):
                return float(line.rpartition(" ")[2])
    return 0.0
