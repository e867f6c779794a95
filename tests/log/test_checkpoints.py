"""The text files of a log directory."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from strandline.errors import KafkaStorageError
from strandline.log.checkpoints import (
    format_epochs,
    read_clean_shutdown,
    read_epochs,
    read_offsets,
    read_properties,
    read_topic_id,
    remove_clean_shutdown,
    write_clean_shutdown,
    write_offsets,
    write_topic_id,
)
from strandline.log.files import (
    DELETE_DIRECTORY,
    is_delete_directory,
    parse_numbered,
    parse_partition_directory,
    renamed_directory,
)
from strandline.model import TopicPartition, uuid_to_text

TOPIC_ID = UUID("12345678-1234-5678-1234-567812345678")


def test_offsets_are_written_as_kafka_does(tmp_path: Path) -> None:
    path = str(tmp_path / "checkpoint")
    offsets = {TopicPartition("a-b", 3): 17, TopicPartition("c", 0): 0}
    write_offsets(path, offsets)
    assert Path(path).read_text() == "0\n2\na-b 3 17\nc 0 0\n"
    assert read_offsets(path) == offsets
    assert [entry.name for entry in tmp_path.iterdir()] == ["checkpoint"]


def test_a_missing_or_empty_checkpoint_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    assert read_offsets(str(path)) == {}
    path.write_bytes(b"")
    assert read_offsets(str(path)) == {}
    assert read_epochs(str(path)) == []


@pytest.mark.parametrize("content", ["1\n0\n", "0\n", "0\n2\na 0 1\n", "0\n1\na 0\n", "0\n1\na x 1\n", "0\nx\n"])
def test_a_damaged_checkpoint_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "checkpoint"
    path.write_text(content)
    with pytest.raises(KafkaStorageError):
        read_offsets(str(path))


def test_binary_content_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(KafkaStorageError):
        read_epochs(str(path))


def test_epochs(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_bytes(format_epochs([(0, 0), (3, 17)]))
    assert path.read_text() == "0\n2\n0 0\n3 17\n"
    assert read_epochs(str(path)) == [(0, 0), (3, 17)]
    path.write_text("0\n1\n5\n")
    with pytest.raises(KafkaStorageError):
        read_epochs(str(path))


def test_partition_metadata_has_no_last_newline(tmp_path: Path) -> None:
    write_topic_id(str(tmp_path), TOPIC_ID)
    text = (tmp_path / "partition.metadata").read_text()
    assert text == f"version: 0\ntopic_id: {uuid_to_text(TOPIC_ID)}"
    assert read_topic_id(str(tmp_path)) == TOPIC_ID


@pytest.mark.parametrize(
    "content", ["version: 1\ntopic_id: EjRWeBI0VngSNFZ4EjRWeA", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "x", ""]
)
def test_damaged_partition_metadata_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "partition.metadata").write_text(content)
    with pytest.raises(KafkaStorageError):
        read_topic_id(str(tmp_path))


def test_no_partition_metadata(tmp_path: Path) -> None:
    assert read_topic_id(str(tmp_path)) is None


def test_clean_shutdown(tmp_path: Path) -> None:
    directory = str(tmp_path)
    assert read_clean_shutdown(directory) is None
    write_clean_shutdown(directory, 504)
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":504}'
    assert read_clean_shutdown(directory) == 504
    (tmp_path / ".kafka_cleanshutdown").write_bytes(b"")
    assert read_clean_shutdown(directory) == -1
    remove_clean_shutdown(directory)
    remove_clean_shutdown(directory)
    assert read_clean_shutdown(directory) is None


def test_properties_of_kafka_are_read(tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    path.write_text("#\n#Sun Nov 15 19:28:05 UTC 2026\nnode.id=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n\n! note\n")
    assert read_properties(str(path)) == {"node.id": "1", "cluster.id": "MkU3OEVBNTcwNTJENDM2Qg"}
    assert read_properties(str(tmp_path / "none")) == {}


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("orders-0", TopicPartition("orders", 0)),
        ("a-b.c_d-12", TopicPartition("a-b.c_d", 12)),
        ("x-1-delete", None),
        ("remote-log-index-cache", None),
        ("orders", None),
        ("fx-deleted-0.dd6f8827cba34080b61d5b89c46ebf6f-delete", None),
        ("fx-0.dd6f8827cba34080b61d5b89c46ebf6f-stray", None),
    ],
)
def test_directory_names(name: str, partition: TopicPartition | None) -> None:
    assert parse_partition_directory(name) == partition


def test_names_of_doomed_directories_fit_into_the_file_system() -> None:
    short = renamed_directory(TopicPartition("orders", 3), TOPIC_ID, DELETE_DIRECTORY)
    assert short == f"orders-3.{TOPIC_ID.hex}-delete"
    assert is_delete_directory(short)
    long = renamed_directory(TopicPartition("t" * 249, 10_000), TOPIC_ID, DELETE_DIRECTORY)
    assert len(long) == 255
    assert is_delete_directory(long)
    assert not is_delete_directory("something-delete")


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("00000000000000000017.log", (17, ".log", "")),
        ("00000000000000000017.timeindex.deleted", (17, ".timeindex", ".deleted")),
        ("00000000000000000017.log.swap", (17, ".log", ".swap")),
        ("17.log", None),
        ("leader-epoch-checkpoint", None),
        ("00000000000000000789-0000000005.checkpoint", None),
    ],
)
def test_file_names(name: str, parsed: tuple[int, str, str] | None) -> None:
    assert parse_numbered(name) == parsed
