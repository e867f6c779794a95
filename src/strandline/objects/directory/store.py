"""Objects as files of a directory, durable before they are acknowledged."""

from __future__ import annotations

import asyncio
import errno
import itertools
import logging
import os
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from strandline.clock import Clock, Ids
from strandline.crash import crash_point
from strandline.objects.directory import files as files
from strandline.objects.directory.errors import general_error, reading_error, writing_error
from strandline.objects.directory.sync import DirectorySync
from strandline.objects.directory.witness import Witness
from strandline.objects.keys import checked_key
from strandline.objects.marker import STORE_ID_KEY
from strandline.objects.source_file import size_of
from strandline.objects.store import (
    Buffer,
    ObjectExists,
    ObjectInfo,
    ObjectRange,
    ObjectStoreError,
    ObjectStoreMisconfigured,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")

# No upload that still runs, of this broker or of another one, is idle for that long. Leftovers are looked for at the
# start and, since a copy that a crash cut short may be large, with this interval when objects are deleted.
_LEFTOVER_AGE_MS: Final = 3_600_000
_PAGE: Final = 1000
# A file of this size takes so long that smaller files must not queue behind it. More copies at once only make a disk
# slower.
_LONG_COPY: Final = 8 * 1024 * 1024
_LONG_COPIES_AT_ONCE: Final = 4
# A read of this many small files takes 0.3 ms from the page cache, and a few milliseconds from a disk.
_RANGES_AT_ONCE: Final = 64

# A name is given in a moment, unless the disk hangs.
_NAMED_WITHIN: Final = 1.0

# A file whose reader gave up after more than this hangs, until the read returns.
_HANGS_AFTER: Final = 1.0

# Threads that have not ended by then hang in the kernel.
_ENDED_WITHIN: Final = 5.0

# Writes and flushes a file with the given name. It may end early when the second argument returns False.
_Write: TypeAlias = Callable[[str, Callable[[], bool]], None]


class _Naming:
    """Decides whether an object gets its name: its thread begins to give it, unless the caller has given up before."""

    def __init__(self) -> None:
        self._taken = threading.Lock()
        self.is_over = threading.Event()
        """Set when the object has its name, or will never have it."""

    @property
    def is_taken(self) -> bool:
        return self._taken.locked()

    def begin(self) -> bool:
        """False if the caller has given up."""
        return self._taken.acquire(blocking=False)

    def give_up(self) -> bool:
        """False if the object is getting its name just now, or has it."""
        return self._taken.acquire(blocking=False)


class _ThreadRead:
    """One use of a thread for reads."""

    __slots__ = ("path", "since")

    def __init__(self) -> None:
        self.path: str | None = None
        """The file that is being read."""
        self.since = 0.0


class DirectoryStore:
    """A directory with a file for each object; several processes may use it at the same time.

    A write takes two flushes: one of the file, in parallel with those of other objects, and one of the directory, which
    concurrent writes share. Both happen in one thread: on a busy broker a thread switch takes as long as a flush.
    Writes, copies and reads have their own threads: no read waits for a flush, no small write for a large copy. Small
    files are copied one after the other: no client waits for them, and several flushes at a time would delay those that
    clients wait for without ending any sooner.
    """

    def __init__(self, path: str, *, clock: Clock, ids: Ids, threads: int, witness: str = STORE_ID_KEY) -> None:
        """Nothing is written while the object `witness` is missing that was there before."""
        self._root = os.path.abspath(path)
        self._witness = Witness(self._root, witness)
        self._clock, self._ids = clock, ids
        self._writers = ThreadPoolExecutor(threads, thread_name_prefix="objects-write")
        self._copiers = ThreadPoolExecutor(1, thread_name_prefix="objects-copy")
        self._long_copiers = ThreadPoolExecutor(_LONG_COPIES_AT_ONCE, thread_name_prefix="objects-long-copy")
        self._readers = ThreadPoolExecutor(threads, thread_name_prefix="objects-read")
        self._abandoned: set[_ThreadRead] = set()
        self._sync = DirectorySync(files.sync_directory)
        # Held while a directory is created and gets its object, and while one is found empty and removed.
        self._tree = threading.Lock()
        self._removals = 0
        self._looked_ms = 0
        self._durable = {self._root}  # directories whose own name is known to be on the disk

    @property
    def url(self) -> str:
        return f"file://{self._root}"

    async def open(self) -> None:
        """Create the directory if it is missing, and remove uploads that crashes left behind."""
        try:
            await self._in(self._writers, lambda: files.make_root(self._root))
            await self._in(self._writers, self._witness.check)
            await self._in(self._writers, self._remove_leftovers)
        except OSError as error:
            if isinstance(error, FileExistsError | NotADirectoryError):
                raise ObjectStoreMisconfigured(f"{self.url} is not a directory. Name another one.") from error
            raise general_error(error, "create the directory for objects", self.url) from error

    async def close(self) -> None:
        """End the threads. Writes whose callers were cancelled end without an object. A thread that hangs is left."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        pools = (self._writers, self._copiers, self._long_copiers, self._readers)
        for threads in pools:
            threads.shutdown(wait=False, cancel_futures=True)

        def wait() -> None:
            for threads in pools:
                threads.shutdown(wait=True)
            with suppress(RuntimeError):  # the caller does not wait any more, and the loop is closed
                loop.call_soon_threadsafe(ended.set)

        threading.Thread(target=wait, name="objects-end", daemon=True).start()
        if not await self._clock.wait_set(ended, within=_ENDED_WITHIN):
            logger.warning(
                "reads or writes in %s hang; the broker does not wait for them. Is its disk there?", self.url
            )

    async def put(self, key: str, parts: Sequence[Buffer]) -> None:
        await self._write(key, lambda upload, _: files.write_flushed(upload, parts), os.rename)

    async def put_new(self, key: str, parts: Sequence[Buffer]) -> None:
        await self._write(key, lambda upload, _: files.write_flushed(upload, parts), _link)

    async def put_file(self, key: str, path: Path) -> None:
        threads = self._long_copiers if size_of(path) >= _LONG_COPY else self._copiers
        await self._write(
            key, lambda upload, is_wanted: files.copy_flushed(path, upload, is_wanted), os.rename, threads=threads
        )

    async def get(self, key: str) -> Buffer:
        return await self._read(key, 0, None)

    async def get_range(self, key: str, start: int, length: int) -> Buffer:
        if start < 0 or length < 0:
            raise ObjectStoreError(f"Object {key} has no {length} bytes from {start} on: neither may be negative.")
        return await self._read(key, start, length)

    @property
    def ranges_at_once(self) -> int:
        return _RANGES_AT_ONCE

    async def get_ranges(self, ranges: Sequence[ObjectRange]) -> Sequence[Buffer | ObjectStoreError]:
        """One after the other in one thread: reaching a thread takes as long as reading ten small files."""
        return await self._reading(lambda reading: [self._read_blocking(reading, *wanted) for wanted in ranges])

    def _read_blocking(self, reading: _ThreadRead, key: str, start: int, length: int) -> Buffer | ObjectStoreError:
        try:
            return self._read_range(reading, self._path(key), start, length)
        except OSError as error:
            return reading_error(error, key, self.url)
        except ObjectStoreError as error:
            return error

    async def list(self, prefix: str, *, after: str = "") -> AsyncGenerator[ObjectInfo, None]:
        found = files.walk(self._root, prefix, after)
        while page := await self._page(found):
            for info in page:
                yield info

    async def delete(self, keys: Sequence[str]) -> None:
        paths = [self._path(key) for key in keys]
        try:
            await self._in(self._writers, lambda: self._delete_blocking(paths))
        except OSError as error:
            raise general_error(error, f"delete {len(keys)} objects, among them {keys[0]},", self.url) from error

    async def _read(self, key: str, start: int, length: int | None) -> bytes:
        path = self._path(key)
        try:
            return await self._reading(lambda reading: self._read_range(reading, path, start, length))
        except OSError as error:
            raise reading_error(error, key, self.url) from error

    async def _reading(self, work: Callable[[_ThreadRead], T]) -> T:
        """What `work` returns, in a thread for reads. If the caller gives up, the thread goes on, perhaps for long."""
        reading = _ThreadRead()
        try:
            return await self._in(self._readers, lambda: work(reading))
        except asyncio.CancelledError:
            self._abandoned.add(reading)
            if reading.path is None:
                self._abandoned.discard(reading)
            raise

    def _read_range(self, reading: _ThreadRead, path: str, start: int, length: int | None) -> bytes:
        """In a thread. A file that hangs gets no second one: soon there would be none left for other files."""
        now = self._clock.monotonic()
        if any(one.path == path and now - one.since > _HANGS_AFTER for one in tuple(self._abandoned)):
            raise TimeoutError(errno.ETIMEDOUT, "an earlier read of it has not returned")
        reading.path, reading.since = path, now
        try:
            return files.read_range(path, start, length)
        except FileNotFoundError:
            self._witness.check()
            raise
        finally:
            reading.path = None
            self._abandoned.discard(reading)

    async def _page(self, found: Iterator[ObjectInfo]) -> Sequence[ObjectInfo]:
        try:
            return await self._in(self._readers, lambda: [*itertools.islice(found, _PAGE)])
        except OSError as error:
            raise general_error(error, "list objects", self.url) from error

    async def _write(
        self,
        key: str,
        write: _Write,
        publish: Callable[[str, str], None],
        *,
        threads: ThreadPoolExecutor | None = None,
    ) -> None:
        path = self._path(key)
        upload = os.path.join(self._root, files.UPLOADS, self._ids.uuid().hex)
        naming = _Naming()
        try:
            await self._in(threads or self._writers, lambda: self._write_blocking(path, upload, write, publish, naming))
        except asyncio.CancelledError:
            # From now on the parts may change, and the key may be deleted: the object must not appear later.
            if not naming.give_up():
                await asyncio.to_thread(naming.is_over.wait, _NAMED_WITHIN)
            raise
        except FileExistsError as error:
            raise ObjectExists(f"Object {key} exists in {self.url} already.") from error
        except OSError as error:
            raise writing_error(error, key, self.url) from error

    def _write_blocking(
        self,
        path: str,
        upload: str,
        write: _Write,
        publish: Callable[[str, str], None],
        naming: _Naming,
    ) -> None:
        """Write an object, give it its name and make both durable."""
        is_renamed = False
        try:
            write(upload, lambda: not naming.is_taken)
            crash_point("objects.put.after_write")
            with self._tree:
                if not naming.begin():
                    return
                # From here on the upload has to be found in the same directory.
                self._witness.check()
                # A directory created now is new, or was removed before by this broker or another one.
                self._durable.difference_update(_make_directory(os.path.dirname(path)))
                publish(upload, path)
                is_renamed = publish is os.rename
                new, removals = self._not_durable(os.path.dirname(path)), self._removals
        finally:
            naming.is_over.set()
            if not is_renamed:
                with suppress(FileNotFoundError):  # it was never created
                    os.unlink(upload)
        crash_point("objects.put.after_publish")
        for directory in {os.path.dirname(name) for name in (path, *new)}:
            self._sync.wait_durable(directory)
        if new:
            self._remember_durable(new, removals)

    def _delete_blocking(self, paths: Sequence[str]) -> None:
        directories = {os.path.dirname(path) for path in paths if _remove(path)}
        self._witness.check()  # else they may be there still
        for directory in directories:
            self._sync.wait_durable(directory)
        self._prune(directories)
        if self._clock.now_ms() - self._looked_ms > _LEFTOVER_AGE_MS:
            self._remove_leftovers()

    def _remove_leftovers(self) -> None:
        self._looked_ms = self._clock.now_ms()
        files.remove_leftovers(self._root, self._looked_ms - _LEFTOVER_AGE_MS)

    def _not_durable(self, directory: str) -> Sequence[str]:
        found = []
        while directory not in self._durable:
            found.append(directory)
            directory = os.path.dirname(directory)
        return found

    def _remember_durable(self, directories: Sequence[str], removals: int) -> None:
        """Remember flushed directories as durable, unless they may have been removed and created again meanwhile."""
        with self._tree:
            if removals == self._removals:
                self._durable.update(directories)

    def _prune(self, directories: set[str]) -> None:
        """Remove directories that have become empty, and those above them."""
        for directory in directories:
            while directory != self._root:
                with self._tree:
                    try:
                        os.rmdir(directory)
                    except OSError:  # not empty, or removed by another broker
                        break
                    self._removals += 1
                    self._durable.discard(directory)
                directory = os.path.dirname(directory)

    async def _in(self, threads: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(threads, work)

    def _path(self, key: str) -> str:
        if checked_key(key).split("/")[0] == files.UPLOADS:
            raise ObjectStoreError(f"{key} cannot be the key of an object: {files.UPLOADS} holds unfinished uploads.")
        return os.path.join(self._root, key)


def _make_directory(path: str) -> Sequence[str]:
    """Create a directory and missing ones above it. Returns those that were created."""
    try:
        os.mkdir(path)
    except FileNotFoundError:
        return [*_make_directory(os.path.dirname(path)), *_make_directory(path)]
    except FileExistsError as error:
        if not os.path.isdir(path):  # an object has the name of this directory
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from error
        return []
    return [path]


def _link(upload: str, path: str) -> None:
    try:
        os.link(upload, path)
    except FileExistsError as error:
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path) from error
        raise


def _remove(path: str) -> bool:
    """Remove a file. False if there was none."""
    try:
        os.unlink(path)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return False
    return True
