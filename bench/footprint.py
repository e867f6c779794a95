"""What a broker costs when it has little to do: start-up, memory, idle CPU. Starts and stops brokers of its own."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from bench.figures import Workload
from bench.generator import Generator
from bench.measures import Bench, Measured, Scale
from bench.systems import Broker, System
from bench.topics import Topics

_SETTLE_SECONDS: Final = 3.0
_TOPICS: Final = 20
_PARTITIONS_PER_TOPIC: Final = 100
_GIGABYTE: Final = Workload(name="1gb", title="", size=1024, partitions=16, records=1_000_000)


def footprint(system: System, generator: Generator, scale: Scale, data_dir: Path) -> Measured:
    """Start-up and memory with 1 and with 2,000 partitions (each after a clean stop), memory after 1 GB, idle CPU."""
    broker = system.new_broker(data_dir)
    try:
        measured = _with_one_partition(broker, generator, scale)
        if system.name in scale.many_partitions_for:
            measured |= _with_many_partitions(broker, scale)
            measured["memory.per2000p"] = measured["memory.2000p"] - measured["memory.rest"]
    finally:
        broker.stop()
    return measured


def _with_one_partition(broker: Broker, generator: Generator, scale: Scale) -> Measured:
    broker.start()
    Topics(broker.bootstrap).create({"one": 1})
    broker.stop()
    measured = {"startup.1p": broker.start(led_partitions=1)}
    time.sleep(_SETTLE_SECONDS)
    measured["memory.rest"] = broker.process.usage().rss_bytes / 1e6
    _move_a_gigabyte(Bench(broker, generator, scale))
    measured["memory.1gb"] = broker.process.usage().rss_bytes / 1e6
    return measured


def _with_many_partitions(broker: Broker, scale: Scale) -> Measured:
    Topics(broker.bootstrap).create({f"many-{number:02}": _PARTITIONS_PER_TOPIC for number in range(_TOPICS)})
    measured = {"stop.2000p": broker.stop()}
    measured["startup.2000p"] = broker.start(led_partitions=1 + _TOPICS * _PARTITIONS_PER_TOPIC)
    time.sleep(_SETTLE_SECONDS)
    before = broker.process.usage()
    time.sleep(scale.idle_seconds)
    measured["memory.2000p"] = before.rss_bytes / 1e6
    measured["cpu.idle.2000p"] = (broker.process.usage().cpu_seconds - before.cpu_seconds) / scale.idle_seconds * 100
    return measured


def _move_a_gigabyte(bench: Bench) -> None:
    with bench.topic("gigabyte", _GIGABYTE.partitions) as topic:
        bench.produce(topic, _GIGABYTE, _GIGABYTE.records)
        bench.consume(topic, _GIGABYTE, _GIGABYTE.records)
