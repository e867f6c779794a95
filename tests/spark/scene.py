"""A broker with diskless topics to convert, runs of the pipeline on real Spark, and what is there before and after."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient

from strandline.conversion_api.values import TieringStatus
from strandline.pipeline.client import TieringClient
from strandline.pipeline.driver.lines import LineReporter, say_end
from strandline.pipeline.driver.running import RunOptions, run
from strandline.pipeline.session import SparkOptions
from tests.broker import BrokerProcess, running_broker
from tests.clients.drivers import ConfluentDriver, Received, Sent
from tests.clients.tiering import create
from tests.files import files_below
from tests.spark.standalone import spark_environment

MASTER = "local[2]"
# Small files and segments, and nothing that waits for other work.
SETTINGS = {
    "log.diskless.enable": "true",
    "remote.log.storage.system.enable": "true",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
    "inkless.produce.commit.interval.ms": "20",
    "inkless.tiering.min.segment.bytes": "1",
    "inkless.tiering.max.segment.bytes": "60000",
    "inkless.tiering.splitter.max.files.per.run": "3",
}
# Whatever is committed is old enough.
AT_ONCE = {"local.retention.ms": "0"}

Log = dict[tuple[str, int], list[Received]]


@dataclass(frozen=True, slots=True)
class Scene:
    """A broker, and its topics with their numbers of partitions."""

    broker: BrokerProcess
    topics: Mapping[str, int]

    def fill(self, topic: str, partition: int, count: int, *, codec: str = "none", note: str = "") -> None:
        """Records of an idempotent producer of its own, with keys and headers."""
        records = [
            Sent(
                f"{note}{codec} {number} ".encode() * 20,
                key=f"{number}".encode() if number % 3 else None,
                headers=(("codec", codec.encode()),) if number % 2 else (),
            )
            for number in range(count)
        ]
        ConfluentDriver().produce(self.broker.bootstrap, topic, records, partition=partition, codec=codec)

    def log(self) -> Log:
        """Every record of every partition, as a Kafka client reads it from the beginning."""
        ends = {status.topic_name: status.partitions for status in self.statuses()}
        return {
            (topic, one.partition): ConfluentDriver().consume(
                self.broker.bootstrap, topic, one.high_watermark, partition=one.partition
            )
            for topic, partitions in ends.items()
            for one in partitions
            if one.high_watermark
        }

    def statuses(self) -> tuple[TieringStatus, ...]:
        with TieringClient(self.broker.bootstrap) as client:
            return client.statuses(tuple(self.topics))

    def status(self, topic: str) -> TieringStatus:
        return next(one for one in self.statuses() if one.topic_name == topic)

    @property
    def is_converted(self) -> bool:
        """Whether nothing is left in the control plane."""
        return all(
            one.diskless_start_offset == one.high_watermark and not one.lag_bytes and not one.pending_split_files_count
            for status in self.statuses()
            for one in status.partitions
        )

    def objects(self, kind: str) -> list[Path]:
        """WAL objects (`wal`) or split files (`split`)."""
        return files_below(self.broker.data_dir / "objects" / kind)

    def segments(self, topic: str) -> list[Path]:
        """The log files of its segments in remote storage."""
        return sorted((self.broker.data_dir / "remote").rglob(f"{topic}-*/*.log"))


@contextmanager
def open_scene(
    data_dir: Path, topics: Mapping[str, int], *, settings: Mapping[str, str] | None = None, config: Any = None
) -> Iterator[Scene]:
    """A broker with empty topics, all of whose records are eligible at once."""
    with running_broker(data_dir, {**SETTINGS, **(settings or {})}) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for topic, partitions in topics.items():
            create(admin, topic, {**AT_ONCE, **(config or {}).get(topic, {})}, partitions=partitions)
        yield Scene(broker, topics)


class Events:
    """What a run has said."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.reporter = LineReporter(as_json=True, write=lambda line: self.lines.append(json.loads(line)))

    def of(self, name: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["event"] == name]

    @property
    def last(self) -> dict[str, Any]:
        return self.lines[-1]


def convert(scene: Scene, *topics: str, properties: Mapping[str, str] | None = None) -> tuple[int, Events]:
    """`--once` in this process, with the Spark session that it has; the exit status and what was said."""
    events = Events()
    options = RunOptions(
        bootstrap=scene.broker.bootstrap,
        topics=topics,
        properties=properties or {},
        spark=SparkOptions(master=MASTER, has_ui=False),
    )
    end = run(options, events.reporter)
    return say_end(events.reporter, end, is_following=False), events


def command(*arguments: str) -> list[str]:
    """`strandline tiering run` as a user types it."""
    return [sys.executable, "-m", "strandline", "tiering", "run", *arguments]


def run_command(
    *arguments: str, environment: Mapping[str, str] | None = None, within: float = 300.0
) -> tuple[int, list[dict[str, Any]], str]:
    """A run in a process of its own, with --json; its exit status, its events, and standard error."""
    done = subprocess.run(
        command("--json", "--no-ui", *arguments),
        env={**spark_environment(), **(environment or {})},
        capture_output=True,
        text=True,
        timeout=within,
        check=False,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def process_state(pid: int) -> str:
    """R, S, T and so on, as ps shows it; empty if there is no such process."""
    answer = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return answer.stdout.strip()[:1]


def is_alive(pid: int) -> bool:
    """Whether a process of this id runs, and is not just waiting to be reaped."""
    return process_state(pid) not in ("", "Z")


def descendants(pid: int) -> Sequence[int]:
    """The processes that a process has started, and those that they have."""
    answer = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True)
    children: dict[int, list[int]] = {}
    for line in answer.stdout.splitlines():
        child, parent = map(int, line.split())
        children.setdefault(parent, []).append(child)
    found, waiting = [], [pid]
    while waiting:
        found += (news := children.get(waiting.pop(), []))
        waiting += news
    return [one for one in found if one != os.getpid()]
