"""The ports of the control plane, split by their callers. `ControlPlane` offers them all.

For every port: one call is one transaction, unless its docstring says that it is several, each of which leaves a legal
state. Calls may run concurrently, on any broker. Database errors are raised as errors of `strandline.sql`; after
StoreUnavailable the call may have taken effect, and it is always safe to repeat it. Every moment that is stored, and
every moment that it is compared with, is the database's time: the clocks of brokers may differ.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from strandline.controlplane.given_up_ports import GivenUpRuns, GivenUpSegments
from strandline.controlplane.tiering_values import (
    LogSplits,
    LogTieringProgress,
    SegmentCommit,
    SegmentUpload,
    TieringRule,
    TopicTiering,
    UploadAnswer,
)
from strandline.controlplane.values import (
    BatchRow,
    BoundaryClaim,
    BoundarySet,
    CommittedBatch,
    DisklessLog,
    FileToCommit,
    FindBatches,
    FoundAborted,
    FoundBatches,
    NewBoundary,
    OffsetBoundary,
    PrefixProgress,
    ProducerBatches,
    Refusal,
    RetentionRule,
    TopicMigration,
    Trimmed,
    WalFile,
)
from strandline.model import LeaderEpoch, Offset, ProducerId, TimestampMs, TopicIdPartition
from strandline.tiering_api.values import ClaimedFiles, ClaimFiles, RecordedSplits, RecordSplits, RenewedClaims


class BatchCommits(Protocol):
    """For the writer."""

    async def commit_files(self, files: Sequence[FileToCommit]) -> Sequence[Sequence[CommittedBatch]]:
        """Give the batches of uploaded files their offsets: all files in their order, in one transaction.

        Offsets are dense, in the order of the files and of the batches in them. Leader epochs never go back along a
        log: a batch of an older epoch than the log has seen is kept with the log's. A refused batch does not stop the
        others; its bytes stay in the object, unreferenced. A file that was committed before (its key is known) gets
        the answers of that commit, so that a caller whose answer was lost can repeat the call. All batches of a file
        that was marked as an orphan are refused (STALE_FILE). A file of which no batch was accepted is marked for
        deletion in the same transaction.

        A batch of a transaction opens it if it is not open. A control batch ends it: later ones of an older epoch of
        its producer are refused (INVALID_PRODUCER_EPOCH), and markers of an older coordinator (COORDINATOR_FENCED); an
        abort is remembered as a range. Whether a transaction is open, and where the first one begins, depends on
        nothing but the batches up to the high watermark: the two offsets belong together.
        """


class BatchReads(Protocol):
    """For the reader."""

    async def find_batches(self, requests: Sequence[FindBatches], *, max_rows: int) -> Sequence[FoundBatches]:
        """The rows from each offset on, at most `max_rows` for each. Costs as much as the answer, at any offset.

        The first row holds the offset. An offset of the log below the read boundary is refused (IN_PREFIX).
        """

    async def logs(self, partitions: Collection[TopicIdPartition]) -> Mapping[TopicIdPartition, DisklessLog]:
        """The logs that exist, in one query. Also those whose B0 is unset."""

    async def aborted_transactions(
        self, partition: TopicIdPartition, *, from_offset: Offset, limit: int
    ) -> FoundAborted:
        """The first `limit` aborted transactions with markers at `from_offset` or later."""

    async def known_files(self, object_keys: Collection[str]) -> Mapping[str, bool]:
        """Those of the files that the control plane knows, and whether batches refer to them.

        A file whose object was deleted is known for another day.
        """

    async def first_row_at_time(self, partition: TopicIdPartition, timestamp: TimestampMs) -> BatchRow | None:
        """The first row that holds a record of this time or later. None if there is none, or no such log.

        Of the records from the read boundary on, here and in `row_of_max_timestamp`.
        """

    async def row_of_max_timestamp(self, partition: TopicIdPartition, *, from_offset: Offset = 0) -> BatchRow | None:
        """The first row with the largest timestamp, of the rows that end at `from_offset` or later."""

    async def offset_boundary(self, partition: TopicIdPartition, offset: Offset) -> OffsetBoundary:
        """Which tier holds an offset."""


class LogLifecycle(Protocol):
    """For the component that follows the cluster metadata."""

    async def create_logs(self, partitions: Collection[TopicIdPartition]) -> None:
        """Create empty logs, with all offsets 0. Those that exist stay as they are.

        Leaves out partitions that the switch of their topic concerns, which begin at their B0; for a day also after it
        was aborted, because a broker may not know that yet.
        """

    async def delete_topics(self, topic_ids: Collection[UUID]) -> None:
        """Remove logs, batches and producer state; files that nothing refers to any more are marked for deletion.

        In several bounded transactions. The first ends their switches: no B0 is set from then on. The second closes
        the logs: later commits to them are refused.
        """

    async def topic_ids(self) -> frozenset[UUID]:
        """Every topic that has a log or a wish, or whose switch was requested, or that its deletion left rows of."""

    async def diskless_topic_ids(self) -> frozenset[UUID]:
        """Every topic of which a partition is diskless, with B0. Not those that are only to be switched."""


class LogTrimming(Protocol):
    """For DeleteRecords and retention."""

    async def delete_records(self, before: Mapping[TopicIdPartition, Offset]) -> Mapping[TopicIdPartition, Trimmed]:
        """Move the log start up to an offset (-1: the high watermark), never back, and delete the rows below it.

        All log starts move in one transaction; rows are deleted in further ones, page by page. A start below B0 is the
        start of the whole log: what lies below it in the prefix is for the leader to delete.
        """

    async def enforce_retention(self, rules: Sequence[RetentionRule], *, max_rows: int) -> Sequence[Trimmed]:
        """Delete the oldest rows that exceed the retention time or size, at most `max_rows` of each log.

        Finds them without a lock, then deletes them in short transactions that also move the log start. At least
        `retention_bytes` of what has not expired stay. The answers are in the order of the rules. Nothing is deleted
        from a log that begins below its read boundary: its oldest records are in the prefix, and the leader's to judge.
        """

    async def expire_producers(self, *, silent_ms: int, limit: int) -> int:
        """Forget producers whose last commit is longer ago, and that have no transaction open; returns how many."""


class WalFiles(Protocol):
    """For the file cleaner and fsck."""

    async def now_ms(self) -> TimestampMs:
        """The time by which the moments in the rows are to be judged."""

    async def files_to_delete(self, *, marked_for_ms: int, limit: int) -> Sequence[WalFile]:
        """Files that have been marked for at least this long, in the order of their marking."""

    async def forget_files(self, file_ids: Collection[int]) -> None:
        """Remove the rows of files whose objects were deleted, and their claims; rows that are not marked stay.

        Their keys are kept for a day, in which a late commit is refused (STALE_FILE); not those of split files that
        were recorded, whose rows tell.
        """

    async def take_orphans(self, object_keys: Collection[str], *, broker_id: int) -> Sequence[str]:
        """Mark objects without a file row for deletion, so that a late commit or record of them is refused.

        Returns the keys that were marked. Those with a row are left alone, unless their objects were deleted before.
        """

    async def files_after(self, file_id: int, limit: int) -> Sequence[WalFile]:
        """All files, page by page, in the order of their ids."""

    async def rows_of_file(self, file_id: int) -> Sequence[tuple[TopicIdPartition, BatchRow]]:
        """The rows that refer to a file."""

    async def wrong_transactions(self) -> Mapping[TopicIdPartition, str]:
        """Logs whose rows about transactions contradict each other, and a sentence for each. There should be none."""


class ProducerStates(Protocol):
    """For DescribeProducers, and for batches that a transaction coordinator has refused."""

    async def producers(self, partition: TopicIdPartition, only: ProducerId | None = None) -> Sequence[ProducerBatches]:
        """Every producer the partition remembers, or only one, if it does."""


class Migrations(Protocol):
    """For the leaders of topics that are switched from classic to diskless.

    `migration_requests` begins and ends switches, in the transactions of the controller.
    """

    async def topic_migrations(self) -> Sequence[TopicMigration]:
        """The switches that were requested and are not finished, in the order of their requests."""

    async def claim_boundaries(self, claims: Sequence[BoundaryClaim]) -> Mapping[TopicIdPartition, DisklessLog]:
        """Let earlier leaders of these partitions come too late: from now on B0 is set by these, or by later ones.

        Waits for an earlier leader's transaction that is under way. Returns the logs as they are afterwards; those
        with B0, with a later epoch, or without a request of that position are unchanged, and left out if there is none.
        """

    async def initialize_diskless_migration(self, boundaries: Sequence[NewBoundary]) -> Sequence[BoundarySet]:
        """Set B0 of some partitions, and take over the producers of their prefixes: the answers in the same order.

        From then on the partitions take commits, with offsets from B0 on. While B0 is unset the topic must have a
        switch at the position that the leader names (MIGRATION_NOT_FOUND), and what an earlier leader left is
        overwritten. Once it is set, the same boundary of the same or a later leader succeeds and changes nothing; any
        other is refused (BOUNDARY_IS_SET), and so are other producers while nothing is committed behind it. An epoch
        below the stored one is always refused (STALE_LEADER_EPOCH). A refused partition does not stop the others. Wakes
        MIGRATION_CHANNEL.
        """

    async def reset_diskless_log_start_offset(
        self, partition: TopicIdPartition, leader_epoch: LeaderEpoch
    ) -> BoundarySet:
        """Make B0 unset again, and the switch of the topic unfinished. Only while no batch was ever committed
        (BOUNDARY_IS_SET), and not by a leader that was replaced (STALE_LEADER_EPOCH). Succeeds if it is unset already.
        """

    async def record_prefix(self, progress: Sequence[PrefixProgress]) -> None:
        """Store how far the prefixes are tiered, where their logs begin, and their states. Ends finished switches.

        Nothing goes back, whatever a leader reports, and nothing goes beyond B0. Reports of leaders that were replaced,
        and of partitions without B0, are ignored.
        """

    async def complete_migration(self, topic_id: UUID) -> Refusal | None:
        """End the switch of a topic although its prefix is not wholly tiered: MIGRATING becomes HYBRID.

        Refused if there is none (MIGRATION_NOT_FOUND), or a partition has no B0 (BOUNDARY_IS_UNSET).
        """

    async def migration_states(self, topic_ids: Collection[UUID]) -> Mapping[UUID, Sequence[DisklessLog]]:
        """All logs of some topics, in the order of their partitions. Topics without logs are left out."""


class SplitClaims(Protocol):
    """For the first half of the pipeline: WAL files become split files. Any broker passes these calls on."""

    async def claim_wal_files_for_splitting(self, wish: ClaimFiles, rules: Sequence[TieringRule]) -> ClaimedFiles:
        """Claim files with eligible rows that nobody else has claimed, oldest first; those of the claimant again.

        A row is eligible if it is DISKLESS, its topic is among the rules and not paused, and it is old enough: its
        newest record or its commit is older than the rule says, or it was committed before the topic was triggered.
        Rows from the last stable offset on wait for the transactions there, and rows of a log whose prefix is still
        being copied wait for it. Looks at a bounded number of files, so that an answer may be empty although there is
        more behind `next_file_id`. A search from 0 begins at the first file that has something to split: a row behind
        one that is too young, which could not be merged either, may wait for it.
        """

    async def record_splits(self, request: RecordSplits) -> RecordedSplits:
        """The split files of some WAL files are written: record them and mark their rows SPLIT, in one transaction.

        A split counts if the control plane has exactly its offsets as DISKLESS rows of those files; if not (they were
        deleted, or another claimant was faster) it is refused and its object becomes the file cleaner's. So it is if
        another claimant has one of its files, or its object was taken as an orphan. Repeated, it succeeds again. The
        claims end with it: what is left of the files may be anybody's.
        """

    async def undo_splits(self, object_keys: Collection[str]) -> Sequence[str]:
        """These split files are lost or damaged: their rows are DISKLESS again, and will be split anew.

        Their objects become the file cleaner's. Returns those that were waiting to be merged.
        """

    async def release_wal_file_claims(self, claimant: str, object_keys: Collection[str]) -> None:
        """Let others claim these files at once. Claims of others stay."""

    async def renew_claims(self, claimant: str, *, claim_ms: int) -> RenewedClaims:
        """All claims of a claimant, of files and of segments, last from now on for this long."""


class SegmentUploads(Protocol):
    """For leaders, in the second half of the pipeline: split files become segments.

    An upload passes through UPLOADING, FINISHING and is gone with its commit; or UPLOADING, ABORTING and is gone when
    its bytes are. A leader of an older epoch than the upload has seen is refused (STALE_LEADER_EPOCH).
    """

    async def mergeable_splits(self, topic_ids: Collection[UUID], *, max_splits: int) -> Sequence[LogSplits]:
        """Split files that can be merged: of logs that are not paused, from `next_upload_offset` on, without a gap.

        At most `max_splits` of each log. Logs without any are left out, and those whose prefix is being copied. If the
        log start has passed the segments, the first split file is the one that holds it.
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
        gone, or another claimant's; `claimant` None: whoever's. What the storage returned for the bytes is kept.
        """

    async def commit_segment(
        self, partition: TopicIdPartition, segment_id: UUID, *, leader_epoch: LeaderEpoch
    ) -> SegmentCommit:
        """Its remote metadata is COPY_SEGMENT_FINISHED: rows and splits of its offsets go, `tiered_high_offset` and
        `diskless_start_offset` move behind it, the log is HYBRID. Wakes TRIM_CHANNEL.

        The boundary moves in one short transaction, rows and splits below it go in further ones, page by page: nobody
        reads them any more. What a crash leaves goes with the next segment, or with retention.

        Only a FINISHING upload (UNKNOWN_UPLOAD), and only the first of its log (NOT_MERGEABLE). The log start, and what
        producers are remembered, stay. WAL files without rows and the objects of splits become the file cleaner's.
        """

    async def abort_segment(
        self, partition: TopicIdPartition, segment_id: UUID, *, leader_epoch: LeaderEpoch
    ) -> Sequence[SegmentUpload]:
        """UPLOADING becomes ABORTING, for it and for the later uploads of the log. Those that are ABORTING now.

        A FINISHING upload stays one, and is not returned.
        """

    async def segment_uploads(self, partitions: Collection[TopicIdPartition]) -> Sequence[SegmentUpload]:
        """All uploads of some logs, by log and base offset."""

    async def converted_logs(self) -> Sequence[DisklessLog]:
        """Logs of which segments hold offsets at or above B0, or of which there are uploads."""

    async def conversion_ended(self, partition: TopicIdPartition, *, leader_epoch: LeaderEpoch) -> None:
        """No segment of the log is left: HYBRID becomes DISKLESS_ONLY, if the log start has reached the read boundary
        and there is no upload."""


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


class ControlPlane(
    BatchCommits,
    BatchReads,
    LogLifecycle,
    LogTrimming,
    WalFiles,
    ProducerStates,
    Migrations,
    SplitClaims,
    SegmentUploads,
    GivenUpSegments,
    GivenUpRuns,
    TieringWishes,
    Protocol,
):
    """The sum of the ports. A component asks for the one it uses."""
