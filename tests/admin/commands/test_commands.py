"""Commands against a running broker: what they print, as JSON and for people, and how they fail."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from strandline.admin.commands.main import run
from tests.admin.commands.conftest import Command
from tests.broker import BrokerProcess, free_port
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(90)


@pytest.fixture(scope="module")
def orders(broker: BrokerProcess) -> str:
    """A topic with 30 records in two partitions, half of which group `billing` has read."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    create = ["topics", "create", "orders", "-p", "2", "--config", "retention.ms=86400000"]
    assert run([*create, "-b", broker.bootstrap]) == 0
    for number in range(30):
        producer.produce("orders", f"value-{number}", f"key-{number}", partition=number % 2)
    assert producer.flush(30) == 0
    return "orders"


@pytest.fixture
def billing(broker: BrokerProcess, orders: str) -> Iterator[Consumer]:
    """A member of group `billing` that has committed 10 of partition 0, and stays in the group."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "billing",
            "client.id": "cashier",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([orders])
    try:
        wait_until(lambda: consumer.consume(1, timeout=0.5), within=30, what="a first record")
        consumer.commit(offsets=[TopicPartition(orders, 0, 10)], asynchronous=False)
        yield consumer
    finally:
        consumer.close()


def test_topics_are_created_listed_described_and_deleted(ask: Command) -> None:
    made = ask("topics", "create", "tides", "-p", "3", "--config", "cleanup.policy=compact", "--json").json
    assert (made["topic"], made["created"]) == ("tides", True)
    listed = {row["topic"]: row for row in ask("topics", "list", "--json").json}
    assert listed["tides"] == {
        "topic": "tides",
        "kind": "classic",
        "migration_state": None,
        "id": made["id"],
        "internal": False,
        "partition_count": 3,
        "replication_factor": 1,
    }
    described = ask("topics", "describe", "tides", "--json").json
    assert described["configs"] == {"cleanup.policy": "compact"}
    assert [row["partition"] for row in described["partitions"]] == [0, 1, 2]
    assert described["partitions"][0] | {"leader_epoch": 0} == {
        "partition": 0,
        "leader": 1,
        "leader_epoch": 0,
        "replicas": [1],
        "isr": [1],
        "start_offset": 0,
        "end_offset": 0,
    }
    assert ask("topics", "delete", "tides", "--yes").status == 0
    assert "tides" not in {row["topic"] for row in ask("topics", "list", "--json").json}


def test_creating_a_topic_twice_is_an_error_unless_told_otherwise(ask: Command) -> None:
    assert ask("topics", "create", "twice").status == 0
    again = ask("topics", "create", "twice")
    assert again.status == 1
    assert again.err.startswith("strandline: Topic twice was not created:")
    assert "TOPIC_ALREADY_EXISTS" in again.err
    assert ask("topics", "create", "twice", "--if-not-exists").out == "Topic twice exists.\n"


def test_validate_only_creates_nothing(ask: Command) -> None:
    assert "could be created" in ask("topics", "create", "perhaps", "--validate-only").out
    assert "perhaps" not in ask("topics", "list").out


def test_a_refused_topic_says_why(ask: Command) -> None:
    refused = ask("topics", "create", "bad", "--config", "segment.bytes=1")
    assert refused.status == 1
    assert "segment.bytes must be a whole number from 1048576 to 2147483647" in refused.err
    assert "INVALID_CONFIG" in refused.err
    assert ask("topics", "create", "no/good").status == 1
    assert ask("topics", "create", "x", "--config", "nothing").err == (
        "strandline: --config needs name=value, but was given 'nothing'.\n"
    )


def test_deleting_asks_first(ask: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask("topics", "create", "kept").status == 0
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    refused = ask("topics", "delete", "kept")
    assert (refused.status, refused.err) == (1, "strandline: Nothing was deleted.\n")
    assert "kept" in ask("topics", "list").out


def test_a_topic_that_does_not_exist(ask: Command) -> None:
    for arguments in (("describe", "nowhere"), ("delete", "nowhere", "--yes")):
        outcome = ask("topics", *arguments)
        assert outcome.status == 1
        assert "nowhere" in outcome.err
        assert "UNKNOWN_TOPIC_OR_PARTITION" in outcome.err
    assert "nowhere" not in ask("topics", "list").out, "asking must not create a topic"


def test_topic_settings_are_changed_and_described_with_their_source(ask: Command) -> None:
    assert ask("topics", "create", "configured").status == 0
    where = ("--topic", "configured")
    assert ask("configs", "describe", *where).out == "Nothing is set; --all shows the defaults.\n"
    changed = ask("configs", "alter", *where, "--set", "retention.ms=5000", "--append", "cleanup.policy=compact")
    assert changed.out == "2 changes made.\n"
    entries = {row["name"]: row for row in ask("configs", "describe", *where, "--json").json}
    assert {name: row["value"] for name, row in entries.items()} == {
        "cleanup.policy": "delete,compact",
        "retention.ms": "5000",
    }
    assert entries["cleanup.policy"]["source"] == "DYNAMIC_TOPIC_CONFIG"
    assert entries["cleanup.policy"]["synonyms"][1]["name"] == "log.cleanup.policy"
    assert (
        ask("configs", "alter", *where, "--delete", "retention.ms", "--subtract", "cleanup.policy=compact").status == 0
    )
    after = {row["name"]: row["value"] for row in ask("configs", "describe", *where, "--all", "--json").json}
    assert (after["retention.ms"], after["cleanup.policy"]) == ("604800000", "delete")


def test_a_refused_change_changes_nothing_and_says_why(ask: Command) -> None:
    assert ask("topics", "create", "steady").status == 0
    where = ("--topic", "steady")
    refused = ask("configs", "alter", *where, "--set", "retention.ms=5", "--set", "segment.ms=0")
    assert refused.status == 1
    assert refused.err.startswith("strandline: Nothing was changed: segment.ms must be a whole number from 1 to")
    assert ask("configs", "alter", *where, "--set", "retention.ms=5", "--validate-only").out == (
        "1 change would be accepted.\n"
    )
    assert ask("configs", "describe", *where, "--json").json == []


def test_broker_settings_and_those_of_all_brokers(ask: Command) -> None:
    own = {row["name"]: row for row in ask("configs", "describe", "--broker", "1", "--json").json}
    assert own["offsets.topic.num.partitions"]["source"] == "STATIC_BROKER_CONFIG"
    assert own["offsets.topic.num.partitions"]["read_only"] is True
    assert ask("configs", "alter", "--broker", "all", "--set", "log.retention.ms=777").status == 0
    everywhere = ask("configs", "describe", "--broker", "all", "--json").json
    assert [(row["name"], row["value"], row["source"]) for row in everywhere] == [
        ("log.retention.ms", "777", "DYNAMIC_DEFAULT_BROKER_CONFIG")
    ]
    assert ask("configs", "alter", "--broker", "all", "--delete", "log.retention.ms").status == 0
    refused = ask("configs", "alter", "--broker", "1", "--set", "log.dirs=/tmp")
    assert refused.status == 1
    assert "log.dirs cannot be changed while the broker runs" in refused.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("configs", "describe"), "Give either --topic or --broker."),
        (("configs", "describe", "--topic", "a", "--broker", "1"), "Give either --topic or --broker."),
        (("configs", "describe", "--broker", "one"), "--broker must be the id of a broker or 'all', but is 'one'."),
        (("configs", "describe", "--broker", "99"), "has no broker 99 at the moment."),
        (("configs", "alter", "--topic", "a"), "There is nothing to change"),
        (("groups", "describe", "nobody"), "nobody"),
    ],
)
def test_misuse_is_explained(ask: Command, arguments: tuple[str, ...], sentence: str) -> None:
    outcome = ask(*arguments)
    assert outcome.status == 1
    assert outcome.err.startswith("strandline: ")
    assert sentence in outcome.err


@pytest.mark.usefixtures("billing")
def test_groups_are_listed_and_described_with_members_offsets_and_lag(ask: Command, orders: str) -> None:
    groups = {row["group"]: row for row in ask("groups", "list", "--json").json}
    assert groups["billing"]["protocol"] == "consumer"
    described = ask("groups", "describe", "billing", "--json").json
    (member,) = described["members"]
    assert member["client"] == "cashier"
    assert member["assignment"] == [[orders, 0], [orders, 1]]
    assert described["offsets"] == [
        {"topic": orders, "partition": 0, "committed": 10, "end": 15, "lag": 5, "member": member["member"]},
        {"topic": orders, "partition": 1, "committed": None, "end": 15, "lag": None, "member": member["member"]},
    ]
    text = ask("groups", "describe", "billing").out
    assert "cashier" in text
    assert f"{orders}-0 {orders}-1" in text


def test_tables_for_people(ask: Command, orders: str) -> None:
    described = ask("topics", "describe", orders).out
    assert "settings: retention.ms=86400000" in described
    assert "to offset" in described
    assert orders in ask("topics", "list").out


def test_no_broker_is_explained(command: Command) -> None:
    address = f"127.0.0.1:{free_port()}"
    outcome = command("topics", "list", "--bootstrap", address)
    assert outcome.status == 1
    assert outcome.err.startswith(f"strandline: No Kafka broker answers at {address}: ")
    assert command("topics", "list", "--bootstrap", "nonsense").err == (
        "strandline: --bootstrap must be host:port with a port from 0 to 65535, but is 'nonsense'.\n"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("topics", "list"), ("topics", "create"), ("topics", "alter"), ("topics", "describe"), ("topics", "delete"),
        ("configs", "describe"), ("configs", "alter"), ("groups", "list"), ("groups", "describe"),
        ("transactions", "list"), ("transactions", "describe"), ("transactions", "describe-producers"),
        ("transactions", "find-hanging"), ("transactions", "abort"),
        ("groups", "reset-offsets"), ("groups", "delete"), ("groups", "delete-offsets"),
        ("log", "dump"), ("metadata", "dump"), ("version",),
    ],
)  # fmt: skip
def test_every_command_explains_itself_with_an_example(command: Command, words: tuple[str, ...]) -> None:
    outcome = command(*words, "--help")
    assert outcome.status == 0
    text = " ".join(outcome.out.split())
    assert "Example" in text
    assert f"strandline {' '.join(words)}" in text
    assert "--json" in text


def test_wrong_words_end_with_status_2(command: Command) -> None:
    assert command("nonsense").status == 2
    assert command("topics", "create").status == 2
    assert command().status == 2


def test_the_version(command: Command) -> None:
    number = json.loads(command("version", "--json").out)["version"]
    assert command("version").out == f"strandline {number}\n"


def test_where_a_topic_is_cannot_be_told_by_a_broker_without_tiers(ask: Command, orders: str) -> None:
    outcome = ask("topics", "tiers", orders)
    assert outcome.status == 1
    assert "remote.log.storage.system.enable is false on this broker" in outcome.err
    assert ask("topics", "tiers", "no-such-topic").status == 1
