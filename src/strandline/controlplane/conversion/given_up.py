"""Segments that will never be part of a log: their bytes are deleted once more, when no task writes them any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from strandline.controlplane.conversion.values import LATE_MS, GivenUpSegment
from strandline.controlplane.database import Database
from strandline.model import TopicIdPartition, TopicPartition
from strandline.sql import Row, Transaction

_BEFORE_ALL: Final = (-1, UUID(int=0))


class SqlGivenUpSegments(Database):
    """See GivenUpSegments."""

    async def forget_segment(self, partition: TopicIdPartition, segment_id: UUID) -> None:
        async def work(tx: Transaction) -> int:
            await tx.execute(self._sql["keep_given_up"], segment_id, await self._now_ms(tx) + LATE_MS)
            return await tx.execute(self._sql["forget_upload"], segment_id, partition.topic_id, partition.partition)

        await self._store.transact(work)

    async def given_up_segments(self, *, limit: int, after: GivenUpSegment | None = None) -> Sequence[GivenUpSegment]:
        behind = _BEFORE_ALL if after is None else (after.due_at_ms, after.segment_id)

        async def work(tx: Transaction) -> list[Row]:
            return await tx.fetch(self._sql["given_up_segments"], await self._now_ms(tx), limit, *behind)

        uuid = self._dialect.uuid
        return [
            GivenUpSegment(
                TopicIdPartition(uuid(topic_id), TopicPartition(name, number)), uuid(segment_id), base, last, due_at_ms
            )
            for segment_id, topic_id, name, number, base, last, due_at_ms in await self._store.read(work)
        ]

    async def given_up_deleted(self, segment_id: UUID) -> None:
        async def work(tx: Transaction) -> int:
            return await tx.execute(self._sql["drop_given_up"], segment_id)

        await self._store.transact(work)
