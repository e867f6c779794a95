"""What the description alone tells, beside the topics and logs: what is stuck, and which offsets nobody has. Pure."""

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
from strandline.remote.storage.names import partition_directory, segment_name
from strandline.remote.topic_based.cache import RemoteLogMetadataCache
from strandline.remote.values import RemoteLogSegmentState


@dataclass(slots=True)
class PartitionsJudged:
    """What was found."""

    findings: list[Finding] = field(default_factory=list)
    holed: set[TopicPartition] = field(default_factory=set)
    """Partitions that miss offsets, or may."""
    unbounded: int = 0
    """Partitions with remote segments whose logs could not be asked."""


class PartitionJudge:
    """Judges every partition by what was known before and after the description was read."""

    def __init__(self, before: ClusterState, after: ClusterState, *, prefix: str, stuck_ms: int, clock: Clock) -> None:
        self._before, self._after = before, after
        self._prefix, self._stuck_ms, self._now_ms = prefix, stuck_ms, clock.now_ms()

    def judge(self, description: MetadataReplay) -> PartitionsJudged:
        """All of them."""
        judged = PartitionsJudged()
        described = set()
        for partition in description.partitions():
            cache = description.cache(partition)
            if self._after.has(partition):
                described.add(partition.topic_partition)
                judged.findings += self._stuck_segments(cache)
                self._look_for_holes(judged, partition.topic_partition, cache)
            else:
                judged.findings += self._stuck_deletion(cache)
        for topic_partition in self._after.bounds.keys() - described:
            nothing = RemoteLogMetadataCache(TopicIdPartition(UUID(int=0), topic_partition))
            self._look_for_holes(judged, topic_partition, nothing)
        return judged

    def _stuck_segments(self, cache: RemoteLogMetadataCache) -> Iterator[Finding]:
        for metadata in cache.iter_segments():
            age_ms = self._now_ms - metadata.event_timestamp_ms
            if metadata.state is not RemoteLogSegmentState.COPY_SEGMENT_FINISHED and age_ms > self._stuck_ms:
                detail = (
                    f"offsets {metadata.start_offset} to {metadata.end_offset}: {metadata.state.name}, "
                    f"as broker {metadata.broker_id} wrote last"
                )
                key = self._prefix + segment_name(metadata)
                yield Finding(RemoteFindingKind.STUCK, key, metadata.segment_size_in_bytes, age_ms, detail)

    def _stuck_deletion(self, cache: RemoteLogMetadataCache) -> Iterator[Finding]:
        """The topic is gone: its segments should be, too."""
        deletion = cache.deletion
        if deletion is None and (len(cache) == 0 or self._before.has(cache.partition)):
            return  # nothing is left, or it has been deleted just now
        size, newest = 0, 0 if deletion is None else deletion.event_timestamp_ms
        for metadata in cache.iter_segments():
            size += metadata.segment_size_in_bytes
            newest = max(newest, metadata.event_timestamp_ms)
        age_ms = self._now_ms - newest
        if age_ms > self._stuck_ms:
            state = "nobody has begun to delete" if deletion is None else f"{deletion.state.name}, with"
            detail = f"its topic is gone: {state} {len(cache)} segments"
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
            detail = f"offsets {start} to {end} are neither on disk nor in a remote segment"
            judged.findings.append(Finding(RemoteFindingKind.HOLE, str(partition), 0, 0, detail))


def _latest_start(first: TieredLogBounds, last: TieredLogBounds) -> Offset | None:
    return max((bounds.log_start for bounds in (first, last) if bounds.log_start is not None), default=None)
