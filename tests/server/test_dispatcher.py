"""Requests that are served at once: no task until they wait, the order of a connection, failures, and their times."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from strandline.clock import SystemClock
from strandline.config.network import NetworkSettings
from strandline.server.context import Handler, RequestContext
from strandline.server.dispatcher import SERVED_AT_ONCE, ApiDispatcher
from strandline.server.exchange import Exchange
from strandline.server.network import NetworkServer
from strandline.wire.api import ApiKey
from strandline.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from strandline.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from strandline.wire.registry import decode_response, encode_request

VERSIONS = {ApiKey.HEARTBEAT: 4, ApiKey.OFFSET_COMMIT: 9}
REQUESTS = {ApiKey.HEARTBEAT: HeartbeatRequest(group_id="g"), ApiKey.OFFSET_COMMIT: OffsetCommitRequest(group_id="g")}
PATIENCE = 20.0


class Nothing:
    """Serves no Produce and no Fetch."""

    def handle(self, frame: memoryview, position: int, exchange: Exchange, client_id: str | None) -> None:
        raise AssertionError("There are no such requests here.")


class Peer:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, *requests: tuple[ApiKey, int]) -> None:
        for key, number in requests:
            frame = encode_request(key, VERSIONS[key], number, "me", REQUESTS[key])
            self.writer.write(struct.pack(">i", len(frame)) + frame)

    async def receive(self, key: ApiKey) -> tuple[int, Any]:
        async with asyncio.timeout(PATIENCE):
            size = struct.unpack(">i", await self.reader.readexactly(4))[0]
            return decode_response(key, VERSIONS[key], memoryview(await self.reader.readexactly(size)))

    async def wait_closed(self) -> None:
        async with asyncio.timeout(PATIENCE):
            assert await self.reader.read() == b""


class Serving:
    """A server with some handlers."""

    def __init__(self, dispatcher: ApiDispatcher, port: int) -> None:
        self.dispatcher, self._port = dispatcher, port
        self.peers: list[Peer] = []

    async def connect(self) -> Peer:
        self.peers.append(Peer(*await asyncio.open_connection("127.0.0.1", self._port)))
        return self.peers[-1]


@asynccontextmanager
async def serving(handlers: Mapping[ApiKey, Handler]) -> AsyncIterator[Serving]:
    server = NetworkServer(NetworkSettings(), asyncio.get_running_loop())
    bound = server.bind("PLAINTEXT", "127.0.0.1", 0)
    dispatcher = ApiDispatcher(produce=Nothing(), fetch=Nothing(), handlers=handlers, clock=SystemClock())
    server.start(dispatcher)
    here = Serving(dispatcher, bound.port)
    try:
        yield here
    finally:
        server.close()
        await dispatcher.close()
        for peer in here.peers:
            peer.writer.close()
        await asyncio.gather(*(peer.writer.wait_closed() for peer in here.peers), return_exceptions=True)


async def test_a_request_that_does_not_wait_needs_no_task() -> None:
    tasks: list[asyncio.Task[Any] | None] = []

    async def heartbeat(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
        tasks.append(asyncio.current_task())
        assert (request.group_id, context.client_id, context.api_version) == ("g", "me", 4)
        return HeartbeatResponse(error_code=27)

    async with serving({ApiKey.HEARTBEAT: heartbeat}) as here:
        peer = await here.connect()
        peer.send((ApiKey.HEARTBEAT, 1), (ApiKey.HEARTBEAT, 2), (ApiKey.HEARTBEAT, 3))
        answers = [await peer.receive(ApiKey.HEARTBEAT) for _ in range(3)]
    assert tasks == [None, None, None]
    assert [(number, answer.error_code) for number, answer in answers] == [(1, 27), (2, 27), (3, 27)]
    times = here.dispatcher.times[ApiKey.HEARTBEAT]
    assert (times.versions, times.errors) == ({4: 3}, {27: 3})


async def test_a_request_that_waits_is_answered_before_the_next_one_starts() -> None:
    begun, written = asyncio.Event(), asyncio.get_running_loop().create_future()
    order: list[str] = []

    async def commit(request: OffsetCommitRequest, context: RequestContext) -> OffsetCommitResponse:
        order.append("commit begins")
        begun.set()
        await written
        assert asyncio.current_task() is not None  # from now on it may use what needs a task
        order.append("commit ends")
        return OffsetCommitResponse()

    async def heartbeat(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
        order.append("heartbeat")
        return HeartbeatResponse()

    async with serving({ApiKey.OFFSET_COMMIT: commit, ApiKey.HEARTBEAT: heartbeat}) as here:
        first, second = await here.connect(), await here.connect()
        first.send((ApiKey.OFFSET_COMMIT, 1), (ApiKey.HEARTBEAT, 2))
        await begun.wait()
        second.send((ApiKey.HEARTBEAT, 3))
        assert (await second.receive(ApiKey.HEARTBEAT))[0] == 3  # others are served meanwhile
        written.set_result(None)
        assert (await first.receive(ApiKey.OFFSET_COMMIT))[0] == 1
        assert (await first.receive(ApiKey.HEARTBEAT))[0] == 2
    assert order == ["commit begins", "heartbeat", "commit ends", "heartbeat"]


@pytest.mark.parametrize("waits_first", [False, True])
async def test_a_handler_that_fails_closes_its_connection_only(
    waits_first: bool, caplog: pytest.LogCaptureFixture
) -> None:
    fails = True

    async def heartbeat(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
        if fails:
            if waits_first:
                await asyncio.get_running_loop().run_in_executor(None, int)
            raise ValueError("unforeseen")
        return HeartbeatResponse()

    async with serving({ApiKey.HEARTBEAT: heartbeat}) as here:
        first, second = await here.connect(), await here.connect()
        first.send((ApiKey.HEARTBEAT, 1), (ApiKey.HEARTBEAT, 2))
        await first.wait_closed()
        fails = False
        second.send((ApiKey.HEARTBEAT, 3))
        assert (await second.receive(ApiKey.HEARTBEAT))[0] == 3
    assert caplog.text.count("HEARTBEAT v4 of me failed") == 1
    assert "the handler of HEARTBEAT failed" in caplog.text


async def test_requests_that_wait_end_with_the_dispatcher() -> None:
    begun, ends = asyncio.Event(), []

    async def commit(request: OffsetCommitRequest, context: RequestContext) -> OffsetCommitResponse:
        begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ends.append("ended")
        return OffsetCommitResponse()

    async with serving({ApiKey.OFFSET_COMMIT: commit}) as here:
        peer = await here.connect()
        peer.send((ApiKey.OFFSET_COMMIT, 1))
        await begun.wait()
    assert ends == ["ended"]


def test_what_is_served_at_once() -> None:
    """Handlers in this list have no task at first: whoever adds one has to look what it uses."""
    assert {ApiKey(key).name for key in SERVED_AT_ONCE} == {
        "HEARTBEAT",
        "OFFSET_COMMIT",
        "OFFSET_FETCH",
        "CONSUMER_GROUP_HEARTBEAT",
    }
