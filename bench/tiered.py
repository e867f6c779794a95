"""Tiered storage: copying closed segments, catching up from remote segments, and the effect of both on other traffic.

The remote storage of each system is a directory of this machine; Kafka's is the LocalTieredStorage of its tests. Topics
are filled once, and local and remote segments with the same records are then read in turn. The two cases of normal
traffic are those of KIP-405, scaled from five brokers with twenty cores each to two cores: a producer of 10 MB/s with a
consumer that keeps up, without and with tiering (case 1), and beside a consumer that reads 60 MB/s of old records,
local or remote ones (case 2).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from bench.generator import Answer, Load, LoadFailed
from bench.measures import Bench, Measured, Scale, Step, killed_on_error
from bench.tiered_topics import SEGMENTS, TIERED, TopicFiles, copy_all, wait_only_remote
from bench.topics import Topics

_SIZE: Final = 1024
_RECORDS: Final = 600_000
_LEAST_RECORDS: Final = 200_000
_PARTITIONS: Final = (1, 4)

_TRAFFIC_RATE: Final = 1_000
_TRAFFIC_SIZE: Final = 10_240
_READER_LIMIT: Final = 60
_BACKLOG_RECORDS: Final = 1_200_000
_SELDOM_SECONDS: Final = 0.2
_STARTUP_SECONDS: Final = 2.0  # until a client has connected and its first second, which does not count, is over

_TIERED_TRAFFIC: Final = {**SEGMENTS, **TIERED, "local.retention.bytes": str(64 * 1024 * 1024)}


def steps(scale: Scale) -> Iterator[Step]:
    """What to do on each broker, in this order; each builds on the topics of those before.

    Several turns, since a stall of the machine spoils one of them, not the round.
    """
    yield Step("tiered, fill", fill)
    yield Step("tiered, copy", copy)
    yield Step("tiered, catch-up, page cache forgotten", partial(catch_up, case="cold"))
    yield Step("tiered, catch-up, uncounted", warm_catch_up)
    for turn in range(scale.tiered_turns):
        yield Step(f"tiered, catch-up, turn {turn + 1}", partial(catch_up, case="cached"))
    for turn in range(scale.tiered_turns):
        yield Step(f"tiered, normal traffic, turn {turn + 1}", normal_traffic)
        yield Step(f"tiered, beside catch-up readers, turn {turn + 1}", beside_readers)
        yield Step(f"tiered, beside the copy of a backlog, turn {turn + 1}", beside_backlog)


def short_steps(store: str, words: str) -> Iterator[Step]:
    """Copying and catching up alone, for brokers with another remote storage; `store` is part of the figures' names."""

    def named(run: Callable[[Bench], Measured]) -> Callable[[Bench], Measured]:
        return lambda bench: {name.replace("tiered", f"tiered.{store}", 1): value for name, value in run(bench).items()}

    yield Step(f"tiered {words}, fill", named(fill))
    yield Step(f"tiered {words}, copy", named(copy))
    yield Step(f"tiered {words}, catch-up, uncounted", named(warm_catch_up))
    yield Step(f"tiered {words}, catch-up", named(_catch_up_and_memory))


def _catch_up_and_memory(bench: Bench) -> Measured:
    return catch_up(bench, "cached") | {"tiered.rss": bench.broker.process.usage().rss_bytes / 1e6}


def fill(bench: Bench) -> Measured:
    """The same records into a topic that will be copied and one that stays local, with one and with four partitions."""
    for partitions in _PARTITIONS:
        names = [_files(bench, kind, partitions).topic for kind in ("local", "remote")]
        Topics(bench.broker.bootstrap).create(dict.fromkeys(names, partitions), SEGMENTS)
        for name in names:
            _produce(bench, name, _records(bench))
    return {}


def copy(bench: Bench) -> Measured:
    """From switching tiering on until the last closed segment is in remote storage, without other load."""
    topics = [_files(bench, "remote", partitions) for partitions in _PARTITIONS]
    size = sum(each.closed_bytes() for each in topics)
    measured = {"tiered.moved": 100 * size / sum(each.local_bytes() for each in topics)}
    with bench.cpu_per_gb(measured, "tiered.cpu.copy", size):
        measured["tiered.copy"] = size / copy_all(topics) / 1e6
    wait_only_remote(topics)
    return measured


def catch_up(bench: Bench, case: str) -> Measured:
    """One consumer from the beginning, of local and of remote segments in turn; what it reads is in the page cache,
    or all of it is on the disk alone."""
    measured: Measured = {}
    for partitions in _PARTITIONS:
        for kind in ("local", "remote"):
            files, name = _files(bench, kind, partitions), f"{case}.{kind}.{partitions}p"
            if case == "cold":
                files.forget_pages()
            with bench.cpu_per_gb(measured, f"tiered.cpu.{name}", _records(bench) * _SIZE):
                measured[f"tiered.{name}"] = _consume(bench, files)
        local, remote = (measured[f"tiered.{case}.{kind}.{partitions}p"] for kind in ("local", "remote"))
        measured[f"tiered.{case}.share.{partitions}p"] = remote / local
    if case == "cached":
        most = max(_PARTITIONS)
        measured |= {f"tiered.drain.{kind}": _drain(bench, _files(bench, kind, most)) for kind in ("local", "remote")}
    return measured


def warm_catch_up(bench: Bench) -> Measured:
    """Bring all records into the page cache, and a JVM to speed."""
    catch_up(bench, "cached")
    return {}


def normal_traffic(bench: Bench) -> Measured:
    """Case 1: the traffic of a topic that is not tiered, then that of one whose segments are copied meanwhile.

    Just before, the same without a broker: where the bare machine is late, a ratio of the two says nothing.
    """
    options = {"rate": _TRAFFIC_RATE, "size": _TRAFFIC_SIZE, "seconds": bench.scale.latency_seconds}
    echo = bench.generator.run("echo", **options)["end_to_end"]
    without = _traffic(bench, "tiered.traffic.without", SEGMENTS)
    copying = _traffic(bench, "tiered.traffic.copying", _TIERED_TRAFFIC)
    return {"tiered.traffic.echo.p99": float(echo["p99_ms"])} | without | copying


def beside_readers(bench: Bench) -> Measured:
    """Case 2: old records are read meanwhile, from local segments or, with tiering, from remote ones."""
    measured: Measured = {}
    for kind, config in (("local", SEGMENTS), ("remote", _TIERED_TRAFFIC)):
        files, name = _files(bench, kind, max(_PARTITIONS)), f"tiered.readers.{kind}"
        reader = _start_consumer(bench, files)
        with killed_on_error(reader):
            time.sleep(1.0)  # a consumer needs half a second to begin
            measured |= _traffic(bench, name, config)
            measured[f"{name}.out"] = float(reader.stop()["mb_s"])
    return measured


def beside_backlog(bench: Bench) -> Measured:
    """Traffic of a topic that is not tiered while tiering is switched on for a large one: copies at full speed."""
    backlog = TopicFiles(bench.broker, "tiered-backlog", max(_PARTITIONS))
    with (
        bench.topic(backlog.topic, backlog.partitions, SEGMENTS),
        bench.topic("tiered-traffic", 1, SEGMENTS) as topic,
    ):
        _produce(bench, backlog.topic, max(int(_BACKLOG_RECORDS * bench.scale.share), _LEAST_RECORDS))
        size = backlog.closed_bytes()
        traffic = bench.generator.start("latency", topic=topic, seconds=300, **_traffic_options(bench))
        with killed_on_error(traffic):
            time.sleep(_STARTUP_SECONDS)
            speed = size / copy_all([backlog], every=_SELDOM_SECONDS) / 1e6
            answer = traffic.stop()
    return _percentiles("tiered.backlog", answer) | {"tiered.backlog.copy": speed}


def _traffic(bench: Bench, name: str, config: Mapping[str, str]) -> Measured:
    """Latency of the normal traffic on a topic of its own. Fails if a tiered topic has no copied segment."""
    files = TopicFiles(bench.broker, "tiered-traffic", 1)
    with bench.topic(files.topic, files.partitions, config) as topic:
        seconds = bench.scale.latency_seconds
        answer = bench.generator.run("latency", topic=topic, seconds=seconds, **_traffic_options(bench))
        if config is not SEGMENTS and files.latest_tiered() == [-1]:
            raise LoadFailed("No segment of the traffic was copied while it was measured.")
    return _percentiles(name, answer)


def _traffic_options(bench: Bench) -> dict[str, str | int]:
    return {"brokers": bench.broker.bootstrap, "rate": _TRAFFIC_RATE, "size": _TRAFFIC_SIZE}


def _percentiles(name: str, answer: Answer) -> Measured:
    acknowledged, end_to_end = answer["acknowledged"], answer["end_to_end"]
    return {
        f"{name}.ack_p50": float(acknowledged["p50_ms"]),
        f"{name}.ack_p99": float(acknowledged["p99_ms"]),
        f"{name}.p99": float(end_to_end["p99_ms"]),
    }


def _files(bench: Bench, kind: str, partitions: int) -> TopicFiles:
    """One of the topics that `fill` makes."""
    return TopicFiles(bench.broker, f"tiered-{kind}-{partitions}p", partitions)


def _records(bench: Bench) -> int:
    return max(int(_RECORDS * bench.scale.share), _LEAST_RECORDS)


def _produce(bench: Bench, topic: str, records: int) -> None:
    bench.generator.run("produce", brokers=bench.broker.bootstrap, topic=topic, records=records, size=_SIZE)


def _consume(bench: Bench, files: TopicFiles) -> float:
    where = {"brokers": bench.broker.bootstrap, "topic": files.topic}
    answer = bench.generator.run("consume", partitions=files.partitions, records=_records(bench), **where)
    return float(answer["mb_s"])


def _drain(bench: Bench, files: TopicFiles) -> float:
    where = {"brokers": bench.broker.bootstrap, "topic": files.topic}
    answer = bench.generator.run("drain", partitions=files.partitions, records=_records(bench), **where)
    return float(answer["mb_s"])


def _start_consumer(bench: Bench, files: TopicFiles) -> Load:
    where = {"brokers": bench.broker.bootstrap, "topic": files.topic}
    return bench.generator.start("consume", partitions=files.partitions, loop=1, limit=_READER_LIMIT, **where)
