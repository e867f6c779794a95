"""`strandline fsck` on the remote storage of a real broker: beside it, and on what it leaves."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from strandline.admin.commands.main import run
from strandline.log.directory_lock import DirectoryLock
from strandline.objects.marker import REMOTE_STORE_ID_KEY
from tests.admin.commands.conftest import Command, Outcome
from tests.broker import running_broker
from tests.clients.tiering import QUICK, create, numbered, produce, wait_tiered

pytestmark = pytest.mark.timeout(120)

TOPIC = "tides"
RECORDS = 100


def outcome_of(*arguments: str) -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = run(list(arguments))
    return Outcome(status, out.getvalue(), err.getvalue())


def add_orphan(data: Path, *, age_s: float = 7200) -> list[Path]:
    """Objects of the oldest segment once more, under an id that has no metadata."""
    made = []
    for source in sorted((data / "remote").glob(f"{TOPIC}-0-*/{0:020d}-*")):
        path = source.with_name(f"{0:020d}-AAAAAAAAAAAAAAAAAAAAAA{source.suffix}")
        shutil.copyfile(source, path)
        written = source.stat().st_mtime - age_s
        os.utime(path, (written, written))
        made.append(path)
    return made


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mapping[str, Outcome]]:
    """The data directory of a broker that copied segments and was stopped; what was said while it ran."""
    data = tmp_path_factory.mktemp("remote-fsck") / "data"
    said = {}
    with running_broker(data, QUICK) as broker:
        create(AdminClient({"bootstrap.servers": broker.bootstrap}), TOPIC)
        produce(broker, TOPIC, numbered(0, RECORDS))
        wait_tiered(broker, TOPIC)
        beside = ("fsck", "--data-dir", str(data), "--bootstrap", broker.bootstrap)
        said["healthy"] = outcome_of(*beside, "--deep", "--json")
        said["files"] = outcome_of("fsck", "--data-dir", str(data))
        said["diskless"] = outcome_of(*beside, "--tier", "diskless")
        orphan = add_orphan(data)
        said["orphan"] = outcome_of(*beside)
        said["repair"] = outcome_of(*beside, "--repair")
        assert not any(path.exists() for path in orphan)
        broker.stop()  # what it knows is in its files, as the tests of a directory expect
    return data, said


@pytest.fixture
def said(life: tuple[Path, Mapping[str, Outcome]]) -> Mapping[str, Outcome]:
    return life[1]


@pytest.fixture
def data(life: tuple[Path, Mapping[str, Outcome]], tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(life[0], tmp_path / "data"))


def logs(data: Path) -> list[Path]:
    return sorted((data / "remote").glob(f"{TOPIC}-0-*/*.log"))


def test_beside_a_running_broker_remote_storage_is_compared_with_what_it_says(said: Mapping[str, Outcome]) -> None:
    assert said["healthy"].status == 0, said["healthy"]
    found = said["healthy"].json["remote"]
    assert found["clean"]
    assert found["findings"] == []
    assert found["segments"] > 2
    assert found["unbounded_partitions"] == 0
    assert said["orphan"].status == 1
    assert "AAAAAAAAAAAAAAAAAAAAAA" in said["orphan"].out
    assert "--repair does" in said["orphan"].out
    assert said["repair"].status == 0
    assert "1 orphans deleted" in said["repair"].out


def test_the_files_of_a_running_broker_are_left_to_it(said: Mapping[str, Outcome]) -> None:
    assert said["files"].status == 2
    assert "A broker uses the log directory" in said["files"].err
    assert "--bootstrap HOST:PORT" in said["files"].err
    assert said["diskless"].status == 2
    assert "--bootstrap is for remote storage" in said["diskless"].err


@pytest.mark.parametrize("options", [[], ["--deep"], ["--tier", "remote", "--repair", "--grace", "0"]])
def test_what_a_broker_leaves_is_clean(command: Command, data: Path, options: list[str]) -> None:
    outcome = command("fsck", "--data-dir", str(data), *options)
    assert outcome.status == 0, outcome
    assert "Nothing is wrong." in outcome.out
    assert f"{len(logs(data))} segments in remote log metadata" in outcome.out


def test_missing_damaged_and_orphaned_objects_are_findings_with_advice(command: Command, data: Path) -> None:
    missing, damaged = logs(data)[:2]
    missing.unlink()
    content = bytearray(damaged.read_bytes())
    content[100] ^= 1
    damaged.write_bytes(content)
    outcome = command("fsck", "--data-dir", str(data), "--deep")
    assert outcome.status == 1
    assert "1 missing, 1 damaged, 0 hole, 0 stuck, 0 orphan, 0 unknown" in outcome.out
    assert missing.stem in outcome.out
    assert "DeleteRecords moves the log start past them" in outcome.out


def test_a_log_start_that_was_lost_is_no_hole_but_a_lost_description_is(command: Command, data: Path) -> None:
    checkpoint = data / "logs" / "log-start-offset-checkpoint"
    text = checkpoint.read_text()
    checkpoint.unlink()
    assert command("fsck", "--data-dir", str(data)).status == 0
    checkpoint.write_text(text)
    for file in (data / "logs").glob("__remote_log_metadata-*/*.log"):
        file.write_bytes(b"")
    outcome = command("fsck", "--data-dir", str(data), "--repair", "--grace", "0", "--json")
    assert outcome.status == 1
    assert len(logs(data)) > 2
    assert '"kind": "hole"' in outcome.out
    assert '"kind": "unknown"' in outcome.out
    (data / "logs" / ".kafka_cleanshutdown").unlink()
    outcome = command("fsck", "--data-dir", str(data), "--grace", "0", "--json")
    assert outcome.status == 1
    assert '"kind": "hole"' not in outcome.out  # a broker that was killed may not have written its log start down


def test_what_cannot_be_compared_ends_with_status_2_and_says_what_to_do(command: Command, data: Path) -> None:
    shutil.rmtree(data / "logs" / "__remote_log_metadata-1")
    outcome = command("fsck", "--data-dir", str(data))
    assert outcome.status == 2
    assert "Partitions 1 of __remote_log_metadata are not in" in outcome.err
    assert "--bootstrap" in outcome.err
    outcome = command("fsck", "--data-dir", str(data), "--set", "remote.log.storage.manager.class.name=some.Plugin")
    assert outcome.status == 2
    assert "names a plugin: only the built-in storage" in outcome.err
    shutil.rmtree(data / "remote")
    outcome = command("fsck", "--data-dir", str(data))
    assert outcome.status == 2
    assert "--set rsm.config.url=" in outcome.err


def test_another_storage_of_the_cluster_is_not_judged(command: Command, data: Path) -> None:
    (data / "remote" / REMOTE_STORE_ID_KEY).write_text('{"store_id": "another"}')
    outcome = command("fsck", "--data-dir", str(data), "--repair")
    assert outcome.status == 2
    assert "is the store another, and the database refers to the store " in outcome.err
    assert "rsm.config.url" in outcome.err


def test_diskless_and_tiered_topics_are_compared_together(command: Command, data: Path) -> None:
    (data / "objects").mkdir()
    outcome = command("fsck", "--data-dir", str(data))
    assert outcome.status == 0
    assert outcome.out.count("Nothing is wrong.") == 2
    found = command("fsck", "--data-dir", str(data), "--json").json
    assert (found["clean"], found["objects"], found["remote"]["clean"]) == (True, 0, True)
    assert "remote" not in command("fsck", "--data-dir", str(data), "--json", "--tier", "diskless").json


def test_log_directories_in_use_leave_remote_storage_out_and_diskless_topics_not(command: Command, data: Path) -> None:
    (data / "objects").mkdir()
    lock = DirectoryLock(str(data / "logs"))
    try:
        outcome = command("fsck", "--data-dir", str(data), "--json")
        assert outcome.status == 2, "nobody may take this for a store in which nothing is wrong"
        assert "strandline: remote was not compared: A broker uses the log directory" in outcome.err
        found = json.loads(outcome.out)
        assert (found["clean"], found["findings"], list(found["left_out"])) == (False, [], ["remote"])
        shown = command("fsck", "--data-dir", str(data))
        assert shown.status == 2
        assert "Nothing is wrong." not in shown.out
        assert "Nothing is wrong in what was compared." in shown.out
        assert command("fsck", "--data-dir", str(data), "--tier", "remote").status == 2
    finally:
        lock.release()


def test_a_log_that_cannot_be_checked_for_holes_is_no_success(command: Command, data: Path) -> None:
    for log in (data / "logs").glob(f"{TOPIC}-*"):
        shutil.rmtree(log)
    outcome = command("fsck", "--data-dir", str(data))
    assert outcome.status == 2, outcome
    assert "logs could not be checked for holes" in outcome.out
    assert "Nothing is wrong." not in outcome.out
    found = json.loads(command("fsck", "--data-dir", str(data), "--json").out)
    assert (found["clean"], found["remote"]["clean"], found["remote"]["findings"]) == (False, False, [])


def test_a_storage_without_an_id_and_without_segments_is_not_judged(
    command: Command, data: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    outcome = command("fsck", "--data-dir", str(data), "--set", f"rsm.config.url=file://{elsewhere}")
    assert outcome.status == 2
    assert f"file://{elsewhere} has no object {REMOTE_STORE_ID_KEY}, and the database refers to" in outcome.err
    (data / "remote" / REMOTE_STORE_ID_KEY).unlink()
    assert command("fsck", "--data-dir", str(data)).status == 0, "the segments are there, and nothing is deleted"
