"""`strandline cluster`: several brokers by one command."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from strandline.admin.commands.main import run
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.messages.describe_cluster import DescribeClusterRequest
from tests.broker import free_port
from tests.postgres import postgres, postgres_url
from tests.waiting import wait_until

__all__ = ["postgres", "postgres_url"]


def free_row(count: int) -> int:
    """The first of several consecutive ports that are free."""
    while True:
        ports = [free_port() for _ in range(count)]
        if ports == list(range(ports[0], ports[0] + count)):
            return ports[0]


def alive(port: int) -> int:
    try:
        with Client.connect("127.0.0.1", port) as client:
            return len(client.request(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest()).brokers)
    except OSError:
        return 0


def test_brokers_are_started_and_stopped_together(tmp_path: Path, postgres_url: str) -> None:
    port, http_port = free_row(3), free_row(3)
    options = ["--brokers", "3", "--metadata-url", postgres_url, "--data-dir", str(tmp_path / "c"), "--port", str(port)]
    command = [sys.executable, "-m", "strandline", "cluster", *options, "--http-port", str(http_port)]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_until(
                lambda: all(alive(port + number) == 3 for number in range(3)), within=60.0, what="three brokers alive"
            )
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0, (tmp_path / "log").read_text()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(30)
    assert [alive(port + number) for number in range(3)] == [0, 0, 0]
    settings = tmp_path / "c" / "broker-3.properties"
    assert "node.id=3" in settings.read_text()
    assert stat.S_IMODE(settings.stat().st_mode) == 0o600, "it may hold a password"


@pytest.mark.parametrize("options", [[], ["--metadata-url", "sqlite:///x"]])
def test_without_postgresql_a_sentence_says_what_is_missing(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["cluster", *options]) == 1
    assert "PostgreSQL" in capsys.readouterr().err
