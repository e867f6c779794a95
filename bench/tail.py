"""Many small consumers: long polls at the tail of partitions, and the small requests that groups send all the time."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench import calls
from bench.asking import Asker
from bench.generator import Answer
from bench.measures import Bench, Measured, Step, wait_gone
from bench.tail_figures import CALLS, TAILS
from bench.topics import Topics

_PARTITIONS: Final = 100
_CONNECTIONS: Final = 50


def steps() -> Iterable[Step]:
    yield Step("consumers at the tail, not counted", _warm_up)
    for case in TAILS:
        yield Step(TAILS[case].title, partial(_tail, case=case))
    for name in CALLS:
        yield Step(f"{_CONNECTIONS} connections: {CALLS[name]}", partial(_calls, name=name))


def _warm_up(bench: Bench) -> Measured:
    """A JVM compiles its hot code only after it has seen it often."""
    for case, tail in TAILS.items():
        _run_tail(bench, f"warm-up-{case}", rate=tail.rate, **tail.shape)
    return {}


def _tail(bench: Bench, case: str) -> Measured:
    answer = _run_tail(bench, case, rate=TAILS[case].rate, **TAILS[case].shape)
    return {
        f"tail.{case}.cpu": answer["cpu_seconds"] / answer["delivered"] * 1e6,
        f"tail.{case}.rate": answer["delivered_s"],
        f"tail.{case}.p50": answer["delivery"]["p50_ms"],
        f"tail.{case}.p99": answer["delivery"]["p99_ms"],
    }


def _run_tail(bench: Bench, case: str, **shape: int) -> Answer:
    with bench.topic(f"bench-tail-{case}", _PARTITIONS) as topic:
        return bench.generator.run(
            "tail",
            brokers=bench.broker.bootstrap,
            pid=bench.broker.process.pid,
            topic=topic,
            topic_id=_topic_id(bench, topic),
            partitions=_PARTITIONS,
            seconds=bench.scale.latency_seconds,
            **shape,
        )


def _topic_id(bench: Bench, topic: str) -> str:
    with Asker(_port(bench)) as asker:
        return asker.topic_id(topic).hex


def _port(bench: Bench) -> int:
    return int(bench.broker.bootstrap.rpartition(":")[2])


def _calls(bench: Bench, name: str) -> Measured:
    """Each connection repeats one request, whose answer does not change. Each has a group of its own."""
    topics = Topics(bench.broker.bootstrap)
    topics.create({calls.TOPIC: 1})
    try:
        with TemporaryDirectory() as folder:
            frames = Path(folder) / "frames"
            frames.write_text("\n".join(calls.frames(_port(bench), name, _CONNECTIONS)))
            answer = bench.generator.run(
                "calls",
                brokers=bench.broker.bootstrap,
                pid=bench.broker.process.pid,
                frames=str(frames),
                seconds=bench.scale.request_seconds,
                warm_seconds=bench.scale.request_seconds,
            )
    finally:
        topics.delete([calls.TOPIC])
        wait_gone(bench.broker.data_dir, calls.TOPIC)
    return {
        f"calls.{name}.cpu": answer["cpu_seconds"] / answer["requests"] * 1e6,
        f"calls.{name}.rate": answer["requests_s"],
        f"calls.{name}.p99": answer["answer"]["p99_ms"],
    }
