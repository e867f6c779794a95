"""Fetch over the wire: long polls, sessions, limits and fairness, at every version."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from strandline.records import Record, build_batch, iter_headers, read_records
from strandline.wire.api import ApiKey
from strandline.wire.client import Client
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker import Broker
from tests.moments import T0
from tests.server.handlers.conftest import create_topic

BY_NAME = 12


def put(client: Client, topic: str, partition: int, *values: bytes) -> int:
    """One batch; its first offset."""
    batch = bytes(build_batch([Record(i, T0, None, value) for i, value in enumerate(values)]))
    data = PartitionProduceData(index=partition, records=batch)
    request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[TopicProduceData(name=topic, partition_data=[data])])
    answer = client.request(ApiKey.PRODUCE, request, version=9).responses[0].partition_responses[0]
    assert answer.error_code == 0
    offset: int = answer.base_offset
    return offset


def wanted(partition: int, offset: int = 0, *, max_bytes: int = 1 << 20, epoch: int = -1) -> FetchPartition:
    return FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes, current_leader_epoch=epoch
    )


def fetch(
    client: Client,
    topic: str,
    *partitions: FetchPartition,
    wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 26,
    session: tuple[int, int] = (0, -1),
    forget: tuple[int, ...] = (),
    version: int = BY_NAME,
) -> FetchResponse:
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session[0],
        session_epoch=session[1],
        topics=[FetchTopic(topic=topic, partitions=list(partitions))] if partitions else [],
        forgotten_topics_data=[ForgottenTopic(topic=topic, partitions=list(forget))] if forget else [],
    )
    response = client.request(ApiKey.FETCH, request, version=version)
    assert isinstance(response, FetchResponse)
    return response


def values(data: bytes | None) -> list[bytes]:
    """The values of all whole batches."""
    found = []
    for position, header in iter_headers(data or b""):
        for record in read_records((data or b"")[position : position + header.size]):
            assert record.value is not None
            found.append(record.value)
    return found


def rows(response: FetchResponse) -> dict[int, list[bytes]]:
    """What was answered, by partition."""
    return {p.partition_index: values(p.records) for topic in response.responses for p in topic.partitions}


@pytest.fixture
def second(broker: Broker) -> Iterator[Client]:
    host, port = broker.bootstrap.rsplit(":", 1)
    with Client.connect(host, int(port)) as connected:
        yield connected


def test_every_version_gets_the_records(client: Client, topic: str) -> None:
    put(client, topic, 0, b"a", b"b")
    metadata = client.request(ApiKey.METADATA, MetadataRequest(topics=[MetadataRequestTopic(name=topic)]))
    for version in range(4, 19):
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=[FetchTopic(topic=topic, topic_id=metadata.topics[0].topic_id, partitions=[wanted(0)])],
        )
        response = client.request(ApiKey.FETCH, request, version=version)
        assert rows(response) == {0: [b"a", b"b"]}, version
        assert response.responses[0].partitions[0].high_watermark == 2


def test_a_long_poll_ends_with_the_first_record(client: Client, second: Client, topic: str) -> None:
    found: list[FetchResponse] = []
    reader = threading.Thread(
        target=lambda: found.append(fetch(client, topic, wanted(0), wanted(1), wanted(2), wait_ms=60_000))
    )
    reader.start()
    put(second, topic, 1, b"woken")
    reader.join(30)
    assert not reader.is_alive()
    assert rows(found[0])[1] == [b"woken"]


def test_a_long_poll_waits_for_min_bytes(client: Client, second: Client, topic: str) -> None:
    found: list[FetchResponse] = []
    reader = threading.Thread(
        target=lambda: found.append(fetch(client, topic, wanted(0), wanted(1), wait_ms=60_000, min_bytes=3000))
    )
    reader.start()
    for _ in range(2):
        put(second, topic, 0, b"x" * 1000)
    assert reader.is_alive()
    assert not found
    put(second, topic, 1, b"y" * 1000)
    reader.join(30)
    assert not reader.is_alive()
    assert sum(len(batch) for batch in rows(found[0]).values()) == 3


def test_a_long_poll_ends_with_its_time(client: Client, topic: str) -> None:
    response = fetch(client, topic, wanted(0), wait_ms=50)
    assert rows(response) == {0: []}
    assert response.responses[0].partitions[0].error_code == 0


def test_a_long_poll_ends_when_its_topic_is_deleted(
    client: Client, second: Client, new_name: Callable[[], str]
) -> None:
    from strandline.wire.messages.delete_topics import DeleteTopicsRequest

    topic = create_topic(client, new_name())
    found: list[FetchResponse] = []
    reader = threading.Thread(target=lambda: found.append(fetch(client, topic, wanted(0), wait_ms=60_000)))
    reader.start()
    second.request(ApiKey.DELETE_TOPICS, DeleteTopicsRequest(topic_names=[topic], timeout_ms=5000), version=5)
    reader.join(30)
    assert not reader.is_alive()
    assert found[0].responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_first_batch_comes_whole_and_limits_bound_the_rest(client: Client, topic: str) -> None:
    for partition in range(3):
        for _ in range(4):
            put(client, topic, partition, b"v" * 1000)
    small = fetch(client, topic, *(wanted(p, max_bytes=10) for p in range(3)), max_bytes=10)
    assert [len(found) for found in rows(small).values()] == [1, 0, 0]
    per_partition = fetch(client, topic, *(wanted(p, max_bytes=2200) for p in range(3)))
    assert [len(found) for found in rows(per_partition).values()] == [2, 2, 2]
    whole = fetch(client, topic, *(wanted(p) for p in range(3)), max_bytes=5500)
    assert len(rows(whole)[0]) == 4
    assert sum(len(found) for found in rows(whole).values()) <= 5


def test_a_fetch_inside_a_batch_gives_that_batch(client: Client, topic: str) -> None:
    put(client, topic, 0, b"a", b"b", b"c")
    assert rows(fetch(client, topic, wanted(0, 2))) == {0: [b"a", b"b", b"c"]}


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        (wanted(0, 99), ErrorCode.OFFSET_OUT_OF_RANGE),
        (wanted(0, -1), ErrorCode.OFFSET_OUT_OF_RANGE),
        (wanted(77), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (wanted(0, epoch=55), ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_errors_are_answered_at_once_and_for_their_partition_only(
    client: Client, topic: str, entry: FetchPartition, error: ErrorCode
) -> None:
    put(client, topic, 1, b"fine")
    response = fetch(client, topic, entry, wanted(1), wait_ms=60_000, min_bytes=1 << 20)
    by_partition = {p.partition_index: p for p in response.responses[0].partitions}
    assert by_partition[entry.partition].error_code == error
    assert values(by_partition[1].records) == [b"fine"]


def test_a_session_names_only_what_changed(client: Client, second: Client, topic: str) -> None:
    first = fetch(client, topic, wanted(0), wanted(1), wanted(2), session=(0, 0))
    assert sorted(rows(first)) == [0, 1, 2]
    session = first.session_id
    assert session > 0
    put(second, topic, 1, b"news")
    assert rows(fetch(client, topic, session=(session, 1), wait_ms=60_000)) == {1: [b"news"]}
    assert rows(fetch(client, topic, wanted(1, 1), session=(session, 2))) == {}
    put(second, topic, 1, b"more")
    put(second, topic, 2, b"other")
    answer = rows(fetch(client, topic, session=(session, 3), wait_ms=60_000))
    assert answer == {1: [b"more"], 2: [b"other"]}
    assert rows(fetch(client, topic, wanted(1, 2), wanted(2, 1), session=(session, 4), forget=(2,))) == {}
    put(second, topic, 2, b"not asked for")
    put(second, topic, 0, b"asked for")
    assert rows(fetch(client, topic, session=(session, 5), wait_ms=60_000)) == {0: [b"asked for"]}


def test_a_session_reports_deleted_records_and_moved_starts(client: Client, second: Client, topic: str) -> None:
    from strandline.wire.messages.delete_records import (
        DeleteRecordsPartition,
        DeleteRecordsRequest,
        DeleteRecordsTopic,
    )

    put(second, topic, 0, b"a", b"b")
    session = fetch(client, topic, wanted(0, 2), wanted(1), session=(0, 0)).session_id
    rows_to_go = [DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=1)])]
    second.request(ApiKey.DELETE_RECORDS, DeleteRecordsRequest(topics=rows_to_go, timeout_ms=5000))
    response = fetch(client, topic, session=(session, 1))
    assert response.responses[0].partitions[0].log_start_offset == 1


@pytest.mark.parametrize(
    ("session", "error"),
    [((987_654_321, 1), ErrorCode.FETCH_SESSION_ID_NOT_FOUND), ((None, 9), ErrorCode.INVALID_FETCH_SESSION_EPOCH)],
)
def test_wrong_sessions_are_refused_as_a_whole(
    client: Client, topic: str, session: tuple[int | None, int], error: ErrorCode
) -> None:
    own = fetch(client, topic, wanted(0), session=(0, 0)).session_id
    response = fetch(client, topic, session=(own if session[0] is None else session[0], session[1]))
    assert response.error_code == error
    assert response.responses == []


def test_small_responses_serve_every_partition_in_turn(client: Client, second: Client, topic: str) -> None:
    """Fairness: with room for one batch at a time, no partition of a session starves."""
    for partition in range(3):
        for number in range(3):
            put(second, topic, partition, b"%d.%d" % (partition, number))
    session, epoch, offsets = 0, 0, {0: 0, 1: 0, 2: 0}
    served: list[int] = []
    entries = [wanted(p) for p in range(3)]
    for _ in range(9):
        response = fetch(client, topic, *entries, session=(session, epoch), max_bytes=1)
        session, epoch = response.session_id, epoch + 1
        (partition,) = [p for p, found in rows(response).items() if found]
        served.append(partition)
        offsets[partition] += 1
        entries = [wanted(partition, offsets[partition])]
    assert offsets == {0: 3, 1: 3, 2: 3}
    assert sorted(served[:3]) == [0, 1, 2]
