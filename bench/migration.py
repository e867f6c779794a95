"""The switch of a topic to diskless under load: how long writes pause, how long it takes, and reading what it leaves.

On one broker of ours, with remote segments and objects in directories, on SQLite and again on PostgreSQL.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from bench.acknowledged import Acknowledged
from bench.generator import LoadFailed
from bench.measures import Bench, Measured, Scale, Step, killed_on_error
from bench.systems import StrandlineBroker
from bench.topics import Topics

# Records a second on each partition, and how many producers share them. librdkafka sends a request for each partition
# and has five of them on their way: with more partitions for a producer it would be the bottleneck, not the broker.
LOADS: Final[Mapping[int, tuple[int, int]]] = {1: (200, 1), 16: (50, 4), 256: (5, 32)}
_SIZE: Final = 1024
_HISTORY_RECORDS: Final = 64_000
_READ_PARTITIONS: Final = 4
_READ_RECORDS: Final = 400_000
_LEAST_RECORDS: Final = 50_000
_SEGMENT_BYTES: Final = 1 << 20
_READ_SEGMENT_BYTES: Final = 16 << 20
_LOCAL_HISTORY: Final = {"segment.bytes": str(_SEGMENT_BYTES), "remote.storage.enable": "true"}
_ON: Final = {"diskless.enable": "true"}
_LEAST_SECONDS: Final = 4.0  # of load before the switch, and after everything is copied
_RETRY_SECONDS: Final = 1.0  # librdkafka waits 0.1, 0.2 and 0.4 s before it tries again
_PATIENCE_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 0.05


def parts(kind: str, scale: Scale) -> Iterator[Sequence[Step]]:
    """What to do on brokers with this database; each part needs fresh ones."""
    for partitions in (1, 16) if scale.share < 1 else LOADS:
        yield [Step(f"switch of {partitions} on {kind}", partial(_switch_under_load, kind=kind, partitions=partitions))]
    yield [Step(f"reading switched topics, {kind}", partial(_read, kind=kind))]


def _switch_under_load(bench: Bench, *, kind: str, partitions: int) -> Measured:
    """Switch a topic with some history while producers write to each of its partitions."""
    where, topic = bench.broker.bootstrap, "switched"
    rate, producers = LOADS[partitions]
    topics, status = Topics(where), _Status(bench, topic)
    topics.create({topic: partitions}, _LOCAL_HISTORY)
    bench.generator.run("produce", brokers=where, topic=topic, records=_HISTORY_RECORDS, size=_SIZE)
    file = bench.broker.data_dir.with_name("acknowledged")
    load = bench.generator.start(
        "switch",
        brokers=where,
        topic=topic,
        partitions=partitions,
        producers=producers,
        rate=rate * partitions,
        seconds=int(2 * _PATIENCE_SECONDS),
        size=_SIZE,
        file=str(file),
    )
    with killed_on_error(load):
        time.sleep(_LEAST_SECONDS)
        asked_at = time.monotonic()
        topics.configure([topic], _ON)
        boundary_at = status.wait(_has_boundaries, "every partition to have its boundary")
        hybrid_at = status.wait(_is_hybrid, "the topic to be HYBRID")
        time.sleep(_LEAST_SECONDS)
        load.stop()
    seen = Acknowledged.read(file)
    pause = seen.longest_pause(asked_at, boundary_at + _RETRY_SECONDS)
    moments = {
        "before": (asked_at - _LEAST_SECONDS / 2, asked_at),
        "during": (pause.middle - 0.5, pause.middle + 0.5),
        "after": (hybrid_at + _LEAST_SECONDS / 2, hybrid_at + _LEAST_SECONDS),
    }
    name = f"migration.{kind}.{partitions}p"
    latencies = {
        f"{name}.{moment}.{quantile}": value
        for moment, between in moments.items()
        for quantile, value in seen.latencies(*between).items()
    }
    return {
        f"{name}.pause": pause.of_a_partition * 1000,
        f"{name}.pause.half": pause.of_half_the_partitions * 1000,
        f"{name}.pause.all": pause.of_all_partitions * 1000,
        f"{name}.usual": seen.longest_pause(*moments["before"]).of_a_partition * 1000,
        f"{name}.sealed": status.longest_seal() * 1000,
        f"{name}.boundary": boundary_at - asked_at,
        f"{name}.hybrid": hybrid_at - asked_at,
        **latencies,
    }


def _read(bench: Bench, *, kind: str) -> Measured:
    """One consumer from offset 0 of topics that hold the same records, each in another tier, or in all of them."""
    where, topics = bench.broker.bootstrap, Topics(bench.broker.bootstrap)
    records = max(int(_READ_RECORDS * bench.scale.share), _LEAST_RECORDS)
    third = records // 3
    part = third * _SIZE // _READ_PARTITIONS
    cases = {
        "local": (records, {"local.retention.bytes": "-1"}, 0),
        "remote": (records, {"local.retention.bytes": "1"}, 0),
        "diskless": (_READ_PARTITIONS, {"local.retention.bytes": "1"}, records - _READ_PARTITIONS),
        "whole": (2 * third, {"local.retention.bytes": str(part)}, records - 2 * third),
    }
    for case, (history, config, _) in cases.items():
        topics.create({case: _READ_PARTITIONS}, {**_LOCAL_HISTORY, "segment.bytes": str(_READ_SEGMENT_BYTES), **config})
        bench.generator.run("produce", brokers=where, topic=case, records=history, size=_SIZE)
    topics.configure(cases, _ON)
    for case, (_, config, suffix) in cases.items():
        status = _Status(bench, case)
        status.wait(_is_hybrid, f"{case} to be HYBRID")
        most = int(config["local.retention.bytes"])
        if most >= 0:
            status.wait(partial(_is_local_at_most, most + _READ_SEGMENT_BYTES), f"the copied segments of {case} to go")
        if suffix:
            bench.generator.run("produce", brokers=where, topic=case, records=suffix, size=_SIZE)
    measured: Measured = {}
    for name in ("", f"migration.{kind}.read."):  # the first turn brings everything into the page cache
        for case in cases:
            answer = bench.generator.run(
                "consume", brokers=where, topic=case, partitions=_READ_PARTITIONS, records=records
            )
            if name:
                measured[name + case] = float(answer["mb_s"])
    return measured


class _Status:
    """What the broker says of the switch of a topic."""

    def __init__(self, bench: Bench, topic: str) -> None:
        if not isinstance(bench.broker, StrandlineBroker):
            raise LoadFailed("Only a broker of ours can switch a topic to diskless.")
        self._metrics_url = bench.broker.metrics_url
        self._url = self._metrics_url.replace("/metrics", f"/topics/{topic}/migration")

    def wait(self, is_true: Callable[[Mapping[str, Any]], bool], what: str) -> float:
        """When it was seen to be true, by the monotonic clock. Raises LoadFailed."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            with urllib.request.urlopen(self._url, timeout=_PATIENCE_SECONDS) as answer:
                found = json.load(answer)
            if is_true(found):
                return time.monotonic()
            if time.monotonic() > deadline:
                raise LoadFailed(f"Waiting for {what} took too long: {found}")
            time.sleep(_LOOK_SECONDS)

    def longest_seal(self) -> float:
        """Seconds for which the broker took no records, of the partition that had to wait the longest."""
        name = "strandline_migration_last_write_pause_seconds{"
        with urllib.request.urlopen(self._metrics_url) as answer:
            lines = answer.read().decode().splitlines()
        return max(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def _has_boundaries(status: Mapping[str, Any]) -> bool:
    return all(partition["b0"] >= 0 for partition in status["partitions"])


def _is_hybrid(status: Mapping[str, Any]) -> bool:
    return status["state"] in {"HYBRID", "DISKLESS_ONLY"}


def _is_local_at_most(size: int, status: Mapping[str, Any]) -> bool:
    return all(partition["local_bytes"] <= size for partition in status["partitions"])
