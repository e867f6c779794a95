"""Dumps: files written by Apache Kafka and by us, damaged ones, and the metadata log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from strandline.records.builder import build_batch
from strandline.records.record import Header, Record
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from tests.admin.commands.conftest import Command
from tests.broker import running_broker

pytestmark = pytest.mark.timeout(90)


def _rows(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """A segment file with two batches."""
    first = build_batch(
        [Record(5, 1000, b"key", b"value", (Header("h", b"\x00"),)), Record(6, 1001, None, None)],
        base_offset=5,
        leader_epoch=3,
        producer_id=9,
        producer_epoch=1,
        base_sequence=0,
    )
    second = build_batch([Record(7, 2000, b"k", b"v")], base_offset=7, leader_epoch=3)
    path = tmp_path / "topic-0" / f"{5:020d}.log"
    path.parent.mkdir()
    path.write_bytes(first + second)
    return path


def test_batches_and_records_of_a_segment(command: Command, segment: Path) -> None:
    first, second = _rows(command("log", "dump", str(segment), "--records", "--json").out)
    assert (first["base_offset"], first["last_offset"], first["records"]) == (5, 6, 2)
    assert (first["producer_id"], first["leader_epoch"], first["crc_ok"]) == (9, 3, True)
    assert first["content"] == [
        {"offset": 5, "timestamp": 1000, "key": "key", "value": "value", "headers": [["h", "0x00"]]},
        {"offset": 6, "timestamp": 1001, "key": None, "value": None},
    ]
    assert second["position"] == first["size"]


def test_the_text_for_people_names_files_offsets_and_records(command: Command, segment: Path) -> None:
    text = command("log", "dump", str(segment.parent), "-r").out
    assert f"{segment}  (" in text
    assert "offsets 5..6  2 records  none" in text
    assert "producer 9/1 from sequence 0" in text
    assert "key = value  h=0x00" in text
    assert "null = null" in text


def test_a_torn_end_is_told_but_is_no_failure(command: Command, segment: Path) -> None:
    data = segment.read_bytes()
    segment.write_bytes(data + data[:40])
    outcome = command("log", "dump", str(segment), "--json")
    assert outcome.status == 0
    assert _rows(outcome.out)[-1]["problem"] == "40 bytes of a batch that is not complete"
    segment.write_bytes(data + bytes(100))
    assert "100 unused, preallocated bytes" in command("log", "dump", str(segment)).out


def test_a_damaged_batch_fails_the_command_after_everything_was_shown(command: Command, segment: Path) -> None:
    data = bytearray(segment.read_bytes())
    data[70] ^= 1
    segment.write_bytes(data)
    outcome = command("log", "dump", str(segment), "--json")
    assert outcome.status == 1
    assert [row["crc_ok"] for row in _rows(outcome.out)] == [False, True]
    assert f"The batch at position 0 of {segment} does not match its checksum" in outcome.err


def test_garbage_is_told(command: Command, segment: Path) -> None:
    segment.write_bytes(b"\xff" * 500)
    (row,) = _rows(command("log", "dump", str(segment), "--json").out)
    assert "problem" in row


def test_an_empty_segment_has_nothing_to_show(command: Command, segment: Path) -> None:
    segment.write_bytes(b"")
    assert command("log", "dump", str(segment), "--json").out == ""


@pytest.mark.parametrize("name", ["missing", "notes.txt"])
def test_what_is_no_log_file_is_refused(command: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    outcome = command("log", "dump", str(tmp_path / name))
    assert outcome.status == 1
    assert name in outcome.err


def test_a_directory_without_log_files_is_refused(command: Command, tmp_path: Path) -> None:
    assert "has no files of a log directory in it" in command("log", "dump", str(tmp_path)).err


def test_a_whole_data_directory_of_a_broker_and_its_metadata(command: Command, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running_broker(data) as broker:
        assert command("topics", "create", "written", "-p", "2", "-b", broker.bootstrap).status == 0
        beside = _rows(command("metadata", "dump", "--data-dir", str(data), "--json").out)
        assert "written" in {row.get("name") for row in beside}
        broker.stop()
    names = {Path(str(row["file"])).name for row in _rows(command("log", "dump", str(data / "logs"), "--json").out)}
    assert {"partition.metadata", "meta.properties", "recovery-point-offset-checkpoint"} <= names
    records = _rows(command("metadata", "dump", "--data-dir", str(data), "--json").out)
    assert [row["offset"] for row in records] == list(range(len(records)))
    assert records[: len(beside)] == beside
    assert {"name": "written"}.items() <= next(row for row in records if row["record"] == "TopicRecord").items()
    assert "TopicRecord" in command("metadata", "dump", "--data-dir", str(data)).out


def test_metadata_that_is_not_there_is_not_made(command: Command, tmp_path: Path) -> None:
    outcome = command("metadata", "dump", "--data-dir", str(tmp_path))
    assert outcome.err == f"strandline: There is no metadata database at {tmp_path}/metadata.db.\n"
    assert list(tmp_path.iterdir()) == []


def test_credentials_are_dumped_without_their_keys(command: Command, tmp_path: Path) -> None:
    wish = ScramCredentialUpsertion(name="alice", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"secret")
    with running_broker(tmp_path / "data") as broker:
        with Client.connect("127.0.0.1", broker.port) as client:
            request = AlterUserScramCredentialsRequest(upsertions=[wish])
            answer = client.request(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, request)
        assert [result.error_code for result in answer.results] == [0]
        rows = _rows(command("metadata", "dump", "--data-dir", str(tmp_path / "data"), "--json").out)
    (row,) = [row for row in rows if row["record"] == "ScramCredentialRecord"]
    assert row["owner"] == ["alice", "SCRAM_SHA_256"]
    assert row["credential"] == {"iterations": 4096}
