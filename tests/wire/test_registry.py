"""Headers, unknown APIs, and messages that change with their version."""

from __future__ import annotations

import importlib
import struct
from uuid import UUID

import pytest

from strandline.wire.api import API_VERSIONS, KNOWN_APIS, ApiKey
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from strandline.wire.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from strandline.wire.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from strandline.wire.messages.fetch import FetchableTopicResponse, FetchResponse, LeaderIdAndEpoch, PartitionData
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.primitives import MalformedRequest
from strandline.wire.registry import (
    UnsupportedApi,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    read_request,
    read_request_header,
    response_frame,
    unsupported_api_versions,
)


@pytest.mark.parametrize("version", range(KNOWN_APIS[ApiKey.METADATA].min, KNOWN_APIS[ApiKey.METADATA].max + 1))
@pytest.mark.parametrize("client_id", [None, "", "me"])
def test_a_header_is_read_as_it_was_written(version: int, client_id: str | None) -> None:
    frame = encode_request(ApiKey.METADATA, version, 42, client_id, MetadataRequest())
    header, message = decode_request(memoryview(frame))
    assert header == (ApiKey.METADATA, version, 42, client_id)
    assert message == MetadataRequest()


@pytest.mark.parametrize(("api_key", "version"), [(4711, 0), (-1, 0), (3, 99), (3, -1), (18, 99), (0, 2)])
def test_an_unknown_api_or_version_says_which(api_key: int, version: int) -> None:
    with pytest.raises(UnsupportedApi, match=f"API {api_key} version {version}") as caught:
        read_request_header(memoryview(struct.pack(">hhi", api_key, version, 5)))
    assert caught.value.header.correlation_id == 5


@pytest.mark.parametrize("length", range(10))
def test_a_header_that_ends_early_is_malformed(length: int) -> None:
    frame = encode_request(ApiKey.METADATA, 1, 42, "me", MetadataRequest())
    with pytest.raises(MalformedRequest):
        read_request_header(memoryview(frame)[:length])


def test_a_response_header_that_ends_early_is_malformed() -> None:
    with pytest.raises(MalformedRequest):
        decode_response(ApiKey.METADATA, 12, memoryview(b"\x00\x00\x00"))


@pytest.mark.parametrize("api_key", KNOWN_APIS, ids=lambda key: key.name)
def test_a_server_reads_and_writes_as_everybody_does(api_key: ApiKey) -> None:
    module = importlib.import_module(f"strandline.wire.messages.{api_key.name.lower()}")
    kind = "".join(part.capitalize() for part in api_key.name.split("_"))
    for version in range(KNOWN_APIS[api_key].min, KNOWN_APIS[api_key].max + 1):
        frame = memoryview(encode_request(api_key, version, 42, "me", getattr(module, f"{kind}Request")()))
        header, message = decode_request(frame)
        assert read_request(frame, int(api_key), version) == (header.client_id, message)
        response = getattr(module, f"{kind}Response")()
        payload = encode_response(api_key, version, 42, response)
        assert response_frame(int(api_key), version, 42, response) == struct.pack(">i", len(payload)) + payload


@pytest.mark.parametrize("length", range(8, 14))
def test_a_server_refuses_a_header_that_ends_early(length: int) -> None:
    frame = encode_request(ApiKey.METADATA, 12, 42, "mine", MetadataRequest())
    with pytest.raises(MalformedRequest):
        read_request(memoryview(frame)[:length], 3, 12)


def test_a_server_passes_over_tags_of_a_header() -> None:
    frame = bytearray(encode_request(ApiKey.METADATA, 12, 42, "me", MetadataRequest(topics=None)))
    frame[12:13] = b"\x01\x05\x02ab"
    assert read_request(memoryview(frame), 3, 12) == ("me", MetadataRequest(topics=None))


def test_bytes_after_a_request_are_ignored() -> None:
    frame = encode_request(ApiKey.METADATA, 13, 1, "x", MetadataRequest(topics=None)) + b"\x00\x01\x02"
    assert decode_request(memoryview(frame))[1] == MetadataRequest(topics=None)


def test_the_answer_to_a_too_new_api_versions_request_is_in_the_oldest_version() -> None:
    correlation_id, answer = decode_response(ApiKey.API_VERSIONS, 0, memoryview(unsupported_api_versions(9)))
    assert correlation_id == 9
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    (row,) = answer.api_keys
    offered = API_VERSIONS[ApiKey.API_VERSIONS]
    assert (row.api_key, row.min_version, row.max_version) == (ApiKey.API_VERSIONS, offered.min, offered.max)


def test_null_is_refused_in_versions_without_it() -> None:
    with pytest.raises(ValueError, match="topics may not be null"):
        encode_request(ApiKey.METADATA, 0, 1, None, MetadataRequest(topics=None))
    legacy_null = struct.pack(">hhihi", ApiKey.METADATA, 0, 1, -1, -1)
    with pytest.raises(MalformedRequest, match="topics may not be null"):
        decode_request(memoryview(legacy_null))


def test_a_field_is_left_out_of_versions_without_it() -> None:
    message = MetadataRequest(topics=[MetadataRequestTopic(topic_id=UUID(int=5), name="a")])
    _, old = decode_request(memoryview(encode_request(ApiKey.METADATA, 9, 1, None, message)))
    assert old.topics == [MetadataRequestTopic(name="a")]


def test_tagged_fields_are_written_only_where_they_exist_and_differ() -> None:
    """Fetch got CurrentLeader in version 12, NodeEndpoints in 16; CreateTopics its config error code in 5."""
    partition = PartitionData(current_leader=LeaderIdAndEpoch(leader_id=3, leader_epoch=4))
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
    plain = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[PartitionData()])])
    assert encode_response(ApiKey.FETCH, 11, 1, response) == encode_response(ApiKey.FETCH, 11, 1, plain)
    assert len(encode_response(ApiKey.FETCH, 12, 1, response)) > len(encode_response(ApiKey.FETCH, 12, 1, plain))
    topics = CreateTopicsResponse(topics=[CreatableTopicResult(name="t", topic_config_error_code=29)])
    for version in range(2, 8):
        _, answer = decode_response(
            ApiKey.CREATE_TOPICS, version, memoryview(encode_response(ApiKey.CREATE_TOPICS, version, 1, topics))
        )
        assert answer.topics[0].topic_config_error_code == (29 if version >= 5 else 0)


def test_a_tagged_array_and_a_nullable_tagged_array() -> None:
    message = BrokerHeartbeatRequest(broker_id=1, offline_log_dirs=[UUID(int=1)], cordoned_log_dirs=[])
    for version, expected in ((0, None), (1, None), (2, [])):
        frame = encode_request(ApiKey.BROKER_HEARTBEAT, version, 1, None, message)
        _, answer = decode_request(memoryview(frame))
        assert answer.cordoned_log_dirs == expected
        assert answer.offline_log_dirs == ([UUID(int=1)] if version >= 1 else [])


@pytest.mark.parametrize("cursor", [None, Cursor(topic_name="t", partition_index=3)])
def test_a_nullable_struct(cursor: Cursor | None) -> None:
    message = DescribeTopicPartitionsRequest(cursor=cursor)
    _, answer = decode_request(memoryview(encode_request(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 1, None, message)))
    assert answer == message
