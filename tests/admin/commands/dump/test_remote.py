"""`strandline remote dump`: Kafka's metadata topic and ours, from files and from a running broker."""

from __future__ import annotations

import json
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from strandline.admin.commands.dump.remote_records import find_segments
from tests.admin.commands.conftest import Command
from tests.broker import running_broker
from tests.golden import copy_of, read_json
from tests.golden import kafka_tiered as kafka_tiered

pytestmark = pytest.mark.timeout(90)

NAME = "__remote_log_metadata-0"


def _rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def _decoded(kafka_tiered: Path, partition: int) -> list[str]:
    dump = read_json(kafka_tiered / f"expected/tiered/local_records/__remote_log_metadata-{partition}.json")
    return [
        record["decoded"] for segment in dump["segments"] for batch in segment["batches"] for record in batch["records"]
    ]


def test_the_records_are_those_that_kafkas_own_tool_prints(command: Command, kafka_tiered: Path) -> None:
    outcome = command("remote", "dump", str(kafka_tiered / "tiered/local"), "--json")
    assert outcome.status == 0, outcome.err
    rows = _rows(outcome.out)
    for partition in range(3):
        mine = [row for row in rows if row["metadata_partition"] == partition]
        for row, text in zip(mine, _decoded(kafka_tiered, partition), strict=True):
            assert text.startswith(row["type"] + "{")
            assert (
                f"topicIdPartition={row['topic_id']}:{row['topic']}-{row['partition']}, id={row['segment_id']}" in text
            )
            assert f"state={row['state']}" in text
            assert f"eventTimestampMs={row['event_timestamp']}" in text
            if row["type"] == "RemoteLogSegmentMetadata":
                epochs = ", ".join(f"{epoch}={start}" for epoch, start in row["leader_epochs"].items())
                assert f"startOffset={row['start_offset']}, endOffset={row['end_offset']}, brokerId=1" in text
                assert f"segmentLeaderEpochs={{{epochs}}}, segmentSizeInBytes={row['size']}" in text
                assert f"txnIdxEmpty={str(row['txn_index_empty']).lower()}" in text


def test_people_get_a_line_for_each_record_of_the_topic_they_name(command: Command, kafka_tiered: Path) -> None:
    text = command("remote", "dump", str(kafka_tiered / "tiered/local"), "--topic", "fx-tiered-txn").out
    lines = text.splitlines()
    assert lines
    assert all(
        re.match(r" +[0-2]/\d+  20\d\d-.* broker 1  fx-tiered-txn-\d  (COPY|DELETE)_SEGMENT_", line) for line in lines
    )
    assert any("with aborted transactions" in line for line in lines)
    assert any("offsets 0..21  " in line and "epochs 0@0" in line for line in lines)


def test_a_damaged_record_is_told_and_the_others_are_printed(
    command: Command, kafka_tiered: Path, tmp_path: Path
) -> None:
    directory = copy_of(kafka_tiered / "tiered/local" / NAME, tmp_path / NAME)
    segment = directory / f"{0:020d}.log"
    segment.chmod(0o644)
    data = bytearray(segment.read_bytes())
    data[100] ^= 1
    segment.write_bytes(data)
    outcome = command("remote", "dump", str(directory), "--json")
    rows = _rows(outcome.out)
    assert outcome.status == 1
    assert outcome.err == "strandline: 1 of the records cannot be read; brokers skip them.\n"
    assert rows[0] == {"metadata_partition": 0, "offset": 0, "problem": "the batch does not match its checksum"}
    assert len(rows) == len(_decoded(kafka_tiered, 0))
    assert "0/0  ! the batch does not match its checksum" in command("remote", "dump", str(segment)).out


@pytest.mark.parametrize("arguments", [(), ("somewhere", "--bootstrap-server", "127.0.0.1:1")])
def test_either_files_or_a_broker_have_to_be_named(command: Command, arguments: tuple[str, ...]) -> None:
    outcome = command("remote", "dump", *arguments)
    assert (outcome.status, outcome.out) == (1, "")
    assert "Name either a log directory, or a broker" in outcome.err


def test_a_directory_without_the_topic_is_refused(command: Command, tmp_path: Path) -> None:
    assert "has no segments of __remote_log_metadata in it" in command("remote", "dump", str(tmp_path)).err
    assert "There is no file or directory" in command("remote", "dump", str(tmp_path / "missing")).err


def test_directories_of_other_topics_may_be_deleted_meanwhile(tmp_path: Path) -> None:
    segment = tmp_path / NAME / f"{0:020d}.log"
    segment.parent.mkdir()
    segment.touch()
    is_over = threading.Event()

    def churn() -> None:
        while not is_over.is_set():
            others = [tmp_path / f"tides-{partition}" for partition in range(20)]
            for other in others:
                other.mkdir()
            for other in others:
                other.rmdir()

    churning = threading.Thread(target=churn)
    churning.start()
    try:
        assert all(find_segments(tmp_path) == [segment] for _ in range(300))
    finally:
        is_over.set()
        churning.join()


def test_a_running_broker_tells_the_same_as_its_files(command: Command, kafka_tiered: Path, tmp_path: Path) -> None:
    """The directory of a Kafka broker, taken over; only the metadata topic, or the broker would tier the others."""
    logs = tmp_path / "data" / "logs"
    for source in (kafka_tiered / "tiered/local").iterdir():
        if source.name.startswith(("__remote_log_metadata", "__cluster_metadata")):
            copy_of(source, logs / source.name)
    shutil.copy(kafka_tiered / "tiered/local/meta.properties", logs)
    for path in (logs, *logs.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    expected = _rows(command("remote", "dump", str(logs), "--json").out)
    with running_broker(tmp_path / "data") as broker:
        outcome = command("remote", "dump", "--bootstrap-server", broker.bootstrap, "--json")
        assert outcome.status == 0, outcome.err
        assert _rows(outcome.out) == expected


def test_a_cluster_without_tiered_storage_has_nothing_to_tell(command: Command, tmp_path: Path) -> None:
    with running_broker(tmp_path / "data") as broker:
        outcome = command("remote", "dump", "-b", broker.bootstrap)
        assert outcome.status == 1
        assert f"The cluster at {broker.bootstrap} has no __remote_log_metadata" in outcome.err
