"""The broker under test: a Strandline process, or Apache Kafka to see what passes there."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path

from bench import kafka
from bench.probe import is_answering
from bench.process import ServerProcess, free_port

START_SECONDS = 60.0
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
    def topics(self) -> Topics:
        """What the topics that a suite creates on it are."""
        is_diskless = Topics.DISKLESS.settings.items() <= self.settings.items()
        return Topics.DISKLESS if is_diskless else Topics.CLASSIC

    @property
    def suite_log(self) -> Path:
        """Where a suite writes down what its tests said."""
        return CACHE / f"{self.run_name}.log"

    @property
    def objects(self) -> Path:
        """Where the WAL objects of diskless topics are."""
        return self.log_dir.with_name("objects") / "wal"


class StrandlineBroker:
    """A Strandline process. It can be killed, and started again with the same directory and address."""

    def __init__(self, data_dir: Path, settings: Mapping[str, str]) -> None:
        self.data_dir, self._settings = data_dir, settings
        self._port, self._http_port = free_port(), free_port()
        self._process: ServerProcess | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def log_dir(self) -> Path:
        return self.data_dir / "logs"

    def start(self) -> float:
        """Start it and wait until it answers; the seconds that this takes."""
        command = [str(Path(sys.executable).with_name("strandline")), "broker", "--data-dir", str(self.data_dir)]
        command += ["--listen", self.bootstrap, "--http", f"127.0.0.1:{self._http_port}"]
        for key, value in self._settings.items():
            command += ["--set", f"{key}={value}"]
        log_file = self.data_dir.with_name(self.data_dir.name + ".log")
        self._process = ServerProcess(command, log_file=log_file, name="strandline")
        is_ready = partial(is_answering, "127.0.0.1", self._port)
        return self._process.wait_until(is_ready, timeout=START_SECONDS, what="to answer a client")

    def kill(self) -> None:
        """End it with SIGKILL."""
        if self._process is not None:
            self._process.kill()

    def stop(self) -> None:
        """End it cleanly, if it runs."""
        if self._process is not None:
            self._process.stop()

    def __enter__(self) -> StrandlineBroker:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@contextmanager
def strandline(name: str, settings: Mapping[str, str] | None = None) -> Iterator[Target]:
    """A fresh Strandline broker; its directory stays in the cache for a look afterwards."""
    with StrandlineBroker(fresh_directory(f"{name}-strandline"), {**SETTINGS, **(settings or {})}) as broker:
        yield Target("strandline", name, broker.bootstrap, broker.log_dir, settings or {})


@contextmanager
def apache_kafka(name: str, settings: Mapping[str, str] | None = None) -> Iterator[Target]:
    """A fresh Apache Kafka with the same settings."""
    data_dir = fresh_directory(f"{name}-kafka")
    broker = kafka.KafkaBroker(kafka.install(), data_dir, settings={**SETTINGS, **(settings or {})})
    with broker:
        yield Target("kafka", name, broker.bootstrap, data_dir, settings or {})


def must_be_as_wanted(topics: Topics, objects: Path) -> None:
    """Raises RuntimeError if topics should be diskless, and there is no WAL object."""
    if topics is Topics.DISKLESS and not any(objects.rglob("*")):
        raise RuntimeError(f"there is no WAL object in {objects}: topics were not diskless")


def broker_like(target: Target, data_dir: Path) -> StrandlineBroker | kafka.KafkaBroker:
    """A broker of the same kind and with the same settings, for suites that stop or kill it. Not started yet."""
    settings = {**SETTINGS, **target.settings, "transaction.state.log.num.partitions": "4"}
    if target.name == "kafka":
        return kafka.KafkaBroker(kafka.install(), data_dir, settings=settings)
    return StrandlineBroker(data_dir, settings)


def fresh_directory(name: str) -> Path:
    """A path below the cache where nothing is yet."""
    directory = CACHE / "brokers" / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.parent.mkdir(parents=True, exist_ok=True)
    return directory
