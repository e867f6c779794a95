"""`make demo`: the product at work, in a minute, with a real broker process and a real Kafka client.

Everything happens in a temporary directory that is removed at the end. Any step that does not do what it says ends
the demo with a non-zero status and the last lines of the broker's log.
"""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from itertools import groupby
from pathlib import Path

from confluent_kafka import KafkaException
from demo_clients import check_all_arrived, consume, create_topic, produce
from demo_cluster import show_cluster
from demo_diskless import show_diskless_topic
from demo_pipeline import show_pipeline
from demo_stage import Broker, DemoFailed, console, run, say, title, wait_for
from demo_switch import show_switch
from demo_tiered import TOPIC as TIERED_TOPIC
from demo_tiered import show_tiered_topic
from demo_transactions import show_transactions
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text
from rich.tree import Tree

from strandline.admin.commands.dump.log_files import read_batches
from strandline.admin.text import preview, size, timestamp

TOPIC, GROUP, PARTITIONS = "tide-levels", "harbour-office", 3
RECORDS, FIRST_READ, MORE = 6000, 4500, 60


def main() -> int:
    """Run the demo; the exit status."""
    console.print(
        Panel(
            Text.from_markup(
                "[bold]Strandline[/] is a Kafka-compatible log in Python.\n"
                "This demo starts a broker, uses it with an unmodified Kafka client (librdkafka),\n"
                "kills it and starts it again, does the same with a topic that lives in object storage,\n"
                "commits one transaction and aborts another,\n"
                "moves the older part of another topic to remote storage, makes a live topic diskless,\n"
                "converts and reads another one with Spark, shows what is on disk,\n"
                "and kills one of three brokers while records are written."
            ),
            border_style="cyan",
            expand=False,
        )
    )
    with tempfile.TemporaryDirectory(prefix="strandline-demo-") as name:
        broker = Broker(Path(name))
        try:
            account = _show(broker)
        except (DemoFailed, KafkaException, OSError, sqlite3.Error, subprocess.SubprocessError) as error:
            console.print(f"\n[bold red]The demo failed:[/] {error}")
            if broker.log.exists():
                console.print(Panel(broker.log.read_text(errors="replace")[-3000:], title="end of the broker's log"))
            return 1
        finally:
            broker.kill_if_running()
    console.print(
        "\n[bold green]Everything worked.[/] Next: [bold]make run[/], and point any Kafka client at port 9092.\n"
        f"[bold]{account}[/]"
    )
    return 0


def _show(broker: Broker) -> str:
    """Every step; what became of the records of the topics that were converted and switched."""
    title("Start a broker")
    say(f"serving Kafka clients on {broker.bootstrap} after {broker.start() * 1000:.0f} ms")
    wait_for(broker.is_ready, "the broker to be ready")
    say(f"http://127.0.0.1:{broker.http_port}/readyz says: {broker.get('/readyz').strip()}")

    title("Create a topic, with Kafka's own admin client")
    create_topic(broker, TOPIC, PARTITIONS, retention_ms="86400000")
    run(broker, "topics", "describe", TOPIC)

    title("Produce, acks=all, idempotent, lz4")
    began = time.monotonic()
    produce(broker, TOPIC, 0, RECORDS)
    elapsed = time.monotonic() - began
    say(f"{RECORDS:,} records acknowledged in {elapsed:.2f} s, in the order of each station")

    title("Consume as a group")
    read = consume(broker, TOPIC, GROUP, FIRST_READ)
    say(f"{len(read):,} records read and committed; the rest is left for later")
    run(broker, "groups", "describe", GROUP)

    title("Pull the plug: SIGKILL, and start again")
    broker.end(signal.SIGKILL)
    say(f"killed; the log is checked and serves again after {broker.start() * 1000:.0f} ms")
    produce(broker, TOPIC, RECORDS, MORE)
    rest = consume(broker, TOPIC, GROUP, RECORDS + MORE - FIRST_READ)
    check_all_arrived(read + rest, RECORDS + MORE)
    say(f"the group went on where it had committed: {len(rest):,} more records, none lost, none twice, in order")

    show_transactions(broker)
    show_diskless_topic(broker)
    show_tiered_topic(broker)
    account = show_switch(broker)

    title("What an error looks like")
    run(broker, "configs", "alter", "--topic", TOPIC, "--set", "segment.bytes=12", expect=1)
    run(broker, "broker", "--set", "log.retention.hour=1", expect=2, is_client=False)

    title("Metrics, under the names dashboards know")
    _show_metrics(broker)

    converted = show_pipeline(broker)

    title("Stop cleanly")
    status, seconds = broker.end(signal.SIGTERM)
    if status != 0:
        raise DemoFailed(f"the broker ended with status {status} after SIGTERM")
    say(f"stopped with status 0 after {seconds * 1000:.0f} ms; every log is flushed and its state is saved")

    title("What is on disk: logs in Kafka's own formats, the database, and nothing of what was deleted")
    _show_tree(broker.data)
    _show_batch(broker.data)

    show_cluster(broker.data.with_name("cluster"))
    return f"{converted}\n{account}"


def _show_metrics(broker: Broker) -> None:
    wanted = (
        "replicamanager_leadercount ",
        "messagesin_total{",
        'requests_total{request="FETCH"}',
        "diskless_files_deleted_total",
        f'remotecopybytes_total{{topic="{TIERED_TOPIC}"}}',
        "resident_memory",
    )
    for line in broker.get("/metrics").splitlines():
        if not line.startswith("#") and any(name in line for name in wanted):
            say(line)


def _show_tree(data: Path) -> None:
    def topic_or_file(path: Path) -> str:
        return path.name.rpartition("-")[0] or path.name if path.is_dir() else path.name

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
    say(
        f"{command} begins with a batch of offsets {batch['base_offset']} to {batch['last_offset']}, "
        f"{batch['codec']}, {size(batch['size'])}, producer {batch['producer_id']}:"
    )
    for record in batch["content"][:3]:
        line = f"{record['offset']:>6}  {timestamp(record['timestamp'])}  {record['key']} = {record['value']}"
        say(preview(line.encode(), 100))


if __name__ == "__main__":
    sys.exit(main())
