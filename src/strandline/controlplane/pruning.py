"""Deleting rows of a log page by page: for deleted topics, retention, DeleteRecords and segments.

A file that no row refers to any more is marked for deletion in the same transaction.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

from strandline.controlplane.database import TRIM_CHANNEL, Database
from strandline.crash import crash_point
from strandline.model import INT64_MAX, Offset
from strandline.sql import Transaction

PAGE: Final = 200
"""Rows that one transaction deletes."""
CALM_PAGE: Final = 50
"""The same for background work: few, because on SQLite commits wait for the transaction."""


class Pruned(NamedTuple):
    """What was deleted."""

    rows: int
    bytes: int


async def prune(
    db: Database,
    log_id: int,
    before: Offset = INT64_MAX,
    *,
    is_urgent: bool = True,
    is_converted: bool = False,
) -> Pruned:
    """Delete the rows of a log that end below `before`, with their split files, page by page.

    The log start moves with them, unless they are converted: then the log goes on below its rows.

    Work that is not urgent has small pages and pauses after each for as long as the page took: at least half of
    the database's time stays for others.

    If the log start was moved before, a crash between two pages leaves rows below it. Retention deletes them.
    """
    rows = size = 0
    limit = PAGE if is_urgent else CALM_PAGE
    while True:
        started = db.clock.monotonic()
        page = await db.store.transact(lambda tx: _prune_page(db, tx, log_id, before, limit, is_converted))
        crash_point("controlplane.prune.after_page")
        if not is_urgent:
            await db.clock.sleep(db.clock.monotonic() - started)
        rows, size = rows + page.rows, size + page.bytes
        if page.rows < limit:
            return Pruned(rows, size)


async def _prune_page(
    db: Database, tx: Transaction, log_id: int, before: Offset, limit: int, is_converted: bool
) -> Pruned:
    """Locks rows, then files, then the log: the log last, because commits wait for it."""
    sql = db.sql
    found = await tx.fetch_one(sql["rows_to_prune"], log_id, before, limit)
    if found is None or not found[0]:
        return Pruned(0, 0)
    rows, size, last_offset, file_ids = found
    await tx.execute(sql["prune_rows"], log_id, last_offset)
    await tx.execute(sql["prune_aborted"], log_id, last_offset)
    # A transaction that records split files locks their rows too: those that are recorded by now are seen.
    splits = await drop_splits(db, tx, log_id, last_offset)
    await mark_unused(db, tx, [*json.loads(file_ids), *splits])
    if is_converted:
        await tx.execute(sql["shrink_log"], log_id, size)
    else:
        await tx.execute(sql["trim_log"], log_id, last_offset, size)
        tx.notify(TRIM_CHANNEL)
    return Pruned(rows, size)


async def drop_splits(db: Database, tx: Transaction, log_id: int, last_offset: Offset) -> list[int]:
    """Remove the split files of a log that end at `last_offset` or earlier; returns the ids of their objects."""
    return [row[0] for row in await tx.fetch(db.sql["drop_splits"], log_id, last_offset)]


async def mark_unused(db: Database, tx: Transaction, file_ids: Sequence[int]) -> None:
    """Files that no row refers to become the file cleaner's."""
    files = db.dialect.bulk([(file_id,) for file_id in file_ids], 1)
    await tx.fetch(db.sql["lock_files"], *files)
    await tx.execute(db.sql["mark_unused_files"], db.given_ms(), *files)
