"""The ports of conversion, split by their callers. What holds for all ports of the control plane is in its `ports`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from strandline.controlplane.conversion.values import (
    ClaimWish,
    GivenUpRun,
    GivenUpSegment,
    GrantedClaims,
    HeldClaims,
    LogSplits,
    LogTieringProgress,
    SegmentCommit,
    SegmentUpload,
    SplitAnswer,
    SplitsToRecord,
    TieringRule,
    TopicTiering,
    UploadAnswer,
)
from strandline.controlplane.values import DisklessLog
from strandline.model import LeaderEpoch, Offset, TimestampMs, TopicIdPartition


class SplitClaims(Protocol):
    """For the first half of the pipeline: WAL files become split files. Any broker passes these calls on."""

    async def claim_wal_files_for_splitting(self, wish: ClaimWish, rules: Sequence[TieringRule]) -> GrantedClaims:
        """Claim files with eligible rows, oldest first: those without a claim, and those that the claimant has already.

        A row is eligible if it is DISKLESS, its topic is among the rules and not paused, and it is old enough: its
        newest record or its commit is older than the rule says, or it was committed before the topic was triggered.
        Rows from the last stable offset on wait for the transactions there, and rows of a log whose prefix is still
        being copied wait for it. Looks at a bounded number of files, so that an answer may be empty although there is
        more behind `next_file_id`. A search from 0 begins at the first file that has something to split: a row behind
        one that is too young, which could not be merged either, may wait for it.
        """

    async def record_splits(self, request: SplitsToRecord) -> SplitAnswer:
        """The split files of some WAL files are written: record them and mark their rows SPLIT, in one transaction.

        A split counts if the control plane has exactly its offsets as DISKLESS rows of those files; if not (they were
        deleted, or another claimant was faster) it is refused and its object becomes the file cleaner's. So it is if
        another claimant has one of its files, or its object was taken as an orphan. Repeated, it succeeds again. The
        claims end with it: any claimant may have what is left of the files.
        """

    async def release_wal_file_claims(self, claimant: str, object_keys: Collection[str]) -> None:
        """Let others claim these files at once. Claims of others stay."""

    async def renew_claims(self, claimant: str, *, claim_ms: int) -> HeldClaims:
        """All claims of a claimant, of files and of segments, last from now on for this long."""


class SplitRepair(Protocol):
    """For fsck."""

    async def undo_splits(self, object_keys: Collection[str]) -> Sequence[str]:
        """These split files are lost or damaged: their rows are DISKLESS again, and will be split anew.

        Their objects become the file cleaner's. Returns those that were waiting to be merged.
        """


class MergeableSplits(Protocol):
    """For the second half of the pipeline: split files become segments. Any broker passes this call on."""

    async def mergeable_splits(self, topic_ids: Collection[UUID], *, max_splits: int) -> Sequence[LogSplits]:
        """Split files that can be merged: of logs that are not paused, from `next_upload_offset` on, without a gap.

        At most `max_splits` of each log. Logs without any are left out, and those whose prefix is being copied. If the
        log start has passed the segments, the first split file is the one that holds it.
        """


class UploadList(Protocol):
    """For all callers that look at segments under way."""

    async def segment_uploads(self, partitions: Collection[TopicIdPartition]) -> Sequence[SegmentUpload]:
        """All uploads of some logs, by log and base offset."""


class SegmentUploads(UploadList, Protocol):
    """For the leader of a partition, which takes its segments into the log.

    An upload passes through UPLOADING, FINISHING and is gone with its commit; or UPLOADING, ABORTING and is gone when
    its bytes are. A leader of an older epoch than the upload has seen is refused (STALE_LEADER_EPOCH).
    """

    async def begin_segment(
        self,
        partition: TopicIdPartition,
        segment_id: UUID,
        *,
        base_offset: Offset,
        last_offset: Offset,
        claimant: str,
        claim_ms: int,
        leader_epoch: LeaderEpoch,
    ) -> UploadAnswer:
        """Announce a segment of whole split files. If the same range was begun by the claimant, that upload again.

        Refused (NOT_MERGEABLE) if it does not begin where the segments and the uploads of the claimant end, if split
        files do not cover it exactly, or the topic is paused; (CLAIMED) if another claimant is at work on the log.
        """

    async def finish_segment(
        self,
        partition: TopicIdPartition,
        segment_id: UUID,
        *,
        leader_epoch: LeaderEpoch,
        custom_metadata: bytes | None = None,
        claimant: str | None = None,
    ) -> UploadAnswer:
        """Its bytes are there: UPLOADING becomes FINISHING, and succeeds if it is. UNKNOWN_UPLOAD if it is ABORTING,
        gone, or another claimant's (`claimant` None: of any claimant). What the storage returned for the bytes is kept.
        """

    async def commit_segment(
        self, partition: TopicIdPartition, segment_id: UUID, *, leader_epoch: LeaderEpoch
    ) -> SegmentCommit:
        """Its remote metadata is COPY_SEGMENT_FINISHED: rows and splits of its offsets go, `tiered_high_offset` and
        `diskless_start_offset` move behind it, the log is HYBRID. Wakes TRIM_CHANNEL.

        The boundary moves in one short transaction. Rows and splits below it go in further ones, page by page: no
        reader uses them any more. What a crash leaves goes with the next segment, or with retention.

        Only a FINISHING upload (UNKNOWN_UPLOAD), and only the first of its log (NOT_MERGEABLE). The log start and the
        state of producers stay. WAL files without rows and the objects of splits become the file cleaner's.
        """

    async def abort_segment(
        self, partition: TopicIdPartition, segment_id: UUID, *, leader_epoch: LeaderEpoch
    ) -> Sequence[SegmentUpload]:
        """UPLOADING becomes ABORTING, for it and for the later uploads of the log. Those that are ABORTING now.

        A FINISHING upload stays one, and is not returned.
        """

    async def forget_segment(self, partition: TopicIdPartition, segment_id: UUID) -> None:
        """The bytes of an ABORTING upload are deleted: it is gone. Others stay.

        Its bytes are to be deleted once more after LATE_MS, and so are those of all uploads of deleted topics: a Spark
        task that was given up may still write some of them.
        """


class ConvertedLogs(UploadList, Protocol):
    """For fsck."""

    async def converted_logs(self) -> Sequence[DisklessLog]:
        """Logs of which segments hold offsets at or above B0, or of which there are uploads."""


class ConversionKeeping(ConvertedLogs, Protocol):
    """For the leader of a partition, which keeps what was converted in order."""

    async def conversion_ended(self, partition: TopicIdPartition, *, leader_epoch: LeaderEpoch) -> None:
        """No segment of the log is left: HYBRID becomes DISKLESS_ONLY, if the log start has reached the read boundary
        and there is no upload."""


class GivenUpSegments(Protocol):
    """For upkeep: segments that will never be part of a log."""

    async def given_up_segments(self, *, limit: int, after: GivenUpSegment | None = None) -> Sequence[GivenUpSegment]:
        """Segments that were gone LATE_MS ago, whose bytes are to be deleted now, the longest due first.

        With `after`, those that come behind it in that order.
        """

    async def given_up_deleted(self, segment_id: UUID) -> None:
        """The bytes of such a segment are deleted."""


class GivenUpRuns(Protocol):
    """For upkeep: runs of the pipeline that may have written split files and will not record them."""

    async def given_up_runs(self, *, limit: int) -> Sequence[GivenUpRun]:
        """Claimants of WAL files whose claims are all done, released, taken over, or expired and not renewed for as
        long again; and whose split files are to be looked for. That is at once, and again after LATE_SPLITS_MS: a task
        that was cancelled may write late.
        """

    async def unrecorded(self, object_keys: Collection[str]) -> Sequence[str]:
        """Those of the objects that no file row knows, in the same order. It locks nothing."""

    async def take_leftovers(
        self, run: GivenUpRun, object_keys: Collection[str], *, broker_id: int
    ) -> Sequence[str] | None:
        """Mark those of the objects for deletion that are not recorded: from now on they are refused. Returns them.

        The objects were listed after `given_up_runs` answered. None if the run has claimed since: some of them may
        be its newest ones. Nothing is marked then.
        """

    async def run_looked_at(self, run: GivenUpRun) -> None:
        """All objects of the run were listed, and those that are not recorded marked. The second time it is forgotten.

        Nothing changes if it has claimed since.
        """


class TieringWishes(Protocol):
    """For operators, and for status."""

    async def pause_tiering(self, topic_id: UUID, *, is_paused: bool) -> None:
        """No file of the topic is split and no segment begins while it is paused. What is under way is finished."""

    async def trigger_tiering(self, topic_id: UUID) -> TimestampMs:
        """Everything that is committed by now may be converted. Returns the moment. Wakes TIERING_CHANNEL."""

    async def tiering_wishes(self) -> Mapping[UUID, TopicTiering]:
        """The topics that are paused or were triggered."""

    async def tiering_progress(self, rules: Sequence[TieringRule]) -> Sequence[LogTieringProgress]:
        """The logs of these topics, by topic and partition. What is eligible is counted for paused topics too."""
