"""Image and delta: the same log gives the same image, however it is cut."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.metadata import EMPTY_IMAGE, MetadataDelta, MetadataImage
from strandline.metadata.comparison import delta_between
from strandline.metadata.delta import InconsistentLog, apply_records
from strandline.metadata.log.record_json import UnknownRecord, decode_record, encode_record
from strandline.metadata.log.snapshot import decode_image, encode_image
from strandline.metadata.records import (
    BrokerChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from strandline.model import TopicPartition
from tests.metadata.histories import histories

A, B = uuid.UUID(int=1), uuid.UUID(int=2)


def replay(records: list[MetadataRecord], start: MetadataImage = EMPTY_IMAGE) -> MetadataImage:
    return apply_records(start, enumerate(records, start.offset + 1)).new


@given(histories())
def test_records_survive_their_json_form(records: list[MetadataRecord]) -> None:
    assert [decode_record(*encode_record(record)) for record in records] == records


@given(records=histories(), data=st.data())
def test_replaying_at_once_equals_replaying_in_pieces(records: list[MetadataRecord], data: st.DataObject) -> None:
    image = EMPTY_IMAGE
    while image.offset + 1 < len(records):
        start = image.offset + 1
        end = data.draw(st.integers(start + 1, len(records)))
        image = apply_records(image, enumerate(records[start:end], start)).new
    assert image == replay(records)


@given(records=histories(), data=st.data())
def test_a_snapshot_and_the_records_after_it_equal_the_whole_log(
    records: list[MetadataRecord], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(records)))
    snapshot = decode_image(encode_image(replay(records[:cut])))
    assert snapshot == replay(records[:cut])
    assert replay(records[cut:], snapshot) == replay(records)


@given(records=histories(), data=st.data())
def test_a_delta_names_everything_that_is_different(records: list[MetadataRecord], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(records)))
    old = replay(records[:cut])
    delta = apply_records(old, enumerate(records[cut:], cut))
    true_difference = delta_between(old, delta.new)
    assert true_difference.deleted_topics == delta.deleted_topics
    for kind in ("changed_topics", "changed_partitions", "changed_brokers", "changed_configs"):
        said, needed = getattr(delta, kind), getattr(true_difference, kind)
        assert needed.items() <= said.items() if kind != "changed_configs" else needed.keys() <= said.keys()
    assert_delta_leads_to_new(delta)


def assert_delta_leads_to_new(delta: MetadataDelta) -> None:
    """A subscriber that only applies deltas gets the partitions of the new image."""
    followed = {
        (topic.topic_id, partition.partition): partition
        for topic, partition in delta.old.all_partitions()
        if topic.topic_id not in delta.deleted_topics
    }
    for (name, number), partition in delta.changed_partitions.items():
        followed[delta.new.topics[name].topic_id, number] = partition
    expected = {(topic.topic_id, partition.partition): partition for topic, partition in delta.new.all_partitions()}
    assert followed == expected


@given(histories())
def test_names_and_ids_agree(records: list[MetadataRecord]) -> None:
    image = replay(records)
    assert {topic.topic_id: topic for topic in image.topics.values()} == image.topics_by_id
    assert all(name == topic.name for name, topic in image.topics.items())
    assert all(values for values in image.configs.values())


def test_a_topic_made_again_is_a_deletion_and_a_new_topic() -> None:
    partition = PartitionRecord(topic_id=A, partition=0, replicas=(1,), isr=(1,), leader=1)
    old = replay([TopicRecord(name="t", topic_id=A), partition])
    new_partition = PartitionRecord(topic_id=B, partition=0, replicas=(2,), isr=(2,), leader=2)
    again: list[MetadataRecord] = [RemoveTopicRecord(topic_id=A), TopicRecord(name="t", topic_id=B), new_partition]
    delta = apply_records(old, enumerate(again, 2))
    assert set(delta.deleted_topics) == {A}
    assert delta.changed_topics["t"].topic_id == B
    assert delta.changed_partitions[TopicPartition("t", 0)].replicas == (2,)
    assert delta_between(old, delta.new) == delta


def test_unchanged_parts_are_shared() -> None:
    partition = PartitionRecord(topic_id=A, partition=0, replicas=(1,), isr=(1,), leader=1)
    other = PartitionRecord(topic_id=B, partition=0, replicas=(1,), isr=(1,), leader=1)
    old = replay([TopicRecord(name="a", topic_id=A), partition, TopicRecord(name="b", topic_id=B), other])
    new = apply_records(old, [(4, PartitionChangeRecord(partitions=((A, (0,)),), leader=2))]).new
    assert new.topics["b"] is old.topics["b"]
    assert new.topics["a"] is not old.topics["a"]
    assert new.brokers is old.brokers
    assert new.configs is old.configs


@pytest.mark.parametrize(
    "record",
    [
        RemoveTopicRecord(topic_id=A),
        PartitionChangeRecord(partitions=((A, (0,)),), leader=1),
        PartitionRecord(topic_id=A, partition=0, replicas=(1,), isr=(1,), leader=1),
        BrokerChangeRecord(node_id=1, broker_epoch=0, fenced=False),
    ],
)
def test_records_about_nothing_are_refused(record: MetadataRecord) -> None:
    with pytest.raises(InconsistentLog):
        replay([record])


def test_partitions_leave_no_gap() -> None:
    with pytest.raises(InconsistentLog, match="without gaps"):
        replay(
            [
                TopicRecord(name="t", topic_id=A),
                PartitionRecord(topic_id=A, partition=1, replicas=(1,), isr=(1,), leader=1),
            ]
        )


@pytest.mark.parametrize(("kind", "payload"), [("share-group", "{}"), ("topic", '{"v":7}')])
def test_records_of_a_newer_version_are_refused(kind: str, payload: str) -> None:
    with pytest.raises(UnknownRecord, match="newer"):
        decode_record(kind, payload)


def test_equal_replica_lists_share_their_memory() -> None:
    record = PartitionRecord(topic_id=A, partition=0, replicas=(1, 2, 3), isr=(1, 2, 3), leader=1)
    one, two = (decode_record(*encode_record(record)) for _ in range(2))
    assert isinstance(one, PartitionRecord)
    assert isinstance(two, PartitionRecord)
    assert one.replicas is two.replicas is one.isr
