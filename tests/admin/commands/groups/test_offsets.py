"""Offsets of real groups are reset and deleted, and groups are deleted, on a running broker."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from strandline.admin.commands.main import run
from tests.admin.commands.conftest import Command
from tests.broker import Broker
from tests.moments import T0
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(90)
# One record a minute in both partitions, from T0 on.
MINUTE_MS = 60_000
THIRD_RECORD = datetime.fromtimestamp(T0 // 1000 + 120, UTC).strftime("%Y-%m-%dT%H:%M:%S")
_NUMBERS = count()
# A name that was never used, also on a broker that outlives this run.
TIDES = f"tides-{os.getpid()}"


@pytest.fixture(scope="module")
def tides(broker: Broker) -> str:
    """A topic of two partitions with ten records in each."""
    assert run(["topics", "create", TIDES, "-p", "2", "-b", broker.bootstrap]) == 0
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(20):
        when = T0 + number // 2 * MINUTE_MS
        producer.produce(TIDES, f"value-{number}", partition=number % 2, timestamp=when)
    assert producer.flush(30) == 0
    return TIDES


@contextmanager
def _consumer(broker: Broker, group: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


@pytest.fixture
def group(broker: Broker, tides: str) -> str:
    """A group without members that has committed 4 of partition 0, and nothing of partition 1."""
    name = f"group-{os.getpid()}-{next(_NUMBERS)}"
    with _consumer(broker, name) as consumer:
        consumer.commit(offsets=[TopicPartition(tides, 0, 4)], asynchronous=False)
    return name


@pytest.fixture
def committed(broker: Broker, tides: str) -> Callable[[str], list[int]]:
    """The committed offsets of both partitions, as a client sees them; -1001 for none."""

    def of(name: str) -> list[int]:
        with _consumer(broker, name) as consumer:
            asked = [TopicPartition(tides, number) for number in range(2)]
            return [row.offset for row in consumer.committed(asked, timeout=30)]

    return of


NONE = -1001
Committed = Callable[[str], list[int]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--to-earliest",), [0, 0]),
        (("--to-latest",), [10, 10]),
        (("--to-current",), [4, 10]),
        (("--to-offset", "7"), [7, 7]),
        (("--to-offset", "70"), [10, 10]),
        (("--to-datetime", THIRD_RECORD), [2, 2]),
        (("--to-datetime", "9999-01-01T00:00:00Z"), [10, 10]),
        (("--to-datetime", "1969-12-31T23:59:59.999Z"), [0, 0]),
        (("--by-duration", "P40000D"), [0, 0]),
        (("--by-duration", "PT0S"), [10, 10]),
    ],
)
def test_a_reset_is_a_dry_run_until_it_is_told_to_execute(
    ask: Command, group: str, committed: Committed, options: tuple[str, ...], expected: list[int]
) -> None:
    words = ("groups", "reset-offsets", group, "--topic", TIDES, *options)
    planned = ask(*words, "--json").json
    assert planned["group"] == group
    assert not planned["executed"]
    assert [row["current"] for row in planned["offsets"]] == [4, None]
    assert committed(group) == [4, NONE]
    done = ask(*words, "--execute", "--json").json
    assert done == {**planned, "executed": True}
    assert committed(group) == [row["new"] for row in planned["offsets"]] == expected


def test_a_shift_and_some_partitions(ask: Command, group: str, committed: Committed) -> None:
    back = ("groups", "reset-offsets", group, "-t", f"{TIDES}:0", "--shift-by")
    assert ask(*back, "-1", "--execute").status == 0
    assert committed(group) == [3, NONE]
    text = ask(*back, "-50").out
    assert "-47 is below the log: earliest" in text
    assert "This is a dry run: nothing was changed." in text
    refused = ask("groups", "reset-offsets", group, "-t", TIDES, "--shift-by", "1", "--execute")
    assert refused.status == 1
    assert f"no offset of {TIDES}-1 that could be shifted" in refused.err
    assert committed(group) == [3, NONE]


def test_all_topics_are_those_of_the_group(ask: Command, group: str, committed: Committed) -> None:
    done = ask("groups", "reset-offsets", group, "--all-topics", "--to-latest", "--execute")
    assert f"The offsets of group {group} were reset." in done.out
    assert committed(group) == [10, NONE]


def test_a_plan_is_exported_and_read_again(ask: Command, group: str, committed: Committed, tmp_path: Path) -> None:
    exported = ask("groups", "reset-offsets", group, "-t", TIDES, "--to-offset", "6", "--export").out
    assert exported == f"{TIDES},0,6\n{TIDES},1,6\n"
    file = tmp_path / "plan.csv"
    file.write_text(exported)
    assert ask("groups", "reset-offsets", group, "--from-file", str(file), "--execute").status == 0
    assert committed(group) == [6, 6]
    file.write_text("nowhere,0,1\n")
    assert (
        "Partition 0 of topic nowhere does not exist. Nothing was changed."
        in ask("groups", "reset-offsets", group, "--from-file", str(file), "--execute").err
    )


def test_a_group_that_does_not_exist_gets_offsets(ask: Command, tides: str, committed: Committed) -> None:
    name = f"group-{os.getpid()}-{next(_NUMBERS)}"
    assert ask("groups", "reset-offsets", name, "-t", tides, "--to-earliest", "--execute").status == 0
    assert committed(name) == [0, 0]
    assert ask("groups", "describe", name, "--json").json["state"] == "Empty"


def test_a_group_with_members_is_refused(ask: Command, broker: Broker, group: str, tides: str) -> None:
    with _consumer(broker, group) as consumer:
        consumer.subscribe([tides])
        wait_until(lambda: consumer.poll(0.1) and consumer.assignment(), within=30, what="an assignment")
        refused = ask("groups", "reset-offsets", group, "-t", tides, "--to-earliest", "--execute")
        assert refused.status == 1
        assert f"The offsets of group {group} cannot be reset while it has members: it is Stable" in refused.err
        not_deleted = ask("groups", "delete", group, "--yes")
        assert not_deleted.status == 1
        assert "It has members; stop them first (NON_EMPTY_GROUP)." in not_deleted.err
        subscribed = ask("groups", "delete-offsets", group, "-t", tides, "--yes")
        assert subscribed.status == 1
        assert "(GROUP_SUBSCRIBED_TO_TOPIC)" in subscribed.err
        listed = {
            row["group"] for row in ask("groups", "list", "--state", "stable", "--type", "Classic", "--json").json
        }
        assert group in listed
    assert group not in {row["group"] for row in ask("groups", "list", "--state", "Stable", "--json").json}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--to-earliest",), "Give either --topic, --all-topics or --from-file"),
        (("-t", TIDES, "--all-topics", "--to-earliest"), "Give either --topic, --all-topics or --from-file"),
        (("-t", TIDES), "Say where to, once"),
        (("-t", TIDES, "--to-earliest", "--to-offset", "1"), "Say where to, once"),
        (("-t", TIDES, "--to-datetime", "2026-01-01", "--by-duration", "P1D"), "Give either --to-datetime or"),
        (("-t", f"{TIDES}:5", "--to-earliest"), "does not exist."),
        (("-t", "nowhere", "--to-earliest"), "Topic nowhere does not exist."),
        (("--from-file", "/no/such/file"), "/no/such/file cannot be read"),
    ],
)
def test_a_reset_that_cannot_be_says_why(ask: Command, group: str, options: tuple[str, ...], sentence: str) -> None:
    outcome = ask("groups", "reset-offsets", group, *options)
    assert outcome.status == 1
    assert sentence in outcome.err


def test_all_topics_of_a_group_without_offsets(ask: Command) -> None:
    outcome = ask("groups", "reset-offsets", "nobody-yet", "--all-topics", "--to-earliest")
    assert (outcome.status, outcome.out) == (1, "")
    assert "The group has no offsets. Name topics with --topic." in outcome.err


def test_offsets_are_deleted(ask: Command, group: str, committed: Committed) -> None:
    assert ask("groups", "reset-offsets", group, "-t", TIDES, "--to-offset", "5", "--execute").status == 0
    done = ask("groups", "delete-offsets", group, "-t", f"{TIDES}:1", "--yes", "--json").json
    assert done == {"group": group, "offsets": [{"topic": TIDES, "partition": 1, "deleted": 5}]}
    assert committed(group) == [5, NONE]
    again = ask("groups", "delete-offsets", group, "-t", f"{TIDES}:1", "--yes")
    assert again.status == 1
    assert f"Partition 1 of topic {TIDES} is not among those that group {group} has offsets of." in again.err
    assert ask("groups", "delete-offsets", group, "--all-topics", "--yes").status == 0
    assert committed(group) == [NONE, NONE]
    assert "Give either --topic or --all-topics." in ask("groups", "delete-offsets", group, "--yes").err


def test_deleting_asks_first(ask: Command, group: str, committed: Committed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    for words in (("groups", "delete", group), ("groups", "delete-offsets", group, "--all-topics")):
        assert ask(*words).err.endswith("Nothing was deleted.\n")
    assert committed(group) == [4, NONE]


def test_no_answer_is_no(ask: Command, group: str, committed: Committed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    for words in (("groups", "delete", group), ("groups", "delete-offsets", group, "--all-topics")):
        outcome = ask(*words)
        assert (outcome.status, outcome.out.strip()) == (1, "")
        assert outcome.err.endswith("\nstrandline: Nothing was deleted.\n")
    assert committed(group) == [4, NONE]


def test_every_group_that_was_not_deleted_is_named(ask: Command) -> None:
    outcome = ask("groups", "delete", "nobody", "nobody-else", "--yes")
    assert (outcome.status, outcome.out) == (1, "")
    assert "Group nobody was not deleted: " in outcome.err
    assert "Group nobody-else was not deleted: " in outcome.err


def test_assigned_partitions_are_shown_before_there_is_an_offset(ask: Command, broker: Broker, tides: str) -> None:
    group = f"{tides}-silent"
    with _consumer(broker, group) as consumer:
        consumer.subscribe([tides])

        def is_assigned() -> bool:
            consumer.poll(0.1)
            return len(consumer.assignment()) == 2

        wait_until(is_assigned, what="an assignment")
        rows = ask("groups", "describe", group, "--json").json["offsets"]
    assert [(row["partition"], row["committed"], row["end"], row["lag"]) for row in rows] == [
        (0, None, 10, None),
        (1, None, 10, None),
    ]
    assert all(row["member"] for row in rows)


@pytest.mark.parametrize(("option", "word"), [("--state", "bored"), ("--type", "folk")])
def test_a_filter_that_no_group_can_fit_is_refused(ask: Command, option: str, word: str) -> None:
    outcome = ask("groups", "list", option, word)
    assert outcome.status == 1
    assert f"{option} must be one of " in outcome.err


def test_groups_that_do_not_fit_are_not_called_missing(ask: Command, group: str) -> None:
    assert ask("groups", "list", "--type", "streams").out == "No group is as asked for.\n"


def test_groups_are_deleted(ask: Command, group: str) -> None:
    outcome = ask("groups", "delete", group, "no-such-group", "--yes")
    assert outcome.status == 1
    assert outcome.out == f"Group {group} was deleted.\n"
    assert "Group no-such-group was not deleted: " in outcome.err
    assert "(GROUP_ID_NOT_FOUND)" in outcome.err
    assert f"There is no group {group}." in ask("groups", "describe", group).err
