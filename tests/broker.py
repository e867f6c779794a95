"""Starts a real broker process for a test, kills it, restarts it, and keeps its log.

`STRANDLINE_TEST_BOOTSTRAP=host:port` points the client tests at a broker that is running already, for example an
Apache Kafka: a test that passes there is right, and then it judges us. Tests that need their own process are skipped.
"""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pytest

from tests import nursery
from tests.nursery import ForkedProcess, Nursery
from tests.waiting import wait_until

EXTERNAL_BOOTSTRAP = os.environ.get("STRANDLINE_TEST_BOOTSTRAP")

# Small and quick, in every test broker; a test may override each of them.
TEST_SETTINGS: Mapping[str, str] = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
}

# Clients must not see a difference between topics in local logs and topics in object storage.
TIERS: Mapping[str, Mapping[str, str]] = {"classic": {}, "diskless": {"log.diskless.enable": "true"}}

# Which form of the hot modules brokers run: the compiled one where there is a build of these sources.
COMPILED_VARIABLE = "STRANDLINE_COMPILED"
BROKERS_COMPILED = os.environ.get("STRANDLINE_TEST_COMPILED", "auto")

# Where brokers of this test process come from, once there was a first one.
_nursery: list[Nursery] = []

# Brokers started while the current test or its fixtures ran; conftest.py attaches their logs to a failure.
started_brokers: list[BrokerProcess] = []


class Broker(Protocol):
    """What a client test needs to know of a broker."""

    @property
    def bootstrap(self) -> str:
        """host:port of its first listener."""

    @property
    def is_running(self) -> bool:
        """Whether it has not ended, as far as we know."""


@dataclass(frozen=True, slots=True)
class ExternalBroker:
    """A broker that the tests did not start."""

    bootstrap: str
    is_running: bool = True


# Below the ports that the system gives to outgoing connections. A client that tries to reach a dead broker on one of
# those may be given the same port for its own end, connects to itself, and the broker cannot come back.
# Test processes that run side by side have ports of their own: a broker that is away must not be another one's broker.
_COUNT = 12_000 // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_FIRST = 20_000 + _COUNT * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_PORTS = itertools.count(os.getpid() * 997)


def free_port() -> int:
    """A TCP port of the loopback interface on which no process listens now; another one at each call."""
    for number in _PORTS:
        port = _FIRST + number % _COUNT
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("unreachable: the numbers never end")


@dataclass(slots=True)
class BrokerProcess:
    """One `strandline broker` process on a data directory; it may be started again after it ended."""

    data_dir: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    http_port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | ForkedProcess | None = None
    host: str = "127.0.0.1"
    nursery: Nursery | None = None
    """Where it is forked from; None is for that of this test process."""

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def http(self) -> str:
        return f"http://{self.host}:{self.http_port}"

    @property
    def log_path(self) -> Path:
        return self.data_dir.with_name(self.data_dir.name + ".broker.log")

    @property
    def log_text(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    @property
    def pid(self) -> int:
        assert self.process is not None, "the broker was never started"
        return self.process.pid

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def rss_bytes(self) -> int:
        """Memory that the process holds now."""
        answer = subprocess.run(["ps", "-o", "rss=", "-p", str(self.pid)], check=True, capture_output=True)
        return int(answer.stdout) * 1024

    def command(self) -> list[str]:
        listen, http = self.bootstrap, f"{self.host}:{self.http_port}"
        program = str(Path(sys.executable).with_name("strandline"))
        command = [program, "broker", "--data-dir", str(self.data_dir), "--http", http]
        if "listeners" not in self.settings:
            command += ["--listen", listen]
        for name, value in {**TEST_SETTINGS, **self.settings}.items():
            command += ["--set", f"{name}={value}"]
        return command

    def spawn(self) -> None:
        """Start the process and return at once."""
        assert not self.is_running, "the broker already runs"
        self.data_dir.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, COMPILED_VARIABLE: BROKERS_COMPILED, **self.environment}
        if self.nursery is not None:
            self.process = self.nursery.start(self.command(), environment, self.log_path)
        else:
            self.process = _start(self.command(), environment, self.log_path)
        if self not in started_brokers:
            started_brokers.append(self)

    def start(self, *, within: float = 30.0) -> None:
        """Start the process and wait until it accepts connections."""
        self.spawn()
        self.wait_accepting(within=within)

    def wait_accepting(self, *, within: float = 30.0) -> None:
        """Wait until a process that was spawned accepts connections."""
        wait_until(self._accepts, within=within, what=f"the broker to accept connections on {self.bootstrap}")

    def _accepts(self) -> bool:
        if not self.is_running:
            raise AssertionError(f"the broker ended with status {self.wait()}:\n{self.log_text[-8000:]}")
        try:
            socket.create_connection((self.host, self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def wait(self, *, within: float = 30.0) -> int:
        """Wait until the process has ended by itself; its exit status."""
        assert self.process is not None, "the broker was never started"
        return self.process.wait(timeout=within)

    def stop(self, *, within: float = 30.0) -> int:
        """SIGTERM, then wait for the end; its exit status."""
        assert self.process is not None, "the broker was never started"
        self.process.send_signal(signal.SIGTERM)
        return self.wait(within=within)

    def kill(self) -> None:
        """SIGKILL: the process gets no chance to write anything more."""
        if self.process is not None:
            self.process.kill()
            self.wait()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """SIGSTOP; the process goes on at the end of the block as if no time had passed."""
        assert self.process is not None, "the broker was never started"
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def restart(self) -> None:
        """Stop it cleanly and start it again."""
        self.stop()
        self.start()

    def close(self) -> None:
        """End the process, whatever state it is in. Not cleanly, which takes longer: a test of that calls `stop`."""
        if self.is_running:
            self.kill()


def _start(command: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen[bytes] | ForkedProcess:
    if nursery.IS_SUPPORTED and environment[COMPILED_VARIABLE] == BROKERS_COMPILED:
        if not _nursery:
            _nursery.append(Nursery({**os.environ, COMPILED_VARIABLE: BROKERS_COMPILED}))
        return _nursery[0].start(command, environment, log)
    with log.open("ab") as output:
        return subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment
        )


@contextmanager
def running_broker(
    data_dir: Path,
    settings: Mapping[str, str] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    port: int | None = None,
) -> Iterator[BrokerProcess]:
    """A broker of the caller's own. Skips the test when an external broker is under test.

    With `listeners` among the settings, `port` is the one of the first listener.
    """
    if EXTERNAL_BOOTSTRAP:
        pytest.skip("needs a broker process of its own")
    broker = BrokerProcess(data_dir, settings=settings or {}, environment=environment or {}, port=port or free_port())
    try:
        broker.start()
        yield broker
    finally:
        broker.close()


@contextmanager
def broker_of_tier(tier: str, data_dir: Path, settings: Mapping[str, str] | None = None) -> Iterator[Broker]:
    """The broker under test with topics of one kind; an external one has those it has."""
    if EXTERNAL_BOOTSTRAP and tier != "classic":
        pytest.skip(f"{EXTERNAL_BOOTSTRAP} has topics of one kind")
    with broker_for_clients(data_dir, {**TIERS[tier], **(settings or {})}) as running:
        yield running


@contextmanager
def broker_for_clients(data_dir: Path, settings: Mapping[str, str] | None = None) -> Iterator[Broker]:
    """The broker under test: a process of ours, or the external one."""
    if EXTERNAL_BOOTSTRAP:
        yield ExternalBroker(EXTERNAL_BOOTSTRAP)
        return
    with running_broker(data_dir, settings) as broker:
        yield broker
