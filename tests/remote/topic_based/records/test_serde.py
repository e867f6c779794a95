"""Records of `__remote_log_metadata`: the bytes are Kafka's, and bytes that are none are refused."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.errors import CorruptMessage
from strandline.model import TopicIdPartition, TopicPartition, uuid_from_text
from strandline.remote.topic_based.partitioner import metadata_partition, murmur2
from strandline.remote.topic_based.records import RemoteLogMetadata, deserialize, serialize
from strandline.remote.topic_based.records.fields import CompactReader
from strandline.remote.topic_based.records.packing import pack, unpack
from strandline.remote.values import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
)
from tests.golden import read_json
from tests.remote.topic_based.making import FINISHED, MARKED, TP, deletion, segment, update

SNAPSHOT_RECORD = 3

i32 = st.integers(0, 2**31 - 1)
i64 = st.integers(0, 2**63 - 1)
partitions = st.builds(
    TopicIdPartition,
    st.uuids(),
    st.builds(TopicPartition, st.text(st.characters(codec="utf-8"), min_size=1, max_size=50), i32),
)
segment_ids = st.builds(RemoteLogSegmentId, partitions, st.uuids())
custom = st.none() | st.binary(max_size=200)


@st.composite
def segments(draw: st.DrawFn) -> RemoteLogSegmentMetadata:
    start = draw(st.integers(0, 2**62))
    epochs = draw(st.dictionaries(i32, st.integers(start, start + 1000), min_size=1, max_size=300))
    return RemoteLogSegmentMetadata(
        segment_id=draw(segment_ids),
        start_offset=start,
        end_offset=start + draw(st.integers(0, 2**40)),
        max_timestamp_ms=draw(st.integers(-1, 2**62)),
        broker_id=draw(i32),
        event_timestamp_ms=draw(i64),
        segment_size_in_bytes=draw(i32),
        segment_leader_epochs=dict(sorted(epochs.items())),
        state=draw(st.sampled_from(RemoteLogSegmentState)),
        custom_metadata=draw(custom),
        txn_index_empty=draw(st.booleans()),
    )


updates = st.builds(
    RemoteLogSegmentMetadataUpdate,
    segment_id=segment_ids,
    event_timestamp_ms=i64,
    state=st.sampled_from(RemoteLogSegmentState),
    broker_id=i32,
    custom_metadata=custom,
)
deletions = st.builds(
    RemotePartitionDeleteMetadata,
    partition=partitions,
    state=st.sampled_from(RemotePartitionDeleteState),
    event_timestamp_ms=i64,
    broker_id=i32,
)


def test_every_record_that_kafka_wrote_is_read_and_written_again_byte_for_byte(kafka_tiered: Path) -> None:
    samples = read_json(kafka_tiered / "expected/tiered/rlmm_serde_samples.json")
    on_the_topic = [sample for sample in samples if sample["api_key"] != SNAPSHOT_RECORD]
    assert len(on_the_topic) == 10
    for sample in on_the_topic:
        value = bytes.fromhex(sample["hex"])
        message = deserialize(value)
        assert type(message).__name__ == sample["kind"]
        assert serialize(message) == value
        assert message.state.name in sample["decoded"]


def test_the_fields_are_where_kafka_has_them(kafka_tiered: Path) -> None:
    samples = read_json(kafka_tiered / "expected/tiered/rlmm_serde_samples.json")
    message = deserialize(bytes.fromhex(samples[2]["hex"]))
    assert isinstance(message, RemoteLogSegmentMetadata)
    assert message.segment_id == RemoteLogSegmentId(
        TopicIdPartition(uuid_from_text("AAECAwQFBgcICQoLDA0ODw"), TopicPartition("fx-sample", 3)),
        uuid_from_text("EBESExQVFhcYGRobHB0eHw"),
    )
    assert (message.start_offset, message.end_offset, message.broker_id) == (100, 199, 1)
    assert (message.max_timestamp_ms, message.event_timestamp_ms) == (1790000000000, 1790000000500)
    assert message.segment_leader_epochs == {0: 100, 2: 150, 7: 180}
    assert (message.segment_size_in_bytes, message.state, message.txn_index_empty) == (4096, FINISHED, True)
    assert message.custom_metadata == bytes.fromhex("00010203ff")


def test_packed_segments_are_kafkas_snapshot_records(kafka_tiered: Path) -> None:
    samples = read_json(kafka_tiered / "expected/tiered/rlmm_serde_samples.json")
    for sample in (sample for sample in samples if sample["api_key"] == SNAPSHOT_RECORD):
        value = bytes.fromhex(sample["hex"])
        reader = CompactReader(value, 3)
        metadata = unpack(RemoteLogSegmentId(TP, reader.uuid()), value[reader.position :])
        assert pack(metadata) == value[reader.position :]


@given(st.one_of(segments(), updates, deletions))
def test_what_is_written_is_read_again(message: RemoteLogMetadata) -> None:
    assert deserialize(serialize(message)) == message


@given(st.one_of(segments(), updates, deletions), st.data())
def test_a_record_that_is_cut_is_refused(message: RemoteLogMetadata, data: st.DataObject) -> None:
    value = serialize(message)
    with pytest.raises(CorruptMessage):
        deserialize(value[: data.draw(st.integers(0, len(value) - 1))])
    with pytest.raises(CorruptMessage):
        deserialize(value + b"\x00")


@given(st.binary(max_size=200), st.sampled_from([segment(1), update(1, FINISHED), deletion(MARKED)]), st.data())
def test_whatever_the_bytes_are_they_are_read_or_refused(
    noise: bytes, message: RemoteLogMetadata, data: st.DataObject
) -> None:
    value = bytearray(serialize(message))
    value[data.draw(st.integers(0, len(value) - 1))] ^= data.draw(st.integers(1, 255))
    for candidate in (noise, bytes(value)):
        with suppress(CorruptMessage):
            deserialize(candidate)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\x02\x00\x00", "The frame has version 2"),
        (b"\x01\x00\x01", "of kind 0 has version 1"),
        (b"\x01\x09\x00", "Records of kind 9"),
        (serialize(deletion(MARKED))[:-2] + b"\x07\x00", "RemotePartitionDeleteState has no number 7"),
    ],
)
def test_what_is_not_known_is_named(value: bytes, reason: str) -> None:
    with pytest.raises(CorruptMessage, match=reason):
        deserialize(value)


@pytest.mark.parametrize(
    "metadata", [segment(1, 10, 9), segment(1, -5, 9), segment(1, epochs={})], ids=["backwards", "negative", "no epoch"]
)
def test_segments_that_cannot_be_are_refused(metadata: RemoteLogSegmentMetadata) -> None:
    with pytest.raises(CorruptMessage, match="There is no segment from"):
        deserialize(serialize(metadata))


def test_the_metadata_partition_is_chosen_as_kafka_does(kafka_tiered: Path) -> None:
    topic_id = uuid_from_text("MWJ6FHTfRYy67jzwZdeqSQ")
    chosen = [metadata_partition(TopicIdPartition(topic_id, TopicPartition("any", at)), 50) for at in (0, 1, 7)]
    assert chosen == [42, 45, 26]
    assert [murmur2(b"21") - 2**32, murmur2(b"foobar") - 2**32] == [-973932308, -790332482]


@given(st.lists(st.sampled_from([b"a", b"bc", b"def", b"ghij"]), max_size=5))
def test_the_hash_is_one_of_32_bits(parts: list[bytes]) -> None:
    assert 0 <= murmur2(b"".join(parts)) < 2**32
