"""Batches and WAL objects for the tests of this package."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from strandline.diskless.values import DisklessAppend
from strandline.diskless.wal import PackedObject, pack
from strandline.model import TopicIdPartition
from strandline.records import Record, TimestampType, build_batch, read_header

NOON_MS = 1_700_049_600_000  # 2023-11-15 12:00 UTC
TOPIC_A = UUID("0a000000-0000-4000-8000-000000000001")
TOPIC_B = UUID("fb000000-0000-4000-8000-000000000002")


def append(
    partition: TopicIdPartition,
    *,
    records: int = 3,
    timestamp: int = NOON_MS,
    leader_epoch: int = 0,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    value: bytes = b"value",
) -> DisklessAppend:
    """One batch as the handlers give it to the writer."""
    buffer = build_batch([Record(i, timestamp + i, b"key", value) for i in range(records)])
    return DisklessAppend(partition, buffer, read_header(buffer), timestamp_type, leader_epoch)


def packed(batches: Sequence[DisklessAppend], *, created_ms: int = NOON_MS) -> PackedObject:
    return pack(batches, broker_id=7, cluster_id="a-cluster", created_ms=created_ms)


def joined(packed: PackedObject) -> bytes:
    """The bytes of the object."""
    return b"".join(packed.parts)
