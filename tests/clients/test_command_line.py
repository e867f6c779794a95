"""A command-line client: the one that comes with kafka-python, each call a process of its own.

kcat cannot be had from the Python package index; `make interop` uses it where it can be installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from tests.broker import Broker
from tests.clients.conftest import TopicMaker
from tests.waiting import wait_until


def run(broker: Broker, tool: str, *arguments: str, stdin: str = "") -> str:
    """Run `python -m kafka.<tool>` to its end and return what it printed."""
    command = [sys.executable, "-m", f"kafka.{tool}", "-b", broker.bootstrap, *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def admin(broker: Broker, *arguments: str) -> Any:
    return json.loads(run(broker, "admin", "--format", "json", *arguments))


def test_topics_configs_and_offsets_from_the_command_line(broker: Broker, unique_name: Callable[[], str]) -> None:
    topic = unique_name()
    admin(broker, "topics", "create", "-t", topic, "--num-partitions", "2", "--replication-factor", "1")
    assert topic in admin(broker, "topics", "list")

    run(broker, "producer", "-t", topic, stdin="one\ntwo\nthree\n")
    wildcard = f"{topic}:*:latest"
    offsets = run(broker, "admin", "partitions", "list-offsets", "-p", wildcard)
    assert topic in offsets

    admin(broker, "configs", "alter", "-r", "topic", "-n", topic, "-c", "retention.ms=777000")
    assert "777000" in json.dumps(admin(broker, "configs", "describe", "-r", "topic", "-n", topic, "--modified"))
    assert topic in json.dumps(admin(broker, "topics", "describe", "-t", topic))

    admin(broker, "topics", "delete", "-t", topic)
    assert topic not in admin(broker, "topics", "list")


def test_records_pass_from_producer_to_consumer_process(broker: Broker, new_topic: TopicMaker) -> None:
    topic = new_topic()
    run(broker, "producer", "-t", topic, stdin="first line\nsecond line\n")

    command = [sys.executable, "-m", "kafka.consumer", "-b", broker.bootstrap, "-t", topic, "-f", "str"]
    command += ["-g", f"{topic}-readers", "-C", "auto_offset_reset=earliest"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as consumer:
        assert consumer.stdout is not None
        try:
            lines = [consumer.stdout.readline().strip() for _ in range(2)]
        finally:
            consumer.terminate()
    assert lines == ["first line", "second line"]
    wait_until(lambda: f"{topic}-readers" in json.dumps(admin(broker, "groups", "list")), what="the group to be listed")
