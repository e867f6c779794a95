"""Writing large files around the page cache.

An object is written once and, while it is young, read from the broker's own memory: a second copy in the page cache is
of no use. On virtual machines whose host hands out each page, making that copy took ten times as much processor time as
the write itself. Bytes go through a small buffer that is reused.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import threading
from collections.abc import Callable, Iterable
from typing import Final

# Direct I/O needs positions, sizes and addresses that are multiples of the device's block size: 512 or 4096.
_BLOCK: Final = 4096
_CHUNK: Final = 2 * 1024 * 1024
_DIRECT: Final = getattr(os, "O_DIRECT", 0)

_own = threading.local()


def write_directly(fd: int, views: Iterable[memoryview]) -> None:
    """Write views of bytes to an empty file; through the page cache where the file system has no direct I/O."""
    with memoryview(_buffer()) as buffer:
        _set_direct(fd, is_direct=True)
        filled = 0
        for view in views:
            start = 0
            while start < view.nbytes:
                count = min(_CHUNK - filled, view.nbytes - start)
                buffer[filled : filled + count] = view[start : start + count]
                start, filled = start + count, filled + count
                if filled == _CHUNK:
                    _write_all(fd, buffer)
                    filled = 0
        whole = filled - filled % _BLOCK
        _write_all(fd, buffer[:whole])
        _set_direct(fd, is_direct=False)
        _write_all(fd, buffer[whole:filled])


def copy_directly(fd: int, size: int, read_into: Callable[[memoryview, int], None], go_on: Callable[[], bool]) -> None:
    """Write `size` bytes, piece by piece as `read_into(piece, position)` fills them in, to an empty file.

    Ends early when `go_on` returns False. Other threads can run while a piece is read or written.
    """
    with memoryview(_buffer()) as buffer:
        _set_direct(fd, is_direct=True)
        for position in range(0, size, _CHUNK):
            if not go_on():
                return
            count = min(_CHUNK, size - position)
            read_into(buffer[:count], position)
            whole = count - count % _BLOCK
            _write_all(fd, buffer[:whole])
            if whole < count:
                _set_direct(fd, is_direct=False)
                _write_all(fd, buffer[whole:count])


def _buffer() -> mmap.mmap:
    """This thread's buffer. A mapping is aligned to a page, as direct I/O needs."""
    found: mmap.mmap | None = getattr(_own, "buffer", None)
    if found is None:
        found = _own.buffer = mmap.mmap(-1, _CHUNK)
    return found


def _set_direct(fd: int, *, is_direct: bool) -> None:
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    try:
        fcntl.fcntl(fd, fcntl.F_SETFL, flags | _DIRECT if is_direct else flags & ~_DIRECT)
    except OSError as error:
        if error.errno != errno.EINVAL:  # the file system has no direct I/O
            raise


def _write_all(fd: int, view: memoryview) -> None:
    while view:
        try:
            written = os.write(fd, view)
        except OSError as error:
            if error.errno != errno.EINVAL or not fcntl.fcntl(fd, fcntl.F_GETFL) & _DIRECT:
                raise
            written = 0  # the device has larger blocks than _BLOCK
        if written < len(view):
            _set_direct(fd, is_direct=False)  # the rest is not aligned to a block
        view = view[written:]
