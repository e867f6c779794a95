"""The process that copies segments for a broker. `copy_process` starts it and speaks with it.

It has nothing to decide: the broker says which files to copy under which keys, repeats what failed, and deletes what
must not stay. When the broker is gone it ends at once, whatever it is doing.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
import struct
from contextlib import AsyncExitStack
from typing import Final, NamedTuple, TypeAlias

from strandline import crash
from strandline.objects import open_objects
from strandline.remote.ports import RemoteStorageError
from strandline.remote.storage.names import SegmentKeys
from strandline.remote.storage.settings import ObjectSettings
from strandline.remote.storage.uploads import ObjectCopies, translated
from strandline.remote.values import LogSegmentData, RemoteLogSegmentMetadata

_LENGTH: Final = struct.Struct("!I")


class Ready(NamedTuple):
    """The worker has started, and takes orders. Until then none is sent: what was not sent can be cancelled at once."""


class CopyOrder(NamedTuple):
    """Copy a segment."""

    number: int
    metadata: RemoteLogSegmentMetadata
    data: LogSegmentData


class Cancellation(NamedTuple):
    """Stop a copy. It is answered like any other, once nothing of it will be written any more."""

    number: int


class CopyEnded(NamedTuple):
    """The end of a copy, with the reason why it failed."""

    number: int
    error: str | None


Message: TypeAlias = ObjectSettings | Ready | CopyOrder | Cancellation | CopyEnded


def packed(message: Message) -> bytes:
    """A message as it is sent. Both ends are of one version, and trust each other."""
    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(body)) + body


async def receive(reader: asyncio.StreamReader) -> Message | None:
    """The next message; None if the other end is gone."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        message: Message = pickle.loads(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, OSError):
        return None
    return message


class _CopyServer:
    def __init__(self, settings: ObjectSettings, writer: asyncio.StreamWriter) -> None:
        self._settings, self._writer = settings, writer
        self._stack = AsyncExitStack()
        self._uploads: ObjectCopies | None = None
        self._opening = asyncio.Lock()
        self._copies: dict[int, asyncio.Task[None]] = {}

    def start(self, order: CopyOrder) -> None:
        copy = self._copies[order.number] = asyncio.ensure_future(self._copy(order))
        copy.add_done_callback(lambda ended: self._answer(order.number, ended))

    def cancel(self, number: int) -> None:
        if number in self._copies:  # else its answer is on the way
            self._copies[number].cancel()

    async def _copy(self, order: CopyOrder) -> None:
        await (await self._opened()).copy(order.metadata, order.data)

    def _answer(self, number: int, ended: asyncio.Task[None]) -> None:
        del self._copies[number]
        self._writer.write(packed(CopyEnded(number, _why_failed(ended))))

    async def _opened(self) -> ObjectCopies:
        """The store. If it cannot be opened, the next copy tries again."""
        async with self._opening:
            if self._uploads is None:
                settings = self._settings
                with translated():
                    objects = await self._stack.enter_async_context(open_objects(settings.url, settings.options))
                self._uploads = ObjectCopies(objects, SegmentKeys(settings.prefix))
            return self._uploads


def _why_failed(ended: asyncio.Task[None]) -> str | None:
    if ended.cancelled():
        return "It was cancelled."
    error = ended.exception()
    return None if error is None else str(error) if isinstance(error, RemoteStorageError) else repr(error)


async def _serve(connection: socket.socket) -> None:
    reader, writer = await asyncio.open_unix_connection(sock=connection)
    settings = await receive(reader)
    if isinstance(settings, ObjectSettings):
        server = _CopyServer(settings, writer)
        writer.write(packed(Ready()))
        while (message := await receive(reader)) is not None:
            if isinstance(message, CopyOrder):
                server.start(message)
            elif isinstance(message, Cancellation):
                server.cancel(message.number)
    # Without waiting for threads: what they write now has no name yet, and the broker does not wait for it any more.
    os._exit(0)


def main(descriptor: int, broker: int) -> None:
    """Serve the broker at the other end of a socket. Does not return."""
    # A terminal or a service manager signals the whole group; the broker decides when its copies end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    crash.die_with(broker)
    asyncio.run(_serve(socket.socket(fileno=descriptor)))
