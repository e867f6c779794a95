"""What the leader of a partition does for a segment of the pipeline: begin, commit, abort, and finish after a crash.

The control plane is asked first, at every step: it alone decides whether a segment will be finished or not, so that
neither a leader that was replaced nor a crash between two steps leads to another decision. Remote log metadata follows.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import UUID

from strandline.clock import Clock, Ids
from strandline.config import TopicConfig
from strandline.controlplane import BatchReads, DisklessLog, Refusal
from strandline.controlplane.conversion import SegmentUpload, SegmentUploads, SplitObject, UploadState
from strandline.conversion_api.values import (
    AbortSegment,
    BeginSegment,
    BegunSegment,
    CommitSegment,
    CommittedSegment,
    SegmentAbort,
)
from strandline.crash import crash_point
from strandline.errors import InvalidRequest, KafkaStorageError, NotLeaderOrFollower, StrandlineError
from strandline.hybrid.conversion.figures import TieringFigures
from strandline.hybrid.conversion.led import LedPartitions
from strandline.hybrid.conversion.needed_metadata import ConvertedMetadata
from strandline.hybrid.conversion.remote_segments import (
    described,
    find_segment,
    is_finished,
    is_there,
    joined_epochs,
    not_available,
    segment_before,
)
from strandline.hybrid.conversion.translating import split_file
from strandline.hybrid.diskless.refusals import storage_errors
from strandline.model import LeaderEpoch, TopicIdPartition, uuid_to_text
from strandline.remote.ports import RemoteResourceNotFound, RemoteStorageError
from strandline.remote.values import RemoteLogSegmentId, RemoteLogSegmentMetadata, RemoteLogSegmentState

if TYPE_CHECKING:  # a broker without tiered storage does not load it
    from strandline.hybrid.remote.tier import RemoteTier

logger = logging.getLogger(__name__)

A = TypeVar("A")

_MOST_REMEMBERED: Final = 1000
_ABORTED_AT_ONCE: Final = 1000
_LOOK_SECONDS: Final = 10.0
_ANNOUNCE_SECONDS: Final = 15.0
"""Together they are shorter than the pipeline waits for an answer, so that it gets an error with a sentence."""


class LeaderUploads:
    """Takes segments from COPY_SEGMENT_STARTED to COPY_SEGMENT_FINISHED, and moves the read boundary behind them."""

    def __init__(
        self,
        metadata: ConvertedMetadata,
        led: LedPartitions,
        *,
        uploads: SegmentUploads,
        batches: BatchReads,
        topic_config: Callable[[str], TopicConfig],
        producer_id_expiration_ms: Callable[[], int],
        on_committed: Callable[[TopicIdPartition], None],
        figures: TieringFigures,
        clock: Clock,
        ids: Ids,
    ) -> None:
        """`on_committed` is called when the read boundary of a partition has moved, or something is left to finish."""
        self._uploads, self._batches, self._metadata, self._led = uploads, batches, metadata, led
        self._topic_config, self._producer_id_expiration_ms = topic_config, producer_id_expiration_ms
        self._on_committed, self._figures, self._clock, self._ids = on_committed, figures, clock, ids
        self._begun_at: dict[UUID, float] = {}

    # Asked by the pipeline. All raise StrandlineError.

    async def begin(self, request: BeginSegment) -> BegunSegment:
        """Announce a segment: in the control plane, then in remote log metadata."""
        partition = request.partition
        epoch = self._led.check(partition)
        async with self._metadata.ready(partition) as tier:
            return await self._begin(tier, request, epoch)

    async def _begin(self, tier: RemoteTier, request: BeginSegment, epoch: LeaderEpoch) -> BegunSegment:
        partition = request.partition
        with storage_errors(partition.topic_partition):
            answer = await self._uploads.begin_segment(
                partition,
                self._ids.uuid(),
                base_offset=request.base_offset,
                last_offset=request.last_offset,
                claimant=request.claimant,
                claim_ms=request.claim_ms,
                leader_epoch=epoch,
            )
        upload = answer.upload
        if answer.refusal is not None or upload is None:
            raise refused(answer.refusal, answer.message)
        crash_point("tiering.begin.before_started")
        aborted = await self._aborted_in(upload)
        segment = self._segment_of(upload, answer.splits, has_aborted=bool(aborted))
        known = find_segment(tier, partition, upload.segment_id)
        if known is None:
            await self._announced(partition, tier.manager.pipeline.start(segment))
        crash_point("tiering.begin.after_started")
        if len(self._begun_at) >= _MOST_REMEMBERED:
            self._begun_at.clear()
        self._begun_at.setdefault(upload.segment_id, self._clock.monotonic())
        return BegunSegment(
            partition=partition,
            leader_epoch=epoch,
            segment=described(known or segment),
            splits=tuple(map(split_file, answer.splits)),
            previous=segment_before(tier, partition, upload.base_offset, epoch),
            index_interval_bytes=self._topic_config(partition.topic).index_interval_bytes,
            producer_id_expiration_ms=self._producer_id_expiration_ms(),
            aborted=aborted,
        )

    async def _aborted_in(self, upload: SegmentUpload) -> tuple[SegmentAbort, ...]:
        """The transactions whose abort markers are in the segment. They are decided: its rows were below the last
        stable offset."""
        found: list[SegmentAbort] = []
        at = upload.base_offset
        while at <= upload.last_offset:
            with storage_errors(upload.partition.topic_partition):
                answer = await self._batches.aborted_transactions(
                    upload.partition, from_offset=at, limit=_ABORTED_AT_ONCE
                )
            page = answer.ranges
            found += [SegmentAbort._make(one) for one in page if one.last_offset <= upload.last_offset]
            if len(page) < _ABORTED_AT_ONCE:
                break
            at = page[-1].last_offset + 1
        return tuple(found)

    async def commit(self, request: CommitSegment) -> CommittedSegment:
        """All bytes are there: finish the segment, and let readers find it."""
        partition = request.partition
        epoch = self._led.check(partition)
        async with self._metadata.ready(partition) as tier:
            return await self._commit(tier, request, epoch)

    async def _commit(self, tier: RemoteTier, request: CommitSegment, epoch: LeaderEpoch) -> CommittedSegment:
        partition = request.partition
        segment = find_segment(tier, partition, request.segment_id)
        if not is_there(segment):
            await self._check_not_lost(request)
        if segment is not None and segment.state is RemoteLogSegmentState.COPY_SEGMENT_STARTED:
            await self._check_uploaded(tier, segment, request.custom_metadata)
        with storage_errors(partition.topic_partition):
            answer = await self._uploads.finish_segment(
                partition,
                request.segment_id,
                leader_epoch=epoch,
                custom_metadata=request.custom_metadata,
                claimant=request.claimant,
            )
        if answer.refusal is Refusal.UNKNOWN_UPLOAD:
            log = await self._log(partition)
            if log is not None and log.diskless_start_offset > request.end_offset:
                return CommittedSegment(diskless_start_offset=log.diskless_start_offset)  # the answer was lost
        if answer.refusal is not None or answer.upload is None:
            raise refused(answer.refusal, answer.message)
        try:
            return await self._finish(tier, answer.upload, epoch)
        except BaseException:
            self._on_committed(partition)  # it will be finished, by the keeper of whichever broker leads the partition
            raise

    async def abort(self, request: AbortSegment) -> None:
        """Give up a segment, and those that were begun behind it. Their bytes are deleted soon."""
        partition = request.partition
        epoch = self._led.check(partition)
        with storage_errors(partition.topic_partition):
            uploads = await self._uploads.segment_uploads([partition])
            mine = [one for one in uploads if one.segment_id == request.segment_id]
            if mine and mine[0].claimant == request.claimant:
                await self._uploads.abort_segment(partition, request.segment_id, leader_epoch=epoch)
        self._on_committed(partition)

    # By level: what is to be done for an upload follows from its state

    async def carry_on(self, upload: SegmentUpload, epoch: LeaderEpoch, *, now_ms: int) -> None:
        """Finish an upload that is to be finished, and give up one that was abandoned. Raises StrandlineError."""
        partition = upload.partition
        tier = self._metadata.open(partition)
        if upload.state is UploadState.UPLOADING and is_finished(find_segment(tier, partition, upload.segment_id)):
            # The database has lost its last commits: the segment was finished, and is whole.
            with storage_errors(partition.topic_partition):
                answer = await self._uploads.finish_segment(partition, upload.segment_id, leader_epoch=epoch)
            if answer.refusal is None and answer.upload is not None:
                await self._finish(tier, answer.upload, epoch)
        elif upload.state is UploadState.UPLOADING and upload.expires_at_ms <= now_ms:
            logger.warning(
                "giving up the segment %d to %d of %s: %s has not been heard of since its claim expired",
                upload.base_offset,
                upload.last_offset,
                partition,
                upload.claimant,
            )
            with storage_errors(partition.topic_partition):
                await self._uploads.abort_segment(partition, upload.segment_id, leader_epoch=epoch)
        elif upload.state is UploadState.FINISHING:
            await self._finish(tier, upload, epoch)
        elif upload.state is UploadState.ABORTING:
            await self._take_back(tier, upload)

    async def _finish(self, tier: RemoteTier, upload: SegmentUpload, epoch: LeaderEpoch) -> CommittedSegment:
        partition, pipeline = upload.partition, tier.manager.pipeline
        segment = find_segment(tier, partition, upload.segment_id)
        if not is_there(segment) and await self._is_deleted(upload):
            segment = None  # it was deleted together with its records: only the boundary is left to move
        elif segment is None:
            raise KafkaStorageError(
                f"The remote log metadata of {partition.topic_partition} does not have the segment "
                f"{uuid_to_text(upload.segment_id)}, which is to be finished. Was __remote_log_metadata deleted?"
            )
        # First: what is found at an offset of an epoch is the segment that was finished last.
        await self._drop_lost_history(tier, upload)
        crash_point("tiering.commit.before_finished")
        if segment is not None:
            await self._announced(partition, pipeline.finish(segment, upload.custom_metadata))
        crash_point("tiering.commit.after_finished")
        with storage_errors(partition.topic_partition):
            done = await self._uploads.commit_segment(partition, upload.segment_id, leader_epoch=epoch)
        if done.refusal is Refusal.UNKNOWN_UPLOAD and done.diskless_start_offset > upload.last_offset:
            # The keeper and a request of the pipeline may finish it at the same time: the other one was faster.
            return CommittedSegment(diskless_start_offset=done.diskless_start_offset)
        if done.refusal is not None:
            raise refused(done.refusal, done.message)
        crash_point("tiering.commit.after_commit")
        self._figures.segments_created += 1
        begun = self._begun_at.pop(upload.segment_id, None)
        if begun is not None:
            self._figures.merge_latency.add(self._clock.monotonic() - begun)
        self._on_committed(partition)
        return CommittedSegment(diskless_start_offset=done.diskless_start_offset)

    async def _drop_lost_history(self, tier: RemoteTier, upload: SegmentUpload) -> None:
        """Delete segments of the same offsets that the control plane does not know, before readers look there.

        They are whole, but of commits that the database has lost: their offsets were given to other records since.
        """
        partition, pipeline = upload.partition, tier.manager.pipeline
        try:
            others = [
                segment
                for segment in pipeline.overlapping(partition, upload.base_offset, upload.last_offset)
                if segment.segment_id.id != upload.segment_id and is_finished(segment)
            ]
        except RemoteStorageError as error:
            raise not_available(partition, error) from error
        if not others:
            return
        with storage_errors(partition.topic_partition):
            known = {one.segment_id for one in await self._uploads.segment_uploads([partition])}
        for segment in others:
            if segment.segment_id.id not in known:
                logger.warning(
                    "deleting the segment %d to %d of %s, %s: the database has lost the commit that made it part of "
                    "the log, and the segment %d to %d has its place now",
                    segment.start_offset,
                    segment.end_offset,
                    partition,
                    uuid_to_text(segment.segment_id.id),
                    upload.base_offset,
                    upload.last_offset,
                )
                await self._remotely(partition, pipeline.delete_lost(segment))

    async def _take_back(self, tier: RemoteTier, upload: SegmentUpload) -> None:
        """Delete its bytes twice, at different times: an upload that was cancelled may reach the storage late."""
        partition, pipeline = upload.partition, tier.manager.pipeline
        segment = find_segment(tier, partition, upload.segment_id)
        if segment is not None and segment.state is RemoteLogSegmentState.COPY_SEGMENT_STARTED:
            await self._remotely(partition, pipeline.take_back(segment))
            crash_point("tiering.abort.after_delete_started")
            return
        if segment is not None:
            await self._remotely(partition, pipeline.delete_abandoned(segment))
        with storage_errors(partition.topic_partition):
            await self._uploads.forget_segment(partition, upload.segment_id)
        self._figures.segments_aborted += 1
        self._begun_at.pop(upload.segment_id, None)

    # Help

    async def _check_uploaded(
        self, tier: RemoteTier, segment: RemoteLogSegmentMetadata, custom_metadata: bytes | None
    ) -> None:
        """Refuse to finish a segment that this broker could not read: its rows and WAL objects are deleted then."""
        partition, url = segment.partition, tier.storage.url
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                await tier.manager.pipeline.check_uploaded(segment, custom_metadata)
        except RemoteResourceNotFound as error:
            raise InvalidRequest(
                f"The segment {uuid_to_text(segment.segment_id.id)} of {partition.topic_partition}, offsets "
                f"{segment.start_offset} to {segment.end_offset}, is not in {url}, the remote storage of broker "
                f"{self._led.node_id}, and was not committed: {error} The pipeline has to use that storage: see "
                "rsm.config.url in its properties, and whether a directory is mounted on every worker."
            ) from error
        except RemoteStorageError as error:
            raise not_available(partition, error) from error
        except TimeoutError as error:
            raise KafkaStorageError(
                f"The remote storage {url} did not show within {_LOOK_SECONDS:g} s whether it has a segment of "
                f"{partition.topic_partition} that is to be committed."
            ) from error

    async def _check_not_lost(self, request: CommitSegment) -> None:
        """Refuse to finish an upload whose deletion has begun: the control plane has forgotten that it was given up."""
        with storage_errors(request.partition.topic_partition):
            uploads = await self._uploads.segment_uploads([request.partition])
        mine = (one for one in uploads if one.segment_id == request.segment_id)
        if any(one.state is UploadState.UPLOADING for one in mine):
            raise InvalidRequest(
                f"The segment {uuid_to_text(request.segment_id)} of {request.partition.topic_partition} was given up, "
                "and its bytes are deleted. Abort it, and begin another one."
            )

    async def _is_deleted(self, upload: SegmentUpload) -> bool:
        log = await self._log(upload.partition)
        return log is not None and log.log_start_offset > upload.last_offset

    async def _log(self, partition: TopicIdPartition) -> DisklessLog | None:
        with storage_errors(partition.topic_partition):
            return (await self._batches.logs([partition])).get(partition)

    async def _announced(self, partition: TopicIdPartition, work: Awaitable[A]) -> A:
        """The same for a record of remote log metadata. One that is written late does no harm: rows decide."""
        try:
            async with asyncio.timeout(_ANNOUNCE_SECONDS):
                return await self._remotely(partition, work)
        except TimeoutError as error:
            raise KafkaStorageError(
                f"The remote log metadata of {partition.topic_partition} was not written within {_ANNOUNCE_SECONDS:g} "
                "s. Is there a leader for every partition of __remote_log_metadata?"
            ) from error

    async def _remotely(self, partition: TopicIdPartition, work: Awaitable[A]) -> A:
        try:
            return await work
        except (RemoteStorageError, ValueError) as error:
            raise not_available(partition, error) from error

    def _segment_of(
        self, upload: SegmentUpload, splits: Sequence[SplitObject], *, has_aborted: bool
    ) -> RemoteLogSegmentMetadata:
        newest = max((split.max_timestamp for split in splits), default=-1)
        return RemoteLogSegmentMetadata(
            segment_id=RemoteLogSegmentId(upload.partition, upload.segment_id),
            start_offset=upload.base_offset,
            end_offset=upload.last_offset,
            max_timestamp_ms=newest if newest >= 0 else self._clock.now_ms(),
            broker_id=self._led.node_id,
            event_timestamp_ms=self._clock.now_ms(),
            segment_size_in_bytes=upload.size_bytes,
            segment_leader_epochs=dict(joined_epochs(splits)),
            txn_index_empty=not has_aborted,
        )


def refused(refusal: Refusal | None, message: str) -> StrandlineError:
    """The error of a request that the control plane refused."""
    if refusal is Refusal.STALE_LEADER_EPOCH:
        return NotLeaderOrFollower(message)
    return InvalidRequest(message)
