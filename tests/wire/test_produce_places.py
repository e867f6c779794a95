"""What `wire.produce_places` finds in a Produce request is what `wire.produce_codec` reads, or nothing."""

from __future__ import annotations

from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from strandline.wire import produce_codec
from strandline.wire.api import ApiKey
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.primitives import MAX_ELEMENTS, MalformedRequest
from strandline.wire.produce_codec import ProduceAnswer, ProduceEntry
from strandline.wire.produce_places import TopicPlaces, find_places, find_topics, read_topic, write_successes
from strandline.wire.registry import encode_request, read_request_header

VERSIONS = st.integers(produce_codec.FIRST_SINGLE, produce_codec.MAX_VERSION)
# Lengths with one and with two bytes, in the compact form.
NAMES = st.text("abé.-_", min_size=1, max_size=3) | st.sampled_from(("n" * 126, "n" * 127, "n" * 249))
IDS = st.integers(1, 3).map(lambda number: UUID(int=number))
INT32 = st.integers(-(2**31), 2**31 - 1)
RECORDS = st.integers(61, 300).map(bytes)
ANY_RECORDS = st.none() | st.binary(max_size=62) | RECORDS


def requests(records: st.SearchStrategy[bytes | None], least: int) -> st.SearchStrategy[ProduceRequest]:
    data = st.builds(PartitionProduceData, index=INT32, records=records)
    partitions = st.lists(data, min_size=least, max_size=4)
    return st.builds(
        ProduceRequest,
        transactional_id=st.none() | NAMES,
        acks=st.integers(-1, 1),
        timeout_ms=INT32,
        topic_data=st.lists(
            st.builds(TopicProduceData, name=NAMES, topic_id=IDS, partition_data=partitions), min_size=least, max_size=4
        ),
    )


def body_of(version: int, message: ProduceRequest) -> tuple[memoryview, int]:
    frame = memoryview(bytearray(encode_request(ApiKey.PRODUCE, version, 7, "client", message)))
    return frame, read_request_header(frame)[1]


def found_in(frame: memoryview, position: int, version: int) -> list[TopicPlaces]:
    return find_places(frame, find_topics(frame, position, version), len(frame), version)


def entries_of(frame: memoryview, topics: list[TopicPlaces], version: int) -> list[tuple[object, int, bytes]]:
    return [
        (read_topic(raw, version), index, bytes(frame[start:end]))
        for raw, places in topics
        for index, start, end in places
    ]


def read_in_general(frame: memoryview, position: int, version: int) -> list[tuple[object, int, bytes]]:
    entries = produce_codec.read_produce_request(frame, position, version).entries
    return [(entry.topic, entry.partition, bytes(entry.records or b"")) for entry in entries]


def has_neighbours(message: ProduceRequest, version: int) -> bool:
    """Whether a topic follows on itself: its answers have to be put together."""
    names = [topic.topic_id if version >= 13 else topic.name for topic in message.topic_data]
    return any(one == other for one, other in pairwise(names))


@given(VERSIONS, requests(RECORDS, 1))
def test_ordinary_requests_are_found_whole(version: int, message: ProduceRequest) -> None:
    frame, position = body_of(version, message)
    topics = found_in(frame, position, version)
    if has_neighbours(message, version):
        assert not topics
    else:
        assert entries_of(frame, topics, version) == read_in_general(frame, position, version)


@given(VERSIONS, requests(ANY_RECORDS, 0), st.data())
def test_whatever_is_found_is_there(version: int, message: ProduceRequest, data: st.DataObject) -> None:
    frame, position = body_of(version, message)
    topics_at = find_topics(frame, position, version)
    for _ in range(data.draw(st.integers(0, 2))):
        frame[data.draw(st.integers(topics_at, len(frame) - 1))] = data.draw(st.integers(0, 255))
    topics = find_places(frame, topics_at, len(frame), version)
    # Of a name that would be written in another way, nothing is answered.
    assume(all(read_topic(raw, version) is not None for raw, _ in topics))
    if topics:
        assert entries_of(frame, topics, version) == read_in_general(frame, position, version)


@given(VERSIONS, requests(RECORDS, 1), st.data())
def test_nothing_is_found_in_half_a_request(version: int, message: ProduceRequest, data: st.DataObject) -> None:
    frame, position = body_of(version, message)
    topics_at = find_topics(frame, position, version)
    end = data.draw(st.integers(topics_at, len(frame) - 1))
    assert not find_places(frame[:end], topics_at, end, version)
    assert not find_places(frame, topics_at, end, version), "what lies behind the end belongs to others"


@given(st.integers(9, 13), requests(RECORDS, 1), st.binary(min_size=1, max_size=20))
def test_nothing_is_found_if_something_follows(version: int, message: ProduceRequest, more: bytes) -> None:
    frame, position = body_of(version, message)
    longer = memoryview(bytes(frame) + more)
    assert not found_in(longer, position, version)


def test_nothing_is_found_in_a_request_with_too_many_elements() -> None:
    """A topic counts as one, and so does its only partition."""
    data = PartitionProduceData(index=0, records=bytes(61))
    two = ProduceRequest(topic_data=[TopicProduceData(name=name, partition_data=[data]) for name in "ab"])
    frame, position = body_of(7, two)
    topics_at = find_topics(frame, position, 7)
    pairs = MAX_ELEMENTS // 4 + 1
    many = b"".join((frame[:topics_at], (2 * pairs).to_bytes(4), pairs * bytes(frame[topics_at + 4 :])))
    with pytest.raises(MalformedRequest, match="too many elements"):
        produce_codec.read_produce_request(memoryview(many), position, 7)
    assert not found_in(memoryview(many), position, 7)


def test_nothing_is_found_in_a_request_with_tags() -> None:
    data = PartitionProduceData(index=0, records=bytes(61))
    frame, position = body_of(9, ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[data])]))
    assert found_in(frame, position, 9)
    for at in (-1, -2, -3):  # of the request, the topic and the partition
        tagged = bytearray(frame)
        where = len(tagged) + at
        tagged[where : where + 1] = b"\x01\x63\x01a"
        view = memoryview(tagged)
        assert len(produce_codec.read_produce_request(view, position, 9).entries) == 1
        assert not found_in(view, position, 9)


@pytest.mark.parametrize(
    ("raw", "version"),
    [(b"\x82\x00t", 9), (b"\x00", 9), (b"\x03t", 9), (b"\x02\xff", 9), (b"\xff\xff", 8), (bytes(15), 13)],
    ids=["long form", "null", "too short", "no UTF-8", "null, legacy", "half an id"],
)
def test_topics_that_would_be_answered_otherwise_are_none(raw: bytes, version: int) -> None:
    assert read_topic(raw, version) is None


@given(VERSIONS, requests(RECORDS, 1), INT32, st.data())
def test_successes_are_written_alike(
    version: int, message: ProduceRequest, correlation_id: int, data: st.DataObject
) -> None:
    frame, position = body_of(version, message)
    topics = found_in(frame, position, version)
    assume(topics)
    count = sum(len(places) for _, places in topics)
    offsets = data.draw(
        st.lists(st.tuples(st.integers(0, 2**60), st.integers(0, 2**60)), min_size=count, max_size=count)
    )
    entries: list[ProduceEntry] = produce_codec.read_produce_request(frame, position, version).entries
    answers = [ProduceAnswer(0, first, -1, log_start) for first, log_start in offsets]
    expected = produce_codec.write_produce_response(correlation_id, version, entries, answers)
    assert write_successes(correlation_id, version, topics, offsets) == expected


def test_a_null_array_is_malformed_in_general_and_nothing_here() -> None:
    frame, position = body_of(9, ProduceRequest(topic_data=[]))
    frame[-2] = 0
    assert not found_in(frame, position, 9)
    with pytest.raises(MalformedRequest):
        produce_codec.read_produce_request(frame, position, 9)
