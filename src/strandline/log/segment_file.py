"""The file of one segment: opened when first needed, closed with its last reference."""

from __future__ import annotations

import os
import threading
from typing import Final, TypeAlias

from strandline.log.closing import close_soon

ReadableBytes: TypeAlias = bytes | bytearray | memoryview

_opening: Final = threading.Lock()
_ROOM: Final = 128 * 1024


class SegmentFile:
    """A segment's `.log` file, shared by its segment and by every response that is being sent from it.

    `size` is what readers may see: it moves when an append is finished, not when its bytes are written.
    The descriptor is opened by the first `fileno()` and closed by the garbage collector with the last reference,
    so a segment can be deleted while a slow consumer still receives it.
    """

    __slots__ = ("_fd", "_is_unlinked", "path", "size")

    def __init__(self, path: str, size: int) -> None:
        self._fd = -1
        self._is_unlinked = False
        self.path = path
        self.size = size

    def fileno(self) -> int:
        """The open descriptor. It belongs to this object: do not close it."""
        fd = self._fd
        return fd if fd >= 0 else self._open(os.O_RDWR)

    def create(self) -> None:
        """Create the file, empty; an existing one is truncated."""
        self.close()
        self._open(os.O_RDWR | os.O_CREAT | os.O_TRUNC)

    def _open(self, flags: int) -> int:
        # A flush in another thread may open the file at the same moment.
        with _opening:
            if self._fd < 0:
                self._fd = os.open(self.path, flags | os.O_CLOEXEC, 0o644)
            return self._fd

    @property
    def is_open(self) -> bool:
        """True if a descriptor is held."""
        return self._fd >= 0

    def read(self, position: int, length: int) -> bytes:
        """At most `length` bytes from `position`; fewer only at the end of the file."""
        return os.pread(self.fileno(), length, position)

    def read_through(self, position: int, length: int) -> None:
        """Bring a range into the page cache, by touching every page of it; the bytes are thrown away. Blocking."""
        fd = self.fileno()
        os.posix_fadvise(fd, position, length, os.POSIX_FADV_WILLNEED)
        room = [bytearray(_ROOM)]
        end = position + length
        while position < end:
            count = os.preadv(fd, room, position)
            if count == 0:
                return
            position += count

    def write(self, data: ReadableBytes, position: int) -> None:
        """Write everything at `position`. Does not move `size`."""
        fd = self.fileno()
        written = os.pwrite(fd, data, position)
        if written < len(data):
            rest = memoryview(data)
            while written < len(data):
                written += os.pwrite(fd, rest[written:], position + written)

    def truncate(self, size: int) -> None:
        """Cut the file and what readers see of it."""
        os.ftruncate(self.fileno(), size)
        self.size = size

    def set_length(self, length: int) -> None:
        """Make the file exactly this long. Readers do not notice. Costs little if it is already."""
        if os.stat(self.path).st_size != length:
            os.ftruncate(self.fileno(), length)

    def preallocate(self, size: int) -> None:
        """Reserve disk space up to `size`. Readers do not see it."""
        os.posix_fallocate(self.fileno(), 0, size)

    def sync(self) -> None:
        """Force the content to disk. Blocking."""
        os.fsync(self.fileno())

    def rename(self, path: str) -> None:
        """Move the file. An open descriptor stays valid."""
        os.replace(self.path, path)
        self.path = path

    def unlink(self) -> None:
        """Remove the name. Holders of this object can still read the bytes."""
        try:
            self.fileno()
            os.unlink(self.path)
            self._is_unlinked = True
        except FileNotFoundError:
            return

    def close(self) -> None:
        """Give the descriptor back. A later use opens the file again."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        fd = self._fd
        if fd < 0:
            return
        if self._is_unlinked:
            close_soon(fd)  # not here, which may be the event loop
        else:
            os.close(fd)

    def __repr__(self) -> str:
        return f"SegmentFile({self.path!r}, size={self.size}, fd={self._fd})"
