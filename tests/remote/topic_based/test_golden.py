"""The `__remote_log_metadata` that Apache Kafka wrote: read from its log directory, it gives what Kafka had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strandline.clock import SystemClock
from strandline.log.checkpoints import read_topic_id
from strandline.model import TopicIdPartition, TopicPartition, uuid_from_text, uuid_to_text
from strandline.remote.topic_based.limits import MetadataLimits
from strandline.remote.topic_based.manager import TopicBasedRemoteLogMetadataManager
from strandline.remote.topic_based.partitioner import metadata_partition
from strandline.remote.topic_based.records import deserialize, partition_of, serialize
from strandline.remote.values import RemoteLogSegmentState
from tests.golden import copy_of, read_json
from tests.remote.topic_based.topics import open_topic
from tests.waiting import until

PARTITIONS = 3


@pytest.fixture
def log_dir(kafka_tiered: Path, tmp_path: Path) -> Path:
    """Only the metadata topic, to be written to."""
    for number in range(PARTITIONS):
        name = f"__remote_log_metadata-{number}"
        copy_of(kafka_tiered / "tiered/local" / name, tmp_path / name)
    return tmp_path


def _expected(kafka_tiered: Path) -> dict[TopicIdPartition, list[dict[str, Any]]]:
    found: dict[TopicIdPartition, list[dict[str, Any]]] = {}
    for row in read_json(kafka_tiered / "expected/tiered/remote_segments.json"):
        where = TopicPartition(row["topic"], row["partition"])
        found.setdefault(TopicIdPartition(uuid_from_text(row["topic_id"]), where), []).append(row)
    return found


async def test_it_replays_into_the_segments_that_kafka_had(kafka_tiered: Path, log_dir: Path) -> None:
    expected = _expected(kafka_tiered)
    topic_id = read_topic_id(str(log_dir / "__remote_log_metadata-0"))
    assert topic_id is not None
    for attempt in ("from the topic", "from snapshots"):
        with open_topic(log_dir, partitions=PARTITIONS, topic_id=topic_id) as (topic, _):
            manager = TopicBasedRemoteLogMetadataManager(
                topic, directory=log_dir, limits=MetadataLimits(), clock=SystemClock()
            )
            async with manager.running():
                manager.on_partition_leadership_changes(expected, [])
                await until(lambda manager=manager: all(map(manager.is_ready, expected)))  # type: ignore[misc]
                _compare(manager, expected)
                known = {where for where in manager.partitions() if manager.list_remote_log_segments(where)}
                assert known == set(expected), attempt
    assert len((log_dir / "_rlmm_committed_offsets").read_text().splitlines()) == PARTITIONS


def _compare(
    manager: TopicBasedRemoteLogMetadataManager, expected: dict[TopicIdPartition, list[dict[str, Any]]]
) -> None:
    for where, rows in expected.items():
        listed = manager.list_remote_log_segments(where)
        assert [
            (
                uuid_to_text(segment.segment_id.id),
                segment.start_offset,
                segment.end_offset,
                segment.segment_size_in_bytes,
                segment.max_timestamp_ms,
                segment.txn_index_empty,
            )
            for segment in listed
        ] == [
            (
                row["segment_id"],
                row["base_offset"],
                row["end_offset"],
                row["files"]["log"],
                row["max_timestamp"],
                "txnindex" not in row["files"],
            )
            for row in rows
        ]
        for segment, row in zip(listed, rows, strict=True):
            epochs = [tuple(map(int, line.split())) for line in row["leader_epoch_checkpoint"].splitlines()[2:]]
            assert segment.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED
            for offset in range(segment.start_offset, segment.end_offset + 1):
                epoch = max(epoch for epoch, start in epochs if start <= offset)
                assert manager.remote_log_segment_metadata(where, epoch, offset) == segment


@pytest.mark.parametrize("number", range(PARTITIONS))
async def test_every_record_is_written_again_byte_for_byte_and_belongs_where_it_is(log_dir: Path, number: int) -> None:
    topic_id = read_topic_id(str(log_dir / "__remote_log_metadata-0"))
    assert topic_id is not None
    with open_topic(log_dir, partitions=PARTITIONS, topic_id=topic_id) as (topic, _):
        chunk = await topic.read(number, 0, wait=0.0)
        assert chunk.next_offset == await topic.end_offset(number)
        for record in chunk.records:
            assert record.value is not None
            message = deserialize(record.value)
            assert serialize(message) == record.value
            assert metadata_partition(partition_of(message), PARTITIONS) == number
