"""Removing rows that no reader needs any more, page by page, and marking the files that are then used by nobody."""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from strandline.controlplane.database import Database
from strandline.crash import crash_point
from strandline.model import INT64_MAX, Offset
from strandline.sql import Transaction

PAGE: Final = 200
CALM_PAGE: Final = 50
"""Rows of one transaction if nobody waits for it: few, because on SQLite commits wait for it."""


class Pruned(NamedTuple):
    """What went."""

    rows: int
    bytes: int


class SqlPruning(Database):
    """What deleting topics, retention and DeleteRecords have in common."""

    async def _prune(self, log_id: int, before: Offset = INT64_MAX, *, is_urgent: bool = True) -> Pruned:
        """Remove the rows of a log that end below `before`; its start moves along, page by page.

        If nobody waits for it, pages are small, and it rests after each for as long as that took: half of the time is
        for others.

        If its start has been moved before, a crash between two pages leaves rows below it, which retention removes.
        """
        rows = size = 0
        limit = PAGE if is_urgent else CALM_PAGE
        while True:
            started = self._clock.monotonic()
            page = await self._store.transact(lambda tx: self._prune_page(tx, log_id, before, limit))
            crash_point("controlplane.prune.after_page")
            if not is_urgent:
                await self._clock.sleep(self._clock.monotonic() - started)
            rows, size = rows + page.rows, size + page.bytes
            if page.rows < limit:
                return Pruned(rows, size)

    async def _prune_page(self, tx: Transaction, log_id: int, before: Offset, limit: int) -> Pruned:
        """Locks rows, then files, then the log: that one last, because commits wait for it."""
        found = await tx.fetch_one(self._sql["rows_to_prune"], log_id, before, limit)
        if found is None or not found[0]:
            return Pruned(0, 0)
        rows, size, last_offset, file_ids = found
        await tx.execute(self._sql["prune_rows"], log_id, last_offset)
        files = self._dialect.bulk([(file_id,) for file_id in json.loads(file_ids)], 1)
        await tx.fetch(self._sql["lock_files"], *files)
        await tx.execute(self._sql["mark_unused_files"], self._clock.now_ms(), *files)
        await tx.execute(self._sql["trim_log"], log_id, last_offset, size)
        return Pruned(rows, size)
