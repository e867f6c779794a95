"""Checks remote log metadata against topics and logs: stuck copies and deletions, and missing offsets. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from strandline.clock import Clock
from strandline.model import Offset, TopicIdPartition, TopicPartition
from strandline.objects.comparing import Finding
from strandline.remote.fsck.holes import find_holes
from strandline.remote.fsck.replay import MetadataReplay
from strandline.remote.fsck.values import ClusterState, RemoteFindingKind, TieredLogBounds
from strandline.remote.storage import partition_directory, segment_name
from strandline.remote.topic_based.cache import RemoteLogMetadataCache
from strandline.remote.values import RemoteLogSegmentState


@dataclass(slots=True)
class PartitionsJudged:
    """The findings, and what they mean for orphans."""

    findings: list[Finding] = field(default_factory=list)
    holed: set[TopicPartition] = field(default_factory=set)
    """Partitions that miss offsets, or may."""
    unbounded: int = 0
    """Partitions with remote segments whose logs are not available."""


class PartitionJudge:
    """Judges every partition by the state of the cluster before and after the metadata was read."""

    def __init__(self, before: ClusterState, after: ClusterState, *, prefix: str, stuck_ms: int, clock: Clock) -> None:
        self._before, self._after = before, after
        self._prefix, self._stuck_ms, self._now_ms = prefix, stuck_ms, clock.now_ms()

    def judge(self, metadata: MetadataReplay) -> PartitionsJudged:
        """All of them."""
        judged = PartitionsJudged()
        seen = set()
        for partition in metadata.partitions():
            cache = metadata.cache(partition)
            if self._after.has(partition):
                seen.add(partition.topic_partition)
                judged.findings += self._stuck_segments(cache)
                self._look_for_holes(judged, partition.topic_partition, cache)
            else:
                judged.findings += self._stuck_deletion(cache)
        for topic_partition in self._after.bounds.keys() - seen:
            nothing = RemoteLogMetadataCache(TopicIdPartition(UUID(int=0), topic_partition))
            self._look_for_holes(judged, topic_partition, nothing)
        return judged

    def _stuck_segments(self, cache: RemoteLogMetadataCache) -> Iterator[Finding]:
        for metadata in cache.iter_segments():
            age_ms = self._now_ms - metadata.event_timestamp_ms
            if metadata.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED:
                continue
            if age_ms > self._stuck_ms and metadata.segment_id.id not in self._after.uploads:
                detail = (
                    f"offsets {metadata.start_offset} to {metadata.end_offset}: {metadata.state.name}, "
                    f"last written by broker {metadata.broker_id}"
                )
                key = self._prefix + segment_name(metadata)
                yield Finding(RemoteFindingKind.STUCK, key, metadata.segment_size_in_bytes, age_ms, detail)

    def _stuck_deletion(self, cache: RemoteLogMetadataCache) -> Iterator[Finding]:
        """The topic was deleted: its remote segments should be, too."""
        deletion = cache.deletion
        if deletion is None and (len(cache) == 0 or self._before.has(cache.partition)):
            return  # nothing is left, or the topic was deleted during the run
        size, newest = 0, 0 if deletion is None else deletion.event_timestamp_ms
        for metadata in cache.iter_segments():
            size += metadata.segment_size_in_bytes
            newest = max(newest, metadata.event_timestamp_ms)
        age_ms = self._now_ms - newest
        if age_ms > self._stuck_ms:
            state = "no deletion has begun" if deletion is None else deletion.state.name
            detail = f"its topic was deleted: {state}, with {len(cache)} segments left"
            yield Finding(
                RemoteFindingKind.STUCK, self._prefix + partition_directory(cache.partition), size, age_ms, detail
            )

    def _look_for_holes(
        self, judged: PartitionsJudged, partition: TopicPartition, cache: RemoteLogMetadataCache
    ) -> None:
        first, last = self._before.bounds.get(partition), self._after.bounds.get(partition)
        if first is None or last is None:
            judged.unbounded += len(cache) > 0
            return
        log_start = _latest_start(first, last)
        for start, end in find_holes(cache, first, log_start=log_start):
            judged.holed.add(partition)
            if start == log_start and not first.is_exact:
                continue
            detail = f"offsets {start} to {end} are neither local nor in a remote segment"
            judged.findings.append(Finding(RemoteFindingKind.HOLE, str(partition), 0, 0, detail))


def _latest_start(first: TieredLogBounds, last: TieredLogBounds) -> Offset | None:
    return max((bounds.log_start for bounds in (first, last) if bounds.log_start is not None), default=None)
