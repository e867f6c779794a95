"""What operators want of the conversion of topics, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from strandline.controlplane.conversion.rows import wishes_of
from strandline.controlplane.conversion.rules import NEVER, Cutoff, cutoffs_of
from strandline.controlplane.conversion.values import LogTieringProgress, TieringRule, TopicTiering
from strandline.controlplane.database import TIERING_CHANNEL, Database
from strandline.controlplane.log_rows import named_log
from strandline.model import TimestampMs
from strandline.sql import Row, Transaction


class SqlTieringWishes:
    """See TieringWishes."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def pause_tiering(self, topic_id: UUID, *, is_paused: bool) -> None:
        async def work(tx: Transaction) -> None:
            await tx.execute(self._db.sql["pause_tiering"], topic_id, is_paused)
            tx.notify(TIERING_CHANNEL)

        await self._db.store.transact(work)

    async def trigger_tiering(self, topic_id: UUID) -> TimestampMs:
        async def work(tx: Transaction) -> TimestampMs:
            row = await tx.fetch_one(self._db.sql["trigger_tiering"], topic_id, self._db.given_ms())
            assert row is not None
            tx.notify(TIERING_CHANNEL)
            triggered_at_ms: TimestampMs = row[0]
            return triggered_at_ms

        return await self._db.store.transact(work)

    async def tiering_wishes(self) -> Mapping[UUID, TopicTiering]:
        return await self._db.store.read(lambda tx: wishes_of(self._db, tx))

    async def tiering_progress(self, rules: Sequence[TieringRule]) -> Sequence[LogTieringProgress]:
        async def work(tx: Transaction) -> tuple[dict[UUID, TopicTiering], list[Row]]:
            wishes = await wishes_of(self._db, tx)
            never = {rule.topic_id: Cutoff(rule.topic_id, NEVER, NEVER) for rule in rules}
            cutoffs = cutoffs_of(rules, wishes, now_ms=await self._db.now_ms(tx), with_paused=True)
            asked = never | {cutoff.topic_id: cutoff for cutoff in cutoffs}
            return wishes, await tx.fetch(
                self._db.sql["tiering_progress"], *self._db.dialect.bulk([*asked.values()], 3)
            )

        wishes, rows = await self._db.store.read(work) if rules else ({}, [])
        progress = []
        for row in rows:
            log = named_log(self._db, row[:15])
            progress.append(
                LogTieringProgress(
                    log=log,
                    tiering=wishes.get(log.partition.topic_id, TopicTiering()),
                    eligible_rows=row[15],
                    eligible_bytes=row[16],
                    split_rows=row[17],
                    split_files=row[18],
                )
            )
        return progress
