"""Frames: order of answers, unknown versions, wrong lengths, meaningless bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from strandline.wire.api import ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.metadata import MetadataRequest
from strandline.wire.registry import encode_request
from tests.broker import Broker, BrokerProcess
from tests.waiting import wait_until
from tests.wirelevel.raw import (
    API_VERSIONS_VERSION,
    FETCH_VERSION,
    LENGTH,
    PRODUCE_VERSION,
    RawConnection,
    api_versions_request,
    batch,
    connected,
    create_topic,
    end_offset,
    fetch_request,
    produce_request,
)

METADATA_VERSION = 12
API_VERSIONS = encode_request(ApiKey.API_VERSIONS, API_VERSIONS_VERSION, 7, "raw", api_versions_request())


def test_answers_come_in_the_order_of_the_requests(connection: RawConnection, unique_name: Callable[[], str]) -> None:
    """Pipelining: nothing is read until everything is sent; a slow request holds up the answers behind it."""
    topic = unique_name()
    create_topic(connection, topic)
    sent: list[tuple[int, ApiKey, int]] = []

    def send(api_key: ApiKey, version: int, request: object) -> None:
        sent.append((connection.send(api_key, version, request), api_key, version))

    for number in range(40):
        send(ApiKey.API_VERSIONS, API_VERSIONS_VERSION, api_versions_request())
        send(ApiKey.PRODUCE, PRODUCE_VERSION, produce_request(topic, batch(b"%d" % number)))
        send(ApiKey.METADATA, METADATA_VERSION, MetadataRequest(topics=[]))
        if number % 10 == 0:  # nothing there yet to fetch: waits
            far = fetch_request(topic, number + 1, max_wait_ms=100, min_bytes=1_000_000)
            send(ApiKey.FETCH, FETCH_VERSION, far)
    received = [connection.receive(api_key, version) for _, api_key, version in sent]

    assert [correlation_id for correlation_id, _ in received] == [correlation_id for correlation_id, _, _ in sent]
    produced = [
        response.responses[0].partition_responses[0]
        for (_, response), (_, api_key, _) in zip(received, sent, strict=True)
        if api_key is ApiKey.PRODUCE
    ]
    assert [(one.error_code, one.base_offset) for one in produced] == [(0, offset) for offset in range(40)]


def test_a_frame_may_arrive_byte_by_byte(connection: RawConnection) -> None:
    for byte in LENGTH.pack(len(API_VERSIONS)) + API_VERSIONS:
        connection.send_bytes(bytes([byte]))
    correlation_id, response = connection.receive(ApiKey.API_VERSIONS, API_VERSIONS_VERSION)
    assert correlation_id == 7
    assert response.error_code == 0


def test_api_versions_that_are_too_new_are_answered_in_version_0(connection: RawConnection) -> None:
    header = struct.pack(">hhihB", ApiKey.API_VERSIONS, 99, 5, -1, 0)
    connection.send_frame(header + b"whatever version 99 may look like")
    correlation_id, response = connection.receive(ApiKey.API_VERSIONS, 0)
    assert correlation_id == 5
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    offered = {api.api_key: api.max_version for api in response.api_keys}
    assert offered[ApiKey.API_VERSIONS] >= 4
    assert connection.is_answered()  # the client may now ask again, on the same connection


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_every_version_of_api_versions_is_answered(connection: RawConnection, version: int) -> None:
    response = connection.call(ApiKey.API_VERSIONS, version, api_versions_request())
    assert response.error_code == 0
    offered = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
    assert offered[ApiKey.PRODUCE][0] == 0  # for old librdkafka
    assert offered[ApiKey.PRODUCE][1] >= 13
    assert offered[ApiKey.FETCH][0] == 4


def test_unknown_software_names_are_refused(connection: RawConnection) -> None:
    request = api_versions_request()
    request.client_software_name = "spaces are not allowed"
    response = connection.call(ApiKey.API_VERSIONS, 3, request)
    assert response.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack(">hhih", 999, 0, 1, -1),
        struct.pack(">hhih", -1, 0, 1, -1),
        struct.pack(">hhih", ApiKey.METADATA, 99, 1, -1) + b"\0" * 20,
        struct.pack(">hhih", ApiKey.METADATA, -1, 1, -1) + b"\0" * 20,
        struct.pack(">hhih", ApiKey.PRODUCE, 2, 1, -1) + struct.pack(">hii", 1, 1000, 0),
        struct.pack(">hhih", ApiKey.FETCH, 3, 1, -1) + b"\0" * 20,
        b"",
        b"\0",
        struct.pack(">hhi", ApiKey.API_VERSIONS, 0, 1),
        struct.pack(">hhih", ApiKey.METADATA, 1, 1, 500) + b"short client id",
        struct.pack(">hhih", ApiKey.METADATA, 1, 1, -1) + struct.pack(">i", 1_000_000_000),
        encode_request(ApiKey.METADATA, METADATA_VERSION, 1, "raw", MetadataRequest(topics=None))[:-2],
    ],
    ids=[
        "unknown-api", "negative-api", "too-new", "negative-version", "produce-2", "fetch-3", "empty", "one-byte",
        "no-client-id", "lying-client-id", "lying-array", "cut-short",
    ],
)  # fmt: skip
def test_a_request_of_an_unknown_version_closes_its_connection(
    broker: Broker, connection: RawConnection, frame: bytes
) -> None:
    with connected(broker.bootstrap) as other:
        assert other.is_answered()
        connection.send_frame(frame)
        connection.wait_closed()
        assert other.is_answered()


@pytest.mark.parametrize("length", [0x7FFFFFFF, 2_000_000_000, 104_857_601, -1, -2_147_483_648])
def test_an_impossible_length_closes_the_connection_at_once(
    broker: Broker, connection: RawConnection, length: int
) -> None:
    connection.send_bytes(LENGTH.pack(length))  # and not one byte more
    connection.wait_closed()
    with connected(broker.bootstrap) as other:
        assert other.is_answered()


@pytest.mark.parametrize(
    "garbage",
    [b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\xff" * 64],
)
def test_garbage_costs_one_line_in_the_log(own_broker: BrokerProcess, garbage: bytes) -> None:
    with connected(own_broker.bootstrap) as neighbour, connected(own_broker.bootstrap) as connection:
        assert neighbour.is_answered()
        before = own_broker.log_text.count(" WARNING ")
        connection.send_bytes(garbage)
        connection.wait_closed()
        wait_until(lambda: own_broker.log_text.count(" WARNING ") > before, what="a line in the log")
        assert neighbour.is_answered()
        assert own_broker.log_text.count(" WARNING ") == before + 1, own_broker.log_text
        assert "Traceback" not in own_broker.log_text


def test_half_a_frame_and_silence_do_not_disturb_other_connections(broker: Broker) -> None:
    """Half-open connections: some never send, some stop in the middle of a frame, some go away."""
    silent = [RawConnection(broker.bootstrap) for _ in range(30)]
    try:
        for number, connection in enumerate(silent):
            connection.send_bytes((LENGTH.pack(len(API_VERSIONS)) + API_VERSIONS)[: number % 20])
        with connected(broker.bootstrap) as other:
            for _ in range(20):
                assert other.is_answered()
        for connection in silent[:15]:
            connection.close()
        for number, connection in enumerate(silent[15:], start=15):
            connection.send_bytes((LENGTH.pack(len(API_VERSIONS)) + API_VERSIONS)[number % 20 :])
            assert connection.receive(ApiKey.API_VERSIONS, API_VERSIONS_VERSION)[0] == 7
    finally:
        for connection in silent:
            connection.close()


def test_acks_0_has_no_answer(connection: RawConnection, unique_name: Callable[[], str]) -> None:
    topic = unique_name()
    create_topic(connection, topic)
    for number in range(5):
        request = produce_request(topic, batch(b"%d" % number), acks=0)
        connection.send(ApiKey.PRODUCE, PRODUCE_VERSION, request)
    wait_until(lambda: end_offset(connection, topic) == (0, 5), what="the records that were sent with acks=0")
    fetched = connection.call(ApiKey.FETCH, FETCH_VERSION, fetch_request(topic, 4, max_wait_ms=5000))
    assert fetched.responses[0].partitions[0].records


def test_a_failed_produce_with_acks_0_closes_the_connection(connection: RawConnection) -> None:
    request = produce_request("no-such-topic-at-all", batch(b"x"), acks=0)
    connection.send(ApiKey.PRODUCE, PRODUCE_VERSION, request)
    connection.wait_closed()
