"""`strandline topics tiers`, `migration status` and `fsck` on topics that the tiering pipeline has converted.

One topic was born diskless, so that no log directory knows it; the other one was classic before. Then both are deleted.
"""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from strandline.objects.marker import REMOTE_STORE_ID_KEY
from strandline.pipeline.client import TieringClient
from tests.admin.commands.conftest import Command, Outcome
from tests.admin.commands.fsck.test_remote import outcome_of
from tests.broker import BrokerProcess, running_broker
from tests.clients.tiering import QUICK, TIERED, create, numbered, produce, wait_tiered
from tests.files import files_below
from tests.pipeline.world import Pipeline, convert
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(120)

SETTINGS = QUICK | {
    "inkless.tiering.min.segment.bytes": "1",
    "inkless.file.cleaner.interval.ms": "50",
    "inkless.file.cleaner.retention.period.ms": "0",
}
BORN, SWITCHED = "born", "switched"


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mapping[str, Outcome]]:
    """The data directory of a broker whose topics were converted, and a copy of it from before they were deleted;
    what was said meanwhile."""
    data = tmp_path_factory.mktemp("converted-fsck") / "data"
    with running_broker(data, SETTINGS) as broker:
        said = _converted(broker)
        broker.stop()
        kept = Path(shutil.copytree(data, data.with_name("kept")))
        broker.start()
        said |= _deleted(broker)
    said["deleted-stopped"] = outcome_of("fsck", "--data-dir", str(data), "--grace", "0", "--json")
    return kept, said


def _converted(broker: BrokerProcess) -> dict[str, Outcome]:
    where, admin = ("--bootstrap", broker.bootstrap), AdminClient({"bootstrap.servers": broker.bootstrap})
    create(admin, BORN, {"diskless.enable": "true"}, partitions=2)
    create(admin, SWITCHED, TIERED)
    produce(broker, SWITCHED, numbered(0, 50))
    produce(broker, BORN, numbered(0, 30))
    said = {"unconverted": outcome_of("topics", "tiers", BORN, *where)}
    wait_tiered(broker, SWITCHED)
    assert outcome_of("migration", "start", SWITCHED, *where).status == 0
    wait_until(lambda: _state(broker, SWITCHED) == "HYBRID", what="the switch")
    produce(broker, SWITCHED, numbered(50, 20))
    convert(broker.bootstrap, BORN, SWITCHED)
    produce(broker, BORN, numbered(30, 7))
    produce(broker, SWITCHED, numbered(70, 5))
    for topic in (BORN, SWITCHED):
        said[topic] = outcome_of("topics", "tiers", topic, *where, "--json")
        said[f"{topic}-text"] = outcome_of("topics", "tiers", topic, *where, "--segments")
        said[f"{topic}-migration"] = outcome_of("migration", "status", topic, *where, "--json")
    beside = ("fsck", "--data-dir", str(broker.data_dir), *where)
    said["beside"] = outcome_of(*beside, "--deep", "--grace", "0", "--json")
    with TieringClient(broker.bootstrap) as client:
        client.trigger(BORN)
        pipeline = Pipeline(client, (BORN,))
        pipeline.split()
        ((begun,),) = pipeline.begin()
        said["uploading"] = outcome_of("topics", "tiers", BORN, *where, "--json")
        said["uploading-text"] = outcome_of("topics", "tiers", BORN, *where)
        said["beside-upload"] = outcome_of(*beside, "--grace", "0", "--json")
        (built,) = pipeline.build([begun])
        said["beside-uploaded"] = outcome_of(*beside, "--grace", "0", "--json")
        pipeline.commit(begun.partition, built)
    return said


def _deleted(broker: BrokerProcess) -> dict[str, Outcome]:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for deletion in admin.delete_topics([BORN, SWITCHED]).values():
        deletion.result(30)
    folders, kept = ("objects/wal", "objects/split", "remote"), {broker.data_dir / "remote" / REMOTE_STORE_ID_KEY}
    wait_until(
        lambda: not any(set(files_below(broker.data_dir / folder)) - kept for folder in folders),
        what="every object of the deleted topics to go",
    )
    beside = ("fsck", "--data-dir", str(broker.data_dir), "--bootstrap", broker.bootstrap)
    return {"deleted": outcome_of(*beside, "--grace", "0", "--json")}


def _state(broker: BrokerProcess, topic: str) -> Any:
    with urllib.request.urlopen(f"{broker.http}/topics/{topic}/migration", timeout=30) as answer:
        return json.load(answer)["state"]


@pytest.fixture
def said(life: tuple[Path, Mapping[str, Outcome]]) -> Mapping[str, Outcome]:
    return life[1]


@pytest.fixture
def data(life: tuple[Path, Mapping[str, Outcome]], tmp_path: Path) -> Path:
    """A copy that a test may spoil, of before the topics were deleted."""
    return Path(shutil.copytree(life[0], tmp_path / "data"))


def offsets(tier: Mapping[str, Any]) -> tuple[int, int]:
    return tier["from_offset"], tier["to_offset"]


def test_a_topic_of_which_nothing_is_converted_is_not_in_tiers(said: Mapping[str, Outcome]) -> None:
    assert said["unconverted"].out == f"{BORN} is not in tiers: all its records are in the object store.\n"


def test_tiers_of_a_topic_that_was_born_diskless(said: Mapping[str, Outcome]) -> None:
    first, second = said[BORN].json["partitions"]
    assert offsets(first["remote"]) == (0, 30)
    assert first["remote"]["segments"] == 1
    assert first["remote"]["bytes"] > 30_000
    assert first["local"]["bytes"] == 0
    assert first["local"]["from_offset"] == first["local"]["to_offset"]
    assert offsets(first["diskless"]) == (30, 37)
    assert 7_000 < first["diskless"]["bytes"] < 10_000
    assert (first["state"], second["state"]) == ("HYBRID", "DISKLESS_ONLY")
    assert (second["remote"]["segments"], offsets(second["diskless"])) == (0, (0, 0))
    text = said[f"{BORN}-text"].out
    assert "0 to 29" in text
    assert "30 to 36" in text
    assert "COPY_SEGMENT_FINISHED" in text


def test_tiers_of_a_topic_that_was_classic(said: Mapping[str, Outcome]) -> None:
    (found,) = said[SWITCHED].json["partitions"]
    assert (found["b0"], found["state"]) == (50, "HYBRID")
    assert offsets(found["remote"]) == (0, 70), "the older part, and what was converted since"
    assert offsets(found["diskless"]) == (70, 75)
    remote = [row for row in found["segments"] if row["tier"] in {"remote", "both"}]
    assert found["remote"]["segments"] == len(remote)
    assert (remote[-1]["start_offset"], remote[-1]["end_offset"], remote[-1]["tier"]) == (50, 69, "remote")
    assert [row["start_offset"] for row in found["segments"]] == sorted(
        row["start_offset"] for row in found["segments"]
    )


def test_the_switch_is_as_far_as_before(said: Mapping[str, Outcome]) -> None:
    switched, born = said[f"{SWITCHED}-migration"].json, said[f"{BORN}-migration"].json
    assert (switched["state"], switched["progress"]) == ("HYBRID", 100.0)
    assert [row["b0"] for row in switched["partitions"]] == [50]
    assert [row["diskless_start_offset"] for row in born["partitions"]] == [30, 0]


def test_segments_under_way_are_told(said: Mapping[str, Outcome]) -> None:
    first = said["uploading"].json["partitions"][0]
    (upload,) = first["uploads"]
    assert (upload["start_offset"], upload["end_offset"], upload["state"]) == (30, 36, "UPLOADING")
    assert first["pending"] == {"segments": 1, "bytes": upload["bytes"]}
    assert offsets(first["diskless"]) == (30, 37), "it is read from where it was"
    assert "0: a segment of the tiering pipeline, UPLOADING: offsets 30 to 36" in said["uploading-text"].out


@pytest.mark.parametrize("when", ["beside", "beside-upload", "beside-uploaded"])
def test_nothing_is_wrong_beside_a_running_broker(said: Mapping[str, Outcome], when: str) -> None:
    found = said[when].json
    assert found["clean"]
    assert found["remote"]["unbounded_partitions"] == 0


def test_nothing_is_wrong_where_it_was_stopped(data: Path, command: Command) -> None:
    found = command("fsck", "--data-dir", str(data), "--deep", "--grace", "0", "--json").json
    assert found["clean"]
    assert found["remote"]["segments"] >= 4
    assert found["remote"]["unbounded_partitions"] == 0


@pytest.mark.parametrize(("topic", "start"), [(BORN, 0), (SWITCHED, 50)])
def test_a_converted_segment_that_is_missing_or_damaged_is_found(
    data: Path, command: Command, topic: str, start: int
) -> None:
    (log,) = (data / "remote").glob(f"{topic}-0-*/{start:020d}-*.log")
    content = bytearray(log.read_bytes())
    content[200] ^= 1
    log.write_bytes(content)
    (damaged,) = _findings(command, data, "--deep")
    assert (damaged["kind"], damaged["key"]) == ("damaged", f"{log.parent.name}/{log.stem}")
    log.unlink()
    (missing,) = _findings(command, data)
    assert (missing["kind"], missing["key"]) == ("missing", f"{log.parent.name}/{log.stem}")


@pytest.mark.parametrize(("topic", "first", "last"), [(BORN, 0, 36), (SWITCHED, 50, 69)])
def test_converted_offsets_without_a_segment_are_a_hole(
    data: Path, command: Command, topic: str, first: int, last: int
) -> None:
    """The rows are gone, so that nothing else has these offsets. Here remote log metadata is lost."""
    for log in (data / "logs").glob("__remote_log_metadata-*/*.log"):
        log.write_bytes(b"")
    found = _findings(command, data)
    holes = [row["detail"] for row in found if row["kind"] == "hole" and row["key"] == f"{topic}-0"]
    assert f"offsets {first} to {last} are neither local nor in a remote segment" in holes


def _findings(command: Command, data: Path, *options: str) -> list[dict[str, Any]]:
    outcome = command("fsck", "--data-dir", str(data), "--grace", "0", "--json", *options)
    assert outcome.status == 1, outcome
    findings: list[dict[str, Any]] = json.loads(outcome.out)["remote"]["findings"]
    return findings


@pytest.mark.parametrize("when", ["deleted", "deleted-stopped"])
def test_nothing_is_left_of_deleted_topics(said: Mapping[str, Outcome], when: str) -> None:
    found = said[when].json
    assert found["clean"]
    assert (found["objects"], found["remote"]["objects"], found["remote"]["segments"]) == (0, 0, 0)
