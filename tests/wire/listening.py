"""A listener whose connections are served by a function of the test, and are over when the listener is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening_with(serve: Serve) -> AsyncIterator[int]:
    """The port. Connections that are open at the end of the block are closed."""
    connections: set[asyncio.Task[None]] = set()

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await serve(reader, writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async with await asyncio.start_server(on_connection, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
    if connections:
        await asyncio.wait(connections, timeout=10)
