"""Operations on the files of a directory store. Everything here blocks; the threads of `DirectoryStore` call it.

An object is written to `.uploads`, flushed, and only then gets its name, so that a name always stands for a whole
object. Files that a crash leaves in `.uploads` are never listed; `remove_leftovers` removes them when they are old.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from strandline.objects.directory.direct_writes import copy_directly, write_directly
from strandline.objects.keys import is_key
from strandline.objects.source_file import SourceFile
from strandline.objects.store import Buffer, ObjectInfo

UPLOADS: Final = ".uploads"
# The most buffers that Linux takes in one call.
_MOST_BUFFERS: Final = 1024
# Blocks of larger objects are allocated first: a full disk is found before anything is written. It was mostly faster,
# too, with 8 MiB on ext4; the limit itself is a guess.
_LARGE: Final = 256 * 1024
# Errors of file systems that cannot allocate in advance.
_CANNOT_ALLOCATE: Final = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.ENODEV})


def write_flushed(path: str, parts: Sequence[Buffer]) -> None:
    """Create a new file of `parts` and flush it to the disk; a small one without copying, a large one directly."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        views = [view for part in parts if (view := memoryview(part).cast("B")).nbytes]
        size = sum(view.nbytes for view in views)
        if size < _LARGE:
            _write_all(fd, views)
        else:
            _allocate(fd, size)
            write_directly(fd, views)
        os.fsync(fd)
    finally:
        os.close(fd)


def copy_flushed(source_path: Path, path: str, go_on: Callable[[], bool]) -> None:
    """Create a new file that is a copy of another and flush it to the disk, unless `go_on` returns False meanwhile."""
    with SourceFile(source_path) as source:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            if source.size < _LARGE:
                data = bytearray(source.size)
                source.read_into(memoryview(data), 0)
                _write_all(fd, [memoryview(data)] if data else [])
            else:
                _allocate(fd, source.size)
                copy_directly(fd, source.size, source.read_into, go_on)
            if go_on():
                os.fsync(fd)
        finally:
            os.close(fd)


def _allocate(fd: int, size: int) -> None:
    try:
        os.posix_fallocate(fd, 0, size)
    except OSError as error:
        if error.errno not in _CANNOT_ALLOCATE:
            raise


def _write_all(fd: int, views: list[memoryview]) -> None:
    first = 0
    while first < len(views):
        written = os.writev(fd, views[first : first + _MOST_BUFFERS])
        while first < len(views) and written >= views[first].nbytes:
            written -= views[first].nbytes
            first += 1
        if written:  # the call ended inside a buffer
            views[first] = views[first][written:]


def sync_directory(path: str) -> None:
    """Make the names in a directory durable. A directory that was removed meanwhile is skipped."""
    with suppress(FileNotFoundError):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def make_root(path: str) -> None:
    """Create a directory and missing ones above it, durably, with a directory for uploads inside."""
    made = []
    above = path
    while not os.path.isdir(above):
        made.append(above)
        above = os.path.dirname(above)
    os.makedirs(os.path.join(path, UPLOADS), exist_ok=True)
    for directory in made:
        sync_directory(os.path.dirname(directory))


def remove_leftovers(root: str, before_ms: int) -> None:
    """Remove uploads that were not written to since `before_ms`: their process is gone."""
    with os.scandir(os.path.join(root, UPLOADS)) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # another broker of this directory was faster
                if entry.stat(follow_symlinks=False).st_mtime_ns // 1_000_000 < before_ms:
                    os.unlink(entry.path)


def read_range(path: str, start: int, length: int | None) -> bytes:
    """`length` bytes from `start` on, fewer only at the end of the file; None reads up to the end."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # A small range needs no look at the size: after each system call a thread waits for the interpreter's lock.
        if length is None or length > _LARGE:
            there = max(os.fstat(fd).st_size - start, 0)
            left = there if length is None else min(there, length)
        else:
            left = length
        # Read even if nothing is left: reading a directory must raise.
        pieces = [os.pread(fd, left, start)]
        left -= len(pieces[-1])
        while left and pieces[-1]:  # a single call reads at most 2 GiB
            pieces.append(os.pread(fd, left, start + sum(map(len, pieces))))
            left -= len(pieces[-1])
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    finally:
        os.close(fd)


def walk(root: str, prefix: str, after: str) -> Iterator[ObjectInfo]:
    """The objects whose key begins with `prefix` and is greater than `after`, in the order of keys."""
    return _walk(root, "", prefix, after)


def _walk(root: str, directory: str, prefix: str, after: str) -> Iterator[ObjectInfo]:
    try:
        with os.scandir(os.path.join(root, directory)) as entries:
            found = [(_sorted_name(directory, entry), entry) for entry in entries]
    except (FileNotFoundError, NotADirectoryError):  # gone since its parent was read, or never there
        return
    for name, entry in sorted(found, key=lambda pair: pair[0]):
        if name.endswith("/"):
            if _may_hold(name, prefix, after) and name != f"{UPLOADS}/":
                yield from _walk(root, name, prefix, after)
        elif name.startswith(prefix) and name > after and is_key(name):
            with suppress(FileNotFoundError):
                found_here = entry.stat()
                yield ObjectInfo(name, found_here.st_size, found_here.st_mtime_ns // 1_000_000)


def _sorted_name(directory: str, entry: os.DirEntry[str]) -> str:
    # With the slash a directory sorts where its objects sort: "a-b" comes before "a/b".
    return f"{directory}{entry.name}/" if entry.is_dir() else f"{directory}{entry.name}"


def _may_hold(directory: str, prefix: str, after: str) -> bool:
    if not (directory.startswith(prefix) or prefix.startswith(directory)):
        return False
    return directory > after or after.startswith(directory)
