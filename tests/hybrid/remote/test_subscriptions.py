"""Remote log metadata of a partition is read as long as somebody on this broker needs it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from uuid import UUID

from strandline.clock import SystemClock
from strandline.hybrid.remote.subscriptions import MetadataSubscriptions, MetadataUser
from strandline.model import TopicIdPartition
from strandline.remote.topic_based.limits import MetadataLimits
from strandline.remote.topic_based.manager import TopicBasedRemoteLogMetadataManager
from strandline.testing.metadata_topic import MemoryMetadataTopic
from tests.partitions import id_partition

P = id_partition(UUID(int=7), 3)


class Heard(TopicBasedRemoteLogMetadataManager):
    """Remembers what it was told last of each partition."""

    def __init__(self, directory: Path) -> None:
        super().__init__(MemoryMetadataTopic(1), directory=directory, limits=MetadataLimits(), clock=SystemClock())
        self.told: dict[TopicIdPartition, str] = {}
        self.count = 0

    def on_partition_leadership_changes(
        self, leaders: Collection[TopicIdPartition], followers: Collection[TopicIdPartition]
    ) -> None:
        self.told |= dict.fromkeys(leaders, "leads") | dict.fromkeys(followers, "follows")
        self.count += 1
        super().on_partition_leadership_changes(leaders, followers)

    def on_stop_partitions(self, partitions: Collection[TopicIdPartition]) -> None:
        self.told |= dict.fromkeys(partitions, "stopped")
        super().on_stop_partitions(partitions)


async def test_the_last_user_ends_a_subscription(tmp_path: Path) -> None:
    metadata = Heard(tmp_path)
    subscriptions = MetadataSubscriptions(metadata)
    subscriptions.remove(P, MetadataUser.READER)
    assert metadata.told == {}
    subscriptions.add(P, MetadataUser.READER)
    assert metadata.told == {P: "follows"}
    subscriptions.add(P, MetadataUser.LEADER)
    subscriptions.add(P, MetadataUser.READER)
    assert metadata.told == {P: "leads"}
    subscriptions.remove(P, MetadataUser.LEADER)
    assert metadata.told == {P: "follows"}
    subscriptions.remove(P, MetadataUser.READER)
    assert metadata.told == {P: "stopped"}
    subscriptions.remove(P, MetadataUser.READER)
    subscriptions.add(P, MetadataUser.FOLLOWER)
    assert metadata.told == {P: "follows"}


async def test_readers_do_not_disturb_what_is_known(tmp_path: Path) -> None:
    """Whoever is told of a partition reads its metadata anew, and serves nothing of it until then."""
    metadata = Heard(tmp_path)
    subscriptions = MetadataSubscriptions(metadata)
    subscriptions.add(P, MetadataUser.CONVERTED_LEADER)
    for user in (MetadataUser.READER, MetadataUser.LEADER, MetadataUser.READER):
        subscriptions.add(P, user)
    assert metadata.count == 1
    subscriptions.remove(P, MetadataUser.READER)
    subscriptions.remove(P, MetadataUser.CONVERTED_LEADER)
    assert (metadata.count, metadata.told) == (1, {P: "leads"})
    # Another broker may have led it in between: what it wrote has to be read.
    subscriptions.add(P, MetadataUser.LEADER)
    assert metadata.count == 2
