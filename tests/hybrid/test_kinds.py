"""What a partition is, from the metadata, the control plane and the disks."""

from __future__ import annotations

from uuid import UUID

import pytest

from strandline.config import Settings
from strandline.hybrid.kinds import PartitionKind, PartitionKinds, kind_of
from strandline.metadata.image import PartitionImage, TopicImage
from strandline.model import TopicIdPartition, TopicPartition

TOPIC = TopicImage("t", UUID(int=1), (PartitionImage(0, (1,), (1,), 1, 0, 0),))
KEY = TopicIdPartition(TOPIC.topic_id, TopicPartition("t", 0))


@pytest.mark.parametrize(
    ("is_flagged", "has_local_log", "is_in_control_plane", "kind"),
    [
        (False, False, False, PartitionKind.CLASSIC),
        (False, True, False, PartitionKind.CLASSIC),
        (True, False, False, PartitionKind.DISKLESS),
        (True, False, True, PartitionKind.DISKLESS),
        # Records that are there decide, whatever the setting says.
        (True, True, False, PartitionKind.CLASSIC),
        (True, True, True, PartitionKind.CLASSIC),
        (False, False, True, PartitionKind.DISKLESS),
        (False, True, True, PartitionKind.CLASSIC),
    ],
)
def test_records_decide_before_the_setting_does(
    is_flagged: bool, has_local_log: bool, is_in_control_plane: bool, kind: PartitionKind
) -> None:
    found = kind_of(is_flagged=is_flagged, has_local_log=has_local_log, is_in_control_plane=is_in_control_plane)
    assert found is kind


class Seen:
    """What a broker sees of one topic."""

    def __init__(self) -> None:
        self.configs: dict[str, str] = {}
        self.logs: set[TopicIdPartition] = set()
        self.kinds = PartitionKinds(
            topic_config=lambda _: Settings().topic_config(self.configs), has_local_log=self.logs.__contains__
        )


def test_the_answer_follows_the_setting_while_there_are_no_records() -> None:
    seen = Seen()
    assert seen.kinds.classic_partitions(TOPIC)(0)
    seen.configs["diskless.enable"] = "true"
    assert not seen.kinds.classic_partitions(TOPIC)(0)
    assert seen.kinds.is_diskless_topic(TOPIC)
    seen.configs.clear()
    assert seen.kinds.classic_partitions(TOPIC)(0)


def test_a_partition_with_a_log_stays_classic_when_the_setting_changes() -> None:
    seen = Seen()
    seen.logs.add(KEY)
    seen.configs["diskless.enable"] = "true"
    assert seen.kinds.classic_partitions(TOPIC)(0)


def test_a_log_of_a_deleted_topic_of_that_name_does_not_count() -> None:
    seen = Seen()
    seen.logs.add(KEY._replace(topic_id=UUID(int=9)))
    seen.configs["diskless.enable"] = "true"
    assert not seen.kinds.classic_partitions(TOPIC)(0)


def test_what_the_control_plane_has_stays_diskless_until_the_topic_is_deleted() -> None:
    seen = Seen()
    seen.kinds.learn([TOPIC.topic_id])
    assert not seen.kinds.classic_partitions(TOPIC)(0)
    assert seen.kinds.is_diskless_topic(TOPIC)
    seen.kinds.forget(TOPIC.topic_id)
    assert seen.kinds.classic_partitions(TOPIC)(0)
