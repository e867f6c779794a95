"""A file that is copied into an object. Everything here blocks; asking for a size is quick."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final

from strandline.objects.store import SourceUnreadable

_ONLY_CACHED: Final = getattr(os, "RWF_NOWAIT", 0)
# Errors of kernels and file systems that cannot tell whether bytes are in the page cache.
_CANNOT_TELL: Final = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS})


def size_of(path: Path) -> int:
    """Raises SourceUnreadable."""
    with _readable(path):
        return path.stat().st_size


class SourceFile:
    """A file, opened for copying.

    Reading leaves the page cache as it is: cached bytes are read from it, and bytes that come from the disk do not stay
    in it. Segments are copied when they are old; the cache is for segments that clients read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with _readable(path):
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                self.size = os.fstat(self._fd).st_size
                # Without this the kernel reads ahead, and bytes it has read look as if they had been cached before.
                os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_RANDOM)
            except BaseException:
                os.close(self._fd)
                raise

    def __enter__(self) -> SourceFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)

    def read(self, position: int, count: int) -> bytearray:
        """`count` bytes from `position` on. Raises SourceUnreadable."""
        data = bytearray(count)
        self.read_into(memoryview(data), position)
        return data

    def read_into(self, piece: memoryview, position: int) -> None:
        """Fill `piece` with the bytes from `position` on. Raises SourceUnreadable."""
        with _readable(self._path):
            done = self._read_cached(piece, position)
            if done == len(piece):
                return
            while done < len(piece):
                count = os.preadv(self._fd, [piece[done:]], position + done)
                if count == 0:
                    raise SourceUnreadable(f"{self._path} became shorter while it was copied.")
                done += count
            os.posix_fadvise(self._fd, position, len(piece), os.POSIX_FADV_DONTNEED)

    def _read_cached(self, piece: memoryview, position: int) -> int:
        """Read what is in the page cache, up to the first byte that is not."""
        if not _ONLY_CACHED:
            return 0
        try:
            return os.preadv(self._fd, [piece], position, _ONLY_CACHED)
        except BlockingIOError:
            return 0
        except OSError as error:
            if error.errno not in _CANNOT_TELL:
                raise
            return 0


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SourceUnreadable(f"{path} cannot be copied: {error.strerror or error}.") from error
