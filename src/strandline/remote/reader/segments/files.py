"""Remote segments that are files of this machine (`LocalSegmentFiles`): sent by the kernel, as local segments are.

Their bytes are never copied to the memory of this process. But they have to be in the page cache before they are sent:
loading them may take long, and is done by threads, which count as reads of the reader.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from strandline.clock import Clock
from strandline.log import FileSlice, SegmentFile
from strandline.records import Buffer
from strandline.remote.ports import RemoteResourceNotFound, RemoteStorageError
from strandline.remote.reader.limits import ReadGate
from strandline.remote.reader.values import FetchQuota
from strandline.tasks import TaskSet

T = TypeVar("T")

# A network file system may never answer.
_DEADLINE_SECONDS: Final = 30.0
_STEP: Final = 1024 * 1024
_AHEAD: Final = 4 * 1024 * 1024


class RemoteFile(SegmentFile):
    """The file of a remote segment, kept open for reading, also while it is being deleted."""

    __slots__ = ()

    def __init__(self, path: str) -> None:
        super().__init__(path, 0)
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size = os.fstat(self._fd).st_size

    def __del__(self) -> None:
        # Closing the last descriptor of a deleted file frees its blocks, and a network file system may hang: this must
        # not block the event loop.
        fd, self._fd = self._fd, -1
        if fd >= 0:
            threading.Thread(target=os.close, args=(fd,), name="close-remote", daemon=True).start()


class FileReads:
    """Threads and counters for all files. Lives on the event loop."""

    def __init__(self, gate: ReadGate, quota: FetchQuota | None, clock: Clock) -> None:
        self.gate, self.quota, self._clock = gate, quota, clock
        self._threads: ThreadPoolExecutor | None = None
        self._tasks = TaskSet()
        self.can_ask = hasattr(os, "RWF_NOWAIT")
        """Whether the kernel tells what is in the page cache; if not, everything counts as loaded."""
        self.requests = 0
        self.read_seconds = 0.0

    async def open(self, path: Path, size: int) -> FileSource:
        """Open a segment of `size` bytes. Raises RemoteStorageError."""
        try:
            file = await self.run(lambda: RemoteFile(str(path)))
        except FileNotFoundError as error:
            raise RemoteResourceNotFound(f"There is no file {path}.") from error
        except OSError as failure:
            raise RemoteStorageError(f"{path} cannot be opened: {failure.strerror}.") from failure
        if file.size < size:
            raise RemoteResourceNotFound(f"{path} has {file.size} bytes instead of {size}.")
        return FileSource(self, file, size)

    async def run(self, work: Callable[[], T]) -> T:
        """Do blocking work in a thread, in a slot of the gate and within the deadline.

        Raises what it raises, RemoteStorageError at the deadline, KafkaStorageError if too many reads wait already.
        """
        self.gate.enter()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.gate.parallel, thread_name_prefix="remote-read")
        started = self._clock.monotonic()
        try:
            async with self.gate.turn(), asyncio.timeout(_DEADLINE_SECONDS):
                self.requests += 1
                return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except TimeoutError as error:
            raise RemoteStorageError(f"The file system did not answer within {_DEADLINE_SECONDS:g} s.") from error
        finally:
            self.read_seconds += self._clock.monotonic() - started

    @property
    def has_spare(self) -> bool:
        """Whether there is room for read-ahead."""
        return self.gate.has_spare and (self.quota is None or self.quota.throttle_seconds() == 0)

    def start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Start a read that goes on when its request is cancelled."""
        task = self._tasks.start(work, name="remote-read")
        task.add_done_callback(_look_at_failure)
        return task

    async def close(self) -> None:
        """Cancel reads, and end the threads."""
        await self._tasks.close()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


def _look_at_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()  # a waiting request gets it; a failed read-ahead is repeated by the next fetch


class FileLoading:
    """A `Loading` of pages into the page cache."""

    __slots__ = ("_task",)

    def __init__(self, task: asyncio.Task[None] | None) -> None:
        self._task = task

    async def wait(self) -> None:
        if self._task is not None:
            await asyncio.wait((self._task,))
            self._task.result()

    def release(self) -> None:
        self._task = None


class FileSource:
    """A `SegmentBytes` in a file."""

    __slots__ = ("_byte", "_file", "_reads", "size")

    takes_memory = False

    def __init__(self, reads: FileReads, file: RemoteFile, size: int) -> None:
        self._reads, self._file = reads, file
        self._byte = [bytearray(1)]
        self.size = size

    def at_hand(self, position: int, length: int) -> int:
        if not self._reads.can_ask:
            return length
        end = min(position + length, self.size)
        at = position
        while at < end and self._has(at) and self._has(min(at + _STEP, end) - 1):
            at = min(at + _STEP, end)
        return at - position

    def _has(self, position: int) -> bool:
        try:
            os.preadv(self._file.fileno(), self._byte, position, os.RWF_NOWAIT)
        except BlockingIOError:
            return False
        except OSError:
            self._reads.can_ask = False  # this file system does not know the flag
        return True

    def peek(self, position: int, length: int) -> Buffer | None:
        length = min(length, self.size - position)
        room = bytearray(length)
        try:
            count = os.preadv(self._file.fileno(), [room], position, os.RWF_NOWAIT if self._reads.can_ask else 0)
        except OSError:
            return None
        return room if count == length else None

    async def read(self, position: int, length: int) -> Buffer:
        length = min(length, self.size - position)
        fd = self._file.fileno()
        try:
            data = await self._reads.run(lambda: os.pread(fd, length, position))
        except OSError as error:
            raise RemoteStorageError(f"{self._file.path} cannot be read: {error.strerror}.") from error
        if len(data) < length:
            raise RemoteResourceNotFound(f"{self._file.path} ends before position {position + length}.")
        return data

    def slice(self, position: int, length: int) -> FileSlice:
        length = min(length, self.size - position)
        if self._reads.quota is not None:
            self._reads.quota.record(length)
        return FileSlice(self._file, position, length)

    def load(self, position: int, length: int) -> FileLoading:
        length = min(length, self.size - position)
        if self.at_hand(position, length) >= length:
            return FileLoading(None)
        return FileLoading(self._reads.start(self._touch(position, length)))

    def load_ahead(self, position: int, length: int) -> int:
        end = min(position + length, self.size)
        while position < end and self._reads.has_spare:
            upto = min(position + _AHEAD, end)
            if self.at_hand(position, upto - position) < upto - position:
                self._reads.start(self._touch(position, upto - position))
            position = upto
        return position

    async def _touch(self, position: int, length: int) -> None:
        file = self._file
        try:
            await self._reads.run(lambda: file.read_through(position, length))
        except OSError as error:
            raise RemoteStorageError(f"{file.path} cannot be read: {error.strerror}.") from error

    def close(self) -> None:
        """The descriptor is closed with the last slice."""
