"""The broker under test: a Strandline process, or Apache Kafka to see what passes there."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from bench import kafka
from bench.probe import is_answering
from bench.process import ServerProcess, free_port

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "interop"

# Suites expect topics with several partitions. Everything else is as a user finds it: some tests count rebalances and
# rely on Kafka's delay before the first one.
SETTINGS = {"num.partitions": "4", "offsets.topic.num.partitions": "4"}


class Topics(Enum):
    """What the topics of a run are: a suite creates its own, and asks for nothing special."""

    CLASSIC = "classic"
    DISKLESS = "diskless"

    @property
    def settings(self) -> dict[str, str]:
        """What makes a broker create such topics. Diskless objects are in a directory beside the logs."""
        return {"log.diskless.enable": "true"} if self is Topics.DISKLESS else {}

    def run_name(self, suite: str) -> str:
        """What the lists, logs and directories of a run are named after."""
        return suite if self is Topics.CLASSIC else f"{suite}-{self.value}"


@dataclass(frozen=True, slots=True)
class Target:
    """A broker that runs now: "strandline" or "kafka"."""

    name: str
    run_name: str
    bootstrap: str
    log_dir: Path
    settings: Mapping[str, str] = field(default_factory=dict)  # for suites that start another one like it

    @property
    def suite_log(self) -> Path:
        """Where a suite writes down what its tests said."""
        return CACHE / f"{self.run_name}.log"

    @property
    def objects(self) -> Path:
        """Where the WAL objects of diskless topics are."""
        return self.log_dir.with_name("objects") / "wal"


@contextmanager
def strandline(name: str, settings: Mapping[str, str] | None = None) -> Iterator[Target]:
    """A fresh Strandline broker; its directory stays in the cache for a look afterwards."""
    data_dir = _fresh(f"{name}-strandline")
    port, http_port = free_port(), free_port()
    command = [str(Path(sys.executable).with_name("strandline")), "broker", "--data-dir", str(data_dir)]
    command += ["--listen", f"127.0.0.1:{port}", "--http", f"127.0.0.1:{http_port}"]
    for key, value in {**SETTINGS, **(settings or {})}.items():
        command += ["--set", f"{key}={value}"]
    log_file = data_dir.with_name(data_dir.name + ".log")
    with ServerProcess(command, log_file=log_file, name="strandline") as process:
        process.wait_until(lambda: is_answering("127.0.0.1", port), timeout=30.0, what="to answer a client")
        yield Target("strandline", name, f"127.0.0.1:{port}", data_dir / "logs", settings or {})


@contextmanager
def apache_kafka(name: str, settings: Mapping[str, str] | None = None) -> Iterator[Target]:
    """A fresh Apache Kafka with the same settings."""
    data_dir = _fresh(f"{name}-kafka")
    broker = kafka.KafkaBroker(kafka.install(), data_dir, settings={**SETTINGS, **(settings or {})})
    with broker:
        yield Target("kafka", name, broker.bootstrap, data_dir, settings or {})


def _fresh(name: str) -> Path:
    directory = CACHE / "brokers" / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.parent.mkdir(parents=True, exist_ok=True)
    return directory
