"""The registry of replicas: it follows the metadata, and tells clients why a partition is not here."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from strandline.config import Settings
from strandline.config.topic import TopicConfig
from strandline.errors import KafkaStorageError, NotLeaderOrFollower, UnknownTopicId, UnknownTopicOrPartition
from strandline.log import AppendOrigin
from strandline.metadata.comparison import delta_between
from strandline.metadata.image import (
    EMPTY_IMAGE,
    ConfigResource,
    ConfigResourceType,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from strandline.model import TopicPartition
from strandline.replication import Append, LeaderEnvironment, LeaderRole, Partition, ReplicaBrokers, ReplicaManager
from strandline.replication.leader_environment import NoIsrChanges
from tests.replication.conftest import NODE, Fixture, batch
from tests.replication.led import ALL, registered


def topic(name: str, partitions: int = 1, *, number: int = 1, leader: int = NODE, epoch: int = 0) -> TopicImage:
    replicas = (leader,)
    return TopicImage(
        name,
        UUID(int=number),
        tuple(PartitionImage(p, replicas, replicas, leader, epoch, epoch) for p in range(partitions)),
    )


def cluster(*topics: TopicImage, offset: int = 0, configs: dict[str, dict[str, str]] | None = None) -> MetadataImage:
    return MetadataImage(
        offset=offset,
        topics={t.name: t for t in topics},
        topics_by_id={t.topic_id: t for t in topics},
        configs={ConfigResource(ConfigResourceType.TOPIC, n): c for n, c in (configs or {}).items()},
    )


class Node:
    """A replica manager and the image it has seen."""

    def __init__(self, fixture: Fixture) -> None:
        self.image = EMPTY_IMAGE
        self.replicas = ReplicaManager(
            NODE,
            fixture.logs,
            loop=asyncio.get_running_loop(),
            topic_config=self._config,
            environment=LeaderEnvironment(ReplicaBrokers(self, lambda: 10), NoIsrChanges(), 30.0),
        )
        self.asked: list[str] = []

    def _config(self, name: str) -> TopicConfig:
        self.asked.append(name)
        return Settings().topic_config(self.image.topic_overrides(name))

    def see(self, image: MetadataImage) -> None:
        delta, self.image = delta_between(self.image, image), image
        self.replicas.apply(delta, image)


class Diary:
    """Writes down leadership changes."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, int, int]] = []

    def leadership_gained(self, partition: Partition, leader_epoch: int) -> None:
        self.entries.append(("gained", partition.topic_partition.partition, leader_epoch))

    def leadership_lost(self, partition: TopicPartition, leader_epoch: int) -> None:
        self.entries.append(("lost", partition.partition, leader_epoch))


class Register:
    """Writes down what becomes of replicas."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, str, bool]] = []

    def replica_changed(self, partition: Partition) -> None:
        self.entries.append(("changed", str(partition.topic_partition), partition.is_leader))

    def replica_removed(self, partition: Partition, *, is_deleted: bool) -> None:
        self.entries.append(("removed", str(partition.topic_partition), is_deleted))

    def taken(self) -> list[tuple[str, str, bool]]:
        entries, self.entries = self.entries, []
        return entries


async def test_partitions_come_and_go_with_the_metadata(fixture: Fixture, tmp_path: Path) -> None:
    node = Node(fixture)
    node.see(cluster(topic("a", 2)))
    assert node.replicas.get_leader(TopicPartition("a", 1)).is_leader
    assert (tmp_path / "a-1").is_dir()
    node.see(cluster(offset=1))
    with pytest.raises(UnknownTopicOrPartition):
        node.replicas.find("a", 0)
    assert not (tmp_path / "a-1").exists()
    assert sum(name.endswith("-delete") for name in os.listdir(tmp_path)) == 2


async def test_a_topic_made_again_under_its_name_starts_empty(fixture: Fixture) -> None:
    node = Node(fixture)
    node.see(cluster(topic("a", number=1)))
    old = node.replicas.find("a", 0)
    node.see(cluster(topic("a", number=2), offset=1))
    new = node.replicas.find("a", 0)
    assert new is not old
    assert new.topic_id == UUID(int=2)
    assert not old.is_leader


async def test_clients_are_told_why_a_partition_is_not_here(fixture: Fixture, tmp_path: Path) -> None:
    node = Node(fixture)
    node.see(cluster(topic("here"), topic("elsewhere", number=2, leader=9)))
    with pytest.raises(NotLeaderOrFollower):
        node.replicas.find("elsewhere", 0)
    with pytest.raises(UnknownTopicOrPartition):
        node.replicas.find("here", 1)
    with pytest.raises(UnknownTopicId):
        node.replicas.topic_name(UUID(int=77).bytes)
    assert node.replicas.topic_name(UUID(int=1).bytes) == "here"
    node.replicas.directory_failed(tmp_path)
    with pytest.raises(KafkaStorageError):
        node.replicas.find("here", 0)


async def test_coordinators_hear_of_leadership_also_of_what_holds_already(fixture: Fixture) -> None:
    node = Node(fixture)
    node.see(cluster(topic("a", 2)))
    diary = Diary()
    node.replicas.add_listener("a", diary)
    assert diary.entries == [("gained", 0, 0), ("gained", 1, 0)]
    node.see(cluster(topic("a", 2, epoch=1), offset=1))
    assert diary.entries[2:] == [("gained", 0, 1), ("gained", 1, 1)]
    node.see(cluster(offset=2))
    assert diary.entries[4:] == [("lost", 0, 1), ("lost", 1, 1)]


async def test_tiered_storage_hears_of_every_replica(fixture: Fixture, tmp_path: Path) -> None:
    node, register = Node(fixture), Register()
    node.see(cluster(topic("a")))
    stop = node.replicas.add_replica_listener(register)
    assert register.taken() == [("changed", "a-0", True)]
    followed = TopicImage("b", UUID(int=2), (PartitionImage(0, (9, NODE), (9,), 9, 0, 0),))
    node.see(cluster(topic("a"), followed, offset=1))
    assert register.taken() == [("changed", "b-0", False)]
    node.see(cluster(topic("a"), followed, offset=2, configs={"a": {"retention.ms": "5"}}))
    assert register.taken() == [("changed", "a-0", True)]
    node.see(cluster(topic("a", epoch=1), offset=3))
    assert register.taken() == [("removed", "b-0", True), ("changed", "a-0", True), ("changed", "a-0", True)]
    node.see(cluster(topic("a", number=3), offset=4))
    assert register.taken() == [("removed", "a-0", True), ("changed", "a-0", True)]
    node.replicas.directory_failed(tmp_path)
    assert register.taken() == [("removed", "a-0", False)]
    stop()
    node.see(cluster(offset=5))
    assert register.taken() == []


async def test_followers_are_told_of_each_leader_and_coordinators_only_of_this_one(fixture: Fixture) -> None:
    node, register, diary = Node(fixture), Register(), Diary()
    node.replicas.add_replica_listener(register)
    node.replicas.add_listener("a", diary)

    def led_by(leader: int, epoch: int, *, isr: tuple[int, ...] = (NODE, 8, 9)) -> TopicImage:
        return TopicImage("a", UUID(int=1), (PartitionImage(0, (NODE, 8, 9), isr, leader, epoch, node.image.offset),))

    leads: list[bool] = []
    for offset, (leader, epoch) in enumerate([(8, 0), (9, 1), (-1, 2), (9, 3), (NODE, 4), (NODE, 5), (8, 6)], 1):
        node.see(cluster(led_by(leader, epoch), offset=offset))
        ((_, _, is_leader),) = register.taken()
        leads.append(is_leader)
    assert leads == [False, False, False, False, True, True, False]
    assert diary.entries == [("gained", 0, 4), ("gained", 0, 5), ("lost", 0, 6)]
    node.see(cluster(led_by(8, 6, isr=(NODE, 8)), offset=9))
    assert register.taken() == [], "only the in-sync set is another one"


async def test_only_partitions_that_have_changed_are_looked_at(fixture: Fixture) -> None:
    node = Node(fixture)
    wide = topic("a", 5)
    node.see(cluster(wide))
    rung: list[int] = []

    class Bell:
        def __init__(self, number: int) -> None:
            self.number = number

        def notify(self) -> None:
            rung.append(self.number)

    for partition in node.replicas.partitions():
        partition.watch(Bell(partition.topic_partition.partition))
    changed = wide.partitions[3]._replace(partition_epoch=7)
    node.see(cluster(replace(wide, partitions=(*wide.partitions[:3], changed, wide.partitions[4])), offset=1))
    assert rung == [3]


async def test_a_partition_and_a_setting_that_change_together_are_both_followed(fixture: Fixture) -> None:
    """The setting decides for the whole topic which partitions have a log here."""
    is_wanted = False
    replicas = ReplicaManager(
        NODE,
        fixture.logs,
        loop=asyncio.get_running_loop(),
        topic_config=lambda _: Settings().topic_config({}),
        local_partitions=lambda _: lambda number: is_wanted or number == 0,
    )
    before = cluster(topic("a", 3))
    replicas.apply(delta_between(EMPTY_IMAGE, before), before)
    assert len(replicas) == 1
    is_wanted = True
    parts = before.topics["a"].partitions
    moved = replace(before.topics["a"], partitions=(parts[0]._replace(partition_epoch=1), *parts[1:]))
    after = cluster(moved, offset=1, configs={"a": {"retention.ms": "5"}})
    replicas.apply(delta_between(before, after), after)
    assert len(replicas) == 3


async def test_metadata_that_says_what_the_controller_has_answered_may_say_more(fixture: Fixture) -> None:
    partition = fixture.partition()
    partition.follow(PartitionImage(0, (NODE, 8, 9), (NODE, 8), NODE, 0, 1))
    partition.isr, partition.partition_epoch = (NODE, 9), 2  # as the answer of the controller does
    assert not partition.follow(PartitionImage(0, (NODE, 9), (NODE, 9), NODE, 0, 2))
    assert partition.replicas == (NODE, 9)
    assert not partition.follow(PartitionImage(0, (NODE, 8, 9), (NODE,), NODE, 0, 1))
    assert partition.isr == (NODE, 9)


async def test_a_setting_does_not_try_an_offline_replica_again(
    fixture: Fixture, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    node = Node(fixture)
    node.see(cluster(topic("a")))
    fixture.logs.directories[0].fail(OSError("a test broke the disk"))
    node.replicas.directory_failed(tmp_path)
    caplog.clear()
    node.see(cluster(topic("a"), offset=1, configs={"a": {"retention.ms": "12345"}}))
    assert not caplog.records
    with pytest.raises(KafkaStorageError):
        node.replicas.find("a", 0)


async def test_settings_reach_the_logs(fixture: Fixture) -> None:
    node = Node(fixture)
    node.see(cluster(topic("a")))
    node.see(cluster(topic("a"), offset=1, configs={"a": {"retention.ms": "12345"}}))
    assert node.replicas.find("a", 0).log.config.retention_ms == 12345


async def test_a_setting_of_a_topic_is_looked_at_for_that_topic_alone(fixture: Fixture) -> None:
    node = Node(fixture)
    topics = [topic(f"t{number}", number=number + 1) for number in range(20)]
    node.see(cluster(*topics))
    node.asked.clear()
    node.see(cluster(*topics, offset=1, configs={"t7": {"retention.ms": "12345"}}))
    assert node.asked == ["t7"]
    assert node.replicas.find("t7", 0).log.config.retention_ms == 12345


async def test_a_setting_of_all_brokers_is_looked_at_for_all_topics(fixture: Fixture) -> None:
    node = Node(fixture)
    node.see(cluster(topic("a"), topic("b", number=2)))
    node.asked.clear()
    every = ConfigResource(ConfigResourceType.BROKER, "")
    node.see(replace(node.image, offset=1, configs={every: {"log.retention.ms": "1000"}}))
    assert sorted(node.asked) == ["a", "b"]


async def test_a_topic_of_many_partitions_does_not_stop_the_loop(fixture: Fixture) -> None:
    """Files are made over many turns of the loop; a topic deleted meanwhile leaves nothing behind."""
    node = Node(fixture)
    node.see(cluster(topic("big", 300), topic("gone", 300, number=2)))
    assert 0 < len(node.replicas) < 600
    node.see(cluster(topic("big", 300), offset=1))
    loop = asyncio.get_running_loop()
    while len(node.replicas) < 300:
        turn = loop.create_future()
        loop.call_soon(turn.set_result, None)
        await turn
    assert all(node.replicas.find("big", number).is_leader for number in range(300))
    assert sum(log.topic_partition.topic == "gone" for log in fixture.logs.all_logs()) == 0


async def test_a_follower_that_was_about_to_join_holds_nothing_up_when_it_is_fenced(fixture: Fixture) -> None:
    node = Node(fixture)
    epochs = {1: 10, 2: 20, 3: 30}
    replicated = TopicImage("a", UUID(int=1), (PartitionImage(0, ALL, (1, 2), NODE, 0, 0),))
    node.see(replace(cluster(replicated), brokers=registered(epochs).brokers))
    partition = node.replicas.find("a", 0)
    role = partition.role
    assert isinstance(role, LeaderRole)
    role.follower_fetched(3, 30, 0, 0, 0)
    partition.append(Append(batch(b"x"), acks=1, origin=AppendOrigin.CLIENT, done=lambda error: None))
    role.follower_fetched(2, 20, 1, 0, 1)
    assert partition.log.high_watermark == 0
    node.see(replace(node.image, offset=1, brokers=registered(epochs, fenced=[3]).brokers))
    assert partition.log.high_watermark == 1
