"""Clients that run while something happens to their topic: Kafka's own, and kcat. What they print is kept in files."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import kafka

from interop.kafka_tools import QUICK_JVM, TOOLS, ToolFailed

STOP_SECONDS = 60.0
_LOGGED = re.compile(r"^\[[\d\-: ,]+\] (WARN|ERROR|FATAL) (.*)$")
_CHANGING = re.compile(r"\d+")


class Printed(NamedTuple):
    """A record as a client printed it."""

    partition: int
    offset: int
    value: str


class RunningClient:
    """A client process. `stop` ends it as Ctrl-C would, and it says its last words."""

    def __init__(self, name: str, command: Sequence[str], output: Path, environment: Mapping[str, str] | None = None):
        self.name, self.output = name, output
        self._file = output.open("wb")
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=self._file,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
        )

    @property
    def text(self) -> str:
        """Whole lines that it printed by now."""
        return self.output.read_text(errors="replace").rpartition("\n")[0]

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def write(self, text: str) -> None:
        """Give it lines on standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(text.encode())
        self._process.stdin.flush()

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """Close its input and wait for its end; its exit status. Raises ToolFailed."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise ToolFailed(f"{self.name} did not end within {seconds:g} s; see {self.output}") from None

    def stop(self) -> None:
        """End it, if it still runs."""
        if self.is_running:
            self._process.send_signal(signal.SIGTERM)
            self.wait()

    def close(self) -> None:
        """Whatever happened: no process is left behind."""
        if self.is_running:
            self._process.kill()
            self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._file.close()

    # What it said

    def warnings(self) -> Counter[str]:
        """What a Java client logged as a warning or worse, without its numbers, and how often."""
        found = (_LOGGED.match(line) for line in self.text.splitlines())
        return Counter(f"{one[1]} {_CHANGING.sub('N', one[2])}" for one in found if one)

    def acknowledged(self) -> list[Printed]:
        """What the verifiable producer says was acknowledged."""
        return self._events("producer_send_success")

    def refused(self) -> list[str]:
        """What the verifiable producer says was not."""
        return [line for line in self.text.splitlines() if '"producer_send_error"' in line]

    def consumed(self) -> list[Printed]:
        """What a consumer printed, in the order in which it did: the verifiable one, the console's, or kcat."""
        lines = re.findall(r"^Partition:(\d+)\tOffset:(\d+)\t(.*)$", self.text, re.MULTILINE)
        return [Printed(int(one), int(two), value) for one, two, value in lines] or self._events("record_data")

    def _events(self, name: str) -> list[Printed]:
        events = [json.loads(line) for line in self.text.splitlines() if f'"name":"{name}"' in line]
        return [Printed(one["partition"], one["offset"], one["value"]) for one in events]


class Clients:
    """Starts clients of one broker. A block: leaving it ends all that still run."""

    def __init__(self, libraries: Path, bootstrap: str, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._libraries, self._bootstrap, self._directory = libraries, bootstrap, directory
        self.started: list[RunningClient] = []

    def __enter__(self) -> Clients:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self.started:
            client.close()

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> RunningClient:
        """Any program."""
        client = RunningClient(name, command, self._directory / f"{name}.out", environment)
        self.started.append(client)
        return client

    def java(self, name: str, main_class: str, *arguments: str) -> RunningClient:
        """One of Kafka's classes."""
        return self.start(name, kafka.java_command(self._libraries, main_class, *arguments, jvm=QUICK_JVM))

    def verifiable_producer(self, topic: str, *, per_second: int, prefix: int = 1) -> RunningClient:
        """Writes "1.0", "1.1", ... until it is stopped. By itself this tool would not repeat a batch."""
        retries = self._directory / "with-retries.properties"
        retries.write_text("retries=2147483647\nenable.idempotence=true\n")
        how = ["--throughput", str(per_second), "--value-prefix", str(prefix), "--command-config", str(retries)]
        how += ["--repeating-keys", "40"]  # without keys, a partition might get nothing for a while
        server = ("--bootstrap-server", self._bootstrap)
        return self.java(f"verifiable-producer-{topic}", f"{TOOLS}.VerifiableProducer", *server, "--topic", topic, *how)

    def performance_producer(self, topic: str, *, records: int, per_second: int) -> RunningClient:
        """Writes "0", "1", ... with the settings that a producer has by itself."""
        how = ("--num-records", str(records), "--throughput", str(per_second), "--payload-monotonic")
        settings = ("--command-property", f"bootstrap.servers={self._bootstrap}")
        name = f"performance-producer-{topic}"
        return self.java(name, f"{TOOLS}.ProducerPerformance", "--topic", topic, *how, *settings)

    def verifiable_consumer(self, topic: str) -> RunningClient:
        """A member of a group of its own that prints every record, from the first one on."""
        where = ("--bootstrap-server", self._bootstrap, "--topic", topic, "--group-id", f"verifiable-{topic}")
        how = ("--verbose", "--reset-policy", "earliest")
        return self.java(f"verifiable-consumer-{topic}", f"{TOOLS}.VerifiableConsumer", *where, *how)

    def console_consumer(self, topic: str, group: str, *more: str) -> RunningClient:
        """Another one, as people use it."""
        printed = [word for one in ("partition", "offset") for word in ("--formatter-property", f"print.{one}=true")]
        where = ("--bootstrap-server", self._bootstrap, "--topic", topic, "--group", group, "--from-beginning")
        main_class = f"{TOOLS}.consumer.ConsoleConsumer"
        return self.java(f"console-consumer-{group}", main_class, *where, *printed, *more)


class Feeder:
    """Writes numbered lines to a client's standard input until it is stopped."""

    def __init__(self, client: RunningClient, *, prefix: str, per_second: int) -> None:
        self._client, self._prefix, self._pause = client, prefix, 1 / per_second
        self._is_over = threading.Event()
        self.lines = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.wait(self._pause):
            self._client.write(f"{self._prefix}{self.lines}\n")
            self.lines += 1

    def stop(self) -> int:
        """How many lines it wrote."""
        self._is_over.set()
        self._thread.join()
        return self.lines
