"""Logs come and go."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.controlplane.database import Database
from strandline.controlplane.values import NewLog
from strandline.sql import Transaction


class SqlLogLifecycle(Database):
    """See LogLifecycle."""

    async def create_logs(self, logs: Sequence[NewLog]) -> None:
        rows = [(*log.partition, log.topic_name) for log in logs]

        async def work(tx: Transaction) -> int:
            return await self._execute(tx, "create_logs", rows, 3)

        if rows:
            await self._store.transact(work)
