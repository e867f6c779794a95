"""Makes status values: counters and lags by topic, and one partition in detail."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from strandline.clock import Clock
from strandline.log import LogSegment, UnifiedLog
from strandline.model import Offset, TopicIdPartition
from strandline.remote.manager.jobs import JobState, PoolStatus
from strandline.remote.manager.partition import LeaderPartition, TieredPartition
from strandline.remote.manager.status import (
    PartitionTierStatus,
    SegmentRow,
    SegmentTier,
    TopicCounters,
    TopicTierStatus,
)
from strandline.remote.manager.why_local import LocalSegmentQuestion, why_local
from strandline.remote.ports import RemoteLogMetadataManager
from strandline.remote.turns import AT_ONCE
from strandline.remote.values import RemoteLogSegmentMetadata, RemoteSummary

MOST_ROWS: Final = 10_000
"""Remote segments that are listed of a partition, the newest ones. A million of them would be of no use to a reader,
and freeing so many objects holds up the event loop."""


class CopyLag(NamedTuple):
    """Closed segments that are not copied yet."""

    segments: int = 0
    bytes: int = 0


class TierReport:
    """Topics are reported from sums that are kept up to date; only a report of one partition looks at its segments."""

    def __init__(self, metadata: RemoteLogMetadataManager, clock: Clock) -> None:
        self._metadata, self._clock = metadata, clock

    def topics(
        self, counters: Mapping[str, TopicCounters], partitions: Iterable[TieredPartition]
    ) -> dict[str, TopicTierStatus]:
        """All topics with counters or led partitions."""
        lags: defaultdict[str, list[tuple[CopyLag, RemoteSummary]]] = defaultdict(list)
        for partition in partitions:
            if partition.leader is not None:
                lag = copy_lag(partition.leader.log, partition.copied)
                lags[partition.id.topic].append((lag, self._summary(partition.id)))
        return {
            topic: _topic(counters.get(topic, TopicCounters()), lags.get(topic, ()))
            for topic in (*counters, *(topic for topic in lags if topic not in counters))
        }

    async def partition(
        self,
        partition: TieredPartition,
        leader: LeaderPartition,
        *,
        copying: JobState | None,
        expiring: JobState | None,
        pool: PoolStatus,
    ) -> PartitionTierStatus:
        """One led partition in detail, in short turns."""
        log = leader.log
        is_ready = self._metadata.is_ready(partition.id)
        known = self._metadata.iter_remote_log_segments(partition.id) if is_ready else ()
        rows, states = deque[SegmentRow](maxlen=MOST_ROWS), Counter[str]()
        for count, row in enumerate(remote_rows(log, known), 1):
            rows.append(row)
            states[row.state] += 1
            if count % AT_ONCE == 0:
                await self._clock.sleep(0)
        left_out = states.total() - len(rows)
        local = [*local_rows(log, partition.copied)]
        states.update(row.state for row in local)
        summary, lag = self._summary(partition.id), copy_lag(log, partition.copied)
        since = partition.copying
        question = self._local_question(partition, leader, copying, pool, is_ready=is_ready)
        failing = [state for state in (copying, expiring) if state is not None and state.failures]
        return PartitionTierStatus(
            partition=partition.id,
            log_start_offset=log.log_start_offset,
            local_log_start_offset=log.local_log_start_offset,
            highest_offset_in_remote_storage=partition.copied,
            log_end_offset=log.log_end_offset,
            segments=(*rows, *local),
            segments_left_out=left_out,
            segments_by_state=states,
            local_bytes=log.size,
            remote_bytes=summary.finished_bytes,
            pending_segments=lag.segments,
            pending_bytes=lag.bytes,
            deleting_segments=summary.deleting_segments,
            local_because=why_local(question),
            local_from=question.base_offset,
            copying_seconds=None if since is None else self._clock.monotonic() - since.since,
            failures_in_a_row=max((state.failures for state in failing), default=0),
            last_error=next((state.last_error for state in failing), partition.refusal),
        )

    def _summary(self, partition: TopicIdPartition) -> RemoteSummary:
        return self._metadata.remote_log_summary(partition) if self._metadata.is_ready(partition) else RemoteSummary()

    def _local_question(
        self,
        partition: TieredPartition,
        leader: LeaderPartition,
        state: JobState | None,
        pool: PoolStatus,
        *,
        is_ready: bool,
    ) -> LocalSegmentQuestion:
        log, now, copying = leader.log, self._clock.monotonic(), partition.copying
        first, following = next(only_local(log, partition.copied))
        return LocalSegmentQuestion(
            base_offset=first.base_offset,
            next_base_offset=following,
            last_stable_offset=log.last_stable_offset,
            high_watermark=log.high_watermark,
            is_enabled=log.config.remote_storage_enable,
            is_copy_disabled=log.config.remote_log_copy_disable,
            is_ready=is_ready,
            refusal=partition.refusal,
            copying_seconds=None if copying is None else now - copying.since,
            is_waiting_for_quota=partition.is_waiting_for_quota,
            is_waiting_for_place=state is not None and state.is_ready,
            pool_size=pool.size,
            last_error=None if state is None else state.last_error,
            next_look_seconds=0.0 if state is None else state.due - now,
        )


def _topic(counters: TopicCounters, partitions: Iterable[tuple[CopyLag, RemoteSummary]]) -> TopicTierStatus:
    entries = list(partitions)
    return TopicTierStatus(
        copy_requests=counters.copy_requests,
        copy_errors=counters.copy_errors,
        copy_bytes=counters.copy_bytes,
        delete_requests=counters.delete_requests,
        delete_errors=counters.delete_errors,
        copy_lag_segments=sum(lag.segments for lag, _ in entries),
        copy_lag_bytes=sum(lag.bytes for lag, _ in entries),
        delete_lag_segments=sum(summary.deleting_segments for _, summary in entries),
        delete_lag_bytes=sum(summary.deleting_bytes for _, summary in entries),
        metadata_count=sum(summary.segments for _, summary in entries),
        remote_bytes=sum(summary.finished_bytes for _, summary in entries),
    )


def only_local(log: UnifiedLog, copied: Offset) -> Iterator[tuple[LogSegment, Offset | None]]:
    """The segments that are only local, each with the base offset of the next one; None for the active segment.

    Without those below the log start: they are about to be deleted.
    """
    for segment, following in pairwise((*log.segments, None)):
        assert segment is not None
        if following is None:
            yield segment, None
        elif following.base_offset > max(copied + 1, log.log_start_offset):
            yield segment, following.base_offset


def copy_lag(log: UnifiedLog, copied: Offset) -> CopyLag:
    """The closed local segments that are not in remote storage."""
    waiting = [segment.size for segment, end in only_local(log, copied) if end is not None]
    return CopyLag(len(waiting), sum(waiting))


def remote_rows(log: UnifiedLog, remote: Iterable[RemoteLogSegmentMetadata]) -> Iterator[SegmentRow]:
    """The remote segments of a partition, made one at a time."""
    bases = set(log.segments.bases)
    return (
        SegmentRow(
            segment.start_offset,
            segment.end_offset,
            segment.segment_size_in_bytes,
            segment.state.name,
            SegmentTier.BOTH if segment.start_offset in bases else SegmentTier.REMOTE,
        )
        for segment in remote
    )


def local_rows(log: UnifiedLog, copied: Offset) -> Iterator[SegmentRow]:
    """The segments that are only local."""
    for local, end in only_local(log, copied):
        state = "LOCAL_ACTIVE" if end is None else "LOCAL_FINISHED"
        last = (log.log_end_offset if end is None else end) - 1
        yield SegmentRow(local.base_offset, last, local.size, state, SegmentTier.LOCAL)
