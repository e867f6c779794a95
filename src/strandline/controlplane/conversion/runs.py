"""Runs of the pipeline that hold no claim any more: what they wrote and did not record becomes the file cleaner's."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from strandline.controlplane.conversion.values import LATE_SPLITS_MS, GivenUpRun
from strandline.controlplane.database import Database
from strandline.controlplane.file_rows import find_files, take_orphans
from strandline.sql import Transaction


class SqlGivenUpRuns:
    """See GivenUpRuns."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def given_up_runs(self, *, limit: int) -> Sequence[GivenUpRun]:
        async def work(tx: Transaction) -> list[GivenUpRun]:
            now_ms = await self._db.now_ms(tx)
            rows = await tx.fetch(self._db.sql["given_up_split_runs"], now_ms, now_ms - LATE_SPLITS_MS, limit)
            return [
                GivenUpRun(claimant, claims, first_ms, bool(is_seen), now_ms)
                for claimant, claims, first_ms, is_seen in rows
            ]

        return await self._db.store.read(work)

    async def unrecorded(self, object_keys: Collection[str]) -> Sequence[str]:
        if not object_keys:
            return []
        known = await self._db.store.read(lambda tx: find_files(self._db, tx, object_keys))
        return [key for key in object_keys if key not in known]

    async def take_leftovers(
        self, run: GivenUpRun, object_keys: Collection[str], *, broker_id: int
    ) -> Sequence[str] | None:
        async def work(tx: Transaction) -> list[str] | None:
            if not await self._is_given_up(tx, run):
                return None
            now_ms = self._db.given_ms()
            return await take_orphans(self._db, tx, object_keys, broker_id=broker_id, now_ms=now_ms)

        return await self._db.store.transact(work) if object_keys else []

    async def run_looked_at(self, run: GivenUpRun) -> None:
        async def work(tx: Transaction) -> None:
            if not await self._is_given_up(tx, run):
                return
            if run.is_seen:
                await tx.execute(self._db.sql["drop_split_run"], run.claimant)
            else:
                await tx.execute(self._db.sql["split_run_looked_at"], run.claimant, await self._db.now_ms(tx))

        await self._db.store.transact(work)

    async def _is_given_up(self, tx: Transaction, run: GivenUpRun) -> bool:
        """Still, and until the transaction ends: a claim waits for it."""
        now_ms = await self._db.now_ms(tx)
        return await tx.fetch_one(self._db.sql["lock_given_up_run"], run.claimant, run.claims, now_ms) is not None
