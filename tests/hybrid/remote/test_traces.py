"""Whether segments may have been copied, by what a broker knows without remote log metadata."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from strandline.hybrid.remote.traces import may_have_segments, with_remote_part
from strandline.metadata import MetadataImage, TopicImage
from strandline.metadata.image import PartitionImage
from strandline.model import REMOTE_LOG_METADATA_TOPIC, TopicIdPartition, TopicPartition

TOPIC_ID = uuid.UUID(int=7)
METADATA = REMOTE_LOG_METADATA_TOPIC


def image(*topics: str) -> MetadataImage:
    """Topics with two partitions each."""
    partitions = tuple(PartitionImage(number, (1,), (1,), 1, 0, 0) for number in range(2))
    return MetadataImage(topics={name: TopicImage(name, TOPIC_ID, partitions) for name in topics})


def log(topic: str, partition: int = 0, *, start: int = 0, local_start: int = 0, end: int = 0) -> Any:
    return SimpleNamespace(
        topic_partition=TopicPartition(topic, partition),
        topic_id=TOPIC_ID,
        log_start_offset=start,
        local_log_start_offset=local_start,
        log_end_offset=end,
    )


def judged(known: MetadataImage, logs: Sequence[Any], *, built_in: bool = True, recorded: bool = False) -> bool:
    return may_have_segments(
        known, logs, lambda topic: topic == "tiered", has_built_in_metadata=built_in, is_recorded=recorded
    )


EMPTY = [log(METADATA, 0), log(METADATA, 1)]


@pytest.mark.parametrize(
    ("known", "logs", "expected"),
    [
        (image(), [], False),
        (image("tiered"), [log("tiered", end=9)], False),
        (image("tiered", METADATA), EMPTY, False),
        (image("tiered", METADATA), [EMPTY[0], log(METADATA, 1, end=1)], True),
        (image("tiered", METADATA), EMPTY[:1], True),  # another broker has the other partition, or it is lost
        (image("tiered"), [log("tiered", local_start=5, end=9)], True),
    ],
)
def test_before_a_storage_is_recorded_only_what_certainly_is_nothing_counts(
    known: MetadataImage, logs: Sequence[Any], expected: bool
) -> None:
    assert judged(known, logs) is expected


def test_a_recorded_storage_is_in_use_once_there_is_the_topic_of_remote_log_metadata() -> None:
    assert not judged(image("tiered"), [], recorded=True)
    assert judged(image(METADATA), EMPTY, recorded=True)


def test_with_a_metadata_plugin_a_recorded_storage_is_in_use_once_there_is_a_tiered_topic() -> None:
    """Whether the plugin knows segments is not asked."""
    assert judged(image("tiered"), [], built_in=False, recorded=True)
    assert not judged(image("other"), [], built_in=False, recorded=True)
    assert not judged(image("tiered"), [], built_in=False), "nothing is copied before the storage is recorded"


def test_partitions_that_have_left_the_disk_in_part_have_segments_for_certain() -> None:
    logs = [log("t", 0, local_start=5), log("t", 1, start=5, local_start=5), log("deleted", local_start=5)]
    assert list(with_remote_part(image("t"), logs)) == [TopicIdPartition(TOPIC_ID, TopicPartition("t", 0))]
