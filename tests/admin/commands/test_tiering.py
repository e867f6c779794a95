"""`strandline tiering`: how far topics are converted, for people and for programs; pause, resume and trigger."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strandline.admin.commands.tiering import ruler
from tests.admin.commands.conftest import Command
from tests.broker import BrokerProcess, free_port, running_broker
from tests.clients.tiering import numbered, produce
from tests.pipeline.world import convert

pytestmark = pytest.mark.timeout(90)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {
        "remote.log.storage.system.enable": "true",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
    }
    with running_broker(tmp_path_factory.mktemp("tiering") / "data", settings) as running:
        yield running


def test_a_topic_from_its_first_record_to_segments(ask: Command, broker: BrokerProcess) -> None:
    assert ask("tiering", "status").out == "There is no diskless topic.\n"
    assert ask("tiering", "status", "--json").json == []
    for topic in ("orders", "idle"):
        assert ask("topics", "create", topic, "--config", "diskless.enable=true").status == 0
    produce(broker, "orders", numbered(0, 10))
    (before,) = ask("tiering", "status", "orders", "--json").json
    assert list(before)[:8] == [
        "topic_name",
        "tiered_high_offset",
        "diskless_start_offset",
        "high_watermark",
        "pending_batches_count",
        "pending_split_files_count",
        "eligible_bytes",
        "is_paused",
    ]
    assert (before["high_watermark"], before["diskless_start_offset"], before["is_paused"]) == (10, 0, False)

    assert ask("tiering", "pause", "orders", "idle").out == (
        "Topic orders is paused. Go on: strandline tiering resume orders\n"
        "Topic idle is paused. Go on: strandline tiering resume idle\n"
    )
    table = ask("tiering", "status").out
    assert "paused" in table
    assert "idle" in table
    triggered = ask("tiering", "trigger", "orders").out
    assert triggered.startswith("Topic orders is converted up to now, whatever its age: 1 rows (10 KB) are to be split")
    assert triggered.endswith("It is paused: strandline tiering resume orders\n")
    assert ask("tiering", "resume", "orders", "idle", "--json").json[0]["is_paused"] is False
    assert ask("tiering", "resume", "orders").out.startswith("Topic orders is converted again: 10 KB are old enough")

    convert(broker.bootstrap, "orders")
    (after,) = ask("tiering", "status", "orders", "--json").json
    assert (after["diskless_start_offset"], after["tiered_high_offset"], after["lag_bytes"]) == (10, 9, 0)
    text = ask("tiering", "status", "orders").out
    assert text.startswith("orders: up to date, all that was written before 20")
    assert "██████████ 100 %" in text
    assert "up to date" in ask("tiering", "status", "orders", "idle").out


@pytest.mark.parametrize("action", ["status", "trigger", "pause", "resume"])
def test_topics_that_cannot_be_converted(ask: Command, action: str) -> None:
    ask("topics", "create", "tides")
    refused = ask("tiering", action, "tides")
    assert refused.status == 1
    assert refused.err.startswith("strandline: Topic tides is not diskless: only records of diskless topics are conv")
    missing = ask("tiering", action, "nowhere", "--json")
    assert (missing.status, missing.err) == (1, "strandline: There is no topic nowhere.\n")


@pytest.mark.parametrize("action", ["status", "trigger", "pause", "resume"])
def test_help_shows_an_example(ask: Command, action: str) -> None:
    assert f"strandline tiering {action}" in " ".join(ask("tiering", action, "--help").out.split())


def test_a_broker_that_is_away_is_named(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strandline.admin.commands.tiering._PATIENCE_S", 0.2)
    address = f"127.0.0.1:{free_port()}"
    away = command("tiering", "status", "--bootstrap", address)
    assert away.status == 1
    assert f"No Kafka broker answers at {address}" in away.err


@pytest.mark.parametrize(
    ("boundary", "end", "shown"),
    [
        (0, 0, "░░░░░░░░░░ 0 %"),
        (0, 9, "░░░░░░░░░░ 0 %"),
        (599, 1000, "█████░░░░░ 59 %"),
        (999, 1000, "█████████░ 99 %"),
        (7, 7, "██████████ 100 %"),
    ],
)
def test_the_ruler_is_full_only_when_everything_is_converted(boundary: int, end: int, shown: str) -> None:
    assert ruler(boundary, end) == shown
