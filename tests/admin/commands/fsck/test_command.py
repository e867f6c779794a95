"""`strandline fsck` on the data of real brokers: stopped ones, and running ones under load."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

import pytest
from confluent_kafka import Producer

from strandline.clock import SystemClock, SystemIds
from strandline.diskless.wal import keys
from strandline.objects import MARKER_KEY
from strandline.objects.marker import STORE_ID_KEY
from tests.admin.commands.conftest import Command
from tests.broker import BrokerProcess, running_broker
from tests.postgres import start_postgres
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(120)

DISKLESS = {"log.diskless.enable": "true"}
OBJECTS = 3


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a broker that wrote a few objects and was stopped."""
    data = tmp_path_factory.mktemp("fsck") / "data"
    with running_broker(data, DISKLESS) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for _ in range(OBJECTS):
            producer.produce("tides", "ebb and flow", partition=0)
            assert producer.flush(30) == 0
        producer.close()
        broker.stop()
    return data


@pytest.fixture
def data(stopped: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(stopped, tmp_path / "data"))


def objects(data: Path) -> list[Path]:
    return sorted((data / "objects" / "wal").rglob("1-*"))


def add_orphan(data: Path, *, age_s: float = 0) -> Path:
    """What an upload leaves that was never committed."""
    now_ms = SystemClock().now_ms()
    path = data / "objects" / keys.make(now_ms, 1, SystemIds().uuid())
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(objects(data)[0], path)
    os.utime(path, (now_ms / 1000 - age_s,) * 2)
    return path


@pytest.mark.parametrize("options", [[], ["--deep"]])
def test_what_a_broker_leaves_is_clean(command: Command, data: Path, options: list[str]) -> None:
    outcome = command("fsck", "--data-dir", str(data), *options)
    assert outcome.status == 0
    assert "Nothing is wrong." in outcome.out
    assert f"{OBJECTS} objects" in outcome.out
    found = command("fsck", "--data-dir", str(data), "--json", *options).json
    assert (found["clean"], found["objects"], found["files"], found["findings"]) == (True, OBJECTS, OBJECTS, [])


def test_a_missing_and_a_damaged_object_are_findings(command: Command, data: Path) -> None:
    missing, damaged, _ = objects(data)
    missing.unlink()
    content = bytearray(damaged.read_bytes())
    content[65] ^= 1
    damaged.write_bytes(content)
    assert command("fsck", "--data-dir", str(data), "--json").status == 1
    outcome = command("fsck", "--data-dir", str(data), "--json", "--deep")
    assert outcome.status == 1
    findings = json.loads(outcome.out)["findings"]
    assert {(finding["kind"], Path(finding["key"]).name) for finding in findings} == {
        ("missing", missing.name),
        ("damaged", damaged.name),
    }
    text = command("fsck", "--data-dir", str(data), "--deep").out
    assert "1 missing, 1 damaged, 0 orphan, 0 overdue" in text
    assert damaged.name in text


def test_orphans_are_shown_and_only_deleted_on_request(command: Command, data: Path) -> None:
    old, young = add_orphan(data, age_s=7200), add_orphan(data)
    outcome = command("fsck", "--data-dir", str(data))
    assert outcome.status == 1
    assert old.name in outcome.out
    assert young.name not in outcome.out
    assert "1 objects are too young to judge" in outcome.out
    assert old.exists()

    outcome = command("fsck", "--data-dir", str(data), "--repair")
    assert outcome.status == 0
    assert "1 orphans deleted" in outcome.out
    assert not old.exists()
    assert young.exists()
    assert len(objects(data)) == OBJECTS + 1

    assert command("fsck", "--data-dir", str(data), "--repair", "--grace", "0").status == 0
    assert len(objects(data)) == OBJECTS
    assert command("fsck", "--data-dir", str(data), "--grace", "0", "--deep").status == 0


def test_settings_come_from_a_file_as_for_the_broker(command: Command, data: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    (data / "objects").rename(moved)
    file = tmp_path / "server.properties"
    file.write_text(f"strandline.data.dir={data}\nstrandline.objects.url=file://{moved}\n")
    assert command("fsck", "--config", str(file)).status == 0
    assert command("fsck", "--data-dir", str(data), "--set", f"strandline.objects.url=file://{moved}").status == 0


def test_the_objects_of_another_cluster_are_not_judged_let_alone_deleted(command: Command, data: Path) -> None:
    orphan = add_orphan(data, age_s=7200)
    (data / "objects" / MARKER_KEY).write_text('{"cluster_id": "somebody-else"}')
    outcome = command("fsck", "--data-dir", str(data), "--repair")
    assert outcome.status == 2
    assert "belongs to the cluster somebody-else" in outcome.err
    assert orphan.exists()


def test_another_store_of_the_cluster_is_not_judged_let_alone_deleted(command: Command, data: Path) -> None:
    orphan = add_orphan(data, age_s=7200)
    (data / "objects" / STORE_ID_KEY).write_text('{"store_id": "another"}')
    outcome = command("fsck", "--data-dir", str(data), "--repair")
    assert outcome.status == 2
    assert "is the store another, and the database refers to the store " in outcome.err
    assert orphan.exists()


def test_nothing_is_deleted_in_a_store_that_does_not_have_the_recorded_id(command: Command, data: Path) -> None:
    orphan = add_orphan(data, age_s=7200)
    (data / "objects" / STORE_ID_KEY).unlink()
    outcome = command("fsck", "--data-dir", str(data), "--repair")
    assert outcome.status == 2
    assert f"has no object {STORE_ID_KEY}, and the database refers to the store " in outcome.err
    assert orphan.exists()
    assert "1 orphan" in command("fsck", "--data-dir", str(data)).out, "nothing is deleted, so it may be judged"


def test_without_a_marker_everything_is_compared_and_nothing_is_deleted(command: Command, data: Path) -> None:
    shutil.rmtree(data / "objects" / "wal")
    (data / "objects" / MARKER_KEY).unlink()
    outcome = command("fsck", "--data-dir", str(data))
    assert outcome.status == 1
    assert f"{OBJECTS} missing" in outcome.out
    outcome = command("fsck", "--data-dir", str(data), "--repair")
    assert outcome.status == 2
    assert MARKER_KEY in outcome.err


def test_what_cannot_be_compared_ends_with_status_2_and_makes_nothing(command: Command, tmp_path: Path) -> None:
    outcome = command("fsck", "--data-dir", str(tmp_path / "nowhere"))
    assert outcome.status == 2
    assert "There is no database at" in outcome.err
    assert not (tmp_path / "nowhere").exists()
    outcome = command("fsck", "--set", "strandline.objects.url=ftp://x")
    assert outcome.status == 2
    assert "strandline.objects.url must begin with" in outcome.err


def test_nothing_is_repaired_in_an_embedded_database_while_its_broker_runs(command: Command, data: Path) -> None:
    orphan = add_orphan(data, age_s=7200)
    # The broker looks for orphans itself; here it leaves this one alone.
    with running_broker(data, {**DISKLESS, "strandline.objects.orphan.scan.interval.ms": "0"}):
        found = command("fsck", "--data-dir", str(data))
        refused = command("fsck", "--data-dir", str(data), "--repair")
    assert found.status == 1
    assert orphan.name in found.out
    assert refused.status == 2
    assert "is already open in process" in refused.err
    assert "To compare without deleting anything, leave --repair out." in refused.err
    assert orphan.exists()
    assert command("fsck", "--data-dir", str(data), "--repair").status == 0
    assert not orphan.exists()


def test_help_has_an_example_and_the_exit_statuses(command: Command) -> None:
    text = " ".join(command("fsck", "--help").out.split())
    assert "Example: strandline fsck" in text
    assert "2 if nothing was found but not everything" in text


class Loaded(NamedTuple):
    """A broker that is written to all the time."""

    broker: BrokerProcess
    database: str
    options: list[str]
    """They name its data."""


@pytest.fixture(params=["sqlite", "postgresql"])
def load(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Loaded]:
    data = tmp_path / "live"
    url = start_postgres().new_database() if request.param == "postgresql" else f"sqlite:///{data}/metadata.db"
    settings = {
        **DISKLESS,
        "strandline.metadata.url": url,
        "num.partitions": "3",
        "log.retention.ms": "500",
        "inkless.retention.enforcement.interval.ms": "100",
        "inkless.file.cleaner.interval.ms": "100",
        "inkless.file.cleaner.retention.period.ms": "0",
    }
    with running_broker(data, settings) as broker:
        over = Event()

        def write() -> None:
            producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
            while not over.is_set():
                for partition in range(3):
                    producer.produce("tides", b"x" * 1000, partition=partition)
                producer.flush(30)
            producer.close()

        thread = Thread(target=write)
        thread.start()
        try:
            first = wait_until(lambda: objects(data), within=30, what="objects")
            wait_until(lambda: not first[0].exists(), within=30, what="the cleaner")
            options = ["--data-dir", str(data), *(f"--set={name}={value}" for name, value in settings.items())]
            yield Loaded(broker, request.param, options)
        finally:
            over.set()
            thread.join()


def test_brokers_that_write_and_clean_meanwhile_are_neither_disturbed_nor_taken_for_damage(
    command: Command, load: Loaded
) -> None:
    for options in ([], ["--deep"], ["--deep", "--repair"]):
        outcome = command("fsck", *load.options, *options)
        is_refused = load.database == "sqlite" and "--repair" in options
        assert outcome.status == (2 if is_refused else 0), outcome.out + outcome.err
    if load.database == "sqlite":
        assert "TopicRecord" in command("metadata", "dump", *load.options[:2]).out
    assert "WARNING" not in load.broker.log_text


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_store_without_an_id_and_without_the_objects_is_not_judged(
    command: Command, data: Path, tmp_path: Path, is_empty: bool
) -> None:
    """A mistyped address, or a disk that is not mounted: its objects are missing there, and nowhere else."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if not is_empty:
        (elsewhere / "notes.txt").write_text("somebody's")
    outcome = command("fsck", "--data-dir", str(data), "--set", f"strandline.objects.url=file://{elsewhere}")
    assert outcome.status == 2
    assert f"file://{elsewhere} has no object {STORE_ID_KEY}, and the database refers to the store " in outcome.err
    assert "which was recorded at file://" in outcome.err
