"""The send queue of one socket: bytes, views of batches in memory, and ranges of segment files.

Files go by sendfile, without passing through Python; small ranges are read and joined with the bytes around them
into one send. Views are sent as they are, many with one call. Nothing here waits for a disk: a range that is not in
memory is brought there by a thread first.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from strandline.log import FileSlice
from strandline.records.slices import MemorySlices

if TYPE_CHECKING:
    from strandline.server.page_cache import PageCache
    from strandline.wire.fetch_codec import Part

MAX_INLINE_SLICE: Final = 64 * 1024
READ_AHEAD: Final = 1024 * 1024
MAX_VIEWS: Final = 512  # the kernel takes 1024 with one call


class Outbox:
    """A queue of parts. `wake` is called on the event loop when a range has come from disk."""

    __slots__ = ("_has_views", "_known_part", "_known_until", "_pages", "_sock", "_wake", "is_loading", "parts")

    def __init__(self, sock: socket.socket, pages: PageCache, wake: Callable[[], None]) -> None:
        self._sock = sock
        self._pages = pages
        self._wake = wake
        self.parts: deque[Part | memoryview] = deque()
        """What has not been sent. For reading only."""
        self._known_part: FileSlice | None = None
        self._known_until = 0
        self._has_views = False
        self.is_loading = False

    def extend(self, parts: Iterable[Part]) -> None:
        """Queue the parts of a response."""
        self.parts.extend(parts)

    def clear(self) -> None:
        """Forget everything: the socket is closed."""
        self.parts.clear()
        self._known_part = None

    def send(self, budget: int) -> int:
        """Send until the budget is used up, the socket is full or the next bytes are not in memory.

        Returns the bytes sent. Raises OSError if the connection or a file is broken.
        """
        total = 0
        while self.parts and total < budget and not self.is_loading:
            sent = self._send_some(budget - total)
            if sent == 0:
                break
            total += sent
        return total

    def _send_some(self, budget: int) -> int:
        """One system call's worth; 0 if nothing can be sent now."""
        part = self.parts[0]
        try:
            if isinstance(part, FileSlice) and (part.length > MAX_INLINE_SLICE or part is self._known_part):
                return self._send_file(part, budget)
            return self._send_bytes(budget)
        except (BlockingIOError, InterruptedError):
            return 0

    def _send_bytes(self, budget: int) -> int:
        chunks, flags = self._gather(budget)
        if not chunks:
            return 0
        if self._has_views:
            return self._send_views(chunks, flags)
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        sent = 0
        try:
            sent = self._sock.send(data, flags)
        finally:
            if sent < len(data):  # gathering took the parts from the queue: the rest goes back
                self.parts.appendleft(data[sent:])
        return sent

    def _send_views(self, chunks: list[bytes | bytearray | memoryview], flags: int) -> int:
        """Send chunks without joining them; what the socket does not take goes back."""
        sent = left = 0
        try:
            sent = left = self._sock.sendmsg(chunks, (), flags)
        finally:
            rest = iter(chunks)
            for chunk in rest:
                if left < len(chunk):
                    self.parts.extendleft(reversed([memoryview(chunk)[left:], *rest]))
                    break
                left -= len(chunk)
        return sent

    def _gather(self, budget: int) -> tuple[list[bytes | bytearray | memoryview], int]:
        """Take parts that fit one send: bytes, views, and small slices of files read into memory."""
        parts = self.parts
        chunks: list[bytes | bytearray | memoryview] = []
        size = 0
        self._has_views = False
        data: bytes | bytearray | memoryview | None
        while parts and size < budget and len(chunks) < MAX_VIEWS:
            part = parts[0]
            if isinstance(part, FileSlice):
                if part.length > MAX_INLINE_SLICE:
                    return chunks, socket.MSG_MORE
                data = self._read(part)
                if data is None:
                    break
            elif isinstance(part, bytes | bytearray):
                data = part
            elif isinstance(part, memoryview):
                self._has_views = True
                if len(part) > budget - size:
                    parts[0] = part[budget - size :]
                    chunks.append(part[: budget - size])
                    break
                data = part
            elif isinstance(part, MemorySlices):
                parts.popleft()
                parts.extendleft(reversed(part.parts))
                continue
            else:
                raise TypeError(f"A {type(part).__name__} cannot be sent.")
            parts.popleft()
            chunks.append(data)
            size += len(data)
        return chunks, 0

    def _send_file(self, part: FileSlice, budget: int) -> int:
        wanted = min(part.length, budget)
        if not self._is_in_memory(part, wanted):
            return 0
        sent = os.sendfile(self._sock.fileno(), part.file.fileno(), part.position, wanted)
        if sent == 0:
            raise OSError(f"A segment file ended {part.length} bytes before the end of the records to be sent.")
        part.position += sent
        part.length -= sent
        if part.length == 0:
            self.parts.popleft()
            self._known_part = None
        return sent

    # Files that are not in memory

    def _is_in_memory(self, part: FileSlice, length: int) -> bool:
        if part is self._known_part and part.position + length <= self._known_until:
            return True
        ahead = min(part.length, READ_AHEAD)
        if not self._pages.has(part.file.fileno(), part.position, ahead):
            self._load(part, ahead)
            return False
        self._known_part, self._known_until = part, part.position + ahead
        return True

    def _read(self, part: FileSlice) -> bytes | bytearray | None:
        """The bytes of a small slice; None if they have to come from disk first."""
        data = self._pages.read(part.file.fileno(), part.position, part.length)
        if data is None:
            self._load(part, part.length)
        elif len(data) < part.length:
            raise OSError(
                f"A segment file ended {part.length - len(data)} bytes before the end of the records to be sent."
            )
        return data

    def _load(self, part: FileSlice, length: int) -> None:
        self.is_loading = True
        until = part.position + length
        self._pages.load(part.file, part.position, length, lambda: self._loaded(part, until))

    def _loaded(self, part: FileSlice, until: int) -> None:
        self.is_loading = False
        # Not asked again: a kernel with too little memory for its cache may say no forever.
        self._known_part, self._known_until = part, until
        self._wake()
