"""Memory of unanswered requests is counted, bounded, and given back however a request ends."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import socket
import struct

import pytest
import uvloop

from strandline.clock import SystemClock
from strandline.config.network import NetworkSettings
from strandline.server.exchange import MAX_IN_FLIGHT, Exchange
from strandline.wire.primitives import MalformedRequest
from tests.server.test_connection import METADATA, PRODUCE, Collecting, echo, receive, request, serving, turn
from tests.waiting import until

LARGE = 300_000
LIMIT = 2_000_000


@pytest.mark.parametrize("error", [MalformedRequest("nonsense"), ValueError("a bug in a handler")])
async def test_a_large_request_that_fails_gives_its_memory_back(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def serve(exchange: Exchange, frame: memoryview) -> None:
        if len(frame) > LARGE:
            raise error
        echo(exchange, frame)

    settings = NetworkSettings(queued_max_request_bytes=LIMIT)
    async with serving(serve, settings) as (server, connect):
        for n in range(10):
            reader, writer = await connect()
            writer.write(request(METADATA, n, b"x" * LARGE))
            assert await reader.read() == b""
        assert not server.memory.frames.is_full
        assert not server.connections
        reader, writer = await connect()
        writer.write(request(METADATA, 1, b"served"))
        assert await receive(reader) == (1, b"served")
    closings = [record for record in caplog.records if "closing connection" in record.getMessage()]
    assert len(closings) == 10


async def test_copies_that_wait_to_be_written_are_counted() -> None:
    collected = Collecting()
    async with serving(collected, NetworkSettings(queued_max_request_bytes=LIMIT)) as (server, connect):
        reader, writer = await connect()
        for n in range(3):
            writer.write(request(PRODUCE, n))
            await until(lambda n=n: len(collected.exchanges) == n + 1)  # type: ignore[misc]
        for exchange in collected.exchanges:
            exchange.hold_copy(LIMIT // 3 + 1)
        assert server.memory.frames.is_full
        writer.write(request(PRODUCE, 3))
        for _ in range(100):
            await turn()
        assert len(collected.exchanges) == 3, "nothing is read while there is no memory for it"
        echo(collected.exchanges[0], memoryview(bytes(8)))
        assert not server.memory.frames.is_full
        await until(lambda: len(collected.exchanges) == 4)
        for exchange in collected.exchanges[1:]:
            echo(exchange, memoryview(bytes(8)))
        assert [(await receive(reader))[0] for _ in range(4)] == [0, 1, 2, 3]


async def test_without_memory_small_requests_of_others_are_read() -> None:
    """Heartbeats of groups and brokers are small: whatever holds the memory, they come through."""
    collected = Collecting()

    def serve(exchange: Exchange, frame: memoryview) -> None:
        (collected if exchange.api_key == PRODUCE else echo)(exchange, frame)

    async with serving(serve, NetworkSettings(queued_max_request_bytes=LIMIT)) as (server, connect):
        (reader, writer), (other_reader, other), (large_reader, large) = (
            await connect(),
            await connect(),
            await connect(),
        )
        writer.write(request(PRODUCE, 0))
        await until(lambda: len(collected.exchanges) == 1)
        collected.exchanges[0].hold_copy(LIMIT)
        writer.write(request(PRODUCE, 1))
        large.write(request(METADATA, 0, b"x" * LARGE) + request(METADATA, 1))
        for n in range(100):
            other.write(request(METADATA, n, b"y" * (n * 600)))
            assert (await receive(other_reader))[0] == n
        other.write(request(PRODUCE, 100))
        await until(lambda: len(collected.exchanges) == 2)
        assert collected.exchanges[1].correlation_id == 100, "the one that waits is not read, others are"
        other.write(request(METADATA, 101))
        for _ in range(100):
            await turn()
        assert sum(connection._buffer is not None for connection in server.connections) == 0
        echo(collected.exchanges[0], memoryview(bytes(8)))
        assert (await receive(reader))[0] == 0
        assert [(await receive(large_reader))[0] for _ in range(2)] == [0, 1]
        echo(collected.exchanges[1], memoryview(bytes(8)))
        assert [(await receive(other_reader))[0] for _ in range(2)] == [100, 101]
        await until(lambda: len(collected.exchanges) == 3)
        echo(collected.exchanges[2], memoryview(bytes(8)))
        assert (await receive(reader))[0] == 1
        assert server.memory.frames.held == 0


async def test_diskless_batches_that_wait_for_their_commit_hold_up_their_own_connection_only() -> None:
    collected = Collecting()
    settings = NetworkSettings(strandline_queued_max_diskless_bytes=2 * LIMIT)
    async with serving(collected, settings) as (server, connect):
        (reader, writer), (_, other) = await connect(), await connect()
        for n in range(3):
            writer.write(request(PRODUCE, n))
            await until(lambda n=n: len(collected.exchanges) == n + 1)  # type: ignore[misc]
        for exchange in collected.exchanges:
            exchange.hold_uncommitted(LIMIT // 3 + 1)
        writer.write(request(PRODUCE, 3))
        for n in range(10, 14):
            other.write(request(PRODUCE, n, b"x" * LARGE))
        await until(lambda: len(collected.exchanges) == 7)
        assert [exchange.correlation_id for exchange in collected.exchanges[3:]] == [10, 11, 12, 13]
        collected.exchanges[6].hold_uncommitted(1)  # now it waits as well
        other.write(request(PRODUCE, 14))
        for _ in range(100):
            await turn()
        assert len(collected.exchanges) == 7
        echo(collected.exchanges[0], memoryview(bytes(8)))
        await until(lambda: len(collected.exchanges) == 9)
        for exchange in collected.exchanges[1:]:
            echo(exchange, memoryview(bytes(8)))
        assert [(await receive(reader))[0] for _ in range(4)] == [0, 1, 2, 3]
        assert server.memory.commits.held == 0


async def test_a_client_that_reads_none_of_its_answers_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    def serve(exchange: Exchange, frame: memoryview) -> None:
        exchange.respond([memoryview(b"z" * 50_000_000)], memory=50_000_000)  # type: ignore[list-item]

    async with serving(serve, NetworkSettings(connections_max_idle_ms=500)) as (server, _):
        with socket.create_connection(server._sockets[0][0].getsockname()) as silent:
            silent.sendall(request(METADATA, 0))
            await until(lambda: server.memory.answers.held == 50_000_000)
            await until(lambda: not server.connections)
        assert server.memory.answers.held == 0
    assert "has not read any of its answers for 500 ms (connections.max.idle.ms)" in caplog.text


async def test_a_client_that_reads_slowly_is_not_closed() -> None:
    def serve(exchange: Exchange, frame: memoryview) -> None:
        exchange.respond([b"z" * 20_000_000], memory=20_000_000)

    async with serving(serve, NetworkSettings(connections_max_idle_ms=400)) as (server, _):
        with socket.create_connection(server._sockets[0][0].getsockname()) as slow:
            slow.sendall(request(METADATA, 0))
            slow.setblocking(False)
            left = 20_000_000
            while left:
                await SystemClock().sleep(0.05)
                received = await asyncio.get_running_loop().sock_recv(slow, 1_000_000)
                assert received, "it was closed"
                left -= len(received)
            await until(lambda: server.memory.answers.held == 0)


async def test_a_client_that_leaves_gives_back_the_memory_of_its_answers() -> None:
    collected = Collecting()
    async with serving(collected) as (server, connect):
        _, writer = await connect()
        for n in range(3):
            writer.write(request(PRODUCE, n))
        await until(lambda: len(collected.exchanges) == 3)
        collected.exchanges[1].respond([b"behind the first"], memory=1000)
        collected.exchanges[1].connection.close(None)
        for exchange in (collected.exchanges[0], collected.exchanges[2]):
            exchange.respond([b"too late"], memory=1000)
        assert server.memory.answers.held == 0


def test_frames_behind_a_large_one_survive_a_pause() -> None:
    """On uvloop a readable event comes before what was scheduled for the next turn: before the carry is served."""
    collected = Collecting()
    # The 64th request in flight is large, and what was received behind it is more than the room for a frame's head.
    burst = b"".join(request(PRODUCE, n) for n in range(MAX_IN_FLIGHT - 1))
    burst += request(PRODUCE, MAX_IN_FLIGHT - 1, b"x" * 40_000)
    behind = b"".join(request(PRODUCE, n, b"y" * 100) for n in range(MAX_IN_FLIGHT, MAX_IN_FLIGHT + 60))
    last = MAX_IN_FLIGHT + 60
    problems: list[dict[str, object]] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: problems.append(context))
        async with serving(collected) as (server, _):
            with socket.create_connection(server._sockets[0][0].getsockname()) as sock:
                sock.sendall(burst + behind)
                await until(lambda: len(collected.exchanges) == MAX_IN_FLIGHT)
                for _ in range(5):
                    await turn()
                sock.sendall(request(PRODUCE, last))
                answered = 0
                while answered <= last:
                    echo(collected.exchanges[answered], memoryview(bytes(8)))
                    answered += 1
                    wanted = min(answered, last) + 1
                    await until(lambda wanted=wanted: len(collected.exchanges) >= wanted)  # type: ignore[misc]
                await until(lambda: not any(connection.is_busy for connection in server.connections))
                assert len(server.connections) == 1
                answers = b""
                while len(answers) < 8 * (last + 1):
                    answers += sock.recv(1 << 16)
                assert [n for _, n in struct.iter_unpack(">ii", answers)] == list(range(last + 1))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(run(), 20))
    assert problems == []


async def test_without_free_descriptors_the_listener_waits_and_then_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(echo) as (server, _):
        address = server._sockets[0][0].getsockname()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with socket.socket() as sock:
            sock.setblocking(False)
            highest = max(int(name) for name in os.listdir("/proc/self/fd"))
            fillers = [os.open("/dev/null", os.O_RDONLY) for _ in range(3)]
            for filler in fillers[1:]:
                os.close(filler)
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(highest, fillers[0]) + 1, hard))
            blockers = []
            try:
                while True:  # holes in the table below the limit
                    blockers.append(os.open("/dev/null", os.O_RDONLY))
            except OSError:
                pass
            try:
                with caplog.at_level(logging.ERROR):
                    await asyncio.get_running_loop().sock_connect(sock, address)
                    for _ in range(2000):
                        await turn()
                lines = [r for r in caplog.records if "cannot accept" in r.getMessage()]
                assert 1 <= len(lines) <= 3
                assert not server.connections
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                for fd in [*blockers, fillers[0]]:
                    os.close(fd)
            await until(lambda: len(server.connections) == 1)
