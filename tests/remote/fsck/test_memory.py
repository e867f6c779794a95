"""Memory holds the metadata of live segments, neither the listing nor the history of the metadata topic."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path
from uuid import UUID

from strandline.model import TopicPartition
from strandline.objects import ObjectInfo, ObjectNotFound
from strandline.objects.store import Buffer, ObjectRange, ObjectStoreError
from strandline.remote.fsck import ClusterState, RemoteFsck, TieredLogBounds
from strandline.remote.storage.names import segment_name
from strandline.remote.topic_based.records import serialize
from strandline.remote.topic_based.topic import MetadataTopicRecord
from strandline.remote.values import RemoteLogSegmentMetadata, RemoteLogSegmentMetadataUpdate, RemoteLogSegmentState
from strandline.testing.clock import VirtualClock
from tests.remote.fsck.world import NOW, OPTIONS
from tests.remote.topic_based.making import DELETED, DELETING, FINISHED, TP, segment

LIVE, HISTORY = 2000, 3000
BYTES_PER_SEGMENT = 1000
KINDS = {"index": 8, "leader_epoch_checkpoint": 10, "log": 1000, "snapshot": 10, "timeindex": 12}


def numbered(number: int) -> RemoteLogSegmentMetadata:
    return segment(number, 10 * number, 10 * number + 9)


class ManySegments:
    """Metadata of `HISTORY` segments, of which the last `LIVE` are not deleted."""

    metadata_partitions = 1

    def records(self, partition: int, from_offset: int) -> Iterator[MetadataTopicRecord]:
        offset = 0
        for number in range(HISTORY if from_offset == 0 else 0):
            metadata = numbered(number)
            yield MetadataTopicRecord(offset, serialize(metadata))
            for state in (FINISHED,) if number >= HISTORY - LIVE else (FINISHED, DELETING, DELETED):
                offset += 1
                yield MetadataTopicRecord(offset, serialize(_update(metadata, state)))
            offset += 1

    def state(self) -> ClusterState:
        bounds = {TopicPartition("tiered", 0): TieredLogBounds(10 * (HISTORY - LIVE), 10 * HISTORY)}
        return ClusterState({TP.topic_id: 1}, bounds)


def _update(metadata: RemoteLogSegmentMetadata, state: RemoteLogSegmentState) -> RemoteLogSegmentMetadataUpdate:
    return RemoteLogSegmentMetadataUpdate(
        segment_id=metadata.segment_id, event_timestamp_ms=NOW, state=state, broker_id=1
    )


class ListedOnly:
    """A store that lists the objects of all live segments, and is never read."""

    url = "memory://"

    async def list(self, prefix: str, *, after: str = "") -> AsyncGenerator[ObjectInfo, None]:
        for number in range(HISTORY - LIVE, HISTORY):
            name = segment_name(numbered(number))
            for kind, size in KINDS.items():
                yield ObjectInfo(f"{name}.{kind}", size, NOW)

    async def get(self, key: str) -> Buffer:
        raise ObjectNotFound(key)

    async def get_range(self, key: str, start: int, length: int) -> Buffer:
        raise ObjectNotFound(key)

    ranges_at_once = 1

    async def get_ranges(self, ranges: Sequence[ObjectRange]) -> Sequence[Buffer | ObjectStoreError]:
        return [ObjectNotFound(one.key) for one in ranges]

    async def put(self, key: str, parts: Sequence[Buffer]) -> None:
        raise AssertionError(key)

    async def put_new(self, key: str, parts: Sequence[Buffer]) -> None:
        raise AssertionError(key)

    async def put_file(self, key: str, path: Path) -> None:
        raise AssertionError(key)

    async def delete(self, keys: Sequence[str]) -> None:
        raise AssertionError(keys)


async def test_memory_follows_the_live_segments_and_not_what_is_listed_or_deleted() -> None:
    fsck = RemoteFsck(ManySegments(), ListedOnly(), "", VirtualClock(NOW), OPTIONS)
    assert UUID(int=HISTORY)  # made before the measuring begins
    tracemalloc.start()
    try:
        report = await fsck.run()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert report.findings == ()
    assert (report.segments, report.objects) == (LIVE, LIVE * len(KINDS))
    # One page of the listing is there as well.
    assert peak < LIVE * BYTES_PER_SEGMENT + 2_000_000
