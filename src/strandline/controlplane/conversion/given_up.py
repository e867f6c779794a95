"""Segments that will never be part of a log: their bytes are deleted once more, when no task writes them any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from strandline.controlplane.conversion.values import GivenUpSegment
from strandline.controlplane.database import Database
from strandline.sql import Row, Transaction

_BEFORE_ALL: Final = (-1, UUID(int=0))


class SqlGivenUpSegments:
    """See GivenUpSegments."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def given_up_segments(self, *, limit: int, after: GivenUpSegment | None = None) -> Sequence[GivenUpSegment]:
        behind = _BEFORE_ALL if after is None else (after.due_at_ms, after.segment_id)

        async def work(tx: Transaction) -> list[Row]:
            return await tx.fetch(self._db.sql["given_up_segments"], await self._db.now_ms(tx), limit, *behind)

        return [
            GivenUpSegment(
                self._db.partition_of(topic_id, name, number), self._db.dialect.uuid(segment_id), base, last, due_at_ms
            )
            for segment_id, topic_id, name, number, base, last, due_at_ms in await self._db.store.read(work)
        ]

    async def given_up_deleted(self, segment_id: UUID) -> None:
        async def work(tx: Transaction) -> int:
            return await tx.execute(self._db.sql["drop_given_up"], segment_id)

        await self._db.store.transact(work)
