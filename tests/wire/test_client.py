"""The small client, against a listener that answers what the test tells it to."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from strandline.errors import UnsupportedVersion
from strandline.wire.api import ApiKey
from strandline.wire.client import Client, ConnectionClosed
from strandline.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from strandline.wire.messages.metadata import MetadataRequest, MetadataResponse
from strandline.wire.registry import decode_request, encode_response, unsupported_api_versions

Answer = Callable[[bytes], bytes | None]


@contextmanager
def listener(answer: Answer) -> Iterator[int]:
    """Serve one connection; `answer` gives the response frame of each request frame, or None to hang up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection, connection.makefile("rwb") as stream:
                while head := stream.read(4):
                    response = answer(stream.read(struct.unpack(">i", head)[0]))
                    if response is None:
                        return
                    stream.write(struct.pack(">i", len(response)) + response)
                    stream.flush()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            thread.join()


def broker(offered: list[ApiVersion], newest_api_versions: int = 4, correlation_shift: int = 0) -> Answer:
    def answer(frame: bytes) -> bytes | None:
        header, request = decode_request(memoryview(frame))
        api_key, version, correlation_id = ApiKey(header.api_key), header.api_version, header.correlation_id
        if api_key is ApiKey.API_VERSIONS:
            if version > newest_api_versions:
                return unsupported_api_versions(correlation_id)
            return encode_response(api_key, version, correlation_id, ApiVersionsResponse(api_keys=offered))
        if request.topics is None:
            return None
        response = MetadataResponse(cluster_id=f"version {version}")
        return encode_response(api_key, version, correlation_id + correlation_shift, response)

    return answer


METADATA_UP_TO_11 = [ApiVersion(api_key=ApiKey.METADATA, min_version=0, max_version=11)]


@pytest.mark.parametrize("newest_api_versions", [4, 0])
def test_the_newest_common_version_is_used(newest_api_versions: int) -> None:
    with listener(broker(METADATA_UP_TO_11, newest_api_versions)) as port, Client.connect("127.0.0.1", port) as client:
        assert client.request(ApiKey.METADATA, MetadataRequest()).cluster_id == "version 11"
        assert client.request(ApiKey.METADATA, MetadataRequest(), version=2).cluster_id == "version 2"
        with pytest.raises(UnsupportedVersion, match="FETCH"):
            client.version_of(ApiKey.FETCH)


def test_a_connection_that_the_broker_closes() -> None:
    with (
        listener(broker(METADATA_UP_TO_11)) as port,
        Client.connect("127.0.0.1", port, negotiate=False) as client,
        pytest.raises(ConnectionClosed),
    ):
        client.request(ApiKey.METADATA, MetadataRequest(topics=None), version=12)


def test_an_answer_to_another_request_is_refused() -> None:
    with (
        listener(broker([], correlation_shift=1)) as port,
        Client.connect("127.0.0.1", port) as client,
        pytest.raises(ConnectionError, match="answered request 3 instead of 2"),
    ):
        client.request(ApiKey.METADATA, MetadataRequest(), version=1)


def test_a_broker_that_hangs_up_at_once() -> None:
    with listener(lambda frame: None) as port, pytest.raises(ConnectionClosed):
        Client.connect("127.0.0.1", port)
