"""`strandline migration` on a real broker: start, watch, list, abort, complete, and what else shows a hybrid topic."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from strandline.client import Cluster
from strandline.wire.api import ApiKey
from strandline.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from tests.admin.commands.conftest import Command, command
from tests.admin.http.scrapes import scrape
from tests.broker import BrokerProcess, running_broker
from tests.clients.tiering import QUICK, TIERED, create, numbered, produce, read, values
from tests.waiting import wait_until

__all__ = ["command"]

pytestmark = pytest.mark.timeout(120)
# One topic at a time, which keeps its place while it is copied, a small segment every ten seconds or so: others wait.
SLOW = {
    **QUICK,
    "remote.log.manager.copy.max.bytes.per.second": "1",
    "inkless.migration.parallel.topics": "1",
    "inkless.migration.segment.wait.ms": "3600000",
}
RECORDS = 600
KEEP = {"remote.storage.enable": "true", "internal.segment.bytes": "21000"}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("switched") / "data", QUICK) as broker:
        wait_http(broker)
        yield broker


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with slow_broker(tmp_path_factory.mktemp("slow")) as broker:
        yield broker


@contextmanager
def slow_broker(directory: Path) -> Iterator[BrokerProcess]:
    """A broker that copies next to nothing. Its first topic has the only place, and keeps it for minutes."""
    with running_broker(directory / "data", SLOW) as broker:
        wait_http(broker)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        create(admin, "first", KEEP)
        produce(broker, "first", numbered(0, RECORDS))
        assert post(broker, "first", "start", {})[0] == 202
        wait_until(lambda: rows(broker, "first")[0]["b0"] == RECORDS, "the first topic to be diskless")
        yield broker


def wait_http(broker: BrokerProcess) -> None:
    """The HTTP listener answers later than Kafka's."""

    def answers() -> bool:
        try:
            with urllib.request.urlopen(f"{broker.http}/healthz", timeout=30):
                return True
        except urllib.error.URLError:
            return False

    wait_until(answers, "the HTTP listener")


def line(broker: BrokerProcess, *arguments: str) -> list[str]:
    program = str(Path(sys.executable).with_name("strandline"))
    return [program, "migration", *arguments, "--bootstrap", broker.bootstrap]


def status(broker: BrokerProcess, topic: str) -> Any:
    with urllib.request.urlopen(f"{broker.http}/topics/{topic}/migration", timeout=30) as answer:
        return json.load(answer)


def rows(broker: BrokerProcess, topic: str) -> Any:
    return status(broker, topic)["partitions"]


def post(broker: BrokerProcess, topic: str, action: str, body: dict[str, bool]) -> tuple[int, Any]:
    request = urllib.request.Request(
        f"{broker.http}/topics/{topic}/migration/{action}",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.fixture
def ask(command: Command, own: BrokerProcess) -> Command:
    return lambda *arguments: command(*arguments, "--bootstrap", own.bootstrap)


@pytest.fixture
def admin(own: BrokerProcess) -> Iterator[AdminClient]:
    with AdminClient({"bootstrap.servers": own.bootstrap}) as opened:  # closed before the broker ends
        yield opened


@pytest.fixture
def hybrid(own: BrokerProcess, admin: AdminClient, unique_name: Callable[[], str], ask: Command) -> str:
    """A topic of two partitions with 100 records each before the boundary, and ten in partition 0 after it."""
    topic = create(admin, unique_name(), {**TIERED, "local.retention.bytes": "-2"}, partitions=2)
    for partition in (0, 1):
        produce(own, topic, numbered(0, 100), partition=partition)
    assert ask("migration", "start", topic, "--wait").status == 0
    produce(own, topic, numbered(100, 10))
    return topic


def test_a_dry_run_changes_nothing_and_a_start_ends_at_hybrid(
    own: BrokerProcess, admin: AdminClient, unique_name: Callable[[], str], ask: Command
) -> None:
    topic = create(admin, unique_name(), TIERED, partitions=2)
    produce(own, topic, numbered(0, 100))
    assert "can be switched to diskless. Nothing was changed." in ask("migration", "start", topic, "--dry-run").out
    tried = ask("migration", "start", topic, "--dry-run", "--json").json
    assert (tried["accepted"], tried["state"]) == (True, "TIERED_ONLY")
    assert "diskless.enable" not in ask("topics", "describe", topic, "--json").json["configs"]
    assert topic in {row["topic"] for row in ask("migration", "list", "--state", "tiered_only", "--json").json}

    done = ask("migration", "start", topic, "--wait")
    assert done.status == 0, done.err
    assert "2 of 2 partitions diskless, 100 %" in done.out.splitlines()[-1]
    found = ask("migration", "status", topic, "--json").json
    assert list(found)[:3] == ["topic", "state", "partitions"]
    assert list(found["partitions"][0])[:5] == ["partition", "state", "phase", "b0", "tiering_complete"]
    assert found["state"] in ("HYBRID", "DISKLESS_ONLY")
    assert [row["b0"] for row in found["partitions"]] == [100, 0]
    assert found["partitions"][0]["state"] == "HYBRID"
    assert found["partitions"][0]["phase"] is None
    assert found["partitions"][0]["tiering_complete"] is True
    assert topic in {row["topic"] for row in ask("migration", "list", "--state", "HYBRID", "--json").json}
    assert topic in ask("migration", "list").out
    again = ask("migration", "start", topic, "--wait", "--json")
    assert again.status == 0, again.err
    assert json.loads(again.out.splitlines()[-1])["state"] == found["state"]
    assert values(read(own, topic, 100)) == list(range(100))


def test_a_terminal_shows_a_bar(own: BrokerProcess, admin: AdminClient, unique_name: Callable[[], str]) -> None:
    topic = create(admin, unique_name(), {})
    terminal, there = os.openpty()
    with subprocess.Popen(
        line(own, "start", topic, "--wait"), stdout=there, env={**os.environ, "TERM": "xterm"}
    ) as one:
        os.close(there)
        shown = b""
        try:
            while piece := os.read(terminal, 65536):
                shown += piece
        except OSError:  # Linux says so when the other end is closed
            pass
    os.close(terminal)
    assert one.returncode == 0, shown
    assert "━".encode() in shown
    assert b"1 of 1 partitions diskless, 100 %" in shown


def test_a_topic_that_is_diskless_cannot_be_aborted(ask: Command, hybrid: str) -> None:
    refused = ask("migration", "abort", hybrid)
    assert refused.status == 1
    assert "there is no way back" in refused.err
    assert ask("migration", "status", hybrid, "--json").json["state"] == "HYBRID"


def test_refusals_are_sentences_and_change_nothing(
    own: BrokerProcess, admin: AdminClient, unique_name: Callable[[], str], ask: Command
) -> None:
    plain = create(admin, unique_name(), {})
    produce(own, plain, numbered(0, 10))
    for arguments in (("--dry-run",), (), ("--wait",)):
        refused = ask("migration", "start", plain, *arguments)
        assert refused.status == 1
        assert "remote.storage.enable=true first" in refused.err
    code, answer = post(own, plain, "start", {})
    assert (code, answer["code"]) == (409, "INVALID_CONFIG")
    assert "remote.storage.enable=true first" in answer["error"]
    refused = ask("migration", "abort", plain)
    assert (refused.status, refused.out) == (1, "")
    assert f"{plain} is not being switched to diskless" in refused.err
    code, answer = post(own, plain, "abort", {})
    assert (code, answer["code"]) == (409, "INVALID_CONFIG")
    assert "diskless.enable" not in ask("topics", "describe", plain, "--json").json["configs"]
    assert status(own, plain)["state"] is None
    assert "not on its way to diskless" in ask("migration", "status", plain).out
    assert values(read(own, plain, 10)) == list(range(10))
    missing = ask("migration", "status", "nowhere")
    assert missing.status == 1
    assert "Topic nowhere cannot be described" in missing.err
    assert post(own, "nowhere", "start", {})[0] == 404
    assert "--state has to be one of" in ask("migration", "list", "--state", "DONE").err


def test_tiers_and_descriptions_show_all_three_ranges(own: BrokerProcess, ask: Command, hybrid: str) -> None:
    first, second = ask("topics", "tiers", hybrid, "--json").json["partitions"]
    assert (first["remote"]["from_offset"], first["remote"]["to_offset"]) == (0, 100)
    assert first["local"]["to_offset"] == 100
    assert (first["diskless"]["from_offset"], first["diskless"]["to_offset"]) == (100, 110)
    wait_until(
        lambda: ask("topics", "tiers", hybrid, "--json").json["partitions"][0]["diskless"]["bytes"] > 10_000,
        "the bytes of the diskless part to be known",
    )
    assert (second["diskless"]["from_offset"], second["diskless"]["to_offset"]) == (100, 100)
    assert first["state"] == "HYBRID"
    text = ask("topics", "tiers", hybrid).out
    assert "100 to 109" in text
    assert "HYBRID" in text
    described = ask("topics", "describe", hybrid, "--json").json
    assert (described["kind"], described["migration_state"]) == ("diskless", "HYBRID")
    listed = {row["topic"]: (row["kind"], row["migration_state"]) for row in ask("topics", "list", "--json").json}
    assert listed[hybrid] == ("diskless", "HYBRID")
    assert f"{hybrid}  diskless (HYBRID)  id" in ask("topics", "describe", hybrid).out
    assert [row["diskless_from"] for row in described["partitions"]] == [100, 100]
    assert [row["end_offset"] for row in described["partitions"]] == [110, 100]
    assert "diskless from" in ask("topics", "describe", hybrid).out
    with urllib.request.urlopen(own.http, timeout=30) as page:
        shown = page.read().decode()
    assert f"<h3>{hybrid} <small>HYBRID, 100 %" in shown
    assert f'data-label="topic">{hybrid}</td><td data-label="kind">diskless</td>' in shown
    assert "diskless 100 to 109" in shown


def test_log_dirs_list_a_hybrid_partition_in_every_place(own: BrokerProcess, hybrid: str) -> None:
    wanted = [DescribableLogDirTopic(topic=hybrid, partitions=[0])]
    with Cluster(own.bootstrap) as cluster:
        answer = cluster.any().request(ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=wanted))
    places = {row.log_dir: [p for topic in row.topics for p in topic.partitions] for row in answer.results}
    assert len(places) == 3
    assert all(len(partitions) == 1 for partitions in places.values()), places
    assert all(partitions[0].offset_lag == 0 for partitions in places.values())
    sizes = {name: partitions[0].partition_size for name, partitions in places.items()}
    assert sum(size > 10_000 for size in sizes.values()) >= 2, sizes
    (diskless,) = (size for name, size in sizes.items() if name.endswith("objects"))
    assert 10_000 < diskless < 20_000


def test_metrics_of_hybrid_partitions(own: BrokerProcess, hybrid: str) -> None:
    read(own, hybrid, 110)
    # It is asked for with a scrape, and a few seconds old at most.
    wait_until(lambda: scrape(own)["inkless_migration_topics_state", "HYBRID"] >= 1, what="the count of topics")
    now = scrape(own)
    assert now["inkless_migration_topic_progress", hybrid] == 100
    assert now["inkless_hybrid_diskless_reads_total",] > 0
    assert now["inkless_hybrid_local_reads_total",] + now["inkless_hybrid_tiered_reads_total",] > 0
    assert now["strandline_migration_write_pause_seconds_count",] >= 2
    assert now["strandline_migration_last_write_pause_seconds", hybrid] > 0
    assert now["strandline_migration_uncopied_bytes",] == 0
    wait_until(lambda: scrape(own)["kafka_log_log_logendoffset", hybrid, "0"] == 110, "the end in /metrics")
    assert scrape(own)["kafka_log_log_logstartoffset", hybrid, "0"] == 0
    assert scrape(own)["inkless_tiered_high_offset", hybrid, "0"] == 99
    assert scrape(own)["inkless_diskless_start_offset", hybrid, "0"] == 100


def waiting(broker: BrokerProcess, topic: str) -> subprocess.Popen[str]:
    """`start --wait` for a topic whose turn does not come."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    create(admin, topic, KEEP)
    produce(broker, topic, numbered(0, 10))
    process = subprocess.Popen(
        line(broker, "start", topic, "--wait"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell lets its background jobs ignore Ctrl-C, and these tests may be run in one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith(f"{topic}: MIGRATING, 1 topic comes first, 0 of 1 partitions diskless")
    return process


def test_a_switch_that_waits_is_aborted(slow: BrokerProcess, command: Command) -> None:
    with waiting(slow, "second") as process:
        assert (rows(slow, "second")[0]["phase"], status(slow, "second")["queue_position"]) == ("WAITING", 1)
        aborted = command("migration", "abort", "second", "--bootstrap", slow.bootstrap)
        assert aborted.out == "Topic second stays as it is: it is not switched to diskless, and nothing is lost.\n"
        _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "The switch of second to diskless was aborted: the topic goes on as it was." in err
    assert produce(slow, "second", numbered(10, 10)) == list(range(10, 20))
    assert values(read(slow, "second", 20)) == list(range(20))


def test_a_topic_that_is_deleted_meanwhile_ends_the_waiting(slow: BrokerProcess) -> None:
    with waiting(slow, "third") as process:
        admin = AdminClient({"bootstrap.servers": slow.bootstrap})
        admin.delete_topics(["third"])["third"].result(30)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "Topic third was deleted" in err


def test_ctrl_c_ends_the_waiting_and_not_the_switch(slow: BrokerProcess, command: Command) -> None:
    with waiting(slow, "fourth") as process:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "The switch of fourth goes on in the brokers." in err
    assert status(slow, "fourth")["queue_position"] == 1
    assert command("migration", "abort", "fourth", "--json", "--bootstrap", slow.bootstrap).json["topic"] == "fourth"


def test_complete_says_first_what_it_may_cost(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with slow_broker(tmp_path) as broker:
        before = rows(broker, "first")[0]
        assert (before["state"], before["phase"]) == ("MIGRATING", "COPYING_PREFIX")
        assert before["uncopied_bytes"] > 100_000
        assert scrape(broker)["strandline_migration_uncopied_bytes",] > 100_000
        code, answer = post(broker, "first", "complete", {})
        assert code == 409
        assert "partition 0: " in answer["error"]
        words = ("migration", "complete", "first", "--bootstrap", broker.bootstrap)
        monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
        refused = command(*words)
        assert refused.status == 1
        assert "if that disk is lost, they are lost (partition 0: " in refused.out
        assert "Nothing was changed." in refused.err
        assert rows(broker, "first")[0]["state"] == "MIGRATING"
        done = command(*words, "--yes", "--json")
        assert done.json["state"] == "HYBRID"
        assert "they are lost" in done.err
        assert values(read(broker, "first", RECORDS)) == list(range(RECORDS))


def test_a_partition_that_cannot_be_served_says_why(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data") as broker:
        wait_http(broker)
        create(AdminClient({"bootstrap.servers": broker.bootstrap}), "orders", {})
        assert post(broker, "orders", "start", {})[0] == 202
        wait_until(lambda: status(broker, "orders")["state"] == "DISKLESS_ONLY", "the empty topic to be diskless")
        broker.stop()
        objects = broker.data_dir / "objects"
        objects.rename(broker.data_dir / "aside")
        objects.write_bytes(b"in the way")
        broker.start()
        wait_http(broker)
        wait_until(lambda: "is not a directory" in rows(broker, "orders")[0]["problem"], "the reason to be told")
        assert scrape(broker)["strandline_migration_stuck_partitions",] == 1
        objects.unlink()
        (broker.data_dir / "aside").rename(objects)
        wait_until(lambda: not rows(broker, "orders")[0]["problem"], "the partition to be served again")
        assert produce(broker, "orders", numbered(0, 10)) == list(range(10))
