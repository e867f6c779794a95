"""Logs with so many producers that their snapshots are pending for a while after a roll."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from strandline.log import UnifiedLog
from strandline.log.producer_snapshot import format_snapshot
from strandline.records.producer_entry import BatchSpan, ProducerEntry
from tests.log.harness import NOW

MANY = 5_100


def producers(count: int = MANY) -> list[ProducerEntry]:
    return [ProducerEntry(1000 * number, 0, [BatchSpan(4, 2, 1, NOW)], NOW) for number in range(count)]


def give_producers(log: UnifiedLog, count: int = MANY) -> None:
    """As if they had written before the log start; a snapshot says so."""
    snapshot = format_snapshot(producers(count))
    log.producers.add_snapshot(log.log_start_offset, snapshot)
    log.producers.restore(snapshot, NOW)


def state(log: UnifiedLog) -> bytes:
    return format_snapshot(log.producers.entries.values())


def path_of(log: UnifiedLog, offset: int) -> Path:
    return Path(log.producers.snapshot_path(offset))


def pending_in(log: UnifiedLog) -> list[int]:
    """The offsets of the pending snapshots."""
    return [offset for offset in log.segments.bases if log.producers.is_pending(offset)]


async def in_thread(work: Callable[[], None]) -> bool:
    await asyncio.to_thread(work)
    return True
