"""Taking over a log directory of Kafka: everything is found, and what cannot be known is not guessed."""

from __future__ import annotations

import shutil
from pathlib import Path
from struct import pack

import pytest

from strandline.errors import InvalidConfig
from strandline.log.checkpoints import read_topic_id
from strandline.model import uuid_to_text
from strandline.records.builder import build_batch
from strandline.records.record import Record
from strandline.replication.adoption import find_kafka_cluster
from strandline.wire.primitives import write_compact_numbers, write_tagged_field, write_uvarint
from tests.golden import copy_of, read_json


@pytest.fixture
def log_dir(kafka_classic: Path, tmp_path: Path) -> Path:
    return copy_of(kafka_classic / "classic", tmp_path / "logs")


def test_an_empty_directory_holds_no_cluster(tmp_path: Path) -> None:
    assert find_kafka_cluster([str(tmp_path)]) is None
    assert find_kafka_cluster([str(tmp_path / "missing")]) is None


def test_topics_ids_epochs_and_settings_are_found(log_dir: Path, kafka_classic: Path) -> None:
    found = find_kafka_cluster([str(log_dir)])
    assert found is not None
    expected = read_json(kafka_classic / "expected" / "classic" / "topics.json")
    topics = {topic.name: topic for topic in found.topics}
    assert set(expected) <= set(topics)
    for name, row in expected.items():
        assert uuid_to_text(topics[name].topic_id) == row["topic_id"]
        assert sorted(topics[name].partitions) == list(range(row["partitions"]))
        assert {**topics[name].configs, **row["configs"]} == topics[name].configs
    assert topics["fx-epochs"].partitions == {0: 4, 1: 4}
    assert "fx-deleted" not in topics
    assert found.next_producer_id == 3000
    assert found.node_id == 1


def test_settings_come_from_a_snapshot_and_the_log_behind_it(log_dir: Path) -> None:
    whole = find_kafka_cluster([str(log_dir)])
    for snapshot in (log_dir / "__cluster_metadata-0").glob("*.checkpoint"):
        snapshot.unlink()
    from_log = find_kafka_cluster([str(log_dir)])
    assert whole is not None
    assert from_log is not None
    assert [topic.configs for topic in whole.topics] == [topic.configs for topic in from_log.topics]


def test_without_the_settings_nothing_is_adopted(log_dir: Path) -> None:
    shutil.rmtree(log_dir / "__cluster_metadata-0")
    with pytest.raises(InvalidConfig, match="__cluster_metadata-0"):
        find_kafka_cluster([str(log_dir)])


def test_without_a_cluster_id_nothing_is_adopted(log_dir: Path) -> None:
    (log_dir / "meta.properties").unlink()
    with pytest.raises(InvalidConfig, match=r"cluster\.id"):
        find_kafka_cluster([str(log_dir)])


def test_a_partition_without_its_topic_id_is_not_guessed(log_dir: Path) -> None:
    (log_dir / "fx-empty-0" / "partition.metadata").unlink()
    with pytest.raises(InvalidConfig, match="fx-empty-0"):
        find_kafka_cluster([str(log_dir)])


def test_a_node_whose_partitions_have_replicas_elsewhere_is_not_adopted(log_dir: Path) -> None:
    _change_partition(log_dir, "fx-epochs", replicas=[1, 2, 3], isr=[2, 3])
    with pytest.raises(InvalidConfig) as refusal:
        find_kafka_cluster([str(log_dir)])
    sentence = str(refusal.value)
    assert "Partition 0 of topic fx-epochs has replicas on the nodes 1, 2, 3" in sentence
    assert "in sync: 2, 3" in sentence
    assert "kafka-reassign-partitions.sh" in sentence


def test_a_partition_that_has_moved_to_another_node_is_not_adopted(log_dir: Path) -> None:
    _change_partition(log_dir, "fx-epochs", replicas=[2], isr=[2])
    with pytest.raises(InvalidConfig, match="fx-epochs has replicas on the nodes 2 of"):
        find_kafka_cluster([str(log_dir)])


def test_a_cluster_that_was_moved_to_one_node_is_adopted(log_dir: Path) -> None:
    _change_partition(log_dir, "fx-epochs", replicas=[1, 2, 3], isr=[1, 2, 3])
    _change_partition(log_dir, "fx-epochs", replicas=[1], isr=[1])
    found = find_kafka_cluster([str(log_dir)])
    assert found is not None
    assert "fx-epochs" in {topic.name for topic in found.topics}


def _change_partition(log_dir: Path, topic: str, *, replicas: list[int], isr: list[int]) -> None:
    """Append Kafka's PartitionChangeRecord for partition 0 of the topic, as a cluster of several nodes writes it."""
    value = bytearray(b"\x01\x05\x02")  # version of the frame, kind, version of the record
    value += pack(">i", 0)
    found = read_topic_id(str(log_dir / f"{topic}-0"))
    assert found is not None
    value += found.bytes
    write_uvarint(value, 2)
    for tag, nodes in ((0, isr), (2, replicas)):
        field = bytearray()
        write_compact_numbers(field, nodes, "i")
        write_tagged_field(value, tag, field)
    segment = max((log_dir / "__cluster_metadata-0").glob("*.log"))
    record = Record(offset=1_000_000, timestamp=0, key=None, value=bytes(value), headers=())
    with segment.open("ab") as file:
        file.write(build_batch([record], base_offset=record.offset))
