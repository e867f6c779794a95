"""Segments to be copied: the files of a closed local segment, and its metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from strandline.log.transaction_index import AbortedTxn
from strandline.model import TopicIdPartition, TopicPartition, uuid_from_text
from strandline.remote.values import (
    IndexType,
    LogSegmentData,
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentState,
)

PARTITION = TopicIdPartition(UUID(int=0xABCDEF), TopicPartition("orders", 3))
BATCH = 100
"""Bytes of each batch of a made segment."""
RECORDS = 10
"""Records of each batch."""


@dataclass(frozen=True)
class Made:
    """A local segment with its indexes and its metadata."""

    metadata: RemoteLogSegmentMetadata
    data: LogSegmentData
    contents: Mapping[IndexType, bytes]
    log: bytes


def make_segment(
    directory: Path,
    *,
    base_offset: int = 0,
    batches: int = 50,
    number: int = 1,
    aborted: tuple[AbortedTxn, ...] = (),
    partition: TopicIdPartition = PARTITION,
) -> Made:
    """A segment of batches with 10 records and 100 bytes each, every second one in the index; not real batches."""
    directory.mkdir(parents=True, exist_ok=True)
    log = b"".join(b"%06d-%03d" % (at, number) * (BATCH // 10) for at in range(batches))
    last = [(at + 1) * RECORDS - 1 for at in range(batches)]
    contents = {
        IndexType.OFFSET: b"".join(
            last[at].to_bytes(4, "big") + (at * BATCH).to_bytes(4, "big") for at in range(1, batches, 2)
        ),
        IndexType.TIMESTAMP: b"".join(
            (1000 * at).to_bytes(8, "big") + last[at].to_bytes(4, "big") for at in range(1, batches, 2)
        ),
        IndexType.PRODUCER_SNAPSHOT: b"producers %d" % number,
        IndexType.LEADER_EPOCH: b"0\n1\n0 0\n",
    }
    if aborted:
        contents[IndexType.TRANSACTION] = b"".join(
            bytes(2) + b"".join(field.to_bytes(8, "big") for field in entry) for entry in aborted
        )
    paths = {kind: directory / f"{base_offset:020d}-{number}.{kind.value}" for kind in contents}
    for kind, path in paths.items():
        path.write_bytes(contents[kind])
    log_path = directory / f"{base_offset:020d}-{number}.log"
    log_path.write_bytes(log)
    return Made(
        metadata=RemoteLogSegmentMetadata(
            segment_id=RemoteLogSegmentId(partition, UUID(int=number)),
            start_offset=base_offset,
            end_offset=base_offset + batches * RECORDS - 1,
            max_timestamp_ms=1000 * (batches - 1),
            broker_id=1,
            event_timestamp_ms=0,
            segment_size_in_bytes=len(log),
            segment_leader_epochs={0: base_offset},
            state=RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
        ),
        data=LogSegmentData(
            log_segment=log_path,
            offset_index=paths[IndexType.OFFSET],
            time_index=paths[IndexType.TIMESTAMP],
            transaction_index=paths.get(IndexType.TRANSACTION),
            producer_snapshot_index=paths[IndexType.PRODUCER_SNAPSHOT],
            leader_epoch_index=contents[IndexType.LEADER_EPOCH],
        ),
        contents=contents,
        log=log,
    )


def golden_metadata(row: Mapping[str, Any]) -> RemoteLogSegmentMetadata:
    """The metadata of a segment from a line of Kafka's `remote_segments.json`."""
    partition = TopicIdPartition(uuid_from_text(row["topic_id"]), TopicPartition(row["topic"], row["partition"]))
    return RemoteLogSegmentMetadata(
        segment_id=RemoteLogSegmentId(partition, uuid_from_text(row["segment_id"])),
        start_offset=row["base_offset"],
        end_offset=row["end_offset"],
        max_timestamp_ms=row["max_timestamp"],
        broker_id=1,
        event_timestamp_ms=0,
        segment_size_in_bytes=row["files"]["log"],
        segment_leader_epochs={0: row["base_offset"]},
        state=RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
    )
