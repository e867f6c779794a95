"""`strandline broker`: what options become, and how a bad one ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from strandline.admin.commands.start import start_broker
from strandline.config import Settings
from strandline.errors import KafkaStorageError
from strandline.sql import StoreInUse
from tests.broker import free_port


def _settings(*arguments: str) -> Settings:
    got: list[Settings] = []
    assert start_broker(arguments, got.append) == 0
    return got[0]


def test_without_options_everything_is_below_the_current_directory() -> None:
    settings = _settings()
    assert settings.cluster.strandline_data_dir == "strandline-data"
    assert [str(endpoint) for endpoint in settings.network.endpoints] == ["PLAINTEXT://:9092"]
    assert settings.admin.http_address == ("127.0.0.1", 9644)


def test_short_options_are_settings() -> None:
    settings = _settings("--data-dir", "/d", "--listen", "127.0.0.1:1234", "--http", ":80", "--node-id", "7")
    assert settings.log.log_dirs == ("/d/logs",)
    assert [str(endpoint) for endpoint in settings.network.endpoints] == ["PLAINTEXT://127.0.0.1:1234"]
    assert settings.admin.http_address == ("", 80)
    assert settings.cluster.node_id == 7


def test_listen_takes_ipv6_several_addresses_and_whole_listeners() -> None:
    assert _settings("--listen", "[::1]:9092").network.listeners == ("PLAINTEXT://[::1]:9092",)
    listeners = _settings("--listen", "PLAINTEXT://a:1").network.listeners
    assert listeners == ("PLAINTEXT://a:1",)


def test_clients_are_told_what_the_option_says_unless_a_setting_or_all_interfaces_stand_against_it() -> None:
    assert _settings(
        "--listen", "127.0.0.1:1,X://h:2", "--set", "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,X:PLAINTEXT"
    ).network.advertised_listeners == ("PLAINTEXT://127.0.0.1:1", "X://h:2")
    assert _settings(
        "--listen", "h:1", "--set", "advertised.listeners=PLAINTEXT://g:2"
    ).network.advertised_listeners == ("PLAINTEXT://g:2",)
    for everywhere in ("0.0.0.0:1", "[::]:1"):
        assert _settings("--listen", everywhere).network.advertised_listeners is None


def test_a_listener_of_kafkas_controllers_is_not_told_to_clients() -> None:
    network = _settings(
        "--listen", "PLAINTEXT://h:1,CONTROLLER://h:2", "--set", "controller.listener.names=CONTROLLER"
    ).network
    assert network.advertised_listeners == ("PLAINTEXT://h:1",)


def test_http_can_be_left_out() -> None:
    assert _settings("--http", "none").admin.http_address is None


def test_options_win_over_set_and_set_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("node.id=1\nnum.partitions=1\nlog.retention.hours=1\n")
    settings = _settings(
        "--config", str(file), "--set", "node.id=2", "--set", "num.partitions=2", "--node-id", "3",
    )  # fmt: skip
    assert settings.cluster.node_id == 3
    assert settings.cluster.num_partitions == 2
    assert settings.log.log_retention_hours == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--set", "nonsense"], "--set needs name=value, but was given 'nonsense'."),
        (["--set", "num.partition=1"], "num.partition is not a setting of the broker; did you mean num.partitions?"),
        (["--set", "num.partitions=0"], "num.partitions must be a whole number from 1 to 2147483647, but is '0'."),
        (["--node-id", "x"], "node.id must be a whole number from 0 to 2147483647, but is 'x'."),
        (["--listen", "9092"], "--listen must be host:port with a port from 0 to 65535, but is '9092'."),
        (["--http", "x:y"], "strandline.http.listen must be host:port with a port from 0 to 65535, but is 'x:y'."),
        (["--config", "/no/such/file"], "The configuration file /no/such/file cannot be read"),
    ],
)
def test_a_bad_option_ends_with_status_2_and_a_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start_broker(arguments, lambda _: pytest.fail("the broker was started")) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (KafkaStorageError("every log directory has failed."), "strandline: every log directory has failed."),
        (StoreInUse("another process has it."), "strandline: another process has it."),
        (OSError(98, "Address already in use"), "Address already in use"),
    ],
)
def test_a_broker_that_fails_ends_with_status_1_and_a_sentence(
    error: Exception, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: Settings) -> None:
        raise error

    assert start_broker([], fail) == 1
    assert sentence in capsys.readouterr().err


def test_ignored_settings_are_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING"):
        _settings("--set", "controller.quorum.voters=1@localhost:9093")
    assert "controller.quorum.voters has no effect: there is no Raft quorum" in caplog.text


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        start_broker(["--help"], lambda _: None)
    assert "strandline broker --data-dir" in capsys.readouterr().out


def test_starting_a_broker_loads_nothing_that_only_other_commands_need() -> None:
    """Clients wait while a broker starts: typer, rich, and the HTTP stack have to come later or never."""
    program = (
        "import sys; sys.argv = ['strandline', 'broker', '--set', 'no.such.setting=1']\n"
        "from strandline.__main__ import main\n"
        "import strandline.broker\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "strandline" in loaded
    assert loaded.isdisjoint({"typer", "click", "rich", "httpx", "starlette", "uvicorn", "anyio", "asyncpg", "kio"})


def test_a_broker_without_tiered_storage_does_not_load_it() -> None:
    program = (
        "import sys, strandline.broker; print(*(name for name in sys.modules if name.startswith('strandline.remote.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"strandline.remote.ports", "strandline.remote.values"}


def test_a_broker_loads_what_opens_a_tier_when_it_opens_it() -> None:
    program = "import sys, strandline.broker; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "strandline.assembly.loading" in loaded
    late = {"strandline.assembly.diskless_tier", "strandline.assembly.remote_storage", "strandline.diskless.writer"}
    assert loaded.isdisjoint(late)


def test_a_broker_stops_cleanly_when_its_input_ends_if_it_is_told_to(tmp_path: Path) -> None:
    listen = ["--listen", f"127.0.0.1:{free_port()}", "--http", "none", "--data-dir", str(tmp_path / "data")]
    command = [sys.executable, "-m", "strandline", "broker", *listen, "--stop-at-end-of-input"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        assert any(b"serves clients on" in line for line in process.stderr)
        process.stdin.write(b"what comes before the end means nothing")
        process.stdin.close()
        assert process.wait(30) == 0
        assert b"has stopped" in process.stderr.read()
