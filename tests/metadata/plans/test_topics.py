"""Creating and deleting topics and adding partitions, with Kafka's errors."""

from __future__ import annotations

import uuid

import pytest

from strandline.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopic,
    PolicyViolation,
    StrandlineError,
    TopicAlreadyExists,
    TopicDeletionDisabled,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from strandline.metadata import NewPartitions, NewTopic, TopicImage
from tests.metadata.cluster import Cluster, open_cluster


async def refusal(cluster: Cluster, topic: NewTopic) -> StrandlineError:
    before = cluster.image
    (answer,) = await cluster.controller.create_topics([topic])
    assert isinstance(answer, StrandlineError), answer
    assert cluster.image is before, "a refused request changes nothing"
    return answer


async def test_a_new_topic_has_an_id_leaders_and_epochs_from_zero() -> None:
    async with open_cluster(brokers=(1, 2, 3)) as cluster:
        wish = NewTopic(name="t", num_partitions=6, replication_factor=2, configs={"retention.ms": "1000"})
        (topic,) = await cluster.controller.create_topics([wish])
        assert isinstance(topic, TopicImage)
        assert topic == cluster.image.topics["t"] == cluster.image.topics_by_id[topic.topic_id]
        for partition in topic.partitions:
            assert len(set(partition.replicas)) == 2
            assert partition.isr == partition.replicas
            assert partition.leader == partition.replicas[0]
            assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)
        assert {partition.leader for partition in topic.partitions} == {1, 2, 3}
        assert cluster.image.topic_overrides("t") == {"retention.ms": "1000"}


async def test_defaults_come_from_the_settings() -> None:
    properties = {"num.partitions": "3", "default.replication.factor": "2"}
    async with open_cluster(brokers=(1, 2), properties=properties) as cluster:
        (topic,) = await cluster.controller.create_topics([NewTopic(name="t")])
        assert isinstance(topic, TopicImage)
        assert [len(partition.replicas) for partition in topic.partitions] == [2, 2, 2]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, "longer than the max allowed length 249"),
        ("a b", "characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("grün", "characters other than"),
        ("a\n", "characters other than"),
        ("a/b", "characters other than"),
    ],
)
async def test_illegal_names_are_refused(name: str, sentence: str) -> None:
    async with open_cluster() as cluster:
        error = await refusal(cluster, NewTopic(name=name))
        assert type(error) is InvalidTopic
        assert sentence in str(error)


async def test_the_longest_legal_name_is_accepted() -> None:
    async with open_cluster() as cluster:
        assert len((await cluster.create("x" * 249)).name) == 249
        await cluster.create("...")
        await cluster.create("A-b.9")


async def test_names_that_differ_only_in_dots_and_underscores_collide() -> None:
    async with open_cluster() as cluster:
        await cluster.create("a.b_c")
        error = await refusal(cluster, NewTopic(name="a_b.c"))
        assert str(error) == "Topic 'a_b.c' collides with existing topic: a.b_c"
        assert type(error) is InvalidTopic
        assert type(await refusal(cluster, NewTopic(name="a.b_c"))) is TopicAlreadyExists
        first, second = await cluster.controller.create_topics([NewTopic(name="x.y"), NewTopic(name="x_y")])
        assert isinstance(first, TopicImage)
        assert type(second) is InvalidTopic


@pytest.mark.parametrize(
    ("topic", "kind", "sentence"),
    [
        (NewTopic(name="t", num_partitions=0), InvalidPartitions, "Number of partitions must be larger than 0"),
        (NewTopic(name="t", num_partitions=-2), InvalidPartitions, "Number of partitions must be larger than 0"),
        (NewTopic(name="t", replication_factor=0), InvalidReplicationFactor, "must be larger than 0"),
        (NewTopic(name="t", replication_factor=-2), InvalidReplicationFactor, "must be larger than 0"),
        (NewTopic(name="t", replication_factor=3), InvalidReplicationFactor, "only 2 broker(s) are registered"),
        (NewTopic(name="t", num_partitions=10_001), PolicyViolation, "Excessively large number of partitions"),
        (NewTopic(name="t", configs={"retention.ms": "soon"}), InvalidConfig, "retention.ms"),
        (NewTopic(name="t", configs={"no.such.thing": "1"}), InvalidConfig, "no.such.thing"),
        (NewTopic(name="t", configs={"retention.ms": None}), InvalidConfig, "Null value not supported"),
        (NewTopic(name="t", assignments={0: [1]}, num_partitions=1), InvalidRequest, "numPartitions was not set"),
        (NewTopic(name="t", assignments={0: [1]}, replication_factor=1), InvalidRequest, "replication factor was not"),
        (NewTopic(name="t", assignments={1: [1]}), InvalidReplicaAssignment, "consecutive 0-based"),
        (NewTopic(name="t", assignments={0: []}), InvalidReplicaAssignment, "empty replica list"),
        (NewTopic(name="t", assignments={0: [1, 1]}), InvalidReplicaAssignment, "broker 1 more than once"),
        (NewTopic(name="t", assignments={0: [7]}), InvalidReplicaAssignment, "broker 7, but no such broker"),
        (NewTopic(name="t", assignments={0: [1], 1: [1, 2]}), InvalidReplicaAssignment, "not consistent with previous"),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_illegal_wishes_are_refused(topic: NewTopic, kind: type[StrandlineError], sentence: str) -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        error = await refusal(cluster, topic)
        assert type(error) is kind
        assert sentence in str(error)


async def test_one_bad_topic_does_not_stop_the_others() -> None:
    async with open_cluster() as cluster:
        await cluster.create("old")
        wishes = [NewTopic(name=name) for name in ("new", "old", "bad name", "twice", "twice", "newer")]
        answers = await cluster.controller.create_topics(wishes)
        kinds = [TopicImage, TopicAlreadyExists, InvalidTopic, InvalidRequest, InvalidRequest, TopicImage]
        assert [type(answer) for answer in answers] == kinds
        assert set(cluster.image.topics) == {"old", "new", "newer"}


async def test_validate_only_answers_and_changes_nothing() -> None:
    async with open_cluster() as cluster:
        await cluster.create("old", [[1]])
        before, lease = cluster.image, await cluster.store.lease()
        answers = await cluster.controller.create_topics(
            [NewTopic(name="new", num_partitions=3), NewTopic(name="old")], validate_only=True
        )
        assert isinstance(answers[0], TopicImage)
        assert len(answers[0].partitions) == 3
        assert type(answers[1]) is TopicAlreadyExists
        (more,) = await cluster.controller.create_partitions([NewPartitions(name="old", count=4)], validate_only=True)
        assert isinstance(more, TopicImage)
        assert len(more.partitions) == 4
        assert cluster.image is before
        assert (await cluster.store.lease()).next_offset == lease.next_offset
        assert await cluster.store.load() == before


async def test_only_active_replicas_are_in_sync_at_first() -> None:
    async with open_cluster(brokers=(1, 2, 3)) as cluster:
        await cluster.beat(2, want_fence=True)
        topic = await cluster.create("t", [[2, 3, 1]])
        assert topic.partitions[0].isr == (3, 1)
        assert topic.partitions[0].leader == 3
        error = await refusal(cluster, NewTopic(name="u", assignments={0: [2]}))
        assert type(error) is InvalidReplicaAssignment
        assert "partition 0 are fenced" in str(error)


async def test_without_brokers_nothing_can_be_placed() -> None:
    async with open_cluster(brokers=()) as cluster:
        assert type(await refusal(cluster, NewTopic(name="t"))) is InvalidReplicationFactor


async def test_topics_are_deleted_by_name_and_by_id_with_their_settings() -> None:
    async with open_cluster() as cluster:
        await cluster.create("a", configs={"retention.ms": "1"})
        b = await cluster.create("b")
        await cluster.create("c")
        unknown = uuid.UUID(int=99)
        answers = await cluster.controller.delete_topics(["a", b.topic_id, "nope", unknown, "c", "c"])
        kinds = [TopicImage, TopicImage, UnknownTopicOrPartition, UnknownTopicId, InvalidRequest, InvalidRequest]
        assert [type(answer) for answer in answers] == kinds
        assert set(cluster.image.topics) == {"c"}
        again = await cluster.create("a")
        assert cluster.image.topic_overrides("a") == {}
        assert again.topic_id not in (b.topic_id, unknown)


async def test_a_name_and_an_id_of_the_same_topic_are_one_topic() -> None:
    async with open_cluster() as cluster:
        a = await cluster.create("a")
        answers = await cluster.controller.delete_topics(["a", a.topic_id])
        assert [type(answer) for answer in answers] == [InvalidRequest, InvalidRequest]
        assert "a" in cluster.image.topics


async def test_deletion_can_be_switched_off() -> None:
    async with open_cluster(properties={"delete.topic.enable": "false"}) as cluster:
        await cluster.create("a")
        (answer,) = await cluster.controller.delete_topics(["a"])
        assert type(answer) is TopicDeletionDisabled
        assert "a" in cluster.image.topics


async def test_partitions_are_added_behind_the_old_ones() -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        old = await cluster.create("t", [[1, 2]])
        (topic,) = await cluster.controller.create_partitions([NewPartitions(name="t", count=3)])
        assert topic == cluster.image.topics["t"]
        assert isinstance(topic, TopicImage)
        assert topic.partitions[:1] == old.partitions
        assert [len(partition.replicas) for partition in topic.partitions] == [2, 2, 2]
        wish = NewPartitions(name="t", count=4, assignments=[[2, 1]])
        (topic,) = await cluster.controller.create_partitions([wish])
        assert cluster.partition("t", 3).replicas == (2, 1)


@pytest.mark.parametrize(
    ("wish", "kind", "sentence"),
    [
        (NewPartitions(name="x", count=3), UnknownTopicOrPartition, "does not exist"),
        (NewPartitions(name="t", count=2), InvalidPartitions, "Topic already has 2 partition(s)."),
        (NewPartitions(name="t", count=1), InvalidPartitions, "1 would not be an increase"),
        (NewPartitions(name="t", count=0), InvalidPartitions, "0 would not be an increase"),
        (NewPartitions(name="t", count=20_000), PolicyViolation, "Excessively large"),
        (NewPartitions(name="t", count=4, assignments=[[1]]), InvalidReplicaAssignment, "but 1 assignment(s)"),
        (NewPartitions(name="t", count=3, assignments=[[1, 2]]), InvalidReplicaAssignment, "not consistent"),
        (NewPartitions(name="t", count=3, assignments=[[9]]), InvalidReplicaAssignment, "no such broker"),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_illegal_additions_are_refused(wish: NewPartitions, kind: type[StrandlineError], sentence: str) -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        await cluster.create("t", [[1], [2]])
        before = cluster.image
        (answer,) = await cluster.controller.create_partitions([wish])
        assert type(answer) is kind
        assert sentence in str(answer)
        assert cluster.image is before


@pytest.mark.parametrize(
    "topic",
    [NewTopic(name="t", num_partitions=1, replication_factor=2), NewTopic(name="t", assignments={0: [1, 2]})],
    ids=["by number", "by assignment"],
)
async def test_a_topic_has_as_many_replicas_as_it_is_created_with(topic: NewTopic) -> None:
    async with open_cluster(brokers=(1, 2)) as cluster:
        (created,) = await cluster.controller.create_topics([topic])
        assert isinstance(created, TopicImage)
        (partition,) = created.partitions
        assert sorted(partition.replicas) == [1, 2]
        assert partition.isr == partition.replicas
        assert partition.leader == partition.preferred_leader


async def test_the_refusal_of_more_replicas_than_brokers_says_what_to_write() -> None:
    async with open_cluster(brokers=(1,), properties={"default.replication.factor": "3"}) as cluster:
        asked = await refusal(cluster, NewTopic(name="connect-configs", num_partitions=1, replication_factor=3))
        assert "Topic connect-configs cannot have 3 replicas" in str(asked)
        assert "Write 1 or -1 as its replication factor" in str(asked)
        by_default = await refusal(cluster, NewTopic(name="t"))
        assert "set default.replication.factor=1 on them." in str(by_default)
        assert not cluster.image.topics
