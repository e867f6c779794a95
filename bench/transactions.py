"""Transactions: throughput, commits, and what a read_committed consumer waits for. All systems get Kafka's client."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from bench import java_program
from bench.generator import Answer
from bench.java_program import JavaProgram
from bench.measures import Bench, Measured, Step

_SOURCE: Final = Path(__file__).resolve().parent / "java" / "TransactionLoad.java"
_PARTITIONS: Final = 16
_ONE_RECORD: Final = 0

TRANSACTION_MILLISECONDS: Final = (1, 10, 100)


@dataclass(frozen=True, slots=True)
class TransactionLoad:
    """The program that writes and reads."""

    program: JavaProgram

    @classmethod
    def build(cls, cache: Path) -> TransactionLoad:
        return cls(java_program.build(_SOURCE, cache))

    def run(self, bench: Bench, topic: str, *, size: int, transaction_ms: int, rate: int = 0) -> Answer:
        """`rate` records a second that a consumer reads at once; or, with 0, as many as possible and no consumer."""
        options: dict[str, str | int] = {
            "brokers": bench.broker.bootstrap,
            "topic": topic,
            "size": size,
            "transaction_ms": transaction_ms,
            "rate": rate,
            "consumes": int(rate > 0),
            "warmup": bench.scale.transaction_warmup_seconds,
            "seconds": bench.scale.transaction_seconds,
        }
        return self.program.measure(options)


def steps(cache: Path) -> Iterator[Step]:
    """The measurements, each with a topic of its own."""
    load = TransactionLoad.build(cache)
    for milliseconds in TRANSACTION_MILLISECONDS:
        yield Step(f"transactions of {milliseconds} ms", partial(_produce, load=load, milliseconds=milliseconds))
    yield Step("transactions of one record", partial(_commits, load=load))
    yield Step("read_committed, transactions of one record", partial(_latency, load=load, case="one", rate=50))
    yield Step("read_committed, transactions of 10 ms", partial(_latency, load=load, case="10ms", rate=1000))


def _produce(bench: Bench, *, load: TransactionLoad, milliseconds: int) -> Measured:
    """1 KB records as fast as the client sends them, committed after so many milliseconds."""
    name = f"transactions.{milliseconds}ms"
    with bench.topic(f"bench-transactions-{milliseconds}ms", _PARTITIONS) as topic:
        answer = load.run(bench, topic, size=1024, transaction_ms=milliseconds)
    return {
        f"{name}.produce": float(answer["mb_s"]),
        f"{name}.commit.p50": float(answer["commit"]["p50_ms"]),
        f"{name}.commit.p99": float(answer["commit"]["p99_ms"]),
    }


def _commits(bench: Bench, *, load: TransactionLoad) -> Measured:
    """Transactions of one record of 100 B, one after the other."""
    with bench.topic("bench-transactions-one", 1) as topic:
        answer = load.run(bench, topic, size=100, transaction_ms=_ONE_RECORD)
    return {
        "transactions.one.rate": float(answer["transactions_s"]),
        "transactions.one.commit.p50": float(answer["commit"]["p50_ms"]),
        "transactions.one.commit.p99": float(answer["commit"]["p99_ms"]),
    }


def _latency(bench: Bench, *, load: TransactionLoad, case: str, rate: int) -> Measured:
    """100 B records on a schedule, from their time in it to a read_committed consumer."""
    milliseconds = _ONE_RECORD if case == "one" else 10
    with bench.topic(f"bench-read-committed-{case}", 1) as topic:
        answer = load.run(bench, topic, size=100, transaction_ms=milliseconds, rate=rate)
    parts = ("p50", "p99")
    return {f"transactions.latency.{case}.{part}": float(answer["end_to_end"][f"{part}_ms"]) for part in parts}
