"""Finds WAL objects and split files that were never committed, and marks them for the file cleaner.

An object without a file row is not an orphan yet: its commit may be under way. So only objects older than a grace
period are marked, in the control plane: from then on their commit is refused, and a broker that resumes after a long
pause has to write its batches again under another key.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final

from strandline.clock import Chance, Clock
from strandline.controlplane import OrphanSearch
from strandline.crash import crash_point
from strandline.diskless.upkeep.loop import IsOnDuty, UpkeepLoop, UpkeepStatus, always_on_duty
from strandline.diskless.wal import keys, split_keys
from strandline.diskless.wal.hours import HOUR_MS, HourlyKeys
from strandline.model import TimestampMs
from strandline.objects import ObjectStore

# Keys in one call to the control plane: few, because on SQLite commits wait for it.
_PAGE: Final = 200
_FULL_SCAN_MS: Final = 24 * HOUR_MS
_KINDS: Final[tuple[HourlyKeys, ...]] = (keys, split_keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanSummary:
    """The result of one round."""

    objects_listed: int = 0
    orphans_taken: int = 0
    is_full: bool = False
    """True if every object was listed, not only those of the hours since the last round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanStatus:
    """Counters since the start."""

    upkeep: UpkeepStatus
    objects_listed: int
    orphans_taken: int


@dataclass(slots=True)
class _Scan:
    """A scan over the objects of each kind in the order of their keys, and so of their hours."""

    until_ms: TimestampMs
    is_full: bool
    from_ms: TimestampMs | None
    """None: from the beginning."""
    after: dict[str, str] = field(default_factory=dict)
    """By prefix: keys up to this one are done."""


class OrphanFinder:
    """Compares what lies under `wal/` and `split/` with the file rows.

    The first round lists all objects that are old enough, and so does one round each day; the others list the hours
    that have become old enough since. An object that a broker with a wrong clock writes into an hour long past waits
    for the next full round. An interrupted round is continued where it stopped.
    """

    def __init__(
        self,
        files: OrphanSearch,
        store: ObjectStore,
        *,
        clock: Clock,
        chance: Chance,
        broker_id: int,
        interval_ms: int,
        grace_ms: int,
        is_on_duty: IsOnDuty = always_on_duty,
    ) -> None:
        self._files, self._store, self._clock = files, store, clock
        self._broker_id = broker_id
        self._grace_ms = grace_ms
        self._upkeep = UpkeepLoop(
            "The search for lost objects",
            interval_ms=interval_ms,
            clock=clock,
            chance=chance,
            is_on_duty=is_on_duty,
        )
        self._scan: _Scan | None = None
        self._scanned_until_ms: TimestampMs = 0
        self._full_scan_due_ms: TimestampMs = 0
        self._listed = self._taken = 0

    async def run(self) -> None:
        """Search until cancelled."""
        await self._upkeep.repeat(self.run_once)

    async def run_once(self) -> OrphanSummary:
        """Search once. Raises SqlErrors and ObjectStoreErrors; objects marked before stay marked."""
        listed, taken = self._listed, self._taken
        scan = self._scan = self._scan or self._begin(await self._files.now_ms())
        for kind in _KINDS:
            await self._search(kind, scan)
        self._end(scan)
        return OrphanSummary(
            objects_listed=self._listed - listed, orphans_taken=self._taken - taken, is_full=scan.is_full
        )

    async def _search(self, kind: HourlyKeys, scan: _Scan) -> None:
        page: list[str] = []
        begin = "" if scan.from_ms is None else kind.hour_prefix(scan.from_ms)
        async with aclosing(self._store.list(kind.PREFIX, after=scan.after.get(kind.PREFIX, begin))) as items:
            async for item in items:
                self._listed += 1
                key = kind.parse(item.key)
                if key is None:
                    continue  # not ours: never deleted
                if key.hour_ms > scan.until_ms:
                    break
                if item.modified_ms <= scan.until_ms:
                    page.append(item.key)
                if len(page) == _PAGE:
                    await self._take(page, kind, scan)
                    page = []
        await self._take(page, kind, scan)

    def status(self) -> OrphanStatus:
        return OrphanStatus(upkeep=self._upkeep.status(), objects_listed=self._listed, orphans_taken=self._taken)

    def _begin(self, now_ms: TimestampMs) -> _Scan:
        until_ms = now_ms - self._grace_ms
        if now_ms >= self._full_scan_due_ms:
            return _Scan(until_ms, is_full=True, from_ms=None)
        # One hour earlier: the last hour was not over, and an upload of the hour before may have ended in it.
        return _Scan(until_ms, is_full=False, from_ms=self._scanned_until_ms - HOUR_MS)

    def _end(self, scan: _Scan) -> None:
        self._scan = None
        self._scanned_until_ms = scan.until_ms
        if scan.is_full:
            self._full_scan_due_ms = scan.until_ms + self._grace_ms + _FULL_SCAN_MS

    async def _take(self, page: list[str], kind: HourlyKeys, scan: _Scan) -> None:
        if not page:
            return
        started = self._clock.monotonic()
        crash_point("diskless.orphans.before_take")
        taken = await self._files.take_orphans(page, broker_id=self._broker_id)
        crash_point("diskless.orphans.after_take")
        self._taken += len(taken)
        scan.after[kind.PREFIX] = page[-1]
        # A full scan is long: at least half of the database's time stays for others.
        await self._clock.sleep(self._clock.monotonic() - started)
