"""Locking logs with all their offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from strandline.controlplane.database import Database, numbered
from strandline.controlplane.reads import diskless_log
from strandline.controlplane.values import DisklessLog
from strandline.model import TopicIdPartition
from strandline.sql import Transaction


class LockedLog(NamedTuple):
    """A log that nobody else changes until the transaction ends."""

    log_id: int
    is_deleted: bool
    log: DisklessLog


class LogLocks(Database):
    """For those who judge by the offsets of a log, and change them."""

    async def _lock(self, tx: Transaction, partitions: Sequence[TopicIdPartition]) -> dict[int, LockedLog]:
        """The logs of those partitions that have one, by their place in `partitions`."""
        rows = await self._fetch(tx, "lock_boundaries", numbered(partitions), 3)
        return {row[0]: LockedLog(row[1], bool(row[2]), diskless_log(partitions[row[0]], row[3:])) for row in rows}
