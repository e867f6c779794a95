"""Fetch as a follower speaks it: the generated codec and the broker's own writer judge it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.wire import fetch_codec
from strandline.wire.api import ApiKey
from strandline.wire.fetch_client import (
    FIRST_OF_FOLLOWERS,
    FetchedPartition,
    FollowerFetch,
    read_correlation_id,
    read_fetched,
    write_follower_fetch,
)
from strandline.wire.fetch_codec import FetchEntry
from strandline.wire.messages import fetch
from strandline.wire.primitives import MalformedRequest
from strandline.wire.registry import decode_request, encode_response
from tests.wire.test_fast_paths import CODES, IDS, INT32, INT64, Bytes, fetch_answers

VERSIONS = st.integers(FIRST_OF_FOLLOWERS, fetch_codec.MAX_VERSION)
TOPIC_IDS = IDS.map(lambda topic_id: topic_id.bytes)
ENTRIES = st.builds(FetchEntry, TOPIC_IDS, INT32, INT32, INT64, INT32, INT64, INT32)
REQUESTS = st.builds(
    FollowerFetch,
    INT32,
    INT64,
    INT32,
    INT32,
    INT32,
    INT32,
    INT32,
    st.lists(ENTRIES, max_size=5),
    st.lists(st.tuples(TOPIC_IDS, INT32), max_size=5),
)


@given(VERSIONS, REQUESTS, INT32, st.text("abc-12", max_size=20))
def test_a_request_is_what_a_leader_reads(version: int, request: FollowerFetch, number: int, client_id: str) -> None:
    frame = write_follower_fetch(request, correlation_id=number, version=version, client_id=client_id)
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    header, message = decode_request(memoryview(frame)[4:])
    assert header == (ApiKey.FETCH, version, number, client_id)
    assert (message.replica_state.replica_id, message.replica_state.replica_epoch) == request[:2]
    assert (message.max_wait_ms, message.min_bytes, message.max_bytes) == request[2:5]
    assert (message.session_id, message.session_epoch) == request[5:7]
    assert (message.isolation_level, message.rack_id, message.cluster_id) == (0, "", None)
    read = [
        FetchEntry(
            topic.topic_id.bytes,
            row.partition,
            row.current_leader_epoch,
            row.fetch_offset,
            row.last_fetched_epoch,
            row.log_start_offset,
            row.partition_max_bytes,
        )
        for topic in message.topics
        for row in topic.partitions
    ]
    assert read == by_topic(request.entries)
    forgotten = [
        (topic.topic_id.bytes, number) for topic in message.forgotten_topics_data for number in topic.partitions
    ]
    assert sorted(forgotten) == sorted(request.forgotten)


def by_topic(entries: Sequence[FetchEntry]) -> list[FetchEntry]:
    """In the order in which their topics come first."""
    topics = dict.fromkeys(entry.topic for entry in entries)
    return [entry for topic in topics for entry in entries if entry.topic == topic]


@given(VERSIONS, REQUESTS)
def test_the_broker_reads_it_too(version: int, request: FollowerFetch) -> None:
    frame = memoryview(write_follower_fetch(request, correlation_id=1, version=version, client_id="f"))
    read = fetch_codec.read_fetch_request(frame, 4 + 8 + 2 + 1 + 1, version)
    assert read.replica_id == request.replica_id
    assert read.entries == by_topic(request.entries)


@given(VERSIONS, st.lists(st.tuples(TOPIC_IDS, fetch_answers), max_size=5), CODES, INT32)
def test_an_answer_of_a_broker_is_read(
    version: int, rows: list[tuple[bytes, fetch_codec.FetchAnswer]], error: int, session_id: int
) -> None:
    answers = [answer._replace(topic=topic_id) for topic_id, answer in rows]
    parts = fetch_codec.write_fetch_response(99, version, answers, error_code=error, session_id=session_id)
    frame = memoryview(b"".join(part.data if isinstance(part, Bytes) else bytes(part) for part in parts))[4:]  # type: ignore[arg-type]
    assert read_correlation_id(frame) == 99
    fetched = read_fetched(frame)
    assert (fetched.error_code, fetched.session_id) == (error, session_id)
    assert fetched.partitions == [
        FetchedPartition(
            a.topic,  # type: ignore[arg-type]
            a.partition,
            a.error_code,
            a.high_watermark,
            a.log_start_offset,
            a.diverging_epoch,
            memoryview(a.records.data) if isinstance(a.records, Bytes) else None,
        )
        for a in answers
    ]


def test_records_are_a_view_of_the_frame() -> None:
    answer = fetch_codec.FetchAnswer(b"t" * 16, 3, records=Bytes(b"batch"))  # type: ignore[arg-type]
    parts = fetch_codec.write_fetch_response(1, 18, [answer])
    buffer = bytearray(b"".join(part.data if isinstance(part, Bytes) else bytes(part) for part in parts))  # type: ignore[arg-type]
    records = read_fetched(memoryview(buffer)[4:]).partitions[0].records
    assert records is not None
    assert records.obj is buffer
    assert bytes(records) == b"batch"


@given(VERSIONS, st.integers(0, 50), st.integers(0, 50))
def test_fields_of_other_leaders_are_passed_over(version: int, epoch: int, end: int) -> None:
    """Leader, snapshot and endpoints, which Strandline does not send, and a diverging epoch among them."""
    row = fetch.PartitionData(
        partition_index=4,
        high_watermark=9,
        log_start_offset=2,
        diverging_epoch=fetch.EpochEndOffset(epoch=epoch, end_offset=end),
        current_leader=fetch.LeaderIdAndEpoch(leader_id=2, leader_epoch=7),
        aborted_transactions=[fetch.AbortedTransaction(producer_id=1, first_offset=2)],
        records=None,
    )
    endpoints = [fetch.NodeEndpoint(node_id=2, host="h", port=1)] if version >= 16 else []
    response = fetch.FetchResponse(
        session_id=5,
        responses=[fetch.FetchableTopicResponse(partitions=[row])],
        node_endpoints=endpoints,
    )
    fetched = read_fetched(memoryview(encode_response(ApiKey.FETCH, version, 1, response)))
    assert fetched.partitions == [FetchedPartition(bytes(16), 4, 0, 9, 2, (epoch, end), None)]


@given(st.lists(st.tuples(TOPIC_IDS, fetch_answers), min_size=1, max_size=3), st.data())
def test_an_answer_that_is_cut_is_malformed_or_shorter(
    rows: list[tuple[bytes, fetch_codec.FetchAnswer]], data: st.DataObject
) -> None:
    answers = [answer._replace(topic=topic_id) for topic_id, answer in rows]
    parts = fetch_codec.write_fetch_response(99, 18, answers)
    frame = memoryview(b"".join(part.data if isinstance(part, Bytes) else bytes(part) for part in parts))[4:]  # type: ignore[arg-type]
    cut = frame[: data.draw(st.integers(0, len(frame) - 1))]
    with pytest.raises(MalformedRequest):
        read_fetched(cut)


@pytest.mark.parametrize("size", [0, 3, 40])
def test_garbage_is_malformed(size: int) -> None:
    garbage = memoryview(b"\xff" * size)
    with pytest.raises(MalformedRequest):
        read_fetched(garbage)
    if size < 4:
        with pytest.raises(MalformedRequest):
            read_correlation_id(garbage)
