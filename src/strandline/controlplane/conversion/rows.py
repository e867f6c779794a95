"""Wishes of operators, uploads and split files of logs: from the columns of their rows, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from strandline.controlplane.conversion.values import (
    PendingSplit,
    SegmentUpload,
    SplitObject,
    TopicTiering,
    UploadState,
)
from strandline.controlplane.database import Database, numbered
from strandline.controlplane.values import DisklessLog
from strandline.model import INT64_MAX, Offset, TopicIdPartition
from strandline.sql import Transaction


async def wishes_of(db: Database, tx: Transaction) -> dict[UUID, TopicTiering]:
    """What was asked for topics, by their ids."""
    rows = await tx.fetch(db.sql["tiering_wishes"])
    return {db.dialect.uuid(row[0]): TopicTiering(bool(row[1]), row[2]) for row in rows}


async def uploads_of(
    db: Database, tx: Transaction, partitions: Sequence[TopicIdPartition]
) -> dict[TopicIdPartition, list[SegmentUpload]]:
    """The uploads of each of these logs, in the order of their offsets."""
    uploads: dict[TopicIdPartition, list[SegmentUpload]] = {partition: [] for partition in partitions}
    for number, segment_id, base, last, size, claimant, epoch, state, expires, custom in await db.fetch(
        tx, "uploads_of_logs", numbered(partitions), 3
    ):
        partition = partitions[number]
        uploads[partition].append(
            SegmentUpload(
                partition=partition,
                segment_id=db.dialect.uuid(segment_id),
                base_offset=base,
                last_offset=last,
                size_bytes=size,
                claimant=claimant,
                leader_epoch=epoch,
                state=UploadState(state),
                expires_at_ms=expires,
                custom_metadata=None if custom is None else bytes.fromhex(custom),
            )
        )
    return uploads


def new_upload_columns(upload: SegmentUpload) -> tuple[object, ...]:
    """Of a new upload, in the order of the statement, behind its id."""
    return (
        upload.partition.topic_id,
        upload.partition.partition,
        upload.base_offset,
        upload.last_offset,
        upload.size_bytes,
        upload.claimant,
        upload.leader_epoch,
        upload.state.value,
        upload.expires_at_ms,
    )


async def splits_of(
    db: Database,
    tx: Transaction,
    logs: Sequence[tuple[DisklessLog, Offset]],
    limit: int,
    *,
    until: Offset = INT64_MAX,
) -> dict[TopicIdPartition, list[PendingSplit]]:
    """Split files of some logs that are not in segments and end at an offset or later, at most `limit` of each."""
    splits: dict[TopicIdPartition, list[PendingSplit]] = {log.partition: [] for log, _ in logs}
    rows = [
        (number, log.partition.topic_id, log.partition.partition, log.diskless_start_offset, start)
        for number, (log, start) in enumerate(logs)
    ]
    for number, *columns in await db.fetch(tx, "splits_of_logs", rows, 5, limit, until):
        splits[logs[number][0].partition].append(_pending_split(columns))
    return splits


def _pending_split(columns: Sequence[Any]) -> PendingSplit:
    key, base, last, size, batches, max_timestamp, epochs, created_at_ms, committed_at_ms = columns
    file = SplitObject(
        object_key=key,
        base_offset=base,
        last_offset=last,
        size_bytes=size,
        batch_count=batches,
        max_timestamp=max_timestamp,
        leader_epochs=tuple((epoch, start) for epoch, start in json.loads(epochs)),
    )
    return PendingSplit(file, created_at_ms, committed_at_ms)
