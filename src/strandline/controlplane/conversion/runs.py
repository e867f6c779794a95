"""Runs of the pipeline that hold no claim any more: what they wrote and did not record becomes the file cleaner's."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from strandline.controlplane.conversion.values import LATE_SPLITS_MS, GivenUpRun
from strandline.controlplane.database import Database
from strandline.sql import Row, Transaction


class SqlGivenUpRuns(Database):
    """See GivenUpRuns."""

    async def given_up_runs(self, *, limit: int) -> Sequence[GivenUpRun]:
        async def work(tx: Transaction) -> list[GivenUpRun]:
            now_ms = await self._now_ms(tx)
            rows = await tx.fetch(self._sql["given_up_split_runs"], now_ms, now_ms - LATE_SPLITS_MS, limit)
            return [
                GivenUpRun(claimant, claims, first_ms, bool(is_seen), now_ms)
                for claimant, claims, first_ms, is_seen in rows
            ]

        return await self._store.read(work)

    async def unrecorded(self, object_keys: Collection[str]) -> Sequence[str]:
        async def work(tx: Transaction) -> list[Row]:
            return await self._fetch(tx, "known_files", [(key,) for key in object_keys], 1)

        known = {row[0] for row in await self._store.read(work)} if object_keys else set()
        return [key for key in object_keys if key not in known]

    async def take_leftovers(
        self, run: GivenUpRun, object_keys: Collection[str], *, broker_id: int
    ) -> Sequence[str] | None:
        async def work(tx: Transaction) -> list[str] | None:
            if not await self._is_given_up(tx, run):
                return None
            keys = self._dialect.bulk([(key,) for key in object_keys], 1)
            return [row[0] for row in await tx.fetch(self._sql["take_orphans"], self._given_ms(), broker_id, *keys)]

        return await self._store.transact(work) if object_keys else []

    async def run_looked_at(self, run: GivenUpRun) -> None:
        async def work(tx: Transaction) -> None:
            if not await self._is_given_up(tx, run):
                return
            if run.is_seen:
                await tx.execute(self._sql["drop_split_run"], run.claimant)
            else:
                await tx.execute(self._sql["split_run_looked_at"], run.claimant, await self._now_ms(tx))

        await self._store.transact(work)

    async def _is_given_up(self, tx: Transaction, run: GivenUpRun) -> bool:
        """Still, and until the transaction ends: a claim waits for it."""
        now_ms = await self._now_ms(tx)
        return await tx.fetch_one(self._sql["lock_given_up_run"], run.claimant, run.claims, now_ms) is not None
