"""Split files that can become segments: of which logs, and from which offset on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Final
from uuid import UUID

from strandline.controlplane.conversion.rows import splits_of, uploads_of, wishes_of
from strandline.controlplane.conversion.rules import dense_splits, is_mergeable, is_paused, next_segment_offset
from strandline.controlplane.conversion.values import LogSplits, TopicTiering
from strandline.controlplane.database import Database
from strandline.controlplane.log_rows import named_log
from strandline.controlplane.values import DisklessLog
from strandline.model import Offset, TimestampMs
from strandline.sql import Transaction

_LOGS_AT_ONCE: Final = 128
_SPLITS_AT_ONCE: Final = 2_000
"""About as many split files are read at once, from at most so many logs."""


class SqlMergeableSplits:
    """See MergeableSplits."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def mergeable_splits(self, topic_ids: Collection[UUID], *, max_splits: int) -> Sequence[LogSplits]:
        async def work(
            tx: Transaction,
        ) -> tuple[TimestampMs, dict[UUID, TopicTiering], list[tuple[DisklessLog, Offset]]]:
            now_ms, wishes = await self._db.now_ms(tx), await wishes_of(self._db, tx)
            found = await self._db.fetch(tx, "logs_with_splits", [(topic_id,) for topic_id in topic_ids], 1)
            known = (named_log(self._db, row) for row in found)
            logs = [log for log in known if is_mergeable(log) and not is_paused(log, wishes)]
            uploads = await uploads_of(self._db, tx, [log.partition for log in logs])
            return now_ms, wishes, [(log, next_segment_offset(log, uploads[log.partition])) for log in logs]

        if not topic_ids:
            return []
        now_ms, wishes, logs = await self._db.store.read(work)
        answer: list[LogSplits] = []
        # In pages: there may be thousands of split files in each of thousands of logs, and others have to run in
        # between. What changes between two pages is found out when a segment begins.
        first, size = 0, 1
        while page := logs[first : first + size]:
            splits = await self._db.store.read(partial(splits_of, self._db, logs=page, limit=max_splits))
            for log, start in page:
                if dense := dense_splits(splits[log.partition], start):
                    tiering, offset = wishes.get(log.partition.topic_id, TopicTiering()), dense[0].file.base_offset
                    found = LogSplits(log=log, tiering=tiering, splits=dense, next_upload_offset=offset, now_ms=now_ms)
                    answer.append(found)
            first += size
            is_light = sum(map(len, splits.values())) < _SPLITS_AT_ONCE
            size = min(2 * size, _LOGS_AT_ONCE) if is_light else max(size // 2, 1)
        return answer
