"""An HTTP server whose answers a test chooses, and that records its requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple


class Request(NamedTuple):
    """What a client sent."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class HttpServer:
    """Answers every request with what `answer` makes of it. None never answers."""

    answer: Callable[[Request], bytes | None]
    port: int = 0
    requests: list[Request] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one request."""
        try:
            request = await _read(reader)
            self.requests.append(request)
            answer = self.answer(request)
            if answer is None:
                await reader.read()  # until the client leaves
            else:
                writer.write(answer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has left
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return Request(method, path, headers, await reader.readexactly(int(headers.get("content-length", 0))))


def answer(status: str, body: bytes = b"", **headers: str) -> bytes:
    """The bytes of an HTTP answer, for instance `answer("503 Slow Down", b"<Error/>", ETag='"x"')`."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if "Content_Length" not in headers:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "Connection: close", "", ""]).encode() + body


@asynccontextmanager
async def http_server(answer: Callable[[Request], bytes | None]) -> AsyncIterator[HttpServer]:
    """A server for the time of the block."""
    http = HttpServer(answer)
    server = await asyncio.start_server(http.serve, "127.0.0.1", 0, limit=1 << 24)
    http.port = server.sockets[0].getsockname()[1]
    async with server:
        yield http
