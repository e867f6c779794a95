"""`strandline topics` on a broker that has topics of every kind, and words that people bring from Kafka's tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

from strandline.admin.commands.main import app
from tests.admin.commands.conftest import Command
from tests.broker import BrokerProcess, running_broker

pytestmark = pytest.mark.timeout(90)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {"remote.log.storage.system.enable": "true"}
    with running_broker(tmp_path_factory.mktemp("admin") / "data", settings) as running:
        yield running


def test_the_list_shows_the_kind_of_each_topic(ask: Command) -> None:
    settings = {"plain": (), "cold": ("remote.storage.enable=true",), "cloud": ("diskless.enable=true",)}
    for topic, pairs in settings.items():
        arguments = [word for pair in pairs for word in ("--config", pair)]
        assert ask("topics", "create", topic, *arguments).status == 0
    expected = {"plain": "classic", "cold": "tiered", "cloud": "diskless"}
    listed = {row["topic"]: row["kind"] for row in ask("topics", "list", "--json").json}
    assert listed.items() >= expected.items()
    text = ask("topics", "list").out
    assert all(kind in text for kind in expected.values())
    described = ask("topics", "describe", *expected, "--json").json
    assert {topic["topic"]: topic["kind"] for topic in described} == expected
    assert {topic["topic"]: topic["migration_state"] for topic in described}["plain"] is None
    assert "cloud  diskless (DISKLESS_ONLY)  id " in ask("topics", "describe", "cloud").out


def test_partitions_are_added(ask: Command) -> None:
    assert ask("topics", "create", "growing", "-p", "1").status == 0
    assert "could have 3 partitions" in ask("topics", "alter", "growing", "-p", "3", "--validate-only").out
    assert ask("topics", "describe", "growing", "--json").json["partition_count"] == 1
    assert ask("topics", "alter", "growing", "--partitions", "3").out == "Topic growing has 3 partitions.\n"
    assert ask("topics", "alter", "growing", "--partitions", "4", "--json").json == {
        "topic": "growing",
        "partition_count": 4,
        "validate_only": False,
    }
    assert ask("topics", "describe", "growing", "--json").json["partition_count"] == 4
    refused = ask("topics", "alter", "growing", "--partitions", "2")
    assert refused.status == 1
    assert "Topic growing was not changed: The topic growing currently has 4 partition(s)" in refused.err
    assert ask("topics", "alter", "nowhere", "--partitions", "2").status == 1
    assert "strandline topics alter orders --partitions 12" in ask("topics", "alter", "--help").out


def test_several_topics_are_described_at_once(ask: Command) -> None:
    for topic in ("first", "second"):
        assert ask("topics", "create", topic, "-p", "2").status == 0
    assert [topic["topic"] for topic in ask("topics", "describe", "second", "first", "--json").json] == [
        "second",
        "first",
    ]
    text = ask("topics", "describe", "first", "second").out
    assert text.index("first  classic") < text.index("second  classic")
    refused = ask("topics", "describe", "first", "nowhere")
    assert refused.status == 1
    assert "Topic nowhere cannot be described" in refused.err


def commands(group: Any, *words: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command below a group, with the words that call it."""
    for name, found in group.commands.items():
        if hasattr(found, "commands"):
            yield from commands(found, *words, name)
        else:
            yield (*words, name), found


def test_bootstrap_server_is_understood_wherever_bootstrap_is(ask: Command, broker: BrokerProcess) -> None:
    found = 0
    for words, one in commands(typer.main.get_command(app)):
        options = {name for parameter in one.params for name in parameter.opts}
        if options & {"-b", "--bootstrap"}:
            found += 1
            assert "--bootstrap-server" in options, words
    assert found >= 10
    assert ask("topics", "list", "--bootstrap-server", broker.bootstrap).status == 0
