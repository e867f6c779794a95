"""Where the records of a partition are, for readers that go to the stores themselves.

A plan is made of what is known at several places, one after the other, while conversion and retention go on. So the
order counts. First the offsets of the log and its rows, from the control plane: the read boundary R never goes back.
Then remote log metadata, in which every segment below an R that was read before is finished. What retention deletes in
between is missed there, and then lies below a log start that has moved: the plan is made again.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

from strandline.controlplane import BatchRow, BatchSearch, DisklessLog, FindBatches, Refusal
from strandline.conversion_api.values import PlacedRow, PlannedRow, PlanRead, ReadPlan
from strandline.errors import InvalidRequest, KafkaStorageError, UnknownTopicOrPartition
from strandline.hybrid.conversion.led import LedPartitions
from strandline.hybrid.conversion.remote_segments import described
from strandline.hybrid.diskless.converted import ConvertedLog
from strandline.hybrid.diskless.refusals import error_of, storage_errors
from strandline.hybrid.partitions import Partitions
from strandline.hybrid.parts.diskless import DisklessPart
from strandline.hybrid.parts.prefix_here import PrefixHere
from strandline.hybrid.parts.replica import ReplicaPart
from strandline.hybrid.remote.ports import FindSegment
from strandline.hybrid.remote.topics import TieredTopics
from strandline.model import INT64_MAX, Offset, TopicIdPartition
from strandline.remote.ports import RemoteStorageError
from strandline.replication import Partition

if TYPE_CHECKING:  # a broker without tiered storage does not load it
    from strandline.remote.values import RemoteLogSegmentMetadata

_MOST_SEGMENTS: Final = 1000
"""Of one plan: some milliseconds of work."""
_MOST_ROWS: Final = 100_000
_ATTEMPTS: Final = 5

Range = tuple[Offset, Offset]


class CoveredOffsets(NamedTuple):
    """The segments of some offsets, and where they end."""

    segments: tuple[RemoteLogSegmentMetadata, ...]
    end: Offset
    """The first offset that no segment has, or at which there were enough of them."""
    is_cut: bool = False
    """There may be more segments."""


def cover(start: Offset, end: Offset, find: FindSegment, *, most: int = _MOST_SEGMENTS) -> CoveredOffsets:
    """The segments that hold the offsets from `start` on, one after the other, up to a gap or to `end`. Pure."""
    at = start
    found: list[RemoteLogSegmentMetadata] = []
    while at < end:
        if len(found) >= most:
            return CoveredOffsets(tuple(found), at, is_cut=True)
        segment = find(at)
        if segment is None:
            break
        found.append(segment)
        at = segment.end_offset + 1
    return CoveredOffsets(tuple(found), min(at, end))


class _PlaneAnswer(NamedTuple):
    """What the control plane says."""

    log: DisklessLog
    start: Offset
    """Where the plan begins."""
    boundary: Offset
    """R: rows begin here, or where the plan does."""
    high_watermark: Offset
    rows: tuple[BatchRow, ...]


class ReadPlans:
    """Plans reads of led partitions."""

    def __init__(self, batches: BatchSearch, partitions: Partitions, tiered: TieredTopics, led: LedPartitions) -> None:
        self._batches, self._partitions, self._tiered, self._led = batches, partitions, tiered, led

    async def plan(self, request: PlanRead) -> ReadPlan:
        """Where the records are from an offset on, or from the log start on if that is later.

        Raises StrandlineError: NotLeaderOrFollower, UnknownTopicOrPartition, KafkaStorageError (try again).
        """
        if request.from_offset < 0 or not 0 < request.max_rows <= _MOST_ROWS:
            raise InvalidRequest(
                f"A plan begins at an offset, not at {request.from_offset}, and has 1 to {_MOST_ROWS} rows, "
                f"not {request.max_rows}."
            )
        served = self._partitions.find(request.topic, request.partition)
        match served.newest:
            case ReplicaPart() as part:
                return self._plan_classic(part.replica, request)
            case DisklessPart(older=PrefixHere() as prefix) as part:
                self._led.check(part.id)
                return await self._plan_diskless(part, prefix.replica, request)
            case DisklessPart() as part:
                part.check_leader()
                return await self._plan_diskless(part, None, request)
        raise UnknownTopicOrPartition(f"{request.topic}-{request.partition} is not served here.")

    # Classic logs: remote segments first, the rest is on the disk of the broker

    def _plan_classic(self, replica: Partition, request: PlanRead) -> ReadPlan:
        """All of it is in memory: nothing changes meanwhile."""
        replica.check_leader()
        log = replica.log
        start, end = max(request.from_offset, log.log_start_offset), log.high_watermark
        covered, ranges = self._local_part(replica, start, end)
        return ReadPlan(
            partition=replica.id,
            log_start_offset=log.log_start_offset,
            high_watermark=end,
            diskless_start_offset=end,
            segments=tuple(map(described, covered.segments)),
            local_ranges=ranges,
            rows=(),
            end_offset=max(covered.end, start) if covered.is_cut else end,
        )

    def _local_part(self, replica: Partition, start: Offset, end: Offset) -> tuple[CoveredOffsets, tuple[Range, ...]]:
        """The remote segments of a log from `start` on, and behind them what the broker has to be asked for."""
        covered = CoveredOffsets((), start)
        if replica.log.is_remote and start < end:
            try:
                covered = cover(start, end, self._tiered.storage.finder(replica))
            except RemoteStorageError as error:
                raise metadata_not_ready(replica.id, error) from error
        if covered.is_cut or covered.end >= end:
            return covered, ()
        return covered, ((covered.end, end - 1),)

    # Diskless logs

    async def _plan_diskless(self, served: DisklessPart, replica: Partition | None, request: PlanRead) -> ReadPlan:
        for _ in range(_ATTEMPTS):
            found = await self._ask(served.id, request)
            plan = None if found is None else self._joined(found, served.converted, replica)
            if plan is not None:
                return plan
        raise KafkaStorageError(
            f"{served.topic_partition} changes faster than its reads can be planned: segments are being converted "
            "or deleted, or the remote log metadata of this broker is behind. Try again."
        )

    async def _ask(self, partition: TopicIdPartition, request: PlanRead) -> _PlaneAnswer | None:
        """None if the log has moved on between two questions."""
        with storage_errors(partition.topic_partition):
            log = (await self._batches.logs([partition])).get(partition)
            if log is None or log.diskless_log_start_offset < 0:
                raise error_of(Refusal.UNKNOWN_LOG, f"The control plane has no log of {partition.topic_partition} yet.")
            start = max(request.from_offset, log.log_start_offset)
            if start >= log.high_watermark:
                return _PlaneAnswer(log, log.high_watermark, log.high_watermark, log.high_watermark, ())
            boundary = max(start, log.diskless_start_offset)
            if boundary >= log.high_watermark:
                return _PlaneAnswer(log, start, boundary, log.high_watermark, ())
            wish = FindBatches(partition, boundary, INT64_MAX)
            (answer,) = await self._batches.find_batches([wish], max_rows=request.max_rows)
        if answer.refusal is Refusal.UNKNOWN_LOG:
            raise error_of(answer.refusal, f"The log of {partition.topic_partition} was deleted.")
        if answer.refusal is not None or not answer.rows:
            return None
        # Nothing that came later than the first question counts, so that a reader gets no more than it has asked for.
        return _PlaneAnswer(log, start, boundary, max(log.high_watermark, answer.rows[-1].last_offset + 1), answer.rows)

    def _joined(self, found: _PlaneAnswer, converted: ConvertedLog, replica: Partition | None) -> ReadPlan | None:
        """The whole plan; None if remote log metadata does not have what the control plane says."""
        log, start = found.log, found.start
        first, log_start = log.diskless_log_start_offset, log.log_start_offset
        if replica is not None:  # retention moves the start of the older part there first
            log_start = max(log_start, min(replica.log.log_start_offset, first))
            start = max(start, log_start)
        segments: list[RemoteLogSegmentMetadata] = []
        ranges: tuple[Range, ...] = ()
        end = start
        is_cut = False
        if start < first:
            if replica is None:
                self._led.check(log.partition)  # names the broker that has the log of the older part
                return None
            replica.check_leader()
            covered, ranges = self._local_part(replica, start, first)
            segments += covered.segments
            end, is_cut = (covered.end if covered.is_cut else first), covered.is_cut
        if not is_cut and end < found.boundary:
            covered = self._converted_part(log, converted, end, found.boundary)
            segments += covered.segments
            end, is_cut = covered.end, covered.is_cut
            if end < found.boundary and not is_cut:
                return None
        rows = () if is_cut else found.rows
        return ReadPlan(
            partition=log.partition,
            log_start_offset=log_start,
            high_watermark=found.high_watermark,
            diskless_start_offset=log.diskless_start_offset,
            segments=tuple(map(described, segments)),
            local_ranges=ranges,
            rows=tuple(map(_placed, rows)),
            end_offset=rows[-1].last_offset + 1 if rows else end,
        )

    def _converted_part(self, log: DisklessLog, converted: ConvertedLog, start: Offset, end: Offset) -> CoveredOffsets:
        """The segments of the pipeline. Its lineage is total: each offset from B0 on is in one leader epoch only."""
        metadata, partition = converted.tier.metadata, log.partition
        try:
            epochs = [
                entry
                for entry in metadata.leader_epochs_from(partition, log.diskless_log_start_offset)
                if entry[0] >= log.diskless_log_start_epoch
            ]

            def find(offset: Offset) -> RemoteLogSegmentMetadata | None:
                at = bisect_right(epochs, offset, key=lambda entry: entry[1]) - 1
                return metadata.remote_log_segment_metadata(partition, epochs[at][0], offset) if at >= 0 else None

            return cover(start, end, find)
        except RemoteStorageError as error:
            raise metadata_not_ready(partition, error) from error


def _placed(row: BatchRow) -> PlacedRow:
    return PlacedRow(
        row.object_key,
        PlannedRow(
            base_offset=row.base_offset,
            last_offset=row.last_offset,
            byte_offset=row.byte_offset,
            byte_size=row.byte_size,
            timestamp_type=int(row.timestamp_type),
            log_append_time_ms=row.log_append_time_ms,
            max_timestamp=row.max_timestamp,
            leader_epoch=row.leader_epoch,
        ),
    )


def metadata_not_ready(partition: TopicIdPartition, error: RemoteStorageError) -> KafkaStorageError:
    """The remote log metadata of a partition has not been read."""
    return KafkaStorageError(f"The remote log metadata of {partition.topic_partition} has not been read yet. {error}")
