"""One connection: framing, order, flow control, bounded memory. Real sockets, a dispatcher of our own."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop

from strandline.config.network import NetworkSettings
from strandline.log import FileSlice
from strandline.log.segment_file import SegmentFile
from strandline.server.exchange import MAX_IN_FLIGHT, Exchange
from strandline.server.network import NetworkServer
from strandline.wire.fetch_codec import Part
from strandline.wire.primitives import MalformedRequest
from tests.waiting import until

PRODUCE = 0
METADATA = 3


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def request(api_key: int, number: int, body: bytes = b"") -> bytes:
    return framed(struct.pack(">hhi", api_key, 0, number) + body)


def echo(exchange: Exchange, frame: memoryview) -> None:
    exchange.respond([framed(struct.pack(">i", exchange.correlation_id) + bytes(frame[8:]))])


class Collecting:
    """Keeps exchanges until the test answers them."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []

    def __call__(self, exchange: Exchange, frame: memoryview) -> None:
        self.exchanges.append(exchange)


class ScriptedDispatcher:
    """Serves requests with a function of the test."""

    def __init__(self, serve: Callable[[Exchange, memoryview], None]) -> None:
        self._serve = serve

    def dispatch(self, exchange: Exchange, frame: memoryview) -> None:
        self._serve(exchange, frame)


Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def serving(
    serve: Callable[[Exchange, memoryview], None], settings: NetworkSettings | None = None
) -> AsyncIterator[tuple[NetworkServer, Callable[[], asyncio.Future[Client]]]]:
    loop = asyncio.get_running_loop()
    server = NetworkServer(settings or NetworkSettings(), loop)
    bound = server.bind("PLAINTEXT", "127.0.0.1", 0)
    server.start(ScriptedDispatcher(serve))
    writers: list[asyncio.StreamWriter] = []

    async def connect() -> Client:
        reader, writer = await asyncio.open_connection("127.0.0.1", bound.port)
        writers.append(writer)
        return reader, writer

    try:
        yield server, lambda: asyncio.ensure_future(connect())
    finally:
        server.close()
        for writer in writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)


async def receive(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    size = struct.unpack(">i", await reader.readexactly(4))[0]
    data = await reader.readexactly(size)
    return struct.unpack(">i", data[:4])[0], data[4:]


async def turn() -> None:
    """One turn of the event loop."""
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_result, None)
    await future


async def test_frames_arrive_whole_however_they_are_cut() -> None:
    async with serving(echo) as (_, connect):
        reader, writer = await connect()
        data = b"".join(request(METADATA, n, bytes([n]) * (n * 7)) for n in range(1, 30))
        for position in range(0, len(data), 11):
            writer.write(data[position : position + 11])
            await writer.drain()
        for n in range(1, 30):
            assert await receive(reader) == (n, bytes([n]) * (n * 7))


@pytest.mark.parametrize("size", [40_000, 300_000, 2_000_000, 9_000_000])
async def test_large_frames_of_every_buffer_size_are_served(size: int) -> None:
    async with serving(echo) as (_, connect):
        reader, writer = await connect()
        body = bytes(range(256)) * (size // 256)
        for n in range(3):
            writer.write(request(METADATA, n, body))
            assert await receive(reader) == (n, body)


async def test_responses_keep_the_order_of_pipelined_produce_requests() -> None:
    collected = Collecting()
    async with serving(collected) as (_, connect):
        reader, writer = await connect()
        writer.write(b"".join(request(PRODUCE, n) for n in range(5)))
        await until(lambda: len(collected.exchanges) == 5)
        for exchange in reversed(collected.exchanges):
            echo(exchange, memoryview(b"\x00" * 8))
        assert [(await receive(reader))[0] for _ in range(5)] == list(range(5))


async def test_other_requests_are_served_one_after_the_other() -> None:
    collected = Collecting()
    async with serving(collected) as (_, connect):
        reader, writer = await connect()
        writer.write(b"".join(request(METADATA, n) for n in range(3)))
        for n in range(3):
            await until(lambda n=n: len(collected.exchanges) == n + 1)  # type: ignore[misc]
            echo(collected.exchanges[n], memoryview(b"\x00" * 8))
            assert (await receive(reader))[0] == n


async def test_a_client_cannot_have_unlimited_requests_in_flight() -> None:
    collected = Collecting()
    async with serving(collected) as (_, connect):
        reader, writer = await connect()
        total = MAX_IN_FLIGHT * 3
        writer.write(b"".join(request(PRODUCE, n) for n in range(total)))
        await until(lambda: len(collected.exchanges) == MAX_IN_FLIGHT)
        answered = 0
        while answered < total:
            await until(lambda wanted=answered: len(collected.exchanges) > wanted)  # type: ignore[misc]
            assert len(collected.exchanges) - answered <= MAX_IN_FLIGHT
            echo(collected.exchanges[answered], memoryview(b"\x00" * 8))
            answered += 1
        assert [(await receive(reader))[0] for _ in range(total)] == list(range(total))


@pytest.mark.parametrize("size", [-1, 0, 2**31 - 1, 104_857_601])
async def test_an_impossible_length_closes_the_connection_and_only_it(
    size: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(echo) as (_, connect):
        bystander_reader, bystander_writer = await connect()
        reader, writer = await connect()
        writer.write(struct.pack(">i", size) + b"x" * 100)
        assert await reader.read() == b""
        bystander_writer.write(request(METADATA, 1, b"still here"))
        assert await receive(bystander_reader) == (1, b"still here")
    assert len([r for r in caplog.records if "socket.request.max.bytes" in r.getMessage()]) == 1


async def test_a_malformed_request_closes_with_one_line(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(exchange: Exchange, frame: memoryview) -> None:
        raise MalformedRequest("nonsense")

    async with serving(refuse) as (server, connect):
        reader, writer = await connect()
        writer.write(request(METADATA, 1))
        assert await reader.read() == b""
        assert not server.connections
    assert [r.getMessage() for r in caplog.records if "nonsense" in r.getMessage()].__len__() == 1


async def test_announced_bytes_cost_nothing_until_they_come() -> None:
    """Twenty clients announce 50 MB each and send 1 MB: no more than a page is touched beyond what was sent."""

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    async with serving(echo) as (server, connect):
        clients = [await connect() for _ in range(20)]
        await until(lambda: len(server.connections) == 20)
        before = resident()
        for _, writer in clients:
            writer.write(struct.pack(">i", 50_000_000) + b"\x00" * 1_000_000)
            await writer.drain()
        await until(lambda: server.bytes_in >= 20 * 1_000_004)
        assert resident() - before < 60_000_000


async def test_a_reader_that_does_not_read_stops_being_served() -> None:
    served = 0

    def big(exchange: Exchange, frame: memoryview) -> None:
        nonlocal served
        served += 1
        exchange.respond([framed(struct.pack(">i", exchange.correlation_id) + b"\x00" * 1_000_000)])

    async with serving(big) as (_, connect):
        reader, writer = await connect()
        reader._limit = 1000  # type: ignore[attr-defined]  # asyncio itself must not read for us
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"".join(request(METADATA, n) for n in range(500)))
        previous = -1
        while previous != served:
            previous = served
            for _ in range(200):
                await turn()
        assert served < 50
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        for n in range(500):
            assert (await receive(reader))[0] == n
        assert served == 500


async def test_file_ranges_of_every_size_arrive_between_bytes(tmp_path: Path) -> None:
    content = bytes(range(256)) * 8000
    path = tmp_path / "segment"
    path.write_bytes(content)
    file = SegmentFile(str(path), len(content))
    ranges = [(0, 10), (5, 70_000), (100, 1_500_000), (2_000_000, 48_000), (17, 65_536), (17, 65_537)]

    def send(exchange: Exchange, frame: memoryview) -> None:
        size = sum(length + 1 for _, length in ranges) + 4
        parts: list[Part] = [struct.pack(">ii", size, exchange.correlation_id)]
        for position, length in ranges:
            parts += [FileSlice(file, position, length), b"|"]
        exchange.respond(parts)

    async with serving(send) as (_, connect):
        reader, writer = await connect()
        for n in range(3):
            writer.write(request(METADATA, n))
            assert await receive(reader) == (n, b"".join(content[p : p + length] + b"|" for p, length in ranges))


async def test_old_data_comes_from_disk_without_stopping_the_loop(tmp_path: Path) -> None:
    content = bytes(range(256)) * 40_000
    path = tmp_path / "segment"
    path.write_bytes(content)
    file = SegmentFile(str(path), len(content))
    ranges = [(0, 20_000), (20_000, 5_000_000), (6_000_000, 60_000)]

    def send(exchange: Exchange, frame: memoryview) -> None:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        size = sum(length for _, length in ranges) + 4
        parts: list[Part] = [struct.pack(">ii", size, exchange.correlation_id)]
        exchange.respond(parts + [FileSlice(file, position, length) for position, length in ranges])

    async with serving(send) as (server, connect):
        reader, writer = await connect()
        for n in range(3):
            writer.write(request(METADATA, n))
            assert await receive(reader) == (n, b"".join(content[p : p + length] for p, length in ranges))
        if server.pages.has(file.fileno(), 0, 1) and not server.pages.loads:
            pytest.skip("this file system keeps everything in memory")
        assert server.pages.loads > 0


async def test_nothing_is_lost_when_the_socket_is_full_between_two_parts(tmp_path: Path) -> None:
    content = os.urandom(4_000_000)
    path = tmp_path / "segment"
    path.write_bytes(content)
    file = SegmentFile(str(path), len(content))
    ranges = [(position, 70_000 + position % 60_000) for position in range(0, 3_800_000, 19_000)]

    def send(exchange: Exchange, frame: memoryview) -> None:
        size = sum(length + 1 for _, length in ranges) + 4
        parts: list[Part] = [struct.pack(">ii", size, exchange.correlation_id)]
        for position, length in ranges:
            parts += [FileSlice(file, position, length), b"|"]
        exchange.respond(parts)

    # A small send buffer fills up again and again, at any place of the response.
    async with serving(send, NetworkSettings(socket_send_buffer_bytes=50_000)) as (_, connect):
        reader, writer = await connect()
        for n in range(3):
            writer.write(request(METADATA, n))
            assert await receive(reader) == (n, b"".join(content[p : p + length] + b"|" for p, length in ranges))


async def test_a_segment_that_shrinks_under_a_response_closes_the_connection(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(b"x" * 100)
    file = SegmentFile(str(path), 100)

    def send(exchange: Exchange, frame: memoryview) -> None:
        exchange.respond([struct.pack(">ii", 204, exchange.correlation_id), FileSlice(file, 0, 200)])

    async with serving(send) as (server, connect):
        reader, writer = await connect()
        writer.write(request(METADATA, 1))
        assert len(await reader.read()) < 208
        assert not server.connections


async def test_idle_connections_are_closed_and_busy_ones_are_not() -> None:
    collected = Collecting()
    async with serving(collected, NetworkSettings(connections_max_idle_ms=150)) as (server, connect):
        idle_reader, _ = await connect()
        busy_reader, busy_writer = await connect()
        busy_writer.write(request(METADATA, 1))
        assert await idle_reader.read() == b""
        (busy,) = server.connections
        asked = busy.last_active
        echo(collected.exchanges[0], memoryview(b"\x00" * 8))
        assert (await receive(busy_reader))[0] == 1
        assert busy.last_active > asked, "the client is as active as its answer is new, however long that took"


async def test_a_client_that_leaves_while_its_request_waits_is_noticed() -> None:
    collected = Collecting()
    async with serving(collected) as (server, connect):
        _, writer = await connect()
        writer.write(request(METADATA, 0))
        await until(lambda: len(collected.exchanges) == 1)
        left = []
        collected.exchanges[0].on_closed = lambda: left.append(True)
        writer.close()
        await until(lambda: not server.connections)
        assert left
        echo(collected.exchanges[0], memoryview(bytes(8)))


@pytest.mark.parametrize("sent", [0, 3, 5000])
def test_a_reset_that_comes_with_the_last_bytes_is_noticed(sent: int) -> None:
    async def reset() -> None:
        async with serving(echo) as (server, connect):
            await connect()
            await until(lambda: len(server.connections) == 1)
            (kept,) = server.connections
            client = socket.create_connection(kept.sock.getsockname())
            await until(lambda: len(server.connections) == 2)
            client.send(request(METADATA, 0, b"x" * 100_000)[:sent])
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
            await until(lambda: server.bytes_in == sent)
            while server.connections != {kept}:  # the test's timeout is the limit
                server._sweep()
                await turn()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(reset())


async def test_what_a_client_sent_before_it_left_is_served() -> None:
    collected = Collecting()
    async with serving(collected) as (server, connect):
        _, writer = await connect()
        writer.write(request(METADATA, 0) + request(METADATA, 1))
        await until(lambda: len(collected.exchanges) == 1)
        writer.write(request(METADATA, 2))
        writer.write_eof()
        for _ in range(100):
            await turn()
        assert len(server.connections) == 1
        for number in range(3):
            await until(lambda number=number: len(collected.exchanges) == number + 1)  # type: ignore[misc]
            echo(collected.exchanges[number], memoryview(bytes(8)))
        await until(lambda: not server.connections)


async def test_connections_beyond_the_limits_are_refused_or_push_out_the_idlest() -> None:
    async with serving(echo, NetworkSettings(max_connections=2)) as (server, connect):
        first_reader, _ = await connect()
        await until(lambda: len(server.connections) == 1)
        await connect()
        await until(lambda: len(server.connections) == 2)
        third_reader, third_writer = await connect()
        assert await first_reader.read() == b""
        third_writer.write(request(METADATA, 3))
        assert (await receive(third_reader))[0] == 3
    async with serving(echo, NetworkSettings(max_connections_per_ip=1)) as (server, connect):
        reader, writer = await connect()
        writer.write(request(METADATA, 1))
        await receive(reader)
        second_reader, _ = await connect()
        assert await second_reader.read() == b""


async def test_frames_that_wait_for_their_answer_keep_their_bytes() -> None:
    """A pipelined Produce in a pooled buffer must not be overwritten by the frames behind it."""
    held: list[tuple[Exchange, memoryview]] = []

    def hold(exchange: Exchange, frame: memoryview) -> None:
        assert exchange.holds_frame
        held.append((exchange, frame))

    async with serving(hold) as (server, connect):
        reader, writer = await connect()
        bodies = [bytes([n]) * 400_000 for n in range(1, 6)]
        writer.write(b"".join(request(PRODUCE, n, body) for n, body in enumerate(bodies)))
        await until(lambda: len(held) == 5)
        for exchange, frame in held:
            echo(exchange, frame)
        assert [await receive(reader) for _ in range(5)] == list(enumerate(bodies))
        assert server.pool.free_bytes > 0
