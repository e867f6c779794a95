"""`make demo`: the product at work, in a minute, with a real broker process and a real Kafka client.

Everything happens in a temporary directory that is removed at the end. Any step that does not do what it says ends
the demo with a non-zero status and the last lines of the broker's log.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text
from rich.tree import Tree

from strandline.admin.log_files import read_batches
from strandline.admin.text import preview, size, timestamp

PROGRAM = Path(sys.executable).with_name("strandline")
TOPIC, GROUP, PARTITIONS = "tide-levels", "harbour-office", 3
RECORDS, FIRST_READ, MORE = 6000, 4500, 60
STATIONS = ("brest", "cuxhaven", "dover", "esbjerg", "fort-de-france", "galway")

console = Console(highlight=False, width=min(Console().width, 110) if Console().is_terminal else 100)


class DemoFailed(Exception):
    """A step did not do what it says."""


class Broker:
    """A broker process on free ports."""

    def __init__(self, directory: Path) -> None:
        self.data = directory / "data"
        self.log = directory / "broker.log"
        self.port, self.http_port = _free_port(), _free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Start it and wait until it takes connections; the seconds that took."""
        began = time.monotonic()
        command = [
            str(PROGRAM), "broker", "--data-dir", str(self.data), "--listen", self.bootstrap,
            "--http", f"127.0.0.1:{self.http_port}", "--set", "offsets.topic.num.partitions=4",
            "--set", "group.initial.rebalance.delay.ms=0",
        ]  # fmt: skip
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        _wait_for(self._takes_connections, "the broker to take connections")
        return time.monotonic() - began

    def end(self, how: signal.Signals) -> tuple[int, float]:
        """Send a signal and wait for the end; exit status and seconds."""
        assert self._process is not None
        began = time.monotonic()
        self._process.send_signal(how)
        return self._process.wait(timeout=20), time.monotonic() - began

    def kill_if_running(self) -> None:
        """The way out of a failed demo."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def get(self, path: str) -> str:
        """The answer of the HTTP listener."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}{path}", timeout=5) as answer:
            return str(answer.read(), "utf-8")

    def _takes_connections(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            raise DemoFailed("the broker ended before it took connections")
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True


def main() -> int:
    """Run the demo; the exit status."""
    console.print(
        Panel(
            Text.from_markup(
                "[bold]Strandline[/] is a Kafka-compatible log in Python.\n"
                "This demo starts a broker, uses it with an unmodified Kafka client (librdkafka),\n"
                "kills it, starts it again, and shows what is on disk."
            ),
            border_style="cyan",
            expand=False,
        )
    )
    with tempfile.TemporaryDirectory(prefix="strandline-demo-") as name:
        broker = Broker(Path(name))
        try:
            _show(broker)
        except (DemoFailed, KafkaException, OSError, subprocess.SubprocessError) as error:
            console.print(f"\n[bold red]The demo failed:[/] {error}")
            if broker.log.exists():
                console.print(Panel(broker.log.read_text(errors="replace")[-3000:], title="end of the broker's log"))
            return 1
        finally:
            broker.kill_if_running()
    console.print(
        "\n[bold green]Everything worked.[/] Next: [bold]make run[/], and point any Kafka client at port 9092."
    )
    return 0


def _show(broker: Broker) -> None:
    _title("Start a broker")
    _say(f"serving Kafka clients on {broker.bootstrap} after {broker.start() * 1000:.0f} ms")
    _wait_for(lambda: _is_ready(broker), "the broker to be ready")
    _say(f"http://127.0.0.1:{broker.http_port}/readyz says: {broker.get('/readyz').strip()}")

    _title("Create a topic, with Kafka's own admin client")
    _create_topic(broker)
    _run(broker, "topics", "describe", TOPIC)

    _title("Produce, acks=all, idempotent, lz4")
    began = time.monotonic()
    _produce(broker, 0, RECORDS)
    elapsed = time.monotonic() - began
    _say(f"{RECORDS:,} records acknowledged in {elapsed:.2f} s, in the order of each station")

    _title("Consume as a group")
    read = _consume(broker, FIRST_READ)
    _say(f"{len(read):,} records read and committed; the rest is left for later")
    _run(broker, "groups", "describe", GROUP)

    _title("Pull the plug: SIGKILL, and start again")
    broker.end(signal.SIGKILL)
    _say(f"killed; the log is checked and serves again after {broker.start() * 1000:.0f} ms")
    _produce(broker, RECORDS, MORE)
    rest = _consume(broker, RECORDS + MORE - FIRST_READ)
    _check_all_arrived(read + rest)
    _say(f"the group went on where it had committed: {len(rest):,} more records, none lost, none twice, in order")

    _title("What an error looks like")
    _run(broker, "configs", "alter", "--topic", TOPIC, "--set", "segment.bytes=12", expect=1)
    _run(broker, "broker", "--set", "log.retention.hour=1", expect=2, is_client=False)

    _title("Metrics, under the names dashboards know")
    _show_metrics(broker)

    _title("Stop cleanly")
    status, seconds = broker.end(signal.SIGTERM)
    if status != 0:
        raise DemoFailed(f"the broker ended with status {status} after SIGTERM")
    _say(f"stopped with status 0 after {seconds * 1000:.0f} ms; every log is flushed and its state is saved")

    _title("What is on disk: files in Kafka's own formats")
    _show_tree(broker.data)
    _show_batch(broker.data)


def _create_topic(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    new = NewTopic(TOPIC, num_partitions=PARTITIONS, replication_factor=1, config={"retention.ms": "86400000"})
    admin.create_topics([new])[TOPIC].result(timeout=15)


def _produce(broker: Broker, first: int, count: int) -> None:
    failures: list[str] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(str(error))

    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": True,
            "compression.type": "lz4",
            "linger.ms": 5,
        }
    )
    for number in range(first, first + count):
        station = STATIONS[number % len(STATIONS)]
        level = 300 + (number * 37) % 250
        producer.produce(
            TOPIC,
            key=station,
            value=f'{{"n": {number}, "cm": {level}}}',
            headers={"sensor": "a"},
            on_delivery=delivered,
        )
        producer.poll(0)
    if producer.flush(30) or failures:
        raise DemoFailed(f"not every record was acknowledged: {failures[:1]}")


def _consume(broker: Broker, count: int) -> list[tuple[str, int]]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
        }
    )
    read: list[tuple[str, int]] = []
    deadline = time.monotonic() + 40
    try:
        consumer.subscribe([TOPIC])
        while len(read) < count:
            if time.monotonic() > deadline:
                raise DemoFailed(f"only {len(read)} of {count} records arrived")
            for message in consumer.consume(min(count - len(read), 500), timeout=1):
                if (error := message.error()) is not None:
                    raise DemoFailed(f"the consumer got an error: {error}")
                read.append((str(message.key() or b"", "utf-8"), _number(message.value())))
        consumer.commit(offsets=consumer.position(consumer.assignment()), asynchronous=False)
    finally:
        consumer.close()
    return read


def _number(value: bytes | None) -> int:
    return int(str(value, "utf-8").split(",")[0].split(":")[1]) if value else -1


def _check_all_arrived(read: list[tuple[str, int]]) -> None:
    """Every record has to arrive once, and each station's in the order they were sent."""
    if sorted(number for _, number in read) != list(range(RECORDS + MORE)):
        raise DemoFailed("records were lost or came twice")
    last: dict[str, int] = {}
    for station, number in read:
        if number <= last.get(station, -1):
            raise DemoFailed(f"record {number} of {station} arrived after {last[station]}")
        last[station] = number


def _show_metrics(broker: Broker) -> None:
    wanted = (
        "replicamanager_leadercount ",
        "messagesin_total{",
        'requests_total{request="PRODUCE"}',
        "resident_memory",
    )
    for line in broker.get("/metrics").splitlines():
        if not line.startswith("#") and any(name in line for name in wanted):
            _say(line)


def _show_tree(data: Path) -> None:
    def topic_or_file(path: Path) -> str:
        return path.name.rpartition("-")[0] if path.is_dir() else path.name

    def add(branch: Tree, directory: Path) -> None:
        entries = sorted(directory.iterdir(), key=lambda path: (path.is_dir(), path.name))
        for topic, paths in groupby(entries, key=topic_or_file):
            path, *others = paths
            if path.is_file():
                branch.add(f"{path.name}  [dim]{size(path.stat().st_size)}[/]")
                continue
            note = f"  [dim]and {len(others)} more[/]" if others else ""
            below = branch.add(f"[bold]{path.name}/[/]{note}")
            if not topic.startswith("__"):
                add(below, path)

    tree = Tree(f"[bold]{data.name}/[/]", guide_style="dim")
    add(tree, data)
    console.print(Padding(tree, (0, 0, 1, 2), expand=False))


def _show_batch(data: Path) -> None:
    path = next(iter(sorted((data / "logs").glob(f"{TOPIC}-*/*.log"), key=lambda path: -path.stat().st_size)))
    batch = next(read_batches(path, with_records=True))
    if not batch["crc_ok"]:
        raise DemoFailed(f"the first batch of {path} does not fit its checksum")
    command = f"strandline log dump {path.parent.name} --records"
    _say(
        f"{command} begins with a batch of offsets {batch['base_offset']} to {batch['last_offset']}, "
        f"{batch['codec']}, {size(batch['size'])}, producer {batch['producer_id']}:"
    )
    for record in batch["content"][:3]:
        line = f"{record['offset']:>6}  {timestamp(record['timestamp'])}  {record['key']} = {record['value']}"
        _say(preview(line.encode(), 100))


def _run(broker: Broker, *arguments: str, expect: int = 0, is_client: bool = True) -> None:
    """Run a strandline command as a person would, and show it with its output."""
    where = ("--bootstrap", broker.bootstrap) if is_client else ()
    console.print(f"  [cyan]$ strandline {' '.join(arguments)}[/]")
    done = subprocess.run([str(PROGRAM), *arguments, *where], capture_output=True, text=True, timeout=30, check=False)
    for line in (done.stdout + done.stderr).rstrip().splitlines():
        if line.strip():
            console.print(Padding(Text(line.rstrip()), (0, 0, 0, 4), expand=False))
    if done.returncode != expect:
        raise DemoFailed(f"strandline {' '.join(arguments)} ended with status {done.returncode}, not {expect}")


def _is_ready(broker: Broker) -> bool:
    try:
        return broker.get("/readyz").strip() == "ready"
    except OSError:
        return False


def _wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 20
    pause = threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            raise DemoFailed(f"waited 20 s in vain for {what}")
        pause.wait(0.01)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _title(text: str) -> None:
    console.print()
    console.print(Rule(f"[bold]{text}[/]", align="left", style="cyan"))


def _say(text: str) -> None:
    console.print(Padding(Text(text), (0, 0, 0, 2), expand=False))


if __name__ == "__main__":
    sys.exit(main())
