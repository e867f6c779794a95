"""Copies segments in a process of its own, with a lower priority than the broker.

Copying moves bytes in large pieces, and yet takes half a processor core while it lasts: in a thread of the broker it
delays requests, by the interpreter's lock and because the kernel gives both equal shares of the processors. The worker
process starts with the first copy and ends when there was none for a while. It may die at any time: the copies that it
had under way fail like any other, and the next one starts a new worker.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Final

from strandline.clock import Clock
from strandline.remote.ports import RemoteStorageError
from strandline.remote.storage.copy_worker import (
    Cancellation,
    CopyEnded,
    CopyOrder,
    Message,
    Ready,
    packed,
    receive,
)
from strandline.remote.storage.settings import ObjectSettings
from strandline.remote.values import LogSegmentData, RemoteLogSegmentMetadata

logger = logging.getLogger(__name__)

POLITENESS: Final = 10
"""The worker's nice value."""
IDLE_SECONDS: Final = 60.0
START_SECONDS: Final = 300.0
"""A worker that takes no orders by then is killed. With a free processor it takes a tenth of a second, but its priority
is low, and one that is killed again and again on a machine without a free one would never copy."""
# Seconds that the worker has to confirm a cancellation or to end, before it is killed.
_GRACE: Final = 0.5
_ENDED: Final = "The process that copies segments ended; the broker's log may say why. The copy is tried again."

# The priority comes first: importing is a good part of the work of a short copy.
_PROGRAM: Final = (
    "import os, sys; os.nice(int(sys.argv[1])); sys.path[:] = sys.argv[4:]; "
    "from strandline.remote.storage.copy_worker import main; main(int(sys.argv[2]), int(sys.argv[3]))"
)


class CopyProcess:
    """The copies of one broker. Implements `SegmentCopies`."""

    def __init__(self, settings: ObjectSettings, *, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._worker: _CopyWorker | None = None
        self._workers: set[_CopyWorker] = set()  # that have not ended: with those that were killed or told to end
        self._starting: asyncio.Task[_CopyWorker] | None = None

    @property
    def pid(self) -> int | None:
        """The worker's process id, while there is one."""
        return self._worker.pid if self._worker is not None else None

    async def copy(self, metadata: RemoteLogSegmentMetadata, data: LogSegmentData) -> None:
        """See `SegmentCopies`."""
        worker = self._worker
        if worker is None or worker.is_gone:
            if self._starting is None:
                self._starting = asyncio.ensure_future(self._start())
                self._starting.add_done_callback(self._started)
            worker = await asyncio.shield(self._starting)  # it goes on if this copy is cancelled
        await worker.ready()
        await worker.ended(worker.begin(metadata, data))

    async def _start(self) -> _CopyWorker:
        worker = self._worker = await _CopyWorker.start(self._settings, self._clock, self)
        self._workers.add(worker)
        return worker

    def _started(self, starting: asyncio.Task[_CopyWorker]) -> None:
        self._starting = None
        if not starting.cancelled():
            starting.exception()  # the copies that wait for it have it

    async def close(self) -> None:
        """See `SegmentCopies`."""
        if self._starting is not None:
            await asyncio.wait([self._starting])
        await asyncio.gather(*[worker.close() for worker in self._workers])

    def rest(self, worker: _CopyWorker) -> None:
        """A worker had nothing to do for a while: it ends, and the next copy starts another one."""
        if worker is self._worker:
            self._worker = None

    def ended(self, worker: _CopyWorker) -> None:
        """A worker is no more."""
        self._workers.discard(worker)


class _CopyWorker:
    """A running worker process. Lives on the event loop."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        clock: Clock,
        owner: CopyProcess,
    ) -> None:
        self._process, self._reader, self._writer = process, reader, writer
        self._clock, self._owner = clock, owner
        self._numbers = itertools.count()
        self._running: dict[int, asyncio.Future[str | None]] = {}
        self._heard, self._ended = asyncio.Event(), asyncio.Event()
        self._starting = asyncio.ensure_future(self._wait_started())
        self._idle: asyncio.Task[None] | None = None
        self._receiving = asyncio.ensure_future(self._receive())
        self.is_gone = False

    @classmethod
    async def start(cls, settings: ObjectSettings, clock: Clock, owner: CopyProcess) -> _CopyWorker:
        """Raises RemoteStorageError."""
        ours: socket.socket | None = None
        try:
            ours, theirs = socket.socketpair()
            with theirs:
                process = await asyncio.to_thread(_spawn, theirs.fileno())
            reader, writer = await asyncio.open_unix_connection(sock=ours)
        except BaseException as error:
            if ours is not None:
                ours.close()
            if isinstance(error, OSError):
                raise RemoteStorageError(f"The process that copies segments cannot be started: {error}.") from error
            raise
        worker = cls(process, reader, writer, clock, owner)
        worker._send(settings)
        return worker

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ready(self) -> None:
        """Wait until the process takes orders. Raises RemoteStorageError if it has ended."""
        await self._heard.wait()
        if self.is_gone:
            raise RemoteStorageError(_ENDED)

    def begin(self, metadata: RemoteLogSegmentMetadata, data: LogSegmentData) -> int:
        """Begin a copy. Returns its number."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        number = next(self._numbers)
        self._running[number] = asyncio.get_running_loop().create_future()
        self._send(CopyOrder(number, metadata, data))
        return number

    async def ended(self, number: int) -> None:
        """Wait for the end of a copy; the caller's cancellation is passed on. Raises RemoteStorageError."""
        copying = self._running[number]
        try:
            error = await asyncio.shield(copying)
        except asyncio.CancelledError:
            await self._cancel(number, copying)
            raise
        finally:
            self._running.pop(number, None)
            if not self._running and not self.is_gone and self._idle is None:
                self._idle = asyncio.ensure_future(self._wait_idle())
        if error is not None:
            raise RemoteStorageError(error)

    async def _cancel(self, number: int, copying: asyncio.Future[str | None]) -> None:
        """Return when nothing of a copy will be written any more: it ended, or the worker is killed."""
        self._send(Cancellation(number))
        ended = asyncio.Event()
        copying.add_done_callback(lambda _: ended.set())
        has_ended = copying.done()
        try:
            has_ended = has_ended or await self._clock.wait_set(ended, within=_GRACE)
        finally:
            if not has_ended:
                logger.warning("a copy did not end when it was cancelled: its process %d is killed", self.pid)
                self._kill()
        if not has_ended:  # until then, the kernel may go on with what the process has asked for
            await self._clock.wait_set(self._ended, within=_GRACE)

    async def close(self) -> None:
        """End the process, and the copies under way. One that the kernel does not let go is left behind."""
        if self._idle is not None:
            self._idle.cancel()
        await self._end()
        self._receiving.cancel()

    async def _end(self) -> None:
        self._gone()
        if not await self._clock.wait_set(self._ended, within=_GRACE):
            self._kill()
            await self._clock.wait_set(self._ended, within=_GRACE)

    def _send(self, message: Message) -> None:
        if not self._writer.is_closing():
            self._writer.write(packed(message))

    async def _receive(self) -> None:
        while (message := await receive(self._reader)) is not None:
            if isinstance(message, Ready):
                self._heard.set()
                self._idle = asyncio.ensure_future(self._wait_idle())
            elif isinstance(message, CopyEnded) and message.number in self._running:
                _set(self._running[message.number], message.error)
        self._gone()
        code = await self._wait_process()
        self._ended.set()
        self._owner.ended(self)
        if code:
            logger.warning("the process %d that copies segments ended with %d; another one follows", self.pid, code)

    async def _wait_process(self) -> int:
        """The exit code. Waits in a thread of its own, which the end of the broker does not wait for."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[int] = loop.create_future()

        def tell(code: int) -> None:
            if not ended.done():
                ended.set_result(code)

        def wait() -> None:
            code = self._process.wait()
            with suppress(RuntimeError):  # the broker's loop is gone already
                loop.call_soon_threadsafe(tell, code)

        threading.Thread(target=wait, name="copy-process-end", daemon=True).start()
        return await ended

    def _kill(self) -> None:
        self._process.kill()
        self._gone()

    def _gone(self) -> None:
        """Nothing more is heard of the process. It ends when its socket is closed."""
        self.is_gone = True
        self._starting.cancel()
        self._heard.set()
        self._writer.close()
        for copying in self._running.values():
            _set(copying, _ENDED)

    async def _wait_started(self) -> None:
        if not await self._clock.wait_set(self._heard, within=START_SECONDS):
            logger.warning("the process %d that copies segments does not start: it is killed", self.pid)
            self._kill()

    async def _wait_idle(self) -> None:
        await self._clock.sleep(IDLE_SECONDS)
        self._owner.rest(self)
        await self._end()


def _set(copying: asyncio.Future[str | None], error: str | None) -> None:
    if not copying.done():
        copying.set_result(error)


def _spawn(descriptor: int) -> subprocess.Popen[bytes]:
    """Blocks for some milliseconds."""
    arguments = (POLITENESS, descriptor, os.getpid())
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *map(str, arguments), *sys.path],
        stdin=subprocess.DEVNULL,
        pass_fds=[descriptor],
    )
