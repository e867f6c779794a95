"""The systems under measurement: each makes brokers that are started, watched and stopped in the same way."""

from __future__ import annotations

import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

from bench import kafka
from bench.probe import is_answering
from bench.process import ProcessFailed, ServerProcess, free_port
from bench.tree import SourceTree, python

# How long a start may take, also of a broker that was killed with a lot to recover on a busy machine.
START_SECONDS: Final = 600.0

# The only setting that is not a default: files of deleted topics go at once, not a minute later, so that the
# disk stays small and deleting files does not run into the next measurement.
HOUSEKEEPING: Final[Mapping[str, str]] = {"log.segment.delete.delay.ms": "100"}

# With the defaults closed segments wait half a minute to be copied, and five minutes to leave the disk afterwards.
_TIERED: Final[Mapping[str, str]] = {
    **HOUSEKEEPING,
    "remote.log.manager.task.interval.ms": "500",
    "log.retention.check.interval.ms": "500",
}


def remote_dir(data_dir: Path) -> Path:
    """Where a tiered broker with this data directory keeps its remote segments."""
    return data_dir.with_name(f"{data_dir.name}-remote")


class Broker(Protocol):
    """A broker that can be started again on the same data."""

    data_dir: Path

    @property
    def bootstrap(self) -> str: ...

    @property
    def process(self) -> ServerProcess: ...

    def start(self, *, led_partitions: int = 0) -> float:
        """Seconds from exec until a client is served and so many partitions have a leader. Raises ProcessFailed."""

    def stop(self) -> float:
        """Clean stop; seconds it took. Harmless when it does not run."""


class System(Protocol):
    """One kind of broker."""

    name: str

    def why_unavailable(self) -> str | None: ...

    def new_broker(self, data_dir: Path) -> Broker: ...

    def new_tiered_broker(self, data_dir: Path) -> Broker:
        """A broker with tiered storage switched on, whose remote storage is `remote_dir(data_dir)`."""


class StrandlineBroker:
    """A broker of this repository, started as a user would."""

    def __init__(
        self, name: str, command: Sequence[str], tree: SourceTree, data_dir: Path, settings: Mapping[str, str]
    ) -> None:
        self.data_dir = data_dir
        self._name, self._command, self._tree, self._settings = name, command, tree, settings
        self._port, self._http_port = free_port(), free_port()
        self.overrides: Mapping[str, str] = {}
        """Settings that count from the next start on, instead of its own."""
        self._process: ServerProcess | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def http_url(self) -> str:
        return f"http://127.0.0.1:{self._http_port}"

    @property
    def metrics_url(self) -> str:
        return f"{self.http_url}/metrics"

    def metric(self, name: str) -> float:
        """One metric, labels included; 0 if the broker does not have it."""
        with urllib.request.urlopen(self.metrics_url, timeout=10) as response:
            for line in response.read().decode().splitlines():
                if line.startswith(f"{name} "):
                    return float(line.rpartition(" ")[2])
        return 0.0

    @property
    def has_process(self) -> bool:
        """Whether it was started, and not stopped since."""
        return self._process is not None

    @property
    def process(self) -> ServerProcess:
        if self._process is None:
            raise ProcessFailed(f"{self._name} is not running.")
        return self._process

    def start(self, *, led_partitions: int = 0) -> float:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        listen = ("--listen", self.bootstrap, "--http", f"127.0.0.1:{self._http_port}")
        wanted = {**self._settings, **self.overrides}
        settings = [part for name, value in wanted.items() for part in ("--set", f"{name}={value}")]
        self._process = ServerProcess(
            [*self._command, "broker", "--data-dir", str(self.data_dir), *listen, *settings],
            log_file=self.data_dir.with_name(self.data_dir.name + ".log"),
            environment=self._tree.environment,
            name=self._name,
        )
        return self._process.wait_until(
            lambda: is_answering("127.0.0.1", self._port, led_partitions=led_partitions),
            timeout=START_SECONDS,
            what="to answer a client",
        )

    def stop(self) -> float:
        if self._process is None:
            return 0.0
        process, self._process = self._process, None
        return process.stop()


class Strandline:
    """The broker of one source tree of this repository: the working tree, or that of the commit it is compared with.

    Raises TreeFailed where brokers would run another tree.
    """

    def __init__(self, tree: SourceTree, name: str = "strandline") -> None:
        self.name = name
        self._tree = tree
        self.program = Path(sys.executable).parent / "strandline"
        tree.prepare()

    def why_unavailable(self) -> str | None:
        return None if self.program.exists() else f"{self.program} is missing: run `make setup`"

    def new_broker(self, data_dir: Path, settings: Mapping[str, str] = MappingProxyType({})) -> StrandlineBroker:
        return self._new([str(self.program)], data_dir, {**HOUSEKEEPING, **settings})

    def new_tiered_broker(self, data_dir: Path, storage: Mapping[str, str] = MappingProxyType({})) -> StrandlineBroker:
        """`storage` says where remote segments go, if not to a directory."""
        return self._new([str(self.program)], data_dir, _tiered_settings(data_dir, storage))

    def new_tiered_broker_through_memory(self, data_dir: Path) -> StrandlineBroker:
        """The same on a directory, as if its files were objects of a store elsewhere."""
        return self._new([*python(), "-m", "bench.remote_through_memory"], data_dir, _tiered_settings(data_dir))

    def new_broker_on_slow_storage(
        self, data_dir: Path, milliseconds: int, settings: Mapping[str, str] = MappingProxyType({})
    ) -> StrandlineBroker:
        """The same, with a delay added to every call of the object store."""
        command = [*python(), "-m", "bench.slow_objects", str(milliseconds)]
        return self._new(command, data_dir, {**HOUSEKEEPING, **settings})

    def _new(self, command: Sequence[str], data_dir: Path, settings: Mapping[str, str]) -> StrandlineBroker:
        return StrandlineBroker(self.name, command, self._tree, data_dir, settings)


def _tiered_settings(data_dir: Path, storage: Mapping[str, str] = MappingProxyType({})) -> Mapping[str, str]:
    where = storage or {"rsm.config.url": f"file://{remote_dir(data_dir)}"}
    return {**_TIERED, "remote.log.storage.system.enable": "true", **where}


class ApacheKafka:
    """Apache Kafka with default settings and the 1 GB heap of its start script."""

    name = "kafka"

    def __init__(self, cache: Path) -> None:
        self._cache = cache

    def why_unavailable(self) -> str | None:
        return kafka.why_unavailable(self._cache)

    @property
    def libraries(self) -> Path:
        return kafka.install(self._cache)

    def new_broker(self, data_dir: Path) -> Broker:
        return kafka.KafkaBroker(self.libraries, data_dir, settings=HOUSEKEEPING, start_timeout=START_SECONDS)

    def new_tiered_broker(self, data_dir: Path) -> Broker:
        # Kafka looks for segments to delete only after its first 30 seconds, unless told otherwise.
        settings = {**_TIERED, "log.initial.task.delay.ms": "500", **kafka.tiered_settings(remote_dir(data_dir))}
        plugins = kafka.install_tiered_storage(self._cache)
        return kafka.KafkaBroker(self.libraries, data_dir, settings=settings, plugins=plugins)
