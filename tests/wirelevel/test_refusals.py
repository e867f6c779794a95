"""Bad input gets Kafka's error code and a message, and changes nothing."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import crc32c
import pytest

from strandline.records.batch import HEADER_SIZE
from strandline.records.codecs import Codec
from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.heartbeat import HeartbeatRequest
from strandline.wire.messages.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.wire.messages.sync_group import SyncGroupRequest
from strandline.wire.registry import encode_request
from tests.broker import Broker
from tests.waiting import wait_until
from tests.wirelevel.raw import (
    FETCH_VERSION,
    RawConnection,
    batch,
    connected,
    create_topic,
    end_offset,
    fetch_request,
    produce,
    produce_request,
)

CRC_AT, MAGIC_AT, ATTRIBUTES_AT, COUNT_AT = 17, 16, 21, 57


@contextmanager
def unchanged(connection: RawConnection, topic: str) -> Iterator[None]:
    """Inside the block nothing may be appended, and afterwards appending still works."""
    before = end_offset(connection, topic)
    yield
    assert end_offset(connection, topic) == before
    assert produce(connection, topic, batch(b"good"))[:2] == (0, before[1])


@pytest.fixture
def topic(connection: RawConnection, unique_name: Callable[[], str]) -> str:
    name = unique_name()
    create_topic(connection, name)
    assert produce(connection, name, batch(b"first", b"second"))[:2] == (0, 0)
    return name


def new_producer_id(connection: RawConnection) -> int:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    response = connection.call(ApiKey.INIT_PRODUCER_ID, 4, request)
    assert response.error_code == 0
    producer_id: int = response.producer_id
    return producer_id


def with_byte(data: bytes, position: int, value: int) -> bytes:
    return data[:position] + bytes([value]) + data[position + 1 :]


def with_new_crc(data: bytes) -> bytes:
    return data[:CRC_AT] + struct.pack(">I", crc32c.crc32c(data[ATTRIBUTES_AT:])) + data[ATTRIBUTES_AT:]


@pytest.mark.parametrize("position", [CRC_AT, ATTRIBUTES_AT + 1, HEADER_SIZE + 3])
def test_a_flipped_bit_is_a_corrupt_message(connection: RawConnection, topic: str, position: int) -> None:
    good = batch(b"to be damaged", b"by one bit")
    with unchanged(connection, topic):
        damaged = with_byte(good, position, good[position] ^ 0x40)
        assert produce(connection, topic, damaged)[0] == ErrorCode.CORRUPT_MESSAGE


def test_a_batch_cut_short_is_refused(connection: RawConnection, topic: str) -> None:
    good = batch(b"to be cut", b"short")
    with unchanged(connection, topic):
        for length in (len(good) - 1, HEADER_SIZE, 30):
            code = produce(connection, topic, good[:length])[0]
            assert code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD), length


@pytest.mark.parametrize("version", [3, 8, 9, 12])
def test_a_request_cut_short_writes_nothing(
    broker: Broker, connection: RawConnection, topic: str, version: int
) -> None:
    whole = encode_request(ApiKey.PRODUCE, version, 1, "raw", produce_request(topic, batch(b"never to be seen")))
    with unchanged(connection, topic):
        for missing in (1, 2, 3, 20, 60):
            with connected(broker.bootstrap) as other:
                other.send_frame(whole[:-missing])
                other.wait_closed()


def test_records_that_do_not_match_the_header_are_invalid(connection: RawConnection, topic: str) -> None:
    lying_count = with_new_crc(batch(b"one", b"two")[:COUNT_AT] + struct.pack(">i", 3) + batch(b"one", b"two")[61:])
    with unchanged(connection, topic):
        assert produce(connection, topic, lying_count)[0] == ErrorCode.INVALID_RECORD


def test_two_batches_for_one_partition_are_refused(connection: RawConnection, topic: str) -> None:
    with unchanged(connection, topic):
        assert produce(connection, topic, batch(b"one") + batch(b"two"))[0] == ErrorCode.INVALID_RECORD


def test_old_record_formats_are_refused(connection: RawConnection, topic: str) -> None:
    with unchanged(connection, topic):
        code = produce(connection, topic, with_byte(batch(b"old"), MAGIC_AT, 1))[0]
        assert code in (ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)


def test_a_wrong_sequence_is_out_of_order(connection: RawConnection, topic: str) -> None:
    producer_id = new_producer_id(connection)

    def send(sequence: int, epoch: int = 0) -> tuple[int, int]:
        records = batch(b"a", b"b", producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        return produce(connection, topic, records)[:2]

    code, first = send(0)
    assert code == 0
    before = end_offset(connection, topic)
    assert send(4)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(1)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(0) == (0, first)  # a repeated batch gets the first answer again
    assert end_offset(connection, topic) == before
    assert send(2) == (0, first + 2)
    assert send(0, epoch=1) == (0, first + 4)
    assert send(4, epoch=0)[0] == ErrorCode.INVALID_PRODUCER_EPOCH
    assert end_offset(connection, topic) == (0, first + 6)


def test_the_last_five_batches_are_remembered(connection: RawConnection, topic: str) -> None:
    producer_id = new_producer_id(connection)

    def send(sequence: int) -> tuple[int, int]:
        records = batch(b"x", producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        return produce(connection, topic, records)[:2]

    offsets = [send(sequence)[1] for sequence in range(7)]
    assert [send(sequence) for sequence in range(2, 7)] == [(0, offset) for offset in offsets[2:]]
    # Older ones are forgotten: the broker can no longer say where they went, only that they are not new.
    assert send(1)[0] in (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)


def test_an_oversized_record_is_refused(connection: RawConnection, unique_name: Callable[[], str]) -> None:
    name = unique_name()
    create_topic(connection, name, max_message_bytes="1000")
    with unchanged(connection, name):
        assert produce(connection, name, batch(b"x" * 2000))[0] == ErrorCode.MESSAGE_TOO_LARGE


def test_timestamps_far_in_the_future_are_refused(connection: RawConnection, unique_name: Callable[[], str]) -> None:
    name = unique_name()
    create_topic(connection, name, message_timestamp_after_max_ms="1000", message_timestamp_before_max_ms="1000")
    code, _, message = produce(connection, name, batch(b"from another time"))
    assert code == ErrorCode.INVALID_TIMESTAMP
    assert message
    assert end_offset(connection, name) == (0, 0)


def test_a_codec_that_does_not_fit_the_bytes_is_refused(
    connection: RawConnection, unique_name: Callable[[], str]
) -> None:
    """The broker looks into a compressed batch only where it must: here to recompress it."""
    name = unique_name()
    create_topic(connection, name, compression_type="zstd")
    good = batch(b"not compressed at all")
    lying = with_new_crc(with_byte(good, ATTRIBUTES_AT + 1, Codec.GZIP))
    code = produce(connection, name, lying)[0]
    assert code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert end_offset(connection, name) == (0, 0)


@pytest.mark.parametrize("acks", [2, -2, 5])
def test_impossible_acks_are_refused(connection: RawConnection, topic: str, acks: int) -> None:
    with unchanged(connection, topic):
        assert produce(connection, topic, batch(b"x"), acks=acks)[0] == ErrorCode.INVALID_REQUIRED_ACKS


def test_unknown_topics_and_partitions(connection: RawConnection, topic: str) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(connection, "no-such-topic-at-all", batch(b"x"))[0] == unknown
    assert produce(connection, topic, batch(b"x"), partition=7)[0] == unknown
    assert end_offset(connection, "no-such-topic-at-all")[0] == unknown
    assert end_offset(connection, topic, partition=7)[0] == unknown
    fetched = connection.call(ApiKey.FETCH, FETCH_VERSION, fetch_request("no-such-topic-at-all", max_wait_ms=10_000))
    assert fetched.responses[0].partitions[0].error_code == unknown  # at once: an error does not wait

    asked = [MetadataRequestTopic(name="no-such-topic-at-all")]
    request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
    [answer] = connection.call(ApiKey.METADATA, 12, request).topics
    assert answer.error_code == unknown


def test_invalid_topic_names(connection: RawConnection) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="not a topic name!")], allow_auto_topic_creation=True)
    [answer] = connection.call(ApiKey.METADATA, 12, request).topics
    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_offsets_out_of_range(connection: RawConnection, topic: str) -> None:
    for offset in (99, -5):
        fetched = connection.call(ApiKey.FETCH, FETCH_VERSION, fetch_request(topic, offset, max_wait_ms=10_000))
        [answer] = fetched.responses[0].partitions
        assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(("epoch", "code"), [(99, ErrorCode.UNKNOWN_LEADER_EPOCH), (0, ErrorCode.NONE)])
def test_leader_epochs_are_checked(connection: RawConnection, topic: str, epoch: int, code: ErrorCode) -> None:
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000, current_leader_epoch=epoch)
    request = FetchRequest(max_bytes=1000, topics=[FetchTopic(topic=topic, partitions=[asked])])
    [answer] = connection.call(ApiKey.FETCH, FETCH_VERSION, request).responses[0].partitions
    assert answer.error_code == code


def test_fetch_sessions_that_do_not_exist(connection: RawConnection) -> None:
    request = FetchRequest(session_id=123_456, session_epoch=1)
    response = connection.call(ApiKey.FETCH, FETCH_VERSION, request)
    assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert response.responses == []


def join_request(group: str, member: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id=member,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\1\0\0\0\0\0\0\0\0")],
    )


def find_coordinator(connection: RawConnection, group: str) -> None:
    """As clients do first of all: it makes the topic that keeps the groups."""
    connection.call(ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(key_type=0, coordinator_keys=[group]))


def call_coordinator(connection: RawConnection, api_key: ApiKey, version: int, request: object) -> object:
    """Ask until the coordinator has loaded its groups."""
    starting = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)

    def answer() -> object | None:
        response = connection.call(api_key, version, request)
        return None if response.error_code in starting else response

    return wait_until(answer, what="the group coordinator")


def test_bad_group_members(connection: RawConnection, unique_name: Callable[[], str]) -> None:
    group = unique_name()
    find_coordinator(connection, group)

    def code(api_key: ApiKey, version: int, request: object) -> int:
        response = call_coordinator(connection, api_key, version, request)
        found: int = response.error_code  # type: ignore[attr-defined]
        return found

    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert code(ApiKey.JOIN_GROUP, 7, join_request(group, "nobody")) == unknown
    heartbeat = HeartbeatRequest(group_id=group, generation_id=1, member_id="nobody")
    assert code(ApiKey.HEARTBEAT, 4, heartbeat) == unknown
    sync = SyncGroupRequest(
        group_id=group, generation_id=1, member_id="nobody", protocol_type="consumer", protocol_name="range"
    )
    assert code(ApiKey.SYNC_GROUP, 5, sync) == unknown
    assert code(ApiKey.JOIN_GROUP, 7, join_request("")) == ErrorCode.INVALID_GROUP_ID
    short = join_request(group)
    short.session_timeout_ms = 1
    assert code(ApiKey.JOIN_GROUP, 7, short) == ErrorCode.INVALID_SESSION_TIMEOUT
    assert code(ApiKey.JOIN_GROUP, 7, join_request(group)) == ErrorCode.MEMBER_ID_REQUIRED


def test_offsets_of_a_stranger_are_not_committed(connection: RawConnection, topic: str) -> None:
    find_coordinator(connection, f"{topic}-group")
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    request = OffsetCommitRequest(
        group_id=f"{topic}-group",
        generation_id_or_member_epoch=3,
        member_id="nobody",
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )

    def settled() -> int | None:
        response = connection.call(ApiKey.OFFSET_COMMIT, 8, request)
        found: int = response.topics[0].partitions[0].error_code
        return None if found in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR) else found

    assert wait_until(settled, what="an answer") == ErrorCode.ILLEGAL_GENERATION
