"""What one connection gets of one turn of the event loop, however much its client has sent at once; and what counts."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
import pytest_asyncio

from strandline.broker import Broker
from strandline.config import Settings
from strandline.replication.leader import LeaderRole
from strandline.server.exchange import MAX_IN_FLIGHT, Exchange
from strandline.server.straight import MOST_IN_A_TURN
from strandline.wire.api import ApiKey
from strandline.wire.registry import encode_request
from tests.broker import free_port
from tests.server.test_connection import METADATA, echo, receive, request, serving
from tests.server.test_produce_memory import PRODUCE, Client, World, production

LARGEST = 5_000


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    properties = {
        "strandline.data.dir": str(tmp_path),
        "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
        "strandline.http.listen": "",
        "socket.request.max.bytes": str(LARGEST),
    }
    async with Broker(Settings.from_properties(properties)) as broker:
        made = World(broker)
        try:
            yield made
        finally:
            await made.close()


@contextmanager
def by_turn(count: Callable[[], int]) -> Iterator[list[int]]:
    """What has been counted at the beginning of each turn of the event loop."""
    loop = asyncio.get_running_loop()
    counts: list[int] = []
    is_over = False

    def note() -> None:
        counts.append(count())
        if not is_over:
            loop.call_soon(note)

    note()
    try:
        yield counts
    finally:
        is_over = True


def most_in_a_turn(counts: list[int]) -> int:
    return max(after - before for before, after in pairwise(counts))


def produce_frame(value: bytes, *, version: int = PRODUCE) -> bytes:
    """A request that begins as all of its version do, and as long as those of other versions."""
    acks = -1 if version % 2 else 1
    frame = encode_request(ApiKey.PRODUCE, version, 7, "test", production(value, acks=acks))
    return struct.pack(">i", len(frame)) + frame


async def routed(world: World, *versions: int) -> tuple[Client, asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection whose requests of these versions take the straight path."""
    await world.create_topic()
    reader, writer = await asyncio.open_connection("127.0.0.1", world.broker.listeners[0].port)
    client = Client(reader, writer)
    for version in versions * 2:
        writer.write(produce_frame(b"first", version=version))
        await receive(reader)
    return client, reader, writer


@pytest.mark.plain
async def test_requests_that_look_alike_leave_turns_to_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    client, _, writer = await routed(world, PRODUCE)
    straight = 0
    append_now = LeaderRole.append_now

    def counted(role: LeaderRole, records: memoryview) -> int:
        nonlocal straight
        straight += 1
        return append_now(role, records)

    monkeypatch.setattr(LeaderRole, "append_now", counted)
    total = 5 * MOST_IN_A_TURN
    with by_turn(lambda: world.partition.log.log_end_offset) as ends:
        writer.write(produce_frame(b"one of many") * total)
        assert await client.all_produced(total) == [(0, 2 + number) for number in range(total)]
    assert MAX_IN_FLIGHT < most_in_a_turn(ends) <= MOST_IN_A_TURN
    assert straight > total - 10, "what is left for the next turn goes straight, too"
    await client.close()


async def test_requests_with_several_batches_leave_turns_as_early(world: World) -> None:
    client, reader, writer = await routed(world, PRODUCE)
    message = production(b"one of four", acks=-1)
    message.topic_data[0].partition_data *= 4
    frame = encode_request(ApiKey.PRODUCE, PRODUCE, 7, "test", message)
    framed = struct.pack(">i", len(frame)) + frame
    writer.write(framed)
    await receive(reader)
    total = MOST_IN_A_TURN
    with by_turn(lambda: world.partition.log.log_end_offset) as ends:
        writer.write(framed * total)
        for _ in range(total):
            await receive(reader)
    assert world.partition.log.log_end_offset == 2 + 4 * (total + 1)
    assert most_in_a_turn(ends) <= MOST_IN_A_TURN
    await client.close()


async def test_requests_that_are_answered_at_once_leave_turns_to_others() -> None:
    served = 0

    def serve(exchange: Exchange, frame: memoryview) -> None:
        nonlocal served
        served += 1
        echo(exchange, frame)

    total = 10 * MAX_IN_FLIGHT
    async with serving(serve) as (_, connect):
        reader, writer = await connect()
        with by_turn(lambda: served) as counts:
            writer.write(b"".join(request(METADATA, number) for number in range(total)))
            assert [(await receive(reader))[0] for _ in range(total)] == list(range(total))
    assert most_in_a_turn(counts) == MAX_IN_FLIGHT


async def test_requests_of_one_receive_count_under_their_own_versions(world: World) -> None:
    client, reader, writer = await routed(world, 9, 10)
    versions = world.broker.dispatcher.times[ApiKey.PRODUCE].versions
    before = versions.copy()
    writer.write(b"".join(produce_frame(b"x", version=version) for version in (10, 10, 9, 9, 9, 10)))
    for _ in range(6):
        await receive(reader)
    assert versions - before == {10: 3, 9: 3}
    await client.close()


async def test_a_request_that_is_too_large_is_refused_also_if_it_looks_like_others(world: World) -> None:
    client, reader, writer = await routed(world, PRODUCE)
    writer.write(produce_frame(b"x" * LARGEST))
    with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
        await receive(reader)
    assert world.partition.log.log_end_offset == 2
    await client.close()
