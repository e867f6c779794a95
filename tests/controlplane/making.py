"""Files and batches for tests of the control plane."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from strandline.controlplane.values import BatchToCommit, FileToCommit, NewLog, TopicIdPartition
from strandline.records import TimestampType

TOPIC = uuid.UUID(int=7)
OTHER_TOPIC = uuid.UUID(int=8)
A = TopicIdPartition(TOPIC, 0)
B = TopicIdPartition(TOPIC, 1)
C = TopicIdPartition(OTHER_TOPIC, 0)
MISSING = TopicIdPartition(uuid.UUID(int=99), 0)
LOGS = [NewLog(A, "topic"), NewLog(B, "topic"), NewLog(C, "other")]


def batch(
    partition: TopicIdPartition,
    records: int = 1,
    *,
    size: int = 100,
    timestamp: int = 1_000,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    leader_epoch: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> BatchToCommit:
    """A batch without a place; `producer` is its id, epoch and first sequence."""
    return BatchToCommit(partition, 0, size, records, timestamp, timestamp_type, leader_epoch, *producer)


def wal(key: str, *batches: BatchToCommit, broker_id: int = 1) -> FileToCommit:
    """A file with the batches one after the other, in the order given."""
    placed, position = [], 0
    for item in batches:
        placed.append(item._replace(byte_offset=position))
        position += item.byte_size
    return FileToCommit(object_key=key, size=position + 50, broker_id=broker_id, batches=tuple(placed))


def wal_at(key: str, batches: Sequence[BatchToCommit]) -> FileToCommit:
    """A file with batches whose places are given."""
    size = max(item.byte_offset + item.byte_size for item in batches)
    return FileToCommit(object_key=key, size=size, broker_id=1, batches=tuple(batches))
