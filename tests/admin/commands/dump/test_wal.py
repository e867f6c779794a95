"""`strandline wal`: objects in a store and in files, whole and damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from strandline.diskless.values import DisklessAppend
from strandline.diskless.wal import keys, pack
from strandline.model import uuid_to_text
from strandline.records import Record, TimestampType, build_batch, read_header
from tests.admin.commands.conftest import Command
from tests.diskless.batches import NOON_MS, TOPIC_A, TOPIC_B, append, joined
from tests.partitions import id_partition


@pytest.fixture
def objects(tmp_path: Path) -> Path:
    """A directory with two objects; the first has a batch of an idempotent producer in it."""
    root = tmp_path / "data" / "objects"
    buffer = build_batch([Record(0, NOON_MS, b"k", b"v")], producer_id=9, producer_epoch=1, base_sequence=4)
    idempotent = DisklessAppend(id_partition(TOPIC_B, 1), buffer, read_header(buffer), TimestampType.LOG_APPEND_TIME, 5)
    contents = [
        [idempotent, append(id_partition(TOPIC_A, 0)), append(id_partition(TOPIC_A, 0))],
        [append(id_partition(TOPIC_A, 3))],
    ]
    for number, batches in enumerate(contents):
        path = root / keys.make(NOON_MS, 7, TOPIC_A if number == 0 else TOPIC_B)
        path.parent.mkdir(parents=True, exist_ok=True)
        made = pack(batches, broker_id=7, cluster_id="c1", created_ms=NOON_MS + number)
        path.write_bytes(joined(made))
    return root


@pytest.fixture
def key() -> str:
    return keys.make(NOON_MS, 7, TOPIC_A)


def test_an_object_is_found_by_its_key_and_described(command: Command, objects: Path, key: str) -> None:
    shown = command("wal", "dump", key, "--data-dir", str(objects.parent), "--json").json
    assert (shown["object"], shown["broker_id"], shown["cluster_id"]) == (key, 7, "c1")
    assert [(e["topic_id"], e["partition"], e["batch_count"], e["record_count"]) for e in shown["extents"]] == [
        (uuid_to_text(TOPIC_A), 0, 2, 6),
        (uuid_to_text(TOPIC_B), 1, 1, 1),
    ]
    assert "batches" not in shown["extents"][0]


def test_a_file_is_described_without_any_store(command: Command, objects: Path, key: str) -> None:
    shown = command("wal", "dump", str(objects / key), "--batches", "--json").json
    (batch,) = shown["extents"][1]["batches"]
    assert (batch["producer_id"], batch["base_sequence"], batch["crc_ok"]) == (9, 4, True)
    assert [extent["problem"] for extent in shown["extents"]] == [None, None]


def test_people_read_ranges_counts_times_and_producers(command: Command, objects: Path, key: str) -> None:
    text = command("wal", "dump", key, "-B", "--set", f"strandline.objects.url=file://{objects}").out
    assert f"{key}  (" in text
    assert "created 2023-11-15 12:00:00.000  by broker 7  of cluster c1  format 1" in text
    assert f"{uuid_to_text(TOPIC_A)}-0  bytes 0..211  records 6  batches 2" in text
    assert "LOG_APPEND_TIME  epoch 5" in text
    assert "producer 9/1 from sequence 4" in text


def test_damage_is_shown_and_is_a_failure(command: Command, objects: Path, key: str) -> None:
    data = bytearray((objects / key).read_bytes())
    data[100] ^= 1
    (objects / key).write_bytes(data)
    assert command("wal", "dump", str(objects / key)).status == 0  # the footer is whole
    outcome = command("wal", "dump", str(objects / key), "--batches")
    assert outcome.status == 1
    assert "CHECKSUM DOES NOT FIT" in outcome.out
    assert "The batch at byte 0 does not match its checksum" in outcome.err


def test_what_is_no_wal_object_is_said_to_be_none(command: Command, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"something else altogether")
    outcome = command("wal", "dump", str(other))
    assert outcome.status == 1
    assert "does not end as a WAL object does" in outcome.err


def test_a_key_that_is_not_there_is_a_sentence(command: Command, objects: Path) -> None:
    outcome = command("wal", "dump", "wal/2023111512/1-nothing", "--data-dir", str(objects.parent))
    assert (outcome.status, outcome.out) == (1, "")
    assert "There is no object wal/2023111512/1-nothing" in outcome.err


def test_looking_makes_no_directory(command: Command, tmp_path: Path) -> None:
    outcome = command("wal", "list", "--data-dir", str(tmp_path / "nowhere"))
    assert outcome.status == 1
    assert "--data-dir" in outcome.err
    assert not (tmp_path / "nowhere").exists()


def test_the_newest_objects_are_listed_with_what_is_in_them(command: Command, objects: Path) -> None:
    rows = command("wal", "list", "--data-dir", str(objects.parent), "--json").json
    assert sorted((row["partitions"], row["batches"], row["records"], row["problem"]) for row in rows) == [
        (1, 1, 3, None),
        (2, 3, 7, None),
    ]
    assert len(command("wal", "list", "-n", "1", "--data-dir", str(objects.parent), "--json").json) == 1
    assert "wal/2023111512/7-" in command("wal", "list", "--data-dir", str(objects.parent)).out


def test_a_damaged_object_does_not_hide_the_others_from_the_list(command: Command, objects: Path, key: str) -> None:
    (objects / key).write_bytes(b"x")
    rows = {row["object"]: row for row in command("wal", "list", "--data-dir", str(objects.parent), "--json").json}
    assert rows[key]["problem"] == "The object has only 1 bytes: too few for a WAL object."
    assert len(rows) == 2


def test_settings_are_refused_with_a_sentence(command: Command) -> None:
    outcome = command("wal", "list", "--set", "strandline.objects.ulr=file:///x")
    assert outcome.status == 1
    assert "strandline.objects.url" in outcome.err


@pytest.mark.parametrize("words", [["wal", "dump"], ["wal", "list"]])
def test_help_has_an_example(command: Command, words: list[str]) -> None:
    assert "Example: strandline wal" in " ".join(command(*words, "--help").out.split())


def test_json_of_the_dump_is_one_document(command: Command, objects: Path, key: str) -> None:
    out = command("wal", "dump", str(objects / key), "--json").out
    assert json.loads(out)["version"] == 1
