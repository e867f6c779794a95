"""Batches of producers, for the tests of the writer."""

from __future__ import annotations

from strandline.controlplane.values import TopicIdPartition
from strandline.diskless.values import DisklessAppend
from strandline.records import Record, TimestampType, build_batch, read_header
from tests.diskless.wal import NOON_MS, TOPIC_A

P0 = TopicIdPartition(TOPIC_A, 0)
P1 = TopicIdPartition(TOPIC_A, 1)


def batch(
    partition: TopicIdPartition = P0,
    *,
    records: int = 1,
    producer: int = -1,
    epoch: int = 0,
    sequence: int = -1,
    value: bytes = b"value",
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    leader_epoch: int = 0,
) -> DisklessAppend:
    """One batch; an idempotent one with a producer and a sequence."""
    buffer = build_batch(
        [Record(i, NOON_MS + i, None, value) for i in range(records)],
        producer_id=producer,
        producer_epoch=epoch if producer >= 0 else -1,
        base_sequence=sequence,
    )
    return DisklessAppend(partition, buffer, read_header(buffer), timestamp_type, leader_epoch)
