"""The part of the demo with several brokers: one of them is killed while a producer writes with acks=all."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from demo_load import Load
from demo_stage import PROGRAM, DemoFailed, say, show_command, show_table, title, wait_for

TOPIC, PARTITIONS, BROKERS, REPLICAS = "harbour-traffic", 6, 3, 3
BEFORE, AFTER = 300, 600
OPTIONS = ("--brokers", str(BROKERS), "--racks", "a,b,c")
SETTINGS = ("--set", "offsets.topic.num.partitions=4", "--set", "group.initial.rebalance.delay.ms=0")


class DemoCluster:
    """A block with a `strandline cluster` process, whose JSON lines are read as they come."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._port, self._http_port = _free_ports(2 * BROKERS)[::BROKERS]
        self._lines: list[dict[str, Any]] = []
        self._by_hand: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return ",".join(f"127.0.0.1:{self._port + number}" for number in range(BROKERS))

    def event(self, kind: str, broker: int | None = None) -> dict[str, Any] | None:
        """The last event of a kind, None if there was none."""
        found = (
            line for line in reversed(self._lines) if line["event"] == kind and broker in (None, line.get("broker"))
        )
        return next(found, None)

    def wait_summary(self, is_true: Callable[[dict[str, Any]], bool], what: str) -> None:
        """Show how the cluster is as soon as something is true of it. Raises DemoFailed."""
        seen = len(self._lines)

        def found() -> dict[str, Any] | None:
            summaries = [line for line in self._lines[seen:] if line["event"] == "summary"]
            # What the first one says may have been looked at before.
            return next((line for line in summaries[1:] if is_true(line)), None)

        wait_for(lambda: found() is not None, what, within=60)
        _show_brokers((found() or {})["brokers"])

    def kill(self, broker: int) -> None:
        """SIGKILL."""
        subprocess.run(["kill", "-KILL", str(self._started(broker)["pid"])], check=True)

    def start_by_hand(self, broker: int) -> None:
        """Start a broker that was killed, as a person would."""
        arguments = ("broker", "--config", self._started(broker)["settings"])
        show_command("broker", "--config", f"broker-{broker}.properties")
        with (self._directory / "by-hand.log").open("ab") as log:
            self._by_hand = subprocess.Popen(
                [str(PROGRAM), *arguments, "--stop-at-end-of-input"], stdin=subprocess.PIPE, stdout=log, stderr=log
            )

    def _started(self, broker: int) -> dict[str, Any]:
        found = self.event("broker_started", broker)
        if found is None:
            raise DemoFailed(f"broker {broker} was never started")
        return found

    def __enter__(self) -> DemoCluster:
        where = ("--data-dir", str(self._directory), "--port", str(self._port), "--http-port", str(self._http_port))
        self._process = subprocess.Popen(
            [str(PROGRAM), "cluster", *OPTIONS, *SETTINGS, *where, "--json"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._by_hand is not None:
            assert self._by_hand.stdin is not None
            self._by_hand.send_signal(signal.SIGTERM)
            self._by_hand.wait(30)
            self._by_hand.stdin.close()
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)
        self._reader.join()

    def wait_ready(self) -> dict[str, Any]:
        """The event that says it. Raises DemoFailed if it ends instead."""

        def is_ready() -> bool:
            if self._process.poll() is not None:
                raise DemoFailed(f"the cluster ended before it was ready: {self._lines[-3:]}")
            return self.event("ready") is not None

        wait_for(is_ready, "the cluster to be ready", within=90)
        ready = self.event("ready")
        assert ready is not None
        return ready

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                is_json = line.startswith(b"{")
                self._lines.append(json.loads(line) if is_json else {"event": "text", "text": str(line, "utf-8")})


def show_cluster(directory: Path) -> None:
    """Start three brokers, kill the leader of a partition under load, and say for how long it took no records."""
    title("Three brokers, and one of them is killed while records are written with acks=all")
    show_command("cluster", *OPTIONS)
    with DemoCluster(directory) as cluster:
        say(f"ready after {cluster.wait_ready()['seconds']:.1f} s, with a PostgreSQL of its own")
        _create_topic(cluster)
        cluster.wait_summary(lambda summary: summary["partitions"] >= PARTITIONS, "the topic to be seen")
        with Load(cluster.bootstrap, TOPIC, PARTITIONS) as load:
            load.wait_acknowledged(BEFORE)
            victim = load.leader_of(0)
            led = [number for number in range(PARTITIONS) if load.leader_of(number) == victim]
            cluster.kill(victim)
            say(f"broker {victim} is killed; it led {len(led)} of {PARTITIONS} partitions")
            load.wait_acknowledged(AFTER)
            _say_pause(load)
            cluster.wait_summary(lambda summary: summary["up"] < BROKERS, "the cluster to notice that")
            cluster.start_by_hand(victim)
            load.wait_acknowledged(AFTER, led)
            cluster.wait_summary(
                lambda summary: summary["up"] == BROKERS and summary["under_replicated"] == 0,
                "every replica to be in sync",
            )
        load.check()
        say(f"{load.acknowledged:,} records acknowledged, each of them read once and in order; none lost, none twice")


def _say_pause(load: Load) -> None:
    """Of all partitions: those of the other brokers wait as well, until the dead one is out of their in-sync sets."""
    pause = max(load.longest_pause(number) for number in range(PARTITIONS))
    say(f"other brokers lead them now; the longest time in which a partition took no records: {pause * 1000:.0f} ms")


def _create_topic(cluster: DemoCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, num_partitions=PARTITIONS, replication_factor=REPLICAS)])[TOPIC].result(15)
    say(f"topic {TOPIC}: {PARTITIONS} partitions with {REPLICAS} replicas each")


def _show_brokers(rows: Sequence[dict[str, Any]]) -> None:
    names = ("rack", "state", "leaders", "replicas", "in_sync")
    show_table(
        ("broker", "rack", "state", "leads", "replicas", "in sync"),
        [(str(row["broker"]), *(row[name] for name in names)) for row in rows],
    )


def _free_ports(count: int) -> list[int]:
    """So many free ports in a row.

    Not of those that the system gives to outgoing connections: a client that tries to reach a broker which is away may
    get the port of that broker for its own end, connects to itself, and the broker cannot come back.
    """
    starts = range(20_000 + os.getpid() % 1_000 * 10, 32_000, count)
    rows = ([*range(first, first + count)] for first in starts)
    return next(row for row in rows if all(map(_is_free, row)))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
