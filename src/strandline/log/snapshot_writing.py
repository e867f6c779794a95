"""Writes the pending producer snapshots of a log: in steps on the event loop, and to disk in a thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias

from strandline.log.files import write_pieces
from strandline.log.producer_state import PendingSnapshot
from strandline.log.unified import UnifiedLog
from strandline.tasks import next_turn

_PRODUCERS_PER_TURN: Final = 1_000

OnDisk: TypeAlias = Callable[[Callable[[], None]], Awaitable[bool]]
"""Runs blocking work in a thread. False if it failed: then the log is offline."""


async def write_snapshots(log: UnifiedLog, on_disk: OnDisk) -> None:
    """Return when no producer snapshot of the log is pending, or the log is offline.

    Others may do the same at the same time, and appends go on. A snapshot that was dropped or finished by others
    meanwhile is left alone.
    """
    producers = log.producers
    while not log.is_offline and (pending := producers.pending_snapshot) is not None:
        await _encode(log, pending)
        if log.is_offline or producers.pending_snapshot is not pending:
            continue
        temporary = producers.temporary_path(pending)
        if not await on_disk(partial(write_pieces, temporary, pending.encoding.content())) or log.is_offline:
            return
        try:
            producers.put_in_place(pending, temporary)
        except OSError as error:
            log.env.directory.fail(error)


async def _encode(log: UnifiedLog, pending: PendingSnapshot) -> None:
    while not pending.encoding.is_complete and log.producers.pending_snapshot is pending and not log.is_offline:
        pending.encoding.encode(_PRODUCERS_PER_TURN)
        await next_turn()
