"""Deletes WAL objects that no batch refers to any more, after a grace period for readers that still read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from strandline.clock import Chance, Clock
from strandline.controlplane import FileDeletion, WalFile
from strandline.crash import crash_point
from strandline.diskless.upkeep.loop import IsOnDuty, UpkeepLoop, UpkeepStatus, always_on_duty
from strandline.objects import ObjectStore, ObjectStoreError

# Object stores delete this many with one request.
_PAGE: Final = 1000
# Rows of one transaction: few, because on SQLite commits wait for it.
_ROWS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningSummary:
    """The result of one round."""

    files_deleted: int = 0
    bytes_deleted: int = 0
    has_more: bool = False
    """True if it ended at the limit of files per round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCleanerStatus:
    """Counters since the start."""

    upkeep: UpkeepStatus
    files_deleted: int
    bytes_deleted: int


class FileCleaner:
    """Deletes the objects of marked files, page by page, in the order of their marking.

    The row of a file is removed after its object: a crash between the two leaves a row whose object is deleted once
    more, never an object without a row. A page that the store throttles is tried again later with half the size, so
    that every round makes progress; earlier pages stay done.
    """

    def __init__(
        self,
        files: FileDeletion,
        store: ObjectStore,
        *,
        clock: Clock,
        chance: Chance,
        interval_ms: int,
        grace_ms: int,
        max_files_per_round: int,
        is_on_duty: IsOnDuty = always_on_duty,
    ) -> None:
        self._files, self._store = files, store
        self._grace_ms = grace_ms
        self._max_files = max_files_per_round
        self._page = _PAGE
        self._upkeep = UpkeepLoop(
            "Cleaning of WAL objects", interval_ms=interval_ms, clock=clock, chance=chance, is_on_duty=is_on_duty
        )
        self._deleted = self._bytes = 0

    async def run(self) -> None:
        """Clean until cancelled."""
        await self._upkeep.repeat(self.run_once)

    async def run_once(self) -> CleaningSummary:
        """Delete files whose grace period is over. Raises SqlErrors and ObjectStoreErrors; finished pages stay done."""
        files, size = self._deleted, self._bytes
        has_more = True
        while has_more and (left := self._max_files - (self._deleted - files)) > 0:
            limit = min(self._page, left)
            page = await self._files.files_to_delete(marked_for_ms=self._grace_ms, limit=limit)
            if page:
                await self._delete(page)
            has_more = len(page) == limit
        return CleaningSummary(files_deleted=self._deleted - files, bytes_deleted=self._bytes - size, has_more=has_more)

    def status(self) -> FileCleanerStatus:
        return FileCleanerStatus(upkeep=self._upkeep.status(), files_deleted=self._deleted, bytes_deleted=self._bytes)

    async def _delete(self, page: Sequence[WalFile]) -> None:
        crash_point("diskless.cleaner.before_delete")
        try:
            await self._store.delete([file.object_key for file in page])
        except ObjectStoreError:
            self._page = max(len(page) // 2, 1)
            raise
        crash_point("diskless.cleaner.after_delete")
        for start in range(0, len(page), _ROWS):
            gone = page[start : start + _ROWS]
            await self._files.forget_files([file.file_id for file in gone])
            crash_point("diskless.cleaner.after_forget")
            self._deleted += len(gone)
            self._bytes += sum(file.size for file in gone)
        self._page = min(self._page * 2, _PAGE)
