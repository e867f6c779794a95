"""Writes the pending producer snapshots of logs: in steps on the event loop, and to disk in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from typing import Final, TypeAlias

from strandline.log.files import TEMPORARY, write_pieces
from strandline.log.producer_snapshot import PendingSnapshot
from strandline.log.unified import UnifiedLog
from strandline.tasks import next_turn

_PRODUCERS_PER_TURN: Final = 1_000

_temporary_numbers: Final = count()

OnDisk: TypeAlias = Callable[[Callable[[], None]], Awaitable[bool]]
"""Runs blocking work in a thread. False if it failed: then the log is offline."""

OnDiskOf: TypeAlias = Callable[[UnifiedLog, Callable[[], None]], Awaitable[bool]]
"""The same for any log."""

Turn: TypeAlias = Callable[[], Awaitable[None]]
"""Returns when the next step may be taken."""


async def write_snapshots(log: UnifiedLog, on_disk: OnDisk) -> None:
    """Return when no producer snapshot is pending that was when this began, or the log is offline.

    Others may do the same at the same time, and appends go on. A snapshot that was dropped or finished by others
    meanwhile is left alone.
    """
    up_to = log.producers.pending_up_to
    while (pending := log.producers.pending_snapshot) is not None and pending.offset <= up_to and not log.is_offline:
        await _write(log, pending, on_disk, next_turn)


async def _write(log: UnifiedLog, pending: PendingSnapshot, on_disk: OnDisk, turn: Turn) -> None:
    """Write the oldest pending snapshot, unless it is dropped or finished meanwhile or the log goes offline."""
    producers, encoding = log.producers, pending.encoding
    while not encoding.is_complete and producers.pending_snapshot is pending and not log.is_offline:
        await turn()
        encoding.encode(_PRODUCERS_PER_TURN)
    if log.is_offline or producers.pending_snapshot is not pending:
        return
    # Others may write it at the same time.
    temporary = f"{producers.snapshot_path(pending.offset)}.{next(_temporary_numbers)}{TEMPORARY}"
    if not await on_disk(partial(write_pieces, temporary, encoding.content())) or log.is_offline:
        return
    try:
        producers.put_in_place(pending, temporary)
    except OSError as error:
        log.env.directory.fail(error)


class SnapshotTasks:
    """Tasks that write the pending snapshots of logs: one for each log, as long as it has any.

    However many they are, only one of them takes a step in a turn of the event loop. A task awaits `on_written` after
    each snapshot. If it fails other than by the disk, it calls `on_failure`, and `check` raises the error.
    """

    def __init__(
        self,
        on_disk: OnDiskOf,
        *,
        on_written: Callable[[UnifiedLog], Awaitable[None]],
        on_failure: Callable[[], None],
    ) -> None:
        self._on_disk, self._on_written, self._on_failure = on_disk, on_written, on_failure
        self._tasks: dict[UnifiedLog, asyncio.Task[None]] = {}
        self._step = asyncio.Lock()
        self._failure: BaseException | None = None

    def start(self, log: UnifiedLog) -> None:
        """Let the pending snapshots of a log be written, if they are not already."""
        task = self._tasks.get(log)
        if task is None or task.done():
            self._tasks[log] = task = asyncio.create_task(
                self._write_all(log), name=f"producer snapshots of {log.topic_partition}"
            )
            task.add_done_callback(partial(self._ended, log))

    def check(self) -> None:
        """Raises what a task has raised."""
        if self._failure is not None:
            raise self._failure

    async def close(self) -> None:
        """Cancel the tasks, and return when they have ended."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _write_all(self, log: UnifiedLog) -> None:
        while (pending := log.producers.pending_snapshot) is not None and not log.is_offline:
            await _write(log, pending, partial(self._on_disk, log), self._turn)
            await self._on_written(log)

    async def _turn(self) -> None:
        async with self._step:
            await next_turn()

    def _ended(self, log: UnifiedLog, task: asyncio.Task[None]) -> None:
        if self._tasks.get(log) is task:
            del self._tasks[log]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error
            self._on_failure()
