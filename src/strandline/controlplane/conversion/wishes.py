"""What operators want of the conversion of topics, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from strandline.controlplane.conversion.rules import NEVER, Cutoff, cutoffs_of
from strandline.controlplane.conversion.values import LogTieringProgress, TieringRule, TopicTiering
from strandline.controlplane.database import TIERING_CHANNEL, Database
from strandline.controlplane.reads import diskless_log
from strandline.model import TimestampMs, TopicIdPartition, TopicPartition
from strandline.sql import Row, Transaction


class SqlTieringWishes(Database):
    """See TieringWishes."""

    async def pause_tiering(self, topic_id: UUID, *, is_paused: bool) -> None:
        async def work(tx: Transaction) -> None:
            await tx.execute(self._sql["pause_tiering"], topic_id, is_paused)
            tx.notify(TIERING_CHANNEL)

        await self._store.transact(work)

    async def trigger_tiering(self, topic_id: UUID) -> TimestampMs:
        async def work(tx: Transaction) -> TimestampMs:
            row = await tx.fetch_one(self._sql["trigger_tiering"], topic_id, self._given_ms())
            assert row is not None
            tx.notify(TIERING_CHANNEL)
            triggered_at_ms: TimestampMs = row[0]
            return triggered_at_ms

        return await self._store.transact(work)

    async def tiering_wishes(self) -> Mapping[UUID, TopicTiering]:
        return await self._store.read(self._wishes)

    async def _wishes(self, tx: Transaction) -> dict[UUID, TopicTiering]:
        rows = await tx.fetch(self._sql["tiering_wishes"])
        return {self._dialect.uuid(row[0]): TopicTiering(bool(row[1]), row[2]) for row in rows}

    async def tiering_progress(self, rules: Sequence[TieringRule]) -> Sequence[LogTieringProgress]:
        async def work(tx: Transaction) -> tuple[dict[UUID, TopicTiering], list[Row]]:
            wishes = await self._wishes(tx)
            never = {rule.topic_id: Cutoff(rule.topic_id, NEVER, NEVER) for rule in rules}
            cutoffs = cutoffs_of(rules, wishes, now_ms=await self._now_ms(tx), with_paused=True)
            asked = never | {cutoff.topic_id: cutoff for cutoff in cutoffs}
            return wishes, await tx.fetch(self._sql["tiering_progress"], *self._dialect.bulk([*asked.values()], 3))

        wishes, rows = await self._store.read(work) if rules else ({}, [])
        progress = []
        for row in rows:
            partition = TopicIdPartition(self._dialect.uuid(row[0]), TopicPartition(row[1], row[2]))
            progress.append(
                LogTieringProgress(
                    log=diskless_log(partition, row[3:15]),
                    tiering=wishes.get(partition.topic_id, TopicTiering()),
                    eligible_rows=row[15],
                    eligible_bytes=row[16],
                    split_rows=row[17],
                    split_files=row[18],
                )
            )
        return progress
