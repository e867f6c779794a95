"""Files and batches for tests of the control plane."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from strandline.clock import SystemClock
from strandline.controlplane import (
    BatchRow,
    BatchToCommit,
    CommittedBatch,
    FileToCommit,
    FindBatches,
    FoundBatches,
    SqlControlPlane,
)
from strandline.controlplane.values import MarkerToCommit
from strandline.model import TopicIdPartition
from strandline.records import TimestampType
from tests.partitions import id_partition

TOPIC = uuid.UUID(int=7)
OTHER_TOPIC = uuid.UUID(int=8)
A = id_partition(TOPIC, 0)
B = id_partition(TOPIC, 1)
C = id_partition(OTHER_TOPIC, 0)
NOW = 5_000
ALL_BYTES = 1 << 40
MISSING = id_partition(uuid.UUID(int=99), 0)
LOGS = [A, B, C]


class HandSetClock(SystemClock):
    """The time of a control plane that stands still until a test sets it, also back."""

    def __init__(self, now: int = NOW) -> None:
        self.now = now

    def now_ms(self) -> int:
        return self.now


def batch(
    partition: TopicIdPartition,
    records: int = 1,
    *,
    size: int = 100,
    timestamp: int = 1_000,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    leader_epoch: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
    is_transactional: bool = False,
) -> BatchToCommit:
    """A batch without a place; `producer` is its id, epoch and first sequence."""
    return BatchToCommit(
        partition, 0, size, records, timestamp, timestamp_type, leader_epoch, *producer, is_transactional
    )


def marker(
    partition: TopicIdPartition,
    producer: tuple[int, int],
    *,
    is_abort: bool = False,
    coordinator: int = 0,
    version: int = 0,
    start: int = -1,
    timestamp: int = 1_000,
) -> BatchToCommit:
    """A control batch without a place, which ends the transaction of a producer (id and epoch)."""
    plain = batch(partition, size=78, timestamp=timestamp, producer=(*producer, -1), is_transactional=True)
    return plain._replace(marker=MarkerToCommit(is_abort, coordinator, version, start))


def wal(key: str, *batches: BatchToCommit, broker_id: int = 1) -> FileToCommit:
    """A file with the batches one after the other, in the order given."""
    placed, position = [], 0
    for item in batches:
        placed.append(item._replace(byte_offset=position))
        position += item.byte_size
    return FileToCommit(object_key=key, size=position + 50, broker_id=broker_id, batches=tuple(placed))


def bases(answers: Sequence[CommittedBatch]) -> list[int]:
    """The offsets that a commit gave; -1 where it refused."""
    return [answer.base_offset for answer in answers]


async def commit(plane: SqlControlPlane, key: str, *batches: BatchToCommit) -> Sequence[CommittedBatch]:
    """Commit one file, and the answers to its batches."""
    (answers,) = await plane.commits.commit_files([wal(key, *batches)])
    return answers


async def find(plane: SqlControlPlane, *requests: FindBatches, max_rows: int = 100) -> list[FoundBatches]:
    """The answers to some requests."""
    return list(await plane.reads.find_batches(requests, max_rows=max_rows))


async def rows_of(plane: SqlControlPlane, partition: TopicIdPartition) -> tuple[BatchRow, ...]:
    """Every row that a reader of the partition can see."""
    start = (await plane.reads.logs([partition]))[partition].log_start_offset
    (found,) = await find(plane, FindBatches(partition, start, ALL_BYTES), max_rows=1_000_000)
    return found.rows


async def high_watermark(plane: SqlControlPlane, partition: TopicIdPartition) -> int:
    """Of a log that exists."""
    return (await plane.reads.logs([partition]))[partition].high_watermark
