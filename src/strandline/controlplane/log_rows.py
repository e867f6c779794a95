"""Logs with all their offsets: read, or locked for transactions that decide by the offsets and change them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from strandline.controlplane.assignment import LogTail
from strandline.controlplane.database import Database, numbered
from strandline.controlplane.values import DisklessLog, MigrationState
from strandline.model import TopicIdPartition
from strandline.sql import Row, Transaction


class LockedLog(NamedTuple):
    """A log that no other transaction changes until this one ends."""

    log_id: int
    is_deleted: bool
    log: DisklessLog


async def read_logs(
    db: Database, tx: Transaction, partitions: Sequence[TopicIdPartition]
) -> dict[TopicIdPartition, DisklessLog]:
    """The logs of those partitions that have one."""
    return numbered_logs(partitions, await db.fetch(tx, "logs", numbered(partitions), 3))


async def lock_logs(db: Database, tx: Transaction, partitions: Sequence[TopicIdPartition]) -> dict[int, LockedLog]:
    """The logs of those partitions that have one, by their place in `partitions`."""
    rows = await db.fetch(tx, "lock_boundaries", numbered(partitions), 3)
    return {row[0]: LockedLog(row[1], bool(row[2]), diskless_log(partitions[row[0]], row[3:])) for row in rows}


async def lock_tails(
    db: Database, tx: Transaction, partitions: Sequence[TopicIdPartition]
) -> dict[TopicIdPartition, LogTail]:
    """The ends of the logs that take commits: those that are deleted, or have no B0, are left out."""
    rows = await db.fetch(tx, "lock_logs", numbered(partitions), 3)
    return {partitions[row[0]]: LogTail(*row[1:]) for row in rows}


def numbered_logs(partitions: Sequence[TopicIdPartition], rows: Iterable[Row]) -> dict[TopicIdPartition, DisklessLog]:
    """Logs from rows that begin with the place of their partition."""
    return {partitions[row[0]]: diskless_log(partitions[row[0]], row[1:]) for row in rows}


def named_log(db: Database, row: Row) -> DisklessLog:
    """A log from a row that begins with its partition."""
    return diskless_log(db.partition_of(*row[:3]), row[3:])


def diskless_log(partition: TopicIdPartition, columns: Sequence[Any]) -> DisklessLog:
    """A log from columns in the order of `logs.sql`."""
    start, high, tiered_start, tiered_high, diskless_start, first, epoch, state, byte_size, last, *txn = columns
    first_unstable, last_aborted = txn
    return DisklessLog(
        partition=partition,
        log_start_offset=start,
        high_watermark=high,
        tiered_log_start_offset=tiered_start,
        tiered_high_offset=tiered_high,
        diskless_start_offset=diskless_start,
        diskless_log_start_offset=first,
        diskless_log_start_epoch=epoch,
        migration_state=MigrationState(state),
        byte_size=byte_size,
        last_epoch=last,
        first_unstable_offset=first_unstable,
        last_aborted_offset=last_aborted,
    )
