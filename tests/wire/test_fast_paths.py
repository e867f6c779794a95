"""The hand-written codecs of Produce and Fetch say the same as the generated ones, at every version."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.wire import fetch_codec, produce_codec
from strandline.wire.api import ApiKey
from strandline.wire.messages import fetch, produce
from strandline.wire.primitives import MAX_ELEMENTS, MalformedRequest
from strandline.wire.registry import decode_response, encode_request, read_request_header

PRODUCE_VERSIONS = st.integers(produce_codec.MIN_VERSION, produce_codec.MAX_VERSION)
FETCH_VERSIONS = st.integers(fetch_codec.MIN_VERSION, fetch_codec.MAX_VERSION)
NAMES = st.text("abcdefgh.-_é", min_size=1, max_size=12)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
CODES = st.integers(-1, 133)
IDS = st.uuids()


def body_of(api: ApiKey, version: int, message: object) -> tuple[memoryview, int]:
    frame = memoryview(encode_request(api, version, 7, "client", message))
    return frame, read_request_header(frame)[1]


produce_requests = st.builds(
    produce.ProduceRequest,
    transactional_id=st.none() | NAMES,
    acks=st.integers(-1, 1),
    timeout_ms=INT32,
    topic_data=st.lists(
        st.builds(
            produce.TopicProduceData,
            name=NAMES,
            topic_id=IDS,
            partition_data=st.lists(
                st.builds(
                    produce.PartitionProduceData,
                    index=INT32,
                    records=st.none() | st.binary(max_size=300),
                ),
                max_size=3,
            ),
        ),
        max_size=3,
    ),
)


def topic_key(name: str, topic_id: UUID, version: int) -> str | bytes:
    return topic_id.bytes if version >= 13 else name


@given(PRODUCE_VERSIONS, produce_requests)
def test_produce_requests_are_read_alike(version: int, message: produce.ProduceRequest) -> None:
    frame, position = body_of(ApiKey.PRODUCE, version, message)
    request = produce_codec.read_produce_request(frame, position, version)
    assert (request.transactional_id, request.acks, request.timeout_ms) == (
        message.transactional_id,
        message.acks,
        message.timeout_ms,
    )
    assert [
        (entry.topic, entry.partition, None if entry.records is None else bytes(entry.records))
        for entry in request.entries
    ] == [
        (topic_key(topic.name, topic.topic_id, version), data.index, data.records)
        for topic in message.topic_data
        for data in topic.partition_data
    ]


@given(PRODUCE_VERSIONS, produce_requests, st.data())
def test_a_cut_produce_request_is_malformed_or_shorter(
    version: int, message: produce.ProduceRequest, data: st.DataObject
) -> None:
    frame, position = body_of(ApiKey.PRODUCE, version, message)
    cut = frame[: data.draw(st.integers(position, len(frame)))]
    try:
        request = produce_codec.read_produce_request(cut, position, version)
    except MalformedRequest:
        return
    assert len(request.entries) <= sum(len(topic.partition_data) for topic in message.topic_data)


produce_answers = st.builds(
    produce_codec.ProduceAnswer,
    error_code=CODES,
    base_offset=INT64,
    log_append_time_ms=INT64,
    log_start_offset=INT64,
    error_message=st.none() | st.text(max_size=20),
    record_errors=st.lists(st.tuples(INT32, st.text(max_size=20)), max_size=2),
)


@given(PRODUCE_VERSIONS, st.lists(st.tuples(NAMES, IDS, INT32, produce_answers), max_size=5), INT32)
def test_produce_responses_are_written_alike(
    version: int, rows: list[tuple[str, UUID, int, produce_codec.ProduceAnswer]], correlation_id: int
) -> None:
    entries = [
        produce_codec.ProduceEntry(topic_key(name, topic_id, version), index, None) for name, topic_id, index, _ in rows
    ]
    answers = [answer for *_, answer in rows]
    frame = memoryview(produce_codec.write_produce_response(correlation_id, version, entries, answers))
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    decoded_id, response = decode_response(ApiKey.PRODUCE, version, frame[4:])
    assert decoded_id == correlation_id
    got = [
        (
            topic_key(topic.name, topic.topic_id, version),
            row.index,
            row.error_code,
            row.base_offset,
            row.error_message,
            [(e.batch_index, e.batch_index_error_message) for e in row.record_errors],
        )
        for topic in response.responses
        for row in topic.partition_responses
    ]
    assert got == [
        (
            entry.topic,
            entry.partition,
            a.error_code,
            a.base_offset,
            a.error_message if version >= 8 else None,
            a.record_errors if version >= 8 else [],
        )
        for entry, a in zip(entries, answers, strict=True)
    ]


fetch_requests = st.builds(
    fetch.FetchRequest,
    replica_id=INT32,
    max_wait_ms=INT32,
    min_bytes=INT32,
    max_bytes=INT32,
    isolation_level=st.integers(0, 1),
    session_id=INT32,
    session_epoch=INT32,
    topics=st.lists(
        st.builds(
            fetch.FetchTopic,
            topic=NAMES,
            topic_id=IDS,
            partitions=st.lists(
                st.builds(
                    fetch.FetchPartition,
                    partition=INT32,
                    current_leader_epoch=INT32,
                    fetch_offset=INT64,
                    last_fetched_epoch=INT32,
                    log_start_offset=INT64,
                    partition_max_bytes=INT32,
                    replica_directory_id=IDS,
                ),
                max_size=3,
            ),
        ),
        max_size=3,
    ),
    forgotten_topics_data=st.lists(
        st.builds(fetch.ForgottenTopic, topic=NAMES, topic_id=IDS, partitions=st.lists(INT32, max_size=3)), max_size=2
    ),
    rack_id=st.text("abc", max_size=4),
)


@given(FETCH_VERSIONS, fetch_requests, INT32, INT64)
def test_fetch_requests_are_read_alike(
    version: int, message: fetch.FetchRequest, replica: int, replica_epoch: int
) -> None:
    message.replica_id = replica
    message.replica_state = fetch.ReplicaState(replica_id=replica, replica_epoch=replica_epoch)
    if version < 7:
        message.session_id, message.session_epoch, message.forgotten_topics_data = 0, -1, []
    frame, position = body_of(ApiKey.FETCH, version, message)
    request = fetch_codec.read_fetch_request(frame, position, version)
    assert request == fetch_codec.FetchRequest(
        replica,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        [
            fetch_codec.FetchEntry(
                topic_key(topic.topic, topic.topic_id, version),
                p.partition,
                p.current_leader_epoch if version >= 9 else -1,
                p.fetch_offset,
                p.last_fetched_epoch if version >= 12 else -1,
                p.log_start_offset if version >= 5 else -1,
                p.partition_max_bytes,
            )
            for topic in message.topics
            for p in topic.partitions
        ],
        [
            (topic_key(topic.topic, topic.topic_id, version), number)
            for topic in message.forgotten_topics_data
            for number in topic.partitions
        ],
        message.rack_id if version >= 11 else "",
        replica_epoch if version >= 15 else -1,
    )


@given(FETCH_VERSIONS, fetch_requests, st.data())
def test_a_cut_fetch_request_is_malformed_or_shorter(
    version: int, message: fetch.FetchRequest, data: st.DataObject
) -> None:
    frame, position = body_of(ApiKey.FETCH, version, message)
    cut = frame[: data.draw(st.integers(position, len(frame)))]
    try:
        request = fetch_codec.read_fetch_request(cut, position, version)
    except MalformedRequest:
        return
    assert len(request.entries) <= sum(len(topic.partitions) for topic in message.topics)


@dataclass(slots=True)
class Bytes:
    """Records that are in memory."""

    data: bytes

    @property
    def length(self) -> int:
        return len(self.data)


fetch_answers = st.builds(
    fetch_codec.FetchAnswer,
    topic=st.just(""),
    partition=INT32,
    error_code=CODES,
    high_watermark=INT64,
    last_stable_offset=INT64,
    log_start_offset=INT64,
    aborted=st.none() | st.lists(st.tuples(INT64, INT64), max_size=3),
    records=st.none() | st.binary(min_size=1, max_size=400).map(Bytes),
    diverging_epoch=st.none() | st.tuples(st.integers(0, 99), st.integers(0, 99)),
)


@given(FETCH_VERSIONS, NAMES, IDS, fetch_answers, st.binary(min_size=1, max_size=400), INT32)
def test_a_fetch_response_of_one_partition_is_the_same_in_two_halves(
    version: int, name: str, topic_id: UUID, answer: fetch_codec.FetchAnswer, records: bytes, session_id: int
) -> None:
    answer = answer._replace(topic=topic_key(name, topic_id, version), records=Bytes(records))  # type: ignore[arg-type]
    parts = fetch_codec.write_fetch_response(99, version, [answer], session_id=session_id)
    whole = b"".join(part.data if isinstance(part, Bytes) else bytes(part) for part in parts)  # type: ignore[arg-type]
    body = fetch_codec.write_fetch_body(answer, records, version)
    assert fetch_codec.write_fetch_head(99, version, session_id, len(body)) + body == whole


@given(FETCH_VERSIONS, st.lists(st.tuples(NAMES, IDS, fetch_answers), max_size=5), CODES, INT32)
def test_fetch_responses_are_written_alike(
    version: int, rows: list[tuple[str, UUID, fetch_codec.FetchAnswer]], error: int, session_id: int
) -> None:
    answers = [answer._replace(topic=topic_key(name, topic_id, version)) for name, topic_id, answer in rows]
    parts = fetch_codec.write_fetch_response(99, version, answers, error_code=error, session_id=session_id)
    frame = memoryview(b"".join(part.data if isinstance(part, Bytes) else bytes(part) for part in parts))  # type: ignore[arg-type]
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    decoded_id, response = decode_response(ApiKey.FETCH, version, frame[4:])
    assert decoded_id == 99
    assert (response.error_code, response.session_id) == ((error, session_id) if version >= 7 else (0, 0))
    got = [
        (
            topic_key(topic.topic, topic.topic_id, version),
            p.partition_index,
            p.error_code,
            p.high_watermark,
            p.last_stable_offset,
            p.log_start_offset,
            None
            if p.aborted_transactions is None
            else [(t.producer_id, t.first_offset) for t in p.aborted_transactions],
            p.records or b"",
            (p.diverging_epoch.epoch, p.diverging_epoch.end_offset),
        )
        for topic in response.responses
        for p in topic.partitions
    ]
    assert got == [
        (
            a.topic,
            a.partition,
            a.error_code,
            a.high_watermark,
            a.last_stable_offset,
            a.log_start_offset if version >= 5 else -1,
            a.aborted,
            a.records.data if isinstance(a.records, Bytes) else b"",
            a.diverging_epoch if a.diverging_epoch is not None and version >= 12 else (-1, -1),
        )
        for a in answers
    ]


@pytest.mark.parametrize("version", range(fetch_codec.MIN_VERSION, fetch_codec.MAX_VERSION + 1))
def test_garbage_is_malformed(version: int) -> None:
    with pytest.raises(MalformedRequest):
        fetch_codec.read_fetch_request(memoryview(b"\xff" * 40), 0, version)


def test_a_request_for_more_partitions_than_any_cluster_has_is_malformed() -> None:
    partitions = [fetch.FetchPartition(partition=n) for n in range(MAX_ELEMENTS + 1)]
    frame, position = body_of(
        ApiKey.FETCH, 12, fetch.FetchRequest(topics=[fetch.FetchTopic(topic="t", partitions=partitions)])
    )
    with pytest.raises(MalformedRequest, match="too many"):
        fetch_codec.read_fetch_request(frame, position, 12)
    data = [produce.PartitionProduceData(index=n) for n in range(MAX_ELEMENTS + 1)]
    frame, position = body_of(
        ApiKey.PRODUCE, 9, produce.ProduceRequest(topic_data=[produce.TopicProduceData(name="t", partition_data=data)])
    )
    with pytest.raises(MalformedRequest, match="too many"):
        produce_codec.read_produce_request(frame, position, 9)
