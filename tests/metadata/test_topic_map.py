"""What is kept with the topics is what a look at all of them would find."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from strandline.metadata import ConfigResource, ConfigResourceType
from strandline.metadata.config_map import ConfigMap, configs_of
from strandline.metadata.delta import apply_records
from strandline.metadata.image import EMPTY_IMAGE, MetadataImage
from strandline.metadata.log.snapshot import decode_image, encode_image
from strandline.metadata.records import (
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from strandline.metadata.topic_map import TopicMap, indexed_topics
from strandline.model import NO_LEADER
from tests.metadata.histories import NAMES, histories


def assert_indexed(image: MetadataImage) -> None:
    topics, partitions = indexed_topics(image), list(image.all_partitions())
    assert isinstance(image.topics, TopicMap) or not image.topics
    assert topics.partition_count == len(partitions)
    for node in range(6):
        held = {
            topic.name
            for topic, found in partitions
            if node == found.leader or node in (*found.isr, *found.elr, *found.last_known_elr)
        }
        assert {topic.name for topic in topics.held_by(node)} == held
        assert all(topic is image.topics[topic.name] for topic in topics.held_by(node))
        assert topics.leads_any(node) == any(found.leader == node for _, found in partitions)
    assert set(topics.leaderless) == {topic.name for topic, found in partitions if found.leader == NO_LEADER}
    assert set(topics.astray) == {topic.name for topic, found in partitions if found.leader != found.replicas[0]}
    eligible = {topic.name for topic, found in partitions if found.elr or found.last_known_elr}
    assert set(topics.with_eligible) == eligible
    for name in (*NAMES, "c_d"):
        alike = [other for other in image.topics if "." in other and other.replace(".", "_") == name.replace(".", "_")]
        assert list(topics.alike(name)) == alike


@given(records=histories(), data=st.data())
def test_the_index_follows_the_records(records: list[MetadataRecord], data: st.DataObject) -> None:
    image = EMPTY_IMAGE
    while image.offset + 1 < len(records):
        start = image.offset + 1
        end = data.draw(st.integers(start + 1, len(records)))
        image = apply_records(image, enumerate(records[start:end], start)).new
        assert_indexed(image)
    assert_indexed(decode_image(encode_image(image)))
    assert_indexed(replace(image, topics=TopicMap(dict(image.topics))))


def test_names_that_are_alike_are_known_until_they_go() -> None:
    both = [TopicRecord(name=name, topic_id=UUID(int=number)) for number, name in enumerate(["a.b", "a_b"])]
    image = apply_records(EMPTY_IMAGE, enumerate(both)).new
    assert indexed_topics(image).alike("a.b") == ("a.b", "a_b")
    image = apply_records(image, [(2, RemoveTopicRecord(topic_id=UUID(int=0)))]).new
    assert indexed_topics(image).alike("a.b") == ("a_b",)
    image = apply_records(image, [(3, RemoveTopicRecord(topic_id=UUID(int=1)))]).new
    assert indexed_topics(image).alike("a.b") == ()


def test_settings_of_one_kind_are_the_same_object_while_others_change() -> None:
    topic, group = ConfigResource(ConfigResourceType.TOPIC, "t"), ConfigResource(ConfigResourceType.GROUP, "g")
    configs = {topic: {"a": "1"}, group: {"b": "2"}}
    image = MetadataImage(configs=ConfigMap(configs))
    changed = replace(image, configs=ConfigMap.of(image.configs).with_changes({topic: {}}))
    assert image.configs == configs
    assert changed.configs == {group: {"b": "2"}}
    assert topic not in changed.configs
    assert configs_of(changed, ConfigResourceType.GROUP) is configs_of(image, ConfigResourceType.GROUP)


def test_names_are_the_same_until_a_topic_is_created_or_deleted() -> None:
    at = UUID(int=1)
    partition = PartitionRecord(topic_id=at, partition=0, replicas=(1,), isr=(1,), leader=1)
    image = apply_records(EMPTY_IMAGE, enumerate([TopicRecord(name="t", topic_id=at), partition])).new
    since = indexed_topics(image).names_since
    image = apply_records(image, [(2, PartitionChangeRecord(partitions=((at, (0,)),), leader=2))]).new
    assert indexed_topics(image).names_since is since
    created = apply_records(image, [(3, TopicRecord(name="u", topic_id=UUID(int=2)))]).new
    assert indexed_topics(created).names_since is not since
    deleted = apply_records(image, [(3, RemoveTopicRecord(topic_id=at))]).new
    assert indexed_topics(deleted).names_since is not since
