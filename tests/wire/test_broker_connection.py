"""The connection between brokers, against a listener that answers what the test tells it to."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from strandline.errors import UnsupportedVersion
from strandline.wire.api import SERVED_APIS, ApiKey
from strandline.wire.broker_connection import BrokerConnection
from strandline.wire.errors import ErrorCode
from strandline.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from strandline.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from strandline.wire.primitives import MalformedRequest
from strandline.wire.principal import decode_principal, encode_principal
from strandline.wire.registry import Message, RequestHeader, decode_request, encode_response
from tests.wire.listening import listening_with

Serve = Callable[[RequestHeader, Message, asyncio.StreamWriter], Awaitable[None]]

OFFER = [
    ApiVersion(api_key=key, min_version=versions.min, max_version=versions.max) for key, versions in SERVED_APIS.items()
]


@asynccontextmanager
async def connected(serve: Serve, offer: list[ApiVersion] | None = None) -> AsyncIterator[BrokerConnection]:
    """A connection to a listener that answers ApiVersions by itself and leaves the rest to `serve`."""

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            (length,) = struct.unpack(">i", await reader.readexactly(4))
            header, message = decode_request(memoryview(await reader.readexactly(length)))
            if header.api_key == ApiKey.API_VERSIONS:
                send(writer, header, ApiVersionsResponse(api_keys=OFFER if offer is None else offer))
            else:
                await serve(header, message, writer)

    async with listening_with(on_connection) as port:
        connection = await BrokerConnection.open("127.0.0.1", port, client_id="test")
        try:
            yield connection
        finally:
            connection.close()


def send(writer: asyncio.StreamWriter, header: RequestHeader, response: Message, *, shift: int = 0) -> None:
    frame = encode_response(ApiKey(header.api_key), header.api_version, header.correlation_id + shift, response)
    writer.write(struct.pack(">i", len(frame)) + frame)


async def ask(connection: BrokerConnection, number: int) -> int:
    request = AllocateProducerIdsRequest(broker_id=number, broker_epoch=1)
    async with asyncio.timeout(20):
        answer = await connection.request(ApiKey.ALLOCATE_PRODUCER_IDS, request)
    return int(answer.producer_id_start)


async def echo(header: RequestHeader, message: Message, writer: asyncio.StreamWriter) -> None:
    send(writer, header, AllocateProducerIdsResponse(producer_id_start=message.broker_id))


async def hang_up(header: RequestHeader, message: Message, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def say_nothing(header: RequestHeader, message: Message, writer: asyncio.StreamWriter) -> None:
    """Reads the request and does not answer it."""


async def test_answers_find_who_waits_for_them_in_any_order() -> None:
    held: list[tuple[RequestHeader, Message]] = []

    async def in_reverse(header: RequestHeader, message: Message, writer: asyncio.StreamWriter) -> None:
        held.append((header, message))
        if len(held) == 3:
            for earlier, asked in reversed(held):
                await echo(earlier, asked, writer)

    async with connected(in_reverse) as connection:
        assert await asyncio.gather(*(ask(connection, number) for number in (7, 8, 9))) == [7, 8, 9]


async def test_all_waiting_requests_fail_when_the_connection_ends() -> None:
    async with connected(hang_up) as connection:
        outcomes = await asyncio.gather(*(ask(connection, number) for number in range(3)), return_exceptions=True)
        assert [isinstance(outcome, ConnectionError) for outcome in outcomes] == [True] * 3
        assert not connection.is_open
        with pytest.raises(ConnectionError):
            await ask(connection, 1)


async def test_closing_wakes_who_waits() -> None:
    async with connected(say_nothing) as connection:
        waiting = asyncio.create_task(ask(connection, 1))
        while not connection._waiting:
            await asyncio.wait([waiting], timeout=0.01)
        connection.close()
        with pytest.raises(ConnectionError, match="was closed"):
            await waiting


async def test_an_answer_without_a_request_ends_the_connection() -> None:
    async def wrong_id(header: RequestHeader, message: Message, writer: asyncio.StreamWriter) -> None:
        send(writer, header, AllocateProducerIdsResponse(), shift=5)

    async with connected(wrong_id) as connection:
        with pytest.raises(ConnectionError, match="which is not open"):
            await ask(connection, 1)


async def test_a_length_that_cannot_be_ends_the_connection() -> None:
    async def absurd(header: RequestHeader, message: Message, writer: asyncio.StreamWriter) -> None:
        writer.write(struct.pack(">i", 0x7FFF_FFFF))

    async with connected(absurd) as connection:
        with pytest.raises(ConnectionError, match="2147483647 bytes"):
            await ask(connection, 1)


@pytest.mark.parametrize(
    "offer", [[], [ApiVersion(api_key=ApiKey.ALLOCATE_PRODUCER_IDS, min_version=5, max_version=9)]]
)
async def test_what_the_other_does_not_offer_is_not_sent(offer: list[ApiVersion]) -> None:
    async with connected(echo, offer) as connection:
        with pytest.raises(UnsupportedVersion, match="ALLOCATE_PRODUCER_IDS"):
            await ask(connection, 1)
        assert connection.is_open


async def test_a_refused_negotiation_is_an_error() -> None:
    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (length,) = struct.unpack(">i", await reader.readexactly(4))
        header, _ = decode_request(memoryview(await reader.readexactly(length)))
        send(writer, header, ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST))

    async with listening_with(on_connection) as port:
        with pytest.raises(UnsupportedVersion, match="INVALID_REQUEST"):
            await BrokerConnection.open("127.0.0.1", port, client_id="test")


def test_a_principal_comes_back_as_it_was() -> None:
    for principal in ("User:ANONYMOUS", "User:CN=a:b,O=ä", "Group:"):
        assert decode_principal(encode_principal(principal)) == principal


def test_a_principal_has_the_bytes_that_kafka_gives_it() -> None:
    assert encode_principal("User:bob") == b"\x00\x00" + b"\x05User" + b"\x04bob" + b"\x00" + b"\x00"


@pytest.mark.parametrize("data", [b"", b"\x00\x01\x05User", b"\x00\x00\x05Us", encode_principal("User:bob")[:-2]])
def test_what_is_no_principal_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedRequest):
        decode_principal(data)
